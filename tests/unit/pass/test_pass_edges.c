/* Steps at the edge: one trained token or none, tiles without any, zeros, the shortest batches. */
#include "unit/pass/pass_fixture.h"

static void assert_finite(const char *name, const struct result *r)
{
    struct tri_model *model = tiny_parse(name);
    assert_true(isfinite(r->loss) && isfinite(r->norm));
    for (int64_t i = 0; i < model->num_elements; i++)
        assert_true(isfinite(r->grads[i]));
    tri_model_close(model);
}

/* The mean over one token is that token's loss, whatever surrounds it. */
static void one_trained_token(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(true);
        struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
        double sum = 0, one = 0;
        int64_t trained = 0, last = -1;
        for (int64_t t = 42; t < 83; t++)
            if (batch.labels[t] >= 0)
                last = t;
        train_only(&batch, last, last + 1);
        assert_int_equal(batch.num_trained, 1);
        struct result r = run_batches(tiny_models[m].config, &way, &batch, 1);
        assert_finite(tiny_models[m].config, &r);
        assert_true(r.norm > 0);
        struct tiny tiny = tiny_open(tiny_models[m].config, &way);
        assert_int_equal(tri_train_eval(tiny.trainer, &batch, &sum, &trained), TRI_OK);
        assert_int_equal(trained, 1);
        tri_batch_close(&batch);

        /* The loss of all trained tokens less that of all but this one. */
        struct tri_batch all = tiny_batch(lengths, NUM_DOCS);
        assert_int_equal(tri_train_eval(tiny.trainer, &all, &one, &trained), TRI_OK);
        all.labels[last] = TRI_IGNORE_LABEL;
        assert_int_equal(tri_batch_finish_shifted(&all), TRI_OK);
        double rest = 0;
        assert_int_equal(tri_train_eval(tiny.trainer, &all, &rest, &trained), TRI_OK);
        assert_true(fabs(sum - r.loss) <= 1e-12 * sum);
        assert_true(fabs(one - rest - sum) <= 1e-12 * one);
        free(r.grads);
        tri_batch_close(&all);
        tiny_close(&tiny);
    }
}

static void no_trained_token_is_an_error(void **state)
{
    (void)state;
    struct tiny_way way = tiny_way(false);
    struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
    for (int64_t t = 0; t < batch.num_tokens; t++)
        batch.labels[t] = TRI_IGNORE_LABEL;
    assert_int_equal(tri_batch_finish_shifted(&batch), TRI_OK);
    struct tiny tiny = tiny_open(tiny_models[0].config, &way);
    struct tri_step_stats stats;
    assert_int_equal(tri_train_gradients(tiny.trainer, &batch, 1, &stats), TRI_INVALID);
    assert_error_has("none to train on");
    tiny_close(&tiny);
    tri_batch_close(&batch);
}

/* Loss over tiles of 8 rows where only one tile is trained: what the others add is exactly zero,
 * so the gradients are those of that tile alone. */
