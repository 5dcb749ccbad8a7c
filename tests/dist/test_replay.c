/* Mistakes of ranks that others made and reported, as small cases: each names the thread it comes
 * from. Those of tiles are in test_replay_tiles.c. */
#include "ranks.h"
#include "unit/api/dense.h"
#include "unit/tiny_model.h"

#include "shard/mesh.h"

static enum tri_status open_exact(struct tri_device **out)
{
    const struct tri_device_config config = {
        .cpu_kernels = "reference", .threads = 1, .scratch_bytes = 1 << 20};
    return tri_device_open(&config, out);
}

enum { E = 4, V = 6 }; /* width, vocabulary */

/* A loss over a mesh of 2 x 2 whose two shards train one token each: the mean gives each of them
 * half of the gradient that it has alone. */
static enum tri_status backward_through_the_mean(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    struct tri_mesh mesh;
    struct tri_device *device;
    TRI_TRY(tri_mesh_open(world, 2, &mesh));
    TRI_TRY(open_exact(&device));
    double *x = numbers(E, tri_comm_rank(world)), *w = numbers(V * E, 9), dx[2][E];
    const int32_t label = 3;
    struct tri_fused_loss op = {.weight = tensor2(w, V, E)};
    struct tri_loss_sum loss, all = {0, tri_count_trained(&label, 1)};
    TRI_TRY(tri_loss_reduce(mesh.sequence, &all));
    CHECK(all.count == 2);
    double upstream[2] = {1, 1.0 / (double)all.count};
    for (int i = 0; i < 2; i++)
        TRI_TRY(tri_fused_loss_backward(device, &op, upstream[i], tensor2(dx[i], 1, E),
                                        tensor2(x, 1, E), &label, &loss));
    for (int i = 0; i < E; i++)
        CHECK(dx[1][i] == 0.5 * dx[0][i] && dx[0][i] != 0);
    TRI_TRY(tri_loss_reduce(mesh.sequence, &loss));
    CHECK(loss.count == 2 && isfinite(tri_loss_mean(loss)));
    free(x);
    free(w);
    tri_device_close(device);
    tri_mesh_close(&mesh);
    return TRI_OK;
}

/* R1: github.com/deepspeedai/DeepSpeed/issues/7672 */
static void mean_of_two_shards_gives_each_half(void **state)
{
    (void)state;
    run_ranks(4, backward_through_the_mean, NULL);
}

/* What ranks compute with the trainer on one batch. */
struct train_job {
    int64_t shards;
    int64_t prompt; /* tokens that are not trained */
    int zero_stage;
    bool half; /* bfloat16 */
    double loss, norm;
};

static enum tri_status train_rank(struct tri_comm *world, void *ctx)
{
    struct train_job *job = ctx;
    struct tri_mesh mesh;
    TRI_TRY(tri_mesh_open(world, job->shards, &mesh));
    struct tiny_way way = tiny_way(true);
    way.zero_stage = job->zero_stage;
    struct tiny tiny = tiny_open_on(tiny_models[0].config, &way, mesh.world, mesh.sequence);
    const int64_t length = 40;
    struct tri_batch batch = tiny_batch(&length, 1);
    batch.num_trained = 0;
    for (int64_t t = 0; t < length; t++) {
        batch.labels[t] = t < job->prompt || t + 1 == length ? TRI_IGNORE_LABEL : batch.ids[t + 1];
        batch.num_trained += batch.labels[t] >= 0;
    }
    struct tri_step_stats stats;
    enum tri_status st = tri_train_step(tiny.trainer, &batch, 1, 1e-3, &stats);
    if (st == TRI_OK && tri_mesh_is_first(&mesh)) {
        job->loss = stats.loss;
        job->norm = stats.grad_norm;
    }
    tri_batch_close(&batch);
    tiny_close(&tiny);
    tri_mesh_close(&mesh);
    return st;
}

/* R4: github.com/axolotl-ai-cloud/axolotl/issues/3026 */
static void a_shard_without_trained_tokens_is_zero_not_nan(void **state)
{
    (void)state;
    struct train_job alone = {.shards = 1, .prompt = 25};
    run_ranks(1, train_rank, &alone);
    for (int64_t ranks = 2; ranks <= 4; ranks += 2) { /* the first 1 of 2, or 2 of 4, have none */
        struct train_job split = {.shards = ranks, .prompt = 25};
        run_ranks((int)ranks, train_rank, &split);
        assert_near(&split.loss, &alone.loss, 1, 1e-12, "loss");
        assert_near(&split.norm, &alone.norm, 1, 1e-12, "gradient norm");
    }
}

