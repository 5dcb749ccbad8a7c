/* What a run does between its first line and its last: saves, evaluations, metrics. */
#include <glob.h>

#include "program.h"

static struct finished f;

static const char *const names[] = {"out", "other"};

/* "--checkpoint.output_dir FOLDER" for another run of the same recipe. */
static const char *output_of(int i)
{
    static char paths[2][PROGRAM_PATH];
    snprintf(paths[i], sizeof paths[i], "%s/%s", scratch, names[i]);
    return paths[i];
}

static void writes_a_model_and_metrics(void **state)
{
    (void)state;
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_true(has("out/config.json") && has("out/model.safetensors"));
    assert_non_null(strstr(f.err, "step 12/12"));
    json_t *lines = metrics_of("out");
    assert_steps_once(lines, 12);
    assert_true(metric(lines, 12, "loss") < metric(lines, 1, "loss"));
    assert_true(fabs(metric(lines, 1, "lr") - 5e-3) < 1e-12); /* half-way up the warm-up */
    assert_true(metric(lines, 12, "total_tokens") >= 12 * 100);
    assert_true(metric(lines, 1, "trained_tokens") < metric(lines, 1, "tokens"));
    json_decref(lines);
}

static void keeps_the_newest_checkpoints(void **state)
{
    (void)state;
    train_well(NULL);
    assert_true(!has("out/checkpoint-3") && !has("out/checkpoint-6"));
    assert_true(has("out/checkpoint-9") && has("out/checkpoint-12"));
    const char *const all[] = {"--checkpoint.output_dir", output_of(1),
                               "--checkpoint.save_total_limit", "0", NULL};
    train_well(all);
    assert_true(has("other/checkpoint-3") && has("other/checkpoint-6") &&
                has("other/checkpoint-9") && has("other/checkpoint-12"));
    assert_same_model("out/checkpoint-12", "other/checkpoint-12");
}

/* A time so short that every step is past it. */
static void saves_by_minutes(void **state)
{
    (void)state;
    const char *const often[] = {"--checkpoint.save_every_n_steps",
                                 "0",
                                 "--checkpoint.save_every_n_minutes",
                                 "1e-9",
                                 "--checkpoint.save_total_limit",
                                 "0",
                                 "--train_iters",
                                 "4",
                                 NULL};
    train_well(often);
    assert_true(has("out/checkpoint-1") && has("out/checkpoint-2") && has("out/checkpoint-3") &&
                has("out/checkpoint-4"));
    const char *const seldom[] = {"--checkpoint.output_dir",
                                  output_of(1),
                                  "--checkpoint.save_every_n_steps",
                                  "0",
                                  "--checkpoint.save_every_n_minutes",
                                  "600",
                                  "--checkpoint.save_first_step",
                                  "true",
                                  "--train_iters",
                                  "4",
                                  NULL};
    train_well(seldom);
    assert_true(has("other/checkpoint-1") && !has("other/checkpoint-2") &&
                !has("other/checkpoint-3") && has("other/checkpoint-4"));
}

/* The schedule stays that of the whole run, so the two halves are the whole. */
static void exit_iteration_then_resume_is_the_whole_run(void **state)
{
    (void)state;
    train_well(NULL);
    const char *const half[] = {"--checkpoint.output_dir", output_of(1), "--exit_iteration", "5",
                                NULL};
    train_well(half);
    assert_true(has("other/checkpoint-5") && !has("other/model.safetensors"));
    const char *const rest[] = {"--checkpoint.output_dir", output_of(1), NULL};
    project_run("train", NULL, rest, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "resumed from"));
    assert_same_model("out/checkpoint-12", "other/checkpoint-12");
    assert_same_model("out", "other");
    json_t *lines = metrics_of("other");
    json_t *whole = metrics_of("out");
    assert_steps_once(lines, 12);
    for (int64_t step = 1; step <= 12; step++) {
        assert_true(metric(lines, step, "loss") == metric(whole, step, "loss"));
        assert_true(metric(lines, step, "lr") == metric(whole, step, "lr"));
        assert_true(metric(lines, step, "total_tokens") == metric(whole, step, "total_tokens"));
    }
    json_decref(lines);
    json_decref(whole);
}

