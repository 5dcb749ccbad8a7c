/* Compressed data, piece by piece. */
#ifndef TRI_DATA_DECOMPRESS_H
#define TRI_DATA_DECOMPRESS_H

#include <stddef.h>

#include "base/status.h"

enum tri_coding { TRI_PLAIN, TRI_GZIP, TRI_ZSTD };

/* By the end of a name (.gz, .zst); *stem is the length of what comes before it. */
enum tri_coding tri_coding_of(const char *name, size_t *stem);

/* Who takes the pieces: also told how many bytes of the input are used up. */
struct tri_decompress_sink {
    void *ctx;
    enum tri_status (*take)(void *ctx, const void *data, size_t bytes, size_t used);
};

/* Decompress all of `data`: any number of gzip members or zstd frames, one after the other. Data
 * that is broken, cut short or followed by something else is TRI_FORMAT; `what` names it. */
enum tri_status tri_decompress(enum tri_coding coding, const char *what, const unsigned char *data,
                               size_t bytes, const struct tri_decompress_sink *sink);

#endif
