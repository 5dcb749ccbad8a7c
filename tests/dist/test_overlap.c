/* Collectives of ZeRO beside the computation: they give the same numbers however late they run, and
 * each unit's gradients are on their way as soon as nothing more is added to them. */
#include "ranks.h"
#include "unit/tiny_model.h"

#include <string.h>

enum { RANKS = 3 };

/* ---- a queue beside the stream -----------------------------------------------------------------
 *
 * What is queued on the side waits until the join, while the stream goes on: the latest moment
 * that the contract allows. The communicators of the CPU take the earliest. */

enum { MOST_QUEUED = 8 };

enum kind { GATHER, REDUCE_SCATTER, ALL_REDUCE };

struct late_call {
    enum kind kind;
    void *recv;
    const void *send;
    size_t bytes;
    int64_t n;
    enum tri_dtype dtype;
};

struct late_comm {
    struct tri_comm base;
    struct tri_comm *inner;
    const struct tri_zero *zero;
    struct late_call queue[MOST_QUEUED];
    int queued;
    int64_t late; /* calls that waited */
    char log[200];
};

/* Only its address is used. */
static char side_stream;

static struct late_comm *late_of(struct tri_comm *comm)
{
    return (struct late_comm *)comm;
}

static bool is_side(const struct tri_stream *s)
{
    return (const void *)s == (const void *)&side_stream;
}

/* What a rank did, in order: "b2" the backward of a chunk of unit 2, "r2" its reduction, "j" the
 * wait for what was sent. */
static void note(struct late_comm *late, char what, int64_t unit)
{
    size_t used = strlen(late->log);
    int n = snprintf(late->log + used, sizeof late->log - used, "%c%d ", what, (int)unit);
    assert_in_range(n, 1, sizeof late->log - used - 1);
}

static void note_backward(void *ctx, const char *phase, int64_t layer, int64_t chunk, double part)
{
    (void)chunk;
    (void)part;
    if (strcmp(phase, "backward") == 0)
        note(ctx, 'b', 1 + layer);
}

/* The unit whose gradients have a place of their own here, or -1. */
static int unit_at(const struct late_comm *late, const void *grads)
{
    int u = late->zero->model->num_units - 1;
    while (u >= 0 && late->zero->unit_grads[u] != grads)
        u--;
    return u;
}

static enum tri_status late_push(struct late_comm *late, struct late_call call)
{
    if (late->queued == MOST_QUEUED)
        return tri_fail(TRI_COMM, "more than %d collectives on their way", MOST_QUEUED);
    if (call.kind != GATHER)
        note(late, 'r', unit_at(late, call.send));
    late->queue[late->queued++] = call;
    late->late++;
    return TRI_OK;
}

static enum tri_status late_gather(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                   const void *send, size_t bytes)
{
    struct tri_comm *inner = late_of(comm)->inner;
    if (is_side(s))
        return late_push(
            late_of(comm),
            (struct late_call){.kind = GATHER, .recv = recv, .send = send, .bytes = bytes});
    return inner->ops->all_gather(inner, s, recv, send, bytes);
}

static enum tri_status late_reduce_scatter(struct tri_comm *comm, struct tri_stream *s, void *recv,
                                           const void *send, int64_t n, enum tri_dtype dtype)
{
    struct tri_comm *inner = late_of(comm)->inner;
    if (is_side(s))
        return late_push(
            late_of(comm),
            (struct late_call){
                .kind = REDUCE_SCATTER, .recv = recv, .send = send, .n = n, .dtype = dtype});
    return inner->ops->reduce_scatter(inner, s, recv, send, n, dtype);
}

static enum tri_status late_all_reduce(struct tri_comm *comm, struct tri_stream *s, void *data,
                                       int64_t n, enum tri_dtype dtype,
                                       enum tri_reduction reduction)
{
    struct tri_comm *inner = late_of(comm)->inner;
    if (is_side(s) && reduction == TRI_SUM)
        return late_push(
            late_of(comm),
            (struct late_call){
                .kind = ALL_REDUCE, .recv = data, .send = data, .n = n, .dtype = dtype});
    return inner->ops->all_reduce(inner, s, data, n, dtype, reduction);
}

static enum tri_status late_reduce_host(struct tri_comm *comm, void *values, int64_t n,
                                        enum tri_dtype dtype, enum tri_reduction reduction)
{
    struct tri_comm *inner = late_of(comm)->inner;
    return inner->ops->reduce_host(inner, values, n, dtype, reduction);
}

static enum tri_status late_fork(struct tri_comm *comm, struct tri_stream *s,
                                 struct tri_stream **side)
{
    (void)comm;
    (void)s;
    *side = (struct tri_stream *)(void *)&side_stream;
    return TRI_OK;
}

static enum tri_status late_join(struct tri_comm *comm, struct tri_stream *s)
{
    struct late_comm *late = late_of(comm);
    struct tri_comm *inner = late->inner;
    for (int i = 0; i < late->queued; i++) {
        const struct late_call *c = &late->queue[i];
        if (c->kind == GATHER)
            TRI_TRY(inner->ops->all_gather(inner, s, c->recv, c->send, c->bytes));
        else if (c->kind == REDUCE_SCATTER)
            TRI_TRY(inner->ops->reduce_scatter(inner, s, c->recv, c->send, c->n, c->dtype));
        else
            TRI_TRY(inner->ops->all_reduce(inner, s, c->recv, c->n, c->dtype, TRI_SUM));
    }
    if (late->queued > 0)
        note(late, 'j', late->queued);
    late->queued = 0;
    return TRI_OK;
}

