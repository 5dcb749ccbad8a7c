/* A model through the public interface: several rows, chunks, stages of ZeRO and what is kept give
 * the numbers of one rank with one row; saving and reading; what is refused. */
#include <math.h>

#include "ranks.h"
#include "unit/scratch.h"

#include "trireme/trireme.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum tri_status st_ = (call);                                                              \
        if (st_ != TRI_OK)                                                                         \
            return st_;                                                                            \
    } while (0)

static const char config_json[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 40,\n"
    " \"hidden_size\": 16, \"intermediate_size\": 24, \"num_hidden_layers\": 2,\n"
    " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"hidden_act\": \"silu\",\n"
    " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 64, \"initializer_range\": 0.3,\n"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}\n";

static int model_open(void **state)
{
    if (scratch_open(state) != 0)
        return -1;
    put_text(in_scratch("config.json"), config_json);
    return 0;
}

/* ---- data: ROWS rows of TOKENS, as one sample or as one sample a row ---------------------------
 */

enum { ROWS = 3, TOKENS = 12, STEPS = 3 };

struct reader {
    bool together; /* one sample of all rows, read by rank 0 */
    int rank, ranks;
    int64_t next, epoch;
    int32_t ids[ROWS * TOKENS], labels[ROWS * TOKENS];
    int64_t positions[ROWS * TOKENS];
    struct tri_field fields[3];
};

static enum tri_status rewind_reader(void *ctx, int64_t epoch)
{
    struct reader *r = ctx;
    r->epoch = epoch;
    r->next = r->rank;
    return TRI_OK;
}

static enum tri_status read_rows(void *ctx, struct tri_sample *sample, bool *end)
{
    struct reader *r = ctx;
    int64_t rows = r->together ? ROWS : 1;
    *end = r->next >= (r->together ? 1 : ROWS);
    if (*end)
        return TRI_OK;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < TOKENS; t++) {
            int64_t row = r->together ? b : r->next;
            int64_t i = b * TOKENS + t;
            r->ids[i] = (int32_t)((row * 17 + t * t * 3 + r->epoch * 5) % 40);
            r->labels[i] = t < 2 * row ? -100 : r->ids[i]; /* rows train different numbers */
            r->positions[i] = t < 5 ? t : t - 5;           /* two documents */
        }
    const int64_t dim[] = {rows, TOKENS};
    r->fields[0] = tri_field_split("input_ids", tri_tensor_make(r->ids, TRI_I32, 2, dim), 1);
    r->fields[1] = tri_field_split("labels", tri_tensor_make(r->labels, TRI_I32, 2, dim), 1);
    r->fields[2] =
        tri_field_split("position_ids", tri_tensor_make(r->positions, TRI_I64, 2, dim), 1);
    *sample = (struct tri_sample){r->fields, 3};
    r->next += r->ranks;
    return TRI_OK;
}

/* ---- training ----------------------------------------------------------------------------------
 */

struct job {
    char model[4400];
    bool together;
    int64_t shards, chunk;
    enum tri_lm_keep keep;
    int zero_stage;
    bool save;
    bool own_update; /* plain gradient descent by the caller */
    double loss[STEPS], norm[STEPS], eval;
};

/* w -= 0.1 g on what this rank holds. */
static enum tri_status descend(struct tri_lm *lm)
{
    struct tri_lm_run run;
    for (int cursor = 0; tri_lm_next_run(lm, &cursor, &run);)
        for (int64_t i = 0; i < run.weights.dim[0]; i++)
            ((double *)run.weights.data)[i] -= 0.1 * ((const double *)run.grads.data)[i];
    return tri_lm_updated(lm);
}

static enum tri_status update(struct tri_lm *lm, const struct job *job)
{
    if (job->own_update)
        return descend(lm);
    TRY(tri_lm_update(lm, 1e-2, 1.0));
    return tri_lm_update(lm, 1e-2, 1.0) == TRI_OK ? TRI_INTERNAL : TRI_OK; /* they are spent */
}

