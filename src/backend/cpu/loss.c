/* Cross entropy over rows of logits. */
#include <string.h>

#include "backend/cpu/stream.h"
#include "base/minmax.h"

enum { BLOCK_ROWS = 256 };

/* Threads write the losses of a block of rows, which are then summed in row order: the bits do not
 * depend on the number of threads. */
static enum tri_status cross_entropy(struct tri_stream *s, bool backward, double scale,
                                     double *loss_sum, struct tri_view logits,
                                     const int32_t *labels)
{
    if (logits.dtype != TRI_F32)
        return s->cpu->reference.cross_entropy(s, backward, scale, loss_sum, logits, labels);
    const int64_t rows = logits.dim[0];
    const int64_t cols = logits.dim[1];
    float *data = logits.data;
    double loss[BLOCK_ROWS];
    double total = 0.0;
    for (int64_t first = 0; first < rows; first += BLOCK_ROWS) {
        const int64_t count = tri_min(rows - first, BLOCK_ROWS);
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, 4 * count * cols)) schedule(static)
        for (int64_t i = 0; i < count; i++) {
            float *row = data + (first + i) * logits.stride[0];
            int32_t label = labels[first + i];
            loss[i] = 0.0;
            if (label >= 0)
                loss[i] = s->cpu->simd->cross_entropy(backward, (float)scale, cols, row, label);
            else if (backward)
                memset(row, 0, (size_t)cols * sizeof *row);
        }
        for (int64_t i = 0; i < count; i++)
            total += loss[i];
    }
    *loss_sum += total;
    return TRI_OK;
}

void tri_cpu_fast_loss(struct tri_ops *ops)
{
    ops->cross_entropy = cross_entropy;
}
