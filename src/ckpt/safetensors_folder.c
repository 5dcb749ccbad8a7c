/* Opening a file, or the files of a folder and their index. */
#include <stdlib.h>
#include <string.h>

#include "ckpt/safetensors_private.h"

enum { NAME_ROOM = 120 };

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
                              : tri_st_add_file(st, path, file, weight_map);
        free(path);
        if (status != TRI_OK)
            goto drop_files;
    }
    qsort(st->tensors, (size_t)st->count, sizeof *st->tensors, tri_st_by_name);

    /* Every tensor of every file is in the index; so is every tensor of the index in its file? */
    json_object_foreach((json_t *)(uintptr_t)weight_map, file, value)
    {
        if (tri_st_find(st, file) != NULL)
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
    return tri_st_add_file(st, path, NULL, NULL);
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
