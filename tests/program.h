/* Running the program as a user does, on a model of a few thousand parameters that trains in
 * milliseconds. TEST_PROGRAM is the program's path. */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include "unit/scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <math.h>

#include "base/json.h"

enum { PROGRAM_MAX_ARGS = 64, PROGRAM_PATH = 4400 };

/* ---- starting and ending processes ------------------------------------------------------------
 */

/* What a finished program left. */
struct finished {
    int code;   /* exit code, or -1 */
    int signal; /* that ended it, or 0 */
    char out[1 << 14];
    char err[1 << 16];
};

static inline void read_output(const char *name, char *text, size_t room)
{
    FILE *f = fopen(in_scratch(name), "rb");
    size_t got = f != NULL ? fread(text, 1, room - 1, f) : 0;
    text[got] = '\0';
    if (f != NULL)
        fclose(f);
}

/* Start "trireme ARGS..." (NULL ends them), with `environment` such as "NAME=value" or NULL. Its
 * outputs go to the files NAME.out and NAME.err of the scratch folder. */
static inline pid_t program_start_as(const char *name, const char *environment,
                                     const char *const *args)
{
    char out[PROGRAM_PATH], err[PROGRAM_PATH];
    const char *argv[PROGRAM_MAX_ARGS + 2] = {TEST_PROGRAM};
    int n = 1;
    for (; args[n - 1] != NULL; n++) {
        assert_true(n <= PROGRAM_MAX_ARGS);
        argv[n] = args[n - 1];
    }
    argv[n] = NULL;
    snprintf(out, sizeof out, "%s/%s.out", scratch, name);
    snprintf(err, sizeof err, "%s/%s.err", scratch, name);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    int to_out = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int to_err = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (to_out < 0 || to_err < 0 || dup2(to_out, 1) < 0 || dup2(to_err, 2) < 0)
        _exit(126);
    if (environment != NULL && putenv((char *)(uintptr_t)environment) != 0)
        _exit(126);
    execv(TEST_PROGRAM, (char *const *)(uintptr_t)argv);
    _exit(127);
}

static inline void program_finish_as(const char *name, pid_t pid, struct finished *f)
{
    char file[64];
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    f->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    f->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    snprintf(file, sizeof file, "%s.out", name);
    read_output(file, f->out, sizeof f->out);
    snprintf(file, sizeof file, "%s.err", name);
    read_output(file, f->err, sizeof f->err);
}

static inline void program_run(const char *environment, const char *const *args, struct finished *f)
{
    program_finish_as("run", program_start_as("run", environment, args), f);
}

/* The end of what a program said, as much as cmocka prints of a message. */
static inline const char *last_words(const struct finished *f)
{
    size_t bytes = strlen(f->err);
    return bytes > 700 ? f->err + bytes - 700 : f->err;
}

static inline void assert_finished_well(const struct finished *f)
{
    if (f->code != 0)
        fail_msg("exit code %d, signal %d: %s", f->code, f->signal, last_words(f));
}

