/* What the parts of the encoder share. */
#ifndef TRI_TEXT_BPE_PRIVATE_H
#define TRI_TEXT_BPE_PRIVATE_H

#include "text/bpe.h"

const struct tri_merge *tri_bpe_find(const struct tri_bpe *bpe, int32_t left, int32_t right);
bool tri_bpe_joins(const struct tri_bpe *bpe, uint32_t left, uint32_t right);

/* The symbols of a word: its characters, bytes to fall back on, unknown ones. Replaces `symbols`.
 */
enum tri_status tri_bpe_spell(const struct tri_bpe *bpe, const char *word, size_t bytes,
                              bool as_bytes, struct tri_ids *symbols);

/* A possible merge of the symbol at a position with its right neighbour. */
struct tri_bpe_candidate {
    uint64_t order; /* rank in the high half, position in the low */
    int32_t id;
};

/* Room to merge many symbols. All zero is none. */
struct tri_bpe_room {
    int32_t *before, *after; /* neighbours of each symbol, -1: none */
    struct tri_bpe_candidate *heap;
    int64_t num_candidates;
    int64_t symbols; /* that the arrays are for */
};
void tri_bpe_room_free(struct tri_bpe_room *room);

/* Merge symbols until no pair of neighbours is left that may be. */
enum tri_status tri_bpe_merge(const struct tri_bpe *bpe, struct tri_bpe_room *room,
                              struct tri_ids *symbols);

#endif
