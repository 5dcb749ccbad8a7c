#include "data/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/text.h"

enum { WINDOW_BYTES = 16 << 20 };

void tri_copy_show(const char *doing, const char *path, double begin, size_t done, size_t bytes)
{
    const double seconds = tri_clock() - begin;
    if (seconds < TRI_COPY_QUIET || done == 0)
        return;
    char eta[16];
    tri_duration_text(seconds * (double)(bytes - done) / (double)done, eta);
    tri_progress("%s %s: %s of %s, %s left", doing, path, tri_bytes((double)done).s,
                 tri_bytes((double)bytes).s, eta);
}

uint64_t tri_copy_fingerprint(const char *path, const struct tri_map *map)
{
    const double begin = tri_clock();
    uint64_t hash = tri_hash_word(TRI_HASH_START, map->bytes);
    for (size_t at = 0; at < map->bytes; at += WINDOW_BYTES) {
        const size_t left = map->bytes - at;
        hash = tri_fingerprint(hash, map->data + at, left < WINDOW_BYTES ? left : WINDOW_BYTES);
        tri_copy_show("checking", path, begin, at, map->bytes);
    }
    return hash;
}

enum tri_status tri_copy_sum(const char *copy, char out[TRI_COPY_SUM_BYTES])
{
    struct tri_map map;
    TRI_TRY(tri_map_open(copy, &map));
    if (map.bytes > 0)
        (void)madvise((void *)(uintptr_t)map.data, map.bytes, MADV_SEQUENTIAL);
    snprintf(out, TRI_COPY_SUM_BYTES, "%016" PRIx64 " %zu\n", tri_copy_fingerprint(copy, &map),
             map.bytes);
    tri_map_close(&map);
    return TRI_OK;
}

enum tri_status tri_copy_is_as_made(const char *copy, const char *sum, bool *out)
{
    char now[TRI_COPY_SUM_BYTES], *then = NULL;
    bool same = false;
    if (tri_file_read(sum, TRI_COPY_SUM_BYTES, &then, NULL) == TRI_OK) {
        const enum tri_status st = tri_copy_sum(copy, now);
        if (st != TRI_OK) {
            free(then);
            return st;
        }
        same = strcmp(now, then) == 0;
    }
    free(then);
    tri_error_clear();
    *out = same;
    return TRI_OK;
}

enum tri_status tri_copy_mark(const char *copy, struct tri_copy_mark *out)
{
    struct stat info;
    if (stat(copy, &info) != 0)
        return tri_fail_errno(errno, "cannot read %s any more", copy);
    *out = (struct tri_copy_mark){
        .device = (int64_t)info.st_dev,
        .inode = (int64_t)info.st_ino,
        .bytes = (int64_t)info.st_size,
        .modified = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec,
        .changed = (int64_t)info.st_ctim.tv_sec * 1000000000 + info.st_ctim.tv_nsec,
    };
    return TRI_OK;
}

enum tri_status tri_copy_check(const char *path, const char *copy, struct tri_copy_mark *mark)
{
    struct tri_copy_mark now;
    bool same = false;
    enum tri_status st = tri_copy_mark(copy, &now);
    if (st != TRI_OK) {
        tri_error_prefix("the unpacked copy of %s is gone (start again to unpack it anew)", path);
        return st;
    }
    if (memcmp(&now, mark, sizeof now) == 0)
        return TRI_OK;
    char *sum = tri_path_append(copy, ".sum");
    if (!sum)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    st = tri_copy_is_as_made(copy, sum, &same);
    free(sum);
    TRI_TRY(st);
    if (!same)
        return tri_fail(TRI_INVALID,
                        "%s, the unpacked copy of %s, has changed since training began: start "
                        "again, and it is unpacked anew",
                        copy, path);
    *mark = now;
    return TRI_OK;
}
