/* Several ranks compute what one computes: sequences split over P ranks, D replicas with batches of
 * their own, accumulation with uneven numbers of trained tokens; every kind of block, whole and in
 * chunks. In float64 by the reference kernels, so that nothing hides behind rounding. */
#include "unit/tiny_model.h"

#include "comm/thread/thread.h"
#include "shard/mesh.h"

enum { NUM_BATCHES = 4 };

/* Documents of each micro-batch, and how many tokens at their beginning are not trained. */
static const struct {
    int64_t lengths[3];
    int64_t docs, prompt;
} batches[NUM_BATCHES] = {
    {{31, 6, 0}, 2, 0},  /* everything is trained */
    {{40, 0, 0}, 1, 37}, /* a long prompt: most shards have no trained token */
    {{9, 9, 9}, 3, 8},   /* two trained tokens a document */
    {{17, 0, 0}, 1, 3},
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

/* What all ranks run, and what the first one found. */
struct job {
    const struct tiny_model *model;
    int64_t shards, chunk;
    int remat;
    double loss, norm;
    double *grads; /* (num_elements); the caller frees it */
};

static enum tri_status compute(struct tri_comm *world, void *ctx)
{
    struct job *job = ctx;
    struct tri_mesh mesh;
    TRI_TRY(tri_mesh_open(world, job->shards, &mesh));
    struct tiny_way way = tiny_way(true);
    way.pass.chunk_size = job->chunk;
    way.pass.activation_checkpointing = job->remat;
    struct tiny tiny = tiny_open_on(job->model->config, &way, mesh.world, mesh.sequence);
    struct tri_batch mine[NUM_BATCHES];
    int64_t count = 0;
    for (int i = mesh.replica; i < NUM_BATCHES; i += mesh.num_replicas)
        mine[count++] = make_batch(i);
    struct tri_step_stats stats;
    enum tri_status st = tri_train_gradients(tiny.trainer, mine, count, &stats);
    if (st == TRI_OK && tri_mesh_is_first(&mesh)) {
        job->loss = stats.loss;
        job->norm = stats.grad_norm;
        job->grads = tiny_copy(tiny.trainer, tiny.trainer->grads);
    }
    for (int64_t i = 0; i < count; i++)
        tri_batch_close(&mine[i]);
    tiny_close(&tiny);
    tri_mesh_close(&mesh);
    return st;
}

static void assert_equal(const struct job *got, const struct job *want, int replicas)
{
    struct tri_model *model = tiny_parse(got->model->config);
    double worst = 0;
    for (int64_t i = 0; i < model->num_elements; i++)
        worst = fmax(worst, fabs(got->grads[i] - want->grads[i]));
    tri_model_close(model);
    if (!(fabs(got->loss - want->loss) <= 1e-12 * want->loss) ||
        !(fabs(got->norm - want->norm) <= 1e-12 * want->norm) || !(worst <= 1e-12 * want->norm))
        fail_msg(
            "%s: D=%d P=%d chunk %d remat %d: loss %.15g not %.15g, norm %.15g not %.15g, worst "
            "gradient off by %.3g",
            got->model->name, replicas, (int)got->shards, (int)got->chunk, got->remat, got->loss,
            want->loss, got->norm, want->norm, worst);
}

static void all_meshes_agree_with_one_rank(void **state)
{
    (void)state;
    static const int meshes[][2] = {{1, 2}, {1, 3}, {1, 4}, {2, 1}, {4, 1}, {2, 2}, {2, 4}};
    static const int64_t chunks[] = {0, 11};
    for (size_t m = 0; m < NUM_TINY_MODELS; m++) {
        struct job alone = {.model = &tiny_models[m], .shards = 1};
        if (compute(NULL, &alone) != TRI_OK)
            fail_msg("%s", tri_error_text());
        for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
            struct job split = {.model = &tiny_models[m],
                                .shards = meshes[i][1],
                                .chunk = chunks[(i + m) % 2],
                                .remat = (int)((i + m) % 3)};
            if (tri_comm_threads_run(meshes[i][0] * meshes[i][1], 100, compute, &split) != TRI_OK)
                fail_msg("%s", tri_error_text());
            assert_equal(&split, &alone, meshes[i][0]);
            free(split.grads);
        }
        free(alone.grads);
    }
}

static void too_many_ranks_are_refused_by_all(void **state)
{
    (void)state;
    struct job job = {.model = &tiny_models[0], .shards = 3};
    assert_int_equal(tri_comm_threads_run(4, 100, compute, &job), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "does not divide the 4 ranks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meshes_agree_with_one_rank),
        cmocka_unit_test(too_many_ranks_are_refused_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
