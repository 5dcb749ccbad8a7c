/* Runs that are killed, stopped, or started twice. */
#include "program.h"

static struct finished f;

static const char *other_folder(void)
{
    static char path[PROGRAM_PATH];
    snprintf(path, sizeof path, "%s/other", scratch);
    return path;
}

/* Packing, accumulation, shuffling over several epochs, a save at every second step. */
static const char *const busy[] = {"--gradient_accumulation_steps",
                                   "2",
                                   "--micro_batch_size",
                                   "2",
                                   "--train_iters",
                                   "24",
                                   "--checkpoint.save_every_n_steps",
                                   "2",
                                   NULL};
enum { BUSY = 8, STEPS = 24 };

static void with_output(const char *const *keys, int count, const char *folder, const char **out)
{
    for (int i = 0; i < count; i++)
        out[i] = keys[i];
    out[count] = "--checkpoint.output_dir";
    out[count + 1] = folder;
    out[count + 2] = NULL;
}

static void assert_equals_uninterrupted(const char *const *keys, int count, int64_t steps)
{
    const char *extra[PROGRAM_MAX_ARGS];
    char a[64], b[64];
    with_output(keys, count, other_folder(), extra);
    train_well(extra);
    snprintf(a, sizeof a, "out/checkpoint-%d", (int)steps);
    snprintf(b, sizeof b, "other/checkpoint-%d", (int)steps);
    assert_same_model(a, b);
    assert_same_model("out", "other");
    json_t *lines = metrics_of("out");
    json_t *whole = metrics_of("other");
    assert_steps_once(lines, steps);
    for (int64_t step = 1; step <= steps; step++)
        assert_true(metric(lines, step, "loss") == metric(whole, step, "loss") &&
                    metric(lines, step, "total_trained_tokens") ==
                        metric(whole, step, "total_trained_tokens"));
    json_decref(lines);
    json_decref(whole);
}

/* Start the run, kill it `ms` after it has made a checkpoint in this life. True if it was still
 * running. */
static bool kill_after_a_save(const char *const *extra, long ms)
{
    struct watch w = watch_open(in_scratch("out"));
    pid_t pid = project_start("train", extra);
    bool alive = watch_for(&w, pid, "[saved]");
    if (alive)
        sleep_ms(ms);
    kill(pid, SIGKILL);
    program_finish_as("run", pid, &f);
    watch_close(&w);
    if (f.signal != SIGKILL)
        assert_finished_well(&f);
    return f.signal == SIGKILL;
}

/* A run killed again and again, whenever it had the time for something. */
static void killed_at_any_moment(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_scratch("out"), 0777), 0);
    int kills = 0;
    while (kills < 6 && kill_after_a_save(busy, 7L * kills))
        kills++;
    assert_true(kills >= 2);
    project_run("train", NULL, busy, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "resumed from"));
    assert_equals_uninterrupted(busy, BUSY, STEPS);
}

/* Killed while a checkpoint is being written: what is incomplete is not gone on from, and the next
 * run clears it away. */
static void killed_during_a_save(void **state)
{
    (void)state;
    int torn = 0;
    assert_int_equal(mkdir(in_scratch("out"), 0777), 0);
    for (int save = 1; save <= 4; save++) {
        char making[64];
        struct watch w = watch_open(in_scratch("out"));
        pid_t pid = project_start("train", busy);
        snprintf(making, sizeof making, "checkpoint-%d.tmp", 2 * (torn + 1));
        bool alive = watch_for(&w, pid, making);
        kill(pid, SIGKILL);
        program_finish_as("run", pid, &f);
        watch_close(&w);
        assert_true(alive);
        assert_int_equal(f.signal, SIGKILL);
        char path[80];
        snprintf(path, sizeof path, "out/%s", making);
        if (has(path)) {
            torn++;
            /* Let the next one get past this save. */
            snprintf(making, sizeof making, "%d", 2 * torn);
            const char *extra[PROGRAM_MAX_ARGS];
            with_output(busy, BUSY, in_scratch("out"), extra);
            extra[BUSY + 2] = "--exit_iteration";
            extra[BUSY + 3] = making;
            extra[BUSY + 4] = NULL;
            train_well(extra);
            assert_false(has(path));
        } else {
            break; /* the save was quicker: this run has passed the watched step */
        }
    }
    assert_true(torn >= 1);
    train_well(busy);
    assert_equals_uninterrupted(busy, BUSY, STEPS);
}

/* A torn folder by hand, so that it is tried whatever the timing. */
static void incomplete_saves_are_cleared(void **state)
{
    (void)state;
    const char *const half[] = {"--exit_iteration", "5", NULL};
    train_well(half);
    assert_int_equal(mkdir(in_scratch("out/checkpoint-9.tmp"), 0777), 0);
    put_text(in_scratch("out/checkpoint-9.tmp/trainer_state.json"), "{\"global_step\": 9}");
    train_well(NULL);
    assert_false(has("out/checkpoint-9.tmp"));
    assert_equals_uninterrupted(NULL, 0, 12);
}

