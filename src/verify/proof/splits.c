/* One step computed in every way there is. */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "verify/proof/proofs.h"

enum { MOST_WAYS = 40 };

/* The documents of `whole`, which are those of the subject or some of them, dealt to `parts`
 * micro-batches in runs. */
static enum tri_status deal(const struct tri_batch *whole, int parts, struct tri_batch *out)
{
    int made = 0;
    enum tri_status st = TRI_OK;
    for (; made < parts && st == TRI_OK; made++) {
        struct tri_range docs = tri_split(whole->num_docs, parts, made);
        int64_t begin = whole->doc_begin[docs.begin];
        int64_t count = whole->doc_begin[docs.begin + docs.count] - begin;
        st = tri_batch_open(count > 0 ? count : 1, &out[made]);
        if (st != TRI_OK)
            break;
        if (count == 0)
            continue; /* fewer documents than parts */
        memcpy(out[made].ids, whole->ids + begin, (size_t)count * sizeof *whole->ids);
        memcpy(out[made].labels, whole->labels + begin, (size_t)count * sizeof *whole->labels);
        memcpy(out[made].positions, whole->positions + begin,
               (size_t)count * sizeof *whole->positions);
        out[made].num_tokens = count;
        st = tri_batch_finish_shifted(&out[made]);
    }
    if (st != TRI_OK)
        for (int i = 0; i < made; i++)
            tri_batch_close(&out[i]);
    return st;
}

static enum tri_status prove_way(struct tri_report *r, const struct tri_subject *s,
                                 const struct tri_batch *whole, const struct tri_named_way *named,
                                 const struct tri_reference *reference)
{
    struct tri_batch parts[TRI_SUBJECT_DOCS];
    struct tri_step_batches step = {.batches = parts, .count = named->parts};
    struct tri_difference d;
    tri_report_doing(r, named->name);
    TRI_TRY(deal(whole, named->parts, parts));
    enum tri_status st = tri_difference_find(s, &named->way, &step, reference, &d);
    for (int i = 0; i < named->parts; i++)
        tri_batch_close(&parts[i]);
    TRI_TRY(st);
    tri_report_split(r, named->name, &d,
                     named->bit_for_bit ? tri_proof_bit_bound(s, s->act)
                                        : tri_proof_bound(s, s->act));
    return TRI_OK;
}

enum tri_status tri_prove_ways(struct tri_report *r, const struct tri_subject *s,
                               const char *reference_name, const struct tri_batch *whole,
                               const struct tri_named_way *ways, int count)
{
    struct tri_reference reference;
    struct tri_step_batches step = {.batches = whole, .count = 1};
    double start = tri_clock();
    tri_report_doing(r, reference_name);
    TRI_TRY(tri_reference_find(s, &step, &reference));
    tri_report_reference(r, reference_name, &reference, tri_clock() - start);
    enum tri_status st = TRI_OK;
    for (int i = 0; i < count && st == TRI_OK; i++)
        st = prove_way(r, s, whole, &ways[i], &reference);
    tri_reference_close(&reference);
    return st;
}

/* ---- which ways there are ----------------------------------------------------------------------
 */

struct list {
    struct tri_named_way ways[MOST_WAYS];
    int count;
};

static struct tri_named_way *add(struct list *l, const char *name, int parts)
{
    struct tri_named_way *w = &l->ways[l->count++];
    *w = (struct tri_named_way){.way = tri_way_plain(), .parts = parts};
    snprintf(w->name, sizeof w->name, "%s", name);
    return w;
}

int tri_proof_shards(const struct tri_subject *s)
{
    int64_t heads = s->model->arch.num_heads;
    return heads < s->max_ranks ? (int)heads : s->max_ranks;
}

static void add_on_one_rank(struct list *l, const struct tri_subject *s)
{
    static const char *const remats[] = {"checkpointing full", "checkpointing selective"};
    char name[48];
    add(l, "again", 1)->bit_for_bit = true;
    for (int remat = TRI_REMAT_FULL; remat < TRI_REMAT_NONE; remat++) {
        struct tri_named_way *w = add(l, remats[remat], 1);
        w->way.remat = remat;
        w->bit_for_bit = true;
    }
    for (int64_t tiles = 3; tiles <= 7; tiles += 4) {
        snprintf(name, sizeof name, "MLP in %" PRId64 " tiles", tiles);
        add(l, name, 1)->way.mlp_tiles = tiles;
    }
    for (int64_t rows = 7; rows <= 16; rows += 9) {
        snprintf(name, sizeof name, "loss in tiles of %" PRId64 " tokens", rows);
        add(l, name, 1)->way.loss_rows = rows;
    }
    for (int64_t parts = 2; parts <= 5; parts += 3) {
        int64_t chunk = s->tokens / parts + 1;
        snprintf(name, sizeof name, "chunks of %" PRId64 " tokens", chunk);
        add(l, name, 1)->way.chunk = chunk;
    }
    add(l, "2 micro-batches", 2);
    add(l, "4 micro-batches", 4);
}

