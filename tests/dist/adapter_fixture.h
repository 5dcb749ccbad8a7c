/* Samples of ranks that the adapter's tests read: what they hold follows from rank, epoch and
 * number; a source can make mistakes. */
#ifndef TESTS_DIST_ADAPTER_FIXTURE_H
#define TESTS_DIST_ADAPTER_FIXTURE_H

#include "ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trireme/trireme.h"

enum { MOST_TOKENS = 64, MOST_ROWS = 3 };

enum mistake {
    NONE,
    NO_IDS,
    NO_LABELS,
    NO_POSITIONS,
    SHORT_LABELS,
    LARGE_ID,
    FLOAT_MASK,
    SQUARE_MASK,
    LEFT_PADDING,
    SHIFTED_LABELS,
    WRONG_CUT,
    TWICE,
    BROKEN,
};

/* Sample i of a rank is a function of (rank, epoch, i). */
struct source {
    int rank, stream; /* ranks of equal streams read the same */
    int64_t count;
    int64_t rows;
    int64_t lengths[4]; /* of samples i % 4 */
    int64_t doc;        /* tokens of a document; 0: one document */
    int64_t mask_right; /* tokens hidden at the end; -1: no mask */
    enum mistake mistake;
    /* state */
    int64_t epoch, next;
    bool ended;
    int64_t ids[MOST_ROWS * MOST_TOKENS], labels[MOST_ROWS * MOST_TOKENS];
    int64_t positions[MOST_ROWS * MOST_TOKENS];
    int32_t mask[MOST_ROWS * MOST_TOKENS];
    float mrope[3 * MOST_ROWS * MOST_TOKENS];
    double wide[2 * MOST_ROWS * MOST_TOKENS];
    double weight[MOST_ROWS];
    char blob[32];
    struct tri_field fields[12];
};

static inline int64_t id_of(int stream, int64_t epoch, int64_t sample, int64_t row, int64_t token)
{
    return 1 + (((stream * 7 + epoch) * 11 + sample) * MOST_ROWS + row) * MOST_TOKENS + token;
}

static inline enum tri_status rewind_source(void *ctx, int64_t epoch)
{
    struct source *s = ctx;
    s->epoch = epoch;
    s->next = 0;
    s->ended = false;
    return TRI_OK;
}

static inline void add_fields(struct source *s, struct tri_sample *out, int64_t tokens)
{
    const int64_t dim[2] = {s->rows, tokens};
    const int64_t three[3] = {3, s->rows, tokens};
    const int64_t spread[3] = {2, tokens, s->rows};
    const int64_t other[2] = {s->rows, tokens - 1};
    int n = 0;
    if (s->mistake != NO_IDS)
        s->fields[n++] = tri_field_split("input_ids", tri_tensor_make(s->ids, TRI_I64, 2, dim), 1);
    if (s->rank % 2 == 1) /* another order and another set of fields */
        s->fields[n++] = tri_field_blob("name", s->blob, strlen(s->blob) + 1);
    if (s->mistake != NO_POSITIONS)
        s->fields[n++] =
            tri_field_split("position_ids", tri_tensor_make(s->positions, TRI_I64, 2, dim), 1);
    if (s->mistake != NO_LABELS)
        s->fields[n++] = tri_field_split(
            s->mistake == SHIFTED_LABELS ? "shift_labels" : "labels",
            tri_tensor_make(s->labels, TRI_I64, 2, s->mistake == SHORT_LABELS ? other : dim), 1);
    if (s->mask_right >= 0 || s->mistake == FLOAT_MASK || s->mistake == LEFT_PADDING)
        s->fields[n++] = tri_field_split(
            "attention_mask",
            tri_tensor_make(s->mask, s->mistake == FLOAT_MASK ? TRI_F32 : TRI_I32, 2, dim), 1);
    if (s->mistake == SQUARE_MASK)
        s->fields[n++] =
            tri_field_split("attention_mask", tri_tensor_make(s->mask, TRI_I32, 3, three), 2);
    s->fields[n++] = tri_field_whole("weight", tri_tensor_make(s->weight, TRI_F64, 1, dim));
    s->fields[n++] = tri_field_split("mrope", tri_tensor_make(s->mrope, TRI_F32, 3, three),
                                     s->mistake == WRONG_CUT ? 0 : 2);
    /* (B, S, 2) as a transposed (2, S, B). */
    s->fields[n++] = tri_field_split(
        "wide", tri_tensor_swap(tri_tensor_make(s->wide, TRI_F64, 3, spread), 0, 2), 1);
    if (s->mistake == TWICE)
        s->fields[n++] = tri_field_whole("weight", tri_tensor_make(s->weight, TRI_F64, 1, dim));
    *out = (struct tri_sample){s->fields, n};
}

static inline enum tri_status next_sample(void *ctx, struct tri_sample *out, bool *end)
{
    struct source *s = ctx;
    CHECK(!s->ended); /* nobody is asked again */
    *end = s->ended = s->next == s->count;
    if (*end)
        return TRI_OK;
    if (s->mistake == BROKEN && s->next == 1)
        return tri_fail(TRI_IO, "the disk is on fire");
    int64_t tokens = s->lengths[s->next % 4];
    for (int64_t b = 0; b < s->rows; b++) {
        s->weight[b] = (double)id_of(s->stream, s->epoch, s->next, b, 0) / 2;
        for (int64_t t = 0; t < tokens; t++) {
            int64_t i = b * tokens + t;
            s->ids[i] = id_of(s->stream, s->epoch, s->next, b, t);
            s->labels[i] = t % 5 == 3 ? -100 : s->ids[i];
            s->positions[i] = s->doc > 0 ? t % s->doc : t;
            s->mask[i] = t < tokens - s->mask_right;
            if (s->mistake == LEFT_PADDING)
                s->mask[i] = t >= 2;
            for (int64_t k = 0; k < 3; k++)
                s->mrope[(k * s->rows + b) * tokens + t] = (float)(s->ids[i] * 3 + k);
            for (int64_t k = 0; k < 2; k++)
                s->wide[(k * tokens + t) * s->rows + b] = (double)s->ids[i] + 0.25 * (double)k;
        }
    }
    if (s->mistake == LARGE_ID)
        s->ids[0] = (int64_t)1 << 40;
    snprintf(s->blob, sizeof s->blob, "sample %d/%d", s->stream, (int)s->next);
    add_fields(s, out, tokens);
    s->next++;
    return TRI_OK;
}

#endif
