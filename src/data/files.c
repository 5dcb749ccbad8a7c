#include "data/files.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

static enum tri_status add_file(struct tri_data_files *files, const char *path,
                                const struct stat *info)
{
    if (files->count == files->capacity) {
        const int64_t capacity = files->capacity ? 2 * files->capacity : 16;
        struct tri_data_file *file = realloc(files->file, (size_t)capacity * sizeof *file);
        if (!file)
            return tri_fail(TRI_NOMEM, "no memory for a list of %" PRId64 " files", capacity);
        files->file = file;
        files->capacity = capacity;
    }
    TRI_TRY(tri_data_file_open(path, info, &files->file[files->count]));
    files->count++;
    return TRI_OK;
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
        if (tri_data_file_is_sample(entry->fts_path))
            return add_file(files, entry->fts_path, entry->fts_statp);
        *left_out += !tri_data_file_is_part(entry->fts_path);
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
        tri_info("%s: %" PRId64 " file%s none of .txt, .jsonl and .idx, and not part of the data",
                 path, left_out, left_out == 1 ? " is" : "s are");
    return TRI_OK;
}

/* The prefix of a Megatron dataset, as its own tools name it. */
static bool is_prefix(const char *path, char *index, size_t room)
{
    const int bytes = snprintf(index, room, "%s.idx", path);
    return bytes > 0 && (size_t)bytes < room && tri_path_exists(index);
}

/* OWNER/NAME, as data sets are called on the hub. */
static bool is_hub_name(const char *path)
{
    const char *slash = strchr(path, '/');
    return slash && slash > path && path[0] != '.' && slash[1] != '\0' && !strchr(slash + 1, '/') &&
           !strchr(slash + 1, '.');
}

/* Which key is meant, and from where. */
static void name_key(const char *path)
{
    char here[4096];
    if (path[0] == '/' || !getcwd(here, sizeof here))
        tri_error_prefix("data.sources or data.eval_sources");
    else
        tri_error_prefix("data.sources or data.eval_sources, looked up in %.300s", here);
}

static enum tri_status fail_missing(const char *path)
{
    const enum tri_status st = tri_fail_errno(errno, "cannot read %s", path);
    name_key(path);
    return st;
}

static enum tri_status add_path(struct tri_data_files *files, char *path)
{
    struct stat info;
    char index[4096];
    if (!tri_path_exists(path) && is_prefix(path, index, sizeof index))
        path = index;
    if (stat(path, &info) != 0 && errno == ENOENT && is_hub_name(path))
        return tri_fail(
            TRI_IO,
            "cannot read %s: it is no file or folder here, and data sets of the hub are "
            "not downloaded: run hf download %s --repo-type dataset --local-dir data "
            "and name its files (docs/data.md converts Parquet)",
            path, path);
    if (stat(path, &info) != 0)
        return fail_missing(path);
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
    if (rc != 0)
        name_key(pattern);
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

static int by_inode(const void *a, const void *b)
{
    const struct tri_data_file *x = *(const struct tri_data_file *const *)a;
    const struct tri_data_file *y = *(const struct tri_data_file *const *)b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->inode != y->inode)
        return x->inode < y->inode ? -1 : 1;
    return (x > y) - (x < y);
}

/* A file that two sources give, or two links, counts twice in every epoch: that may be meant. */
static enum tri_status warn_of_repeats(const struct tri_data_files *files)
{
    int64_t repeats = 0;
    const struct tri_data_file *first[2] = {NULL, NULL};
    const struct tri_data_file **sorted = malloc((size_t)files->count * sizeof *sorted);
    if (!sorted)
        return tri_fail(TRI_NOMEM, "no memory for a list of %" PRId64 " files", files->count);
    for (int64_t i = 0; i < files->count; i++)
        sorted[i] = &files->file[i];
    qsort(sorted, (size_t)files->count, sizeof *sorted, by_inode);
    for (int64_t i = 1; i < files->count; i++) {
        const struct tri_data_file *a = sorted[i - 1], *b = sorted[i];
        if (a->device != b->device || a->inode != b->inode)
            continue;
        if (repeats++ == 0 || b < first[1]) {
            first[0] = a;
            first[1] = b;
        }
    }
    free(sorted);
    if (repeats == 0)
        return TRI_OK;
    const bool alike = strcmp(first[0]->path, first[1]->path) == 0;
    tri_warn("%s%s%s%s is in the data more than once, and so in every epoch (%" PRId64
             " repeat%s in all): name it once, or use data.weights",
             first[0]->path, alike ? "" : " (or ", alike ? "" : first[1]->path, alike ? "" : ")",
             repeats, tri_plural(repeats));
    return TRI_OK;
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
    const enum tri_status st = warn_of_repeats(&files);
    if (st != TRI_OK) {
        tri_data_files_close(&files);
        return st;
    }
    *out = files;
    return TRI_OK;
}

void tri_data_files_close(struct tri_data_files *files)
{
    for (int64_t i = 0; i < files->count; i++)
        tri_data_file_close(&files->file[i]);
    free(files->file);
    memset(files, 0, sizeof *files);
}
