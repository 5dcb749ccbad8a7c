/* Several ranks compute what one computes: sequences split over P ranks, D replicas with batches of
 * their own, accumulation with uneven numbers of trained tokens, every stage of ZeRO; every kind of
 * block, whole and in chunks. In float64 by the reference kernels, so that nothing hides behind
 * rounding. */
#include "unit/tiny_model.h"

#include "comm/thread/thread.h"
#include "shard/mesh.h"

enum { NUM_BATCHES = 8, ALL_BATCHES = 4 };

/* Documents of each micro-batch, and how many tokens at their beginning are not trained. */
static const struct {
    int64_t lengths[3];
    int64_t docs, prompt;
} batches[NUM_BATCHES] = {
    {{31, 6, 0}, 2, 0},  /* everything is trained */
    {{40, 0, 0}, 1, 37}, /* a long prompt: most shards have no trained token */
    {{9, 9, 9}, 3, 8},   /* two trained tokens a document */
    {{17, 0, 0}, 1, 3},  {{5, 30, 0}, 2, 1}, {{23, 0, 0}, 1, 21}, /* two tokens */
    {{1, 2, 3}, 3, 0}, /* fewer tokens than some meshes have ranks */
    {{44, 0, 0}, 1, 11},
};

static struct tri_batch make_batch(int i)
{
    struct tri_batch batch = tiny_batch(batches[i].lengths, batches[i].docs);
    batch.num_trained = 0;
    for (int64_t t = 0; t < batch.num_tokens; t++) {
        if (batch.positions[t] < batches[i].prompt - 1)
            batch.labels[t] = TRI_IGNORE_LABEL;
        batch.num_trained += batch.labels[t] >= 0;
    }
    return batch;
}

/* What all ranks run, and what they found. */
struct job {
    const struct tiny_model *model;
    int64_t shards, chunk;
    int num_batches; /* over all replicas */
    int remat, zero_stage;
    int steps;   /* updates; 0: gradients only */
    double clip; /* of the steps */
    double loss, norm;
    double *values; /* (num_elements) gradients, or weights after the steps; the caller frees it */
};

static enum tri_status compute(struct tri_comm *world, void *ctx)
{
    struct job *job = ctx;
    struct tri_mesh mesh;
    TRI_TRY(tri_mesh_open(world, job->shards, &mesh));
    struct tiny_way way = tiny_way(true);
    way.pass.chunk_size = job->chunk;
    way.pass.activation_checkpointing = job->remat;
    way.zero_stage = job->zero_stage;
    struct tiny tiny = tiny_open_on(job->model->config, &way, mesh.world, mesh.sequence);
    struct tri_trainer *t = tiny.trainer;
    assert_int_equal(t->zero->stage, world != NULL ? job->zero_stage : 0);
    struct tri_batch mine[NUM_BATCHES];
    int64_t count = 0;
    for (int i = mesh.replica; i < job->num_batches; i += mesh.num_replicas)
        mine[count++] = make_batch(i);
    struct tri_step_stats stats;
    enum tri_status st = TRI_OK;
    t->clip = job->clip;
    for (int i = 0; i < job->steps && st == TRI_OK; i++)
        st = tri_train_step(t, mine, count, 1e-2, &stats);
    if (job->steps == 0)
        st = tri_train_gradients(t, mine, count, &stats);
    if (st == TRI_OK && tri_mesh_is_first(&mesh)) {
        job->loss = stats.loss;
        job->norm = stats.grad_norm;
    }
    struct tri_flat flat = job->steps > 0 ? tri_flat_weights(t) : tri_flat_grads(t);
    if (st == TRI_OK && (t->zero->stage > 0 || tri_mesh_is_first(&mesh)))
        tiny_collect(t, &flat.buffer, job->values);
    for (int64_t i = 0; i < count; i++)
        tri_batch_close(&mine[i]);
    tiny_close(&tiny);
    tri_mesh_close(&mesh);
    return st;
}

static void run(struct job *job, int ranks)
{
    struct tri_model *model = tiny_parse(job->model->config);
    job->values = calloc((size_t)model->num_elements, sizeof *job->values);
    assert_non_null(job->values);
    tri_model_close(model);
    enum tri_status st =
        ranks == 1 ? compute(NULL, job) : tri_comm_threads_run(ranks, 100, compute, job);
    if (st != TRI_OK)
        fail_msg("%s", tri_error_text());
}

