/* The loader adapter on ranks that are threads: every token of every sample arrives once, where the
 * layout has it, with what it carries; ranks agree on ends and errors. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "comm/thread/thread.h"
#include "data/adapter/private.h"
#include "trireme/trireme.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return tri_fail(TRI_INTERNAL, "line %d: %s", __LINE__, #condition);                    \
    } while (0)

/* ---- a source ----------------------------------------------------------------------------------
 */

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

static int64_t id_of(int stream, int64_t epoch, int64_t sample, int64_t row, int64_t token)
{
    return 1 + (((stream * 7 + epoch) * 11 + sample) * MOST_ROWS + row) * MOST_TOKENS + token;
}

static enum tri_status rewind_source(void *ctx, int64_t epoch)
{
    struct source *s = ctx;
    s->epoch = epoch;
    s->next = 0;
    s->ended = false;
    return TRI_OK;
}

static void add_fields(struct source *s, struct tri_sample *out, int64_t tokens)
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

static enum tri_status next_sample(void *ctx, struct tri_sample *out, bool *end)
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

/* ---- what must arrive --------------------------------------------------------------------------
 */

static int64_t label_of(const struct source *from, int64_t epoch, int64_t sample, int64_t row,
                        int64_t token, int64_t tokens)
{
    int64_t next = token + 1;
    if (next == tokens || (from->doc > 0 && next % from->doc == 0) || next % 5 == 3 ||
        (from->mask_right > 0 && next >= tokens - from->mask_right))
        return -100;
    return id_of(from->stream, epoch, sample, row, next);
}

static enum tri_status check_carried(const struct tri_shard *x, const struct source *from,
                                     int ranks, int rank, int64_t epoch)
{
    const struct tri_field *mrope = tri_shard_field(x, "mrope");
    const struct tri_field *wide = tri_shard_field(x, "wide");
    const struct tri_field *weight = tri_shard_field(x, "weight");
    const struct tri_field *name = tri_shard_field(x, "name");
    CHECK(tri_shard_field(x, "attention_mask") == NULL && tri_shard_field(x, "labels") == NULL);
    CHECK((name != NULL) == (from->rank % 2 == 1));
    char blob[32];
    snprintf(blob, sizeof blob, "sample %d/%d", from->stream, (int)x->sample);
    CHECK(name == NULL || strcmp(name->blob, blob) == 0);
    CHECK(weight->tensor.num_dims == 1 && weight->tensor.dim[0] == x->shape.rows);
    CHECK(mrope->tensor.num_dims == 3 && mrope->tensor.dim[0] == 3 &&
          mrope->tensor.dim[2] == x->local && mrope->tensor.dtype == TRI_F32);
    CHECK(wide->tensor.num_dims == 3 && wide->tensor.dim[2] == 2);
    for (int64_t b = 0; b < x->shape.rows; b++) {
        CHECK(((const double *)weight->tensor.data)[b] ==
              (double)id_of(from->stream, epoch, x->sample, b, 0) / 2);
        for (int64_t t = 0; t < x->local; t++) {
            int64_t token = tri_sp_token(&x->shape, ranks, rank, t);
            int64_t id = id_of(from->stream, epoch, x->sample, b, token);
            for (int64_t k = 0; k < 3; k++)
                CHECK(((const float *)mrope->tensor.data)[(k * x->shape.rows + b) * x->local + t] ==
                      (float)(id * 3 + k));
            for (int64_t k = 0; k < 2; k++)
                CHECK(((const double *)wide->tensor.data)[(b * x->local + t) * 2 + k] ==
                      (double)id + 0.25 * (double)k);
        }
    }
    return TRI_OK;
}

