/* Headers of safetensors files from a stranger. The first four bytes say how much data follows. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/safetensors.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Everything that an accepted header promises to its readers. */
static void check(const struct tri_st_tensor *tensors, int64_t count, size_t data_bytes)
{
    size_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct tri_st_tensor *t = &tensors[i];
        size_t begin = (size_t)(uintptr_t)t->data, bytes = tri_dtype_bytes(t->dtype);
        if (t->num_dims < 0 || t->num_dims > TRI_ST_MAX_DIMS)
            abort();
        for (int d = 0; d < t->num_dims; d++)
            bytes *= (size_t)t->dim[d];
        if (bytes != t->bytes || begin > data_bytes || bytes > data_bytes - begin)
            abort();
        if (i > 0 && strcmp(tensors[i - 1].name, t->name) >= 0)
            abort();
        total += bytes;
    }
    if (total != data_bytes)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint32_t data_bytes = 0;
    if (bytes < sizeof data_bytes)
        return 0;
    memcpy(&data_bytes, data, sizeof data_bytes);
    struct tri_st_tensor *tensors = NULL;
    int64_t count = 0;
    if (tri_st_parse_header("fuzz", (const char *)data + sizeof data_bytes,
                            bytes - sizeof data_bytes, data_bytes, &tensors, &count) == TRI_OK) {
        check(tensors, count, data_bytes);
        tri_st_free_header(tensors, count);
    } else {
        check_error();
    }
    tri_error_clear();
    return 0;
}
