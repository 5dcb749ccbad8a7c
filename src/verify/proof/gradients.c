/* Loss, gradient norm and every gradient of a step, held against those of the plainest way. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "verify/proof/way.h"

/* Most elements that come from the device at once. */
enum { BLOCK = 1 << 16 };

struct job {
    const struct tri_step_batches *step;
    struct tri_reference *find;        /* to be filled, or NULL */
    const struct tri_reference *want;  /* to be compared with, or NULL */
    struct tri_difference *difference; /* set by the first rank */
    struct tri_step_stats stats;       /* of the first rank */
};

/* Sums over gradients. */
struct sums {
    double error, norm, focus_error, focus;
};

static double at(const void *data, enum tri_dtype dtype, int64_t i)
{
    return dtype == TRI_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* Elements [place, place + count) of the model are those of `block`. */
static void take(const struct job *job, struct sums *sums, int64_t place, int64_t count,
                 const void *block, enum tri_dtype dtype)
{
    struct tri_range focus = job->step->focus;
    for (int64_t i = 0; i < count; i++) {
        double g = at(block, dtype, i);
        if (job->find != NULL) {
            job->find->grads[place + i] = g;
            continue;
        }
        double e = g - job->want->grads[place + i];
        sums->error += e * e;
        sums->norm += job->want->grads[place + i] * job->want->grads[place + i];
        if (place + i >= focus.begin && place + i < focus.begin + focus.count) {
            sums->focus_error += e * e;
            sums->focus += g * g;
        }
    }
}

/* Go through the gradients that this rank holds the sums of. In stage 0 each holds all of them, and
 * only the first one counts. */
static enum tri_status each_gradient(const struct job *job, struct tri_trainer *t,
                                     const struct tri_mesh *mesh, struct sums *sums)
{
    const struct tri_zero *z = t->zero;
    const struct tri_partition *p = &z->partition;
    size_t size = tri_dtype_bytes(z->stat);
    if (z->stage == 0 && mesh->world != NULL && mesh->world->rank > 0)
        return TRI_OK;
    void *block = malloc(BLOCK * size);
    if (block == NULL)
        return tri_fail(TRI_NOMEM, "no memory to look at gradients");
    enum tri_status st = TRI_OK;
    for (int u = 0; u < t->model->num_units && st == TRI_OK; u++) {
        int64_t begin = p->rank * p->units[u].part;
        int64_t left = t->model->unit_begin[u + 1] - t->model->unit_begin[u] - begin;
        int64_t count = left < p->units[u].part ? left : p->units[u].part;
        int64_t from = z->stage >= 2 ? p->units[u].own : p->units[u].full + begin;
        for (int64_t i = 0; i < count && st == TRI_OK; i += BLOCK) {
            int64_t n = tri_min(count - i, BLOCK);
            char *data = (char *)z->grads + (size_t)(from + i) * size;
            st = t->exec.ops->download(t->exec.stream, block, tri_view1(data, z->stat, n));
            if (st == TRI_OK)
                st = t->exec.ops->sync(t->exec.stream);
            if (st == TRI_OK)
                take(job, sums, t->model->unit_begin[u] + begin + i, n, block, z->stat);
        }
    }
    free(block);
    return st;
}

static double relative(double got, double want)
{
    return fabs(got - want) / fmax(fabs(want), 1e-300);
}

static enum tri_status work(const struct tri_subject *subject, struct tri_trainer *t,
                            const struct tri_mesh *mesh, void *ctx)
{
    struct job *job = ctx;
    struct tri_step_stats stats;
    struct sums sums = {0};
    struct tri_batch mine[TRI_SUBJECT_DOCS];
    int64_t count = 0;
    (void)subject;
    for (int i = mesh->replica; i < job->step->count; i += mesh->num_replicas)
        mine[count++] = job->step->batches[i];
    TRI_TRY(tri_train_gradients(t, mine, count, &stats));
    TRI_TRY(each_gradient(job, t, mesh, &sums));
    if (mesh->world != NULL)
        TRI_TRY(tri_comm_sum_double(mesh->world, &sums.error, 4));
    if (job->find != NULL) {
        job->find->loss = stats.loss;
        job->find->grad_norm = stats.grad_norm;
        return TRI_OK;
    }
    struct tri_difference d = {.loss = stats.loss,
                               .grad_norm = stats.grad_norm,
                               .loss_error = relative(stats.loss, job->want->loss),
                               .norm_error = relative(stats.grad_norm, job->want->grad_norm),
                               .grads_error = sqrt(sums.error / fmax(sums.norm, 1e-300)),
                               .focus_norm = sqrt(sums.focus),
                               .focus_error = sqrt(sums.focus_error / fmax(sums.focus, 1e-300))};
    /* Ranks that are threads share `ctx`; those of a launcher have one each. */
    if (mesh->world == NULL || mesh->world->rank == 0 || subject->world != NULL)
        *job->difference = d;
    return TRI_OK;
}

enum tri_status tri_reference_find(const struct tri_subject *subject,
                                   const struct tri_step_batches *step, struct tri_reference *out)
{
    struct tri_reference reference = {
        .grads = calloc((size_t)subject->model->num_elements, sizeof *reference.grads)};
    struct job job = {.step = step, .find = &reference};
    struct tri_way plain = tri_way_plain();
    struct tri_way_use use = {.act = subject->act, .gradients = true};
    if (reference.grads == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %lld gradients",
                        (long long)subject->model->num_elements);
    enum tri_status st = tri_way_run(subject, &plain, &use, work, &job);
    if (st != TRI_OK) {
        tri_reference_close(&reference);
        return st;
    }
    *out = reference;
    return TRI_OK;
}

void tri_reference_close(struct tri_reference *reference)
{
    free(reference->grads);
    reference->grads = NULL;
}

enum tri_status tri_difference_find(const struct tri_subject *subject, const struct tri_way *way,
                                    const struct tri_step_batches *step,
                                    const struct tri_reference *reference,
                                    struct tri_difference *out)
{
    struct tri_difference difference = {.loss = 0};
    struct job job = {.step = step, .want = reference, .difference = &difference};
    struct tri_way_use use = {.act = subject->act, .gradients = true};
    double start = tri_clock();
    TRI_TRY(tri_way_run(subject, way, &use, work, &job));
    difference.seconds = tri_clock() - start;
    *out = difference;
    return TRI_OK;
}
