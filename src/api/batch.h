/* Private to api: a batch of the sequence-parallel calls. */
#ifndef TRI_API_BATCH_H
#define TRI_API_BATCH_H

#include "api/device.h"
#include "attn/exchange.h"
#include "data/batch.h"
#include "trireme/sp.h"

enum { TRI_SP_AGREED = 16 };

struct tri_sp_batch {
    struct tri_device *device;
    struct tri_comm *sequence; /* NULL: one rank */
    struct tri_sp_shape shape;
    struct tri_layout layout; /* of one row */
    int rank;
    int64_t local;                  /* T */
    struct tri_batch *rows;         /* (B) documents alone: doc_begin, num_docs, num_tokens */
    int64_t *documents;             /* memory of their doc_begin */
    uint64_t agreed[TRI_SP_AGREED]; /* hashes of calls that all ranks make alike */
    int num_agreed;
};

/* The exchange of one row. */
struct tri_exchange tri_sp_exchange(const struct tri_sp_batch *batch, int64_t num_heads,
                                    int64_t num_kv_heads, int64_t head_dim);

/* Have all ranks made this call with the same numbers? Asked once a batch for each kind of call. */
enum tri_status tri_sp_agree(struct tri_sp_batch *batch, const char *what, const int64_t *numbers,
                             int count);

/* TRI_INVALID unless t is (B, tokens, heads, any). */
enum tri_status tri_sp_check(const struct tri_sp_batch *batch, const char *name,
                             const struct tri_tensor *t, int64_t tokens, int64_t heads);

/* Tokens [begin, begin + count) of row b of a (B, T, H, D) tensor as a matrix (count, H*D): in
 * place where every head and element lies beside the one before, else scratch that is filled from
 * the tensor when `read` is set. */
enum tri_status tri_sp_matrix(struct tri_sp_batch *batch, const char *name, struct tri_tensor t,
                              int64_t b, int64_t begin, int64_t count, bool read,
                              struct tri_view *out);

/* The same tokens into a matrix, and a matrix into them; nothing when it is their own memory. */
enum tri_status tri_sp_pack(struct tri_sp_batch *batch, struct tri_view to, struct tri_tensor from,
                            int64_t b, int64_t begin, int64_t count);
enum tri_status tri_sp_unpack(struct tri_sp_batch *batch, struct tri_tensor to,
                              struct tri_view from, int64_t b, int64_t begin, int64_t count);

#endif
