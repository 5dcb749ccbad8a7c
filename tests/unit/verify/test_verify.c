/* `verify` passes on every kind of block, and fails when something is wrong: a gradient that gets
 * lost between ranks, a document that is seen by another one, a token that sees a later one. */
#include <glob.h>

#include "program.h"
#include "ranks.h"
#include "unit/tiny_model.h"

#include "base/log.h"
#include "verify/proof/proofs.h"
#include "verify/verify.h"

/* A tiny model, and a few short documents of its ids; recipe.yml trains one on the other. */
static void put_recipe(const char *config, const char *init)
{
    char text[4 * PROGRAM_PATH];
    FILE *f = fopen(in_scratch("data.jsonl"), "w");
    assert_non_null(f);
    for (int d = 0; d < 6; d++) {
        fputs("{\"input_ids\": [", f);
        for (int t = 0; t < 11 + 7 * (d % 3); t++)
            fprintf(f, "%s%d", t > 0 ? ", " : "", (t * t + 5 * d + 3 * t) % 61);
        fputs("]}\n", f);
    }
    assert_int_equal(fclose(f), 0);
    put_text(in_scratch("config.json"), config);
    snprintf(text, sizeof text,
             "model: {name_or_path: %s, init: %s}\n"
             "data: {sources: [%s/data.jsonl]}\n"
             "optimizer: {learning_rate: 1e-2}\n"
             "gradient_accumulation_steps: 2\n"
             "backend: cpu\n"
             "threads: 1\n"
             "log_level: error\n"
             "checkpoint: {output_dir: %s/out}\n",
             scratch, init, scratch, scratch);
    put_text(in_scratch("recipe.yml"), text);
}

