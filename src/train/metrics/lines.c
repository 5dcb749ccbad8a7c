#include "train/metrics/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* Copy the lines to keep of `length` bytes from `text` to `out`; a torn last line is dropped. A
 * power cut may have left zero bytes in one of them. */
static size_t keep_lines(const char *text, size_t length, tri_lines_keep *keep, int64_t step,
                         char *out)
{
    size_t bytes = 0;
    const char *end, *last = text + length;
    for (const char *line = text; (end = memchr(line, '\n', (size_t)(last - line))) != NULL;
         line = end + 1) {
        const size_t n = (size_t)(end - line) + 1;
        if (memchr(line, 0, n) == NULL && keep(line, n, line == text, step)) {
            memcpy(out + bytes, line, n);
            bytes += n;
        }
    }
    return bytes;
}

/* Cut the file down; *left is how much stays. */
static enum tri_status cut(const char *path, tri_lines_keep *keep, int64_t step, size_t *left)
{
    char *text = NULL;
    size_t bytes = 0;
    *left = 0;
    if (!tri_path_exists(path))
        return TRI_OK;
    TRI_TRY(tri_file_read(path, (size_t)1 << 30, &text, &bytes));
    char *kept = malloc(bytes + 1);
    if (kept == NULL) {
        free(text);
        return tri_fail(TRI_NOMEM, "no memory to read %s", path);
    }
    *left = keep_lines(text, bytes, keep, step, kept);
    const enum tri_status st = *left == bytes ? TRI_OK : tri_file_write(path, kept, *left);
    free(kept);
    free(text);
    return st;
}

enum tri_status tri_lines_open(const char *folder, const char *name, tri_lines_keep *keep,
                               int64_t step, struct tri_lines *out)
{
    enum tri_status st;
    size_t left;
    char *path = tri_path_join(folder, name);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    TRI_TRY_GOTO(st, cut(path, keep, step, &left), free_path);
    FILE *file = fopen(path, "ae");
    if (file == NULL) {
        st = tri_fail_errno(errno, "%s", path);
        goto free_path;
    }
    *out = (struct tri_lines){.file = file, .path = path, .empty = left == 0};
    return TRI_OK;
free_path:
    free(path);
    return st;
}

void tri_lines_close(struct tri_lines *lines)
{
    fclose(lines->file);
    free(lines->path);
}

enum tri_status tri_lines_add(struct tri_lines *lines, const char *line)
{
    if (fputs(line, lines->file) == EOF || fputc('\n', lines->file) == EOF ||
        fflush(lines->file) != 0)
        return tri_fail_errno(errno, "%s: writing failed, free some space", lines->path);
    return TRI_OK;
}

enum tri_status tri_lines_sync(struct tri_lines *lines)
{
    if (fflush(lines->file) != 0 || fsync(fileno(lines->file)) != 0)
        return tri_fail_errno(errno, "%s", lines->path);
    return TRI_OK;
}