/* A finished run started again does nothing but say so. */
static void a_finished_run_stays_finished(void **state)
{
    (void)state;
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    struct stat before, after;
    assert_int_equal(stat(in_scratch("out/checkpoint-12/model.safetensors"), &before), 0);
    assert_null(strstr(f.err, "nothing left"));
    assert_non_null(strstr(f.err, "weights: random, seed"));
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(
        f.err, "nothing left to do: 12 of 12 steps are done; raise epochs or train_iters\n"));
    assert_null(strstr(f.err, "weights: random")); /* they are the checkpoint's */
    assert_int_equal(stat(in_scratch("out/checkpoint-12/model.safetensors"), &after), 0);
    assert_true(before.st_ino == after.st_ino);
    json_t *lines = metrics_of("out");
    assert_steps_once(lines, 12);
    json_decref(lines);
    /* It is past a step that it could have stopped at. */
    const char *const early[] = {"--exit_iteration", "5", NULL};
    project_run("train", NULL, early, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "nothing left to do: 12 of 12 steps are done; raise epochs"));
    assert_null(strstr(f.err, "stopped by"));
    const char *const shorter[] = {"--train_iters", "7", "--zero_stage", "2", NULL};
    project_run("train", NULL, shorter, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "12 steps are done, which is more than the 7 of train_iters"));
    assert_non_null(strstr(f.err, "zero_stage: no effect, there is one rank"));
}

static ino_t inode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_ino;
}

static void change_the_end_of(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -5, SEEK_END), 0);
    int was = fgetc(file);
    assert_int_equal(fseek(file, -5, SEEK_END), 0);
    assert_int_equal(fputc(was ^ 4, file), was ^ 4);
    assert_int_equal(fclose(file), 0);
}

/* The model at the end is written again only if it is not that of the last checkpoint. */
static void a_finished_run_leaves_its_model(void **state)
{
    (void)state;
    train_well(NULL);
    char model[PROGRAM_PATH];
    snprintf(model, sizeof model, "%s", in_scratch("out/model.safetensors"));
    ino_t first = inode_of(model);
    train_well(NULL);
    assert_true(inode_of(model) == first);
    change_the_end_of(model);
    train_well(NULL);
    assert_true(inode_of(model) != first);
    assert_same_files(model, in_scratch("out/checkpoint-12/model.safetensors"));
    const char *const smaller[] = {"--checkpoint.max_shard_gb", "1e-5", NULL};
    train_well(smaller);
    assert_true(has("out/model.safetensors.index.json") && !has("out/model.safetensors"));
}

/* The same of a model in several files, which other limits would divide elsewhere. */
static void a_finished_run_leaves_its_shards(void **state)
{
    (void)state;
    glob_t shards;
    const char *const many[] = {"--checkpoint.max_shard_gb", "1e-5", NULL};
    train_well(many);
    assert_int_equal(glob(in_scratch("out/model-00002-of-*.safetensors"), 0, NULL, &shards), 0);
    assert_int_equal(shards.gl_pathc, 1);
    const char *shard = shards.gl_pathv[0];
    ino_t first = inode_of(shard);
    train_well(many);
    assert_true(inode_of(shard) == first);
    change_the_end_of(shard);
    train_well(many);
    assert_true(inode_of(shard) != first);
    globfree(&shards);
    const char *const one[] = {"--checkpoint.max_shard_gb", "1", NULL};
    train_well(one);
    assert_true(has("out/model.safetensors") && !has("out/model.safetensors.index.json"));
}

static void a_run_at_its_exit_iteration_says_so(void **state)
{
    (void)state;
    const char *const early[] = {"--exit_iteration", "5", NULL};
    project_run("train", NULL, early, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "stopped by exit_iteration after step 5"));
    project_run("train", NULL, early, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "nothing left to do: 5 of 12 steps are done and exit_iteration "
                                  "is 5; raise it, or leave it out\n"));
    assert_null(strstr(f.err, "stopped by"));
}

/* Between the first step and the last only every log_interval-th is printed. */
static void the_last_step_is_always_printed(void **state)
{
    (void)state;
    static const char *const ends[] = {"step 3/3 ", "step 5/12 ", "step 12/12 "};
    const char *const runs[][7] = {
        {"--log_interval", "2", "--train_iters", "3", NULL},
        {"--log_interval", "4", "--exit_iteration", "5", "--checkpoint.output_dir", output_of(1)},
        {"--log_interval", "1000", "--checkpoint.output_dir", output_of(1), NULL}};
    for (int i = 0; i < 3; i++) {
        project_run("train", NULL, runs[i], &f);
        assert_finished_well(&f);
        const char *line = strstr(f.err, ends[i]);
        if (line == NULL)
            fail_msg("no \"%s\" in: %s", ends[i], last_words(&f));
        else
            assert_null(strstr(line + 1, ends[i]));
        assert_null(strstr(f.err, "step 2/12 "));
    }
}

