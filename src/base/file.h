/* Files: whole reads, maps, and writes that either happen completely or not at all. */
#ifndef TRI_BASE_FILE_H
#define TRI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* A file mapped for reading. Empty files give data == NULL, bytes == 0. The file must not shrink
 * while it is mapped: what is gone raises SIGBUS when touched. */
struct tri_map {
    const unsigned char *data;
    size_t bytes;
};
enum tri_status tri_map_open(const char *path, struct tri_map *out);
void tri_map_close(struct tri_map *map);

/* The whole file as a NUL-terminated string that the caller frees; `bytes` may be NULL.
 * A file over `limit` bytes is TRI_FORMAT. */
enum tri_status tri_file_read(const char *path, size_t limit, char **text, size_t *bytes);

/* A file that appears under its name only when complete: written to "NAME.tmp", synced, renamed,
 * and the folder synced. Any failure removes the temporary file. */
struct tri_writer;
enum tri_status tri_writer_open(const char *path, struct tri_writer **out);
enum tri_status tri_writer_write(struct tri_writer *writer, const void *data, size_t bytes);

/* Put everything written so far on the disk, so that only the rename is left for commit: callers
 * that write several files learn of a full disk before any of them appears. */
enum tri_status tri_writer_sync(struct tri_writer *writer);
enum tri_status tri_writer_commit(struct tri_writer *writer); /* closes in every case */
void tri_writer_abandon(struct tri_writer *writer);           /* NULL is allowed */

/* The same for a small text in one call. */
enum tri_status tri_file_write(const char *path, const void *data, size_t bytes);

/* Copy a file under the same guarantee. */
enum tri_status tri_file_copy(const char *from, const char *to);

/* mkdir -p */
enum tri_status tri_make_folder(const char *path);

/* Give a complete folder its name: one rename, then the folder above is synced. */
enum tri_status tri_rename_folder(const char *from, const char *to);

/* Remove a folder and everything in it; one that is not there is fine. */
enum tri_status tri_remove_folder(const char *path);

bool tri_path_exists(const char *path);
bool tri_path_is_folder(const char *path);

/* "a/b": caller frees. NULL when memory is out. */
char *tri_path_join(const char *folder, const char *name);

/* The path with an ending such as ".lock" behind it: caller frees. NULL when memory is out. */
char *tri_path_append(const char *path, const char *ending);

/* Make write number `nth` from now (1: the next) fail as if the disk were full; 0 turns it off.
 * The environment variable TRIREME_FAIL_WRITE sets it at start. */
void tri_file_fail_at(int64_t nth);

#endif
