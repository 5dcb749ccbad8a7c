/* Who sees whom: other tokens are put in one place, and hidden states are looked at in another. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shard/layout.h"
#include "verify/proof/proofs.h"

enum { MOST_PROBES = 8 };

/* ---- the probe --------------------------------------------------------------------------------
 */

/* Largest change of hidden states (S, E) within rows. */
static double movement(const double *a, const double *b, struct tri_range rows, int64_t width)
{
    double most = 0;
    for (int64_t i = rows.begin * width; i < (rows.begin + rows.count) * width; i++) {
        double d = fabs(a[i] - b[i]);
        if (!(d <= most)) /* NaN is the worst of all */
            most = d;
    }
    return most;
}

/* The batch with other ids in a range. The caller closes it. */
static enum tri_status perturb(const struct tri_subject *s, const struct tri_batch *batch,
                               struct tri_range range, struct tri_batch *out)
{
    size_t n = (size_t)batch->num_tokens;
    TRI_TRY(tri_batch_open(batch->num_tokens, out));
    out->num_tokens = batch->num_tokens;
    out->num_docs = batch->num_docs;
    out->num_trained = batch->num_trained;
    memcpy(out->ids, batch->ids, n * sizeof *out->ids);
    memcpy(out->labels, batch->labels, n * sizeof *out->labels);
    memcpy(out->positions, batch->positions, n * sizeof *out->positions);
    memcpy(out->doc_begin, batch->doc_begin,
           (size_t)(batch->num_docs + 1) * sizeof *out->doc_begin);
    for (int64_t t = range.begin; t < range.begin + range.count; t++)
        out->ids[t] = (int32_t)((out->ids[t] + 1 + t % 7) % s->model->arch.vocab);
    return TRI_OK;
}

/* What is computed: the batch as it is, then with each probe's other ids. */
struct views {
    struct tri_batch batches[1 + MOST_PROBES];
    double *hidden[1 + MOST_PROBES]; /* (S, E) */
};

static enum tri_status open_views(const struct tri_subject *s, const struct tri_probe *probes,
                                  int count, struct views *v)
{
    size_t bytes = (size_t)(probes->batch->num_tokens * s->model->arch.hidden) * sizeof(double);
    v->batches[0] = *probes->batch; /* not owned */
    for (int i = 0; i <= count; i++) {
        if (i > 0)
            TRI_TRY(perturb(s, probes->batch, probes[i - 1].perturbed, &v->batches[i]));
        v->hidden[i] = malloc(bytes);
        if (v->hidden[i] == NULL)
            return tri_fail(TRI_NOMEM, "no memory for hidden states");
    }
    return TRI_OK;
}

static void close_views(struct views *v)
{
    for (int i = 0; i <= MOST_PROBES; i++) {
        free(v->hidden[i]);
        if (i > 0)
            tri_batch_close(&v->batches[i]);
    }
}

/* Of several probes the least movement and the largest leak count. */
enum tri_status tri_prove_probe(struct tri_report *r, const struct tri_subject *s,
                                const struct tri_way *way, const char *what,
                                const struct tri_probe *probes, int count)
{
    int64_t width = s->model->arch.hidden;
    struct views v = {.batches = {{0}}};
    double start = tri_clock();
    double moved = INFINITY;
    double leaked = 0;
    tri_report_doing(r, what);
    enum tri_status st = open_views(s, probes, count, &v);
    if (st == TRI_OK)
        st = tri_hidden_find(s, way, v.batches, 1 + count, v.hidden);
    for (int i = 0; i < count && st == TRI_OK; i++) {
        double m = movement(v.hidden[0], v.hidden[1 + i], probes[i].moves, width);
        double l = movement(v.hidden[0], v.hidden[1 + i], probes[i].still, width);
        moved = m < moved ? m : moved;
        if (!(l <= leaked)) /* NaN is the worst of all */
            leaked = l;
    }
    close_views(&v);
    if (st == TRI_OK)
        tri_report_value(r, what, moved, 0, leaked, 0, tri_clock() - start);
    return st;
}

/* ---- documents --------------------------------------------------------------------------------
 */

/* Change all tokens of the first document, then of the last one; no other document may move. */
static enum tri_status prove_isolation(struct tri_report *r, const struct tri_subject *s,
                                       const struct tri_way *way, const char *where)
{
    struct tri_batch batch;
    char what[96];
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &batch));
    int64_t first = batch.doc_begin[1];
    int64_t last = batch.doc_begin[batch.num_docs - 1];
    int64_t all = batch.num_tokens;
    struct tri_probe probes[] = {
        {&batch, .perturbed = {0, first}, .moves = {0, first}, .still = {first, all - first}},
        {&batch, .perturbed = {last, all - last}, .moves = {last, all - last}, .still = {0, last}},
    };
    snprintf(what, sizeof what, "other documents do not move, %s", where);
    enum tri_status st = tri_prove_probe(r, s, way, what, probes, 2);
    tri_batch_close(&batch);
    return st;
}

/* ---- one document over all shards --------------------------------------------------------------
 */

/* All tokens as one document, each trained to predict the next. */
static enum tri_status one_document(const struct tri_subject *s, int64_t most,
                                    struct tri_batch *out)
{
    struct tri_batch batch;
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &batch));
    if (batch.num_tokens > most)
        batch.num_tokens = most;
    for (int64_t t = 0; t < batch.num_tokens; t++) {
        batch.positions[t] = t;
        batch.labels[t] = t + 1 < batch.num_tokens ? batch.ids[t + 1] : TRI_IGNORE_LABEL;
    }
    enum tri_status st = tri_batch_finish_shifted(&batch);
    if (st != TRI_OK) {
        tri_batch_close(&batch);
        return st;
    }
    *out = batch;
    return TRI_OK;
}

