/* trireme data build and data inspect, as a user meets them. */
#include "program.h"

static struct finished f;

/* A path of the scratch folder that lives as long as the test. */
static const char *kept(int i, const char *name)
{
    static char paths[2][PROGRAM_PATH];
    snprintf(paths[i], sizeof paths[i], "%s/%s", scratch, name);
    return paths[i];
}

/* "trireme data WHAT recipe.yml EXTRA..." */
static void data(const char *what, const char *environment, const char *const *extra)
{
    const char *args[PROGRAM_MAX_ARGS] = {"data", what, kept(0, "recipe.yml")};
    for (int i = 0; extra != NULL && extra[i] != NULL; i++)
        args[3 + i] = extra[i];
    program_run(environment, args, &f);
}

static void shows(const char *text)
{
    if (strstr(f.out, text) == NULL)
        fail_msg("\"%s\" is not in: %s", text, f.out);
}

static void inspect_tells_what_training_will_see(void **state)
{
    (void)state;
    static const char *const extra[] = {
        "-n", "2", "--tokens", "30", "--epochs", "2", "--train_iters", "0", NULL};
    data("inspect", NULL, extra);
    assert_finished_well(&f);
    shows("1 file, 60 samples; an epoch trains on ");
    shows("lengths in tokens (60 samples, the longest has ");
    shows("  ##################################################");
    shows("too long: no sample is longer than 192 tokens");
    shows("packing: ");
    shows("data.packing_strategy: best_fit makes ");
    shows("data.packing_strategy: in_order makes ");
    shows("(1 micro_batch_size x 1 gradient_accumulation_steps x 1 replica)");
    shows("epochs: 2, so ");
    assert_null(strstr(f.out, "filled up")); /* a sequence a step */
    shows("what is trained is in [brackets]");
    shows("\nsequence 0: ");
    shows("\nsequence 1: ");
    assert_null(strstr(f.out, "sequence 2: "));
    shows(" tokens more (--tokens shows them)");
    assert_null(strchr(f.out, '\033'));
    assert_false(has("out")); /* nothing is written */
}

/* Ten texts of 5 tokens, one of 11 that is too long, and three of 7: the first source twice, half
 * of the second. */
static void inspect_counts_by_weights(void **state)
{
    (void)state;
    FILE *file = fopen(in_scratch("train.jsonl"), "w");
    assert_non_null(file);
    for (int i = 0; i < 10; i++)
        fprintf(file, "{\"text\": \"%03d\"}\n", i);
    fputs("{\"text\": \"too long.\"}\n", file);
    assert_int_equal(fclose(file), 0);
    put_text(in_scratch("second.jsonl"), "{\"text\": \"12345\"}\n{\"text\": \"12345\"}\n"
                                         "{\"text\": \"12345\"}\n");
    char sources[2 * PROGRAM_PATH + 8];
    snprintf(sources, sizeof sources, "[%s, %s]", kept(0, "train.jsonl"), kept(1, "second.jsonl"));
    const char *const extra[] = {"-n",
                                 "0",
                                 "--data.sources",
                                 sources,
                                 "--data.weights",
                                 "[2, 0.5]",
                                 "--data.max_length",
                                 "10",
                                 "--data.overlength",
                                 "drop",
                                 "--data.pack_samples",
                                 "false",
                                 "--epochs",
                                 "3",
                                 "--train_iters",
                                 "0",
                                 NULL};
    data("inspect", NULL, extra);
    assert_finished_well(&f);
    shows("2 files, 14 samples; an epoch (by data.weights) has 21 samples and trains on 86 of 107 "
          "tokens (80.4%)\n");
    shows("steps: 21.00 in the first epoch = 21 sequences / ");
    shows("  epochs: 3, so 64 steps\n  each epoch makes its own sequences: 21, 22, 21\n");
}

/* The steps that inspect counts are those that training takes. */
static void inspect_counts_the_steps_of_training(void **state)
{
    (void)state;
    static const char *const extra[] = {
        "--epochs", "1.5", "--train_iters", "0", "--micro_batch_size", "3", NULL};
    data("inspect", NULL, extra);
    assert_finished_well(&f);
    const char *at = strstr(f.out, "so ");
    assert_non_null(at);
    const long steps = strtol(at + 3, NULL, 10);
    project_run("train", NULL, extra, &f);
    assert_finished_well(&f);
    char last[64];
    snprintf(last, sizeof last, "step %ld/%ld ", steps, steps);
    assert_non_null(strstr(f.err, last));
}

/* Masks as labels say: what is not trained stands outside the brackets. */
static void inspect_shows_masks(void **state)
{
    (void)state;
    put_text(in_scratch("train.jsonl"),
             "{\"input_ids\": [81, 58, 32, 119, 104, 111, 63, 32, 65, 58, 32, 109, 101, 46, 27],"
             " \"labels\": [-100, -100, -100, -100, -100, -100, -100, -100, -100, -100, -100, 109,"
             " 101, 46, -100]}\n");
    data("inspect", NULL, NULL);
    assert_finished_well(&f);
    shows("sequence 0: 15 tokens, 3 trained, 1 document\nQ: who? A: [me.]\\x1B\n");
}