static enum tri_status check_shard(const struct tri_shard *x, const struct source *from, int ranks,
                                   int rank, int64_t epoch, int64_t chunk)
{
    int64_t tokens = from->lengths[x->sample % 4];
    int64_t trained = 0;
    CHECK(x->shape.rows == from->rows && x->shape.tokens == tokens && x->shape.chunk == chunk);
    CHECK(x->local == tri_sp_local_tokens(&x->shape, ranks, rank));
    for (int64_t b = 0; b < from->rows; b++)
        for (int64_t t = 0; t < x->local; t++) {
            int64_t token = tri_sp_token(&x->shape, ranks, rank, t);
            int64_t i = b * x->local + t;
            CHECK(x->input_ids[i] == id_of(from->stream, epoch, x->sample, b, token));
            CHECK(x->position_ids[i] == (from->doc > 0 ? token % from->doc : token));
            CHECK(x->shift_labels[i] == label_of(from, epoch, x->sample, b, token, tokens));
        }
    int64_t docs = 0;
    for (int64_t b = 0; b < from->rows; b++)
        for (int64_t t = 0; t < tokens; t++) {
            trained += label_of(from, epoch, x->sample, b, t, tokens) >= 0;
            if (t == 0 || (from->doc > 0 && t % from->doc == 0)) {
                CHECK(docs < x->num_docs && x->doc_begin[docs] == b * tokens + t);
                CHECK(x->doc_position[docs] == 0);
                docs++;
            }
        }
    CHECK(docs == x->num_docs && x->doc_begin[docs] == from->rows * tokens);
    CHECK(x->trained == trained);
    return check_carried(x, from, ranks, rank, epoch);
}

/* ---- whole epochs ------------------------------------------------------------------------------
 */

struct job {
    struct source source; /* of all ranks but for what makes them differ */
    int64_t chunk;
    int64_t short_rank, short_count; /* this rank has fewer; -1: none */
};

static struct source source_of(const struct job *job, int rank)
{
    struct source s = job->source;
    s.rank = s.stream = rank;
    if (rank == job->short_rank)
        s.count = job->short_count;
    /* Each rank its own lengths. */
    for (int i = 0; i < 4; i++)
        s.lengths[i] += rank < 3 ? rank : 0;
    return s;
}

static enum tri_status epochs(struct tri_comm *world, void *ctx)
{
    const struct job *job = ctx;
    struct tri_mesh mesh;
    struct tri_adapter *adapter;
    struct tri_shard shard;
    bool end;
    TRI_TRY(tri_mesh_open(world, 0, &mesh));
    int ranks = tri_comm_size(world);
    int rank = tri_comm_rank(world);
    struct source mine = source_of(job, rank);
    struct tri_adapter_config config = {.mesh = &mesh,
                                        .next = next_sample,
                                        .rewind = rewind_source,
                                        .ctx = &mine,
                                        .samples = mine.count,
                                        .chunk = job->chunk};
    TRI_TRY(tri_adapter_open(&config, &adapter));
    CHECK(tri_adapter_next(adapter, &shard, &end) == TRI_INVALID); /* no epoch yet */
    int64_t length = 0;
    for (int r = 0; r < ranks; r++)
        length += source_of(job, r).count;
    CHECK(tri_adapter_length(adapter) == length);
    /* Epoch 5, left in the middle; 5 again, whole; 6, whole. */
    for (int run = 0; run < 3; run++) {
        int64_t epoch = run < 2 ? 5 : 6;
        int64_t got = 0;
        int64_t seen[8] = {0}; /* samples of each owner */
        int owner = 0;
        TRI_TRY(tri_adapter_epoch(adapter, epoch));
        while (true) {
            TRI_TRY(tri_adapter_next(adapter, &shard, &end));
            if (end)
                break;
            /* In rounds, by rank, without those that have run out. */
            while (seen[owner] == source_of(job, owner).count)
                owner = (owner + 1) % ranks;
            struct source from = source_of(job, owner);
            CHECK(shard.owner == owner && shard.sample == seen[owner]);
            TRI_TRY(check_shard(&shard, &from, ranks, rank, epoch, job->chunk));
            seen[owner]++;
            owner = (owner + 1) % ranks;
            if (++got == 3 && run == 0)
                break;
        }
        CHECK(got == (run == 0 && length > 3 ? 3 : length));
        if (run > 0) { /* the end stays the end */
            TRI_TRY(tri_adapter_next(adapter, &shard, &end));
            CHECK(end);
        }
    }
    tri_adapter_close(adapter);
    tri_mesh_close(&mesh);
    return TRI_OK;
}

