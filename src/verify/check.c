#include "verify/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ckpt/hf.h"
#include "train/machine.h"
#include "train/trainer.h"
#include "verify/golden.h"

/* How far each number may be from the reference. Errors of tensors are ||got - want|| / ||want||,
 * those of numbers |got - want| / |want|, those of weights max |got - want|. */
struct bounds {
    double logits, loss, gradient, grad_norm, weights;
};

static struct bounds bounds_of(enum tri_dtype act)
{
    if (act == TRI_BF16)
        /* Weights: a gradient near zero may round to either sign, and AdamW makes a whole step of
         * it, so an element may be off by 2 * 3 steps * 1e-3. */
        return (struct bounds){3e-2, 2e-2, 1e-1, 5e-2, 6e-3};
    return (struct bounds){1e-4, 1e-5, 1e-4, 1e-4, 5e-4};
}

/* Elements whose true gradient is zero: Adam turns their rounding noise into whole steps. */
static const double zero_gradient = 1e-8;

struct check {
    const char *folder;
    struct tri_golden golden;
    struct tri_backend *backend;
    struct tri_trainer *trainer;
    struct bounds bounds;
    struct tri_comm *comm;     /* the ranks that share the work; NULL: one */
    struct tri_comm *sequence; /* the same ranks again: exchanges must not wait for the rest */
    FILE *to;                  /* NULL on all ranks but the first */
    struct tri_check_result result;
};

static void print_row(struct check *c, const char *what, double error, double bound,
                      const char *where)
{
    bool ok = error <= bound; /* a NaN is not */
    c->result.rows++;
    c->result.failed += !ok;
    if (c->to != NULL)
        fprintf(c->to, "  %-22s %10.2e %10.2e  %-4s %s\n", what, error, bound, ok ? "ok" : "OVER",
                where);
}

static double relative(double got, double want)
{
    return fabs(got - want) / fmax(fabs(want), 1e-12);
}

/* Sum over this rank's rows of (got - want)^2 and want^2; got is (T, V). */
static void compare_logits(const struct check *c, const float *got,
                           const struct tri_st_tensor *want, double sums[2])
{
    const struct tri_layout *layout = &c->trainer->pass->net.exchange.layout;
    int rank = c->comm != NULL ? c->comm->rank : 0;
    int64_t vocab = want->dim[2];
    for (int64_t i = 0; i < tri_layout_chunks(layout); i++) {
        struct tri_range part = tri_layout_part(layout, i, rank);
        struct tri_range rows = tri_layout_rows(layout, i, rank);
        for (int64_t j = 0; j < part.count * vocab; j++) {
            double w = tri_golden_value(want, part.begin * vocab + j);
            double e = (double)got[rows.begin * vocab + j] - w;
            sums[0] += e * e;
            sums[1] += w * w;
        }
    }
}

static enum tri_status check_logits(struct check *c)
{
    struct tri_trainer *t = c->trainer;
    const struct tri_st_tensor *want = tri_st_find(c->golden.reference, "logits");
    if (want == NULL)
        return TRI_OK;
    if (want->num_dims != 3 || want->dim[0] * want->dim[1] != c->golden.batch.num_tokens ||
        want->dim[2] != t->model->arch.vocab)
        return tri_fail(TRI_FORMAT, "%s/reference.safetensors: 'logits' is not (B, S, V)",
                        c->folder);

    enum tri_status st;
    struct tri_view logits, wide;
    double sums[2] = {0, 0};
    float *got = NULL;
    TRI_TRY_GOTO(st, tri_pass_begin(t->pass, &c->golden.batch, false), free_got);
    int64_t rows = t->pass->net.num_rows;
    got = malloc((size_t)(rows * want->dim[2] + 1) * sizeof *got);
    if (got == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for %lld rows of logits", (long long)rows);
        goto free_got;
    }
    TRI_TRY_GOTO(st, tri_pass_forward(t->pass), free_got);
    TRI_TRY_GOTO(st, tri_net_scratch(&t->pass->net, "logits", t->act, rows, want->dim[2], &logits),
                 free_got);
    TRI_TRY_GOTO(st, tri_net_scratch(&t->pass->net, "logits", TRI_F32, rows, want->dim[2], &wide),
                 free_got);
    TRI_TRY_GOTO(st, tri_pass_logits(t->pass, logits), free_got);
    TRI_TRY_GOTO(st, t->exec.ops->copy(t->exec.stream, wide, logits), free_got);
    TRI_TRY_GOTO(st, t->exec.ops->download(t->exec.stream, got, wide), free_got);
    compare_logits(c, got, want, sums);
    tri_pass_end(t->pass);
    if (c->comm != NULL)
        TRI_TRY_GOTO(st, tri_comm_sum_double(c->comm, sums, 2), free_got);
    print_row(c, "logits", sqrt(sums[0] / fmax(sums[1], 1e-30)), c->bounds.logits, "");
free_got:
    free(got);
    return st;
}

