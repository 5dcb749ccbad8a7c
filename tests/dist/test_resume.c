/* Checkpoints know nothing of the ranks that wrote them: every stage of ZeRO writes the same files,
 * and a run goes on under any number of ranks and any stage. */
#include "program.h"

/* A tied model of four heads: its embedding's gradient has two sources. `more` are members. */
static void put_four_heads(const char *more)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "{%s \"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\",\n"
        " \"vocab_size\": 259, \"bos_token_id\": 256, \"eos_token_id\": 257, \"hidden_size\": 16,\n"
        " \"intermediate_size\": 36, \"num_hidden_layers\": 3, \"num_attention_heads\": 4,\n"
        " \"num_key_value_heads\": 2, \"initializer_range\": 0.02,\n"
        " \"tie_word_embeddings\": true}\n",
        more);
    put_text(in_scratch("model/config.json"), text);
}

#define USUAL_DTYPE     "\"torch_dtype\": \"float32\","
#define USUAL_NORM      "\"rms_norm_eps\": 1e-6,"
#define USUAL_ACT       "\"hidden_act\": \"silu\","
#define USUAL_POSITIONS "\"max_position_embeddings\": 1024,"

static int four_heads_open(void **state)
{
    if (project_open(state) != 0)
        return -1;
    put_four_heads(USUAL_DTYPE USUAL_NORM USUAL_ACT USUAL_POSITIONS);
    return 0;
}

/* Train into `folder` with more arguments; gradients are not clipped, so that no sum over ranks
 * but that of gradients, which every stage makes in the same order, enters the weights. */
static void train_into(const char *folder, const char *ranks, const char *stage, const char *exit)
{
    char output[PROGRAM_PATH];
    snprintf(output, sizeof output, "%s/%s", scratch, folder);
    const char *const args[] = {"--checkpoint.output_dir",
                                output,
                                "--ranks",
                                ranks,
                                "--zero_stage",
                                stage,
                                "--exit_iteration",
                                exit,
                                "--gradient_clipping",
                                "0",
                                "--gradient_accumulation_steps",
                                "2",
                                "--checkpoint.save_total_limit",
                                "0",
                                NULL};
    train_well(args);
}

static void path_of(char *out, const char *folder, const char *name)
{
    snprintf(out, PROGRAM_PATH, "%s/%s/%s", scratch, folder, name);
}

/* One number of the largest relative difference of the losses of two runs. */
static double loss_difference(const char *a, const char *b)
{
    json_t *x = metrics_of(a);
    json_t *y = metrics_of(b);
    double worst = 0;
    assert_steps_once(x, 12);
    assert_steps_once(y, 12);
    for (int64_t step = 1; step <= 12; step++) {
        double want = metric(x, step, "loss");
        double error = fabs(metric(y, step, "loss") - want) / want;
        if (!(error <= worst))
            worst = error;
        assert_true(metric(x, step, "total_tokens") == metric(y, step, "total_tokens"));
    }
    json_decref(x);
    json_decref(y);
    return worst;
}

/* Stages 0 and 1 differ in who computes, not in what. */
static void stages_write_the_same_files(void **state)
{
    (void)state;
    train_into("zero0", "3", "0", "0");
    train_into("zero1", "3", "1", "0");
    assert_same_model("zero0/checkpoint-12", "zero1/checkpoint-12");
    assert_same_model("zero0", "zero1");
    /* 2 and 3 sum over ranks before they sum over micro-batches. */
    train_into("zero2", "3", "2", "0");
    train_into("zero3", "3", "3", "0");
    assert_same_model("zero2/checkpoint-12", "zero3/checkpoint-12");
    assert_same_model("zero2", "zero3");
    assert_true(loss_difference("zero0", "zero3") <= 1e-5);
}

/* A checkpoint of three ranks in stage 3 goes on under two in stage 1, then under one. */
static void other_ranks_and_stages_go_on(void **state)
{
    (void)state;
    train_into("whole", "1", "0", "0");
    train_into("parts", "3", "3", "3");
    train_into("parts", "2", "1", "6");
    train_into("parts", "4", "2", "9");
    train_into("parts", "1", "auto", "0");
    assert_true(loss_difference("whole", "parts") <= 1e-5);
    /* The same ranks in another stage: not even a bit. */
    train_into("still", "3", "2", "5");
    train_into("still", "3", "3", "0");
    train_into("three", "3", "3", "0");
    assert_same_model("still/checkpoint-12", "three/checkpoint-12");
}

/* Train into the folder `parts`: exit code, and what was said, in *f. */
static void train_parts(const char *ranks, const char *micro, const char *accumulation,
                        const char *exit, struct finished *f)
{
    char output[PROGRAM_PATH];
    path_of(output, "parts", "");
    const char *const args[] = {"--checkpoint.output_dir",
                                output,
                                "--ranks",
                                ranks,
                                "--sequence_parallel_size",
                                "1",
                                "--micro_batch_size",
                                micro,
                                "--gradient_accumulation_steps",
                                accumulation,
                                "--gradient_clipping",
                                "0",
                                "--exit_iteration",
                                exit,
                                NULL};
    project_run("train", NULL, args, f);
}