/* What a terminal takes for commands, or what turns text around, is shown as its number; nothing
 * ends at a NUL. */
static void inspect_shows_what_terminals_would_obey(void **state)
{
    (void)state;
    put_text(in_scratch("train.jsonl"),
             "{\"input_ids\": [65, 0, 66, 194, 155, 226, 128, 174, 195, 169, 127, 67]}\n");
    data("inspect", NULL, NULL);
    assert_finished_well(&f);
    shows("A[\\x00B\\u009B\\u202E\u00e9\\x7FC]\n");
    static const char *const two[] = {"--train_iters",      "0", "--epochs", "1",
                                      "--micro_batch_size", "2", NULL};
    data("inspect", NULL, two);
    shows("so 1 step; the last one is filled up from the next epoch\n");
}

#define U   "<|im_start|>user\n"
#define A   "<|im_start|>assistant\n"
#define END "<|im_end|>"

/* The table of docs/data.md: one conversation under each option that says what is trained. */
static void inspect_shows_each_mask_of_a_conversation(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;         /* NULL: none */
        const char *in_q1, *in_a1, *out; /* fields of the messages; what comes out */
    } cases[] = {
        {NULL, NULL, "", "", U "q1" END "\n" A "[a1" END "]\n" U "q2" END "\n" A "[a2" END "]\n"},
        {"--data.mask_history", "true", "", "",
         U "q1" END "\n" A "a1" END "\n" U "q2" END "\n" A "[a2" END "]\n"},
        {"--data.roles_to_train", "[user, assistant]", "", "",
         U "[q1" END "]\n" A "[a1" END "]\n" U "[q2" END "]\n" A "[a2" END "]\n"},
        {"--data.mask_inputs", "false", "", "",
         "|im_start|>user\nq1" END "\n" A "a1" END "\n" U "q2" END "\n" A "a2" END "\n]"},
        {NULL, NULL, "", ", \"weight\": 0",
         U "q1" END "\n" A "a1" END "\n" U "q2" END "\n" A "[a2" END "]\n"},
        {NULL, NULL, ", \"train\": true", "",
         U "[q1" END "]\n" A "[a1" END "]\n" U "q2" END "\n" A "[a2" END "]\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        const char *const extra[] = {
            "--data.chat_template", "chatml", "--data.max_length", "1ki", cases[i].key,
            cases[i].value,         NULL};
        snprintf(line, sizeof line,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"q1\"%s}, "
                 "{\"role\": \"assistant\", \"content\": \"a1\"%s}, "
                 "{\"role\": \"user\", \"content\": \"q2\"}, "
                 "{\"role\": \"assistant\", \"content\": \"a2\"}]}\n",
                 cases[i].in_q1, cases[i].in_a1);
        put_text(in_scratch("train.jsonl"), line);
        data("inspect", NULL, extra);
        assert_finished_well(&f);
        shows(cases[i].out);
    }
}

/* What the program prints on a terminal, into f.out. */
static void inspect_on_a_terminal(const char *environment)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    const char *recipe = kept(0, "recipe.yml"), *err = kept(1, "terminal.err");
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    const int errors = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(slave >= 0 && errors >= 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char name[64];
        snprintf(name, sizeof name, "%s", environment);
        unsetenv("NO_COLOR");
        if (putenv("TERM=xterm") != 0 || putenv(name) != 0 || dup2(slave, 1) < 0 ||
            dup2(errors, 2) < 0)
            _exit(126);
        execl(TEST_PROGRAM, TEST_PROGRAM, "data", "inspect", recipe, "-n", "1", (char *)NULL);
        _exit(127);
    }
    close(slave);
    close(errors);
    size_t bytes = 0;
    for (ssize_t got; bytes + 1 < sizeof f.out; bytes += (size_t)got) {
        got = read(master, f.out + bytes, sizeof f.out - 1 - bytes);
        if (got <= 0) /* EIO: the program has ended */
            break;
    }
    f.out[bytes] = '\0';
    close(master);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_terminal_gets_colour_unless_told_not_to(void **state)
{
    (void)state;
    put_text(in_scratch("train.jsonl"), "{\"input_ids\": [81, 58, 65, 66], \"labels\": "
                                        "[-100, -100, 65, 66]}\n");
    inspect_on_a_terminal("NOTHING=1");
    shows("\033[2mQ:\033[0m\033[32mAB\033[0m");
    inspect_on_a_terminal("NO_COLOR=1");
    shows("Q:[AB]");
    assert_null(strchr(f.out, '\033'));
}

