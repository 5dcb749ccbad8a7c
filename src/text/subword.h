/* A subword tokenizer in memory: its parts, and the way of a text through them. */
#ifndef TRI_TEXT_SUBWORD_H
#define TRI_TEXT_SUBWORD_H

#include <pthread.h>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/postprocessor.h"
#include "text/pretokenizer.h"
#include "text/token_cache.h"
#include "text/tokenizer.h"

struct tri_subword_work;

struct tri_subword {
    struct tri_tokenizer base;
    struct tri_bpe bpe;
    struct tri_normalizer normalizer;
    struct tri_pretokenizer pretokenizer;
    struct tri_added_tokens added;
    struct tri_postprocessor postprocessor;
    struct tri_decoder decoder;
    struct tri_token_cache *cache;
    pthread_mutex_t lock; /* of what follows */
    struct tri_subword_work *idle;
};

/* One without parts, whose functions are set; tri_tokenizer_close() frees it. */
enum tri_status tri_subword_new(struct tri_subword **out);

/* Append the ids of a valid UTF-8 text, from no cache. */
enum tri_status tri_subword_encode(struct tri_subword *s, const char *text, size_t bytes,
                                   struct tri_ids *ids);

#endif
