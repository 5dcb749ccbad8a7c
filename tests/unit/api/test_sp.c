/* The public exchange and attention: layouts, strides and batches of a caller, against what one
 * rank computes, in float64; and what is refused, by all ranks at once. Only public headers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "trireme/trireme.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return wrong(__LINE__);                                                                \
    } while (0)
#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum tri_status st_ = (call);                                                              \
        if (st_ != TRI_OK)                                                                         \
            return st_;                                                                            \
    } while (0)

static _Thread_local int wrong_line;

static enum tri_status wrong(int line)
{
    wrong_line = line;
    fprintf(stderr, "line %d\n", line);
    return TRI_INTERNAL;
}

static enum tri_status open_device(const char *kernels, struct tri_device **out)
{
    struct tri_device_config config = {
        .cpu_kernels = kernels, .threads = 1, .scratch_bytes = (size_t)1 << 28};
    return tri_device_open(&config, out);
}

/* How a (B, T, H, D) tensor lies in memory. */
enum memory { BATCH_FIRST, SEQUENCE_FIRST, HEADS_FIRST, SPREAD, NUM_MEMORIES };

static struct tri_tensor make(enum tri_dtype dtype, double *memory, enum memory how, int64_t b,
                              int64_t t, int64_t h, int64_t d)
{
    if (how == SEQUENCE_FIRST) {
        const int64_t dim[] = {t, b, h, d};
        return tri_tensor_swap(tri_tensor_make(memory, dtype, 4, dim), 0, 1);
    }
    if (how == HEADS_FIRST) {
        const int64_t dim[] = {b, h, t, d};
        return tri_tensor_swap(tri_tensor_make(memory, dtype, 4, dim), 1, 2);
    }
    if (how == SPREAD) { /* every third element of memory, and the head size outermost */
        const int64_t dim[] = {d, t, h, b};
        struct tri_tensor x = tri_tensor_make(memory, dtype, 4, dim);
        for (int i = 0; i < 4; i++)
            x.stride[i] *= 3;
        return tri_tensor_swap(x, 0, 3);
    }
    const int64_t dim[] = {b, t, h, d};
    return tri_tensor_make(memory, dtype, 4, dim);
}

static int64_t offset(const struct tri_tensor *x, int64_t b, int64_t t, int64_t h, int64_t d)
{
    return b * x->stride[0] + t * x->stride[1] + h * x->stride[2] + d * x->stride[3];
}

static double get(const struct tri_tensor *x, int64_t b, int64_t t, int64_t h, int64_t d)
{
    int64_t i = offset(x, b, t, h, d);
    return x->dtype == TRI_F64 ? ((const double *)x->data)[i] : (double)((const float *)x->data)[i];
}

static void set(const struct tri_tensor *x, int64_t b, int64_t t, int64_t h, int64_t d, double v)
{
    int64_t i = offset(x, b, t, h, d);
    if (x->dtype == TRI_F64)
        ((double *)x->data)[i] = v;
    else
        ((float *)x->data)[i] = (float)v;
}

/* Exact in float32 too. */
static double value(int64_t seed, int64_t b, int64_t t, int64_t h, int64_t d)
{
    return (double)(float)sin(0.37 * (double)(seed + 1) + 1.7 * (double)b +
                              0.9 * (double)t * (double)(h + 1) + 2.3 * (double)h +
                              0.6 * (double)d * (double)(t + 3));
}

/* Fill a local tensor of a rank with the values of the tokens it holds. */
static void fill(const struct tri_tensor *x, const struct tri_sp_shape *shape, int ranks, int rank,
                 int64_t seed)
{
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t t = 0; t < x->dim[1]; t++)
            for (int64_t h = 0; h < x->dim[2]; h++)
                for (int64_t d = 0; d < x->dim[3]; d++)
                    set(x, b, t, h, d, value(seed, b, tri_sp_token(shape, ranks, rank, t), h, d));
}