/* Call `visit` with each Hugging Face tensor of a flat buffer and its reference PREFIX.NAME. */
typedef void visit_tensor(void *ctx, const char *name, const float *got,
                          const struct tri_st_tensor *want, int64_t n);

static enum tri_status each_tensor(struct check *c, struct tri_flat flat, const char *prefix,
                                   visit_tensor *visit, void *ctx)
{
    enum tri_status st = TRI_OK;
    for (int i = 0; i < c->golden.model->num_hf && st == TRI_OK; i++) {
        const struct tri_hf_tensor *hf = &c->golden.model->hf[i];
        char name[160];
        snprintf(name, sizeof name, "%s%s", prefix, hf->name);
        const struct tri_st_tensor *want = tri_st_find(c->golden.reference, name);
        int64_t n = hf->num_dims == 2 ? hf->dim[0] * hf->dim[1] : hf->dim[0];
        int64_t found = want != NULL ? 1 : 0;
        for (int d = 0; want != NULL && d < want->num_dims; d++)
            found *= want->dim[d];
        if (found != n)
            return tri_fail(TRI_FORMAT,
                            "%s/reference.safetensors: '%s' is missing or has another shape",
                            c->folder, name);
        float *got = malloc((size_t)n * sizeof *got);
        if (got == NULL)
            return tri_fail(TRI_NOMEM, "no memory for '%s'", name);
        st = tri_hf_gather(c->golden.model, i, tri_flat_source, &flat, got);
        if (st == TRI_OK)
            visit(ctx, hf->name, got, want, n);
        free(got);
    }
    return st;
}

struct worst {
    double error;
    char name[128];
    double scale; /* below this norm an error is taken as a part of it instead */
    const struct tri_golden *golden;
};

static void keep_worst(struct worst *worst, double error, const char *name)
{
    if (!(error <= worst->error)) { /* NaN is the worst of all */
        worst->error = error;
        snprintf(worst->name, sizeof worst->name, "%s", name);
    }
}

static void compare_gradient(void *ctx, const char *name, const float *got,
                             const struct tri_st_tensor *want, int64_t n)
{
    struct worst *worst = ctx;
    double difference = 0;
    double norm = 0;
    for (int64_t i = 0; i < n; i++) {
        double w = tri_golden_value(want, i);
        difference += ((double)got[i] - w) * ((double)got[i] - w);
        norm += w * w;
    }
    keep_worst(worst, sqrt(difference) / fmax(sqrt(norm), worst->scale), name);
}

static void compare_weight(void *ctx, const char *name, const float *got,
                           const struct tri_st_tensor *want, int64_t n)
{
    struct worst *worst = ctx;
    char grad_name[160];
    snprintf(grad_name, sizeof grad_name, "grad.%s", name);
    const struct tri_st_tensor *grad = tri_st_find(worst->golden->reference, grad_name);
    double error = 0;
    for (int64_t i = 0; i < n; i++)
        if (grad == NULL || fabs(tri_golden_value(grad, i)) >= zero_gradient) {
            double e = fabs((double)got[i] - tri_golden_value(want, i));
            if (!(e <= error))
                error = e;
        }
    keep_worst(worst, error, name);
}

/* A loss is one number of the whole job: the ranks must agree on its bits. */
static enum tri_status check_agreement(struct check *c, double loss)
{
    double least = loss;
    double most = loss;
    if (c->comm == NULL)
        return TRI_OK;
    TRI_TRY(c->comm->ops->reduce_host(c->comm, &least, 1, TRI_F64, TRI_MIN));
    TRI_TRY(c->comm->ops->reduce_host(c->comm, &most, 1, TRI_F64, TRI_MAX));
    print_row(c, "loss over ranks", most - least, 0, "");
    return TRI_OK;
}

