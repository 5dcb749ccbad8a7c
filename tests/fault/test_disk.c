/* A disk that fills up, numbers that overflow: what was saved before stays as it was. */
#include "program.h"

#include <errno.h>
#include <sys/resource.h>

#include "ckpt/safetensors.h"

static struct finished f;

static const char *const half[] = {"--exit_iteration", "6", NULL};

/* The files of checkpoint-6 as those of the uninterrupted run in kept/, but for the recipe, which
 * names its output folder. */
static void assert_checkpoint_6_is_intact(const char *recipe)
{
    static const char *const names[] = {"config.json", "model.safetensors", "optimizer.safetensors",
                                        "trainer_state.json"};
    for (int i = 0; i < 4; i++) {
        char a[PROGRAM_PATH], b[PROGRAM_PATH];
        snprintf(a, sizeof a, "%s/out/checkpoint-6/%s", scratch, names[i]);
        snprintf(b, sizeof b, "%s/kept/checkpoint-6/%s", scratch, names[i]);
        assert_same_files(a, b);
    }
    assert_file_is(in_scratch("out/checkpoint-6/recipe.yml"), recipe);
}

/* kept/: an uninterrupted run with all its checkpoints. */
static void put_kept(void)
{
    char kept[PROGRAM_PATH];
    snprintf(kept, sizeof kept, "%s/kept", scratch);
    const char *const extra[] = {"--checkpoint.output_dir", kept, "--checkpoint.save_total_limit",
                                 "0", NULL};
    train_well(extra);
}

/* Each write of the save at step 9 in turn, until there is none left to fail. */
static void a_full_disk_at_each_write_of_a_save(void **state)
{
    (void)state;
    put_kept();
    train_well(half);
    char *recipe = get_text(in_scratch("out/checkpoint-6/recipe.yml"));
    int failures = 0;
    for (int write = 1;; write++) {
        char environment[64];
        const char *const next[] = {"--exit_iteration", "9", NULL};
        assert_true(write < 100);
        snprintf(environment, sizeof environment, "TRIREME_FAIL_WRITE=%d", write);
        project_run("train", environment, next, &f);
        if (f.code == 0)
            break;
        failures++;
        assert_one_error(&f, "checkpoint-9");
        assert_one_error(&f, "No space left on device");
        assert_one_error(&f, "earlier checkpoints are untouched");
        assert_false(has("out/checkpoint-9"));
        assert_false(has("out/checkpoint-9.tmp"));
        assert_checkpoint_6_is_intact(recipe);
    }
    free(recipe);
    /* Weights, config, optimizer, recipe and state were each refused once. */
    assert_true(failures >= 5);
    train_well(NULL);
    assert_same_model("out/checkpoint-12", "kept/checkpoint-12");
    assert_same_model("out", "kept");
    json_t *lines = metrics_of("out");
    assert_steps_once(lines, 12);
    json_decref(lines);
}

/* The export of the finished model: the checkpoint before it is there, and the next try is whole.
 */
static void a_full_disk_at_the_end(void **state)
{
    (void)state;
    put_kept();
    train_well(NULL);
    assert_int_equal(remove(in_scratch("out/model.safetensors")), 0);
    int failures = 0;
    for (int write = 1;; write++) {
        char environment[64];
        assert_true(write < 100);
        snprintf(environment, sizeof environment, "TRIREME_FAIL_WRITE=%d", write);
        project_run("train", environment, NULL, &f);
        if (f.code == 0)
            break;
        failures++;
        assert_one_error(&f, "No space left on device");
        assert_false(has("out/model.safetensors"));
        assert_true(has("out/checkpoint-12/model.safetensors"));
    }
    assert_true(failures >= 2);
    assert_same_model("out", "kept");
}

static void a_full_disk_under_the_metrics(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_scratch("out"), 0777), 0);
    assert_int_equal(symlink("/dev/full", in_scratch("out/metrics.jsonl")), 0);
    project_run("train", NULL, NULL, &f);
    assert_one_error(&f, "metrics.jsonl");
    assert_false(has("out/checkpoint-3"));
}

static void assert_all_finite(const char *path)
{
    struct tri_st *file = NULL;
    if (tri_st_open(path, &file) != TRI_OK)
        fail_msg("%s", tri_error_text());
    for (int64_t i = 0; i < tri_st_count(file); i++) {
        const struct tri_st_tensor *t = tri_st_at(file, i);
        for (size_t at = 0; at < t->bytes; at += sizeof(float)) {
            float x;
            memcpy(&x, (const char *)t->data + at, sizeof x);
            assert_true(isfinite(x));
        }
    }
    tri_st_close(file);
}

/* `ulimit -f`: the signal that comes with it must not end the run without a word. */
static void files_limited_in_size(void **state)
{
    (void)state;
    struct rlimit before, limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 40000; /* less than the weights, more than the messages */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    project_run("train", NULL, NULL, &f);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_one_error(&f, "checkpoint-3");
    assert_one_error(&f, strerror(EFBIG));
    assert_false(has("out/checkpoint-3.tmp"));
}

/* Decay times rate is so large that each update multiplies the weights by -1e15: they overflow
 * within a few steps, and with them the loss. Every step before is saved, none after. */
static void overflow_stops_and_saves_nothing(void **state)
{
    (void)state;
    const char *const absurd[] = {"--optimizer.learning_rate",
                                  "1",
                                  "--optimizer.weight_decay",
                                  "1e15",
                                  "--gradient_clipping",
                                  "0",
                                  "--scheduler.warmup_steps",
                                  "0",
                                  "--scheduler.name",
                                  "constant",
                                  "--checkpoint.save_every_n_steps",
                                  "1",
                                  "--checkpoint.save_total_limit",
                                  "0",
                                  NULL};
    project_run("train", NULL, absurd, &f);
    assert_one_error(&f, "nothing was saved");
    assert_one_error(&f, "optimizer.learning_rate");
    assert_false(has("out/config.json"));
    json_t *lines = metrics_of("out");
    int64_t steps = (int64_t)json_array_size(lines);
    assert_true(steps >= 1 && steps < 12);
    assert_steps_once(lines, steps);
    json_decref(lines);
    for (int64_t step = 1; step <= 12; step++) {
        char path[64];
        snprintf(path, sizeof path, "out/checkpoint-%d/model.safetensors", (int)step);
        assert_int_equal(has(path), step <= steps);
        if (step > steps)
            continue;
        assert_all_finite(in_scratch(path));
        snprintf(path, sizeof path, "out/checkpoint-%d/optimizer.safetensors", (int)step);
        assert_all_finite(in_scratch(path));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(a_full_disk_at_each_write_of_a_save), PROJECT_TEST(a_full_disk_at_the_end),
        PROJECT_TEST(a_full_disk_under_the_metrics),       PROJECT_TEST(files_limited_in_size),
        PROJECT_TEST(overflow_stops_and_saves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
