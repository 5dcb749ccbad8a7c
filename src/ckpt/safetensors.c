#include "ckpt/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "ckpt/safetensors_private.h"

enum { LENGTH_BYTES = 8, HEADER_LIMIT_BYTES = 100 * 1000 * 1000, NAME_ROOM = 120 };

int tri_st_by_name(const void *a, const void *b)
{
    const struct tri_st_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static const struct tri_st_tensor *find_in(const struct tri_st_tensor *tensors, int64_t count,
                                           const char *name)
{
    if (count == 0)
        return NULL;
    struct tri_st_tensor key = {.name = name};
    return bsearch(&key, tensors, (size_t)count, sizeof *tensors, tri_st_by_name);
}

/* Bytes up to the data, as far as the file may be believed before it was looked at. */
static size_t header_bytes(const struct tri_map *map)
{
    uint64_t length = 0;
    if (map->bytes < LENGTH_BYTES)
        return map->bytes;
    for (int i = 0; i < LENGTH_BYTES; i++)
        length |= (uint64_t)map->data[i] << (8 * i);
    return length < map->bytes - LENGTH_BYTES ? LENGTH_BYTES + (size_t)length : map->bytes;
}

/* The tensors of a mapped file, with pointers into the map. */
static enum tri_status read_header(const char *path, const struct tri_map *map,
                                   struct tri_st_tensor **out, int64_t *count)
{
    if (map->bytes < LENGTH_BYTES)
        return tri_fail(TRI_FORMAT,
                        "%s: %zu bytes are too few for a safetensors file: it is cut short, copy "
                        "or download it again",
                        path, map->bytes);
    uint64_t length = 0;
    for (int i = 0; i < LENGTH_BYTES; i++)
        length |= (uint64_t)map->data[i] << (8 * i);
    size_t rest = map->bytes - LENGTH_BYTES;
    if (length > HEADER_LIMIT_BYTES)
        return tri_fail(TRI_FORMAT,
                        "%s: the header says it has %" PRIu64
                        " bytes, more than the %d allowed: this is "
                        "not a safetensors file, or it is damaged",
                        path, length, HEADER_LIMIT_BYTES);
    if (length > rest)
        return tri_fail(TRI_FORMAT,
                        "%s: the header says it has %" PRIu64
                        " bytes, but the file has only %zu: it is "
                        "cut short, copy or download it again",
                        path, length, rest);

    const char *text = (const char *)map->data + LENGTH_BYTES;
    TRI_TRY(tri_st_parse_header(path, text, (size_t)length, rest - (size_t)length, out, count));
    const unsigned char *data = map->data + LENGTH_BYTES + length;
    for (int64_t i = 0; i < *count; i++)
        (*out)[i].data = data + (uintptr_t)(*out)[i].data;
    return TRI_OK;
}

enum tri_status tri_st_add_file(struct tri_st *st, const char *path, const char *file,
                                const json_t *weight_map)
{
    struct tri_map map;
    TRI_TRY(tri_map_open(path, &map));
    struct tri_st_file *opened = &st->files[st->num_files++]; /* closed by tri_st_close */
    *opened = (struct tri_st_file){.map = map, .path = strdup(path)};
    if (opened->path == NULL)
        return tri_fail(TRI_NOMEM, "no memory to read %s", path);
    TRI_TRY(tri_sums_check(st->sums, path, &map, 0, header_bytes(&map)));

    struct tri_st_tensor *tensors = NULL;
    int64_t count = 0;
    TRI_TRY(read_header(path, &map, &tensors, &count));
    enum tri_status status = TRI_OK;
    for (int64_t i = 0; weight_map != NULL && i < count; i++) {
        const char *home = json_string_value(json_object_get(weight_map, tensors[i].name));
        if (home != NULL && strcmp(home, file) == 0)
            continue;
        char name[NAME_ROOM], other[NAME_ROOM];
        tri_st_name_text(tensors[i].name, name, sizeof name);
        status = tri_fail(TRI_FORMAT, "%s: holds tensor %s, which the index %s%s", path, name,
                          home == NULL ? "does not name" : "places in ",
                          home == NULL ? "" : tri_st_name_text(home, other, sizeof other));
        goto free_tensors;
    }

    struct tri_st_tensor *all = realloc(st->tensors, (size_t)(st->count + count + 1) * sizeof *all);
    if (all == NULL) {
        status = tri_fail(TRI_NOMEM, "%s: no memory for %" PRId64 " tensors", path, count);
        goto free_tensors;
    }
    memcpy(all + st->count, tensors, (size_t)count * sizeof *all);
    st->tensors = all;
    st->count += count;
    free(tensors); /* the names have moved */
    return TRI_OK;

free_tensors:
    tri_st_free_header(tensors, count);
    return status;
}

void tri_st_close(struct tri_st *st)
{
    if (st == NULL)
        return;
    tri_st_free_header(st->tensors, st->count);
    for (int64_t i = 0; i < st->num_files; i++) {
        tri_map_close(&st->files[i].map);
        free(st->files[i].path);
    }
    free(st->files);
    tri_sums_close(st->sums);
    free(st);
}

int64_t tri_st_count(const struct tri_st *st)
{
    return st->count;
}

const struct tri_st_tensor *tri_st_at(const struct tri_st *st, int64_t i)
{
    return &st->tensors[i];
}

const struct tri_st_tensor *tri_st_find(const struct tri_st *st, const char *name)
{
    return find_in(st->tensors, st->count, name);
}

enum tri_status tri_st_place(const struct tri_st *st, uint64_t *out)
{
    uint64_t hash = TRI_HASH_START;
    for (int64_t i = 0; i < st->num_files; i++) {
        struct stat info;
        if (stat(st->files[i].path, &info) != 0)
            return tri_fail_errno(errno, "cannot read %s", st->files[i].path);
        const uint64_t words[] = {(uint64_t)info.st_dev,          (uint64_t)info.st_ino,
                                  (uint64_t)info.st_size,         (uint64_t)info.st_mtim.tv_sec,
                                  (uint64_t)info.st_mtim.tv_nsec, (uint64_t)info.st_ctim.tv_sec,
                                  (uint64_t)info.st_ctim.tv_nsec};
        for (size_t w = 0; w < sizeof words / sizeof *words; w++)
            hash = tri_hash_word(hash, words[w]);
    }
    *out = hash;
    return TRI_OK;
}

enum tri_status tri_st_check(const struct tri_st *st, const struct tri_st_tensor *tensor,
                             size_t offset, size_t bytes)
{
    uintptr_t data = (uintptr_t)tensor->data;
    for (int64_t i = 0; i < st->num_files && st->sums != NULL; i++) {
        const struct tri_st_file *file = &st->files[i];
        uintptr_t begin = (uintptr_t)file->map.data;
        if (data >= begin && data - begin < file->map.bytes)
            return tri_sums_check(st->sums, file->path, &file->map, data - begin + offset, bytes);
    }
    return TRI_OK; /* no hashes, or a tensor without elements at the end of a file */
}

void tri_st_forget(const struct tri_st_tensor *tensor)
{
    /* Only whole pages inside the tensor; a mapped file is never modified, so nothing is lost. */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = (uintptr_t)tensor->data, end = begin + tensor->bytes;
    begin = (begin + page - 1) / page * page;
    end = end / page * page;
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}
