/* One file of the data: what is in it, and whether it is still the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "data/files.h"
#include "data/megatron.h"
#include "data/unpack.h"

static bool ends_with(const char *path, const char *ending)
{
    const size_t n = strlen(path);
    const size_t m = strlen(ending);
    return n > m && strcasecmp(path + n - m, ending) == 0;
}

static int64_t modified(const struct stat *info)
{
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* Files that would be nonsense as text, and what to do with them. `name` is the path without the
 * end that tells of compression. */
static enum tri_status refuse_known_kinds(const char *path, const char *name)
{
    static const char *const kinds[][2] = {
        {".parquet", "convert it to .jsonl (python3 -c \"import pandas; pandas.read_parquet('FILE')"
                     ".to_json('FILE.jsonl', orient='records', lines=True)\")"},
        {".arrow", "convert it to .jsonl (Dataset.from_file(FILE).to_json(...) of the Python "
                   "package datasets)"},
        {".csv", "convert it to .jsonl (python3 -c \"import pandas; pandas.read_csv('FILE')"
                 ".to_json('FILE.jsonl', orient='records', lines=True)\")"},
        {".bin", "of a Megatron dataset name the .idx file"},
        {".xz", "unpack it, or compress it as .zst or .gz"},
        {".bz2", "unpack it, or compress it as .zst or .gz"},
        {".zip", "unpack it, or compress it as .zst or .gz"},
        {".tar", "unpack it and name the folder"},
        {".tgz", "unpack it and name the folder"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(name, kinds[i][0]))
            return tri_fail(TRI_UNSUPPORTED, "%s: %s files are not read: %s", path, kinds[i][0],
                            kinds[i][1]);
    return TRI_OK;
}

/* Of a Megatron dataset the .bin file counts as well. */
static enum tri_status add_tokens_file(const char *path, uint64_t *bytes, int64_t *when)
{
    char *name;
    struct stat info;
    TRI_TRY(tri_megatron_tokens_path(path, &name));
    const enum tri_status st =
        stat(name, &info) == 0 ? TRI_OK : tri_fail_errno(errno, "%s needs %s", path, name);
    free(name);
    TRI_TRY(st);
    *bytes += (uint64_t)info.st_size;
    *when = (int64_t)(((uint64_t)*when << 21 | (uint64_t)*when >> 43) ^ (uint64_t)modified(&info));
    return TRI_OK;
}

static enum tri_status open_set(struct tri_data_file *file)
{
    struct tri_megatron *set = malloc(sizeof *set);
    if (!set)
        return tri_fail(TRI_NOMEM, "no memory for a dataset");
    enum tri_status st = tri_megatron_open(file->path, set);
    if (st == TRI_OK)
        file->set = set;
    else
        free(set);
    return st;
}

static enum tri_data_file_kind kind_of(const char *name)
{
    if (ends_with(name, ".jsonl") || ends_with(name, ".ndjson") || ends_with(name, ".json"))
        return TRI_FILE_LINES;
    return ends_with(name, ".idx") ? TRI_FILE_MEGATRON : TRI_FILE_TEXT;
}

/* The path without the end that tells of compression; the caller frees it. */
static char *stem_of(const char *path, enum tri_coding *coding)
{
    size_t stem;
    *coding = tri_coding_of(path, &stem);
    return strndup(path, stem);
}

bool tri_data_file_is_sample(const char *path)
{
    enum tri_coding coding;
    char *name = stem_of(path, &coding);
    const bool is =
        name && (ends_with(name, ".txt") || ends_with(name, ".jsonl") ||
                 ends_with(name, ".ndjson") || (coding == TRI_PLAIN && ends_with(name, ".idx")));
    free(name);
    return is;
}

bool tri_data_file_is_part(const char *path)
{
    return ends_with(path, ".bin");
}

static enum tri_status open_kind(const char *path, const char *name, struct tri_data_file *file)
{
    TRI_TRY(refuse_known_kinds(path, name));
    file->kind = kind_of(name);
    if (file->kind != TRI_FILE_MEGATRON)
        return TRI_OK;
    if (file->coding != TRI_PLAIN)
        return tri_fail(TRI_UNSUPPORTED, "%s: Megatron datasets are mapped as they are: unpack it",
                        path);
    TRI_TRY(add_tokens_file(path, &file->stored_bytes, &file->modified));
    file->bytes = file->stored_bytes;
    return open_set(file);
}

enum tri_status tri_data_file_open(const char *path, const struct stat *info,
                                   struct tri_data_file *out)
{
    if (!S_ISREG(info->st_mode))
        return tri_fail(TRI_INVALID, "%s is not a regular file: data is read from files", path);
    struct tri_data_file file = {
        .path = strdup(path),
        .bytes = (uint64_t)info->st_size,
        .stored_bytes = (uint64_t)info->st_size,
        .modified = modified(info),
        .device = (uint64_t)info->st_dev,
        .inode = (uint64_t)info->st_ino,
    };
    char *name = stem_of(path, &file.coding);
    const enum tri_status st = file.path && name ? open_kind(file.path, name, &file)
                                                 : tri_fail(TRI_NOMEM, "no memory for a path");
    free(name);
    if (st != TRI_OK) {
        tri_data_file_close(&file);
        return st;
    }
    *out = file;
    return TRI_OK;
}

void tri_data_file_close(struct tri_data_file *file)
{
    if (file->set)
        tri_megatron_close(file->set);
    free(file->set);
    free(file->unpacked);
    free(file->path);
    memset(file, 0, sizeof *file);
}

/* A .json file is one list, or lines as in .jsonl. */
static enum tri_status find_list(struct tri_data_file *file)
{
    enum tri_coding coding;
    char first, *name = stem_of(file->path, &coding);
    if (!name)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    const bool json = ends_with(name, ".json");
    free(name);
    if (!json)
        return TRI_OK;
    TRI_TRY(tri_first_byte(file->path, coding, &first));
    file->list = first == '[';
    return TRI_OK;
}

enum tri_status tri_data_file_unpack(struct tri_data_file *file, const char *cache_dir)
{
    char *folder, *copy = NULL;
    struct tri_map map;
    if (file->unpacked)
        return TRI_OK;
    TRI_TRY(find_list(file));
    if (file->coding == TRI_PLAIN && !file->list)
        return TRI_OK;
    TRI_TRY(tri_cache_folder(cache_dir, &folder));
    enum tri_status st = tri_unpack(file->path, file->coding, file->list, folder, &copy);
    free(folder);
    TRI_TRY(st);
    st = tri_copy_mark(copy, &file->mark);
    if (st == TRI_OK)
        st = tri_map_open(copy, &map);
    if (st != TRI_OK) {
        free(copy);
        return st;
    }
    file->bytes = map.bytes;
    file->unpacked = copy;
    tri_map_close(&map);
    return TRI_OK;
}

enum tri_status tri_data_file_map(const struct tri_data_file *file, struct tri_map *out)
{
    return tri_map_open(file->unpacked ? file->unpacked : file->path, out);
}

enum tri_status tri_data_file_check(struct tri_data_file *file)
{
    struct stat info;
    if (stat(file->path, &info) != 0)
        return tri_fail_errno(errno, "cannot read %s any more", file->path);
    uint64_t bytes = (uint64_t)info.st_size;
    int64_t when = modified(&info);
    if (file->kind == TRI_FILE_MEGATRON)
        TRI_TRY(add_tokens_file(file->path, &bytes, &when));
    if (bytes != file->stored_bytes || when != file->modified)
        return tri_fail(TRI_INVALID,
                        "%s has changed since training began: start again, or put the old file "
                        "back",
                        file->path);
    return file->unpacked ? tri_copy_check(file->path, file->unpacked, &file->mark) : TRI_OK;
}
