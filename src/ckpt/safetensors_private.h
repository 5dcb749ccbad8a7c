/* Mapped files, for those who open folders of them. */
#ifndef TRI_CKPT_SAFETENSORS_PRIVATE_H
#define TRI_CKPT_SAFETENSORS_PRIVATE_H

#include "base/json.h"
#include "ckpt/safetensors.h"
#include "ckpt/sums.h"

struct tri_st_file {
    struct tri_map map;
    char *path;
};

struct tri_st {
    struct tri_st_file *files; /* (num_files) */
    int64_t num_files;
    struct tri_sums *sums;         /* of the folder; NULL: it has none */
    struct tri_st_tensor *tensors; /* (count) sorted by name; the names are owned */
    int64_t count;
};

/* Order of tensors, for qsort and bsearch. */
int tri_st_by_name(const void *a, const void *b);

/* Add one file; st->files has room for it. With an index, `weight_map` must give exactly the file's
 * tensors to `file`. */
enum tri_status tri_st_add_file(struct tri_st *st, const char *path, const char *file,
                                const json_t *weight_map);

#endif
