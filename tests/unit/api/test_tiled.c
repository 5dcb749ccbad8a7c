/* Tiled compute, the tiled MLP and the fused loss against textbook versions in float64. */
#include "unit/api/dense.h"

/* ---- any function of rows ----------------------------------------------------------------------
 */

/* Counts rows and calls. */
struct counter {
    int64_t rows, tiles, done, shortest, longest;
};

static enum tri_status count_forward(void *ctx, const struct tri_tile *tile,
                                     struct tri_loss_sum *total)
{
    struct counter *c = ctx;
    if (tile->index != c->tiles || tile->begin != c->rows)
        return TRI_INTERNAL;
    c->shortest = tile->count < c->shortest ? tile->count : c->shortest;
    c->longest = tile->count > c->longest ? tile->count : c->longest;
    c->rows += tile->count;
    c->tiles++;
    total->count += tile->count;
    return TRI_OK;
}

static enum tri_status count_backward(void *ctx, const struct tri_tile *tile)
{
    ((struct counter *)ctx)->rows += tile->count;
    return TRI_OK;
}

static void count_done(void *ctx)
{
    ((struct counter *)ctx)->done++;
}

static void there_are_exactly_as_many_tiles_as_asked_for(void **state)
{
    (void)state;
    for (int64_t rows = 0; rows <= 64; rows++)
        for (int64_t tiles = 1; tiles <= 16; tiles++) {
            struct counter c = {.shortest = INT64_MAX};
            struct tri_loss_sum total;
            struct tri_tiled op = {.rows = rows,
                                   .tiles = tiles,
                                   .reduction = TRI_TILED_SUM,
                                   .forward = count_forward,
                                   .backward = count_backward,
                                   .done = count_done,
                                   .ctx = &c};
            MUST(tri_tiled_forward(&op, &total));
            assert_int_equal(c.tiles, tiles);
            assert_int_equal(c.rows, rows);
            assert_in_range(c.longest - c.shortest, 0, 1);
            assert_int_equal(total.count, rows);
            assert_int_equal(c.done, 0);
            MUST(tri_tiled_backward(&op, 1, &total));
            assert_int_equal(c.rows, 2 * rows);
            assert_int_equal(c.done, 1); /* once a backward, after the last tile */
        }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct tri_loss_sum total;
    double x[12] = {0};
    struct tri_tiled_input input = {.value = tensor2(x, 3, 4), .dim = 1};
    struct counter c = {0};
    struct tri_tiled op = {.rows = 3,
                           .tiles = 2,
                           .reduction = TRI_TILED_SUM,
                           .inputs = &input,
                           .num_inputs = 1,
                           .forward = count_forward,
                           .ctx = &c};
    assert_int_equal(tri_tiled_forward(&op, &total), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "does not have the 3 rows"));
    input.dim = 0;
    input.grad = tensor2(x, 3, 3);
    assert_int_equal(tri_tiled_forward(&op, &total), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "gradient has another shape"));
    input.grad = tri_tensor_none();
    op.tiles = 0;
    assert_int_equal(tri_tiled_forward(&op, &total), TRI_INVALID);
    op.tiles = 1;
    op.reduction = (enum tri_tiled_reduction)7;
    assert_int_equal(tri_tiled_forward(&op, &total), TRI_INVALID);
    assert_int_equal(c.tiles, 0); /* before any compute */
}

/* ---- MLP ---------------------------------------------------------------------------------------
 */

enum { E = 6, F = 10, MOST = 250 };

struct mlp_case {
    int64_t batch, tokens, tiles;
    bool bias, strided;
};

