/* Compressed files and JSON lists: unpacked once, into a folder where every run finds them again.
 *
 * Samples are read in any order, which a compressed file does not allow. So its contents go to
 * FOLDER/HASH-NAME, where HASH is that of the compressed contents: the same file is never unpacked
 * twice, whatever it is called and wherever it lies, and a changed one is never taken for the old.
 * The copy appears when it is complete, with NAME.sum beside it: a hash and the length of the copy,
 * which are compared whenever it is opened; one that differs is unpacked again. Processes that want
 * the same one wait for the first of them. Nothing here is ever removed: the folder may be emptied
 * when no run is on. */
#ifndef TRI_DATA_UNPACK_H
#define TRI_DATA_UNPACK_H

#include <stdbool.h>

#include "data/decompress.h"

/* Where copies go when a recipe names no folder (data.cache_dir): $XDG_CACHE_HOME/trireme, or
 * ~/.cache/trireme. The caller frees it. */
enum tri_status tri_cache_folder(const char *choice, char **out);

/* For writers into that folder: an error that tells to choose another output_dir names
 * data.cache_dir instead. Returns the status of the error. */
enum tri_status tri_cache_folder_failed(enum tri_status status);

/* The path of the unpacked copy of a file; the caller frees it. With `list` the contents are one
 * JSON list, and the copy has a line for each element. */
enum tri_status tri_unpack(const char *path, enum tri_coding coding, bool list, const char *folder,
                           char **out);

/* The first byte of the contents that is not white space; 0 if there is none. */
enum tri_status tri_first_byte(const char *path, enum tri_coding coding, char *out);

#endif