/* R10: github.com/deepspeedai/DeepSpeed/pull/5555, github.com/hamishivi/tmax/pull/9 */
static void the_gradient_norm_does_not_depend_on_the_stage(void **state)
{
    (void)state;
    struct train_job alone = {.shards = 1};
    run_ranks(1, train_rank, &alone);
    for (int stage = 0; stage <= 3; stage++) {
        struct train_job split = {.shards = 4, .zero_stage = stage};
        run_ranks(4, train_rank, &split);
        assert_near(&split.norm, &alone.norm, 1, 1e-6, "gradient norm");
        assert_near(&split.loss, &alone.loss, 1, 1e-12, "loss");
    }
}

static enum tri_status half_rank(struct tri_comm *world, void *ctx)
{
    struct train_job *job = ctx;
    struct tri_model *model = tiny_parse(tiny_models[0].config);
    struct tri_backend *backend;
    struct tri_trainer *trainer;
    const struct tri_cpu_config cpu = {.threads = 1, .kernels = TRI_CPU_REFERENCE};
    const struct tri_pass_options pass = {.tiled_mlp_compute = true};
    const struct tri_optim_options optimizer = tiny_optimizer();
    struct tri_trainer_config config = {.model = model,
                                        .act = TRI_BF16,
                                        .capacity = (size_t)1 << 28,
                                        .pass = &pass,
                                        .optimizer = &optimizer,
                                        .world = world,
                                        .sequence = world};
    TRI_TRY(tri_cpu_open(&cpu, &backend));
    config.backend = backend;
    TRI_TRY(tri_trainer_open(&config, &trainer));
    tiny_weights(trainer, false);
    const int64_t length = 16;
    struct tri_batch batch = tiny_batch(&length, 1);
    struct tri_step_stats stats;
    for (int i = 0; i < 2; i++) {
        TRI_TRY(tri_train_step(trainer, &batch, 1, 1e-3, &stats));
        if (world->rank == 0 && i == 0)
            job->loss = stats.loss;
    }
    if (world->rank == 0)
        job->norm = stats.loss - job->loss; /* of the second step: lower */
    tri_batch_close(&batch);
    tri_trainer_close(trainer);
    tri_cpu_close(backend);
    tri_model_close(model);
    return TRI_OK;
}

/* R17: github.com/deepspeedai/DeepSpeed/issues/7833 */
static void a_step_in_bfloat16_without_zero_completes(void **state)
{
    (void)state;
    struct train_job job = {.zero_stage = 0};
    run_ranks(2, half_rank, &job);
    assert_true(isfinite(job.loss) && job.norm < 0);
}

static enum tri_status exchange_of_two_rows(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    struct tri_device *device;
    struct tri_sp_batch *batch;
    const struct tri_sp_shape shape = {2, 4, 0};
    int rank = tri_comm_rank(world);
    const int64_t positions[4] = {2 * rank, 2 * rank + 1, 2 * rank, 2 * rank + 1};
    const int64_t local_dim[] = {2, 2, 4, 1}, heads_dim[] = {2, 4, 2, 1};
    double local[16], heads[16], back[16];
    for (int i = 0; i < 16; i++)
        local[i] = 16 * rank + i;
    TRI_TRY(open_exact(&device));
    TRI_TRY(tri_sp_batch_open(device, world, &shape, 2, positions, &batch));
    struct tri_sp_part part = {.kind = TRI_SP_QUERY_HEADS,
                               .local = tri_tensor_make(local, TRI_F64, 4, local_dim),
                               .heads = tri_tensor_make(heads, TRI_F64, 4, heads_dim)};
    TRI_TRY(tri_sp_to_heads(batch, 4, 4, &part, 1));
    for (int b = 0; b < 2; b++)
        for (int s = 0; s < 4; s++)
            for (int h = 0; h < 2; h++)
                CHECK(heads[(b * 4 + s) * 2 + h] ==
                      16 * (s / 2) + (b * 2 + s % 2) * 4 + 2 * rank + h);
    part.local.data = back;
    TRI_TRY(tri_sp_to_sequence(batch, 4, 4, &part, 1));
    CHECK(memcmp(back, local, sizeof local) == 0);
    tri_sp_batch_close(batch);
    tri_device_close(device);
    return TRI_OK;
}