static void every_token_arrives_once(void **state)
{
    (void)state;
    static const struct job jobs[] = {
        {.source = {.count = 4, .rows = 1, .lengths = {8, 8, 8, 8}, .mask_right = -1},
         .short_rank = -1},
        {.source = {.count = 3, .rows = 2, .lengths = {5, 9, 1, 20}, .doc = 4, .mask_right = -1},
         .short_rank = -1},
        {.source = {.count = 4, .rows = 3, .lengths = {13, 7, 30, 5}, .doc = 6, .mask_right = 2},
         .chunk = 5,
         .short_rank = 1,
         .short_count = 3},
        {.source = {.count = 2, .rows = 1, .lengths = {3, 1, 2, 2}, .mask_right = 0},
         .short_rank = 0,
         .short_count = 0},
    };
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        for (int ranks = 2; ranks <= 5; ranks++)
            if (tri_comm_threads_run(ranks, 30, epochs, (void *)(uintptr_t)&jobs[i]) != TRI_OK)
                fail_msg("job %d on %d ranks: %s", (int)i, ranks, tri_error_text());
}

/* The example of the paper's tutorial: two ranks, the second half of the ids. */
static enum tri_status next_golden(void *ctx, struct tri_sample *out, bool *end)
{
    static const int32_t ids[2][6] = {{1, 10, 10, 10, 2, 2}, {1, 20, 20, 20, 2, 2}};
    static const int64_t positions[6] = {0, 1, 2, 3, 4, 5};
    static const int64_t dim[2] = {1, 6};
    static _Thread_local struct tri_field fields[3];
    int *next = ctx;
    *end = *next >= 2;
    struct tri_tensor t = tri_tensor_make((void *)(uintptr_t)ids[*next % 2], TRI_I32, 2, dim);
    fields[0] = tri_field_split("input_ids", t, 1);
    fields[1] = tri_field_split("labels", t, 1);
    fields[2] = tri_field_split(
        "position_ids", tri_tensor_make((void *)(uintptr_t)positions, TRI_I64, 1, dim + 1), 0);
    *out = (struct tri_sample){fields, 3};
    *next += 2;
    return TRI_OK;
}

static enum tri_status rewind_golden(void *ctx, int64_t epoch)
{
    (void)epoch;
    *(int *)ctx %= 2;
    return TRI_OK;
}

static enum tri_status golden(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    static const int32_t ids[2][2][3] = {{{1, 10, 10}, {1, 20, 20}}, {{10, 2, 2}, {20, 2, 2}}};
    static const int32_t shift[2][2][3] = {{{10, 10, 10}, {20, 20, 20}},
                                           {{2, 2, -100}, {2, 2, -100}}};
    struct tri_mesh mesh;
    struct tri_adapter *adapter;
    struct tri_shard shard;
    bool end;
    int rank = tri_comm_rank(world);
    int next = rank;
    TRI_TRY(tri_mesh_open(world, 0, &mesh));
    struct tri_adapter_config config = {
        .mesh = &mesh, .next = next_golden, .rewind = rewind_golden, .ctx = &next, .samples = -1};
    TRI_TRY(tri_adapter_open(&config, &adapter));
    CHECK(tri_adapter_length(adapter) == -1);
    for (int epoch = 0; epoch < 2; epoch++) {
        TRI_TRY(tri_adapter_epoch(adapter, epoch));
        for (int owner = 0; owner < 2; owner++) {
            TRI_TRY(tri_adapter_next(adapter, &shard, &end));
            CHECK(!end && shard.owner == owner && shard.local == 3 && shard.trained == 5);
            CHECK(memcmp(shard.input_ids, ids[rank][owner], sizeof ids[0][0]) == 0);
            CHECK(memcmp(shard.shift_labels, shift[rank][owner], sizeof shift[0][0]) == 0);
            CHECK(shard.position_ids[0] == 3 * rank && shard.local_trained == 3 - rank);
        }
        TRI_TRY(tri_adapter_next(adapter, &shard, &end));
        CHECK(end);
    }
    tri_adapter_close(adapter);
    tri_mesh_close(&mesh);
    return TRI_OK;
}

static void the_example_of_the_paper(void **state)
{
    (void)state;
    if (tri_comm_threads_run(2, 30, golden, NULL) != TRI_OK)
        fail_msg("%s", tri_error_text());
}

/* ---- refusals ----------------------------------------------------------------------------------
 */

struct refusal {
    enum mistake mistake; /* of rank 1 */
    enum tri_status status;
    const char *text;
    int64_t fixed;
};

