/* The loader adapter on ranks that are threads: every token of every sample arrives once, where the
 * layout has it, with what it carries; ranks agree on ends. */
#include "dist/adapter_fixture.h"

#include <inttypes.h>

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
    run_ranks(2, golden, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_token_arrives_once),
        cmocka_unit_test(the_example_of_the_paper),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
