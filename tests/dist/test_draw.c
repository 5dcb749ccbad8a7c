/* Random weights are the same whatever draws them: a number of threads, or ranks of which each
 * holds a part. */
#include "ranks.h"
#include "unit/tiny_model.h"

/* Its embedding is longer than the block in which weights are drawn. */
static const char config_text[] =
    "{\"model_type\":\"llama\",\"vocab_size\":18000,\"hidden_size\":60,\"num_hidden_layers\":1,"
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"intermediate_size\":48,"
    "\"head_dim\":30,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,\"initializer_range\":0.05,"
    "\"max_position_embeddings\":512,\"tie_word_embeddings\":true}";

enum { SEED = 1234567 };

struct job {
    int zero_stage, threads;
};

static float wanted(const struct tri_model *model, int p, int64_t i)
{
    const struct tri_param *param = &model->params[p];
    if (param->num_dims != 2)
        return 1; /* this model has no biases */
    return (float)(model->arch.init_range * tri_rng_normal(SEED, (uint64_t)p, (uint64_t)i));
}

static enum tri_status compare(struct tri_trainer *t)
{
    struct tri_flat flat = tri_flat_used_weights(t);
    enum tri_status st = TRI_OK;
    for (int p = 0; p < t->model->num_params && st == TRI_OK; p++) {
        const struct tri_param *param = &t->model->params[p];
        const int64_t n = param->dim[0] * (param->num_dims == 2 ? param->dim[1] : 1);
        float *data = malloc((size_t)n * sizeof *data);
        CHECK(data != NULL);
        st = tri_flat_source(&flat, p, 0, param->dim[0], data);
        for (int64_t i = 0; i < n && st == TRI_OK; i++)
            if (data[i] != wanted(t->model, p, i))
                st = tri_fail(TRI_FORMAT, "zero %d, parameter %d, element %lld: %g is not %g",
                              t->zero->stage, p, (long long)i, (double)data[i],
                              (double)wanted(t->model, p, i));
        free(data);
    }
    return st;
}

static enum tri_status draw_with(const struct job *job, struct tri_comm *world,
                                 struct tri_trainer *t)
{
    struct tri_job told = {.show = NULL};
    TRI_TRY(tri_trainer_init(t, SEED, &told));
    CHECK(told.total == (double)t->model->num_weights && told.done == told.total);
    CHECK(t->threads == job->threads);
    CHECK(world == NULL || t->zero->stage == job->zero_stage);
    return compare(t);
}

static enum tri_status draw(struct tri_comm *world, void *ctx)
{
    const struct job *job = ctx;
    const struct tri_pass_options pass = {.tiled_mlp_compute = true, .threads = job->threads};
    struct tri_cpu_config cpu = {.threads = 1};
    struct tri_optim_options optimizer = tiny_optimizer();
    struct tri_backend *backend = NULL;
    struct tri_trainer *t = NULL;
    struct tri_model *model = NULL;
    TRI_TRY(tri_model_parse("config.json", config_text, sizeof config_text - 1, NULL, &model));
    enum tri_status st = tri_cpu_open(&cpu, &backend);
    struct tri_trainer_config config = {.model = model,
                                        .backend = backend,
                                        .act = TRI_F32,
                                        .capacity = (size_t)1 << 28,
                                        .pass = &pass,
                                        .optimizer = &optimizer,
                                        .world = world,
                                        .sequence = world,
                                        .zero_stage = job->zero_stage};
    if (st == TRI_OK)
        st = tri_trainer_open(&config, &t);
    if (st == TRI_OK)
        st = draw_with(job, world, t);
    tri_trainer_close(t);
    tri_cpu_close(backend);
    tri_model_close(model);
    return st;
}

static void threads_draw_the_same(void **state)
{
    (void)state;
    for (int threads = 0; threads <= 3; threads++) {
        struct job job = {.threads = threads};
        if (draw(NULL, &job) != TRI_OK)
            fail_msg("%d threads: %s", threads, tri_error_text());
    }
}

static void ranks_draw_the_same(void **state)
{
    (void)state;
    for (int stage = 0; stage <= 3; stage++) {
        struct job job = {.zero_stage = stage, .threads = 1 + stage % 2};
        run_ranks(2, draw, &job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_draw_the_same),
        cmocka_unit_test(ranks_draw_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
