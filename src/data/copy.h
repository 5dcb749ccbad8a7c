/* Is an unpacked copy what was unpacked? Beside each lies NAME.sum: its hash and its length.
 *
 * A run that reads a copy for weeks looks at its mark before every read: inode, length and times.
 * Where that is another, the copy is hashed again, since a backup may touch it without changing it.
 */
#ifndef TRI_DATA_COPY_H
#define TRI_DATA_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"

/* The time of change cannot be set by those who set that of modification back. */
struct tri_copy_mark {
    int64_t device, inode, bytes, modified, changed;
};
enum tri_status tri_copy_mark(const char *copy, struct tri_copy_mark *out);

/* Is the copy of `path` still what it was? *mark is moved on where no more than the mark is
 * another.
 */
enum tri_status tri_copy_check(const char *path, const char *copy, struct tri_copy_mark *mark);

/* What belongs into the .sum of a copy, as it is now; and whether that is in its file `sum`. */
enum { TRI_COPY_SUM_BYTES = 48 };
enum tri_status tri_copy_sum(const char *copy, char out[TRI_COPY_SUM_BYTES]);
enum tri_status tri_copy_is_as_made(const char *copy, const char *sum, bool *out);

/* Hash of the contents of a file, with progress if it takes long. */
uint64_t tri_copy_fingerprint(const char *path, const struct tri_map *map);

/* Progress of work on a file: nothing before TRI_COPY_QUIET seconds have passed. */
#define TRI_COPY_QUIET 2.0
void tri_copy_show(const char *doing, const char *path, double begin, size_t done, size_t bytes);

#endif
