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

/* The largest divisor of `ranks` up to `most`. */
static int largest_divisor(int ranks, int most)
{
    int shards = most < ranks ? most : ranks;
    while (ranks % shards != 0)
        shards--;
    return shards;
}

static int most_shards(const struct tri_subject *s)
{
    int64_t heads = s->model->arch.num_heads;
    return heads < s->max_ranks ? (int)heads : s->max_ranks;
}

void tri_proof_split(const struct tri_subject *s, struct tri_way *way)
{
    way->ranks = s->world != NULL ? s->world->size : most_shards(s);
    way->shards = largest_divisor(way->ranks, most_shards(s));
}

static void add_on_one_rank(struct list *l, const struct tri_subject *s)
{
    static const char *const remats[] = {"checkpointing full", "checkpointing selective"};
    char name[48];
    for (int run = 2; run <= (s->cuda ? 4 : 2); run++) { /* a card's spread from run to run */
        snprintf(name, sizeof name, "again, run %d", run);
        add(l, name, 1)->bit_for_bit = true;
    }
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

/* Two replicas at least, of as many ranks as may be. */
static int fewer_shards(const struct tri_subject *s, int ranks)
{
    int most = ranks > 1 ? ranks / 2 : 1;
    return largest_divisor(ranks, most_shards(s) < most ? most_shards(s) : most);
}

static void add_on_ranks(struct list *l, const struct tri_subject *s)
{
    int most = s->max_ranks;
    int shards = most_shards(s);
    int fewer = fewer_shards(s, most);
    int replicas = most / fewer;
    for (int ranks = s->world != NULL ? most : 2; ranks < most; ranks++)
        if (ranks <= shards)
            add_ranks(l, ranks, ranks, 0, 1);
    for (int stage = 0; stage <= 3 && most > 1; stage++) {
        if (shards == most)
            add_ranks(l, most, most, stage, stage % 2 + 1);
        if (most % 2 == 0 || shards < most) /* of a prime number there are no larger replicas */
            add_ranks(l, most, fewer, stage, replicas <= TRI_SUBJECT_DOCS / 2 ? 4 : 3);
    }
}

/* The ranks that the recipe asks for, as far as there are as many here. */
static void ask_recipe(const struct tri_subject *s, struct tri_way *way)
{
    const struct tri_recipe *r = s->run->recipe;
    int64_t shards = r->train.sequence_parallel_size;
    int choice = r->train.zero_stage;
    int64_t asked = r->train.ranks > 0 ? r->train.ranks : 1; /* as a run does without a card */
    way->ranks = s->world == NULL && asked < s->max_ranks ? (int)asked : s->max_ranks;
    way->shards = largest_divisor(
        way->ranks, shards > 0 && shards < most_shards(s) ? (int)shards : most_shards(s));
    if (way->ranks > 1)
        way->zero_stage = choice == TRI_ZERO_AUTO ? 1 : choice - TRI_ZERO_FIRST;
    way->remat = r->pass.activation_checkpointing;
    if (r->pass.tiled_mlp_compute)
        way->mlp_tiles = r->pass.tiled_mlp_num_shards > 0 ? r->pass.tiled_mlp_num_shards : 2;
    way->chunk = r->pass.chunk_size > s->tokens ? s->tokens / 2 + 1 : r->pass.chunk_size;
}

/* What the recipe says, and everything at once. */
static void add_mixed(struct list *l, const struct tri_subject *s)
{
    struct tri_named_way *w = add(l, "", 2);
    ask_recipe(s, &w->way);
    snprintf(w->name, sizeof w->name, "the recipe's own: %d x %d ranks, ZeRO %d",
             w->way.ranks / w->way.shards, w->way.shards, w->way.zero_stage);
    if (s->max_ranks < 2)
        return;
    w = add(l, "everything at once", 4);
    w->way = (struct tri_way){.ranks = s->max_ranks,
                              .shards = fewer_shards(s, s->max_ranks),
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
