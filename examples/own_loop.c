/* A training loop of one's own over Trireme's public interface: ranks as threads share each
 * sequence, every rank reads its own samples, and the loop decides about data, schedule and update.
 *
 *   build/release/examples/own_loop MODEL TEXT [RANKS|mpi [STEPS [LENGTH [own]]]]
 *   build/release/examples/own_loop examples/tiny-byte-llama README.md 2 10 1024
 *   mpirun -np 2 build/release/examples/own_loop examples/tiny-byte-llama README.md mpi 10 1024
 *
 * MODEL is a folder with config.json, whose weights are drawn from a seed; TEXT is read one token a
 * byte and cut into samples of LENGTH. A step takes one sample of every rank. With `own` the update
 * is the AdamW below, else the library's. `trireme train` with gradient_accumulation_steps RANKS
 * and the same samples prints the same losses. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trireme/trireme.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        enum tri_status try_status = (call);                                                       \
        if (try_status != TRI_OK)                                                                  \
            return try_status;                                                                     \
    } while (0)

static const struct tri_lm_adamw adamw = {0.9, 0.999, 1e-8, 0.1};
static const double learning_rate = 1e-2, clip = 1.0;

struct options {
    const char *model;
    unsigned char *text;
    int64_t bytes;
    int ranks;
    int64_t steps, length;
    bool own_update;
};

/* ---- data: rank r reads samples r, r + ranks, ... ----------------------------------------------
 */

struct reader {
    const struct options *options;
    int rank;
    int64_t next;
    int32_t *ids;       /* (length) */
    int64_t *positions; /* (length) 0, 1, ...: a sample is one document */
    struct tri_field fields[3];
};

static enum tri_status rewind_reader(void *ctx, int64_t epoch)
{
    struct reader *r = ctx;
    (void)epoch; /* every epoch in the same order */
    r->next = r->rank;
    return TRI_OK;
}

static enum tri_status read_sample(void *ctx, struct tri_sample *sample, bool *end)
{
    struct reader *r = ctx;
    const int64_t length = r->options->length;
    *end = (r->next + 1) * length > r->options->bytes;
    if (*end)
        return TRI_OK;
    for (int64_t t = 0; t < length; t++)
        r->ids[t] = r->options->text[r->next * length + t];
    struct tri_tensor ids = tri_tensor_make(r->ids, TRI_I32, 1, &length);
    r->fields[0] = tri_field_split("input_ids", ids, 0);
    r->fields[1] = tri_field_split("labels", ids, 0); /* every token is learned */
    r->fields[2] =
        tri_field_split("position_ids", tri_tensor_make(r->positions, TRI_I64, 1, &length), 0);
    sample->fields = r->fields;
    sample->num_fields = 3;
    r->next += r->options->ranks;
    return TRI_OK;
}

/* ---- update: AdamW on what this rank holds, in float32 on the CPU ------------------------------
 */

struct moments {
    float *m, *v;
    int64_t step;
};

static enum tri_status own_update(struct tri_lm *lm, struct moments *s, double scale)
{
    struct tri_lm_run run;
    int64_t at = 0;
    s->step++;
    for (int cursor = 0; tri_lm_next_run(lm, &cursor, &run);) {
        float *w = run.weights.data;
        const float *g = run.grads.data;
        for (int64_t i = 0; i < run.weights.dim[0]; i++, at++) {
            double gi = g[i] * scale;
            s->m[at] = (float)(adamw.beta1 * s->m[at] + (1 - adamw.beta1) * gi);
            s->v[at] = (float)(adamw.beta2 * s->v[at] + (1 - adamw.beta2) * gi * gi);
            double m = s->m[at] / (1 - pow(adamw.beta1, (double)s->step));
            double v = s->v[at] / (1 - pow(adamw.beta2, (double)s->step));
            double decay = run.decay ? adamw.weight_decay * w[i] : 0;
            w[i] -= (float)(learning_rate * (m / (sqrt(v) + adamw.eps) + decay));
        }
    }
    return tri_lm_updated(lm);
}