static const struct tri_comm_ops late_ops = {
    .name = "late",
    .all_gather = late_gather,
    .reduce_scatter = late_reduce_scatter,
    .all_reduce = late_all_reduce,
    .reduce_host = late_reduce_host,
    .fork = late_fork,
    .join = late_join,
};

static struct late_comm late_open(struct tri_comm *world)
{
    struct late_comm late = {.base = *world, .inner = world};
    late.base.ops = &late_ops;
    return late;
}

static struct tri_batch two_documents(void)
{
    static const int64_t lengths[] = {31, 12};
    return tiny_batch(lengths, 2);
}

/* ---- the same numbers --------------------------------------------------------------------------
 */

struct queue_job {
    const struct tiny_model *model;
    int zero_stage;
    bool late;
    struct tri_step_stats stats;
    double *weights; /* (num_elements) */
};

static enum tri_status train_two_steps(struct tri_comm *world, void *ctx)
{
    struct queue_job *job = ctx;
    struct late_comm late = late_open(world);
    struct tiny_way way = tiny_way(true);
    way.zero_stage = job->zero_stage;
    struct tiny tiny =
        tiny_open_on(job->model->config, &way, job->late ? &late.base : world, world);
    struct tri_batch batch = two_documents();
    struct tri_batch twice[] = {batch, batch};
    struct tri_step_stats stats;
    enum tri_status st = TRI_OK;
    late.zero = tiny.trainer->zero;
    for (int i = 0; i < 2 && st == TRI_OK; i++) {
        late.log[0] = '\0';
        st = tri_train_step(tiny.trainer, twice, 2, 1e-2, &stats);
    }
    struct tri_flat flat = tri_flat_weights(tiny.trainer);
    if (st == TRI_OK && (job->zero_stage > 0 || world->rank == 0))
        tiny_collect(tiny.trainer, &flat.buffer, job->weights);
    if (world->rank == 0)
        job->stats = stats;
    if (st == TRI_OK && late.queued != 0)
        st = tri_fail(TRI_COMM, "%d collectives are on their way after a step", late.queued);
    if (st == TRI_OK && job->late && late.late == 0)
        st = tri_fail(TRI_COMM, "stage %d used no queue beside the stream", job->zero_stage);
    tri_batch_close(&batch);
    tiny_close(&tiny);
    return st;
}

static void late_collectives_give_the_same_bits(void **state)
{
    (void)state;
    for (int m = 0; m < 2; m++) /* the second is tied */
        for (int stage = 0; stage <= 3; stage++) {
            struct queue_job job[2];
            struct tri_model *model = tiny_parse(tiny_models[m].config);
            size_t n = (size_t)model->num_elements;
            tri_model_close(model);
            for (int late = 0; late < 2; late++) {
                job[late] = (struct queue_job){.model = &tiny_models[m],
                                               .zero_stage = stage,
                                               .late = late == 1,
                                               .weights = calloc(n, sizeof(double))};
                assert_non_null(job[late].weights);
                run_ranks(RANKS, train_two_steps, &job[late]);
            }
            assert_true(job[0].stats.loss == job[1].stats.loss);
            assert_true(job[0].stats.grad_norm == job[1].stats.grad_norm);
            assert_memory_equal(job[0].weights, job[1].weights, n * sizeof(double));
            free(job[0].weights);
            free(job[1].weights);
        }
}

/* ---- as early as can be ------------------------------------------------------------------------
 */

struct order_job {
    const struct tiny_model *model;
    int zero_stage;
    int64_t batches[RANKS]; /* micro-batches of each, which has sequences of its own */
    char log[RANKS][200];
};

static enum tri_status note_a_step(struct tri_comm *world, void *ctx)
{
    struct order_job *job = ctx;
    struct late_comm late = late_open(world);
    struct tiny_way way = tiny_way(true);
    way.zero_stage = job->zero_stage;
    struct tiny tiny = tiny_open_on(job->model->config, &way, &late.base, NULL);
    struct tri_batch batch = two_documents();
    struct tri_batch list[] = {batch, batch, batch};
    struct tri_step_stats stats;
    late.zero = tiny.trainer->zero;
    tiny.trainer->pass->progress = (struct tri_pass_progress){&late, note_backward};
    enum tri_status st = tri_train_gradients(tiny.trainer, list, job->batches[world->rank], &stats);
    memcpy(job->log[world->rank], late.log, sizeof late.log);
    tri_batch_close(&batch);
    tiny_close(&tiny);
    return st;
}

/* Units 1 and 2 are layers, 3 is the head, and 0 the embedding, which is the last to be complete
 * even if the head has added to it at first. */
static void units_are_reduced_while_backward_runs(void **state)
{
    (void)state;
    static const char *const last = "r3 b2 r2 b1 r1 r0 j4 ";
    static const char *const empty = "r3 r2 r1 r0 j4 ";
    static const char *const other = "b2 b1 ";
    for (int m = 0; m < 2; m++) /* the second is tied */
        for (int stage = 0; stage <= 1; stage++) {
            struct order_job job = {
                .model = &tiny_models[m], .zero_stage = stage, .batches = {2, 1, 0}};
            run_ranks(RANKS, note_a_step, &job);
            for (int r = 0; r < RANKS; r++) {
                char want[200];
                snprintf(want, sizeof want, "%s%s", r < 2 ? other : "", r < 1 ? last : empty);
                assert_string_equal(job.log[r], want);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_collectives_give_the_same_bits),
        cmocka_unit_test(units_are_reduced_while_backward_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