static void compare_mlp(struct tri_device *device, const struct mlp_case *c)
{
    int64_t n = c->batch * c->tokens;
    double *x = numbers(n * E, 1), *dy = numbers(n * E, 2), *in_w = numbers(2 * F * E, 3);
    double *in_b = numbers(2 * F, 4), *out_w = numbers(E * F, 5), *out_b = numbers(E, 6);
    double *w[6], *g[6];
    const int64_t sizes[6] = {n * E, n * E, 2 * F * E, 2 * F, E * F, E};
    for (int i = 0; i < 6; i++) { /* y, dx, d_in_w, d_in_b, d_out_w, d_out_b */
        w[i] = zeros(sizes[i]);
        g[i] = zeros(sizes[i]);
    }
    struct dense_mlp m = {n,     E,
                          F,     x,
                          in_w,  c->bias ? in_b : NULL,
                          out_w, c->bias ? out_b : NULL,
                          dy,    w[0],
                          w[1],  w[2],
                          w[3],  w[4],
                          w[5]};
    for (int64_t r = 0; r < n; r++)
        dense_mlp_row(&m, r);
    double *xt = transpose(x, n, E), *dyt = transpose(dy, n, E);
    struct tri_tensor x_in = c->strided ? transposed(xt, n, E) : tensor3(x, c->batch, c->tokens, E);
    struct tri_tensor dy_in =
        c->strided ? transposed(dyt, n, E) : tensor3(dy, c->batch, c->tokens, E);
    struct tri_tensor y =
        c->strided ? transposed(g[0], n, E) : tensor3(g[0], c->batch, c->tokens, E);
    struct tri_tensor dx =
        c->strided ? transposed(g[1], n, E) : tensor3(g[1], c->batch, c->tokens, E);
    struct tri_tiled_mlp op = {.activation = TRI_ACT_SILU,
                               .tiles = c->tiles,
                               .in_w = tensor2(in_w, 2 * F, E),
                               .out_w = tensor2(out_w, E, F),
                               .d_in_w = tensor2(g[2], 2 * F, E),
                               .d_out_w = tensor2(g[4], E, F)};
    const int64_t in_dim[] = {2 * F}, out_dim[] = {E};
    if (c->bias) {
        op.in_b = tri_tensor_make(in_b, TRI_F64, 1, in_dim);
        op.out_b = tri_tensor_make(out_b, TRI_F64, 1, out_dim);
        op.d_in_b = tri_tensor_make(g[3], TRI_F64, 1, in_dim);
        op.d_out_b = tri_tensor_make(g[5], TRI_F64, 1, out_dim);
    }
    MUST(tri_tiled_mlp_forward(device, &op, y, x_in));
    MUST(tri_tiled_mlp_backward(device, &op, dx, dy_in, x_in));
    double *got[2] = {c->strided ? transpose(g[0], E, n) : NULL,
                      c->strided ? transpose(g[1], E, n) : NULL};
    assert_near(c->strided ? got[0] : g[0], w[0], n * E, 1e-13, "y");
    assert_near(c->strided ? got[1] : g[1], w[1], n * E, 1e-13, "dx");
    assert_near(g[2], w[2], 2 * F * E, 1e-13, "d_in_w");
    assert_near(g[4], w[4], E * F, 1e-13, "d_out_w");
    if (c->bias) {
        assert_near(g[3], w[3], 2 * F, 1e-13, "d_in_b");
        assert_near(g[5], w[5], E, 1e-13, "d_out_b");
    }
    /* Frozen weights get no gradient, and an absent dx none either; the rest is as before. */
    double *again = zeros(n * E);
    op.d_in_w = op.d_in_b = op.d_out_w = op.d_out_b = tri_tensor_none();
    MUST(tri_tiled_mlp_backward(device, &op, tensor2(again, n, E), dy_in, x_in));
    assert_near(again, w[1], n * E, 1e-13, "dx of frozen weights");
    assert_near(g[2], w[2], 2 * F * E, 1e-13, "frozen d_in_w");
    memset(g[4], 0, (size_t)(E * F) * sizeof(double));
    op.d_out_w = tensor2(g[4], E, F);
    MUST(tri_tiled_mlp_backward(device, &op, tri_tensor_none(), dy_in, x_in));
    assert_near(g[4], w[4], E * F, 1e-13, "d_out_w without dx");
    for (int i = 0; i < 6; i++) {
        free(w[i]);
        free(g[i]);
    }
    double *rest[] = {x, dy, in_w, in_b, out_w, out_b, xt, dyt, got[0], got[1], again};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        free(rest[i]);
}

static void mlp_in_tiles_is_the_mlp(void **state)
{
    (void)state;
    static const struct mlp_case cases[] = {
        {1, 125, 4, false, false}, {2, 125, 4, true, false}, {1, 5, 4, true, false},
        {1, 9, 4, false, true},    {2, 9, 4, true, true},    {1, 3, 8, true, false},
        {2, 7, 1, true, true},     {1, 40, 0, true, false},
    };
    struct tri_device *device = exact_device();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        compare_mlp(device, &cases[i]);
    tri_device_close(device);
}

