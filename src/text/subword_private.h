/* Between subword.c and subword_at.c. */
#ifndef TRI_TEXT_SUBWORD_PRIVATE_H
#define TRI_TEXT_SUBWORD_PRIVATE_H

#include "text/subword.h"

/* What one thread needs to encode; used ones wait for the next text. */
struct tri_subword_work {
    struct tri_subword *subword;
    struct tri_bpe_work *bpe;
    struct tri_regex_work *regex;
    struct tri_normalizer_work normalizer;
    struct tri_pretokenizer_work pretokenizer;
    struct tri_ids *ids; /* where they go; NULL: pieces are only measured */
    size_t measured;     /* bytes of the pieces */
    struct tri_subword_work *next;
};

enum tri_status tri_subword_take_work(struct tri_subword *s, struct tri_subword_work **out);
void tri_subword_give_work(struct tri_subword *s, struct tri_subword_work *work);

/* Encode, or measure, a part of the text between tokens that are looked for in it as it is. */
enum tri_status tri_subword_part(struct tri_subword_work *work, const char *text, size_t bytes,
                                 bool at_start);

/* tri_tokenizer.encode_at */
enum tri_status tri_subword_encode_at(const struct tri_tokenizer *tokenizer, const char *text,
                                      size_t bytes, struct tri_text_place *places,
                                      size_t num_places, struct tri_ids *ids);

#endif
