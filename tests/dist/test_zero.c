/* What ZeRO asks of other dtypes and of ranks that fail: 16-bit weights follow their master copies,
 * rows of parameters are read from whoever holds them, and a rank out of memory ends all. */
#include "ranks.h"
#include "unit/tiny_model.h"

enum { RANKS = 3 };

static struct tri_batch two_documents(void)
{
    static const int64_t lengths[] = {31, 12};
    return tiny_batch(lengths, 2);
}

/* ---- rows --------------------------------------------------------------------------------------
 */

struct rows_job {
    int zero_stage;
    enum tri_dtype act;
};

static float made_up(int param, int64_t i)
{
    return (float)(param + 1) + (float)(i % 60) / 64; /* exact in bfloat16 below 4 */
}

static enum tri_status open_trainer(const struct rows_job *job, struct tri_comm *world,
                                    struct tri_model *model, struct tri_backend **backend,
                                    struct tri_trainer **trainer)
{
    static const struct tri_pass_options pass = {.tiled_mlp_compute = true};
    struct tri_cpu_config cpu = {.threads = 1, .kernels = TRI_CPU_REFERENCE};
    struct tri_optim_options optimizer = tiny_optimizer();
    TRI_TRY(tri_cpu_open(&cpu, backend));
    struct tri_trainer_config config = {.model = model,
                                        .backend = *backend,
                                        .act = job->act,
                                        .capacity = (size_t)1 << 28,
                                        .pass = &pass,
                                        .optimizer = &optimizer,
                                        .world = world,
                                        .sequence = world,
                                        .zero_stage = job->zero_stage};
    return tri_trainer_open(&config, trainer);
}

static int64_t width_of(const struct tri_param *param)
{
    return param->num_dims == 2 ? param->dim[1] : 1;
}

/* Read one parameter in pieces that begin and end anywhere, for one rank or for all. */
static enum tri_status read_pieces(struct tri_flat *flat, int param, bool gets, float *data)
{
    const struct tri_param *p = &flat->zero->model->params[param];
    int64_t width = width_of(p);
    for (int64_t row = 0; row < p->dim[0]; row += 5) {
        int64_t rows = p->dim[0] - row < 7 ? p->dim[0] - row : 7;
        memset(data, 0, (size_t)(rows * width) * sizeof *data);
        TRI_TRY(tri_flat_source(flat, param, row, rows, data));
        for (int64_t i = 0; i < rows * width && gets; i++)
            if (data[i] != made_up(param % 3, row * width + i))
                return tri_fail(TRI_FORMAT, "zero %d, %s, parameter %d, row %d: %g is not %g",
                                flat->zero->stage, tri_dtype_name(flat->buffer.dtype), param,
                                (int)row, (double)data[i],
                                (double)made_up(param % 3, row * width + i));
    }
    return TRI_OK;
}

static enum tri_status write_and_read(struct tri_trainer *t, struct tri_flat flat, int rank)
{
    enum tri_status st = TRI_OK;
    for (int p = 0; p < t->model->num_params && st == TRI_OK; p++) {
        const struct tri_param *param = &t->model->params[p];
        int64_t n = param->dim[0] * width_of(param);
        float *data = malloc((size_t)n * sizeof *data);
        if (data == NULL)
            return tri_fail(TRI_NOMEM, "no memory for a parameter");
        for (int64_t i = 0; i < n; i++)
            data[i] = made_up(p % 3, i);
        st = tri_flat_sink(&flat, p, 0, param->dim[0], data);
        for (flat.reader = -1; flat.reader < RANKS && st == TRI_OK; flat.reader++)
            st = read_pieces(&flat, p, flat.reader < 0 || flat.reader == rank, data);
        free(data);
    }
    return st;
}

static enum tri_status all_rows(struct tri_comm *world, void *ctx)
{
    const struct rows_job *job = ctx;
    struct tri_model *model = tiny_parse(tiny_models[5].config);
    struct tri_backend *backend = NULL;
    struct tri_trainer *t = NULL;
    enum tri_status st = open_trainer(job, world, model, &backend, &t);
    if (st == TRI_OK)
        st = write_and_read(t, tri_flat_weights(t), world->rank);
    if (st == TRI_OK)
        st = write_and_read(t, tri_flat_used_weights(t), world->rank);
    if (st == TRI_OK)
        st = write_and_read(t, tri_flat_grads(t), world->rank);
    if (st == TRI_OK)
        st = write_and_read(t, tri_flat_moment(t, 1), world->rank);
    tri_trainer_close(t);
    tri_cpu_close(backend);
    tri_model_close(model);
    return st;
}

static void rows_are_read_from_whoever_holds_them(void **state)
{
    (void)state;
    static const enum tri_dtype types[] = {TRI_F32, TRI_F64, TRI_BF16};
    for (int stage = 0; stage <= 3; stage++)
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            struct rows_job job = {stage, types[i]};
            run_ranks(RANKS, all_rows, &job);
        }
}

