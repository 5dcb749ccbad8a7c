/* Mistakes that others made and reported, as small cases: each names the thread it comes from. */
#include "unit/api/dense.h"
#include "unit/tiny_model.h"

#include "base/status.h"
#include "comm/comm.h"
#include "comm/thread/thread.h"
#include "shard/mesh.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tri_fail(TRI_INTERNAL, "line %d: %s", __LINE__, #condition);                    \
    } while (0)

static void run_ranks(int ranks, tri_rank_function *function, void *ctx)
{
    if (tri_comm_threads_run(ranks, 60, function, ctx) != TRI_OK)
        fail_msg("%d ranks: %s", ranks, tri_error_text());
}

static enum tri_status open_exact(struct tri_device **out)
{
    const struct tri_device_config config = {
        .cpu_kernels = "reference", .threads = 1, .scratch_bytes = 1 << 20};
    return tri_device_open(&config, out);
}

/* ---- loss over ranks ---------------------------------------------------------------------------
 */

enum { E = 4, V = 6 };

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

/* ---- the exchange ------------------------------------------------------------------------------
 */

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

/* ---- the adapter -------------------------------------------------------------------------------
 */

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

/* ---- tiles -------------------------------------------------------------------------------------
 */

enum { WIDE = 5 }; /* outputs of a row: neither E nor 1 */

/* out[v] = g * sum_e w[v,e] x[e] of each row of x (B,S,E) and g (B,S); its sum where a number is
 * wanted. Weights are not cut; their gradient accumulates here. */
struct product {
    const double *w;
    double *dw;
};

static const double *row_at(const struct tri_tensor *t, int64_t b, int64_t s)
{
    return (const double *)t->data + b * t->stride[0] + s * t->stride[1];
}

static enum tri_status product_forward(void *ctx, const struct tri_tile *tile,
                                       struct tri_loss_sum *total)
{
    const struct product *p = ctx;
    for (int64_t b = 0; b < tile->value[0].dim[0]; b++)
        for (int64_t s = 0; s < tile->count; s++)
            for (int v = 0; v < WIDE; v++) {
                double y = 0;
                for (int e = 0; e < E; e++)
                    y += p->w[v * E + e] * row_at(&tile->value[0], b, s)[e];
                y *= *row_at(&tile->value[1], b, s);
                if (tile->output.data != NULL)
                    ((double *)(uintptr_t)row_at(&tile->output, b, s))[v] = y;
                total->sum += y;
                total->count++;
            }
    return TRI_OK;
}

static enum tri_status product_backward(void *ctx, const struct tri_tile *tile)
{
    const struct product *p = ctx;
    for (int64_t b = 0; b < tile->value[0].dim[0]; b++)
        for (int64_t s = 0; s < tile->count; s++) {
            const double *x = row_at(&tile->value[0], b, s);
            double g = *row_at(&tile->value[1], b, s);
            double *dx = (double *)(uintptr_t)row_at(&tile->grad[0], b, s);
            double *dg = (double *)(uintptr_t)row_at(&tile->grad[1], b, s);
            *dg = 0;
            for (int e = 0; e < E; e++)
                dx[e] = 0;
            for (int v = 0; v < WIDE; v++) {
                double dy = tile->output_grad.data != NULL ? row_at(&tile->output_grad, b, s)[v]
                                                           : tile->upstream;
                for (int e = 0; e < E; e++) {
                    dx[e] += dy * g * p->w[v * E + e];
                    p->dw[v * E + e] += dy * g * x[e];
                    *dg += dy * p->w[v * E + e] * x[e];
                }
            }
        }
    return TRI_OK;
}

/* Two steps of gradient descent on w; returns everything that was computed, one after the other. */
static double *two_steps(int64_t batch, int64_t rows, int64_t tiles,
                         enum tri_tiled_reduction reduction)
{
    int64_t n = batch * rows;
    double *x = numbers(n * E, 1), *g = numbers(n, 2), *dy = numbers(n * WIDE, 3);
    double *w = numbers(WIDE * E, 4);
    double *all = zeros(2 * (n * (E + 1 + WIDE) + WIDE * E + 1)), *next = all;
    const int64_t g_dim[] = {batch, rows};
    for (int step = 0; step < 2; step++) {
        double *dx = next, *dg = dx + n * E, *y = dg + n, *dw = y + n * WIDE;
        struct product product = {w, dw};
        const struct tri_tiled_input inputs[2] = {
            {tensor3(x, batch, rows, E), tensor3(dx, batch, rows, E), 1},
            {tri_tensor_make(g, TRI_F64, 2, g_dim), tri_tensor_make(dg, TRI_F64, 2, g_dim), 1}};
        struct tri_tiled op = {.rows = rows,
                               .tiles = tiles,
                               .reduction = reduction,
                               .inputs = inputs,
                               .num_inputs = 2,
                               .forward = product_forward,
                               .backward = product_backward,
                               .ctx = &product};
        if (reduction == TRI_TILED_NONE)
            op.output = (struct tri_tiled_input){tensor3(y, batch, rows, WIDE),
                                                 tensor3(dy, batch, rows, WIDE), 1};
        struct tri_loss_sum total;
        MUST(tri_tiled_forward(&op, &total));
        dw[WIDE * E] = reduction == TRI_TILED_NONE  ? 0
                       : reduction == TRI_TILED_SUM ? total.sum
                                                    : tri_loss_mean(total);
        MUST(tri_tiled_backward(&op, 0.5, &total));
        for (int i = 0; i < WIDE * E; i++)
            w[i] -= 0.1 * dw[i];
        next = dw + WIDE * E + 1;
    }
    free(x);
    free(g);
    free(dy);
    free(w);
    return all;
}

