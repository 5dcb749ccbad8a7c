/* Batches at the edge: one trained token, a shard without any, a document behind another. */
#include <stdio.h>

#include "base/clock.h"
#include "verify/proof/proofs.h"

/* Untrain all tokens of [begin, begin + count). */
static void mask(struct tri_batch *batch, int64_t begin, int64_t count)
{
    for (int64_t t = begin; t < begin + count; t++) {
        batch->num_trained -= batch->labels[t] >= 0;
        batch->labels[t] = TRI_IGNORE_LABEL;
    }
}

static enum tri_status prove_edge(struct tri_report *r, const struct tri_subject *s,
                                  const char *name, const struct tri_batch *batch)
{
    struct tri_way split = tri_way_plain();
    tri_proof_split(s, &split);
    split.zero_stage = 2;
    struct tri_named_way ways[2] = {{.name = "  in 5 chunks and 3 tiles",
                                     .way = {.ranks = 1,
                                             .shards = 1,
                                             .chunk = batch->num_tokens / 5 + 1,
                                             .mlp_tiles = 3,
                                             .loss_rows = 7},
                                     .parts = 1},
                                    {.way = split, .parts = 1}};
    snprintf(ways[1].name, sizeof ways[1].name, "  on %d ranks, ZeRO 2", split.ranks);
    return tri_prove_ways(r, s, name, batch, ways, split.ranks > 1 ? 2 : 1);
}

/* The last trained token alone. */
static enum tri_status prove_one_token(struct tri_report *r, const struct tri_subject *s)
{
    struct tri_batch batch;
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &batch));
    int64_t last = batch.num_tokens - 1;
    while (last > 0 && batch.labels[last] < 0)
        last--;
    mask(&batch, 0, last);
    enum tri_status st = prove_edge(r, s, "one trained token", &batch);
    tri_batch_close(&batch);
    return st;
}

/* A shard without a trained token; the first one, as a long prompt makes it. */
static enum tri_status prove_masked_shard(struct tri_report *r, const struct tri_subject *s)
{
    struct tri_batch batch;
    struct tri_way split = tri_way_plain();
    tri_proof_split(s, &split);
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &batch));
    int64_t trained = batch.num_trained;
    struct tri_range first = tri_split(batch.num_tokens, split.shards > 1 ? split.shards : 2, 0);
    mask(&batch, first.begin, first.count);
    enum tri_status st = TRI_OK;
    if (batch.num_trained > 0 && batch.num_trained < trained)
        st = prove_edge(r, s, "a shard without a trained token", &batch);
    tri_batch_close(&batch);
    return st;
}

/* A document gets the same gradients alone and behind one that is not trained. */
static enum tri_status prove_neighbour(struct tri_report *r, const struct tri_subject *s)
{
    struct tri_batch alone, behind;
    struct tri_reference reference;
    struct tri_difference d;
    int doc = 1;
    while (doc + 1 < TRI_SUBJECT_DOCS && s->docs[doc].num_trained == 0)
        doc++;
    if (s->docs[doc].num_trained == 0)
        return TRI_OK; /* the data has one trained document only */
    struct tri_way way = tri_way_plain();
    tri_proof_split(s, &way);
    double start = tri_clock();
    tri_report_doing(r, "a document alone");
    TRI_TRY(tri_subject_batch(s, doc, 1, &alone));
    enum tri_status st = tri_subject_batch(s, doc - 1, 2, &behind);
    if (st != TRI_OK)
        goto close_alone;
    mask(&behind, 0, s->docs[doc - 1].num_tokens);
    struct tri_step_batches one = {.batches = &alone, .count = 1};
    struct tri_step_batches two = {.batches = &behind, .count = 1};
    TRI_TRY_GOTO(st, tri_reference_find(s, &one, &reference), close_behind);
    tri_report_reference(r, "a document alone", &reference, tri_clock() - start);
    st = tri_difference_find(s, &way, &two, &reference, &d);
    tri_reference_close(&reference);
    if (st == TRI_OK)
        tri_report_split(r, "  behind an untrained one", &d, tri_proof_bound(s, s->act));
close_behind:
    tri_batch_close(&behind);
close_alone:
    tri_batch_close(&alone);
    return st;
}

enum tri_status tri_prove_edges(struct tri_report *r, const struct tri_subject *s)
{
    tri_report_splits_head(r, "Batches at the edge");
    TRI_TRY(prove_one_token(r, s));
    TRI_TRY(prove_masked_shard(r, s));
    return prove_neighbour(r, s);
}