/* Exit code 1, and exactly one line of error, the last one, that holds `part`. */
static inline void assert_one_error(const struct finished *f, const char *part)
{
    int errors = 0;
    const char *last = NULL;
    for (const char *line = f->err; *line != '\0';) {
        const char *end = strchr(line, '\n');
        if (end == NULL)
            fail_msg("a torn last line: %s", f->err);
        errors += strncmp(line, "error: ", 7) == 0;
        last = line;
        line = end + 1;
    }
    if (f->code != 1 || errors != 1 || last == NULL || strncmp(last, "error: ", 7) != 0)
        fail_msg("expected exit code 1 and one last line of error, got code %d, signal %d, %d "
                 "errors: %s",
                 f->code, f->signal, errors, last_words(f));
    if (strstr(last, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, last);
}

static inline void sleep_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Wait until something in a folder is made, written or renamed whose name ends in `suffix`, or, for
 * "[saved]", until a checkpoint gets its name. The watch must have been set before. False when the
 * process `pid` ended first. */
struct watch {
    int fd;
    char folder[PROGRAM_PATH];
};

static inline struct watch watch_open(const char *folder)
{
    struct watch w = {.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
    snprintf(w.folder, sizeof w.folder, "%s", folder);
    assert_true(w.fd >= 0);
    assert_true(inotify_add_watch(w.fd, folder, IN_CREATE | IN_MOVED_TO | IN_MODIFY) >= 0);
    return w;
}

static inline bool watch_for(struct watch *w, pid_t pid, const char *suffix)
{
    _Alignas(struct inotify_event) char events[4096];
    for (int tries = 0; tries < 60000; tries++) {
        ssize_t got = read(w->fd, events, sizeof events);
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *e = (const struct inotify_event *)(events + at);
            size_t n = e->len > 0 ? strlen(e->name) : 0;
            if (n >= strlen(suffix) && strcmp(e->name + n - strlen(suffix), suffix) == 0)
                return true;
            if (strcmp(suffix, "[saved]") == 0 && n > 11 && (e->mask & IN_MOVED_TO) != 0 &&
                strncmp(e->name, "checkpoint-", 11) == 0)
                return true;
            at += (ssize_t)(sizeof *e + e->len);
        }
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid)
            return false;
        if (got <= 0)
            sleep_ms(1);
    }
    fail_msg("nothing like %s appeared in %s within a minute", suffix, w->folder);
    return false;
}

static inline void watch_close(struct watch *w)
{
    close(w->fd);
}

/* ---- a model and data -------------------------------------------------------------------------
 */

