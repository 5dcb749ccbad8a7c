/* The program as a user meets it. TEST_PROGRAM is its path. */
#include "unit/scratch.h"

#include <sys/wait.h>

/* Run "trireme ARGS"; returns the exit code, `text` gets both outputs. */
static int run(const char *args, char *text, size_t capacity)
{
    char command[4096];
    snprintf(command, sizeof command, "%s %s 2>&1", TEST_PROGRAM, args);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t bytes = fread(text, 1, capacity - 1, pipe);
    text[bytes] = '\0';
    while (fgetc(pipe) != EOF)
        continue;
    int status = pclose(pipe);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void prints(const char *args, const char *part)
{
    static char text[1 << 16];
    if (run(args, text, sizeof text) != 0)
        fail_msg("trireme %s failed: %s", args, text);
    if (strstr(text, part) == NULL)
        fail_msg("trireme %s: \"%s\" is not in: %s", args, part, text);
}

static void fails(const char *args, const char *line)
{
    char text[4096];
    assert_int_equal(run(args, text, sizeof text), 1);
    assert_string_equal(text, line);
}

static void explains_itself(void **state)
{
    (void)state;
    prints("", "First steps:");
    prints("help", "Usage: trireme VERB");
    prints("-h", "Usage: trireme VERB");
    prints("help train", "Usage: trireme train RECIPE");
    prints("train --help", "Usage: trireme train RECIPE");
    prints("help recipe", "\n  scheduler.warmup_steps\n");
    prints("help lr", "optimizer.learning_rate");
    prints("help scheduler", "scheduler.warmup_ratio");
    prints("help model.rope", "model.rope.factor");
    prints("help fpdt", "fpdt.chunk_size");
    prints("help warmup", "scheduler.warmup_steps");
    prints("help bf16", "use model.dtype: bfloat16");
    prints("--version", "trireme 0.");
    prints("version", "trireme 0.");
    prints("info", "CPU kernels");
    prints("info", "\nMPI  ");
    prints("help data.weights", "a list of numbers >= 0");
    prints("help save_every_n_minutes", "checkpoint.save_every_n_minutes");
}

static void fails_in_one_line(void **state)
{
    (void)state;
    fails("trian", "error: unknown verb 'trian'; did you mean 'train'?\n");
    fails("frobnicate", "error: unknown verb 'frobnicate' (`trireme help` lists all)\n");
    fails("my.yml", "error: the verb is missing: trireme train my.yml\n");
    fails("help data.max_lenght",
          "error: help: unknown key 'data.max_lenght'; did you mean 'data.max_length'?\n");
    fails("help ifno", "error: unknown verb 'ifno'; did you mean 'info'?\n");
    fails("help frobnicate",
          "error: help: unknown key 'frobnicate' (`trireme help recipe` lists all keys)\n");
    fails("version now", "error: version takes no 'now'\n");
    fails("train", "error: a recipe is missing: trireme train RECIPE [--key value]...\n");
    fails("info now", "error: info takes no 'now'\n");
    char args[4500];
    put_text(in_scratch("r.yml"), "model: {name_or_path: m}\noptimizer: {learnin_rate: 1}\n");
    snprintf(args, sizeof args, "train %s", in_scratch("r.yml"));
    char line[9000];
    snprintf(line, sizeof line,
             "error: %s:2: unknown key 'optimizer.learnin_rate'; did you mean "
             "'optimizer.learning_rate'?\n",
             in_scratch("r.yml"));
    fails(args, line);
}

/* Of a launcher's processes the first describes; the others end well. */
static void speaks_as_the_first_rank(void **state)
{
    (void)state;
    static const char *const verbs[] = {
        "version", "-V", "help", "-h", "info", "rehearse", "data inspect r.yml", "train -h"};
    char text[1 << 15];
    assert_int_equal(setenv("OMPI_COMM_WORLD_SIZE", "2", 1), 0);
    assert_int_equal(setenv("OMPI_COMM_WORLD_RANK", "1", 1), 0);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        assert_int_equal(run(verbs[i], text, sizeof text), 0);
        assert_string_equal(text, "");
    }
    assert_int_equal(setenv("OMPI_COMM_WORLD_RANK", "0", 1), 0);
    prints("version", "trireme 0.");
    fails("info now", "error: info takes no 'now'\n");
    assert_int_equal(unsetenv("OMPI_COMM_WORLD_RANK"), 0);
    assert_int_equal(unsetenv("OMPI_COMM_WORLD_SIZE"), 0);
}

static void notices_a_full_disk(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(run("help recipe 2>&1 >/dev/full #", text, sizeof text), 1);
    assert_string_equal(text, "error: cannot write to standard output\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explains_itself),
        SCRATCH_TEST(fails_in_one_line),
        cmocka_unit_test(speaks_as_the_first_rank),
        cmocka_unit_test(notices_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