/* Every rank must come back with the error by itself. */
static enum tri_status refused(struct tri_comm *world, void *ctx)
{
    const struct refusal *refusal = ctx;
    struct tri_mesh mesh;
    struct tri_adapter *adapter;
    struct tri_shard shard;
    bool end = false;
    TRI_TRY(tri_mesh_open(world, 0, &mesh));
    int rank = tri_comm_rank(world);
    struct source mine = {.rank = rank,
                          .stream = rank,
                          .count = 4,
                          .rows = 1,
                          .lengths = {8, 8, 8, 8},
                          .mask_right = -1,
                          .mistake = rank == 1 ? refusal->mistake : NONE};
    if (refusal->fixed > 0 && rank == 1)
        mine.lengths[0] = 9;
    struct tri_adapter_config config = {.mesh = &mesh,
                                        .next = next_sample,
                                        .rewind = rewind_source,
                                        .ctx = &mine,
                                        .samples = 4,
                                        .fixed_tokens = refusal->fixed};
    TRI_TRY(tri_adapter_open(&config, &adapter));
    enum tri_status st = tri_adapter_epoch(adapter, 0);
    while (st == TRI_OK && !end)
        st = tri_adapter_next(adapter, &shard, &end);
    CHECK(st == refusal->status);
    if (strstr(tri_error_text(), refusal->text) == NULL ||
        strstr(tri_error_text(), "rank 1") == NULL)
        return tri_fail(TRI_INTERNAL, "rank %d heard: %.200s", rank, tri_error_text());
    tri_adapter_close(adapter);
    tri_mesh_close(&mesh);
    return TRI_OK;
}

