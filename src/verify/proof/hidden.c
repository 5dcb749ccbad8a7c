/* The hidden states of a whole sequence, from all ranks that share it. */
#include <stdlib.h>
#include <string.h>

#include "model/net.h"
#include "pass/slots.h"
#include "verify/proof/way.h"

struct job {
    const struct tri_batch *batches;
    int count;
    double *const *out; /* written by the first rank; by all where each has its own */
};

/* rows (T, E) of this rank as float64 or float32 in host memory; the caller frees *host. */
static enum tri_status download(struct tri_trainer *t, struct tri_view top, void **host)
{
    struct tri_view from = top;
    void *rows = malloc((size_t)(top.dim[0] * top.dim[1] + 1) * tri_dtype_bytes(t->stat));
    if (rows == NULL)
        return tri_fail(TRI_NOMEM, "no memory for hidden states");
    enum tri_status st = TRI_OK;
    if (top.dtype != t->stat) {
        st =
            tri_net_scratch(&t->pass->net, "hidden states", t->stat, top.dim[0], top.dim[1], &from);
        if (st == TRI_OK)
            st = t->exec.ops->copy(t->exec.stream, from, top);
    }
    if (st == TRI_OK)
        st = t->exec.ops->download(t->exec.stream, rows, from);
    if (st == TRI_OK)
        st = t->exec.ops->sync(t->exec.stream);
    if (st != TRI_OK) {
        free(rows);
        return st;
    }
    *host = rows;
    return TRI_OK;
}

/* Put this rank's rows at their places among those of the sequence. */
static void spread(const struct tri_trainer *t, const void *rows, double *all)
{
    const struct tri_layout *layout = &t->pass->net.exchange.layout;
    int64_t width = t->model->arch.hidden;
    int rank = tri_pass_rank(t->pass);
    for (int64_t i = 0; i < tri_layout_chunks(layout); i++) {
        struct tri_range part = tri_layout_part(layout, i, rank);
        struct tri_range mine = tri_layout_rows(layout, i, rank);
        for (int64_t j = 0; j < part.count * width; j++)
            all[part.begin * width + j] =
                t->stat == TRI_F64 ? ((const double *)rows)[mine.begin * width + j]
                                   : (double)((const float *)rows)[mine.begin * width + j];
    }
}

static enum tri_status forward(struct tri_trainer *t, const struct tri_mesh *mesh,
                               const struct tri_batch *batch, double *all)
{
    void *rows = NULL;
    struct tri_view top;
    int64_t count = batch->num_tokens * t->model->arch.hidden;
    memset(all, 0, (size_t)count * sizeof *all);
    TRI_TRY(tri_pass_begin(t->pass, batch, false));
    TRI_TRY(tri_pass_forward(t->pass));
    TRI_TRY(tri_pass_top(t->pass, &top));
    TRI_TRY(download(t, top, &rows));
    spread(t, rows, all);
    free(rows);
    tri_pass_end(t->pass);
    return mesh->sequence == NULL ? TRI_OK : tri_comm_sum_double(mesh->sequence, all, count);
}

static enum tri_status work(const struct tri_subject *subject, struct tri_trainer *t,
                            const struct tri_mesh *mesh, void *ctx)
{
    const struct job *job = ctx;
    bool keeps = mesh->world == NULL || mesh->world->rank == 0 || subject->world != NULL;
    for (int i = 0; i < job->count; i++) {
        size_t bytes =
            (size_t)(job->batches[i].num_tokens * t->model->arch.hidden) * sizeof(double);
        double *all = malloc(bytes + 1);
        if (all == NULL)
            return tri_fail(TRI_NOMEM, "no memory for hidden states");
        enum tri_status st = forward(t, mesh, &job->batches[i], all);
        if (st == TRI_OK && keeps)
            memcpy(job->out[i], all, bytes);
        free(all);
        TRI_TRY(st);
    }
    return TRI_OK;
}

enum tri_status tri_hidden_find(const struct tri_subject *subject, const struct tri_way *way,
                                const struct tri_batch *batches, int count, double *const *out)
{
    struct job job = {batches, count, out};
    struct tri_way_use use = {.act = subject->act, .gradients = false};
    return tri_way_run(subject, way, &use, work, &job);
}
