/* The example's own loop over the public interface against `trireme train` on the same samples:
 * the same losses and gradient norms, bit for bit; with an update of its own nearly so. */
#include "program.h"

enum { LENGTH = 96, SAMPLES = 7, STEPS = 6 };

/* Run the example and read what it printed of each step. */
static void run_example(const char *ranks, const char *update, double *loss, double *norm)
{
    char example[PROGRAM_PATH], command[5 * PROGRAM_PATH];
    const char *slash = strrchr(TEST_PROGRAM, '/');
    snprintf(example, sizeof example, "%.*s/examples/own_loop", (int)(slash - TEST_PROGRAM),
             TEST_PROGRAM);
    snprintf(command, sizeof command, "'%s' '%s/model' '%s/train.txt' %s %d %d %s", example,
             scratch, scratch, ranks, STEPS, LENGTH, update);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    for (int i = 0; i < STEPS; i++) {
        int step;
        int got = fscanf(out, "step %d loss %lf norm %lf tokens %*d\n", &step, &loss[i], &norm[i]);
        assert_int_equal(got, 3);
        assert_int_equal(step, i + 1);
    }
    assert_int_equal(pclose(out), 0);
}

/* The same bytes as a text and as samples of token ids. The last sample is not full. */
static void put_samples(void)
{
    FILE *text = fopen(in_scratch("train.txt"), "w");
    FILE *lines = fopen(in_scratch("train.jsonl"), "w");
    assert_true(text != NULL && lines != NULL);
    unsigned seed = 5;
    for (int s = 0; s < SAMPLES; s++) {
        fputs("{\"input_ids\": [", lines);
        for (int t = 0; t < LENGTH; t++) {
            seed = seed * 1664525u + 1013904223u;
            int byte = 'a' + (int)((seed >> 20) % 7) + (t % 3 == 0 ? 8 : 0);
            fputc(byte, text);
            fprintf(lines, "%s%d", t > 0 ? ", " : "", byte);
        }
        fputs("]}\n", lines);
    }
    fputs("left over", text);
    assert_int_equal(fclose(text), 0);
    assert_int_equal(fclose(lines), 0);
}

static void train(const char *ranks, double *loss, double *norm)
{
    static struct finished f;
    static const char batches[] = "--gradient_accumulation_steps";
    char steps[16];
    snprintf(steps, sizeof steps, "%d", STEPS);
    const char *const args[] = {"--ranks",
                                ranks,
                                "--sequence_parallel_size",
                                ranks,
                                batches,
                                ranks,
                                "--train_iters",
                                steps,
                                "--data.pack_samples",
                                "false",
                                "--data.shuffle",
                                "false",
                                "--zero_stage",
                                "0",
                                "--data.max_length",
                                "96",
                                "--scheduler.name",
                                "constant",
                                "--scheduler.warmup_steps",
                                "0",
                                "--optimizer.weight_decay",
                                "0.1",
                                "--optimizer.betas",
                                "[0.9, 0.999]",
                                "--seed",
                                "42",
                                NULL};
    project_run("train", NULL, args, &f);
    assert_finished_well(&f);
    json_t *lines = metrics_of("out");
    for (int i = 0; i < STEPS; i++) {
        loss[i] = metric(lines, i + 1, "loss");
        norm[i] = metric(lines, i + 1, "grad_norm");
    }
    json_decref(lines);
}

/* On this number of ranks: a step takes a sample of each, and epochs end inside of steps. */
static void compare(const char *ranks)
{
    double want[2][STEPS], got[2][STEPS];
    put_samples();
    train(ranks, want[0], want[1]);
    run_example(ranks, "", got[0], got[1]);
    for (int i = 0; i < STEPS; i++)
        if (got[0][i] != want[0][i] || got[1][i] != want[1][i])
            fail_msg("%s ranks, step %d: loss %.17g, trireme train has %.17g; norm %.17g, %.17g",
                     ranks, i + 1, got[0][i], want[0][i], got[1][i], want[1][i]);
    assert_true(want[0][STEPS - 1] < want[0][0] - 0.5);
    run_example(ranks, "own", got[0], got[1]);
    for (int i = 0; i < STEPS; i++)
        if (!(fabs(got[0][i] - want[0][i]) <= 1e-5 * want[0][i]))
            fail_msg("%s ranks, own update, step %d: loss %.17g, not %.17g", ranks, i + 1,
                     got[0][i], want[0][i]);
}

static void one_rank_trains_as_the_trainer(void **state)
{
    (void)state;
    compare("1");
}

static void two_ranks_train_as_the_trainer(void **state)
{
    (void)state;
    compare("2");
}

static void the_page_about_the_interface_runs(void **state)
{
    (void)state;
    char command[PROGRAM_PATH], line[128];
    const char *slash = strrchr(TEST_PROGRAM, '/');
    snprintf(command, sizeof command, "'%.*s/examples/snippet'", (int)(slash - TEST_PROGRAM),
             TEST_PROGRAM);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof line, out));
    assert_int_equal(pclose(out), 0);
    assert_memory_equal(line, "4 ranks, mean ", 14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(one_rank_trains_as_the_trainer),
        PROJECT_TEST(two_ranks_train_as_the_trainer),
        cmocka_unit_test(the_page_about_the_interface_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