static enum tri_status train(struct tri_lm *lm, struct tri_adapter *adapter, struct job *job,
                             bool first)
{
    struct tri_lm_result result;
    struct tri_shard shard;
    bool end = false;
    for (int i = 0; i <= STEPS; i++) { /* the last epoch is only evaluated */
        TRY(tri_adapter_epoch(adapter, i));
        while (true) {
            TRY(tri_adapter_next(adapter, &shard, &end));
            if (end)
                break;
            TRY(tri_lm_add(lm, &shard));
        }
        if (i == STEPS) {
            TRY(tri_lm_evaluate(lm, &result));
            if (first)
                job->eval = result.loss;
            return result.tokens == ROWS * TOKENS ? TRI_OK : TRI_INTERNAL;
        }
        TRY(tri_lm_gradients(lm, &result));
        TRY(update(lm, job));
        if (result.tokens != ROWS * TOKENS)
            return TRI_INTERNAL;
        if (first) {
            job->loss[i] = result.loss;
            job->norm[i] = result.grad_norm;
        }
    }
    return TRI_OK;
}

static enum tri_status run_rank(struct tri_comm *world, void *ctx)
{
    struct job *job = ctx;
    struct tri_mesh mesh;
    struct tri_device *device;
    struct tri_lm *lm;
    struct tri_adapter *adapter;
    const struct tri_device_config on = {
        .cpu_kernels = "reference", .threads = 1, .scratch_bytes = 1 << 20};
    const struct tri_lm_adamw adamw = {0.9, 0.95, 1e-8, 0.1};
    TRY(tri_mesh_open(world, job->shards, &mesh));
    TRY(tri_device_open(&on, &device));
    const struct tri_lm_config config = {.device = device,
                                         .mesh = &mesh,
                                         .model = job->model,
                                         .dtype = TRI_F64,
                                         .keep = job->keep,
                                         .zero_stage = job->zero_stage,
                                         .memory_bytes = (size_t)1 << 28,
                                         .adamw = job->own_update ? NULL : &adamw};
    TRY(tri_lm_open(&config, &lm));
    struct reader reader = {
        .together = job->together, .rank = tri_comm_rank(world), .ranks = tri_comm_size(world)};
    const struct tri_adapter_config data = {.mesh = &mesh,
                                            .next = read_rows,
                                            .rewind = rewind_reader,
                                            .ctx = &reader,
                                            .samples = -1,
                                            .chunk = job->chunk};
    TRY(tri_adapter_open(&data, &adapter));
    TRY(tri_lm_init(lm, 7));
    enum tri_status st = train(lm, adapter, job, tri_comm_rank(world) == 0);
    if (st == TRI_OK && job->save) {
        char folder[4500];
        snprintf(folder, sizeof folder, "%s/saved", job->model);
        st = tri_lm_save(lm, folder);
    }
    tri_adapter_close(adapter);
    tri_lm_close(lm);
    tri_device_close(device);
    tri_mesh_close(&mesh);
    return st;
}

static void run(struct job *job, int ranks)
{
    snprintf(job->model, sizeof job->model, "%s", scratch);
    run_ranks(ranks, run_rank, job);
}

static void assert_same(const struct job *got, const struct job *want, const char *what)
{
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(got->loss[i] - want->loss[i]) <= 1e-10 * want->loss[i]) ||
            !(fabs(got->norm[i] - want->norm[i]) <= 1e-10 * want->norm[i]))
            fail_msg("%s, step %d: loss %.15g not %.15g, norm %.15g not %.15g", what, i + 1,
                     got->loss[i], want->loss[i], got->norm[i], want->norm[i]);
    if (!(fabs(got->eval - want->eval) <= 1e-10 * want->eval))
        fail_msg("%s: evaluated %.15g, not %.15g", what, got->eval, want->eval);
}

static void any_split_gives_the_same_training(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int ranks;
        struct job job;
    } ways[] = {
        {"rows together", 1, {.shards = 1, .together = true}},
        {"2 shards", 2, {.shards = 2, .keep = TRI_LM_KEEP_ALL}},
        {"3 shards, rows together", 3, {.shards = 3, .together = true}},
        {"4 shards in chunks", 4, {.shards = 4, .chunk = 5, .keep = TRI_LM_KEEP_ATTENTION}},
        {"2 shards, rows together in chunks", 2, {.shards = 2, .chunk = 4, .together = true}},
        {"3 replicas", 3, {.shards = 1}},
        {"2 replicas of 2 shards, stage 1", 4, {.shards = 2, .zero_stage = 1}},
        {"2 replicas of 2 shards, stage 2", 4, {.shards = 2, .zero_stage = 2}},
        {"2 replicas of 2 shards, stage 3", 4, {.shards = 2, .zero_stage = 3}},
        {"3 shards, stage 3, rows together", 3, {.shards = 3, .zero_stage = 3, .together = true}},
    };
    struct job alone = {.shards = 1};
    run(&alone, 1);
    assert_true(alone.loss[1] != alone.loss[0] && alone.eval > 0); /* other data, other weights */
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct job job = ways[i].job;
        run(&job, ways[i].ranks);
        assert_same(&job, &alone, ways[i].what);
    }
}