static int64_t count_of(const char *text, const char *word)
{
    int64_t n = 0;
    for (; (text = strstr(text, word)) != NULL; text++)
        n++;
    return n;
}

/* The learning rates of a run that goes on with another length are not those that it began with. */
static void another_length_is_told_once(void **state)
{
    (void)state;
    const char *const early[] = {"--exit_iteration", "5", NULL};
    const char *const longer[] = {"--train_iters", "20", "--exit_iteration", "7", NULL};
    const char *const rest[] = {"--train_iters", "20", NULL};
    train_well(early);
    project_run("train", NULL, longer, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "warning: train_iters was 12 and is 20: learning rates from step "
                                  "6 on follow the new length\n"));
    assert_int_equal(count_of(f.err, "follow the new length"), 1);
    project_run("train", NULL, rest, &f);
    assert_finished_well(&f);
    assert_int_equal(count_of(f.err, "follow the new length"), 0);
}

/* A constant schedule knows no length. */
static void another_length_of_a_constant_schedule_is_no_news(void **state)
{
    (void)state;
    const char *const early[] = {"--scheduler.name", "constant", "--exit_iteration", "3", NULL};
    const char *const longer[] = {"--scheduler.name", "constant", "--train_iters", "14", NULL};
    train_well(early);
    project_run("train", NULL, longer, &f);
    assert_finished_well(&f);
    assert_int_equal(count_of(f.err, "follow the new length"), 0);
}

/* Lines after the checkpoint, of other programs and torn ones do not survive a resume. */
/* 60 samples, a sequence each. */
static void steps_of_more_than_an_epoch_are_told(void **state)
{
    (void)state;
    const char *extra[] = {"--data.pack_samples",
                           "false",
                           "--epochs",
                           "1",
                           "--train_iters",
                           "0",
                           "--scheduler.warmup_steps",
                           "0",
                           "--gradient_accumulation_steps",
                           "90",
                           NULL};
    project_run("train", NULL, extra, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err,
                           "warning: one step takes 90 sequences and an epoch has 60: a step "
                           "passes over the data 1.5 times, 1.5 in all where epochs is 1; "));
    assert_null(strstr(f.err, "filled up"));

    assert_int_equal(tri_remove_folder(in_scratch("out")), TRI_OK);
    extra[9] = "7";
    project_run("train", NULL, extra, &f);
    assert_finished_well(&f);
    assert_null(strstr(f.err, "one step takes"));
    assert_non_null(strstr(f.err, "the last step is filled up with 3 of its 7 sequences from the "
                                  "next epoch\n"));
    extra[9] = "10";
    assert_int_equal(tri_remove_folder(in_scratch("out")), TRI_OK);
    project_run("train", NULL, extra, &f);
    assert_finished_well(&f);
    assert_null(strstr(f.err, "filled up"));
}

static void metrics_are_cut_and_continued(void **state)
{
    (void)state;
    const char *const half[] = {"--exit_iteration", "5", NULL};
    train_well(half);
    FILE *file = fopen(in_scratch("out/metrics.jsonl"), "a");
    assert_non_null(file);
    fputs("{\"step\": 6, \"loss\": 99.0}\n{\"step\": 7, \"loss\": 99.0}\nnonsense\n{\"step\": 8, "
          "\"lo",
          file);
    assert_int_equal(fclose(file), 0);
    train_well(NULL);
    json_t *lines = metrics_of("out");
    assert_steps_once(lines, 12);
    assert_true(metric(lines, 6, "loss") < 50);
    json_decref(lines);
}