/* A config.json edited between two parts of a run makes another model of the same weights. */
static void an_edited_model_does_not_go_on(void **state)
{
    (void)state;
    static const struct {
        const char *config, *says;
    } edits[] = {
        {USUAL_NORM USUAL_ACT USUAL_POSITIONS "\"rope_theta\": 500000.0,",
         "rope_theta was 10000 when the run was saved and is 500000 now"},
        {"\"rms_norm_eps\": 1e-5," USUAL_ACT USUAL_POSITIONS,
         "rms_norm_eps was 1e-6 when the run was saved and is 1e-5 now"},
        {USUAL_NORM USUAL_POSITIONS "\"hidden_act\": \"gelu\",",
         "hidden_act was silu when the run was saved and is gelu now"},
    };
    struct finished *f = calloc(1, sizeof *f);
    assert_non_null(f);
    train_parts("1", "1", "1", "3", f);
    assert_finished_well(f);
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        put_four_heads(edits[i].config);
        train_parts("1", "1", "1", "6", f);
        assert_one_error(f, edits[i].says);
    }
    /* What the numbers do not depend on, and a default written out. */
    put_four_heads(USUAL_NORM USUAL_ACT "\"dtype\": \"float32\", \"transformers_version\": \"9\","
                                        "\"max_position_embeddings\": 2048,"
                                        "\"rope_theta\": 10000.0,");
    train_parts("1", "1", "1", "6", f);
    assert_finished_well(f);
    free(f);
}

/* Four sequences a step, as two replicas of two and then as one of four. */
static void a_step_keeps_its_sequences(void **state)
{
    (void)state;
    char output[PROGRAM_PATH];
    struct finished *f = calloc(1, sizeof *f);
    assert_non_null(f);
    path_of(output, "whole", "");
    const char *const whole[] = {
        "--checkpoint.output_dir", output, "--ranks", "1", "--gradient_accumulation_steps", "4",
        "--gradient_clipping",     "0",    NULL};
    train_well(whole);
    train_parts("2", "1", "2", "3", f);
    assert_finished_well(f);
    train_parts("1", "1", "2", "6", f);
    assert_one_error(f, "a step had 4 sequences when the run was saved and has 2 now "
                        "(micro_batch_size 1 x gradient_accumulation_steps 2 x 1 replicas); set "
                        "gradient_accumulation_steps: 4");
    train_parts("3", "1", "1", "6", f);
    if (strstr(f->err, "replicas whose product is 4") == NULL || f->code != 1)
        fail_msg("three replicas went on: %s", last_words(f));
    train_parts("1", "1", "4", "6", f);
    assert_finished_well(f);
    train_parts("2", "2", "1", "9", f);
    assert_finished_well(f);
    train_parts("4", "1", "1", "0", f);
    assert_finished_well(f);
    assert_true(loss_difference("whole", "parts") <= 1e-5);
    free(f);
}

/* Loss of the evaluation that `trireme eval` prints. */
static double eval_loss(const char *ranks, const char *stage)
{
    char model[PROGRAM_PATH], source[PROGRAM_PATH];
    struct finished *f = calloc(1, sizeof *f);
    double loss = NAN;
    assert_non_null(f);
    path_of(model, "whole", "checkpoint-12");
    path_of(source, ".", "eval.jsonl");
    const char *const args[] = {"--model.name_or_path",
                                model,
                                "--model.init",
                                "checkpoint",
                                "--data.eval_sources",
                                source,
                                "--ranks",
                                ranks,
                                "--zero_stage",
                                stage,
                                NULL};
    project_run("eval", NULL, args, f);
    assert_finished_well(f);
    const char *text = strstr(f->out, "loss ");
    if (text == NULL || sscanf(text, "loss %lf", &loss) != 1)
        fail_msg("no loss in: %s", f->out);
    free(f);
    return loss;
}

static void evaluation_is_the_same_in_every_stage(void **state)
{
    (void)state;
    train_into("whole", "1", "0", "0");
    double want = eval_loss("1", "0");
    static const char *const stages[] = {"0", "1", "2", "3", "auto"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        assert_true(fabs(eval_loss("3", stages[i]) - want) <= 1e-4 * want);
}

#define FOUR_HEADS_TEST(name) cmocka_unit_test_setup_teardown(name, four_heads_open, scratch_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FOUR_HEADS_TEST(stages_write_the_same_files),
        FOUR_HEADS_TEST(other_ranks_and_stages_go_on),
        FOUR_HEADS_TEST(an_edited_model_does_not_go_on),
        FOUR_HEADS_TEST(a_step_keeps_its_sequences),
        FOUR_HEADS_TEST(evaluation_is_the_same_in_every_stage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