static enum tri_status check_steps(struct check *c)
{
    struct tri_golden *g = &c->golden;
    struct tri_step_stats stats;
    char what[64];
    for (int64_t step = 0; step < g->steps; step++) {
        if (step == 0) {
            /* Gradients of the first step, before the update spends them. */
            struct worst worst = {.error = 0, .golden = g};
            TRI_TRY(tri_train_gradients(c->trainer, &g->batch, 1, &stats));
            worst.scale = 1e-6 * stats.grad_norm;
            print_row(c, "loss", relative(stats.loss, g->losses[0]), c->bounds.loss, "");
            TRI_TRY(check_agreement(c, stats.loss));
            TRI_TRY(each_tensor(c, tri_flat_grads(c->trainer), "grad.", compare_gradient, &worst));
            print_row(c, "worst gradient", worst.error, c->bounds.gradient, worst.name);
        }
        TRI_TRY(tri_train_step(c->trainer, &g->batch, 1, g->optimizer.learning_rate, &stats));
        snprintf(what, sizeof what, "loss before step %lld", (long long)step + 1);
        print_row(c, what, relative(stats.loss, g->losses[step]), c->bounds.loss, "");
        snprintf(what, sizeof what, "grad norm of step %lld", (long long)step + 1);
        print_row(c, what, relative(stats.grad_norm, g->grad_norms[step]), c->bounds.grad_norm, "");
    }
    double sum;
    int64_t trained;
    TRI_TRY(tri_train_eval(c->trainer, &g->batch, &sum, &trained));
    print_row(c, "loss after last step", relative(sum / (double)trained, g->losses[g->steps]),
              c->bounds.loss, "");
    return TRI_OK;
}

static enum tri_status check_weights(struct check *c)
{
    char prefix[32];
    char first[160];
    struct worst worst = {.error = 0, .golden = &c->golden};
    snprintf(prefix, sizeof prefix, "step%lld.", (long long)c->golden.steps);
    snprintf(first, sizeof first, "%s%s", prefix, c->golden.model->hf[0].name);
    if (tri_st_find(c->golden.reference, first) == NULL)
        return TRI_OK; /* most folders leave the weights out */
    TRI_TRY(each_tensor(c, tri_flat_weights(c->trainer), prefix, compare_weight, &worst));
    print_row(c, "weights after steps", worst.error, c->bounds.weights, worst.name);
    return TRI_OK;
}

static enum tri_status open_trainer(struct check *c, const struct tri_check_way *way)
{
    const struct tri_pass_options *pass = way->pass;
    struct tri_trainer_config config = {.model = c->golden.model,
                                        .pass = pass,
                                        .optimizer = &c->golden.optimizer,
                                        .clip = c->golden.clip,
                                        .world = c->comm,
                                        .sequence = c->sequence,
                                        .zero_stage = way->zero_stage};
    TRI_TRY(tri_machine_open(pass, &c->backend));
    TRI_TRY(tri_machine_dtype(c->backend, way->dtype, &config.act));
    config.backend = c->backend;
    config.capacity = tri_machine_capacity(c->backend, pass);
    c->bounds = bounds_of(config.act);
    TRI_TRY(tri_trainer_open(&config, &c->trainer));
    struct tri_flat weights = tri_flat_weights(c->trainer);
    TRI_TRY(tri_hf_load(c->golden.model, c->folder, tri_flat_sink, &weights));
    TRI_TRY(tri_trainer_weights_loaded(c->trainer));
    if (c->to == NULL)
        return TRI_OK;
    fprintf(c->to, "%s: %s, %lld parameters, %lld tokens in %lld document%s; %s %s (%s kernels)",
            c->folder, c->golden.model->arch.family, (long long)c->golden.model->num_weights,
            (long long)c->golden.batch.num_tokens, (long long)c->golden.batch.num_docs,
            tri_plural(c->golden.batch.num_docs), c->backend->name, tri_dtype_name(config.act),
            c->backend->kernels);
    if (c->comm != NULL)
        fprintf(c->to, ", %d ranks, ZeRO %d", c->comm->size, way->zero_stage);
    fprintf(c->to, "\n  %-22s %10s %10s\n", "", "error", "bound");
    return TRI_OK;
}

static enum tri_status check_all(struct check *c, const struct tri_check_way *way)
{
    if (c->comm != NULL)
        TRI_TRY(c->comm->ops->split(c->comm, 0, c->comm->rank, &c->sequence));
    TRI_TRY(tri_golden_open(c->folder, &c->golden));
    TRI_TRY(open_trainer(c, way));
    TRI_TRY(check_logits(c));
    TRI_TRY(check_steps(c));
    return check_weights(c);
}

enum tri_status tri_check(const char *folder, const struct tri_check_way *way,
                          struct tri_comm *world, FILE *to, struct tri_check_result *out)
{
    struct check c = {.folder = folder, .comm = world, .to = to};
    struct tri_pass_options pass = *way->pass; /* strings are borrowed */
    struct tri_check_way mine = *way;
    if (world != NULL && pass.threads == 0)
        pass.threads = 1; /* ranks are the threads */
    mine.pass = &pass;
    enum tri_status st = check_all(&c, &mine);
    if (st == TRI_OK)
        *out = c.result;
    tri_trainer_close(c.trainer);
    tri_machine_close(c.backend);
    tri_golden_close(&c.golden);
    tri_comm_close(c.sequence);
    return st;
}
