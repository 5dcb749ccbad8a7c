/* Sequence parallelism: P ranks share one sequence (Jacobs et al. 2023, "DeepSpeed Ulysses").
 *
 * Token-wise work (norms, products, loss) has each rank's own tokens and all heads. Attention has
 * all tokens and the rank's own heads. An exchange, one all-to-all, turns one layout into the other
 * and back.
 *
 * Letters: B rows, S tokens of a row, T of them on this rank, P ranks, C chunk, Hq/Hk query and key
 * heads, hq/hk those of this rank, D head size.
 *
 * Token layout. Chunk [a, a + n) of a row is split over the ranks in order: rank r holds tokens
 * [a + floor(r n / P), a + floor((r + 1) n / P)), and a rank's parts of all chunks follow each
 * other in its memory. With one chunk (C = 0) shards are contiguous. Any S, C and P work.
 *
 * Heads. Query heads are split like tokens, so P may be anything up to Hq. A rank's key heads are
 * those that its query heads read: a key head may live on several ranks, and then their gradients
 * are added up. */
#ifndef TRIREME_SP_H
#define TRIREME_SP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trireme/comm.h"
#include "trireme/device.h"
#include "trireme/status.h"
#include "trireme/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layout ------------------------------------------------------------------------------------
 */

struct tri_sp_shape {
    int64_t rows;   /* B */
    int64_t tokens; /* S */
    int64_t chunk;  /* C; 0: the whole row */
};

/* T: tokens of each row that rank `rank` of `ranks` holds. */
int64_t tri_sp_local_tokens(const struct tri_sp_shape *shape, int ranks, int rank);

/* Which token of the row is at place `local` (0 <= local < T) of a rank. */
int64_t tri_sp_token(const struct tri_sp_shape *shape, int ranks, int rank, int64_t local);

struct tri_sp_heads {
    int64_t query_begin, query_count; /* of Hq */
    int64_t key_begin, key_count;     /* of Hk */
};

/* Heads of a rank. TRI_INVALID, with the numbers, unless Hk divides Hq and 1 <= P <= Hq. */
enum tri_status tri_sp_heads(int64_t num_heads, int64_t num_kv_heads, int ranks, int rank,
                             struct tri_sp_heads *out);

/* position_ids for documents of these lengths that follow each other: 0, 1, ... in each. */
void tri_sp_positions(const int64_t *lengths, int64_t count, int64_t *positions);

/* ---- a batch -----------------------------------------------------------------------------------
 */

struct tri_sp_batch; /* opaque: what all layers of one step share */

/* Describe B rows to all ranks of the group, once a step. `positions` (B, T) in host memory are
 * this rank's position ids: a document begins where a position is not the one before plus 1, and
 * documents never see each other. `local` is the T that this rank's tensors have. Collective; what
 * a rank got wrong (no positions, another shape than the others) fails on all of them, with a text
 * that names it. The device and `sequence` (NULL: one rank) must outlive the batch. */
enum tri_status tri_sp_batch_open(struct tri_device *device, struct tri_comm *sequence,
                                  const struct tri_sp_shape *shape, int64_t local,
                                  const int64_t *positions, struct tri_sp_batch **out);
void tri_sp_batch_close(struct tri_sp_batch *batch); /* NULL is allowed */

/* ---- exchange ----------------------------------------------------------------------------------
 */

enum tri_sp_kind { TRI_SP_QUERY_HEADS, TRI_SP_KEY_HEADS };

/* One tensor in both layouts. Dimensions in this order, with any strides: (S, B, H, D) memory is
 * given as tri_tensor_swap(t, 0, 1), (B, H, S, D) memory as tri_tensor_swap(t, 1, 2). */
struct tri_sp_part {
    enum tri_sp_kind kind;
    struct tri_tensor local; /* (B, T, H, D): H is Hq or Hk */
    struct tri_tensor heads; /* (B, S, h, D): h is hq or hk of this rank */
};

enum { TRI_SP_MAX_PARTS = 4 };

/* heads = local, for up to TRI_SP_MAX_PARTS tensors at once; any dtype. Collective. */
enum tri_status tri_sp_to_heads(struct tri_sp_batch *batch, int64_t num_heads, int64_t num_kv_heads,
                                const struct tri_sp_part *parts, int num_parts);

/* local = heads. The inverse of tri_sp_to_heads for query heads, and its adjoint for key heads:
 * those that several ranks hold are summed (floating dtypes). Collective. */
enum tri_status tri_sp_to_sequence(struct tri_sp_batch *batch, int64_t num_heads,
                                   int64_t num_kv_heads, const struct tri_sp_part *parts,
                                   int num_parts);

/* ---- attention ---------------------------------------------------------------------------------
 */

/* Causal attention inside documents; the kernel never makes an O(S^2) matrix (Dao 2023). */
struct tri_sp_attention {
    int64_t num_heads, num_kv_heads, head_dim; /* Hq, Hk, D of the model */
    int64_t window;     /* a token sees itself and window - 1 tokens before it; 0: no limit */
    double scale;       /* of the scores; 0: 1/sqrt(D) */
    bool deterministic; /* equal inputs give equal bits */
};

/* Bytes of device memory that one forward keeps for its backward: queries, keys, values and output
 * of this rank's heads, and the log-sum-exp. 0 for sizes that tri_sp_attention_forward refuses. */
size_t tri_sp_attention_kept_bytes(const struct tri_sp_batch *batch,
                                   const struct tri_sp_attention *attention, enum tri_dtype dtype);

/* o(B,T,Hq,D) = attention of q(B,T,Hq,D), k and v (B,T,Hk,D), all of one floating dtype, any
 * strides. Positional rotation of q and k is the caller's. `kept` is kept_bytes of device memory,
 * aligned to 64, for the backward, owned by the caller; NULL when there will be none. Collective.
 */
enum tri_status tri_sp_attention_forward(struct tri_sp_batch *batch,
                                         const struct tri_sp_attention *attention,
                                         struct tri_tensor o, void *kept, struct tri_tensor q,
                                         struct tri_tensor k, struct tri_tensor v);

/* dq(B,T,Hq,D), dk and dv (B,T,Hk,D) = gradients, from that of o and what the forward kept. `kept`
 * is only read: the backward may run again. Collective. */
enum tri_status tri_sp_attention_backward(struct tri_sp_batch *batch,
                                          const struct tri_sp_attention *attention,
                                          struct tri_tensor dq, struct tri_tensor dk,
                                          struct tri_tensor dv, struct tri_tensor dout,
                                          const void *kept);

#ifdef __cplusplus
}
#endif

#endif
