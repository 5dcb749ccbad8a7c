#include "train/facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fingerprint.h"
#include "base/hash.h"
#include "ckpt/hf_rows.h"
#include "comm/gather.h"

void tri_facts_add(struct tri_text *facts, const char *key, const char *value)
{
    tri_text_add(facts, key, strlen(key) + 1);
    tri_text_add(facts, value, strlen(value) + 1);
}

void tri_facts_add_hash(struct tri_text *facts, const char *key, uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    tri_facts_add(facts, key, text);
}

/* The string at *at, and *at behind it; NULL at the end. */
static const char *next_string(const struct tri_text *text, size_t *at)
{
    if (*at >= text->bytes)
        return NULL;
    const char *s = text->data + *at;
    *at += strlen(s) + 1;
    return s;
}

bool tri_facts_differ(const struct tri_text *a, const struct tri_text *b,
                      struct tri_facts_difference *out)
{
    size_t at_a = 0, at_b = 0;
    for (;;) {
        const char *key_a = next_string(a, &at_a), *key_b = next_string(b, &at_b);
        if (key_a == NULL && key_b == NULL)
            return false;
        const char *value_a = next_string(a, &at_a), *value_b = next_string(b, &at_b);
        bool same_key = key_a != NULL && key_b != NULL && strcmp(key_a, key_b) == 0;
        if (same_key && value_a != NULL && value_b != NULL && strcmp(value_a, value_b) == 0)
            continue;
        out->key = key_a != NULL ? key_a : key_b;
        out->a = key_a != NULL && value_a != NULL ? value_a : "absent";
        out->b = (same_key || key_a == NULL) && value_b != NULL ? value_b : "absent";
        return true;
    }
}

static uint64_t hash_text(const struct tri_text *text)
{
    return tri_hash_bytes(TRI_HASH_START, tri_text_data(text), text->bytes);
}