/* R6: github.com/deepspeedai/DeepSpeed/issues/5808 */
static void rows_of_a_batch_keep_their_places(void **state)
{
    (void)state;
    run_ranks(2, exchange_of_two_rows, NULL);
}

struct stream {
    int64_t first, step, next, count;
    int32_t ids[8];
    int64_t positions[8];
    struct tri_field fields[3];
};

static enum tri_status rewind_stream(void *ctx, int64_t epoch)
{
    (void)epoch;
    ((struct stream *)ctx)->next = ((struct stream *)ctx)->first;
    return TRI_OK;
}

static enum tri_status read_stream(void *ctx, struct tri_sample *sample, bool *end)
{
    struct stream *s = ctx;
    static const int64_t dim[] = {8};
    *end = s->next >= s->count;
    for (int i = 0; i < 8; i++) {
        s->ids[i] = (int32_t)(s->next * 8 + i);
        s->positions[i] = i;
    }
    struct tri_tensor ids = tri_tensor_make(s->ids, TRI_I32, 1, dim);
    s->fields[0] = tri_field_split("input_ids", ids, 0);
    s->fields[1] = tri_field_split("labels", ids, 0);
    s->fields[2] =
        tri_field_split("position_ids", tri_tensor_make(s->positions, TRI_I64, 1, dim), 0);
    *sample = (struct tri_sample){s->fields, 3};
    s->next += s->step;
    return TRI_OK;
}

/* With the same stream on both ranks nothing is read; with distinct ones each of 6 samples comes
 * once in each of two epochs. */
static enum tri_status two_epochs(struct tri_comm *world, void *ctx)
{
    bool same = *(const bool *)ctx;
    int rank = tri_comm_rank(world);
    struct tri_mesh mesh;
    struct tri_adapter *adapter;
    struct stream stream = {.first = same ? 0 : rank, .step = same ? 1 : 2, .count = 6};
    TRI_TRY(tri_mesh_open(world, 0, &mesh));
    const struct tri_adapter_config config = {.mesh = &mesh,
                                              .next = read_stream,
                                              .rewind = rewind_stream,
                                              .ctx = &stream,
                                              .samples = same ? 6 : 3};
    TRI_TRY(tri_adapter_open(&config, &adapter));
    for (int epoch = 0; epoch < 2; epoch++) {
        enum tri_status st = tri_adapter_epoch(adapter, epoch);
        if (same) {
            CHECK(st == TRI_INVALID);
            CHECK(strstr(tri_error_text(), "ranks 0 and 1 read the same samples") != NULL);
            break;
        }
        TRI_TRY(st);
        int64_t seen = 0;
        bool end = false;
        for (int i = 0; !end; i++) {
            struct tri_shard shard;
            TRI_TRY(tri_adapter_next(adapter, &shard, &end));
            CHECK(end == (i == 6));
            if (!end) /* bit k: sample k */
                seen |= (int64_t)1 << (shard.input_ids[0] / 8);
        }
        CHECK(seen == 0x3F);
    }
    tri_adapter_close(adapter);
    tri_mesh_close(&mesh);
    return TRI_OK;
}

/* R7: github.com/deepspeedai/DeepSpeed/issues/7484 */
static void the_same_stream_on_all_ranks_is_an_error(void **state)
{
    (void)state;
    bool same = true;
    run_ranks(2, two_epochs, &same);
}

/* R8: github.com/deepspeedai/DeepSpeed/pull/7472 */
static void a_second_epoch_is_as_long_as_the_first(void **state)
{
    (void)state;
    bool same = false;
    run_ranks(2, two_epochs, &same);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_two_shards_gives_each_half),
        cmocka_unit_test(a_shard_without_trained_tokens_is_zero_not_nan),
        cmocka_unit_test(rows_of_a_batch_keep_their_places),
        cmocka_unit_test(the_same_stream_on_all_ranks_is_an_error),
        cmocka_unit_test(a_second_epoch_is_as_long_as_the_first),
        cmocka_unit_test(the_gradient_norm_does_not_depend_on_the_stage),
        cmocka_unit_test(a_step_in_bfloat16_without_zero_completes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