static void evaluates_at_intervals_and_afterwards(void **state)
{
    (void)state;
    char source[PROGRAM_PATH], model[PROGRAM_PATH], text[64];
    snprintf(source, sizeof source, "[%s/eval.jsonl]", scratch);
    const char *const extra[] = {"--data.eval_sources", source, "--eval_interval", "6", NULL};
    train_well(extra);
    json_t *lines = metrics_of("out");
    double early = metric(lines, 6, "eval_loss");
    double late = metric(lines, 12, "eval_loss");
    assert_true(late < early);
    /* Every token of the three sequences counts once. */
    assert_int_equal(metric(lines, 6, "eval_tokens"), 450);
    assert_int_equal(metric(lines, 6, "eval_trained_tokens"), 442);
    assert_true(fabs(metric(lines, 12, "eval_perplexity") - exp(late)) < 1e-9 * exp(late));
    size_t evals = 0, i;
    json_t *line;
    json_array_foreach(lines, i, line) evals += json_object_get(line, "eval_loss") != NULL;
    assert_int_equal(evals, 2);
    json_decref(lines);

    /* Evaluating changes nothing in training. */
    const char *const other[] = {"--checkpoint.output_dir", output_of(1), NULL};
    train_well(other);
    assert_same_model("out", "other");

    /* The exported folder is the model that was measured. */
    snprintf(model, sizeof model, "%s/out", scratch);
    const char *const again[] = {
        "--data.eval_sources", source, "--model.name_or_path", model, "--model.init",
        "checkpoint",          NULL};
    project_run("eval", NULL, again, &f);
    assert_finished_well(&f);
    snprintf(text, sizeof text, "eval loss %.6f,", late);
    if (strstr(f.out, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, f.out);
}

static void overfits_the_first_batch(void **state)
{
    (void)state;
    const char *const extra[] = {"--overfit_first_batch",
                                 "true",
                                 "--train_iters",
                                 "60",
                                 "--scheduler.name",
                                 "constant",
                                 NULL};
    train_well(extra);
    json_t *lines = metrics_of("out");
    assert_steps_once(lines, 60);
    for (int64_t step = 2; step <= 60; step++) {
        assert_true(metric(lines, step, "tokens") == metric(lines, 1, "tokens"));
        assert_true(metric(lines, step, "trained_tokens") == metric(lines, 1, "trained_tokens"));
    }
    /* From log 259 = 5.56 to well under the entropy of the words' letters. */
    assert_true(metric(lines, 1, "loss") > 5);
    assert_true(metric(lines, 60, "loss") < 2.5);
    json_decref(lines);
}

/* Two runs of the same recipe are the same run, and another seed is another one. */
static void equal_recipes_give_equal_weights(void **state)
{
    (void)state;
    const char *const other[] = {"--checkpoint.output_dir", output_of(1), NULL};
    train_well(NULL);
    train_well(other);
    assert_same_model("out", "other");
    struct tri_map x, y;
    const char *const seed[] = {"--checkpoint.output_dir", output_of(1), "--seed", "43", NULL};
    assert_int_equal(tri_remove_folder(output_of(1)), TRI_OK);
    train_well(seed);
    assert_int_equal(tri_map_open(in_scratch("out/model.safetensors"), &x), TRI_OK);
    assert_int_equal(tri_map_open(in_scratch("other/model.safetensors"), &y), TRI_OK);
    assert_int_equal(x.bytes, y.bytes);
    assert_true(memcmp(x.data, y.data, x.bytes) != 0);
    tri_map_close(&x);
    tri_map_close(&y);
}

/* How it is computed may change from one resume to the next. */
static void memory_options_may_change_on_resume(void **state)
{
    (void)state;
    const char *const half[] = {"--exit_iteration", "5", NULL};
    const char *const rest[] = {"--activation_checkpointing", "none", "--fpdt.chunk_size", "64",
                                NULL};
    train_well(half);
    train_well(rest);
    json_t *lines = metrics_of("out");
    assert_steps_once(lines, 12);
    json_decref(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(writes_a_model_and_metrics),
        PROJECT_TEST(keeps_the_newest_checkpoints),
        PROJECT_TEST(saves_by_minutes),
        PROJECT_TEST(exit_iteration_then_resume_is_the_whole_run),
        PROJECT_TEST(a_finished_run_stays_finished),
        PROJECT_TEST(a_finished_run_leaves_its_model),
        PROJECT_TEST(a_finished_run_leaves_its_shards),
        PROJECT_TEST(a_run_at_its_exit_iteration_says_so),
        PROJECT_TEST(the_last_step_is_always_printed),
        PROJECT_TEST(another_length_is_told_once),
        PROJECT_TEST(another_length_of_a_constant_schedule_is_no_news),
        PROJECT_TEST(steps_of_more_than_an_epoch_are_told),
        PROJECT_TEST(metrics_are_cut_and_continued),
        PROJECT_TEST(evaluates_at_intervals_and_afterwards),
        PROJECT_TEST(overfits_the_first_batch),
        PROJECT_TEST(equal_recipes_give_equal_weights),
        PROJECT_TEST(memory_options_may_change_on_resume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