static void mlp_refuses_what_does_not_fit(void **state)
{
    (void)state;
    struct tri_device *device = exact_device();
    double x[4 * E] = {0}, in_w[2 * F * E] = {0}, out_w[E * F] = {0}, b[2 * F] = {0};
    const int64_t b_dim[] = {2 * F};
    struct tri_tiled_mlp op = {.in_w = tensor2(in_w, 2 * F - 1, E), .out_w = tensor2(out_w, E, F)};
    assert_int_equal(tri_tiled_mlp_forward(device, &op, tensor2(x, 4, E), tensor2(x, 4, E)),
                     TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "in_w has 19 rows: 10 as out_w has columns"));
    op.in_w = tensor2(in_w, 2 * F, E);
    assert_int_equal(tri_tiled_mlp_forward(device, &op, tensor2(x, 4, E), tensor2(x, 3, E)),
                     TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "y is (4, 6) float64, here it must be (3, 6)"));
    op.in_b = op.d_in_b = tri_tensor_make(b, TRI_F64, 1, b_dim);
    assert_int_equal(
        tri_tiled_mlp_backward(device, &op, tri_tensor_none(), tensor2(x, 4, E), tensor2(x, 4, E)),
        TRI_UNSUPPORTED);
    op.d_in_b = tri_tensor_none();
    op.d_in_w = tensor2(in_w, E, 2 * F);
    assert_int_equal(
        tri_tiled_mlp_backward(device, &op, tri_tensor_none(), tensor2(x, 4, E), tensor2(x, 4, E)),
        TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "d_in_w: the gradient must have"));
    tri_device_close(device);
}

/* ---- loss --------------------------------------------------------------------------------------
 */

enum { V = 11 };

enum masks { NO_MASK, SOME_MASKED, TILE_MASKED, ALL_MASKED };

static void compare_loss(struct tri_device *device, int64_t rows, int64_t max_rows,
                         enum masks masks, double upstream, bool strided)
{
    double *x = numbers(rows * E, 7), *w = numbers(V * E, 8);
    double *dx = zeros(rows * E), *dw = zeros(V * E), *gx = zeros(rows * E), *gw = zeros(V * E);
    int32_t labels[64];
    for (int64_t r = 0; r < rows; r++) {
        bool hidden = (masks == SOME_MASKED && r % 3 == 1) ||
                      (masks == TILE_MASKED && r < max_rows) || masks == ALL_MASKED;
        labels[r] = hidden ? -100 : (int32_t)(r * 5 % V);
    }
    struct dense_loss want = {
        .rows = rows, .e = E, .v = V, .x = x, .w = w, .labels = labels, .dx = dx, .dw = dw};
    want.upstream = upstream;
    for (int64_t r = 0; r < rows; r++)
        dense_loss_row(&want, r);
    double *xt = transpose(x, rows, E);
    struct tri_tensor x_in = strided ? transposed(xt, rows, E) : tensor2(x, rows, E);
    struct tri_tensor dx_out = strided ? transposed(gx, rows, E) : tensor2(gx, rows, E);
    struct tri_fused_loss op = {.weight = tensor2(w, V, E), .max_rows = max_rows};
    struct tri_loss_sum loss;
    /* Forward writes nothing but the loss. */
    op.d_weight = tensor2(gw, V, E);
    MUST(tri_fused_loss_forward(device, &op, x_in, labels, &loss));
    assert_int_equal(loss.count, want.count);
    assert_near(&loss.sum, &want.sum, 1, 1e-13, "loss");
    for (int64_t i = 0; i < V * E; i++)
        assert_true(gw[i] == 0);
    /* Both gradients have the real upstream gradient in them; and a second run gives the same. */
    MUST(tri_fused_loss_backward(device, &op, upstream, dx_out, x_in, labels, &loss));
    assert_near(&loss.sum, &want.sum, 1, 1e-13, "loss of the backward");
    memset(gw, 0, (size_t)(V * E) * sizeof *gw);
    MUST(tri_fused_loss_backward(device, &op, upstream, dx_out, x_in, labels, NULL));
    double *got = strided ? transpose(gx, E, rows) : NULL;
    assert_near(strided ? got : gx, dx, rows * E, 1e-13 * fmax(1, upstream), "dx");
    assert_near(gw, dw, V * E, 1e-13 * fmax(1, upstream), "dw");
    if (masks == ALL_MASKED)
        for (int64_t i = 0; i < rows * E; i++)
            assert_true(gx[i] == 0 && loss.sum == 0);
    /* Head alone, and frozen head. */
    memset(gw, 0, (size_t)(V * E) * sizeof *gw);
    MUST(tri_fused_loss_backward(device, &op, upstream, tri_tensor_none(), x_in, labels, NULL));
    assert_near(gw, dw, V * E, 1e-13 * fmax(1, upstream), "dw alone");
    op.d_weight = tri_tensor_none();
    MUST(tri_fused_loss_backward(device, &op, upstream, dx_out, x_in, labels, NULL));
    assert_near(gw, dw, V * E, 1e-13 * fmax(1, upstream), "frozen dw");
    double *all[] = {x, w, dx, dw, gx, gw, xt, got};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void fused_loss_scales_both_gradients(void **state)
{
    (void)state;
    static const double upstreams[] = {1, 1.0 / 8, 0.25, 1024};
    static const int64_t shapes[][2] = {{8, 8}, {10, 3}, {5, 2}, {40, 7}, {1, 0}, {0, 1}};
    struct tri_device *device = exact_device();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int masks = NO_MASK; masks <= ALL_MASKED; masks++)
            compare_loss(device, shapes[s][0], shapes[s][1], (enum masks)masks,
                         upstreams[(s + (size_t)masks) % 4], s % 2 == 1);
    tri_device_close(device);
}

