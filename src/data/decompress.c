#include "data/decompress.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

enum {
    PIECE_BYTES = 1 << 20,
    INPUT_BYTES = 1 << 30, /* that zlib is given at once: it counts in 32 bits */
    GZIP_WINDOW = 15 + 16, /* 32 KiB, with a gzip header */
    ZSTD_WINDOW = 31       /* frames made with --long=31 need 2 GiB of memory, and get it */
};

enum tri_coding tri_coding_of(const char *name, size_t *stem)
{
    static const struct {
        const char *end;
        enum tri_coding coding;
    } ends[] = {{".gz", TRI_GZIP}, {".zst", TRI_ZSTD}, {".zstd", TRI_ZSTD}};
    const size_t length = strlen(name);
    *stem = length;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t end = strlen(ends[i].end);
        if (length > end && strcasecmp(name + length - end, ends[i].end) == 0) {
            *stem = length - end;
            return ends[i].coding;
        }
    }
    return TRI_PLAIN;
}

static enum tri_status broken(const char *what, size_t at, const char *why)
{
    return tri_fail(TRI_FORMAT, "%s is broken near byte %zu (%s): get the file again", what, at,
                    why);
}

static enum tri_status cut_short(const char *what, size_t bytes)
{
    return tri_fail(TRI_FORMAT, "%s ends in the middle, after %zu bytes: get the file again", what,
                    bytes);
}

/* Members, perhaps zeros behind them (tapes and some tools leave these), and nothing else. */
static enum tri_status decompress_gzip(const char *what, const unsigned char *data, size_t bytes,
                                       unsigned char *piece, const struct tri_decompress_sink *sink)
{
    z_stream z = {.next_in = NULL};
    if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return tri_fail(TRI_NOMEM, "no memory to unpack %s", what);
    enum tri_status st = TRI_OK;
    size_t used = 0;
    bool inside = true;
    while (st == TRI_OK) {
        if (!inside) { /* between members */
            while (used < bytes && data[used] == 0)
                used++;
            if (used == bytes)
                break;
            (void)inflateReset(&z);
            inside = true;
        }
        const size_t left = bytes - used;
        const uInt given = left < INPUT_BYTES ? (uInt)left : INPUT_BYTES;
        z.next_in = (Bytef *)(uintptr_t)(data + used);
        z.avail_in = given;
        z.next_out = piece;
        z.avail_out = PIECE_BYTES;
        const int rc = inflate(&z, Z_NO_FLUSH);
        used += given - z.avail_in;
        if (rc == Z_STREAM_END)
            inside = false;
        else if (rc == Z_MEM_ERROR)
            st = tri_fail(TRI_NOMEM, "no memory to unpack %s", what);
        else if (rc == Z_BUF_ERROR || (rc == Z_OK && used == bytes && z.avail_out > 0))
            st = cut_short(what, bytes);
        else if (rc != Z_OK)
            st = broken(what, used, z.msg ? z.msg : "not gzip");
        if (st == TRI_OK && z.avail_out < PIECE_BYTES)
            st = sink->take(sink->ctx, piece, PIECE_BYTES - z.avail_out, used);
    }
    (void)inflateEnd(&z);
    return st;
}

static enum tri_status decompress_zstd(const char *what, const unsigned char *data, size_t bytes,
                                       unsigned char *piece, const struct tri_decompress_sink *sink)
{
    ZSTD_DStream *z = ZSTD_createDStream();
    if (!z || ZSTD_isError(ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, ZSTD_WINDOW))) {
        (void)ZSTD_freeDStream(z);
        return tri_fail(TRI_NOMEM, "no memory to unpack %s", what);
    }
    enum tri_status st = TRI_OK;
    ZSTD_inBuffer in = {data, bytes, 0};
    size_t hint = 1; /* 0: a frame has just ended */
    bool more = true;
    while (st == TRI_OK && more) {
        ZSTD_outBuffer out = {piece, PIECE_BYTES, 0};
        hint = ZSTD_decompressStream(z, &out, &in);
        if (ZSTD_isError(hint))
            st = broken(what, in.pos, ZSTD_getErrorName(hint));
        else if (out.pos > 0)
            st = sink->take(sink->ctx, piece, out.pos, in.pos);
        more = in.pos < bytes || (hint != 0 && out.pos == out.size);
    }
    if (st == TRI_OK && hint != 0)
        st = cut_short(what, bytes);
    (void)ZSTD_freeDStream(z);
    return st;
}

enum tri_status tri_decompress(enum tri_coding coding, const char *what, const unsigned char *data,
                               size_t bytes, const struct tri_decompress_sink *sink)
{
    if (bytes == 0 && coding != TRI_PLAIN)
        return cut_short(what, 0);
    unsigned char *piece = malloc(PIECE_BYTES);
    if (!piece)
        return tri_fail(TRI_NOMEM, "no memory to unpack %s", what);
    enum tri_status st = TRI_OK;
    switch (coding) {
    case TRI_PLAIN:
        st = sink->take(sink->ctx, data, bytes, bytes);
        break;
    case TRI_GZIP:
        st = decompress_gzip(what, data, bytes, piece, sink);
        break;
    case TRI_ZSTD:
        st = decompress_zstd(what, data, bytes, piece, sink);
        break;
    }
    free(piece);
    return st;
}
