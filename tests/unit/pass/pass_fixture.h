/* A step's gradients on packed documents, and how two steps compare. */
#ifndef TESTS_UNIT_PASS_PASS_FIXTURE_H
#define TESTS_UNIT_PASS_PASS_FIXTURE_H

#include "unit/tiny_model.h"

enum { NUM_DOCS = 4 };
static const int64_t lengths[NUM_DOCS] = {37, 5, 41, 13};
enum { TOKENS = 37 + 5 + 41 + 13 };

/* What a step computes. */
struct result {
    double loss, norm;
    double *grads; /* (num_elements) */
};

static inline struct result run_batches(const char *config, const struct tiny_way *way,
                                        const struct tri_batch *batches, int64_t count)
{
    struct tiny tiny = tiny_open(config, way);
    struct tri_step_stats stats;
    if (tri_train_gradients(tiny.trainer, batches, count, &stats) != TRI_OK)
        fail_msg("%s", tri_error_text());
    struct result result = {.loss = stats.loss,
                            .norm = stats.grad_norm,
                            .grads = tiny_copy(tiny.trainer, tiny.trainer->zero->grads)};
    tiny_close(&tiny);
    return result;
}

/* Distance of a parameter's gradient from another, relative to its norm, or to a thousandth of all
 * gradients' where a parameter has next to none. */
static double distance(const struct tri_model *model, int p, const struct result *got,
                       const struct result *want)
{
    const struct tri_param *param = &model->params[p];
    int64_t n = param->dim[0] * (param->num_dims == 2 ? param->dim[1] : 1);
    double difference = 0, norm = 0;
    for (int64_t i = param->offset; i < param->offset + n; i++) {
        double d = got->grads[i] - want->grads[i];
        difference += d * d;
        norm += want->grads[i] * want->grads[i];
    }
    return sqrt(difference) / fmax(sqrt(norm), 1e-3 * want->norm);
}

static inline void assert_close(const struct tiny_model *m, const char *what,
                                const struct result *got, const struct result *want, double bound)
{
    struct tri_model *model = tiny_parse(m->config);
    if (!(fabs(got->loss - want->loss) <= bound * want->loss))
        fail_msg("%s: %s: loss %.17g, not %.17g", m->name, what, got->loss, want->loss);
    for (int p = 0; p < model->num_params; p++) {
        double d = distance(model, p, got, want);
        if (!(d <= bound))
            fail_msg("%s: %s: gradient of parameter %d is off by %.3g, bound %.3g", m->name, what,
                     p, d, bound);
    }
    tri_model_close(model);
}

static inline void assert_same_bits(const struct tiny_model *m, const char *what,
                                    const struct result *got, const struct result *want)
{
    struct tri_model *model = tiny_parse(m->config);
    if (got->loss != want->loss)
        fail_msg("%s: %s: loss %.17g, not %.17g", m->name, what, got->loss, want->loss);
    for (int64_t i = 0; i < model->num_elements; i++)
        if (got->grads[i] != want->grads[i])
            fail_msg("%s: %s: gradient element %lld is %.17g, not %.17g", m->name, what,
                     (long long)i, got->grads[i], want->grads[i]);
    tri_model_close(model);
}

/* loss_slice_gb for `rows` rows of logits; half a row more than that many bytes need. */
static inline double slice_gb(int64_t rows, bool exact)
{
    return ((double)rows + 0.5) * TINY_VOCAB * (exact ? 8 : 4) / 0x1p30;
}

/* Leave only the labels of tokens [begin, end). */
static inline void train_only(struct tri_batch *batch, int64_t begin, int64_t end)
{
    for (int64_t t = 0; t < batch->num_tokens; t++)
        if (t < begin || t >= end)
            batch->labels[t] = TRI_IGNORE_LABEL;
    assert_int_equal(tri_batch_finish_shifted(batch), TRI_OK);
    assert_true(batch->num_trained > 0);
}

#endif
