/* Evaluation is the same number for any ranks, replicas and batches of training: shared sequences
 * or whole ones, in every stage of ZeRO, before and after training. */
#include "program.h"
#include "ranks.h"
#include "unit/tiny_model.h"

#include "base/clock.h"
#include "shard/mesh.h"

/* ---- the program ------------------------------------------------------------------------------
 */

/* Seven documents of different lengths, none of them packed: more than most jobs have groups, and
 * no multiple of any. Four heads, of which two have keys. */
static int eval_open(void **state)
{
    char text[3 * PROGRAM_PATH];
    if (project_open(state) != 0)
        return -1;
    put_documents("eval.jsonl", 7, 4);
    put_text(in_scratch("model/config.json"),
             "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"
             " \"vocab_size\": 259, \"bos_token_id\": 256, \"eos_token_id\": 257,\n"
             " \"hidden_size\": 16, \"intermediate_size\": 36, \"num_hidden_layers\": 2,\n"
             " \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"hidden_act\": \"silu\",\n"
             " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 1024,\n"
             " \"initializer_range\": 0.3, \"tie_word_embeddings\": false}\n");
    snprintf(text, sizeof text,
             "model: {name_or_path: %s/model, init: random}\n"
             "data: {sources: [%s/train.jsonl], eval_sources: [%s/eval.jsonl], tokenizer: bytes,\n"
             "       max_length: 192}\n"
             "optimizer: {learning_rate: 1e-2}\n"
             "train_iters: 4\n"
             "eval_interval: 2\n"
             "backend: cpu\n"
             "threads: 1\n",
             scratch, scratch, scratch);
    put_text(in_scratch("recipe.yml"), text);
    return 0;
}

struct way {
    const char *ranks, *shards, *stage, *micro_batch, *whole;
};

static const struct way ways[] = {
    {"2", "2", "0", "1", "false"}, {"3", "1", "1", "3", "false"}, {"4", "2", "3", "2", "false"},
    {"4", "4", "2", "1", "true"},  {"4", "2", "3", "1", "true"},
};

enum { NUM_WAYS = sizeof ways / sizeof *ways };

/* Run the program this way, with another key and its value or NULL. */
static void run_way(const char *verb, const struct way *way, const char *key, const char *value,
                    struct finished *f)
{
    const char *const extra[] = {"--ranks",
                                 way->ranks,
                                 "--sequence_parallel_size",
                                 way->shards,
                                 "--zero_stage",
                                 way->stage,
                                 "--micro_batch_size",
                                 way->micro_batch,
                                 "--disable_in_eval",
                                 way->whole,
                                 key,
                                 value,
                                 NULL};
    project_run(verb, NULL, extra, f);
    assert_finished_well(f);
}

/* The loss, tokens and sequences that `trireme eval` prints. */
static void run_eval(const struct way *way, double *loss, long long counts[3])
{
    struct finished *f = calloc(1, sizeof *f);
    double perplexity;
    assert_non_null(f);
    run_way("eval", way, NULL, NULL, f);
    if (sscanf(f->out, "eval loss %lf, perplexity %lf: %lld trained of %lld tokens in %lld", loss,
               &perplexity, &counts[0], &counts[1], &counts[2]) != 5)
        fail_msg("no loss in: %s", f->out);
    free(f);
}

static void the_program_evaluates_alike_in_every_way(void **state)
{
    (void)state;
    const struct way alone = {"1", "1", "0", "1", "false"};
    double want, got;
    long long counts[3], others[3];
    run_eval(&alone, &want, counts);
    assert_true(counts[2] == 7 && counts[0] > 0);
    for (int i = 0; i < NUM_WAYS; i++) {
        run_eval(&ways[i], &got, others);
        assert_true(fabs(got - want) <= 2e-6 * want); /* six digits are printed */
        assert_memory_equal(counts, others, sizeof counts);
    }
}

/* Losses of the evaluations within training, after steps 2 and 4; two sequences a step, however
 * they fall to replicas and micro-batches. */
static void eval_within_training(const struct way *way, const char *folder, double losses[2])
{
    char output[PROGRAM_PATH];
    struct finished *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(output, sizeof output, "%s/%s", scratch, folder);
    run_way("train", way, "--checkpoint.output_dir", output, f);
    free(f);
    json_t *lines = metrics_of(folder);
    losses[0] = metric(lines, 2, "eval_loss");
    losses[1] = metric(lines, 4, "eval_loss");
    json_decref(lines);
}

static void evaluations_within_training_agree(void **state)
{
    (void)state;
    static const struct way same_data[] = {
        {"1", "1", "0", "2", "false"}, {"2", "1", "1", "1", "false"}, {"4", "2", "3", "1", "false"},
        {"4", "2", "3", "1", "true"},  {"4", "4", "2", "2", "true"},
    };
    double want[2], got[2];
    eval_within_training(&same_data[0], "out0", want);
    assert_true(want[1] < want[0]);
    for (size_t i = 1; i < sizeof same_data / sizeof *same_data; i++) {
        char folder[16];
        snprintf(folder, sizeof folder, "out%zu", i);
        eval_within_training(&same_data[i], folder, got);
        for (int k = 0; k < 2; k++)
            if (!(fabs(got[k] - want[k]) <= 1e-5 * want[k]))
                fail_msg("way %zu, evaluation %d: %.9g not %.9g", i, k, got[k], want[k]);
    }
}

/* ---- a signal during a long evaluation
 * ------------------------------------------------------------ */

static bool has_said(const char *word)
{
    char *text = get_text(in_scratch("run.err"));
    bool found = strstr(text, word) != NULL;
    free(text);
    return found;
}

