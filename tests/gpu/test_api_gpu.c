/* The public interface on a card: memory and a stream of the caller, against the same calls on the
 * CPU in float32. Everything is queued on one stream, so only the last copy is waited for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "gpu/card.h"
#include "trireme/trireme.h"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != TRI_OK)                                                                      \
            fail_msg("line %d: %s", __LINE__, tri_error_text());                                   \
    } while (0)

#define CUDA(call) assert_int_equal(call, cudaSuccess)

enum { B = 2, S = 70, HQ = 4, HK = 2, D = 32, E = 32, F = 64, V = 100, ROWS = B * S };

/* Arrays of one run: in host memory, or copies of them on the card. */
enum array {
    Q,
    K,
    VALUES,
    DOUT,
    X,
    IN_W,
    OUT_W,
    HEAD,
    NUM_INPUTS,
    O = NUM_INPUTS,
    DQ,
    DK,
    DV,
    Y,
    DX,
    D_IN_W,
    D_OUT_W,
    D_HEAD,
    D_HIDDEN,
    NUM_ARRAYS
};

static const int64_t sizes[NUM_ARRAYS] = {
    [Q] = ROWS * HQ * D, [K] = ROWS * HK * D,   [VALUES] = ROWS * HK * D, [DOUT] = ROWS * HQ * D,
    [X] = ROWS * E,      [IN_W] = 2 * F * E,    [OUT_W] = E * F,          [HEAD] = V * E,
    [O] = ROWS * HQ * D, [DQ] = ROWS * HQ * D,  [DK] = ROWS * HK * D,     [DV] = ROWS * HK * D,
    [Y] = ROWS * E,      [DX] = ROWS * E,       [D_IN_W] = 2 * F * E,     [D_OUT_W] = E * F,
    [D_HEAD] = V * E,    [D_HIDDEN] = ROWS * E,
};

static const char *const names[NUM_ARRAYS] = {
    [O] = "o",           [DQ] = "dq",
    [DK] = "dk",         [DV] = "dv",
    [Y] = "y",           [DX] = "dx",
    [D_IN_W] = "d_in_w", [D_OUT_W] = "d_out_w",
    [D_HEAD] = "d_head", [D_HIDDEN] = "d hidden",
};

/* Sequence first, as (S, B, H, D). */
static struct tri_tensor heads(float *data, int64_t h)
{
    const int64_t dim[] = {S, B, h, D};
    return tri_tensor_swap(tri_tensor_make(data, TRI_F32, 4, dim), 0, 1);
}

static struct tri_tensor matrix(float *data, int64_t rows, int64_t cols)
{
    const int64_t dim[] = {rows, cols};
    return tri_tensor_make(data, TRI_F32, 2, dim);
}

static const struct tri_sp_shape shape = {B, S, 32};
static const struct tri_sp_attention attention = {
    .num_heads = HQ, .num_kv_heads = HK, .head_dim = D, .window = 20};

static struct tri_sp_batch *open_batch(struct tri_device *device)
{
    static const int64_t lengths[] = {25, S - 25, S};
    int64_t positions[ROWS];
    struct tri_sp_batch *batch = NULL;
    tri_sp_positions(lengths, 3, positions);
    MUST(tri_sp_batch_open(device, NULL, &shape, S, positions, &batch));
    return batch;
}

static void compute(struct tri_device *device, struct tri_sp_batch *batch, float *const *a,
                    void *kept, const int32_t *labels, struct tri_loss_sum *loss)
{
    MUST(tri_sp_attention_forward(batch, &attention, heads(a[O], HQ), kept, heads(a[Q], HQ),
                                  heads(a[K], HK), heads(a[VALUES], HK)));
    MUST(tri_sp_attention_backward(batch, &attention, heads(a[DQ], HQ), heads(a[DK], HK),
                                   heads(a[DV], HK), heads(a[DOUT], HQ), kept));
    const struct tri_tiled_mlp mlp = {.activation = TRI_ACT_SILU,
                                      .tiles = 3,
                                      .in_w = matrix(a[IN_W], 2 * F, E),
                                      .out_w = matrix(a[OUT_W], E, F),
                                      .d_in_w = matrix(a[D_IN_W], 2 * F, E),
                                      .d_out_w = matrix(a[D_OUT_W], E, F)};
    MUST(tri_tiled_mlp_forward(device, &mlp, matrix(a[Y], ROWS, E), matrix(a[X], ROWS, E)));
    MUST(tri_tiled_mlp_backward(device, &mlp, matrix(a[DX], ROWS, E), matrix(a[Y], ROWS, E),
                                matrix(a[X], ROWS, E)));
    const struct tri_fused_loss head = {
        .weight = matrix(a[HEAD], V, E), .d_weight = matrix(a[D_HEAD], V, E), .max_rows = 50};
    MUST(tri_fused_loss_backward(device, &head, 1.0 / ROWS, matrix(a[D_HIDDEN], ROWS, E),
                                 matrix(a[Y], ROWS, E), labels, loss));
}