static void inspect_weighs_every_policy(void **state)
{
    (void)state;
    static const char *const extra[] = {"-n", "0", "--data.overlength", "error", NULL};
    FILE *file = fopen(in_scratch("train.jsonl"), "w");
    assert_non_null(file);
    fputs("{\"text\": \"short\"}\n{\"text\": \"", file); /* 7 tokens with bos and eos */
    for (int i = 0; i < 497; i++)
        fputc('x', file);
    fputs("\"}\n", file); /* 499 = 192 + 192 + 115 */
    assert_int_equal(fclose(file), 0);
    data("inspect", NULL, extra);
    assert_finished_well(&f);
    shows("1 of 2 samples is longer than data.max_length 192; data.overlength: error, so training "
          "will not start");
    shows("drop     loses         1 sample,          499 tokens,          498 of them trained");
    shows("truncate loses         0 samples,          307 tokens,          307 of them trained");
    shows("split    loses         0 samples,            0 tokens,            2 of them trained");
    project_run("train", NULL, extra + 2, &f);
    assert_one_error(&f, "train.jsonl:2: this sample has 499 tokens");
}

static void build_then_train_from_the_cache(void **state)
{
    (void)state;
    const char *const cache[] = {"--data.cache_dir", kept(1, "cache"), NULL};
    data("build", NULL, cache);
    assert_finished_well(&f);
    shows("data.sources: 60 samples, ");
    assert_non_null(strstr(f.err, "tokens come from the cache "));
    assert_non_null(strstr(f.err, "made the tokens of 1 file\n"));
    assert_true(has("cache/tokens"));
    assert_false(has("out"));
    const char *const again[] = {"--data.cache_dir", kept(1, "cache"), "--data.max_length", "64",
                                 NULL}; /* which tokens do not depend on */
    data("build", NULL, again);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "nothing to build: the tokens are there already\n"));
    assert_null(strstr(f.err, "longer than"));
    assert_null(strstr(f.err, "overlength"));
    assert_int_equal(count_entries(in_scratch("cache/tokens")), 2);

    /* Half of the run from the files, the rest from the cache: the same run. */
    const char *const half[] = {"--exit_iteration", "6", "--data.cache", "off", NULL};
    train_well(half);
    assert_int_equal(rename(in_scratch("train.jsonl"), in_scratch("elsewhere.jsonl")), 0);
    project_run("train", NULL, cache, &f);
    assert_one_error(&f, "train.jsonl"); /* the key is that of the file */
    assert_int_equal(rename(in_scratch("elsewhere.jsonl"), in_scratch("train.jsonl")), 0);
    project_run("train", NULL, cache, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "tokens come from the cache "));
    assert_non_null(strstr(f.err, "resumed from"));
    char whole[PROGRAM_PATH];
    snprintf(whole, sizeof whole, "%s/whole", scratch);
    const char *const all[] = {"--checkpoint.output_dir", whole, "--data.cache", "off", NULL};
    train_well(all);
    assert_same_model("out", "whole");
}

static void a_cache_that_does_not_fit_is_told_of(void **state)
{
    (void)state;
    const char *const cache[] = {"--data.cache_dir", kept(1, "cache"), NULL};
    const char *const other[] = {"--data.cache_dir",
                                 kept(1, "cache"),
                                 "--data.add_eos",
                                 "false",
                                 "--data.cache",
                                 "require",
                                 NULL};
    data("build", NULL, cache);
    assert_finished_well(&f);
    project_run("train", NULL, other, &f);
    assert_one_error(&f, "run trireme data build with this recipe");
    assert_non_null(strstr(f.err, "was made with other settings"));
    assert_true(other[6] == NULL);
}

static void mistakes_cost_one_line(void **state)
{
    (void)state;
    static const struct {
        const char *args[5], *error;
    } cases[] = {
        {{"data", NULL}, "trireme data inspect RECIPE"},
        {{"data", "biuld", NULL}, "unknown 'data biuld'"},
        {{"data", "build", NULL}, "trireme data build RECIPE"},
        {{"data", "inspect", "x.yml", "-n", NULL}, "-n: a number is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program_run(NULL, cases[i].args, &f);
        assert_one_error(&f, cases[i].error);
    }
    static const char *const many[] = {"-n", "many", NULL};
    data("inspect", NULL, many);
    assert_one_error(&f, "-n: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(inspect_tells_what_training_will_see),
        PROJECT_TEST(inspect_counts_by_weights),
        PROJECT_TEST(inspect_counts_the_steps_of_training),
        PROJECT_TEST(inspect_shows_masks),
        PROJECT_TEST(inspect_shows_what_terminals_would_obey),
        PROJECT_TEST(inspect_shows_each_mask_of_a_conversation),
        PROJECT_TEST(a_terminal_gets_colour_unless_told_not_to),
        PROJECT_TEST(inspect_weighs_every_policy),
        PROJECT_TEST(build_then_train_from_the_cache),
        PROJECT_TEST(a_cache_that_does_not_fit_is_told_of),
        PROJECT_TEST(mistakes_cost_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
