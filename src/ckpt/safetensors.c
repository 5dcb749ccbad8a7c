#include "ckpt/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"

enum { LENGTH_BYTES = 8, HEADER_LIMIT_BYTES = 100 * 1000 * 1000, NAME_ROOM = 120 };

struct file {
    struct tri_map map;
    char *path;
};

struct tri_st {
    struct file *files; /* (num_files) */
    int64_t num_files;
    struct tri_sums *sums;         /* of the folder; NULL: it has none */
    struct tri_st_tensor *tensors; /* (count) sorted by name; the names are owned */
    int64_t count;
};

static int by_name(const void *a, const void *b)
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
    return bsearch(&key, tensors, (size_t)count, sizeof *tensors, by_name);
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

/* Add one file. With an index, `weight_map` must give exactly the file's tensors to `file`. */
static enum tri_status add_file(struct tri_st *st, const char *path, const char *file,
                                const json_t *weight_map)
{
    struct tri_map map;
    TRI_TRY(tri_map_open(path, &map));
    struct file *opened = &st->files[st->num_files++]; /* closed by tri_st_close */
    *opened = (struct file){.map = map, .path = strdup(path)};
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

/* A file name in an index must stay in the folder of the index, and errors in one line. */
static bool is_safe_name(const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F)
            return false;
    return name[0] != '\0' && strchr(name, '/') == NULL && strchr(name, '\\') == NULL &&
           strstr(name, "..") == NULL;
}

/* The different files that the index names, each once, in the order of their appearance.
 * `*seen` is an object with the names as keys. */
static enum tri_status list_shards(const char *index_path, const json_t *weight_map, json_t **out)
{
    json_t *files = json_object();
    if (files == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory for the list of files", index_path);
    enum tri_status status = TRI_OK;
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)weight_map, tensor, value)
    {
        const char *file = json_string_value(value);
        char name[NAME_ROOM], shown[NAME_ROOM];
        tri_st_name_text(tensor, name, sizeof name);
        if (file == NULL || !is_safe_name(file)) {
            status = tri_fail(TRI_FORMAT,
                              "%s: tensor %s is placed in \"%s\", which is not the name of a file "
                              "in the same folder",
                              index_path, name,
                              file == NULL ? "" : tri_st_name_text(file, shown, sizeof shown));
            goto drop_files;
        }
        if (json_object_get(files, file) == NULL && json_object_set(files, file, value) != 0) {
            status = tri_fail(TRI_NOMEM, "%s: no memory for the list of files", index_path);
            goto drop_files;
        }
    }
    *out = files;
    return TRI_OK;

drop_files:
    json_decref(files);
    return status;
}

static enum tri_status add_shards(struct tri_st *st, const char *folder, const char *index_path,
                                  const json_t *weight_map)
{
    json_t *files = NULL;
    TRI_TRY(list_shards(index_path, weight_map, &files));
    enum tri_status status = TRI_OK;
    st->files = calloc(json_object_size(files) + 1, sizeof *st->files);
    if (st->files == NULL) {
        status = tri_fail(TRI_NOMEM, "%s: no memory for the list of files", index_path);
        goto drop_files;
    }
    const char *file;
    json_t *value;
    json_object_foreach(files, file, value)
    {
        char *path = tri_path_join(folder, file);
        status = path == NULL ? tri_fail(TRI_NOMEM, "%s: no memory for a path", index_path)
                              : add_file(st, path, file, weight_map);
        free(path);
        if (status != TRI_OK)
            goto drop_files;
    }
    qsort(st->tensors, (size_t)st->count, sizeof *st->tensors, by_name);

    /* Every tensor of every file is in the index; so is every tensor of the index in its file? */
    json_object_foreach((json_t *)(uintptr_t)weight_map, file, value)
    {
        if (find_in(st->tensors, st->count, file) != NULL)
            continue;
        char name[NAME_ROOM], home[NAME_ROOM];
        status = tri_fail(TRI_FORMAT, "%s: tensor %s is not in %s, where the index places it",
                          index_path, tri_st_name_text(file, name, sizeof name),
                          tri_st_name_text(json_string_value(value), home, sizeof home));
        goto drop_files;
    }

drop_files:
    json_decref(files);
    return status;
}

static enum tri_status open_index(struct tri_st *st, const char *folder, const char *index_path)
{
    json_t *index = NULL;
    TRI_TRY(tri_json_load(index_path, &index));
    const json_t *weight_map = json_object_get(index, "weight_map");
    enum tri_status status =
        json_is_object(weight_map) && json_object_size(weight_map) > 0
            ? add_shards(st, folder, index_path, weight_map)
            : tri_fail(TRI_FORMAT, "%s: \"weight_map\" names no tensors", index_path);
    json_decref(index);
    return status;
}

static enum tri_status open_single(struct tri_st *st, const char *path)
{
    st->files = calloc(1, sizeof *st->files);
    if (st->files == NULL)
        return tri_fail(TRI_NOMEM, "no memory to read %s", path);
    return add_file(st, path, NULL, NULL);
}

static enum tri_status open_folder(struct tri_st *st, const char *folder)
{
    enum tri_status status = TRI_OK;
    char *single = tri_path_join(folder, "model.safetensors");
    char *index = tri_path_join(folder, "model.safetensors.index.json");
    char *pickle = tri_path_join(folder, "pytorch_model.bin");
    if (single == NULL || index == NULL || pickle == NULL)
        status = tri_fail(TRI_NOMEM, "no memory for the paths in %s", folder);
    else if (tri_path_exists(single))
        status = open_single(st, single);
    else if (tri_path_exists(index))
        status = open_index(st, folder, index);
    else if (tri_path_exists(pickle))
        status = tri_fail(TRI_UNSUPPORTED,
                          "%s has weights as pytorch_model.bin only: save them as safetensors with "
                          "Transformers' save_pretrained",
                          folder);
    else
        status = tri_fail(TRI_IO,
                          "%s has no weights: neither model.safetensors nor "
                          "model.safetensors.index.json is there",
                          folder);
    free(single);
    free(index);
    free(pickle);
    return status;
}

/* Those of the folder itself, or of the one that the file lies in. */
static enum tri_status load_sums(struct tri_st *st, const char *path, bool is_folder)
{
    const char *slash = strrchr(path, '/');
    char *folder = is_folder       ? strdup(path)
                   : slash == NULL ? strdup(".")
                                   : strndup(path, (size_t)(slash - path) + 1);
    if (folder == NULL)
        return tri_fail(TRI_NOMEM, "no memory to read %s", path);
    enum tri_status status = tri_sums_load(folder, &st->sums);
    free(folder);
    return status;
}

enum tri_status tri_st_open(const char *path, struct tri_st **out)
{
    struct tri_st *st = calloc(1, sizeof *st);
    if (st == NULL)
        return tri_fail(TRI_NOMEM, "no memory to read %s", path);
    bool is_folder = tri_path_is_folder(path);
    enum tri_status status = load_sums(st, path, is_folder);
    if (status == TRI_OK)
        status = is_folder ? open_folder(st, path) : open_single(st, path);
    if (status != TRI_OK) {
        tri_st_close(st);
        return status;
    }
    *out = st;
    return TRI_OK;
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

enum tri_status tri_st_check(const struct tri_st *st, const struct tri_st_tensor *tensor,
                             size_t offset, size_t bytes)
{
    uintptr_t data = (uintptr_t)tensor->data;
    for (int64_t i = 0; i < st->num_files && st->sums != NULL; i++) {
        const struct file *file = &st->files[i];
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
