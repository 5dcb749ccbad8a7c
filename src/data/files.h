/* From the sources of a recipe to a list of files, always in the same order.
 *
 * A source is
 *   a file: `.jsonl` is read line by line, `.idx` is the index of a Megatron dataset
 *     (data/megatron.h; its prefix alone will do), any other name is one text document;
 *   a folder: walked with everything below it, by name; its .txt, .jsonl and .idx files are taken,
 *     hidden ones (.name) are not;
 *   a pattern of glob(7) such as src/[a-z]*.c: each match is a file or folder as above, by name.
 * Kinds that are known not to be text (.parquet, .json, .gz, ...) are refused by name. */
#ifndef TRI_DATA_FILES_H
#define TRI_DATA_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum tri_data_file_kind {
    TRI_FILE_TEXT,    /* one document */
    TRI_FILE_LINES,   /* .jsonl */
    TRI_FILE_MEGATRON /* .idx, with a .bin beside it */
};

struct tri_data_file {
    char *path;
    uint64_t bytes;           /* with those of the .bin file */
    int64_t modified;         /* nanoseconds since 1970; of two files mixed into one number */
    struct tri_megatron *set; /* owned; NULL: of another kind */
    enum tri_data_file_kind kind;
    int64_t source; /* the one that it was found by */
};

struct tri_data_files {
    struct tri_data_file *file; /* those of a source together, in the order of the sources */
    int64_t count;
    int64_t capacity;
};

/* At least one file comes out, or an error that names the source. */
enum tri_status tri_data_files_open(char *const *sources, int64_t num_sources,
                                    struct tri_data_files *out);
void tri_data_files_close(struct tri_data_files *files);

/* Is the file still what it was when it was listed? If not, the error says so. */
enum tri_status tri_data_file_check(const struct tri_data_file *file);

#endif