enum { D = 3, HQ = 6, HK = 2, MOST = 3 * 3 * 40 * HQ * D };

struct job {
    struct tri_sp_shape shape;
    enum memory how;
    int64_t window;
    int64_t hq, hk; /* of the attention */
    enum tri_dtype dtype;
    /* (B, S, H, D) results of all ranks: o, dq, dk, dv */
    double *result[4];
};

static enum tri_status open_batch(struct tri_comm *comm, struct tri_device *device,
                                  const struct tri_sp_shape *shape, int64_t *local,
                                  struct tri_sp_batch **out)
{
    /* Each row: documents of 7 tokens and the rest; row b has one token more in the first. */
    int64_t positions[3 * 40];
    int ranks = tri_comm_size(comm);
    int rank = tri_comm_rank(comm);
    *local = tri_sp_local_tokens(shape, ranks, rank);
    for (int64_t b = 0; b < shape->rows; b++)
        for (int64_t t = 0; t < *local; t++) {
            int64_t token = tri_sp_token(shape, ranks, rank, t);
            positions[b * *local + t] = token < 7 + b ? token : token - 7 - b;
        }
    return tri_sp_batch_open(device, comm, shape, *local, positions, out);
}

/* ---- exchange ----------------------------------------------------------------------------------
 */

static enum tri_status exchange_there_and_back(struct tri_comm *comm, struct tri_device *device,
                                               const struct job *job, double *memory)
{
    int ranks = tri_comm_size(comm);
    int rank = tri_comm_rank(comm);
    const struct tri_sp_shape *shape = &job->shape;
    int64_t local;
    struct tri_sp_batch *batch;
    struct tri_sp_heads mine;
    TRY(open_batch(comm, device, shape, &local, &batch));
    TRY(tri_sp_heads(HQ, HK, ranks, rank, &mine));
    struct tri_sp_part parts[2];
    parts[0].kind = TRI_SP_QUERY_HEADS;
    parts[0].local = make(TRI_F64, memory, job->how, shape->rows, local, HQ, D);
    parts[0].heads =
        make(TRI_F64, memory + MOST, job->how, shape->rows, shape->tokens, mine.query_count, D);
    parts[1].kind = TRI_SP_KEY_HEADS;
    parts[1].local = make(TRI_F64, memory + 2 * MOST, job->how, shape->rows, local, HK, D);
    parts[1].heads =
        make(TRI_F64, memory + 3 * MOST, job->how, shape->rows, shape->tokens, mine.key_count, D);
    fill(&parts[0].local, shape, ranks, rank, 0);
    fill(&parts[1].local, shape, ranks, rank, 1);
    TRY(tri_sp_to_heads(batch, HQ, HK, parts, 2));
    for (int k = 0; k < 2; k++)
        for (int64_t b = 0; b < shape->rows; b++)
            for (int64_t t = 0; t < shape->tokens; t++)
                for (int64_t h = 0; h < parts[k].heads.dim[2]; h++)
                    for (int64_t d = 0; d < D; d++)
                        CHECK(get(&parts[k].heads, b, t, h, d) ==
                              value(k, b, t, h + (k == 0 ? mine.query_begin : mine.key_begin), d));
    memset(memory, 0, MOST * sizeof *memory);
    TRY(tri_sp_to_sequence(batch, HQ, HK, parts, 1));
    for (int64_t b = 0; b < shape->rows; b++)
        for (int64_t t = 0; t < local; t++)
            for (int64_t h = 0; h < HQ; h++)
                for (int64_t d = 0; d < D; d++)
                    CHECK(get(&parts[0].local, b, t, h, d) ==
                          value(0, b, tri_sp_token(shape, ranks, rank, t), h, d));
    tri_sp_batch_close(batch);
    return TRI_OK;
}

