#include "unit/tiny_model.h"

/* Fixed gradients, written where a backward would have added them. */
static double made_up(int64_t i, int step)
{
    return 0.3 * tri_rng_normal(5, (uint64_t)step, (uint64_t)i);
}

static void put_gradients(struct tri_trainer *t, int step)
{
    for (int p = 0; p < t->model->num_params; p++) {
        const struct tri_param *param = &t->model->params[p];
        int64_t n = param->dim[0] * (param->num_dims == 2 ? param->dim[1] : 1);
        for (int64_t i = param->offset; i < param->offset + n; i++) {
            if (t->stat == TRI_F64)
                ((double *)t->zero->grads)[i] = made_up(i, step);
            else
                ((float *)t->zero->grads)[i] = (float)made_up(i, step);
        }
    }
}

/* AdamW (Loshchilov & Hutter 2019) in plain doubles on one parameter. */
struct plain {
    double p, m, v;
};

static void plain_step(struct plain *x, double grad, double lr, double decay, int step)
{
    const struct tri_optim_options o = tiny_optimizer();
    x->m = o.beta1 * x->m + (1 - o.beta1) * grad;
    x->v = o.beta2 * x->v + (1 - o.beta2) * grad * grad;
    double m_hat = x->m / (1 - pow(o.beta1, step));
    double v_hat = x->v / (1 - pow(o.beta2, step));
    x->p -= lr * decay * x->p;
    x->p -= lr * m_hat / (sqrt(v_hat) + o.eps);
}

/* Three updates with changing rates and clipping factors. float32 rounds each of the about ten
 * operations of a step by 2^-24 of numbers up to about 1; the step itself is lr * O(1). */
static void assert_adamw(const struct tiny_model *m, bool exact)
{
    static const double rates[] = {1e-2, 5e-3, 2e-2}, scales[] = {1, 0.125, 0.7};
    const double bound = exact ? 1e-14 : 30 * 0x1p-24;
    struct tiny_way way = tiny_way(exact);
    struct tiny tiny = tiny_open(m->config, &way);
    struct tri_trainer *t = tiny.trainer;
    double *start = tiny_copy(t, t->zero->weights);
    for (int step = 1; step <= 3; step++) {
        put_gradients(t, step);
        assert_int_equal(tri_optimizer_update(&t->optimizer, rates[step - 1], scales[step - 1]),
                         TRI_OK);
        assert_int_equal(t->optimizer.step, step);
    }
    bool seen[2] = {false, false};
    for (int p = 0; p < t->model->num_params; p++) {
        const struct tri_param *param = &t->model->params[p];
        int64_t n = param->dim[0] * (param->num_dims == 2 ? param->dim[1] : 1);
        seen[param->num_dims - 1] = true;
        for (int64_t i = param->offset; i < param->offset + n; i++) {
            struct plain x = {.p = start[i]};
            for (int step = 1; step <= 3; step++)
                plain_step(&x, made_up(i, step) * scales[step - 1], rates[step - 1],
                           param->num_dims >= 2 ? 0.1 : 0.0, step);
            double size = fmax(1.0, fabs(x.p));
            if (!(fabs(tiny_at(t, t->zero->weights, i) - x.p) <= bound * size) ||
                !(fabs(tiny_at(t, t->optimizer.m, i) - x.m) <= bound) ||
                !(fabs(tiny_at(t, t->optimizer.v, i) - x.v) <= bound))
                fail_msg("%s: parameter %d, element %lld: %.17g, not %.17g", m->name, p,
                         (long long)i, tiny_at(t, t->zero->weights, i), x.p);
        }
    }
    assert_true(seen[0] && seen[1]); /* both decay groups were there */
    free(start);
    tiny_close(&tiny);
}

static void adamw_is_a_plain_loop(void **state)
{
    (void)state;
    for (int i = 0; i < NUM_TINY_MODELS; i++) {
        assert_adamw(&tiny_models[i], true);
        assert_adamw(&tiny_models[i], false);
    }
}

/* Elements between parameters are in no gradient and stay zero. */
static void padding_stays_zero(void **state)
{
    (void)state;
    struct tiny_way way = tiny_way(false);
    struct tiny tiny = tiny_open(tiny_models[4].config, &way);
    struct tri_trainer *t = tiny.trainer;
    char *used = calloc((size_t)t->model->num_elements, 1);
    assert_non_null(used);
    for (int p = 0; p < t->model->num_params; p++) {
        const struct tri_param *param = &t->model->params[p];
        memset(used + param->offset, 1,
               (size_t)(param->dim[0] * (param->num_dims == 2 ? param->dim[1] : 1)));
    }
    for (int step = 1; step <= 3; step++) {
        put_gradients(t, step);
        assert_int_equal(tri_optimizer_update(&t->optimizer, 1e-2, 1), TRI_OK);
    }
    for (int64_t i = 0; i < t->model->num_elements; i++)
        if (!used[i])
            assert_true(tiny_at(t, t->zero->weights, i) == 0);
    free(used);
    tiny_close(&tiny);
}

