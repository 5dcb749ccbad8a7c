/* Mistakes of tiles that others made and reported, as small cases: each names the thread it comes
 * from. */
#include "ranks.h"
#include "unit/api/dense.h"

#include "comm/comm.h"

enum { E = 4, V = 6 }; /* width, vocabulary */

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
        cmocka_unit_test(uneven_tiles_compute_what_one_tile_does),
        cmocka_unit_test(masked_tiles_do_not_change_the_scale_of_gradients),
        cmocka_unit_test(transposed_tensors_give_the_same_gradients),
        cmocka_unit_test(a_gradient_is_handed_over_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