/* Start training this way and end the evaluation after its first step by a signal. */
static void break_off(const struct way *way, const char *folder, struct finished *f)
{
    char output[PROGRAM_PATH];
    snprintf(output, sizeof output, "%s/%s", scratch, folder);
    const char *const extra[] = {"--ranks",
                                 way->ranks,
                                 "--sequence_parallel_size",
                                 way->shards,
                                 "--zero_stage",
                                 way->stage,
                                 "--disable_in_eval",
                                 way->whole,
                                 "--checkpoint.output_dir",
                                 output,
                                 "--eval_interval",
                                 "1",
                                 NULL};
    pid_t pid = project_start("train", extra);
    bool stepped = false;
    for (int tries = 0; tries < 6000 && !stepped; tries++) {
        sleep_ms(10);
        stepped = has("run.err") && has_said("step 1/4 ");
    }
    sleep_ms(100);
    assert_int_equal(kill(pid, SIGTERM), 0);
    program_finish_as("run", pid, f);
    assert_true(stepped);
    assert_finished_well(f);
}

static void a_signal_breaks_an_evaluation_off(void **state)
{
    (void)state;
    struct finished *f = calloc(1, sizeof *f);
    assert_non_null(f);
    put_documents("eval.jsonl", 100000, 4); /* for minutes */
    for (int i = 0; i < NUM_WAYS; i += 2) {
        char folder[16], name[64];
        snprintf(folder, sizeof folder, "out%d", i);
        snprintf(name, sizeof name, "out%d/checkpoint-1/trainer_state.json", i);
        const double start = tri_clock();
        break_off(&ways[i], folder, f);
        assert_true(tri_clock() - start < 60);
        const char *said = strstr(f->err, "evaluation broken off at sequence ");
        long long at = 0, of = 0;
        if (said == NULL ||
            sscanf(said, "evaluation broken off at sequence %lld/%lld by SIGTERM;", &at, &of) != 2)
            fail_msg("way %d: not broken off: %s", i, last_words(f));
        assert_true(of == 100000 && at > 1 && at < of);
        assert_null(strstr(said + 1, "evaluation broken off"));
        assert_null(strstr(f->err, "eval at step"));
        assert_non_null(strstr(f->err, "stopped by SIGTERM after step 1;"));
        assert_true(has(name));
        json_t *lines = metrics_of(folder);
        assert_int_equal(json_array_size(lines), 1);
        assert_steps_once(lines, 1);
        json_decref(lines);
    }
    free(f);
}

/* ---- whole sequences after training that sent key heads to several ranks ------------------------
 */

struct job {
    const char *config;
    int steps;
    bool whole;
    double loss[4]; /* before and after training, of a long and a short batch */
};

static enum tri_status train_and_eval(struct tri_comm *world, void *ctx)
{
    struct job *job = ctx;
    static const int64_t of_training[] = {31, 6};
    static const int64_t of_eval[2][3] = {{40, 1, 9}, {2, 0, 0}};
    struct tri_mesh mesh;
    TRI_TRY(tri_mesh_open(world, 0, &mesh));
    struct tiny_way way = tiny_way(true);
    way.zero_stage = 3;
    way.eval_whole = job->whole;
    struct tiny tiny = tiny_open_on(job->config, &way, mesh.world, mesh.sequence);
    struct tri_batch training = tiny_batch(of_training, 2);
    enum tri_status st = TRI_OK;
    for (int round = 0; round < 2 && st == TRI_OK; round++) {
        for (int b = 0; b < 2 && st == TRI_OK; b++) {
            struct tri_batch batch = tiny_batch(of_eval[b], b == 0 ? 3 : 1);
            double sum = 0;
            int64_t trained = 0;
            st = tri_train_eval(tiny.trainer, &batch, &sum, &trained);
            if (tri_mesh_is_first(&mesh))
                job->loss[2 * round + b] = sum;
            tri_batch_close(&batch);
        }
        struct tri_step_stats stats;
        for (int i = 0; round == 0 && i < job->steps && st == TRI_OK; i++)
            st = tri_train_step(tiny.trainer, &training, 1, 1e-2, &stats);
    }
    tri_batch_close(&training);
    tiny_close(&tiny);
    tri_mesh_close(&mesh);
    return st;
}

static void whole_sequences_after_training_with_copied_key_heads(void **state)
{
    (void)state;
    static const int models[] = {0, 2}; /* two key heads and one for four ranks */
    for (int m = 0; m < 2; m++) {
        struct job alone = {.config = tiny_models[models[m]].config, .steps = 2};
        assert_int_equal(train_and_eval(NULL, &alone), TRI_OK);
        assert_true(fabs(alone.loss[2] - alone.loss[0]) > 1e-4);
        for (int whole = 0; whole < 2; whole++) {
            struct job split = {.config = alone.config, .steps = 2, .whole = whole != 0};
            run_ranks(4, train_and_eval, &split);
            for (int i = 0; i < 4; i++)
                if (!(fabs(split.loss[i] - alone.loss[i]) <= 1e-9 * (1 + alone.loss[i])))
                    fail_msg("%s, whole %d, %d: %.15g not %.15g", tiny_models[models[m]].name,
                             whole, i, split.loss[i], alone.loss[i]);
        }
    }
}

#define EVAL_TEST(name) cmocka_unit_test_setup_teardown(name, eval_open, scratch_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EVAL_TEST(the_program_evaluates_alike_in_every_way),
        EVAL_TEST(evaluations_within_training_agree),
        EVAL_TEST(a_signal_breaks_an_evaluation_off),
        cmocka_unit_test(whole_sequences_after_training_with_copied_key_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
