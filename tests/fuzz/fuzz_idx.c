/* An index of a Megatron dataset from a stranger. The first four bytes say how long the file of
 * tokens is; the index follows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/megatron.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MOST_TOKEN_BYTES = 1 << 16, VOCAB = 1 << 15 };

/* What an accepted index promises: every document can be read, and together they are no longer
 * than the file. The tokens lie in memory of their exact size, so that a byte too far is found. */
static void read_all(const struct tri_megatron *set, size_t token_bytes)
{
    int64_t total = 0;
    for (int64_t d = 0; d < set->documents; d++) {
        const int64_t length = tri_megatron_length(set, d);
        if (length < 0 || (uint64_t)length > token_bytes)
            abort();
        total += length;
        int32_t *ids = malloc((size_t)(length > 0 ? length : 1) * sizeof *ids);
        if (ids == NULL)
            return;
        if (tri_megatron_read(set, d, VOCAB, ids) == TRI_OK) {
            for (int64_t i = 0; i < length; i++)
                if (ids[i] < 0 || ids[i] >= VOCAB)
                    abort();
        } else {
            check_error();
        }
        free(ids);
    }
    if ((uint64_t)total > token_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint32_t token_bytes;
    struct tri_megatron set;
    if (bytes < sizeof token_bytes)
        return 0;
    memcpy(&token_bytes, data, sizeof token_bytes);
    token_bytes %= MOST_TOKEN_BYTES;
    unsigned char *tokens = malloc(token_bytes > 0 ? token_bytes : 1);
    if (tokens == NULL)
        return 0;
    for (uint32_t i = 0; i < token_bytes; i++) /* small ids, and some that are not */
        tokens[i] = (unsigned char)(i % 8 < 2 ? i : i % 64 == 5 ? 0xFF : 0);
    if (tri_megatron_parse("fuzz", (struct tri_map){data + 4, bytes - 4},
                           (struct tri_map){tokens, token_bytes}, &set) == TRI_OK)
        read_all(&set, token_bytes);
    else
        check_error();
    tri_error_clear();
    free(tokens);
    return 0;
}
