/* Random weights, drawn by all threads. */
#include <stdlib.h>

#include "base/minmax.h"
#include "base/rng.h"
#include "base/threads.h"
#include "train/trainer.h"

/* Elements that are drawn between two copies into the weights, as many as a piece of a file that is
 * loaded has; and those that a thread draws at a time. */
enum { BLOCK = 1 << 20, SLICE = 1 << 14 };

static bool is_norm_weight(enum tri_role role)
{
    return role == TRI_NORM1_W || role == TRI_NORM2_W || role == TRI_FINAL_NORM_W ||
           role == TRI_Q_NORM || role == TRI_K_NORM;
}

/* Elements [from, from + count) of a parameter. */
static void draw_elements(const struct tri_model *model, int p, uint64_t seed, int64_t from,
                          int64_t count, float *out)
{
    const struct tri_param *param = &model->params[p];
    const double deviation = model->arch.init_range;
    const float constant = is_norm_weight(param->role) ? 1 : 0;
    if (param->num_dims == 2)
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)(deviation * tri_rng_normal(seed, (uint64_t)p, (uint64_t)(from + i)));
    else
        for (int64_t i = 0; i < count; i++)
            out[i] = constant;
}

/* Those of the rows [row, row + rows) that this rank holds, to their places in `block`. */
static void draw_rows(struct tri_trainer *t, const struct tri_flat *flat, int p, uint64_t seed,
                      int64_t row, int64_t rows, float *block)
{
    const int64_t width = tri_param_width(&t->model->params[p]);
    const int64_t at_once = tri_max(SLICE / width, 1);
    const int64_t slices = (rows + at_once - 1) / at_once;
    const int threads = slices > 1 ? tri_threads_wanted(t->threads) : 1;
    (void)threads; /* where there is no OpenMP */
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t s = 0; s < slices; s++) {
        const int64_t first = s * at_once, count = tri_min(rows - first, at_once);
        if (tri_zero_holds_rows(flat->zero, &flat->buffer, p, row + first, count))
            draw_elements(t->model, p, seed, (row + first) * width, count * width,
                          block + first * width);
    }
}

static enum tri_status draw_param(struct tri_trainer *t, struct tri_flat *flat, int p,
                                  uint64_t seed, float *block, struct tri_job *job)
{
    const struct tri_param *param = &t->model->params[p];
    const int64_t width = tri_param_width(param), at_once = BLOCK / width;
    if (at_once == 0)
        return tri_fail(TRI_UNSUPPORTED, "a parameter with rows of %lld elements",
                        (long long)width);
    for (int64_t row = 0; row < param->dim[0]; row += at_once) {
        const int64_t rows = tri_min(param->dim[0] - row, at_once);
        if (tri_zero_holds_rows(flat->zero, &flat->buffer, p, row, rows)) {
            draw_rows(t, flat, p, seed, row, rows, block);
            TRI_TRY(tri_flat_sink(flat, p, row, rows, block));
        }
        tri_job_add(job, (double)(rows * width));
    }
    return TRI_OK;
}

enum tri_status tri_trainer_init(struct tri_trainer *t, uint64_t seed, struct tri_job *job)
{
    struct tri_flat flat = tri_flat_weights(t);
    enum tri_status st = TRI_OK;
    float *block = calloc(BLOCK, sizeof *block);
    if (block == NULL)
        return tri_fail(TRI_NOMEM, "no memory to draw weights");
    tri_job_begin(job, (double)t->model->num_weights, "drawing weights");
    for (int p = 0; p < t->model->num_params && st == TRI_OK; p++)
        st = draw_param(t, &flat, p, seed, block, job);
    tri_job_end(job);
    free(block);
    return st != TRI_OK ? st : tri_trainer_weights_loaded(t);
}