static enum tri_status update(struct tri_lm *lm, struct moments *s, bool own, double norm)
{
    if (!own)
        return tri_lm_update(lm, learning_rate, clip);
    return own_update(lm, s, norm > clip ? clip / norm : 1.0);
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

/* One sample of every rank, split over all of them; a new epoch where the data ends. */
static enum tri_status add_round(struct tri_adapter *adapter, struct tri_lm *lm, int ranks,
                                 int64_t *epoch)
{
    for (int i = 0; i < ranks; i++) {
        struct tri_shard shard;
        bool end;
        TRY(tri_adapter_next(adapter, &shard, &end));
        if (end) {
            TRY(tri_adapter_epoch(adapter, ++*epoch));
            TRY(tri_adapter_next(adapter, &shard, &end));
        }
        TRY(tri_lm_add(lm, &shard));
    }
    return TRI_OK;
}

static enum tri_status train(struct tri_lm *lm, struct tri_adapter *adapter, struct moments *s,
                             const struct options *o, bool speaks)
{
    int64_t epoch = 0;
    TRY(tri_lm_init(lm, 42));
    TRY(tri_adapter_epoch(adapter, epoch));
    for (int64_t step = 1; step <= o->steps; step++) {
        struct tri_lm_result result;
        TRY(add_round(adapter, lm, o->ranks, &epoch));
        TRY(tri_lm_gradients(lm, &result));
        TRY(update(lm, s, o->own_update, result.grad_norm));
        if (speaks)
            printf("step %lld loss %.17g norm %.17g tokens %lld\n", (long long)step, result.loss,
                   result.grad_norm, (long long)result.tokens);
    }
    return TRI_OK;
}

/* What one rank does: open everything, train, close everything. */
static enum tri_status run_rank(struct tri_comm *world, void *ctx)
{
    const struct options *o = ctx;
    struct reader reader = {.options = o, .rank = tri_comm_rank(world)};
    struct tri_mesh mesh = {.world = NULL};
    struct tri_device *device = NULL;
    struct tri_lm *lm = NULL;
    struct tri_adapter *adapter = NULL;
    struct moments moments = {NULL, NULL, 0};
    const struct tri_device_config on = {.threads = 1};
    reader.ids = malloc((size_t)o->length * sizeof *reader.ids);
    reader.positions = malloc((size_t)o->length * sizeof *reader.positions);
    enum tri_status st = reader.ids != NULL && reader.positions != NULL ? TRI_OK : TRI_NOMEM;
    if (st == TRI_OK) {
        tri_sp_positions(&o->length, 1, reader.positions);
        st = tri_mesh_open(world, 0, &mesh); /* all ranks share each sequence */
    }
    if (st == TRI_OK)
        st = tri_device_open(&on, &device);
    const struct tri_lm_config model = {.device = device,
                                        .mesh = &mesh,
                                        .model = o->model,
                                        .dtype = TRI_F32,
                                        .adamw = o->own_update ? NULL : &adamw};
    if (st == TRI_OK)
        st = tri_lm_open(&model, &lm);
    const struct tri_adapter_config data = {
        .mesh = &mesh, .next = read_sample, .rewind = rewind_reader, .ctx = &reader, .samples = -1};
    if (st == TRI_OK)
        st = tri_adapter_open(&data, &adapter);
    if (st == TRI_OK && o->own_update) {
        int64_t n = 0;
        struct tri_lm_run run;
        for (int cursor = 0; tri_lm_next_run(lm, &cursor, &run);)
            n += run.weights.dim[0];
        moments.m = calloc((size_t)n, sizeof *moments.m);
        moments.v = calloc((size_t)n, sizeof *moments.v);
        st = moments.m != NULL && moments.v != NULL ? TRI_OK : TRI_NOMEM;
    }
    if (st == TRI_OK)
        st = train(lm, adapter, &moments, o, tri_comm_rank(world) == 0);
    free(moments.m);
    free(moments.v);
    tri_adapter_close(adapter);
    tri_lm_close(lm);
    tri_device_close(device);
    tri_mesh_close(&mesh);
    free(reader.ids);
    free(reader.positions);
    return st;
}

/* NULL, and errno says why, where it cannot be read. */
static unsigned char *read_text(const char *path, int64_t *bytes)
{
    enum { MOST = 1 << 24 };
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return NULL;
    unsigned char *text = malloc(MOST);
    *bytes = text != NULL ? (int64_t)fread(text, 1, MOST, file) : 0;
    if (ferror(file)) { /* a folder, say */
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* As one of the processes that mpirun started. */
static enum tri_status run_mpi(struct options *o)
{
    struct tri_comm *world;
    TRY(tri_comm_mpi_open(600, &world));
    o->ranks = tri_comm_size(world);
    enum tri_status st = run_rank(world, o);
    tri_comm_mpi_finish(world, st);
    return st;
}

int main(int argc, char **argv)
{
    bool mpi = argc > 3 && strcmp(argv[3], "mpi") == 0;
    struct options o = {.model = argc > 1 ? argv[1] : NULL,
                        .ranks = argc > 3 && !mpi ? atoi(argv[3]) : 2,
                        .steps = argc > 4 ? atoll(argv[4]) : 10,
                        .length = argc > 5 ? atoll(argv[5]) : 1024,
                        .own_update = argc > 6 && strcmp(argv[6], "own") == 0};
    if (argc < 3 || o.ranks < 1 || o.steps < 1 || o.length < 1) {
        fprintf(stderr, "usage: %s MODEL TEXT [RANKS|mpi [STEPS [LENGTH [own]]]]\n", argv[0]);
        return 2;
    }
    o.text = read_text(argv[2], &o.bytes);
    if (o.text == NULL) {
        fprintf(stderr, "error: cannot read %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    if (o.bytes < o.length) {
        fprintf(stderr, "error: %s has %lld bytes, no sample of %lld\n", argv[2],
                (long long)o.bytes, (long long)o.length);
        free(o.text);
        return 1;
    }
    enum tri_status st = mpi ? run_mpi(&o) : tri_comm_threads_run(o.ranks, 600, run_rank, &o);
    free(o.text);
    if (st != TRI_OK)
        fprintf(stderr, "error: %s\n", tri_error_text());
    return st != TRI_OK;
}
