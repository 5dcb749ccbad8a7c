/* The public exchange and attention: layouts, strides and batches of a caller, against what one
 * rank computes, in float64. Only public headers. */
#include "unit/api/sp_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_is_its_own_inverse),
        cmocka_unit_test(attention_is_that_of_the_whole_sequence),
        cmocka_unit_test(float32_is_as_close_as_on_one_rank),
        cmocka_unit_test(any_heads_are_split_over_any_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
