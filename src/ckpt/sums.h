/* Hashes of the files of a checkpoint: taken while they are written, compared while they are read,
 * so that a disk or a copy that changed a bit of them is noticed.
 *
 *   FOLDER/trireme_checksums.json
 *     {"format": 2, "block_bytes": 67108864,
 *      "files": {"model.safetensors": {"bytes": 4048, "blocks": ["94d049bb133111eb"]}, ...},
 *      "hash": "8bb0b2a7d3f1c605"}
 *
 * A file is hashed in blocks (base/fingerprint.h, from TRI_HASH_START on), so that who reads a part
 * of it reads no more than the blocks which that part touches. The last member is tri_sums_hash of
 * those before it, so that damage in here is not laid to a file that is whole; format 1 is without
 * it, and believed. */
#ifndef TRI_CKPT_SUMS_H
#define TRI_CKPT_SUMS_H

#include "base/file.h"

enum { TRI_SUMS_BLOCK = 64 << 20 };

/* The sums of a folder, and of one file in it. Files are known by the last part of their path. */
struct tri_sums;
struct tri_sum;

/* ---- writing ---------------------------------------------------------------------------------
 */

enum tri_status tri_sums_open(struct tri_sums **out);
void tri_sums_close(struct tri_sums *sums); /* NULL is allowed */

/* The bytes of a file, in order. `sums` and what begins may be NULL, which adds nothing; a want of
 * memory is kept for tri_sums_save to tell. */
struct tri_sum *tri_sums_begin(struct tri_sums *sums, const char *path);
void tri_sum_add(struct tri_sum *file, const void *data, size_t bytes);

/* All of a file at once. */
void tri_sums_add(struct tri_sums *sums, const char *path, const void *data, size_t bytes);

/* Write FOLDER/trireme_checksums.json. */
enum tri_status tri_sums_save(struct tri_sums *sums, const char *folder);

/* ---- reading ---------------------------------------------------------------------------------
 */

/* *out = the sums of a folder; NULL if it has none, as those of other programs do not. */
enum tri_status tri_sums_load(const char *folder, struct tri_sums **out);

/* What is in such a file; `path` names it in errors. */
enum tri_status tri_sums_parse(const char *path, const char *text, size_t bytes,
                               struct tri_sums **out);

/* One hash of all names, lengths and hashes: equal sums have the same. */
uint64_t tri_sums_hash(const struct tri_sums *sums);

/* Are bytes [offset, offset + bytes) of a mapped file those that were written? Blocks that were
 * found right are not looked at again. `sums` may be NULL, which finds everything right. */
enum tri_status tri_sums_check(struct tri_sums *sums, const char *path, const struct tri_map *map,
                               size_t offset, size_t bytes);

/* The same for the whole of FOLDER/NAME. */
enum tri_status tri_sums_check_file(struct tri_sums *sums, const char *folder, const char *name);

/* The names of the files, in the order in which they were written; NULL behind the last. */
const char *tri_sums_file(const struct tri_sums *sums, int64_t index);

#endif
