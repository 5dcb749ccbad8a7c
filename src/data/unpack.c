#include "data/unpack.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "data/copy.h"
#include "data/json_list.h"
#include "data/lock.h"

enum { NAME_BYTES = 120 };

enum tri_status tri_cache_folder(const char *choice, char **out)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    if (choice && choice[0] != '\0')
        path = strdup(choice);
    else if (cache && cache[0] == '/')
        path = tri_path_join(cache, "trireme");
    else if (home && home[0] == '/')
        path = tri_path_join(home, ".cache/trireme");
    else
        return tri_fail(TRI_INVALID, "there is no home folder to keep unpacked data in: set "
                                     "data.cache_dir");
    if (!path)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    *out = path;
    return TRI_OK;
}

enum tri_status tri_cache_folder_failed(enum tri_status status)
{
    static const char usual[] = "another output_dir";
    const char *text = tri_error_text();
    const char *at = status == TRI_IO ? strstr(text, usual) : NULL;
    if (!at || at[sizeof usual - 1] != '\0')
        return status;
    char *begin = strndup(text, (size_t)(at - text));
    if (!begin)
        return status;
    status = tri_fail(status, "%sanother data.cache_dir", begin);
    free(begin);
    return status;
}

/* FOLDER/HASH-NAME, with at most the last NAME_BYTES of the name. */
static enum tri_status copy_path(const char *path, uint64_t hash, bool list, const char *folder,
                                 char **out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t stem;
    (void)tri_coding_of(name, &stem);
    if (stem > NAME_BYTES) {
        name += stem - NAME_BYTES;
        stem = NAME_BYTES;
    }
    char text[NAME_BYTES + 24];
    snprintf(text, sizeof text, "%016" PRIx64 "-%.*s%s", hash, (int)stem, name, list ? "l" : "");
    char *joined = tri_path_join(folder, text);
    if (!joined)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    *out = joined;
    return TRI_OK;
}

struct copying {
    struct tri_writer *writer;
    const char *path;
    double begin;
    size_t bytes;
};

static enum tri_status take(void *ctx, const void *data, size_t bytes, size_t used)
{
    const struct copying *copying = ctx;
    tri_copy_show("unpacking", copying->path, copying->begin, used, copying->bytes);
    return tri_writer_write(copying->writer, data, bytes);
}

static enum tri_status write_copy(const char *path, enum tri_coding coding, bool list,
                                  const struct tri_map *map, const char *copy)
{
    struct copying copying = {.path = path, .begin = tri_clock(), .bytes = map->bytes};
    struct tri_json_list elements = {.what = path, .sink = {&copying, take}};
    const struct tri_decompress_sink to_lines = {&elements, tri_json_list_take};
    TRI_TRY(tri_writer_open(copy, &copying.writer));
    enum tri_status st =
        tri_decompress(coding, path, map->data, map->bytes, list ? &to_lines : &elements.sink);
    if (st == TRI_OK && list)
        st = tri_json_list_finish(&elements);
    if (st == TRI_OK)
        st = tri_writer_commit(copying.writer);
    else
        tri_writer_abandon(copying.writer);
    if (tri_clock() - copying.begin >= TRI_COPY_QUIET)
        tri_progress_end();
    return st;
}

/* Is there a copy, the one that was made? */
static enum tri_status find_copy(const char *copy, const char *sum, bool *out)
{
    *out = false;
    if (!tri_path_exists(copy) || !tri_path_exists(sum))
        return TRI_OK;
    return tri_copy_is_as_made(copy, sum, out);
}

/* Held by whoever unpacks; goes with the process that has it. */
static enum tri_status lock(const char *copy, int *out)
{
    char waiting[512];
    char *path = tri_path_append(copy, ".lock"), *making = tri_path_append(copy, ".tmp");
    snprintf(waiting, sizeof waiting, "waiting for whoever unpacks %s", copy);
    enum tri_status st = path && making ? tri_data_lock(path, waiting, making, out)
                                        : tri_fail(TRI_NOMEM, "no memory for a path");
    free(making);
    free(path);
    return st;
}

/* The sum comes last: a copy without one is made again. */
static enum tri_status write_both(const char *path, enum tri_coding coding, bool list,
                                  const struct tri_map *map, const char *copy, const char *sum)
{
    char text[TRI_COPY_SUM_BYTES];
    (void)unlink(sum);
    TRI_TRY(write_copy(path, coding, list, map, copy));
    TRI_TRY(tri_copy_sum(copy, text));
    return tri_file_write(sum, text, strlen(text));
}

static enum tri_status make_copy(const char *path, enum tri_coding coding, bool list,
                                 const struct tri_map *map, const char *copy)
{
    int fd = -1;
    bool there = false;
    char *sum = tri_path_append(copy, ".sum");
    enum tri_status st;
    if (!sum)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    TRI_TRY_GOTO(st, find_copy(copy, sum, &there), free_sum);
    if (there)
        goto free_sum;
    TRI_TRY_GOTO(st, lock(copy, &fd), free_sum);
    st = find_copy(copy, sum, &there); /* somebody else may have made it */
    if (st == TRI_OK && !there && tri_path_exists(copy) && tri_path_exists(sum))
        tri_warn("%s is damaged and is unpacked again", copy);
    if (st == TRI_OK && !there)
        st = write_both(path, coding, list, map, copy, sum);
    (void)close(fd);
free_sum:
    free(sum);
    return st;
}

static enum tri_status find_byte(void *ctx, const void *data, size_t bytes, size_t used)
{
    char *found = ctx;
    const char *text = data;
    (void)used;
    for (size_t i = 0; i < bytes && *found == 0; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r' && text[i] != '\n')
            *found = text[i];
    return *found ? TRI_IO : TRI_OK; /* seen enough */
}

enum tri_status tri_first_byte(const char *path, enum tri_coding coding, char *out)
{
    char found = 0;
    struct tri_map map;
    const struct tri_decompress_sink sink = {&found, find_byte};
    TRI_TRY(tri_map_open(path, &map));
    const enum tri_status st = tri_decompress(coding, path, map.data, map.bytes, &sink);
    tri_map_close(&map);
    if (st != TRI_OK && found == 0)
        return st;
    *out = found;
    return TRI_OK;
}

enum tri_status tri_unpack(const char *path, enum tri_coding coding, bool list, const char *folder,
                           char **out)
{
    struct tri_map map;
    char *copy = NULL;
    enum tri_status st = tri_cache_folder_failed(tri_make_folder(folder));
    if (st != TRI_OK) {
        tri_error_prefix("%s is unpacked into data.cache_dir", path);
        return st;
    }
    TRI_TRY(tri_map_open(path, &map));
    if (map.bytes > 0)
        (void)madvise((void *)(uintptr_t)map.data, map.bytes, MADV_SEQUENTIAL);
    st = copy_path(path, tri_copy_fingerprint(path, &map), list, folder, &copy);
    if (st == TRI_OK)
        st = make_copy(path, coding, list, &map, copy);
    tri_map_close(&map);
    st = tri_cache_folder_failed(st);
    if (st == TRI_IO)
        tri_error_prefix("%s is unpacked into data.cache_dir", path);
    if (st != TRI_OK) {
        free(copy);
        return st;
    }
    *out = copy;
    return TRI_OK;
}