/* The gradient of x's first element by hand, and that of a mean against that of a sum. */
static void check_scale(int64_t batch, int64_t rows, int64_t tiles)
{
    double *sum = two_steps(batch, rows, tiles, TRI_TILED_SUM);
    double *mean = two_steps(batch, rows, tiles, TRI_TILED_MEAN);
    double *w = numbers(WIDE * E, 4), *g = numbers(1, 2), want = 0;
    for (int v = 0; v < WIDE; v++)
        want += 0.5 * g[0] * w[v * E];
    assert_near(&sum[0], &want, 1, 1e-14, "gradient of a sum");
    want /= (double)(batch * rows * WIDE);
    assert_near(&mean[0], &want, 1, 1e-15, "gradient of a mean");
    free(sum);
    free(mean);
    free(w);
    free(g);
}

/* R2: github.com/deepspeedai/DeepSpeed/pull/8434 */
static void uneven_tiles_compute_what_one_tile_does(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{5, 4}, {2, 4}, {7, 4}, {8, 4}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int64_t batch = 1; batch <= 2; batch++) {
            check_scale(batch, shapes[i][0], shapes[i][1]);
            for (int reduction = TRI_TILED_NONE; reduction <= TRI_TILED_MEAN; reduction++) {
                int64_t n = 2 * (batch * shapes[i][0] * (E + 1 + WIDE) + WIDE * E + 1);
                double *want =
                    two_steps(batch, shapes[i][0], 1, (enum tri_tiled_reduction)reduction);
                double *got = two_steps(batch, shapes[i][0], shapes[i][1],
                                        (enum tri_tiled_reduction)reduction);
                assert_near(got, want, n, 1e-14, "two steps in tiles");
                free(want);
                free(got);
            }
        }
}

/* R3: github.com/deepspeedai/DeepSpeed/pull/8587 */
static void masked_tiles_do_not_change_the_scale_of_gradients(void **state)
{
    (void)state;
    static const int32_t labels[][8] = {{1, -100, 3, 4, 5, 0, 1, 2},    /* partly */
                                        {-100, -100, 3, 4, 5, 0, 1, 2}, /* a whole tile */
                                        {-100, -100, -100, -100, -100, -100, -100, 2}};
    struct tri_device *device = exact_device();
    double *x = numbers(8 * E, 1), *w = numbers(V * E, 2);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        double dx[2][8 * E], dw[2][V * E] = {{0}};
        struct tri_loss_sum loss[2];
        for (int tiled = 0; tiled < 2; tiled++) {
            struct tri_fused_loss op = {.weight = tensor2(w, V, E),
                                        .d_weight = tensor2(dw[tiled], V, E),
                                        .max_rows = tiled ? 2 : 8};
            double upstream = 1 / (double)tri_count_trained(labels[i], 8);
            MUST(tri_fused_loss_backward(device, &op, upstream, tensor2(dx[tiled], 8, E),
                                         tensor2(x, 8, E), labels[i], &loss[tiled]));
        }
        assert_near(dx[1], dx[0], 8 * E, 1e-15, "dx");
        assert_near(dw[1], dw[0], V * E, 1e-15, "dw");
        assert_int_equal(loss[1].count, loss[0].count);
        assert_true(isfinite(tri_loss_mean(loss[1])));
    }
    free(x);
    free(w);
    tri_device_close(device);
}

/* R11: github.com/deepspeedai/DeepSpeed/pull/8348 and /8362 */
static void transposed_tensors_give_the_same_gradients(void **state)
{
    (void)state;
    enum { ROWS = 5, F = 7 };
    struct tri_device *device = exact_device();
    double *x = numbers(ROWS * E, 1), *dy = numbers(ROWS * E, 2), *w = numbers(V * E, 5);
    double *in_w = numbers(F * E, 3), *out_w = numbers(E * F, 4);
    double *xt = transpose(x, ROWS, E), *dyt = transpose(dy, ROWS, E);
    const int32_t labels[ROWS] = {0, 1, 2, 3, 4};
    double dx[4][ROWS * E], d_in[2][F * E] = {{0}}, d_out[2][E * F] = {{0}}, dw[2][V * E] = {{0}};
    for (int t = 0; t < 2; t++) {
        struct tri_tensor x_in = t ? transposed(xt, ROWS, E) : tensor2(x, ROWS, E);
        struct tri_tiled_mlp mlp = {.activation = TRI_ACT_GELU,
                                    .tiles = 2,
                                    .in_w = tensor2(in_w, F, E),
                                    .out_w = tensor2(out_w, E, F),
                                    .d_in_w = tensor2(d_in[t], F, E),
                                    .d_out_w = tensor2(d_out[t], E, F)};
        struct tri_fused_loss loss = {
            .weight = tensor2(w, V, E), .d_weight = tensor2(dw[t], V, E), .max_rows = 3};
        MUST(tri_tiled_mlp_backward(device, &mlp, tensor2(dx[t], ROWS, E),
                                    t ? transposed(dyt, ROWS, E) : tensor2(dy, ROWS, E), x_in));
        MUST(tri_fused_loss_backward(device, &loss, 0.25, tensor2(dx[2 + t], ROWS, E), x_in, labels,
                                     NULL));
    }
    assert_memory_equal(dx[1], dx[0], sizeof dx[0]);
    assert_memory_equal(dx[3], dx[2], sizeof dx[0]);
    assert_memory_equal(d_in[1], d_in[0], sizeof d_in[0]);
    assert_memory_equal(d_out[1], d_out[0], sizeof d_out[0]);
    assert_memory_equal(dw[1], dw[0], sizeof dw[0]);
    double *all[] = {x, dy, w, in_w, out_w, xt, dyt};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    tri_device_close(device);
}