static enum tri_status with_device(struct tri_comm *comm, const struct job *job,
                                   enum tri_status (*run)(struct tri_comm *, struct tri_device *,
                                                          const struct job *, double *))
{
    struct tri_device *device;
    double *memory = calloc(12 * (size_t)MOST, sizeof *memory);
    enum tri_status st = open_device(job->dtype == TRI_F32 ? "auto" : "reference", &device);
    if (st == TRI_OK) {
        st = run(comm, device, job, memory);
        tri_device_close(device);
    }
    free(memory);
    return st;
}

static enum tri_status exchange_rank(struct tri_comm *comm, void *ctx)
{
    return with_device(comm, ctx, exchange_there_and_back);
}

static void exchange_is_its_own_inverse(void **state)
{
    (void)state;
    static const struct tri_sp_shape shapes[] = {{1, 12, 0}, {2, 13, 5}, {3, 7, 0}, {2, 2, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int how = 0; how < NUM_MEMORIES; how++)
            for (int ranks = 1; ranks <= 4; ranks++) {
                struct job job = {.shape = shapes[i], .how = (enum memory)how};
                if (tri_comm_threads_run(ranks, 60, exchange_rank, &job) != TRI_OK)
                    fail_msg("shape %d, memory %d, %d ranks: %s", (int)i, how, ranks,
                             tri_error_text());
            }
}

/* ---- attention ---------------------------------------------------------------------------------
 */

static enum tri_status attend(struct tri_comm *comm, struct tri_device *device,
                              const struct job *job, double *memory)
{
    int ranks = tri_comm_size(comm);
    int rank = tri_comm_rank(comm);
    const struct tri_sp_shape *shape = &job->shape;
    struct tri_sp_attention op = {
        .num_heads = job->hq, .num_kv_heads = job->hk, .head_dim = D, .window = job->window};
    int64_t local;
    struct tri_sp_batch *batch;
    TRY(open_batch(comm, device, shape, &local, &batch));
    const int64_t heads[8] = {job->hq, job->hk, job->hk, job->hq,
                              job->hq, job->hq, job->hk, job->hk};
    struct tri_tensor x[8]; /* q, k, v, dout, then o, dq, dk, dv */
    for (int i = 0; i < 8; i++) {
        x[i] = make(job->dtype, memory + i * MOST, job->how, shape->rows, local, heads[i], D);
        if (i < 4)
            fill(&x[i], shape, ranks, rank, i);
    }
    void *kept =
        aligned_alloc(64, (tri_sp_attention_kept_bytes(batch, &op, job->dtype) + 63) / 64 * 64);
    CHECK(kept != NULL);
    TRY(tri_sp_attention_forward(batch, &op, x[4], NULL, x[0], x[1], x[2]));
    double first = local > 0 ? get(&x[4], 0, local - 1, job->hq - 1, D - 1) : 0;
    TRY(tri_sp_attention_forward(batch, &op, x[4], kept, x[0], x[1], x[2]));
    CHECK(local == 0 || first == get(&x[4], 0, local - 1, job->hq - 1, D - 1));
    TRY(tri_sp_attention_backward(batch, &op, x[5], x[6], x[7], x[3], kept));
    TRY(tri_sp_attention_backward(batch, &op, x[5], x[6], x[7], x[3], kept)); /* again: the same */
    free(kept);
    for (int i = 0; i < 4; i++)
        for (int64_t b = 0; b < shape->rows; b++)
            for (int64_t t = 0; t < local; t++)
                for (int64_t h = 0; h < heads[4 + i]; h++)
                    for (int64_t d = 0; d < D; d++) {
                        int64_t token = tri_sp_token(shape, ranks, rank, t);
                        job->result[i][((b * shape->tokens + token) * job->hq + h) * D + d] =
                            get(&x[4 + i], b, t, h, d);
                    }
    tri_sp_batch_close(batch);
    return TRI_OK;
}

static enum tri_status attend_rank(struct tri_comm *comm, void *ctx)
{
    return with_device(comm, ctx, attend);
}

/* The textbook: softmax over what a query sees, and its gradient by hand. */
static void dense(const struct job *job, double *o, double *dq, double *dk, double *dv)
{
    const struct tri_sp_shape *shape = &job->shape;
    int64_t s = shape->tokens;
    double scale = 1 / sqrt((double)D);
    double p[40], dp[40];
    for (int64_t b = 0; b < shape->rows; b++)
        for (int64_t h = 0; h < job->hq; h++)
            for (int64_t i = 0; i < s; i++) {
                int64_t hk = h / (job->hq / job->hk);
                int64_t begin = i < 7 + b ? 0 : 7 + b;
                if (job->window > 0 && i - job->window + 1 > begin)
                    begin = i - job->window + 1;
                double sum = 0;
                for (int64_t j = begin; j <= i; j++) {
                    double dot = 0;
                    for (int64_t d = 0; d < D; d++)
                        dot += value(0, b, i, h, d) * value(1, b, j, hk, d);
                    sum += p[j] = exp(scale * dot);
                }
                double mean = 0;
                for (int64_t j = begin; j <= i; j++) {
                    p[j] /= sum;
                    dp[j] = 0;
                    for (int64_t d = 0; d < D; d++) {
                        o[((b * s + i) * job->hq + h) * D + d] += p[j] * value(2, b, j, hk, d);
                        dp[j] += value(3, b, i, h, d) * value(2, b, j, hk, d);
                        dv[((b * s + j) * job->hq + hk) * D + d] += p[j] * value(3, b, i, h, d);
                    }
                    mean += p[j] * dp[j];
                }
                for (int64_t j = begin; j <= i; j++)
                    for (int64_t d = 0; d < D; d++) {
                        double ds = scale * p[j] * (dp[j] - mean);
                        dq[((b * s + i) * job->hq + h) * D + d] += ds * value(1, b, j, hk, d);
                        dk[((b * s + j) * job->hq + hk) * D + d] += ds * value(0, b, i, h, d);
                    }
            }
}

/* On `ranks` ranks, each with memory of its own kind, against the textbook. */
static void compare_attention(struct job *job, int first_ranks, int last_ranks)
{
    size_t n = (size_t)(job->shape.rows * job->shape.tokens * job->hq * D);
    double *want[4];
    for (int k = 0; k < 4; k++) {
        want[k] = calloc(n, sizeof(double));
        job->result[k] = calloc(n, sizeof(double));
    }
    dense(job, want[0], want[1], want[2], want[3]);
    for (int ranks = first_ranks; ranks <= last_ranks; ranks++) {
        job->how = (enum memory)((ranks + job->shape.tokens) % NUM_MEMORIES);
        for (int k = 0; k < 4; k++)
            memset(job->result[k], 0, n * sizeof(double));
        if (tri_comm_threads_run(ranks, 60, attend_rank, job) != TRI_OK)
            fail_msg("%d ranks: %s", ranks, tri_error_text());
        for (int k = 0; k < 4; k++)
            for (size_t e = 0; e < n; e++)
                if (!(fabs(job->result[k][e] - want[k][e]) <=
                      (job->dtype == TRI_F64 ? 1e-12 : 1.3e-6 * fabs(want[k][e]) + 1e-5)))
                    fail_msg("S %d, heads %d/%d, %d ranks, result %d: %.15g, not %.15g",
                             (int)job->shape.tokens, (int)job->hq, (int)job->hk, ranks, k,
                             job->result[k][e], want[k][e]);
    }
    for (int k = 0; k < 4; k++) {
        free(want[k]);
        free(job->result[k]);
    }
}

static void attention_is_that_of_the_whole_sequence(void **state)
{
    (void)state;
    static const struct tri_sp_shape shapes[] = {{1, 24, 0}, {2, 19, 0}, {3, 17, 6}, {1, 9, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct job job = {
            .shape = shapes[i], .window = i == 2 ? 5 : 0, .hq = HQ, .hk = HK, .dtype = TRI_F64};
        compare_attention(&job, 1, 6);
    }
}

/* The bounds of PyTorch's assert_close for float32. */
static void float32_is_as_close_as_on_one_rank(void **state)
{
    (void)state;
    struct job job = {.shape = {2, 33, 0}, .hq = HQ, .hk = HK, .dtype = TRI_F32};
    compare_attention(&job, 1, 4);
}

/* Heads that divide among ranks and heads that do not, key heads that are shared or several. */
static void any_heads_are_split_over_any_ranks(void **state)
{
    (void)state;
    static const int cases[][3] = {{4, 4, 2},  {8, 2, 2},  {4, 1, 2}, {12, 3, 2}, {12, 6, 4},
                                   {6, 2, 4},  {8, 2, 4},  {4, 1, 4}, {7, 7, 4},  {7, 1, 3},
                                   {28, 4, 8}, {10, 5, 7}, {9, 3, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job job = {
            .shape = {1, 11, 0}, .hq = cases[i][0], .hk = cases[i][1], .dtype = TRI_F64};
        compare_attention(&job, cases[i][2], cases[i][2]);
    }
}

/* ---- refusals ----------------------------------------------------------------------------------
 */

enum mistake { LONGER_ON_ONE, OTHER_ROWS, NO_POSITIONS, OTHER_HEADS, TOO_MANY_RANKS };

struct refusal {
    enum mistake mistake;
    const char *text;
};

static enum tri_status make_mistake(struct tri_comm *comm, struct tri_device *device,
                                    enum mistake mistake)
{
    struct tri_sp_shape shape = {1, 8, 0};
    int64_t positions[40] = {0};
    bool me = tri_comm_rank(comm) == 1;
    struct tri_sp_batch *batch;
    int64_t local = tri_sp_local_tokens(&shape, tri_comm_size(comm), tri_comm_rank(comm));
    for (int64_t t = 0; t < local; t++)
        positions[t] = tri_sp_token(&shape, tri_comm_size(comm), tri_comm_rank(comm), t);
    if (mistake == LONGER_ON_ONE && me)
        local++;
    if (mistake == OTHER_ROWS && me)
        shape.rows = 2;
    TRY(tri_sp_batch_open(device, comm, &shape, local,
                          mistake == NO_POSITIONS && me ? NULL : positions, &batch));
    double memory[3 * 8 * 4] = {0};
    int64_t heads = mistake == OTHER_HEADS && me ? 6 : mistake == TOO_MANY_RANKS ? 2 : 4;
    struct tri_sp_attention op = {.num_heads = heads, .num_kv_heads = 1, .head_dim = 1};
    struct tri_tensor q = make(TRI_F64, memory, BATCH_FIRST, 1, local, heads, 1);
    struct tri_tensor k = make(TRI_F64, memory + 32, BATCH_FIRST, 1, local, 1, 1);
    enum tri_status st = tri_sp_attention_forward(batch, &op, q, NULL, q, k, k);
    tri_sp_batch_close(batch);
    return st;
}

/* Every rank must come back by itself, with the error, though nobody aborts anything. */
static enum tri_status refused_rank(struct tri_comm *comm, void *ctx)
{
    const struct refusal *refusal = ctx;
    struct tri_device *device;
    TRY(open_device("reference", &device));
    enum tri_status st = make_mistake(comm, device, refusal->mistake);
    if (st == TRI_INVALID && strstr(tri_error_text(), refusal->text) != NULL)
        st = TRI_OK;
    else
        fprintf(stderr, "rank %d: status %d, %s\n", tri_comm_rank(comm), (int)st, tri_error_text());
    tri_device_close(device);
    return st;
}

static void mistakes_of_one_rank_are_errors_on_all(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {LONGER_ON_ONE, "rank 1 of the sequence group holds 4 of the 8 tokens of a row"},
        {OTHER_ROWS, "rank 1 of the sequence group has 2 rows of 8 tokens"},
        {NO_POSITIONS, "rank 1 of the sequence group has no position ids"},
        {OTHER_HEADS, "ranks disagree on the attention"},
        {TOO_MANY_RANKS, "3 is more than the 2 query heads"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (tri_comm_threads_run(3, 20, refused_rank, (void *)(uintptr_t)&refusals[i]) != TRI_OK)
            fail_msg("mistake %d: %s", (int)i, tri_error_text());
}

static enum tri_status meshes(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    struct tri_mesh mesh;
    static const int64_t sizes[] = {1, 3, 2, 8, 4, 0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        enum tri_status st = tri_mesh_open(world, sizes[i], &mesh);
        if (sizes[i] == 3 || sizes[i] == 8) {
            CHECK(st == TRI_INVALID && strstr(tri_error_text(), "of this job") != NULL);
            continue;
        }
        TRY(st);
        int p = sizes[i] == 0 ? 4 : (int)sizes[i];
        CHECK(tri_comm_size(mesh.sequence) == p && mesh.num_replicas == 4 / p);
        CHECK(tri_comm_rank(world) == mesh.replica * p + tri_comm_rank(mesh.sequence));
        struct tri_loss_sum sum = {1.5, tri_comm_rank(world) == 2 ? 0 : 2};
        TRY(tri_loss_reduce(mesh.sequence, &sum));
        bool has = mesh.replica == 2 / p;
        CHECK(sum.count == 2 * (p - (has ? 1 : 0)));
        CHECK(sum.sum == 1.5 * (p - (has ? 1 : 0)));
        bool any;
        TRY(tri_comm_any(world, tri_comm_rank(world) == 2, &any));
        CHECK(any);
        TRY(tri_comm_any(world, false, &any));
        CHECK(!any);
        tri_mesh_close(&mesh);
    }
    return TRI_OK;
}

static void meshes_are_rebuilt_after_refusals(void **state)
{
    (void)state;
    if (tri_comm_threads_run(4, 20, meshes, NULL) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_true(tri_loss_mean((struct tri_loss_sum){0, 0}) == 0);
}

static void devices_say_what_is_missing(void **state)
{
    (void)state;
    struct tri_device *device;
    struct tri_device_config config = {.backend = "tpu"};
    assert_int_equal(tri_device_open(&config, &device), TRI_UNSUPPORTED);
    assert_non_null(strstr(tri_error_text(), "no backend \"tpu\""));
    config = (struct tri_device_config){.cuda_stream = &device};
    assert_int_equal(tri_device_open(&config, &device), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "CUDA stream"));
    config = (struct tri_device_config){.cpu_kernels = "sse"};
    assert_int_equal(tri_device_open(&config, &device), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "no CPU kernels \"sse\""));
}

static enum tri_status never(struct tri_comm *comm, void *ctx)
{
    (void)comm;
    *(bool *)ctx = true;
    return TRI_OK;
}

static void cards_need_a_launcher(void **state)
{
    (void)state;
    bool ran = false;
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (int i = 0; i < 4; i++)
        unsetenv(names[i]);
    assert_int_equal(tri_comm_cards_run(10, never, &ran), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "torchrun, mpirun or srun"));
    assert_false(ran);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_is_its_own_inverse),
        cmocka_unit_test(attention_is_that_of_the_whole_sequence),
        cmocka_unit_test(float32_is_as_close_as_on_one_rank),
        cmocka_unit_test(any_heads_are_split_over_any_ranks),
        cmocka_unit_test(mistakes_of_one_rank_are_errors_on_all),
        cmocka_unit_test(meshes_are_rebuilt_after_refusals),
        cmocka_unit_test(devices_say_what_is_missing),
        cmocka_unit_test(cards_need_a_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
