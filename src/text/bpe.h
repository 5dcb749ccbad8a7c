/* Byte-pair encoding of one piece of text, as Hugging Face tokenizers does it: a piece becomes
 * symbols (characters, or bytes), and the pair of neighbours with the lowest rank is merged, the
 * leftmost first, until no pair has one (Sennrich et al., arXiv:1508.07909).
 *
 * A long piece is first cut between characters that no merge joins: no token can lie across such a
 * place, so the ids stay the same, and words that come again are found in a cache. */
#ifndef TRI_TEXT_BPE_H
#define TRI_TEXT_BPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "text/ids.h"
#include "text/vocab.h"

struct tri_merge {
    uint64_t pair; /* left id in the high half, right id in the low; TRI_NO_PAIR: free */
    int32_t rank;
    int32_t id; /* what the pair becomes */
};
#define TRI_NO_PAIR UINT64_MAX

/* An unk_token that is not in the vocabulary: the first unknown character is an error. */
enum { TRI_UNK_MISSING = -2 };

struct tri_bpe {
    struct tri_vocab vocab;
    struct tri_merge *merge; /* hash table by pair */
    size_t mask;
    int32_t unk; /* -1: unknown characters vanish; TRI_UNK_MISSING */
    bool fuse_unk, ignore_merges;
    bool byte_fallback;
    char *prefix, *suffix; /* of symbols inside, at the end of a word; "" mostly */
    size_t prefix_bytes, suffix_bytes;
    size_t longest; /* bytes of the longest token */

    int32_t char_id[128];     /* of ASCII characters, -1: not in the vocabulary */
    int32_t byte_id[256];     /* of the characters that stand for bytes */
    int32_t fallback_id[256]; /* of <0x00> to <0xFF> */
    bool all_fallback;        /* there are all of them */

    /* A bit for a hash of each pair of characters that some merge joins. A set bit may be chance; a
     * clear one is certain. */
    uint64_t *joined;
    bool may_cut;
};

enum tri_status tri_bpe_open(const json_t *model, struct tri_bpe *out);
void tri_bpe_close(struct tri_bpe *bpe);

/* What one thread needs to encode: a cache of words and room for symbols. */
struct tri_bpe_work;
enum tri_status tri_bpe_work_open(struct tri_bpe_work **out);
void tri_bpe_work_close(struct tri_bpe_work *work); /* NULL is allowed */

/* Append the ids of a piece of valid UTF-8. With `as_bytes` each byte stands for its character of
 * the byte-level alphabet. */
enum tri_status tri_bpe_encode(const struct tri_bpe *bpe, struct tri_bpe_work *work,
                               const char *piece, size_t bytes, bool as_bytes, struct tri_ids *ids);

#endif
