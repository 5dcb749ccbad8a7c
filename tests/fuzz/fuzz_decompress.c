/* Compressed data: it comes out whole, or is refused in one line; it always ends. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/decompress.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MOST = 64 << 20 };

struct seen {
    size_t bytes, used, input;
};

static enum tri_status take(void *ctx, const void *data, size_t bytes, size_t used)
{
    struct seen *seen = ctx;
    CHECK(data && bytes > 0);
    CHECK(used >= seen->used && used <= seen->input);
    seen->bytes += bytes;
    seen->used = used;
    return seen->bytes > MOST ? tri_fail(TRI_IO, "enough") : TRI_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    for (int coding = TRI_GZIP; coding <= TRI_ZSTD; coding++) {
        struct seen seen = {.input = bytes};
        const struct tri_decompress_sink sink = {&seen, take};
        if (tri_decompress((enum tri_coding)coding, "input", data, bytes, &sink) == TRI_OK)
            continue;
        check_error();
        tri_error_clear();
    }
    return 0;
}