static void an_update_of_ones_own_works_in_every_stage(void **state)
{
    (void)state;
    struct job alone = {.shards = 1, .own_update = true};
    run(&alone, 1);
    for (int stage = 0; stage <= 3; stage++)
        for (int64_t shards = 1; shards <= 2; shards++) {
            struct job job = {.shards = shards, .zero_stage = stage, .own_update = true};
            run(&job, 4);
            assert_same(&job, &alone, "own update");
        }
}

struct difference {
    char model[2][4400];
    int zero_stage; /* of rank 1 */
    const char *text;
};

static enum tri_status differ(struct tri_comm *world, void *ctx)
{
    const struct difference *d = ctx;
    struct tri_mesh mesh;
    struct tri_device *device;
    struct tri_lm *lm;
    const struct tri_device_config on = {.threads = 1, .scratch_bytes = 1 << 20};
    int rank = tri_comm_rank(world);
    TRY(tri_mesh_open(world, 0, &mesh));
    TRY(tri_device_open(&on, &device));
    const struct tri_lm_config config = {.device = device,
                                         .mesh = &mesh,
                                         .model = d->model[rank == 1],
                                         .zero_stage = rank == 1 ? d->zero_stage : 0,
                                         .memory_bytes = (size_t)1 << 28};
    enum tri_status st = tri_lm_open(&config, &lm);
    bool heard = st != TRI_OK && strstr(tri_error_text(), d->text) != NULL;
    if (!heard)
        fprintf(stderr, "rank %d heard: %s\n", rank, tri_error_text());
    tri_device_close(device);
    tri_mesh_close(&mesh);
    return heard ? TRI_OK : TRI_INTERNAL;
}

static void ranks_that_differ_are_refused(void **state)
{
    (void)state;
    char other[sizeof config_json];
    struct difference d = {.text = "ranks disagree on the model, or how it is trained"};
    snprintf(d.model[0], sizeof d.model[0], "%s", scratch);
    snprintf(d.model[1], sizeof d.model[1], "%s", scratch);
    d.zero_stage = 2;
    run_ranks(3, differ, &d);
    d.zero_stage = 0;
    snprintf(d.model[1], sizeof d.model[1], "%s/other", scratch);
    assert_int_equal(tri_make_folder(d.model[1]), TRI_OK);
    memcpy(other, config_json, sizeof other);
    memcpy(strstr(other, "1e-6"), "1e-5", 4);
    put_text(in_scratch("other/config.json"), other);
    run_ranks(3, differ, &d);
    assert_int_equal(unlink(in_scratch("other/config.json")), 0);
    d.text = "rank 1: ";
    run_ranks(3, differ, &d);
}