/* Find the difference between rank 0 and rank `other` and tell it everywhere. */
static enum tri_status tell(struct tri_comm *world, int other, const char *what, const char *advice,
                            const struct tri_text *facts)
{
    char said[480] = "";
    struct tri_facts_difference d;
    int64_t bytes = world->rank == 0 ? (int64_t)facts->bytes : 0;
    TRI_TRY(tri_comm_sum_int(world, &bytes, 1));
    struct tri_text first = {.data = calloc((size_t)bytes + 1, 1), .bytes = (size_t)bytes};
    if (first.data == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare ranks");
    if (world->rank == 0)
        memcpy(first.data, facts->data, facts->bytes);
    enum tri_status st = tri_comm_hand_round(world, 0, first.data, first.bytes);
    if (st == TRI_OK && world->rank == other && tri_facts_differ(&first, facts, &d))
        snprintf(said, sizeof said, "%s%.80s is %.100s on rank 0 and %.100s on rank %d", what,
                 d.key, d.a, d.b, other);
    if (st == TRI_OK)
        st = tri_comm_hand_round(world, other, said, sizeof said);
    free(first.data);
    TRI_TRY(st);
    said[sizeof said - 1] = '\0';
    return tri_fail(TRI_INVALID, "ranks disagree: %s; %s", said, advice);
}

enum tri_status tri_facts_agree(struct tri_comm *world, const char *what, const char *advice,
                                const struct tri_text *facts)
{
    if (facts->failed)
        return tri_fail(TRI_NOMEM, "no memory to compare ranks");
    if (world == NULL || world->size == 1)
        return TRI_OK;
    int64_t *all = calloc((size_t)world->size, sizeof *all);
    if (all == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare ranks");
    int64_t mine = (int64_t)hash_text(facts);
    enum tri_status st = tri_comm_gather(world, &mine, 1, all);
    int other = 1;
    while (other < world->size && all[other] == all[0])
        other++;
    free(all);
    TRI_TRY(st);
    return other == world->size ? TRI_OK : tell(world, other, what, advice, facts);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* A sink before the sink. */
struct hashed {
    const struct tri_model *model;
    tri_rows_sink *sink;
    void *ctx;
    int last;       /* the tensor that came last */
    uint64_t *hash; /* (num_hf) sums over rows: how they come in pieces does not count */
};

static bool holds(const struct tri_hf_tensor *hf, int param, int64_t row)
{
    for (int i = 0; i < hf->num_parts; i++) {
        const struct tri_hf_part *p = &hf->part[i];
        int64_t block = p->dst_step > 0 ? (row - p->dst_row) / p->dst_step : 0;
        if (p->param == param && row >= p->dst_row && block < p->blocks &&
            row - p->dst_row - block * p->dst_step < p->rows)
            return true;
    }
    return false;
}

static enum tri_status hash_rows(void *ctx, int param, int64_t row, int64_t rows, const float *data)
{
    struct hashed *h = ctx;
    const struct tri_param *p = &h->model->params[param];
    int64_t width = tri_param_width(p);
    for (int tries = 0; tries < h->model->num_hf && !holds(&h->model->hf[h->last], param, row);
         tries++)
        h->last = (h->last + 1) % h->model->num_hf;
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < rows; i++) {
        uint64_t start = tri_hash_word(TRI_HASH_START + (uint64_t)param, (uint64_t)(row + i));
        sum += tri_fingerprint(start, (const unsigned char *)(data + i * width),
                               (size_t)width * sizeof *data);
    }
    h->hash[h->last] += sum;
    return h->sink(h->ctx, param, row, rows, data);
}

/* Of the weight files of a folder and of this machine since it was started. */
static enum tri_status place_of(const char *folder, uint64_t *out)
{
    struct tri_st *st = NULL;
    char *boot = NULL;
    size_t bytes = 0;
    uint64_t place;
    if (tri_file_read("/proc/sys/kernel/random/boot_id", 64, &boot, &bytes) != TRI_OK) {
        tri_error_clear(); /* then it equals none of another process */
        *out = (uint64_t)getpid();
        return TRI_OK;
    }
    uint64_t hash = tri_hash_bytes(TRI_HASH_START, boot, bytes);
    free(boot);
    TRI_TRY(tri_st_open(folder, &st));
    enum tri_status status = tri_st_place(st, &place);
    tri_st_close(st);
    TRI_TRY(status);
    *out = tri_hash_word(hash, place);
    return TRI_OK;
}

/* Do all ranks read the very same files? Collective. */
static enum tri_status read_the_same(struct tri_comm *world, const char *folder, bool *out)
{
    uint64_t place;
    TRI_TRY(place_of(folder, &place));
    int64_t *all = calloc((size_t)world->size, sizeof *all);
    if (all == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare ranks");
    enum tri_status st = tri_comm_gather(world, &(int64_t){(int64_t)place}, 1, all);
    *out = true;
    for (int r = 1; r < world->size; r++)
        *out = *out && all[r] == all[0];
    free(all);
    return st;
}

enum tri_status tri_facts_load(struct tri_comm *world, const struct tri_model *model,
                               const char *folder, tri_rows_sink *sink, void *ctx)
{
    bool same = true;
    if (world != NULL && world->size > 1)
        TRI_TRY(read_the_same(world, folder, &same));
    if (same)
        return tri_hf_load(model, folder, sink, ctx);
    struct hashed h = {.model = model, .sink = sink, .ctx = ctx};
    struct tri_text facts = {0};
    h.hash = calloc((size_t)model->num_hf + 1, sizeof *h.hash);
    if (h.hash == NULL)
        return tri_fail(TRI_NOMEM, "no memory to compare weights");
    enum tri_status st = tri_hf_load(model, folder, hash_rows, &h);
    for (int i = 0; i < model->num_hf && st == TRI_OK; i++)
        tri_facts_add_hash(&facts, model->hf[i].name, h.hash[i]);
    if (st == TRI_OK)
        st = tri_facts_agree(world, "the hash of the weights of ",
                             "give all ranks the same weight files", &facts);
    tri_text_free(&facts);
    free(h.hash);
    return st;
}