static void norm_is_over_all_gradients(void **state)
{
    (void)state;
    for (int exact = 0; exact <= 1; exact++) {
        struct tiny_way way = tiny_way(exact);
        struct tiny tiny = tiny_open(tiny_models[0].config, &way);
        struct tri_trainer *t = tiny.trainer;
        double norm = -1, sum = 0;
        assert_int_equal(tri_zero_clear_grads(t->zero), TRI_OK);
        assert_int_equal(tri_zero_grad_norm(t->zero, &norm), TRI_OK);
        assert_true(norm == 0);
        put_gradients(t, 1);
        for (int64_t i = 0; i < t->model->num_elements; i++)
            sum += tiny_at(t, t->zero->grads, i) * tiny_at(t, t->zero->grads, i);
        assert_int_equal(tri_zero_grad_norm(t->zero, &norm), TRI_OK);
        /* Squares are summed in float64 in both precisions. */
        assert_true(fabs(norm - sqrt(sum)) <= 1e-12 * norm);
        tiny_close(&tiny);
    }
}

/* A step over the bound equals an unclipped one with gradients scaled by bound / norm. */
static void clipping_scales_to_the_bound(void **state)
{
    (void)state;
    const int64_t lengths[] = {24, 16};
    struct tri_batch batch = tiny_batch(lengths, 2);
    struct tiny_way way = tiny_way(true);
    struct tiny clipped = tiny_open(tiny_models[0].config, &way);
    struct tiny plain = tiny_open(tiny_models[0].config, &way);
    struct tri_step_stats a, b;
    assert_int_equal(tri_train_gradients(plain.trainer, &batch, 1, &b), TRI_OK);
    assert_true(b.grad_norm > 0);
    clipped.trainer->clip = b.grad_norm / 4;
    plain.trainer->clip = 0;
    assert_int_equal(tri_train_step(clipped.trainer, &batch, 1, 1e-2, &a), TRI_OK);
    assert_true(a.grad_norm == b.grad_norm); /* reported before clipping */
    assert_int_equal(tri_optimizer_update(&plain.trainer->optimizer, 1e-2, 0.25), TRI_OK);
    for (int64_t i = 0; i < plain.model->num_elements; i++)
        assert_true(fabs(tiny_at(clipped.trainer, clipped.trainer->optimizer.m, i) -
                         tiny_at(plain.trainer, plain.trainer->optimizer.m, i)) <= 1e-15);

    /* Below the bound nothing is scaled: the moments are those of the gradient itself. */
    struct tiny below = tiny_open(tiny_models[0].config, &way);
    below.trainer->clip = b.grad_norm * 1.01;
    assert_int_equal(tri_train_step(below.trainer, &batch, 1, 1e-2, &a), TRI_OK);
    for (int64_t i = 0; i < plain.model->num_elements; i++)
        assert_true(fabs(tiny_at(below.trainer, below.trainer->optimizer.m, i) -
                         4 * tiny_at(plain.trainer, plain.trainer->optimizer.m, i)) <= 1e-15);
    tiny_close(&below);
    tiny_close(&plain);
    tiny_close(&clipped);
    tri_batch_close(&batch);
}

/* A step whose loss or norm is not finite leaves weights and moments as they were. */
static void nonfinite_steps_change_nothing(void **state)
{
    (void)state;
    const int64_t lengths[] = {24};
    struct tri_batch batch = tiny_batch(lengths, 1);
    struct tiny_way way = tiny_way(false);
    struct tiny tiny = tiny_open(tiny_models[0].config, &way);
    struct tri_trainer *t = tiny.trainer;
    struct tri_step_stats stats;
    assert_int_equal(tri_train_step(t, &batch, 1, 1e-2, &stats), TRI_OK);
    ((float *)t->zero->weights)[t->model->params[0].offset + batch.ids[0] * TINY_HIDDEN] = INFINITY;
    double *weights = tiny_copy(t, t->zero->weights);
    double *m = tiny_copy(t, t->optimizer.m);
    double *v = tiny_copy(t, t->optimizer.v);
    assert_int_equal(tri_train_step(t, &batch, 1, 1e-2, &stats), TRI_NONFINITE);
    assert_error_has("step 2");
    assert_error_has("optimizer.learning_rate");
    assert_int_equal(t->optimizer.step, 1);
    for (int64_t i = 0; i < t->model->num_elements; i++)
        assert_true(tiny_at(t, t->zero->weights, i) == weights[i] &&
                    tiny_at(t, t->optimizer.m, i) == m[i] && tiny_at(t, t->optimizer.v, i) == v[i]);
    free(weights);
    free(m);
    free(v);
    tiny_close(&tiny);
    tri_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_is_a_plain_loop),
        cmocka_unit_test(padding_stays_zero),
        cmocka_unit_test(norm_is_over_all_gradients),
        cmocka_unit_test(clipping_scales_to_the_bound),
        cmocka_unit_test(nonfinite_steps_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
