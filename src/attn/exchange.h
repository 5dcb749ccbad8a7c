/* The exchange of Ulysses (Jacobs et al. 2023): from "my tokens, all heads" to "all tokens of the
 * chunk, my heads", and back.
 *
 * Before attention each rank of a sequence group holds its part of a chunk (shard/layout.h) for all
 * heads; attention wants whole chunks for some heads. One all-to-all carries queries, keys and
 * values together, another one brings the output back. Key heads that several ranks read are sent
 * to each of them; on the way back their gradients are added up. With one rank nothing moves: the
 * two layouts are the same memory.
 *
 * A rank's tokens may lie as one matrix, or as one block for each rank, which holds that rank's
 * heads. Blocks travel as they are, one run of bytes each way; RoPE, which reads and writes
 * everything in any case, makes them and takes them apart, so that packing costs no pass. */
#ifndef TRI_ATTN_EXCHANGE_H
#define TRI_ATTN_EXCHANGE_H

#include "backend/backend.h"
#include "comm/comm.h"
#include "shard/layout.h"

enum { TRI_EXCHANGE_MAX_RANKS = 256, TRI_EXCHANGE_MAX_PARTS = 4 };

struct tri_exchange {
    struct tri_exec exec;
    struct tri_comm *comm; /* the sequence group; NULL: one rank */
    struct tri_layout layout;
    int64_t num_heads, num_kv_heads, head_dim;
};

/* KEY_VALUE: key heads, then as many value heads; only in blocks. */
enum tri_head_kind { TRI_HEADS_QUERY, TRI_HEADS_KEY, TRI_HEADS_KEY_VALUE };

/* One tensor in both layouts: local (n_r, H*D) and heads (n, h_r*D); rows may be strided. H is all
 * heads of its kind, h_r those of this rank. With `blocks` local is the room of blocks, (n_r, sum
 * of h_r*D over ranks), which tri_exchange_block divides, and heads is contiguous on all ranks. */
struct tri_exchange_part {
    enum tri_head_kind kind;
    struct tri_view local;
    struct tri_view heads;
    bool blocks;
};

bool tri_exchange_is_alone(const struct tri_exchange *x);

/* Heads of this rank. */
struct tri_heads tri_exchange_heads(const struct tri_exchange *x);

/* Columns of a room of blocks, and the block of rank r in it: (n_r, h_r*D), contiguous. */
int64_t tri_exchange_width(const struct tri_exchange *x, enum tri_head_kind kind);
struct tri_view tri_exchange_block(const struct tri_exchange *x, enum tri_head_kind kind,
                                   struct tri_view room, int rank);

/* The key heads whose sum tri_exchange_to_sequence leaves in rank r's block; they are its first. */
struct tri_range tri_exchange_summed(const struct tri_exchange *x, int rank);

/* heads = local, for the parts of chunk `index`. Not to be called when alone. */
enum tri_status tri_exchange_to_heads(const struct tri_exchange *x, int64_t index,
                                      const struct tri_exchange_part *parts, int num_parts);

/* local = heads; key heads that several ranks hold are summed, in blocks into that of the last of
 * them. Scratch comes from exec.arena. */
enum tri_status tri_exchange_to_sequence(const struct tri_exchange *x, int64_t index,
                                         const struct tri_exchange_part *parts, int num_parts);

#endif
