/* A run that is killed in the middle of a save goes on as if nothing had been. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "verify/proof/proofs.h"

enum { PATH_BYTES = 4300, AFTER = 4, MOST_STEPS = 1000 };

/* A run of the program in FOLDER: its output there, and with how many ranks. */
struct life {
    const char *program, *folder, *output;
    int ranks, zero_stage;
    int64_t exit_iteration; /* 0: none, saving every two steps; else without saving */
};

/* ---- the recipe -------------------------------------------------------------------------------
 */

/* The documents as lines of token ids, with the labels that belong to the ids themselves. */
static enum tri_status write_data(const struct tri_subject *s, const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return tri_fail_errno(errno, "%s", path);
    for (int d = 0; d < TRI_SUBJECT_DOCS; d++) {
        const struct tri_batch *doc = &s->docs[d];
        if (doc->num_trained == 0)
            continue;
        fputs("{\"input_ids\": [", f);
        for (int64_t t = 0; t < doc->num_tokens; t++)
            fprintf(f, "%s%" PRId32, t > 0 ? ", " : "", doc->ids[t]);
        fputs("], \"labels\": [", f);
        for (int64_t t = 0; t < doc->num_tokens; t++)
            fprintf(f, "%s%" PRId32, t > 0 ? ", " : "",
                    t > 0 ? doc->labels[t - 1] : TRI_IGNORE_LABEL);
        fputs("]}\n", f);
    }
    bool torn = ferror(f) != 0;
    if (fclose(f) != 0 || torn)
        return tri_fail_errno(errno, "writing %s", path);
    return TRI_OK;
}