static void labels_beyond_the_weight_are_refused(void **state)
{
    (void)state;
    struct tri_device *device = exact_device();
    double x[3 * E] = {0}, w[V * E] = {0};
    const int32_t labels[3] = {1, -100, V};
    const struct tri_fused_loss op = {.weight = tensor2(w, V, E)};
    struct tri_loss_sum loss;
    assert_int_equal(tri_fused_loss_forward(device, &op, tensor2(x, 3, E), labels, &loss),
                     TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "label 11 of row 2: weight has 11 rows"));
    assert_int_equal(
        tri_fused_loss_backward(device, &op, 1, tri_tensor_none(), tensor2(x, 3, E), labels, NULL),
        TRI_INVALID);
    tri_device_close(device);
}

static void full_logits_never_exist(void **state)
{
    (void)state;
    enum { ROWS = 2000, WORDS = 3000, WIDTH = 4 };
    struct tri_device *device;
    struct tri_device_config config = {.threads = 1, .scratch_bytes = (size_t)1 << 28};
    MUST(tri_device_open(&config, &device));
    float *x = calloc(2 * ROWS * WIDTH, sizeof *x);
    float *w = calloc(2 * WORDS * WIDTH, sizeof *w);
    int32_t *labels = calloc(ROWS, sizeof *labels);
    const int64_t x_dim[] = {ROWS, WIDTH}, w_dim[] = {WORDS, WIDTH};
    struct tri_fused_loss op = {.weight = tri_tensor_make(w, TRI_F32, 2, w_dim),
                                .d_weight = tri_tensor_make(w + WORDS * WIDTH, TRI_F32, 2, w_dim),
                                .max_rows = 50};
    struct tri_loss_sum loss;
    MUST(tri_fused_loss_backward(device, &op, 1.0 / ROWS,
                                 tri_tensor_make(x + ROWS * WIDTH, TRI_F32, 2, x_dim),
                                 tri_tensor_make(x, TRI_F32, 2, x_dim), labels, &loss));
    assert_int_equal(loss.count, ROWS);
    assert_true(fabs(loss.sum / ROWS - log(WORDS)) < 1e-5);
    /* One tile, not 24 MB of logits. */
    assert_in_range(tri_device_scratch_peak(device), 50 * WORDS * 4, 60 * WORDS * 4);
    tri_device_close(device);
    free(x);
    free(w);
    free(labels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_exactly_as_many_tiles_as_asked_for),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(mlp_in_tiles_is_the_mlp),
        cmocka_unit_test(mlp_refuses_what_does_not_fit),
        cmocka_unit_test(fused_loss_scales_both_gradients),
        cmocka_unit_test(labels_beyond_the_weight_are_refused),
        cmocka_unit_test(full_logits_never_exist),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
