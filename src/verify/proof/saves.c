/* What is saved is what was there: to the bit of every weight, whatever ranks wrote it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "ckpt/hf.h"
#include "shard/mesh.h"
#include "verify/proof/proofs.h"

struct job {
    const struct tri_batch *batch;
    const char *from; /* weights to begin with; NULL: the recipe's */
    const char *to;   /* folder to save into, or NULL */
    int64_t updates;
    double loss; /* after the updates; set by the first rank */
};

static enum tri_status save(const struct tri_subject *s, struct tri_trainer *t,
                            const struct tri_mesh *mesh, const char *folder)
{
    struct tri_hf_export how = {
        .source_folder = s->run->model_folder, .config_overrides = s->overrides, .dtype = t->act};
    struct tri_flat weights = tri_flat_weights(t);
    weights.reader = 0;
    if (!tri_mesh_is_first(mesh))
        return tri_flat_give(&weights);
    TRI_TRY(tri_make_folder(folder));
    return tri_hf_save(s->model, folder, &how, tri_flat_source, &weights);
}

static enum tri_status work(const struct tri_subject *s, struct tri_trainer *t,
                            const struct tri_mesh *mesh, void *ctx)
{
    struct job *job = ctx;
    struct tri_step_stats stats;
    int64_t mine = mesh->replica == 0 ? 1 : 0;
    if (job->from != NULL) {
        struct tri_flat weights = tri_flat_weights(t);
        TRI_TRY(tri_hf_load(s->model, job->from, tri_flat_sink, &weights));
        TRI_TRY(tri_trainer_weights_loaded(t));
    }
    for (int64_t i = 0; i < job->updates; i++)
        TRI_TRY(
            tri_train_step(t, job->batch, mine, s->run->recipe->optimizer.learning_rate, &stats));
    if (job->to != NULL)
        TRI_TRY(save(s, t, mesh, job->to));
    TRI_TRY(tri_train_gradients(t, job->batch, mine, &stats));
    if (mesh->world == NULL || mesh->world->rank == 0 || s->world != NULL)
        job->loss = stats.loss;
    return TRI_OK;
}

static enum tri_status run(const struct tri_subject *s, const struct tri_way *way, struct job *job)
{
    struct tri_way_use use = {.act = s->run_act,
                              .gradients = true,
                              .optimizer = job->updates > 0 ? &s->run->recipe->optimizer : NULL};
    return tri_way_run(s, way, &use, work, job);
}

/* How many bytes of the weights in two folders differ, and how many there are. */
static enum tri_status compare_files(const char *a, const char *b, double *bytes, double *differ)
{
    char *names[2] = {tri_path_join(a, "model.safetensors"), tri_path_join(b, "model.safetensors")};
    struct tri_map x, y;
    enum tri_status st = TRI_OK;
    if (names[0] == NULL || names[1] == NULL)
        st = tri_fail(TRI_NOMEM, "no memory for a path");
    if (st == TRI_OK)
        st = tri_map_open(names[0], &x);
    if (st == TRI_OK) {
        st = tri_map_open(names[1], &y);
        if (st == TRI_OK) {
            size_t common = x.bytes < y.bytes ? x.bytes : y.bytes;
            double count = (double)(x.bytes - common) + (double)(y.bytes - common);
            for (size_t i = 0; i < common; i++)
                count += x.data[i] != y.data[i];
            *bytes = (double)x.bytes;
            *differ = count;
            tri_map_close(&y);
        }
        tri_map_close(&x);
    }
    free(names[0]);
    free(names[1]);
    return st;
}

struct folders {
    char model[4096], trained[4096], again[4096];
};

/* Reload on the ranks that saved: not a bit of the loss may move. Then on one rank, which saves
 * once more: not a bit of the weights may move. */
static enum tri_status prove(struct tri_report *r, const struct tri_subject *s,
                             const struct tri_way *way, const struct tri_batch *batch,
                             const struct folders *f)
{
    struct tri_way plain = tri_way_plain();
    bool first = s->world == NULL || s->world->rank == 0;
    char what[96];
    struct job trained = {.batch = batch, .to = f->trained, .updates = 1};
    struct job same = {.batch = batch, .from = f->trained};
    struct job alone = {.batch = batch, .from = f->trained, .to = f->again};
    double found[3] = {0, 0, 0}; /* loss of one rank, bytes, bytes that differ */
    double start = tri_clock();
    snprintf(what, sizeof what, "saved by %d ranks in ZeRO %d: loss when they reload", way->ranks,
             way->zero_stage);
    tri_report_doing(r, what);
    TRI_TRY(run(s, way, &trained));
    TRI_TRY(run(s, way, &same));
    tri_report_value(r, what, same.loss, -1, fabs(same.loss - trained.loss) / trained.loss,
                     tri_proof_bit_bound(s, s->run_act), tri_clock() - start);

    /* Only the first rank of several machines is sure to have the files. */
    start = tri_clock();
    tri_report_doing(r, "one rank reloads");
    if (first) {
        TRI_TRY(run(s, &plain, &alone));
        found[0] = alone.loss;
        TRI_TRY(compare_files(f->trained, f->again, &found[1], &found[2]));
    }
    if (s->world != NULL)
        TRI_TRY(tri_comm_sum_double(s->world, found, 3));
    tri_report_value(r, "loss when one rank reloads it", found[0], -1,
                     fabs(found[0] - trained.loss) / trained.loss,
                     tri_proof_bound(s, s->run_act) / 10, tri_clock() - start);
    tri_report_value(r, "bytes of weights when it saves again", found[1], 0, found[2], 0, 0);
    return TRI_OK;
}

enum tri_status tri_prove_saves(struct tri_report *r, const struct tri_subject *s,
                                const char *folder)
{
    struct folders f;
    struct tri_batch batch;
    struct tri_way plain = tri_way_plain();
    struct tri_way way = plain;
    tri_proof_split(s, &way);
    way.zero_stage = way.ranks > 1 ? 3 : 0;
    snprintf(f.model, sizeof f.model, "%s/model", folder);
    snprintf(f.trained, sizeof f.trained, "%s/trained", folder);
    snprintf(f.again, sizeof f.again, "%s/again", folder);
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &batch));
    struct job model = {.batch = &batch, .to = f.model};
    tri_report_values_head(r, "Saving and going on");
    tri_report_doing(r, "saving the model");
    enum tri_status st = TRI_OK;
    if (s->world == NULL) /* for runs that are killed, which a launcher's ranks leave out */
        st = run(s, &plain, &model);
    if (st == TRI_OK)
        st = prove(r, s, &way, &batch, &f);
    tri_batch_close(&batch);
    return st;
}