static void assert_equal(const struct job *got, const struct job *want, int replicas, double bound)
{
    struct tri_model *model = tiny_parse(got->model->config);
    double worst = 0;
    for (int64_t i = 0; i < model->num_elements; i++) {
        double error = fabs(got->values[i] - want->values[i]);
        if (!(error <= worst)) /* NaN is the worst of all */
            worst = error;
    }
    tri_model_close(model);
    double scale = want->steps > 0 ? 1.0 : want->norm;
    if (!(fabs(got->loss - want->loss) <= bound * want->loss) ||
        !(fabs(got->norm - want->norm) <= bound * want->norm) || !(worst <= bound * scale))
        fail_msg("%s: D=%d P=%d chunk %d remat %d zero %d, %d batches: loss %.15g not %.15g, norm "
                 "%.15g not %.15g, worst value off by %.3g",
                 got->model->name, replicas, (int)got->shards, (int)got->chunk, got->remat,
                 got->zero_stage, got->num_batches, got->loss, want->loss, got->norm, want->norm,
                 worst);
}

static void all_meshes_agree_with_one_rank(void **state)
{
    (void)state;
    static const int meshes[][2] = {{1, 2}, {1, 3}, {1, 4}, {2, 1}, {4, 1}, {2, 2}, {2, 4}};
    static const int64_t chunks[] = {0, 11};
    for (size_t m = 0; m < NUM_TINY_MODELS; m++) {
        struct job alone = {.model = &tiny_models[m], .shards = 1, .num_batches = ALL_BATCHES};
        run(&alone, 1);
        for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
            struct job split = {.model = &tiny_models[m],
                                .shards = meshes[i][1],
                                .chunk = chunks[(i + m) % 2],
                                .num_batches = ALL_BATCHES,
                                .remat = (int)((i + m) % 3),
                                .zero_stage = (int)((i + m) % 4)};
            run(&split, meshes[i][0] * meshes[i][1]);
            assert_equal(&split, &alone, meshes[i][0], 1e-12);
            free(split.values);
        }
        free(alone.values);
    }
}

/* Every stage, accumulation of 1 and 4 micro-batches with uneven trained tokens. The embedding is
 * tied, so that its gradient has two sources. */
static void all_stages_agree_with_one_rank(void **state)
{
    (void)state;
    static const int meshes[][2] = {{1, 2}, {1, 4}, {2, 2}, {2, 4}};
    for (int accumulation = 1; accumulation <= 4; accumulation += 3)
        for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
            struct job alone = {
                .model = &tiny_models[1], .shards = 1, .num_batches = meshes[i][0] * accumulation};
            run(&alone, 1);
            for (int stage = 0; stage <= 3; stage++) {
                struct job split = alone;
                split.shards = meshes[i][1];
                split.zero_stage = stage;
                run(&split, meshes[i][0] * meshes[i][1]);
                assert_equal(&split, &alone, meshes[i][0], 1e-12);
                free(split.values);
            }
            free(alone.values);
        }
}

/* Replicas with different numbers of micro-batches, some with none, still do the same collectives.
 */
static void replicas_may_run_out_of_batches(void **state)
{
    (void)state;
    for (int some = 1; some <= 5; some += 2) {
        struct job alone = {.model = &tiny_models[1], .shards = 1, .num_batches = some};
        run(&alone, 1);
        for (int stage = 0; stage <= 3; stage++) {
            struct job split = alone;
            split.zero_stage = stage;
            split.shards = 2;
            split.chunk = 11;
            run(&split, 4);
            assert_equal(&split, &alone, 2, 1e-12);
            free(split.values);
        }
        free(alone.values);
    }
}

/* Three clipped updates: norm, moments and weights of every stage. */
static void all_stages_update_alike(void **state)
{
    (void)state;
    for (size_t m = 0; m < NUM_TINY_MODELS; m += 2) {
        struct job alone = {.model = &tiny_models[m],
                            .shards = 1,
                            .num_batches = ALL_BATCHES,
                            .steps = 3,
                            .clip = 0.1};
        run(&alone, 1);
        for (int stage = 0; stage <= 3; stage++) {
            struct job split = alone;
            split.zero_stage = stage;
            split.shards = 1 + stage % 3;
            int replicas = split.shards == 3 ? 1 : 2;
            run(&split, replicas * (int)split.shards);
            assert_equal(&split, &alone, replicas, 1e-9);
            free(split.values);
        }
        free(alone.values);
    }
}

static void too_many_ranks_are_refused_by_all(void **state)
{
    (void)state;
    struct job job = {.model = &tiny_models[0], .shards = 3, .num_batches = 1};
    assert_int_equal(tri_comm_threads_run(4, 100, compute, &job), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "does not divide the 4 ranks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meshes_agree_with_one_rank),
        cmocka_unit_test(all_stages_agree_with_one_rank),
        cmocka_unit_test(replicas_may_run_out_of_batches),
        cmocka_unit_test(all_stages_update_alike),
        cmocka_unit_test(too_many_ranks_are_refused_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