/* One token a byte, E = 16, two layers, about 13,000 parameters. */
static const char tiny_config[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 259,\n"
    " \"bos_token_id\": 256, \"eos_token_id\": 257, \"pad_token_id\": 258, \"hidden_size\": 16,\n"
    " \"intermediate_size\": 32, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,\n"
    " \"num_key_value_heads\": 1, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-6,\n"
    " \"max_position_embeddings\": 1024, \"rope_theta\": 10000.0, \"initializer_range\": 0.02,\n"
    " \"tie_word_embeddings\": false, \"torch_dtype\": \"float32\"}\n";

/* Documents of 20 to 150 bytes of made-up words, as JSONL. */
static inline void put_documents(const char *name, int count, unsigned seed)
{
    static const char *const words[] = {"the ", "river ", "turns ",   "slowly ", "under ",
                                        "old ", "stone ", "bridges ", "and ",    "waits "};
    FILE *f = fopen(in_scratch(name), "w");
    assert_non_null(f);
    for (int d = 0; d < count; d++) {
        unsigned n = 4 + (seed >> 8) % 21;
        fputs("{\"text\": \"", f);
        for (unsigned i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            fputs(words[(seed >> 16) % 10], f);
        }
        fputs("\"}\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

/* model/, train.jsonl, eval.jsonl and recipe.yml: packed sequences of 192 tokens, twelve steps, a
 * checkpoint every three. */
static inline void put_project(void)
{
    char text[5 * PROGRAM_PATH];
    assert_int_equal(mkdir(in_scratch("model"), 0777), 0);
    put_text(in_scratch("model/config.json"), tiny_config);
    put_documents("train.jsonl", 60, 3);
    put_documents("eval.jsonl", 8, 4);
    snprintf(text, sizeof text,
             "model: {name_or_path: %s/model, init: random}\n"
             "data: {sources: [%s/train.jsonl], tokenizer: bytes, max_length: 192,\n"
             "       overlength: split, pack_samples: true}\n"
             "optimizer: {learning_rate: 1e-2}\n"
             "scheduler: {name: cosine, warmup_steps: 2}\n"
             "train_iters: 12\n"
             "backend: cpu\n"
             "threads: 1\n"
             "checkpoint: {output_dir: %s/out, save_every_n_steps: 3}\n",
             scratch, scratch, scratch);
    put_text(in_scratch("recipe.yml"), text);
}

static inline int project_open(void **state)
{
    if (scratch_open(state) != 0)
        return -1;
    put_project();
    return 0;
}

#define PROJECT_TEST(name) cmocka_unit_test_setup_teardown(name, project_open, scratch_close)

/* The arguments of "VERB recipe.yml KEY VALUE ...". The paths live in static memory. */
struct arguments {
    const char *list[PROGRAM_MAX_ARGS + 1];
    char recipe[PROGRAM_PATH];
};

static inline void arguments_of(struct arguments *a, const char *verb, const char *const *extra)
{
    int n = 2;
    snprintf(a->recipe, sizeof a->recipe, "%s/recipe.yml", scratch);
    a->list[0] = verb;
    a->list[1] = a->recipe;
    for (; extra != NULL && extra[n - 2] != NULL; n++) {
        assert_true(n < PROGRAM_MAX_ARGS);
        a->list[n] = extra[n - 2];
    }
    a->list[n] = NULL;
}

static inline void project_run(const char *verb, const char *environment, const char *const *extra,
                               struct finished *f)
{
    struct arguments a;
    arguments_of(&a, verb, extra);
    program_run(environment, a.list, f);
}

static inline pid_t project_start(const char *verb, const char *const *extra)
{
    struct arguments a;
    arguments_of(&a, verb, extra);
    return program_start_as("run", NULL, a.list);
}

static inline void train_well(const char *const *extra)
{
    struct finished *f = calloc(1, sizeof *f);
    assert_non_null(f);
    project_run("train", NULL, extra, f);
    assert_finished_well(f);
    free(f);
}

/* ---- what a run left --------------------------------------------------------------------------
 */

static inline void assert_same_files(const char *a, const char *b)
{
    struct tri_map x, y;
    if (tri_map_open(a, &x) != TRI_OK || tri_map_open(b, &y) != TRI_OK)
        fail_msg("%s", tri_error_text());
    if (x.bytes != y.bytes || memcmp(x.data, y.data, x.bytes) != 0)
        fail_msg("%s and %s differ", a, b);
    tri_map_close(&x);
    tri_map_close(&y);
}

/* Weights and moments of a checkpoint, or the weights of the exported model. */
static inline void assert_same_model(const char *a, const char *b)
{
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors"};
    for (int i = 0; i < 2; i++) {
        char x[PROGRAM_PATH], y[PROGRAM_PATH];
        snprintf(x, sizeof x, "%s/%s/%s", scratch, a, names[i]);
        snprintf(y, sizeof y, "%s/%s/%s", scratch, b, names[i]);
        if (i == 0 || tri_path_exists(x) || tri_path_exists(y))
            assert_same_files(x, y);
    }
}

static inline bool has(const char *name)
{
    return tri_path_exists(in_scratch(name));
}

/* Lines of a run's metrics.jsonl as a list; the caller json_decref()s it. */
static inline json_t *metrics_of(const char *folder)
{
    char path[PROGRAM_PATH];
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", scratch, folder);
    char *text = get_text(path);
    json_t *list = json_array();
    for (char *line = text; *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end == NULL)
            fail_msg("%s: a torn last line", path);
        json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);
        if (object == NULL)
            fail_msg("%s: not JSON: %.*s", path, (int)(end - line), line);
        assert_int_equal(json_array_append_new(list, object), 0);
        line = end + 1;
    }
    free(text);
    return list;
}

/* A number of the line of `step` that has it. */
static inline double metric(const json_t *lines, int64_t step, const char *name)
{
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        const json_t *value = json_object_get(line, name);
        if (json_integer_value(json_object_get(line, "step")) == step && json_is_number(value))
            return json_number_value(value);
    }
    fail_msg("no %s of step %lld", name, (long long)step);
    return 0;
}

/* Every step from 1 to `last` has exactly one line of training. */
static inline void assert_steps_once(const json_t *lines, int64_t last)
{
    int64_t expected = 1;
    size_t i;
    json_t *line;
    json_array_foreach(lines, i, line)
    {
        if (json_object_get(line, "loss") == NULL)
            continue;
        assert_int_equal(json_integer_value(json_object_get(line, "step")), expected);
        expected++;
    }
    assert_int_equal(expected, last + 1);
}

#endif
