/* The safetensors format.
 *
 *   u64 little-endian    n, bytes of the header, at most 100 MB and never past the end of the file
 *   n bytes              a JSON object in UTF-8 that starts with "{", may be padded with spaces at
 *                        its end, and names no tensor twice:
 *                        {"NAME": {"dtype": "F32", "shape": [d0, d1], "data_offsets": [b, e]},
 *                         "__metadata__": {"key": "text"}}
 *   the rest             data; offsets count from here, e - b equals the bytes of dtype and shape,
 *                        ranges do not overlap and leave no gap, and the last ends the file
 *
 * A folder may hold one file, model.safetensors, or shards named by model.safetensors.index.json.
 * As in Transformers the single file comes first when both are there.
 *
 * BOOL is read as TRI_U8. The formats of other dtypes (I8, F8_E4M3, ...) are refused by name.
 */
#ifndef TRI_CKPT_SAFETENSORS_H
#define TRI_CKPT_SAFETENSORS_H

#include "base/file.h"
#include "ckpt/sums.h"
#include "tensor/view.h"

enum { TRI_ST_MAX_DIMS = 8 };

struct tri_st_tensor {
    const char *name;
    enum tri_dtype dtype;
    int num_dims; /* 0 for a scalar */
    int64_t dim[TRI_ST_MAX_DIMS];
    const void *data; /* inside the mapped file; files of old writers may lack alignment */
    size_t bytes;
};

/* One file or a sharded folder, mapped; tensors are sorted by name. */
struct tri_st;

/* `path` is a .safetensors file, or a folder that holds model.safetensors or an index. Where the
 * folder has hashes of its files (ckpt/sums.h), headers are compared with them. */
enum tri_status tri_st_open(const char *path, struct tri_st **out);
void tri_st_close(struct tri_st *st);
int64_t tri_st_count(const struct tri_st *st);
const struct tri_st_tensor *tri_st_at(const struct tri_st *st, int64_t i);
/* NULL if there is none. */
const struct tri_st_tensor *tri_st_find(const struct tri_st *st, const char *name);

/* A hash of which files these are: devices, inodes, lengths and times. On one machine equal hashes
 * mean the same files. */
enum tri_status tri_st_place(const struct tri_st *st, uint64_t *out);

/* Compare bytes [offset, offset + bytes) of a tensor with the hashes of the folder, if it has any:
 * to be called before they are read. */
enum tri_status tri_st_check(const struct tri_st *st, const struct tri_st_tensor *tensor,
                             size_t offset, size_t bytes);

/* Let the pages of a tensor go from this process's memory: touching them reads the file again. */
void tri_st_forget(const struct tri_st_tensor *tensor);

/* Write "[2, 3]" into `text`, cut short if it does not fit. Returns text. */
char *tri_st_shape_text(int num_dims, const int64_t *dim, char *text, size_t room);

/* Write a name from a file into `text` as one printable line, cut in the middle if it is longer
 * than the room. Returns text. */
char *tri_st_name_text(const char *name, char *text, size_t room);

/* Validate a header (without the 8 length bytes) against `data_bytes` of data. For the fuzzer too.
 * On success *out is an array of *count tensors sorted by name, freed by tri_st_free_header; their
 * data pointers are offsets from NULL. */
enum tri_status tri_st_parse_header(const char *what, const char *text, size_t bytes,
                                    size_t data_bytes, struct tri_st_tensor **out, int64_t *count);
void tri_st_free_header(struct tri_st_tensor *tensors, int64_t count);

/* Writing: declare all tensors first (the order is kept), then append each one's data in that
 * order, in as many pieces as you like. Committed files carry metadata {"format": "pt"}. Data
 * starts at a multiple of 8 bytes; tensors stay aligned when wider dtypes are declared first. Sync
 * and commit need all bytes to be there; see tri_writer_sync. With `sums` (or NULL)
 * hashes of what is written are taken. */
struct tri_st_writer;
struct tri_st_decl {
    const char *name;
    enum tri_dtype dtype;
    int num_dims;
    int64_t dim[TRI_ST_MAX_DIMS];
};
enum tri_status tri_st_writer_open(const char *path, const struct tri_st_decl *decl, int64_t count,
                                   struct tri_st_writer **out);
enum tri_status tri_st_writer_open_summed(const char *path, const struct tri_st_decl *decl,
                                          int64_t count, struct tri_sums *sums,
                                          struct tri_st_writer **out);
enum tri_status tri_st_writer_append(struct tri_st_writer *writer, const void *data, size_t bytes);
enum tri_status tri_st_writer_sync(struct tri_st_writer *writer);
enum tri_status tri_st_writer_commit(struct tri_st_writer *writer); /* closes in every case */
void tri_st_writer_abandon(struct tri_st_writer *writer);           /* NULL is allowed */

#endif
