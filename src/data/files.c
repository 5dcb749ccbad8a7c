#include "data/files.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "data/megatron.h"

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

/* Files that would be nonsense as text, and what to do with them. */
static enum tri_status refuse_known_kinds(const char *path)
{
    static const char *const kinds[][2] = {
        {".json", "write one object a line and call it .jsonl"},
        {".parquet", "convert it to .jsonl"},
        {".arrow", "convert it to .jsonl"},
        {".csv", "convert it to .jsonl"},
        {".bin", "of a Megatron dataset name the .idx file"},
        {".gz", "unpack it"},
        {".zst", "unpack it"},
        {".xz", "unpack it"},
        {".bz2", "unpack it"},
        {".zip", "unpack it"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ends_with(path, kinds[i][0]))
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

static enum tri_data_file_kind kind_of(const char *path)
{
    if (ends_with(path, ".jsonl"))
        return TRI_FILE_LINES;
    return ends_with(path, ".idx") ? TRI_FILE_MEGATRON : TRI_FILE_TEXT;
}

static enum tri_status add_file(struct tri_data_files *files, const char *path,
                                const struct stat *info)
{
    if (!S_ISREG(info->st_mode))
        return tri_fail(TRI_INVALID, "%s is not a regular file: data is read from files", path);
    TRI_TRY(refuse_known_kinds(path));
    if (files->count == files->capacity) {
        const int64_t capacity = files->capacity ? 2 * files->capacity : 16;
        struct tri_data_file *file = realloc(files->file, (size_t)capacity * sizeof *file);
        if (!file)
            return tri_fail(TRI_NOMEM, "no memory for a list of %" PRId64 " files", capacity);
        files->file = file;
        files->capacity = capacity;
    }
    char *copy = strdup(path);
    if (!copy)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    files->file[files->count++] = (struct tri_data_file){
        .path = copy,
        .bytes = (uint64_t)info->st_size,
        .modified = modified(info),
        .kind = kind_of(path),
    };
    struct tri_data_file *file = &files->file[files->count - 1];
    if (file->kind != TRI_FILE_MEGATRON)
        return TRI_OK;
    TRI_TRY(add_tokens_file(path, &file->bytes, &file->modified));
    return open_set(file);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* One entry of a walk; counts the files that are not taken. */
static enum tri_status visit(FTS *walk, FTSENT *entry, struct tri_data_files *files,
                             int64_t *left_out)
{
    if (entry->fts_level > 0 && entry->fts_name[0] == '.') {
        if (entry->fts_info == FTS_D)
            fts_set(walk, entry, FTS_SKIP);
        return TRI_OK;
    }
    switch (entry->fts_info) {
    case FTS_F:
        if (ends_with(entry->fts_path, ".txt") || ends_with(entry->fts_path, ".jsonl") ||
            ends_with(entry->fts_path, ".idx"))
            return add_file(files, entry->fts_path, entry->fts_statp);
        *left_out += !ends_with(entry->fts_path, ".bin");
        return TRI_OK;
    case FTS_DC:
        return tri_fail(TRI_INVALID, "%s leads back to a folder above it: remove the link",
                        entry->fts_path);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return tri_fail_errno(entry->fts_errno, "cannot read %s", entry->fts_path);
    case FTS_SLNONE:
        return tri_fail(TRI_IO, "%s is a link to nothing: remove it", entry->fts_path);
    default: /* folders on the way down and up, and things that are no files */
        return TRI_OK;
    }
}

static enum tri_status add_folder(struct tri_data_files *files, char *path)
{
    char *const roots[] = {path, NULL};
    FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    if (!walk)
        return tri_fail_errno(errno, "cannot read %s", path);
    const int64_t before = files->count;
    int64_t left_out = 0;
    enum tri_status st = TRI_OK;
    errno = 0;
    for (FTSENT *entry; st == TRI_OK && (entry = fts_read(walk)) != NULL; errno = 0)
        st = visit(walk, entry, files, &left_out);
    if (st == TRI_OK && errno != 0)
        st = tri_fail_errno(errno, "cannot read %s", path);
    fts_close(walk);
    TRI_TRY(st);
    if (files->count == before)
        return tri_fail(
            TRI_INVALID,
            "%s holds no .txt, .jsonl or .idx file; name others by a pattern such as %s/*.c", path,
            path);
    if (left_out > 0)
        tri_info("%s: %" PRId64
                 " files are none of .txt, .jsonl and .idx, and not part of the data",
                 path, left_out);
    return TRI_OK;
}

/* The prefix of a Megatron dataset, as its own tools name it. */
static bool is_prefix(const char *path, char *index, size_t room)
{
    const int bytes = snprintf(index, room, "%s.idx", path);
    return bytes > 0 && (size_t)bytes < room && tri_path_exists(index);
}

static enum tri_status add_path(struct tri_data_files *files, char *path)
{
    struct stat info;
    char index[4096];
    if (!tri_path_exists(path) && is_prefix(path, index, sizeof index))
        path = index;
    if (stat(path, &info) != 0)
        return tri_fail_errno(errno, "cannot read %s", path);
    return S_ISDIR(info.st_mode) ? add_folder(files, path) : add_file(files, path, &info);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum tri_status add_pattern(struct tri_data_files *files, const char *pattern)
{
    if (strstr(pattern, "**"))
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: ** is not supported: name the folder (for .txt and .jsonl), or write "
                        "one * for each level",
                        pattern);
    glob_t found = {0};
    const int rc = glob(pattern, GLOB_ERR | GLOB_NOSORT, NULL, &found);
    enum tri_status st = TRI_OK;
    if (rc == GLOB_NOMATCH)
        st = tri_fail(TRI_INVALID, "no file matches %s", pattern);
    else if (rc == GLOB_NOSPACE)
        st = tri_fail(TRI_NOMEM, "no memory for the files of %s", pattern);
    else if (rc != 0)
        st = tri_fail(TRI_IO, "%s: a folder of this pattern cannot be read", pattern);
    else /* by bytes, not by the order of somebody's language */
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_text);
    for (size_t i = 0; st == TRI_OK && i < found.gl_pathc; i++)
        st = add_path(files, found.gl_pathv[i]);
    globfree(&found);
    return st;
}

static enum tri_status add_source(struct tri_data_files *files, char *source)
{
    if (!tri_path_exists(source) && strpbrk(source, "*?["))
        return add_pattern(files, source);
    return add_path(files, source);
}

enum tri_status tri_data_files_open(char *const *sources, int64_t num_sources,
                                    struct tri_data_files *out)
{
    struct tri_data_files files = {0};
    if (num_sources < 1)
        return tri_fail(TRI_INVALID, "there is no data: set data.sources to files or folders");
    for (int64_t i = 0; i < num_sources; i++) {
        const int64_t before = files.count;
        enum tri_status st = add_source(&files, sources[i]);
        for (int64_t f = before; f < files.count; f++)
            files.file[f].source = i;
        if (st == TRI_OK && files.count > UINT32_MAX)
            st = tri_fail(TRI_UNSUPPORTED, "more than 2^32 files");
        if (st != TRI_OK) {
            tri_data_files_close(&files);
            return st;
        }
    }
    *out = files;
    return TRI_OK;
}

void tri_data_files_close(struct tri_data_files *files)
{
    for (int64_t i = 0; i < files->count; i++) {
        if (files->file[i].set)
            tri_megatron_close(files->file[i].set);
        free(files->file[i].set);
        free(files->file[i].path);
    }
    free(files->file);
    memset(files, 0, sizeof *files);
}

enum tri_status tri_data_file_check(const struct tri_data_file *file)
{
    struct stat info;
    if (stat(file->path, &info) != 0)
        return tri_fail_errno(errno, "cannot read %s any more", file->path);
    uint64_t bytes = (uint64_t)info.st_size;
    int64_t when = modified(&info);
    if (file->kind == TRI_FILE_MEGATRON)
        TRI_TRY(add_tokens_file(file->path, &bytes, &when));
    if (bytes != file->bytes || when != file->modified)
        return tri_fail(TRI_INVALID,
                        "%s has changed since training began: start again, or put the old file "
                        "back",
                        file->path);
    return TRI_OK;
}
