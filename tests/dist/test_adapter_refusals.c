/* What one rank of the loader adapter gets wrong, all ranks hear. */
#include "dist/adapter_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_rank_got_wrong_all_ranks_hear),
        cmocka_unit_test(equal_streams_are_found_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
