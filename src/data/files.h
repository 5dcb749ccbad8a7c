/* From the sources of a recipe to a list of files, always in the same order.
 *
 * A source is
 *   a file: `.jsonl` (or `.ndjson`) is read line by line, and so is `.json`, which may also be one
 *     list of samples; `.idx` is the index of a Megatron dataset (data/megatron.h; its prefix alone
 *     will do); any other name is one text document;
 *   a folder: walked with everything below it, by name; its .txt, .jsonl and .idx files are taken,
 *     hidden ones (.name) are not;
 *   a pattern of glob(7) such as src/[a-z]*.c: each match is a file or folder as above, by name.
 *
 * All but Megatron datasets may be compressed (.gz, .zst). Kinds that are known not to be text
 * (.parquet, .csv, ...) are refused by name, with the command that converts them. */
#ifndef TRI_DATA_FILES_H
#define TRI_DATA_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/status.h"
#include "data/copy.h"
#include "data/decompress.h"

enum tri_data_file_kind {
    TRI_FILE_TEXT,    /* one document */
    TRI_FILE_LINES,   /* .jsonl, .json */
    TRI_FILE_MEGATRON /* .idx, with a .bin beside it */
};

struct tri_data_file {
    char *path;
    uint64_t bytes;           /* to be read, with those of the .bin file */
    uint64_t stored_bytes;    /* as they lie on the disk: less when they are compressed */
    int64_t modified;         /* nanoseconds since 1970; of two files mixed into one number */
    struct tri_megatron *set; /* owned; NULL: of another kind */
    enum tri_data_file_kind kind;
    enum tri_coding coding;
    bool list; /* one JSON list: lines of the copy are its elements; known when it is unpacked */
    char *unpacked;            /* path of the copy that is read; NULL: the file itself */
    struct tri_copy_mark mark; /* of the copy */
    int64_t source;            /* the one that it was found by */
    uint64_t device, inode;
};

/* One file. Compressed ones cannot be mapped before they are unpacked. */
enum tri_status tri_data_file_open(const char *path, const struct stat *info,
                                   struct tri_data_file *out);
void tri_data_file_close(struct tri_data_file *file);

/* Make the unpacked copy of a compressed file (data/unpack.h), or find it; others stay as they
 * are. `cache_dir` may be NULL. */
enum tri_status tri_data_file_unpack(struct tri_data_file *file, const char *cache_dir);

/* The bytes to be read. The map is the caller's. */
enum tri_status tri_data_file_map(const struct tri_data_file *file, struct tri_map *out);

/* By name: does a folder give this file, or is it part of one (.bin)? */
bool tri_data_file_is_sample(const char *path);
bool tri_data_file_is_part(const char *path);

struct tri_data_files {
    struct tri_data_file *file; /* those of a source together, in the order of the sources */
    int64_t count;
    int64_t capacity;
};

/* At least one file comes out, or an error that names the source. */
enum tri_status tri_data_files_open(char *const *sources, int64_t num_sources,
                                    struct tri_data_files *out);
void tri_data_files_close(struct tri_data_files *files);

/* Is the file still what it was when it was listed, and its copy what was unpacked? If not, the
 * error says so. */
enum tri_status tri_data_file_check(struct tri_data_file *file);

#endif
