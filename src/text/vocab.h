/* Strings and their ids, both ways. */
#ifndef TRI_TEXT_VOCAB_H
#define TRI_TEXT_VOCAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Ids lie below this: 60 times the largest vocabulary in use, small enough for arrays over ids. */
enum { TRI_VOCAB_LIMIT = 1 << 24 };

struct tri_vocab_token {
    const char *text; /* NULL: no token has this id */
    size_t bytes;
};

/* All zero is an empty vocabulary. */
struct tri_vocab {
    struct tri_vocab_token *token; /* by id */
    int64_t size;                  /* ids are below */
    int64_t count;                 /* of tokens; less than size where ids are skipped */
    int32_t *slot;                 /* hash table of ids, -1: free */
    size_t mask;
    char *bytes; /* where the texts are, each with a NUL behind it */
    size_t used, capacity;
};

/* Room for ids below `size`, at most TRI_VOCAB_LIMIT, whose texts have `bytes` bytes in all. */
enum tri_status tri_vocab_open(int64_t size, size_t bytes, struct tri_vocab *out);
void tri_vocab_close(struct tri_vocab *vocab);

/* Add a token with an id below the size. An id or a text that is taken is TRI_FORMAT. */
enum tri_status tri_vocab_add(struct tri_vocab *vocab, int64_t id, const char *text, size_t bytes);

/* The id of a text, -1 if there is none. */
int32_t tri_vocab_find(const struct tri_vocab *vocab, const char *text, size_t bytes);

#endif