static void the_card_computes_what_the_cpu_does(void **state)
{
    (void)state;
    float *host[NUM_ARRAYS], *card[NUM_ARRAYS], *back[NUM_ARRAYS];
    int32_t labels[ROWS], *card_labels;
    for (int i = 0; i < NUM_ARRAYS; i++) {
        host[i] = calloc((size_t)sizes[i], sizeof(float));
        back[i] = calloc((size_t)sizes[i], sizeof(float));
        for (int64_t e = 0; e < sizes[i] && i < NUM_INPUTS; e++)
            host[i][e] = sinf(0.9f * (float)(i + 1) + 1.7f * (float)(e % 1009));
    }
    for (int r = 0; r < ROWS; r++)
        labels[r] = r % 4 == 1 ? -100 : r % V;

    struct tri_device *cpu, *gpu;
    struct tri_loss_sum loss[2];
    MUST(tri_device_open(NULL, &cpu));
    struct tri_sp_batch *batch = open_batch(cpu);
    size_t bytes = tri_sp_attention_kept_bytes(batch, &attention, TRI_F32);
    void *kept = aligned_alloc(64, (bytes + 63) / 64 * 64);

    cudaStream_t stream;
    void *card_kept;
    CUDA(cudaStreamCreate(&stream));
    const struct tri_device_config config = {.backend = "cuda", .cuda_stream = stream};
    MUST(tri_device_open(&config, &gpu));
    CUDA(cudaMalloc(&card_kept, bytes));
    CUDA(cudaMalloc((void **)&card_labels, sizeof labels));
    CUDA(cudaMemcpyAsync(card_labels, labels, sizeof labels, cudaMemcpyHostToDevice, stream));
    for (int i = 0; i < NUM_ARRAYS; i++) {
        size_t n = (size_t)sizes[i] * sizeof(float);
        CUDA(cudaMalloc((void **)&card[i], n));
        CUDA(cudaMemcpyAsync(card[i], host[i], n, cudaMemcpyHostToDevice, stream));
    }
    struct tri_sp_batch *card_batch = open_batch(gpu);
    compute(gpu, card_batch, card, card_kept, card_labels, &loss[1]);
    for (int i = 0; i < NUM_ARRAYS; i++)
        CUDA(cudaMemcpyAsync(back[i], card[i], (size_t)sizes[i] * sizeof(float),
                             cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    compute(cpu, batch, host, kept, labels, &loss[0]);

    assert_int_equal(loss[1].count, loss[0].count);
    assert_true(fabs(loss[1].sum - loss[0].sum) <= 1e-4 * loss[0].sum);
    for (int i = NUM_INPUTS; i < NUM_ARRAYS; i++) {
        double error = 0, norm = 0;
        for (int64_t e = 0; e < sizes[i]; e++) {
            error += pow((double)back[i][e] - (double)host[i][e], 2);
            norm += pow((double)host[i][e], 2);
        }
        /* Both are float32 sums of some hundred terms, in other orders. */
        if (!(sqrt(error) <= 1e-4 * sqrt(norm)) || norm == 0)
            fail_msg("%s: off by %.3g of %.3g", names[i], sqrt(error), sqrt(norm));
    }
    tri_sp_batch_close(card_batch);
    tri_sp_batch_close(batch);
    tri_device_close(gpu);
    tri_device_close(cpu);
    CUDA(cudaStreamDestroy(stream)); /* it was only lent */
    for (int i = 0; i < NUM_ARRAYS; i++) {
        CUDA(cudaFree(card[i]));
        free(host[i]);
        free(back[i]);
    }
    CUDA(cudaFree(card_kept));
    CUDA(cudaFree(card_labels));
    free(kept);
}

int main(void)
{
    tri_test_need_card();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_card_computes_what_the_cpu_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