/* Change the last token of each shard: nothing before it moves, and the next shard does. With one
 * rank at the same places. */
static enum tri_status prove_causality(struct tri_report *r, const struct tri_subject *s,
                                       const struct tri_way *way, const char *where)
{
    struct tri_probe probes[MOST_PROBES];
    struct tri_batch batch;
    char what[96];
    int shards = way->shards > 1 ? way->shards : 4;
    int count = 0;
    TRI_TRY(one_document(s, INT64_MAX, &batch));
    /* Of very many borders some, evenly. */
    for (int i = 0; i + 1 < shards; i += (shards + MOST_PROBES - 1) / MOST_PROBES) {
        struct tri_range shard = tri_split(batch.num_tokens, shards, i);
        int64_t next = shard.begin + shard.count;
        if (next < 1 || next >= batch.num_tokens)
            continue;
        probes[count++] = (struct tri_probe){.batch = &batch,
                                             .perturbed = {next - 1, 1},
                                             .moves = {next, 1},
                                             .still = {0, next - 1}};
    }
    snprintf(what, sizeof what, "earlier tokens do not move, %s", where);
    enum tri_status st = tri_prove_probe(r, s, way, what, probes, count);
    tri_batch_close(&batch);
    return st;
}

/* ---- from the last shard to the first ----------------------------------------------------------
 */

/* How far back a token feels through all layers and their windows. */
static int64_t reach(const struct tri_arch *arch)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < arch->num_layers; i++) {
        if (arch->window[i] == 0 || arch->window[i] > INT64_MAX / 2 - sum)
            return INT64_MAX;
        sum += arch->window[i] - 1;
    }
    return sum;
}

/* An id that no token of the batch has, and that has a row with a gradient. */
static int32_t unused_id(const struct tri_arch *arch, const struct tri_batch *batch)
{
    for (int32_t id = 0; id < arch->vocab; id++) {
        bool used = id == arch->padding_row;
        for (int64_t t = 0; t < batch->num_tokens && !used; t++)
            used = batch->ids[t] == id;
        if (!used)
            return id;
    }
    return -1;
}

enum tri_status tri_prove_reach(struct tri_report *r, const struct tri_subject *s,
                                const struct tri_way *way, const char *what,
                                const struct tri_batch *batch)
{
    const struct tri_param *table = &s->model->params[s->model->outer_param[TRI_EMBED]];
    struct tri_reference reference;
    struct tri_difference d;
    int64_t row = batch->ids[0] * table->dim[1];
    struct tri_step_batches step = {
        .batches = batch, .count = 1, .focus = {table->offset + row, table->dim[1]}};
    double start = tri_clock();
    tri_report_doing(r, what);
    TRI_TRY(tri_reference_find(s, &step, &reference));
    enum tri_status st = tri_difference_find(s, way, &step, &reference, &d);
    tri_reference_close(&reference);
    if (st == TRI_OK)
        tri_report_value(r, what, d.focus_norm, 0, d.focus_error, tri_proof_bound(s, s->act),
                         tri_clock() - start);
    return st;
}

/* Only the last token that predicts something is trained, and the first token's id is nowhere else:
 * the gradient of its row of the embedding came all the way. (A tied head gives every row some.) */
static enum tri_status prove_gradient_reaches(struct tri_report *r, const struct tri_subject *s,
                                              const struct tri_way *way, const char *where)
{
    struct tri_batch batch;
    char what[96];
    int64_t span = reach(&s->model->arch);
    TRI_TRY(one_document(s, span < INT64_MAX - 2 ? span + 2 : span, &batch));
    int64_t last = batch.num_tokens - 2;
    int32_t id = unused_id(&s->model->arch, &batch);
    for (int64_t t = 0; t < last; t++)
        batch.labels[t] = TRI_IGNORE_LABEL;
    batch.num_trained = 1;
    if (id >= 0)
        batch.ids[0] = id;
    snprintf(what, sizeof what, "the last token's gradient at the first, %s", where);
    enum tri_status st = tri_prove_reach(r, s, way, what, &batch);
    if (st == TRI_OK) {
        struct tri_probe p = {.batch = &batch, .perturbed = {0, 1}, .moves = {last, 1}};
        snprintf(what, sizeof what, "the last token feels the first, %s", where);
        st = tri_prove_probe(r, s, way, what, &p, 1);
    }
    tri_batch_close(&batch);
    return st;
}

enum tri_status tri_prove_sight(struct tri_report *r, const struct tri_subject *s)
{
    struct tri_way plain = tri_way_plain();
    struct tri_way chunks = plain;
    struct tri_way ranks = plain;
    char where[32];
    tri_report_values_head(r, "Who sees whom (value: how far moved what may move)");
    chunks.chunk = s->tokens / 5 + 1;
    chunks.remat = TRI_REMAT_FULL;
    TRI_TRY(prove_isolation(r, s, &plain, "one rank"));
    TRI_TRY(prove_isolation(r, s, &chunks, "5 chunks"));
    TRI_TRY(prove_causality(r, s, &plain, "one rank"));
    TRI_TRY(prove_causality(r, s, &chunks, "5 chunks"));
    TRI_TRY(prove_gradient_reaches(r, s, &chunks, "5 chunks"));
    tri_proof_split(s, &ranks);
    if (ranks.ranks < 2)
        return TRI_OK;
    snprintf(where, sizeof where, "%d ranks", ranks.ranks);
    TRI_TRY(prove_isolation(r, s, &ranks, where));
    TRI_TRY(prove_causality(r, s, &ranks, where));
    return prove_gradient_reaches(r, s, &ranks, where);
}