/* A layer that hands its gradient to a reducer as soon as it is complete. */
struct layer {
    struct product product;
    struct tri_comm *comm;
    int handed_over;
    enum tri_status st;
};

static enum tri_status layer_forward(void *ctx, const struct tri_tile *tile,
                                     struct tri_loss_sum *total)
{
    return product_forward(&((struct layer *)ctx)->product, tile, total);
}

static enum tri_status layer_backward(void *ctx, const struct tri_tile *tile)
{
    return product_backward(&((struct layer *)ctx)->product, tile);
}

static void layer_done(void *ctx)
{
    struct layer *l = ctx;
    l->handed_over++;
    l->st = tri_comm_sum_double(l->comm, l->product.dw, WIDE * E);
}

static enum tri_status two_layers(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    enum { ROWS = 9 };
    int rank = tri_comm_rank(world);
    double *w = numbers(WIDE * E, 1), *want = zeros(WIDE * E), dx[ROWS * E], dg[ROWS];
    static const int64_t g_dim[] = {1, ROWS};
    for (int l = 1; l >= 0; l--) { /* from the top, as in a backward */
        double sum[WIDE * E] = {0};
        struct layer layer = {.product = {w, sum}, .comm = world};
        /* The other rank's rows are known here: what the sum over both must be. */
        for (int r = 0; r < 2; r++) {
            double *x = numbers(ROWS * E, 10 * l + r), *g = numbers(ROWS, 20 * l + r);
            const struct tri_tiled_input inputs[2] = {
                {tensor3(x, 1, ROWS, E), tensor3(dx, 1, ROWS, E), 1},
                {tri_tensor_make(g, TRI_F64, 2, g_dim), tri_tensor_make(dg, TRI_F64, 2, g_dim), 1}};
            struct tri_tiled op = {.rows = ROWS,
                                   .tiles = 4,
                                   .reduction = TRI_TILED_SUM,
                                   .inputs = inputs,
                                   .num_inputs = 2,
                                   .forward = layer_forward,
                                   .backward = layer_backward,
                                   .ctx = &layer};
            struct tri_loss_sum total;
            struct layer both = {.product = {w, want}};
            op.ctx = &both;
            TRI_TRY(tri_tiled_backward(&op, 1, NULL));
            if (r == rank) {
                op.ctx = &layer;
                op.done = layer_done;
                TRI_TRY(tri_tiled_forward(&op, &total));
                CHECK(layer.handed_over == 0);
                TRI_TRY(tri_tiled_backward(&op, 1, &total));
            }
            free(x);
            free(g);
        }
        TRI_TRY(layer.st);
        CHECK(layer.handed_over == 1);
        for (int i = 0; i < WIDE * E; i++)
            CHECK(fabs(sum[i] - want[i]) <= 1e-13);
        memset(want, 0, WIDE * E * sizeof *want);
    }
    free(w);
    free(want);
    return TRI_OK;
}

/* R12: github.com/huggingface/kernels-community/issues/1081 */
static void a_gradient_is_handed_over_once(void **state)
{
    (void)state;
    run_ranks(2, two_layers, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_of_two_shards_gives_each_half),
        cmocka_unit_test(uneven_tiles_compute_what_one_tile_does),
        cmocka_unit_test(masked_tiles_do_not_change_the_scale_of_gradients),
        cmocka_unit_test(a_shard_without_trained_tokens_is_zero_not_nan),
        cmocka_unit_test(rows_of_a_batch_keep_their_places),
        cmocka_unit_test(the_same_stream_on_all_ranks_is_an_error),
        cmocka_unit_test(a_second_epoch_is_as_long_as_the_first),
        cmocka_unit_test(the_gradient_norm_does_not_depend_on_the_stage),
        cmocka_unit_test(transposed_tensors_give_the_same_gradients),
        cmocka_unit_test(a_gradient_is_handed_over_once),
        cmocka_unit_test(a_step_in_bfloat16_without_zero_completes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