/* ---- 16-bit weights ----------------------------------------------------------------------------
 */

static enum tri_status compare_with_masters(struct tri_trainer *t)
{
    struct tri_flat master = tri_flat_weights(t);
    struct tri_flat used = tri_flat_used_weights(t);
    enum tri_status st = TRI_OK;
    for (int p = 0; p < t->model->num_params && st == TRI_OK; p++) {
        const struct tri_param *param = &t->model->params[p];
        int64_t n = param->dim[0] * width_of(param);
        float *exact = malloc((size_t)n * sizeof *exact);
        float *rounded = malloc((size_t)n * sizeof *rounded);
        st = exact != NULL && rounded != NULL ? TRI_OK : tri_fail(TRI_NOMEM, "no memory");
        if (st == TRI_OK)
            st = tri_flat_source(&master, p, 0, param->dim[0], exact);
        if (st == TRI_OK)
            st = tri_flat_source(&used, p, 0, param->dim[0], rounded);
        for (int64_t i = 0; i < n && st == TRI_OK; i++)
            if (!(fabsf(exact[i] - rounded[i]) <= fabsf(exact[i]) / 256))
                st = tri_fail(TRI_FORMAT, "zero %d, parameter %d, element %d: %g, its master %g",
                              t->zero->stage, p, (int)i, (double)rounded[i], (double)exact[i]);
        free(exact);
        free(rounded);
    }
    return st;
}

/* After loading, and after an update, the weights of every rank are those of the master copies,
 * rounded. */
static enum tri_status update_masters(struct tri_comm *world, void *ctx)
{
    const struct rows_job *job = ctx;
    struct tri_model *model = tiny_parse(tiny_models[1].config);
    struct tri_backend *backend = NULL;
    struct tri_trainer *t = NULL;
    enum tri_status st = open_trainer(job, world, model, &backend, &t);
    if (st == TRI_OK)
        tiny_weights(t, false);
    if (st == TRI_OK)
        st = compare_with_masters(t);
    if (st == TRI_OK)
        st = tri_zero_clear_grads(t->zero);
    if (st == TRI_OK)
        st = tri_optimizer_update(&t->optimizer, 1.0, 1.0); /* decay takes a tenth of each matrix */
    if (st == TRI_OK)
        st = tri_zero_share_weights(t->zero);
    if (st == TRI_OK)
        st = compare_with_masters(t);
    tri_trainer_close(t);
    tri_cpu_close(backend);
    tri_model_close(model);
    return st;
}

static void weights_follow_their_masters(void **state)
{
    (void)state;
    for (int stage = 0; stage <= 3; stage++) {
        struct rows_job job = {stage, TRI_BF16};
        run_ranks(RANKS, update_masters, &job);
    }
}

/* ---- a rank that fails -------------------------------------------------------------------------
 */

struct failing_job {
    int zero_stage;
    int64_t nth; /* allocation of rank 1 that fails */
    bool done;   /* the step has no such allocation */
};

static enum tri_status fail_in_a_step(struct tri_comm *world, void *ctx)
{
    struct failing_job *job = ctx;
    struct tiny_way way = tiny_way(false);
    way.zero_stage = job->zero_stage;
    way.pass.chunk_size = 16;
    struct tiny tiny = tiny_open_on(tiny_models[1].config, &way, world, world);
    struct tri_batch batch = two_documents();
    struct tri_step_stats stats;
    if (world->rank == 1)
        tri_arena_fail_at(tiny.trainer->exec.arena, job->nth);
    enum tri_status st = tri_train_step(tiny.trainer, &batch, 1, 1e-2, &stats);
    if (world->rank == 1)
        job->done = st == TRI_OK;
    tri_batch_close(&batch);
    tiny_close(&tiny);
    return st;
}

/* Wherever one rank runs out of memory, the job ends at once and names it: the others are in some
 * collective of a walk then. */
static void a_rank_that_fails_ends_the_step_of_all(void **state)
{
    (void)state;
    for (int stage = 0; stage <= 3; stage++) {
        struct failing_job job = {.zero_stage = stage, .nth = 1};
        for (; !job.done; job.nth += job.nth < 4 ? 1 : 17) {
            enum tri_status st = tri_comm_threads_run(RANKS, 100, fail_in_a_step, &job);
            if (job.done)
                assert_int_equal(st, TRI_OK);
            else if (st != TRI_NOMEM || strstr(tri_error_text(), "rank 1: no room for") == NULL)
                fail_msg("stage %d, allocation %d: %s", stage, (int)job.nth, tri_error_text());
        }
        assert_true(job.nth > 30);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_from_whoever_holds_them),
        cmocka_unit_test(weights_follow_their_masters),
        cmocka_unit_test(a_rank_that_fails_ends_the_step_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