/* What four ranks in stage 3 saved, one rank reads: its loss is the one that was evaluated. */
static void what_was_saved_is_read(void **state)
{
    (void)state;
    struct job job = {.shards = 4, .zero_stage = 3, .save = true};
    char folder[4500];
    run(&job, 4);
    snprintf(folder, sizeof folder, "%s/saved", scratch);
    struct tri_device *device;
    struct tri_lm *lm;
    struct tri_lm_result result;
    struct tri_shard shard;
    struct tri_adapter *adapter;
    bool end = false;
    assert_int_equal(tri_device_open(NULL, &device), TRI_OK);
    const struct tri_lm_config config = {
        .device = device, .model = folder, .memory_bytes = (size_t)1 << 28, .forward_only = true};
    if (tri_lm_open(&config, &lm) != TRI_OK || tri_lm_load(lm) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(tri_lm_num_weights(lm),
                     2 * 40 * 16 + 16 + 2 * (16 * 16 * 3 + 16 * 24 * 3 + 32));
    struct reader reader = {.ranks = 1};
    const struct tri_adapter_config data = {
        .next = read_rows, .rewind = rewind_reader, .ctx = &reader, .samples = ROWS};
    assert_int_equal(tri_adapter_open(&data, &adapter), TRI_OK);
    assert_int_equal(tri_adapter_epoch(adapter, STEPS), TRI_OK);
    while (tri_adapter_next(adapter, &shard, &end) == TRI_OK && !end)
        assert_int_equal(tri_lm_add(lm, &shard), TRI_OK);
    assert_int_equal(tri_lm_evaluate(lm, &result), TRI_OK);
    assert_true(fabs(result.loss - job.eval) < 1e-5 * job.eval);
    assert_int_equal(tri_lm_evaluate(lm, &result), TRI_OK); /* nothing was added since */
    assert_true(result.loss == 0 && result.tokens == 0);
    assert_int_equal(tri_lm_gradients(lm, &result), TRI_INVALID);
    assert_error_has("goes only forward");
    tri_adapter_close(adapter);
    tri_lm_close(lm);
    tri_device_close(device);
}

static void bad_shards_and_models_are_refused(void **state)
{
    (void)state;
    struct tri_device *device;
    struct tri_lm *lm;
    struct tri_lm_result result;
    const int32_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const int32_t labels[8] = {2, 3, 4, -100, 6, 7, 8, -100};
    const int64_t doc_begin[] = {0, 4, 8}, doc_position[] = {0, 0};
    const struct tri_shard good = {.shape = {2, 4, 0},
                                   .local = 4,
                                   .input_ids = ids,
                                   .shift_labels = labels,
                                   .trained = 6,
                                   .doc_begin = doc_begin,
                                   .doc_position = doc_position,
                                   .num_docs = 2};
    assert_int_equal(tri_device_open(NULL, &device), TRI_OK);
    struct tri_lm_config config = {
        .device = device, .model = "/no/such/model", .memory_bytes = (size_t)1 << 28};
    assert_int_equal(tri_lm_open(&config, &lm) == TRI_OK, false);
    config.model = scratch;
    config.zero_stage = 4;
    assert_int_equal(tri_lm_open(&config, &lm), TRI_INVALID);
    assert_error_has("zero_stage 4");
    config.zero_stage = 0;
    config.dtype = TRI_BF16;
    assert_int_equal(tri_lm_open(&config, &lm), TRI_UNSUPPORTED);
    config.dtype = TRI_F32;
    if (tri_lm_open(&config, &lm) != TRI_OK || tri_lm_init(lm, 1) != TRI_OK)
        fail_msg("%s", tri_error_text());

    struct tri_shard bad = good;
    bad.local = 3;
    assert_int_equal(tri_lm_add(lm, &bad), TRI_INVALID);
    assert_error_has("not the layout of rank 0 of 1");
    bad = good;
    bad.shape.chunk = 3;
    assert_int_equal(tri_lm_add(lm, &bad), TRI_UNSUPPORTED);
    assert_error_has("a chunk must divide a row");
    bad = good;
    bad.num_docs = 1;
    assert_int_equal(tri_lm_add(lm, &bad), TRI_INVALID);
    assert_error_has("documents that cover its tokens");
    const int32_t large[8] = {1, 2, 3, 40, 5, 6, 7, 8};
    bad = good;
    bad.input_ids = large;
    assert_int_equal(tri_lm_add(lm, &bad), TRI_INVALID);
    assert_error_has("token 3 of row 0 has id 40");

    assert_int_equal(tri_lm_gradients(lm, &result), TRI_INVALID); /* nothing was added */
    assert_error_has("has none to train on");
    assert_int_equal(tri_lm_add(lm, &good), TRI_OK);
    if (tri_lm_gradients(lm, &result) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(result.trained, 6);
    assert_int_equal(tri_lm_update(lm, 1e-3, 0), TRI_INVALID);
    assert_error_has("opened without adamw");
    struct tri_lm_run some;
    int64_t n = 0;
    for (int cursor = 0; tri_lm_next_run(lm, &cursor, &some);) {
        n += some.grads.dim[0];
        assert_int_equal(some.weights.dim[0], some.grads.dim[0]);
    }
    assert_true(n >= tri_lm_num_weights(lm));
    assert_int_equal(tri_lm_updated(lm), TRI_OK);
    tri_lm_close(lm);
    tri_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_split_gives_the_same_training, model_open,
                                        scratch_close),
        cmocka_unit_test_setup_teardown(an_update_of_ones_own_works_in_every_stage, model_open,
                                        scratch_close),
        cmocka_unit_test_setup_teardown(ranks_that_differ_are_refused, model_open, scratch_close),
        cmocka_unit_test_setup_teardown(what_was_saved_is_read, model_open, scratch_close),
        cmocka_unit_test_setup_teardown(bad_shards_and_models_are_refused, model_open,
                                        scratch_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