static void untrained_tiles_add_exactly_zero(void **state)
{
    (void)state;
    enum { ROWS = 8, AT = 3 };
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(false);
        way.pass.loss_slice_gb = slice_gb(ROWS, false);
        struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
        train_only(&batch, AT * ROWS, (AT + 1) * ROWS);
        struct tiny tiny = tiny_open(tiny_models[m].config, &way);
        struct tri_trainer *t = tiny.trainer;
        struct tri_pass *pass = t->pass;
        struct tri_view top;
        double whole = 0, alone = 0;
        assert_int_equal(pass->net.loss_rows, ROWS);
        assert_int_equal(tri_zero_clear_grads(t->zero), TRI_OK);
        assert_int_equal(tri_pass_loss_reset(pass), TRI_OK);
        assert_int_equal(tri_pass_begin(pass, &batch, true), TRI_OK);
        assert_int_equal(tri_pass_forward(pass), TRI_OK);
        assert_int_equal(tri_pass_top(pass, &top), TRI_OK);
        assert_int_equal(tri_pass_loss(pass, 0.125), TRI_OK);
        assert_int_equal(tri_pass_loss_read(pass, &whole), TRI_OK);
        double *grads = tiny_copy(t, t->zero->grads);
        float *d = malloc((size_t)TOKENS * TINY_HIDDEN * sizeof *d);
        assert_non_null(d);
        memcpy(d, pass->d.data, (size_t)TOKENS * TINY_HIDDEN * sizeof *d);

        assert_int_equal(tri_zero_clear_grads(t->zero), TRI_OK);
        assert_int_equal(tri_pass_loss_reset(pass), TRI_OK);
        assert_int_equal(tri_loss(&pass->net, 0.125, pass->loss_sum,
                                  tri_view_rows(pass->d, AT * ROWS, ROWS),
                                  tri_view_rows(top, AT * ROWS, ROWS), pass->labels + AT * ROWS),
                         TRI_OK);
        assert_int_equal(tri_pass_loss_read(pass, &alone), TRI_OK);
        assert_true(whole == alone && whole > 0);
        for (int64_t i = 0; i < t->model->num_elements; i++)
            assert_true(tiny_at(t, t->zero->grads, i) == grads[i]);
        for (int64_t i = 0; i < TOKENS * TINY_HIDDEN; i++) {
            int64_t row = i / TINY_HIDDEN;
            bool inside = row >= AT * ROWS && row < (AT + 1) * ROWS;
            assert_true(d[i] == (inside ? ((float *)pass->d.data)[i] : 0.0f));
        }
        tri_pass_end(pass);
        free(d);
        free(grads);
        tiny_close(&tiny);
        tri_batch_close(&batch);
    }
}

/* Norms divide by the size of a row and attention by a sum: zero weights try both. Every logit is
 * zero, so the loss is log V. */
static void zeros_never_become_nan(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int exact = 0; exact <= 1; exact++) {
            struct tiny_way way = tiny_way(exact);
            struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
            struct tiny tiny = tiny_open(tiny_models[m].config, &way);
            struct tri_trainer *t = tiny.trainer;
            struct tri_step_stats stats;
            tiny_weights(t, true);
            for (int step = 1; step <= 3; step++) {
                assert_int_equal(tri_train_step(t, &batch, 1, 1e-3, &stats), TRI_OK);
                if (step == 1)
                    assert_true(fabs(stats.loss - log(TINY_VOCAB)) < 1e-6);
            }
            for (int64_t i = 0; i < t->model->num_elements; i++)
                assert_true(isfinite(tiny_at(t, t->zero->weights, i)));
            tiny_close(&tiny);
            tri_batch_close(&batch);
        }
}

/* The shortest batches there are: one trained pair, and documents of one token. */
static void shortest_batches(void **state)
{
    (void)state;
    static const int64_t pair[] = {2}, ones[] = {1, 2, 1};
    for (int m = 0; m < NUM_TINY_MODELS; m++) {
        struct tiny_way way = tiny_way(true);
        struct result results[2];
        for (int i = 0; i < 2; i++) {
            struct tri_batch batch = tiny_batch(i == 0 ? pair : ones, i == 0 ? 1 : 3);
            int64_t first = i == 0 ? 0 : 1;
            batch.ids[first] = 5;
            batch.ids[first + 1] = 9;
            batch.labels[first] = 9;
            assert_int_equal(tri_batch_finish_shifted(&batch), TRI_OK);
            assert_int_equal(batch.num_trained, 1);
            results[i] = run_batches(tiny_models[m].config, &way, &batch, 1);
            tri_batch_close(&batch);
        }
        assert_close(&tiny_models[m], "lonely neighbours", &results[1], &results[0], 1e-12);
        free(results[0].grads);
        free(results[1].grads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_trained_token),
        cmocka_unit_test(no_trained_token_is_an_error),
        cmocka_unit_test(untrained_tiles_add_exactly_zero),
        cmocka_unit_test(zeros_never_become_nan),
        cmocka_unit_test(shortest_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