static void stops_at_a_step(int number, const char *name)
{
    assert_int_equal(mkdir(in_scratch("out"), 0777), 0);
    const char *const slow[] = {"--train_iters", "400", "--checkpoint.save_every_n_steps", "0",
                                NULL};
    struct watch w = watch_open(in_scratch("out"));
    pid_t pid = project_start("train", slow);
    assert_true(watch_for(&w, pid, "metrics.jsonl")); /* made */
    assert_true(watch_for(&w, pid, "metrics.jsonl")); /* the first step */
    assert_int_equal(kill(pid, number), 0);
    program_finish_as("run", pid, &f);
    watch_close(&w);
    assert_finished_well(&f);
    if (strstr(f.err, name) == NULL)
        fail_msg("\"%s\" is not in: %s", name, f.err);
    json_t *lines = metrics_of("out");
    int64_t done = (int64_t)json_array_size(lines);
    assert_steps_once(lines, done);
    json_decref(lines);
    assert_true(done >= 1 && done < 400);
    char path[64];
    snprintf(path, sizeof path, "out/checkpoint-%d", (int)done);
    assert_true(has(path));               /* it saved the step it had reached */
    assert_false(has("out/config.json")); /* and did not claim to be the finished model */
    train_well(slow);
    assert_equals_uninterrupted(slow, 4, 400);
}

static void sigterm_stops_and_saves(void **state)
{
    (void)state;
    stops_at_a_step(SIGTERM, "stopped by SIGTERM after");
}

static void sigint_stops_and_saves(void **state)
{
    (void)state;
    stops_at_a_step(SIGINT, "stopped by SIGINT (Ctrl-C) after");
}

static void a_closed_terminal_stops_and_saves(void **state)
{
    (void)state;
    stops_at_a_step(SIGHUP, "stopped by SIGHUP after");
}

/* `trireme train recipe.yml 2>&1 | tee log`: Ctrl-C ends the tee first. */
static void a_log_without_a_reader_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_scratch("out"), 0777), 0);
    assert_int_equal(mkfifo(in_scratch("run.err"), 0600), 0);
    int reader = open(in_scratch("run.err"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    const char *const slow[] = {"--train_iters", "100000", "--checkpoint.save_every_n_steps", "0",
                                NULL};
    struct watch w = watch_open(in_scratch("out"));
    pid_t pid = project_start("train", slow);
    bool alive = watch_for(&w, pid, "metrics.jsonl") && watch_for(&w, pid, "metrics.jsonl");
    close(reader);
    sleep_ms(50); /* steps whose lines nobody reads */
    kill(pid, SIGINT);
    assert_int_equal(remove(in_scratch("run.err")), 0);
    program_finish_as("run", pid, &f);
    watch_close(&w);
    assert_true(alive);
    assert_finished_well(&f);
    json_t *lines = metrics_of("out");
    char path[64];
    snprintf(path, sizeof path, "out/checkpoint-%d", (int)json_array_size(lines));
    json_decref(lines);
    assert_true(has(path));
}

static void two_runs_cannot_share_a_folder(void **state)
{
    (void)state;
    char owner[64];
    assert_int_equal(mkdir(in_scratch("out"), 0777), 0);
    const char *const slow[] = {"--train_iters", "100000", NULL};
    struct watch w = watch_open(in_scratch("out"));
    pid_t pid = project_start("train", slow);
    assert_true(watch_for(&w, pid, "metrics.jsonl"));
    const char *const short_one[] = {"--train_iters", "100000", "--exit_iteration", "1", NULL};
    struct arguments a;
    arguments_of(&a, "train", short_one);
    program_finish_as("second", program_start_as("second", NULL, a.list), &f);
    assert_one_error(&f, "in use by another run");
    snprintf(owner, sizeof owner, "process %d", (int)pid);
    assert_one_error(&f, owner);
    kill(pid, SIGKILL);
    program_finish_as("run", pid, &f);
    watch_close(&w);
    assert_int_equal(f.signal, SIGKILL);

    /* The lock went with its process. */
    char text[32];
    json_t *lines = metrics_of("out");
    snprintf(text, sizeof text, "%d", (int)json_array_size(lines) + 1);
    json_decref(lines);
    const char *const end[] = {"--train_iters", "100000", "--exit_iteration", text, NULL};
    train_well(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(killed_at_any_moment),
        PROJECT_TEST(killed_during_a_save),
        PROJECT_TEST(incomplete_saves_are_cleared),
        PROJECT_TEST(sigterm_stops_and_saves),
        PROJECT_TEST(sigint_stops_and_saves),
        PROJECT_TEST(a_closed_terminal_stops_and_saves),
        PROJECT_TEST(a_log_without_a_reader_changes_nothing),
        PROJECT_TEST(two_runs_cannot_share_a_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