static void what_one_rank_got_wrong_all_ranks_hear(void **state)
{
    (void)state;
    static const struct refusal refusals[] = {
        {NO_IDS, TRI_INVALID, "rank 1: sample 0: there are no input_ids", 0},
        {NO_LABELS, TRI_INVALID, "there are no labels: give input_ids once more", 0},
        {NO_POSITIONS, TRI_INVALID, "tri_sp_positions makes them", 0},
        {SHORT_LABELS, TRI_INVALID, "labels are 1 x 7, input_ids 1 x 8", 0},
        {LARGE_ID, TRI_INVALID, "input_ids: 1099511627776 at row 0, token 0", 0},
        {FLOAT_MASK, TRI_INVALID, "attention_mask are float32", 0},
        {SQUARE_MASK, TRI_UNSUPPORTED, "attention_mask have 3 dimensions", 0},
        {LEFT_PADDING, TRI_INVALID, "let position_ids restart at that token", 0},
        {SHIFTED_LABELS, TRI_INVALID, "give labels, which are not shifted", 0},
        {WRONG_CUT, TRI_INVALID, "dimension 0 of mrope has 3 elements, the sample 8", 0},
        {TWICE, TRI_INVALID, "two fields have the name weight", 0},
        {BROKEN, TRI_IO, "the disk is on fire", 0},
        {NONE, TRI_INVALID, "it has 9 tokens, but fixed_tokens is 8", 8},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (tri_comm_threads_run(3, 30, refused, (void *)(uintptr_t)&refusals[i]) != TRI_OK)
            fail_msg("refusal %d: %s", (int)i, tri_error_text());
}

/* Streams of each of four ranks, two groups of two. */
struct streams {
    int stream[4];
    int compare;
    const char *text; /* NULL: all is well */
};

static enum tri_status read_streams(struct tri_comm *world, void *ctx)
{
    const struct streams *streams = ctx;
    struct tri_mesh mesh;
    struct tri_adapter *adapter;
    TRI_TRY(tri_mesh_open(world, 2, &mesh));
    int rank = tri_comm_rank(world);
    struct source mine = {.rank = rank,
                          .stream = streams->stream[rank],
                          .count = 3,
                          .rows = 1,
                          .lengths = {8, 8, 8, 8},
                          .mask_right = -1};
    struct tri_adapter_config config = {.mesh = &mesh,
                                        .next = next_sample,
                                        .rewind = rewind_source,
                                        .ctx = &mine,
                                        .samples = 3,
                                        .compare_first = streams->compare};
    TRI_TRY(tri_adapter_open(&config, &adapter));
    enum tri_status st = tri_adapter_epoch(adapter, 0);
    CHECK(st == (streams->text != NULL ? TRI_INVALID : TRI_OK));
    if (streams->text != NULL && strstr(tri_error_text(), streams->text) == NULL)
        return tri_fail(TRI_INTERNAL, "rank %d heard: %.200s", rank, tri_error_text());
    tri_adapter_close(adapter);
    tri_mesh_close(&mesh);
    return TRI_OK;
}

static void equal_streams_are_found_at_the_start(void **state)
{
    (void)state;
    static const struct streams all[] = {
        {{0, 1, 2, 3}, 0, NULL},
        {{0, 0, 1, 2}, 0, "ranks 0 and 1 read the same samples (their first 2 are equal)"},
        {{0, 1, 2, 1}, 0, "ranks 1 and 3 read the same samples"}, /* two replicas */
        {{5, 5, 5, 5}, 3, "ranks 0 and 1 read the same samples (their first 3 are equal)"},
        {{5, 5, 5, 5}, -1, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (tri_comm_threads_run(4, 30, read_streams, (void *)(uintptr_t)&all[i]) != TRI_OK)
            fail_msg("streams %d: %s", (int)i, tri_error_text());
}

/* ---- transport ---------------------------------------------------------------------------------
 */

/* Bytes that depend on (sender, receiver, place), of lengths from 0 to more than one piece. */
static int64_t length_of(int from, int to, int ranks)
{
    return from == to ? 0 : (int64_t)(from * ranks + to) * 21003;
}

static enum tri_status both_ways(struct tri_comm *world, void *ctx)
{
    (void)ctx;
    int ranks = tri_comm_size(world);
    int rank = tri_comm_rank(world);
    int64_t send_bytes[8], recv_bytes[8], sent = 0, received = 0;
    for (int r = 0; r < ranks; r++)
        sent += send_bytes[r] = length_of(rank, r, ranks);
    TRI_TRY(tri_scatter_sizes(world, send_bytes, recv_bytes));
    for (int r = 0; r < ranks; r++) {
        CHECK(recv_bytes[r] == length_of(r, rank, ranks));
        received += recv_bytes[r];
    }
    unsigned char *send = malloc((size_t)sent + 1);
    unsigned char *recv = malloc((size_t)received + 1);
    unsigned char *to = send;
    for (int r = 0; r < ranks; r++)
        for (int64_t i = 0; i < send_bytes[r]; i++)
            *to++ = (unsigned char)(i * 7 + rank * 31 + r);
    for (int sums = 0; sums < 2; sums++) {
        memset(recv, 0, (size_t)received + 1);
        TRI_TRY(tri_scatter(world, sums == 1, send, send_bytes, recv, recv_bytes));
        const unsigned char *from = recv;
        for (int r = 0; r < ranks; r++)
            for (int64_t i = 0; i < recv_bytes[r]; i++)
                CHECK(*from++ == (unsigned char)(i * 7 + r * 31 + rank));
    }
    free(send);
    free(recv);
    return TRI_OK;
}

static void bytes_travel_by_exchange_and_by_sums(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 4; ranks++)
        if (tri_comm_threads_run(ranks, 30, both_ways, NULL) != TRI_OK)
            fail_msg("%d ranks: %s", ranks, tri_error_text());
}

/* What a rank sends does not grow with the number of ranks but for the heads of messages. */
static void messages_take_memory_of_one_sample(void **state)
{
    (void)state;
    static int64_t ids[4096];
    const int64_t dim[1] = {4096};
    struct tri_tensor t = tri_tensor_make(ids, TRI_I64, 1, dim);
    const struct tri_field fields[] = {tri_field_split("input_ids", t, 0),
                                       tri_field_split("labels", t, 0),
                                       tri_field_split("position_ids", t, 0)};
    struct tri_prepared p = {.rows = 0};
    for (int i = 0; i < 4096; i++)
        ids[i] = i;
    assert_int_equal(tri_prepare(&(struct tri_sample){fields, 3}, 0, &p), TRI_OK);
    for (int ranks = 1; ranks <= 16; ranks *= 4) {
        struct tri_envelope e = {.layout = {4096, 0, ranks}};
        size_t bytes = 0;
        for (int r = 0; r < ranks; r++)
            bytes += tri_message_bytes(&p, &e, r);
        assert_in_range(bytes, 4096 * 16, 4096 * 16 + (size_t)ranks * 800);
    }
    tri_prepared_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_arrives_once),
        cmocka_unit_test(the_example_of_the_paper),
        cmocka_unit_test(what_one_rank_got_wrong_all_ranks_hear),
        cmocka_unit_test(equal_streams_are_found_at_the_start),
        cmocka_unit_test(bytes_travel_by_exchange_and_by_sums),
        cmocka_unit_test(messages_take_memory_of_one_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