static struct tri_named_way *add_ranks(struct list *l, int ranks, int shards, int stage, int parts)
{
    char name[48];
    if (shards == ranks)
        snprintf(name, sizeof name, "%d ranks, ZeRO %d", ranks, stage);
    else
        snprintf(name, sizeof name, "%d replicas of %d ranks, ZeRO %d", ranks / shards, shards,
                 stage);
    struct tri_named_way *w = add(l, name, parts);
    w->way.ranks = ranks;
    w->way.shards = shards;
    w->way.zero_stage = stage;
    return w;
}

/* A divisor of `ranks` that is no more than `most`, the largest one below `ranks` itself. */
static int fewer_shards(int ranks, int most)
{
    for (int shards = ranks - 1; shards > 1; shards--)
        if (ranks % shards == 0 && shards <= most)
            return shards;
    return 1;
}

static void add_on_ranks(struct list *l, const struct tri_subject *s)
{
    int most = s->max_ranks;
    int shards = tri_proof_shards(s);
    for (int ranks = s->world != NULL ? most : 2; ranks < most; ranks++)
        if (ranks <= shards)
            add_ranks(l, ranks, ranks, 0, 1);
    for (int stage = 0; stage <= 3 && most > 1; stage++) {
        if (shards == most)
            add_ranks(l, most, most, stage, stage % 2 + 1);
        if (most % 2 == 0) /* documents are dealt to at most four micro-batches */
            add_ranks(l, most, fewer_shards(most, shards), stage,
                      most / fewer_shards(most, shards) <= 2 ? 4 : 1);
    }
}

/* What the recipe says, and everything at once. */
static void add_mixed(struct list *l, const struct tri_subject *s)
{
    const struct tri_recipe *r = s->run->recipe;
    int most = s->max_ranks;
    int ranks = r->train.ranks > 0 && r->train.ranks <= most && s->world == NULL
                    ? (int)r->train.ranks
                    : most;
    int shards = r->train.sequence_parallel_size > 0 ? (int)r->train.sequence_parallel_size : ranks;
    if (shards > tri_proof_shards(s) || ranks % shards != 0)
        shards = fewer_shards(ranks, tri_proof_shards(s));
    struct tri_named_way *w =
        add(l, "as the recipe says", ranks / shards <= 4 ? ranks / shards : 1);
    w->way.ranks = ranks;
    w->way.shards = shards;
    w->way.zero_stage = ranks == 1 ? 0
                        : r->train.zero_stage == TRI_ZERO_AUTO
                            ? 1
                            : r->train.zero_stage - TRI_ZERO_FIRST;
    w->way.remat = r->pass.activation_checkpointing;
    w->way.mlp_tiles = r->pass.tiled_mlp_num_shards > 0 ? r->pass.tiled_mlp_num_shards : 2;
    w->way.chunk = r->pass.chunk_size > s->tokens ? s->tokens / 2 + 1 : r->pass.chunk_size;
    if (most < 2)
        return;
    w = add(l, "everything at once", 4);
    w->way = (struct tri_way){.ranks = most,
                              .shards = fewer_shards(most, tri_proof_shards(s)),
                              .zero_stage = 3,
                              .chunk = s->tokens / 7 + 1,
                              .mlp_tiles = 3,
                              .loss_rows = 5,
                              .remat = TRI_REMAT_FULL};
}

enum tri_status tri_prove_splits(struct tri_report *r, const struct tri_subject *s)
{
    struct list list = {.count = 0};
    struct tri_batch whole;
    add_on_one_rank(&list, s);
    add_on_ranks(&list, s);
    add_mixed(&list, s);
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &whole));
    tri_report_splits_head(r, "The same step in every way");
    enum tri_status st =
        tri_prove_ways(r, s, "one rank, nothing cut", &whole, list.ways, list.count);
    tri_batch_close(&whole);
    return st;
}

/* ---- edges ------------------------------------------------------------------------------------
 */

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
    struct list list = {.count = 0};
    int shards = tri_proof_shards(s);
    add(&list, "  in 5 chunks and 3 tiles", 1)->way =
        (struct tri_way){.ranks = 1,
                         .shards = 1,
                         .chunk = batch->num_tokens / 5 + 1,
                         .mlp_tiles = 3,
                         .loss_rows = 7};
    if (shards > 1 && (s->world == NULL || shards == s->world->size)) {
        struct tri_named_way *w = add_ranks(&list, shards, shards, 2, 1);
        snprintf(w->name, sizeof w->name, "  on %d ranks, ZeRO 2", shards);
    }
    return tri_prove_ways(r, s, name, batch, list.ways, list.count);
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
    int shards = tri_proof_shards(s);
    TRI_TRY(tri_subject_batch(s, 0, TRI_SUBJECT_DOCS, &batch));
    int64_t trained = batch.num_trained;
    struct tri_range first = tri_split(batch.num_tokens, shards > 1 ? shards : 2, 0);
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
    int shards =
        s->world == NULL || tri_proof_shards(s) == s->world->size ? tri_proof_shards(s) : 1;
    struct tri_way way = tri_way_plain();
    way.ranks = way.shards = shards;
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