/* The subject as a recipe; JSON is YAML. What computes is as in the user's. */
static enum tri_status write_recipe(const struct tri_subject *s, const char *folder)
{
    static const char *const remats[] = {"full", "selective", "none"};
    const struct tri_recipe *r = s->run->recipe;
    char path[PATH_BYTES], model[PATH_BYTES], data[PATH_BYTES];
    snprintf(path, sizeof path, "%s/recipe.yml", folder);
    snprintf(model, sizeof model, "%s/model", folder);
    snprintf(data, sizeof data, "%s/data.jsonl", folder);
    TRI_TRY(write_data(s, data));
    json_t *recipe = json_pack(
        "{s{ss ss} s{s[s]} s{sf} s{ss si} si si sI ss sI ss ss sI sb si s{si si sb}}", "model",
        "name_or_path", model, "dtype", tri_dtype_name(s->run_act), "data", "sources", data,
        "optimizer", "learning_rate", r->optimizer.learning_rate, "scheduler", "name", "constant",
        "warmup_steps", 0, "train_iters", (int)MOST_STEPS, "gradient_accumulation_steps", 2, "seed",
        (json_int_t)r->train.seed, "backend", s->cuda ? "cuda" : "cpu", "threads",
        (json_int_t)r->pass.threads, "cpu_kernels", r->pass.cpu_kernels, "activation_checkpointing",
        remats[r->pass.activation_checkpointing], "fpdt.chunk_size",
        (json_int_t)(r->pass.chunk_size > s->tokens ? 0 : r->pass.chunk_size), "deterministic",
        (int)r->pass.deterministic, "log_interval", 1, "checkpoint", "save_every_n_steps", 2,
        "save_total_limit", 2, "save_end_of_training", 0);
    if (recipe == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a recipe");
    enum tri_status st = tri_json_save(path, recipe);
    json_decref(recipe);
    return st;
}

/* ---- lives ------------------------------------------------------------------------------------
 */

static enum tri_status start(const struct life *life, pid_t *pid)
{
    char recipe[PATH_BYTES], output[PATH_BYTES], log[PATH_BYTES], ranks[16], stage[16], exit_at[24];
    snprintf(recipe, sizeof recipe, "%s/recipe.yml", life->folder);
    snprintf(output, sizeof output, "%s/%s", life->folder, life->output);
    snprintf(log, sizeof log, "%s/%s.log", life->folder, life->output);
    snprintf(ranks, sizeof ranks, "%d", life->ranks);
    snprintf(stage, sizeof stage, "%d", life->zero_stage);
    snprintf(exit_at, sizeof exit_at, "%" PRId64, life->exit_iteration);
    const char *argv[] = {
        life->program, "train",
        recipe,        "--checkpoint.output_dir",
        output,        "--ranks",
        ranks,         "--zero_stage",
        stage,         "--exit_iteration",
        exit_at,       life->exit_iteration > 0 ? "--checkpoint.save_every_n_steps" : NULL,
        "0",           NULL};
    int to = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (to < 0)
        return tri_fail_errno(errno, "%s", log);
    pid_t parent = getpid();
    pid_t child = fork();
    if (child == 0) {
        /* Should we be killed, nobody else would end it. */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(to, STDOUT_FILENO) < 0 || dup2(to, STDERR_FILENO) < 0)
            _exit(126);
        (void)execv(life->program, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    int error = errno;
    close(to);
    if (child < 0)
        return tri_fail_errno(error, "cannot start %s", life->program);
    *pid = child;
    return TRI_OK;
}

/* The last line that a run said. */
static void last_words(const struct life *life, char *out, size_t room)
{
    char log[PATH_BYTES];
    char *text = NULL;
    size_t bytes = 0;
    out[0] = '\0';
    snprintf(log, sizeof log, "%s/%s.log", life->folder, life->output);
    if (tri_file_read(log, (size_t)1 << 24, &text, &bytes) != TRI_OK)
        return;
    while (bytes > 0 && text[bytes - 1] == '\n')
        bytes--;
    size_t begin = bytes;
    while (begin > 0 && text[begin - 1] != '\n')
        begin--;
    snprintf(out, room, "%.*s", (int)(bytes - begin), text + begin);
    free(text);
}

static enum tri_status finish(const struct life *life, pid_t pid, int *how)
{
    while (waitpid(pid, how, 0) < 0)
        if (errno != EINTR)
            return tri_fail_errno(errno, "waiting for %s", life->program);
    return TRI_OK;
}

static enum tri_status refuse_end(const struct life *life, int how)
{
    char words[512];
    last_words(life, words, sizeof words);
    return tri_fail(TRI_INVALID, "`%s train` of the shrunk recipe ended with %s %d: %s",
                    life->program, WIFSIGNALED(how) ? "signal" : "exit code",
                    WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how), words);
}

static enum tri_status live(const struct life *life)
{
    pid_t pid;
    int how;
    TRI_TRY(start(life, &pid));
    TRI_TRY(finish(life, pid, &how));
    return WIFEXITED(how) && WEXITSTATUS(how) == 0 ? TRI_OK : refuse_end(life, how);
}

/* Wait until a name ending in `suffix` is made in the folder watched by `fd`, or the run ends: the
 * kernel then reports its closed log. */
static bool wait_for(int fd, pid_t pid, const char *suffix)
{
    _Alignas(struct inotify_event) char events[4096];
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 100) <= 0)
            continue;
        ssize_t got = read(fd, events, sizeof events);
        for (ssize_t at = 0; at < got;) {
            const struct inotify_event *e = (const struct inotify_event *)(events + at);
            if (e->len > 0 && strcmp(e->name, suffix) == 0)
                return true;
            at += (ssize_t)(sizeof *e + e->len);
        }
    }
    return false;
}

/* Kill a run while it makes its second checkpoint. */
static enum tri_status live_and_be_killed(const struct life *life)
{
    char output[PATH_BYTES];
    pid_t pid;
    int how;
    snprintf(output, sizeof output, "%s/%s", life->folder, life->output);
    TRI_TRY(tri_make_folder(output));
    int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0 || inotify_add_watch(fd, output, IN_CREATE) < 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return tri_fail_errno(error, "watching %s", output);
    }
    enum tri_status st = start(life, &pid);
    if (st == TRI_OK) {
        if (wait_for(fd, pid, "checkpoint-4.tmp"))
            (void)kill(pid, SIGKILL);
        st = finish(life, pid, &how);
        if (st == TRI_OK && !(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL))
            st = refuse_end(life, how);
    }
    close(fd);
    return st;
}

/* ---- losses -----------------------------------------------------------------------------------
 */