static struct tri_recipe *open_recipe(void)
{
    struct tri_recipe *recipe = NULL;
    if (tri_recipe_open(in_scratch("recipe.yml"), 0, NULL, &recipe) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return recipe;
}

/* ---- nothing is wrong -------------------------------------------------------------------------
 */

static void passes_on_every_kind_of_block(void **state)
{
    (void)state;
    for (size_t m = 0; m < NUM_TINY_MODELS; m++) {
        struct tri_verify_result result;
        put_recipe(tiny_models[m].config, "random");
        struct tri_recipe *recipe = open_recipe();
        if (tri_verify(recipe, NULL, NULL, NULL, &result) != TRI_OK)
            fail_msg("%s: %s", tiny_models[m].name, tri_error_text());
        tri_recipe_close(recipe);
        if (result.failed > 0 || result.rows < 40)
            fail_msg("%s: %d of %d rows failed, first %s", tiny_models[m].name, result.failed,
                     result.rows, result.first);
    }
}

/* As a user calls it, with runs that are killed; nothing is left behind. */
static void the_program_kills_and_goes_on(void **state)
{
    (void)state;
    struct finished *f = calloc(1, sizeof *f);
    char place[PROGRAM_PATH + 8];
    assert_non_null(f);
    put_recipe(tiny_models[0].config, "random");
    assert_int_equal(mkdir(in_scratch("tmp"), 0777), 0);
    snprintf(place, sizeof place, "TMPDIR=%s", in_scratch("tmp"));
    const char *const args[] = {"verify", in_scratch("recipe.yml"), NULL};
    program_run(place, args, f);
    assert_finished_well(f);
    assert_non_null(strstr(f->out, "2 of 2 layers, random weights"));
    assert_non_null(strstr(f->out, "computed in float64"));
    assert_non_null(strstr(f->out, "\nkilled in a save"));
    assert_non_null(strstr(f->out, "\n4 ranks killed, 2 go on"));
    assert_null(strstr(f->out, "FAIL"));
    assert_int_equal(count_entries(in_scratch("tmp")), 0);
    assert_false(has("out"));
    free(f);
}

/* Ended by a signal in the middle of its files, it still leaves nothing behind. */
static void a_signal_leaves_no_files(void **state)
{
    (void)state;
    const struct timespec nap = {.tv_nsec = 5000000};
    char place[PROGRAM_PATH], files[PROGRAM_PATH + 8], recipe[PROGRAM_PATH];
    glob_t found = {0};
    put_recipe(tiny_models[0].config, "random");
    snprintf(place, sizeof place, "%s", in_scratch("tmp"));
    assert_int_equal(mkdir(place, 0777), 0);
    snprintf(files, sizeof files, "%s/*/*", place);
    snprintf(recipe, sizeof recipe, "%s", in_scratch("recipe.yml"));
    pid_t child = fork();
    if (child == 0) {
        setenv("TMPDIR", place, 1);
        if (freopen("/dev/null", "w", stdout) != NULL)
            execl(TEST_PROGRAM, TEST_PROGRAM, "verify", recipe, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    for (int i = 0; i < 12000 && glob(files, 0, NULL, &found) != 0; i++)
        nanosleep(&nap, NULL);
    assert_int_equal(count_entries(place), 1);
    globfree(&found);
    assert_int_equal(kill(child, SIGKILL), 0);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    for (int i = 0; i < 2000 && count_entries(place) > 0; i++)
        nanosleep(&nap, NULL);
    assert_int_equal(count_entries(place), 0);
}

/* With a vocabulary of one token no probe can move anything: what proves nothing must not pass. */
static void the_program_fails_where_nothing_is_proven(void **state)
{
    (void)state;
    struct finished *f = calloc(1, sizeof *f);
    assert_non_null(f);
    put_recipe("{\"model_type\":\"llama\",\"vocab_size\":1,\"hidden_size\":16,"
               "\"num_hidden_layers\":1,\"num_attention_heads\":2,\"intermediate_size\":16,"
               "\"max_position_embeddings\":64,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6}",
               "random");
    put_text(in_scratch("data.jsonl"), "{\"input_ids\": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}\n");
    const char *const args[] = {"verify", in_scratch("recipe.yml"), NULL};
    program_run(NULL, args, f);
    assert_one_error(f, "rows are over their bounds, first: ");
    assert_non_null(strstr(f->out, " FAIL\n"));
    free(f);
}

/* float32, and of ten layers those with both kinds of attention. */
static void shrinks_to_both_kinds_of_attention(void **state)
{
    (void)state;
    struct tri_subject subject;
    put_recipe("{\"model_type\":\"qwen3\",\"vocab_size\":8000,\"hidden_size\":128,"
               "\"num_hidden_layers\":10,\"num_attention_heads\":4,\"num_key_value_heads\":1,"
               "\"head_dim\":32,\"intermediate_size\":1024,\"max_position_embeddings\":512,"
               "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,\"use_sliding_window\":true,"
               "\"sliding_window\":9,\"tie_word_embeddings\":true,"
               "\"layer_types\":[\"sliding_attention\",\"sliding_attention\","
               "\"sliding_attention\",\"full_attention\",\"sliding_attention\","
               "\"sliding_attention\",\"sliding_attention\",\"full_attention\","
               "\"sliding_attention\",\"sliding_attention\"]}",
               "random");
    struct tri_recipe *recipe = open_recipe();
    if (tri_subject_open(recipe, NULL, &subject) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(subject.model->arch.num_layers, 4);
    assert_true(subject.model->arch.window[0] == 9 && subject.model->arch.window[3] == 0);
    assert_int_equal(subject.act, TRI_F32);
    struct tri_report report = {.to = NULL};
    struct tri_batch whole;
    struct tri_named_way way = {"4 ranks", {4, 4, 3, 9, 2, 5, TRI_REMAT_FULL}, 1, false};
    assert_int_equal(tri_subject_batch(&subject, 0, TRI_SUBJECT_DOCS, &whole), TRI_OK);
    assert_int_equal(tri_prove_ways(&report, &subject, "one rank", &whole, &way, 1), TRI_OK);
    if (report.rows != 1 || report.failed != 0)
        fail_msg("%s", report.first);
    tri_batch_close(&whole);
    tri_subject_close(&subject);
    tri_recipe_close(recipe);
}

/* As memory shrinks ranks become fewer, then layers, until there is too little. */
static void shrinks_to_what_fits(void **state)
{
    (void)state;
    struct tri_subject subject;
    int all_ranks = 0, fewer_ranks = 0, one_layer = 0;
    put_recipe(tiny_models[0].config, "random");
    struct tri_recipe *recipe = open_recipe();
    for (double mib = 16;; mib *= 0.8) {
        recipe->pass.memory_limit_gb = mib / 1024;
        enum tri_status st = tri_subject_open(recipe, NULL, &subject);
        if (st == TRI_NOMEM)
            break;
        if (st != TRI_OK)
            fail_msg("%s", tri_error_text());
        bool whole = subject.model->arch.num_layers == 2;
        all_ranks += whole && subject.max_ranks == 4;
        fewer_ranks += whole && subject.max_ranks < 4;
        one_layer += !whole;
        assert_true(one_layer == 0 || !whole);
        tri_subject_close(&subject);
    }
    assert_error_has("1 layers take");
    assert_true(all_ranks > 0 && fewer_ranks > 0 && one_layer > 0);
    tri_recipe_close(recipe);
}

/* ---- a gradient gets lost between ranks --------------------------------------------------------
 */

/* A communicator whose last rank adds nothing to large sums. */
static const struct tri_comm_ops *sound_ops;
static struct tri_comm_ops losing_ops;

static enum tri_status lose_all_reduce(struct tri_comm *comm, struct tri_stream *s, void *data,
                                       int64_t n, enum tri_dtype dtype,
                                       enum tri_reduction reduction)
{
    if (comm->rank == comm->size - 1 && n > 1000)
        memset(data, 0, (size_t)n * tri_dtype_bytes(dtype));
    return sound_ops->all_reduce(comm, s, data, n, dtype, reduction);
}

struct losing {
    char recipe[PROGRAM_PATH];
    struct tri_verify_result result;
};

static enum tri_status verify_with_losses(struct tri_comm *comm, void *ctx)
{
    struct losing *losing = ctx;
    struct tri_verify_result mine;
    struct tri_recipe *recipe = NULL;
    comm->ops = &losing_ops;
    TRI_TRY(tri_recipe_open(losing->recipe, 0, NULL, &recipe));
    enum tri_status st = tri_verify(recipe, comm, NULL, NULL, &mine);
    tri_recipe_close(recipe);
    comm->ops = sound_ops;
    if (st == TRI_OK && comm->rank == 0)
        losing->result = mine;
    return st;
}

static enum tri_status learn_ops(struct tri_comm *comm, void *ctx)
{
    (void)ctx;
    if (comm->rank == 0)
        sound_ops = comm->ops;
    return TRI_OK;
}

static void finds_a_gradient_that_gets_lost(void **state)
{
    (void)state;
    struct losing l;
    put_recipe(tiny_models[0].config, "random");
    snprintf(l.recipe, sizeof l.recipe, "%s", in_scratch("recipe.yml"));
    run_ranks(2, learn_ops, NULL);
    losing_ops = *sound_ops;
    run_ranks(2, verify_with_losses, &l);
    const int rows = l.result.rows;
    assert_int_equal(l.result.failed, 0);
    losing_ops.all_reduce = lose_all_reduce; /* stage 0 sums all gradients so */
    run_ranks(2, verify_with_losses, &l);
    assert_int_equal(l.result.rows, rows);
    assert_true(l.result.failed >= 1);
    if (strstr(l.result.first, "2 ranks, ZeRO 0: off by") == NULL)
        fail_msg("%s", l.result.first);
}

/* ---- somebody sees what is not theirs ----------------------------------------------------------
 */

struct planted {
    struct tri_recipe *recipe;
    struct tri_subject subject;
    struct tri_report report;
    struct tri_batch batch;
};

static struct planted plant(const char *config)
{
    struct planted p = {.recipe = NULL};
    put_recipe(config, "random");
    p.recipe = open_recipe();
    if (tri_subject_open(p.recipe, NULL, &p.subject) != TRI_OK ||
        tri_subject_batch(&p.subject, 0, TRI_SUBJECT_DOCS, &p.batch) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return p;
}

static void uproot(struct planted *p)
{
    tri_batch_close(&p->batch);
    tri_subject_close(&p->subject);
    tri_recipe_close(p->recipe);
}

static const struct tri_way on_two_ranks = {.ranks = 2, .shards = 2, .remat = TRI_REMAT_FULL};

static void finds_a_document_that_leaks(void **state)
{
    (void)state;
    struct planted p = plant(tiny_models[0].config);
    int64_t first = p.batch.doc_begin[1];
    struct tri_probe probe = {.batch = &p.batch,
                              .perturbed = {0, first},
                              .moves = {0, first},
                              .still = {first, p.batch.num_tokens - first}};
    assert_int_equal(tri_prove_probe(&p.report, &p.subject, &on_two_ranks, "sound", &probe, 1),
                     TRI_OK);
    assert_int_equal(p.report.failed, 0);
    /* All documents become one: attention then sees across their borders. */
    p.batch.doc_begin[1] = p.batch.num_tokens;
    p.batch.num_docs = 1;
    assert_int_equal(tri_prove_probe(&p.report, &p.subject, &on_two_ranks, "leaking", &probe, 1),
                     TRI_OK);
    assert_int_equal(p.report.failed, 1);
    assert_non_null(strstr(p.report.first, "leaking: off by"));
    uproot(&p);
}

static void finds_a_token_that_sees_a_later_one(void **state)
{
    (void)state;
    struct planted p = plant(tiny_models[0].config);
    /* Seen from the other side: what lies behind a token does see it. */
    struct tri_probe probe = {
        .batch = &p.batch, .perturbed = {2, 1}, .moves = {2, 1}, .still = {3, 1}};
    assert_int_equal(tri_prove_probe(&p.report, &p.subject, &on_two_ranks, "seen", &probe, 1),
                     TRI_OK);
    assert_int_equal(p.report.failed, 1);
    uproot(&p);
}

/* A probe that could not see anything proves nothing. */
static void a_probe_that_moves_nothing_fails(void **state)
{
    (void)state;
    struct planted p = plant(tiny_models[0].config);
    int64_t first = p.batch.doc_begin[1];
    struct tri_probe probe = {.batch = &p.batch,
                              .perturbed = {0, first},
                              .moves = {first, 1}, /* another document */
                              .still = {first + 1, 1}};
    assert_int_equal(tri_prove_probe(&p.report, &p.subject, &on_two_ranks, "blind", &probe, 1),
                     TRI_OK);
    assert_int_equal(p.report.failed, 1);
    assert_non_null(strstr(p.report.first, "more than 0 is needed"));
    uproot(&p);
}

static void finds_a_gradient_that_does_not_arrive(void **state)
{
    (void)state;
    struct planted p = plant(tiny_models[0].config);
    int64_t trained = p.batch.num_tokens - 2; /* of the last document */
    for (int64_t t = 0; t < p.batch.num_tokens; t++)
        p.batch.labels[t] = t == trained ? p.batch.ids[t + 1] : TRI_IGNORE_LABEL;
    p.batch.num_trained = 1;
    p.batch.ids[0] = 63; /* nowhere else */
    assert_int_equal(tri_prove_reach(&p.report, &p.subject, &on_two_ranks, "cut off", &p.batch),
                     TRI_OK);
    assert_int_equal(p.report.failed, 1);
    uproot(&p);
}

/* ---- a step that is not the same ---------------------------------------------------------------
 */

/* The label that lies between two shards is the one that a split before the shift loses. */
static void finds_one_lost_label(void **state)
{
    (void)state;
    struct planted p = plant(tiny_models[1].config);
    struct tri_reference reference;
    struct tri_difference d;
    struct tri_step_batches step = {.batches = &p.batch, .count = 1};
    assert_int_equal(tri_reference_find(&p.subject, &step, &reference), TRI_OK);
    assert_int_equal(tri_difference_find(&p.subject, &on_two_ranks, &step, &reference, &d), TRI_OK);
    tri_report_split(&p.report, "sound", &d, tri_proof_bound(&p.subject, TRI_F64));
    assert_int_equal(p.report.failed, 0);
    int64_t border = p.batch.num_tokens / 2 - 1;
    while (p.batch.labels[border] < 0)
        border--;
    p.batch.labels[border] = TRI_IGNORE_LABEL;
    p.batch.num_trained--;
    assert_int_equal(tri_difference_find(&p.subject, &on_two_ranks, &step, &reference, &d), TRI_OK);
    tri_report_split(&p.report, "lost", &d, tri_proof_bound(&p.subject, TRI_F64));
    assert_int_equal(p.report.failed, 1);
    /* It would be found in float32 as well. */
    tri_report_split(&p.report, "lost", &d, tri_proof_bound(&p.subject, TRI_F32));
    assert_int_equal(p.report.failed, 2);
    d.grads_error = NAN;
    d.loss_error = d.norm_error = 0;
    tri_report_split(&p.report, "not a number", &d, 1e9);
    assert_int_equal(p.report.failed, 3);
    tri_reference_close(&reference);
    uproot(&p);
}

/* ---- data that cannot be taken -----------------------------------------------------------------
 */

static void little_data_is_cut_or_refused(void **state)
{
    (void)state;
    struct tri_subject subject;
    put_recipe(tiny_models[0].config, "random");
    put_text(in_scratch("data.jsonl"), "{\"input_ids\": [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n");
    struct tri_recipe *recipe = open_recipe();
    if (tri_subject_open(recipe, NULL, &subject) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(subject.tokens, 18); /* the document twice: a step has two */
    tri_subject_close(&subject);
    tri_recipe_close(recipe);

    put_text(in_scratch("data.jsonl"), "{\"input_ids\": [1, 2, 3]}\n");
    recipe = open_recipe();
    assert_int_equal(tri_subject_open(recipe, NULL, &subject), TRI_INVALID);
    assert_error_has("too few tokens");
    tri_recipe_close(recipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(passes_on_every_kind_of_block),
        SCRATCH_TEST(the_program_kills_and_goes_on),
        SCRATCH_TEST(a_signal_leaves_no_files),
        SCRATCH_TEST(the_program_fails_where_nothing_is_proven),
        SCRATCH_TEST(shrinks_to_both_kinds_of_attention),
        SCRATCH_TEST(shrinks_to_what_fits),
        SCRATCH_TEST(finds_a_gradient_that_gets_lost),
        SCRATCH_TEST(finds_a_document_that_leaks),
        SCRATCH_TEST(finds_a_token_that_sees_a_later_one),
        SCRATCH_TEST(a_probe_that_moves_nothing_fails),
        SCRATCH_TEST(finds_a_gradient_that_does_not_arrive),
        SCRATCH_TEST(finds_one_lost_label),
        SCRATCH_TEST(little_data_is_cut_or_refused),
    };
    tri_log_set_level(TRI_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
