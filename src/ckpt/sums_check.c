/* Reading the hashes of a folder, and comparing its files with them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "ckpt/sums_private.h"

static bool read_hash(const json_t *value, uint64_t *out)
{
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != TRI_SUMS_TEXT - 1 ||
        strspn(text, "0123456789abcdef") != TRI_SUMS_TEXT - 1)
        return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

static enum tri_status damaged(const char *path)
{
    return tri_fail(TRI_FORMAT,
                    "%s: damaged, or of another version: remove it to do without its hashes", path);
}

static enum tri_status read_sum(struct tri_sums *sums, const char *path, const char *name,
                                const json_t *entry)
{
    const json_t *bytes = json_object_get(entry, "bytes");
    const json_t *blocks = json_object_get(entry, "blocks");
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0 || !json_is_array(blocks) ||
        tri_sum_blocks((uint64_t)json_integer_value(bytes)) != (int64_t)json_array_size(blocks))
        return damaged(path);
    struct tri_sum *file = tri_sums_begin(sums, name);
    size_t count = json_array_size(blocks);
    if (file == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", path);
    file->bytes = (uint64_t)json_integer_value(bytes);
    file->block = calloc(count + 1, sizeof *file->block);
    file->right = calloc(count + 1, sizeof *file->right);
    if (file->block == NULL || file->right == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", path);
    for (size_t b = 0; b < count; b++)
        if (!read_hash(json_array_get(blocks, b), &file->block[b]))
            return damaged(path);
    file->num_blocks = (int64_t)count;
    return TRI_OK;
}

static enum tri_status read_sums(struct tri_sums *sums, const char *path, const json_t *root)
{
    const json_t *files = json_object_get(root, "files");
    const json_int_t format = json_integer_value(json_object_get(root, "format"));
    const char *name;
    json_t *entry;
    uint64_t hash;
    if (format < 1 || format > 2 ||
        json_integer_value(json_object_get(root, "block_bytes")) != TRI_SUMS_BLOCK ||
        !json_is_object(files))
        return damaged(path);
    json_object_foreach((json_t *)(uintptr_t)files, name, entry)
    {
        TRI_TRY(read_sum(sums, path, name, entry));
    }
    if (format == 1)
        return TRI_OK;
    if (!read_hash(json_object_get(root, "hash"), &hash) || hash != tri_sums_hash(sums))
        return tri_fail(TRI_FORMAT,
                        "%s is damaged: by its own hash it does not hold what was saved: copy it "
                        "again, or remove it to do without its hashes",
                        path);
    return TRI_OK;
}

enum tri_status tri_sums_parse(const char *path, const char *text, size_t bytes,
                               struct tri_sums **out)
{
    json_t *root = NULL;
    struct tri_sums *sums = NULL;
    TRI_TRY(tri_json_parse(path, text, bytes, &root));
    enum tri_status st = tri_sums_open(&sums);
    if (st == TRI_OK)
        st = read_sums(sums, path, root);
    json_decref(root);
    if (st != TRI_OK) {
        tri_sums_close(sums);
        return st;
    }
    *out = sums;
    return TRI_OK;
}

enum tri_status tri_sums_load(const char *folder, struct tri_sums **out)
{
    enum { MOST_BYTES = 64 << 20 }; /* hashes of 150 TiB */
    char *text = NULL;
    size_t bytes = 0;
    enum tri_status st = TRI_OK;
    struct tri_sums *sums = NULL;
    char *path = tri_path_join(folder, TRI_SUMS_FILE);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    if (tri_path_exists(path)) {
        st = tri_file_read(path, MOST_BYTES, &text, &bytes);
        if (st == TRI_OK)
            st = tri_sums_parse(path, text, bytes, &sums);
    }
    free(text);
    free(path);
    if (st == TRI_OK)
        *out = sums;
    return st;
}

uint64_t tri_sums_hash(const struct tri_sums *sums)
{
    uint64_t hash = TRI_HASH_START;
    for (int64_t i = 0; i < sums->count; i++) {
        const struct tri_sum *file = sums->file[i];
        hash = tri_hash_bytes(hash, file->name, strlen(file->name));
        hash = tri_hash_word(hash, file->bytes);
        for (int64_t b = 0; b < file->num_blocks; b++)
            hash = tri_hash_word(hash, file->block[b]);
    }
    return hash;
}

/* ---- comparing -------------------------------------------------------------------------------
 */

static enum tri_status differs(const char *path, const char *what)
{
    return tri_fail(TRI_FORMAT,
                    "%s %s: copy the file again, or remove %s beside it if that was meant", path,
                    what, TRI_SUMS_FILE);
}

static struct tri_sum *find(const struct tri_sums *sums, const char *path)
{
    for (int64_t i = 0; i < sums->count; i++)
        if (strcmp(sums->file[i]->name, tri_sum_name(path)) == 0)
            return sums->file[i];
    return NULL;
}

enum tri_status tri_sums_check(struct tri_sums *sums, const char *path, const struct tri_map *map,
                               size_t offset, size_t bytes)
{
    char what[160];
    if (sums == NULL)
        return TRI_OK;
    struct tri_sum *file = find(sums, path);
    if (file == NULL)
        return differs(path, "was not there when the folder was saved");
    if (map->bytes != file->bytes) {
        snprintf(what, sizeof what, "has %zu byte%s and had %" PRIu64 " when it was saved",
                 map->bytes, tri_plural((int64_t)map->bytes), file->bytes);
        return differs(path, what);
    }
    size_t end = bytes > 0 ? offset + bytes : 0;
    for (size_t begin = offset - offset % TRI_SUMS_BLOCK; begin < end; begin += TRI_SUMS_BLOCK) {
        size_t left = map->bytes - begin, b = begin / TRI_SUMS_BLOCK;
        size_t size = left < TRI_SUMS_BLOCK ? left : TRI_SUMS_BLOCK;
        if (file->right[b])
            continue;
        if (tri_fingerprint(TRI_HASH_START, map->data + begin, size) != file->block[b]) {
            snprintf(what, sizeof what,
                     "is damaged: bytes %zu to %zu are not those that were saved", begin,
                     begin + size - 1);
            return differs(path, what);
        }
        file->right[b] = true;
    }
    return TRI_OK;
}

const char *tri_sums_file(const struct tri_sums *sums, int64_t index)
{
    return index < sums->count ? sums->file[index]->name : NULL;
}

enum tri_status tri_sums_check_file(struct tri_sums *sums, const char *folder, const char *name)
{
    struct tri_map map;
    if (sums == NULL)
        return TRI_OK;
    char *path = tri_path_join(folder, name);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    enum tri_status st = tri_map_open(path, &map);
    if (st == TRI_OK) {
        st = tri_sums_check(sums, path, &map, 0, map.bytes);
        tri_map_close(&map);
    }
    free(path);
    return st;
}