/* losses[i] of step i + 1; NaN where a step has none, or more than one. */
static enum tri_status read_losses(const struct life *life, double losses[MOST_STEPS])
{
    char path[PATH_BYTES];
    char *text = NULL;
    size_t bytes;
    bool seen[MOST_STEPS] = {false};
    enum tri_status st = TRI_OK;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", life->folder, life->output);
    TRI_TRY(tri_file_read(path, (size_t)1 << 26, &text, &bytes));
    for (int i = 0; i < MOST_STEPS; i++)
        losses[i] = NAN;
    for (char *line = text; st == TRI_OK && line < text + bytes;) {
        char *end = memchr(line, '\n', (size_t)(text + bytes - line));
        json_t *row = NULL;
        if (end == NULL)
            break;
        st = tri_json_parse(path, line, (size_t)(end - line), &row);
        json_int_t step = json_integer_value(json_object_get(row, "step"));
        const json_t *loss = json_object_get(row, "loss");
        if (st == TRI_OK && loss != NULL && step >= 1 && step <= MOST_STEPS) {
            losses[step - 1] = seen[step - 1] ? NAN : json_number_value(loss);
            seen[step - 1] = true;
        }
        json_decref(row);
        line = end + 1;
    }
    free(text);
    return st;
}

/* Largest relative difference of two runs over their first `steps` steps. */
static enum tri_status compare(const struct life *got, const struct life *want, int64_t steps,
                               double *difference)
{
    double a[MOST_STEPS], b[MOST_STEPS];
    double most = 0;
    TRI_TRY(read_losses(got, a));
    TRI_TRY(read_losses(want, b));
    for (int64_t i = 0; i < steps; i++) {
        double d = fabs(a[i] - b[i]) / fabs(b[i]);
        if (!(d <= most)) /* NaN is the worst of all */
            most = d;
    }
    *difference = most;
    return TRI_OK;
}

/* The last step that a killed run has saved. */
static int64_t last_saved(const struct life *life)
{
    char path[PATH_BYTES];
    for (int64_t step = MOST_STEPS; step > 0; step--) {
        snprintf(path, sizeof path, "%s/%s/checkpoint-%" PRId64, life->folder, life->output, step);
        if (tri_path_is_folder(path))
            return step;
    }
    return 0;
}

/* Kill a run and let another life go on from what it saved; then compare with one without end. */
static enum tri_status prove(struct tri_report *r, const char *what, struct life killed,
                             struct life resumed, struct life whole, double bound)
{
    double difference;
    double start_time = tri_clock();
    tri_report_doing(r, what);
    TRI_TRY(live_and_be_killed(&killed));
    int64_t saved = last_saved(&killed);
    int64_t steps = saved + AFTER;
    resumed.exit_iteration = whole.exit_iteration = steps;
    TRI_TRY(live(&resumed));
    TRI_TRY(live(&whole));
    TRI_TRY(compare(&resumed, &whole, steps, &difference));
    tri_report_value(r, what, (double)saved, 0, difference, bound, tri_clock() - start_time);
    return TRI_OK;
}

enum tri_status tri_prove_kills(struct tri_report *r, const struct tri_subject *s,
                                const char *program, const char *folder)
{
    struct tri_way split = tri_way_plain();
    tri_proof_split(s, &split);
    int ranks = split.ranks;
    int fewer = ranks > 2 ? ranks / 2 : 1;
    char what[96];
    struct life killed = {.program = program, .folder = folder, .output = "killed", .ranks = 1};
    struct life whole = {.program = program, .folder = folder, .output = "whole", .ranks = 1};
    TRI_TRY(write_recipe(s, folder));
    TRI_TRY(prove(r, "killed in a save (value: at step), losses after", killed, killed, whole,
                  tri_proof_bit_bound(s, s->run_act)));
    if (ranks < 2)
        return TRI_OK;
    snprintf(what, sizeof what, "%d ranks killed, %d go on, losses after", ranks, fewer);
    killed.output = "killed-ranks";
    whole.output = "whole-again";
    killed.ranks = ranks;
    killed.zero_stage = 3;
    struct life resumed = killed;
    resumed.ranks = fewer;
    resumed.zero_stage = fewer > 1 ? 1 : 0;
    /* Updates carry a difference of gradients on into the weights, and so into later losses. */
    return prove(r, what, killed, resumed, whole, tri_proof_bound(s, s->run_act));
}
