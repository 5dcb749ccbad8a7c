/* Packing against the plain definition of best-fit decreasing, and what every packing must keep. */
#include "unit/data/data_fixture.h"

#include "base/rng.h"
#include "data/order.h"
#include "data/pack.h"

enum { MOST = 700 };

static int64_t lengths[MOST];

/* From 1 to `capacity`, many short and few long; every third time only a few different ones. */
static void draw(uint64_t seed, int64_t count, int64_t capacity)
{
    for (int64_t i = 0; i < count; i++) {
        double u = tri_rng_uniform(seed, 1, (uint64_t)i);
        if (seed % 3 == 0)
            u = (double)(int64_t)(u * 7) / 7;
        lengths[i] = 1 + (int64_t)((double)(capacity - 1) * u * u * u);
    }
}

/* Each sample once, each sequence within its room, in the order of first samples. */
static void check(const struct tri_packing *p, int64_t count, int64_t capacity)
{
    static bool seen[MOST];
    memset(seen, 0, sizeof seen);
    assert_int_equal(p->begin[0], 0);
    assert_int_equal(p->begin[p->num_bins], count);
    for (int64_t b = 0; b < p->num_bins; b++) {
        int64_t tokens = 0;
        assert_true(p->begin[b] < p->begin[b + 1]);
        for (int64_t i = p->begin[b]; i < p->begin[b + 1]; i++) {
            const int64_t item = p->item[i];
            assert_in_range(item, 0, count - 1);
            assert_false(seen[item]);
            assert_true(i == p->begin[b] || item > p->item[i - 1]);
            seen[item] = true;
            tokens += lengths[item];
        }
        assert_true(tokens <= capacity);
        assert_true(b == 0 || p->item[p->begin[b]] > p->item[p->begin[b - 1]]);
    }
}

/* The room that is left in each sequence, ascending. */
static int64_t rooms_of(const struct tri_packing *p, int64_t capacity, int64_t *room)
{
    for (int64_t b = 0; b < p->num_bins; b++) {
        room[b] = capacity;
        for (int64_t i = p->begin[b]; i < p->begin[b + 1]; i++)
            room[b] -= lengths[p->item[i]];
    }
    return p->num_bins;
}

/* The definition, by looking at everything. */
static int64_t best_fit_decreasing(int64_t count, int64_t capacity, int64_t *room)
{
    static bool packed[MOST];
    int64_t bins = 0;
    memset(packed, 0, sizeof packed);
    for (int64_t n = 0; n < count; n++) {
        int64_t longest = -1, best = -1;
        for (int64_t i = 0; i < count; i++)
            if (!packed[i] && (longest < 0 || lengths[i] > lengths[longest]))
                longest = i;
        packed[longest] = true;
        for (int64_t b = 0; b < bins; b++)
            if (room[b] >= lengths[longest] && (best < 0 || room[b] < room[best]))
                best = b;
        if (best < 0) {
            best = bins++;
            room[best] = capacity;
        }
        room[best] -= lengths[longest];
    }
    return bins;
}

static int ascending(const void *a, const void *b)
{
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    return (i > j) - (i < j);
}

static void best_fit_is_best_fit_decreasing(void **state)
{
    (void)state;
    static const int64_t capacities[] = {1, 2, 63, 64, 65, 127, 4095, 4096, 4097, 300000};
    static int64_t room[MOST], expected[MOST];
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            struct tri_packing p;
            const int64_t count = 1 + (int64_t)(seed * 61) % MOST;
            draw(seed, count, capacities[c]);
            assert_int_equal(tri_packing_open(MOST, capacities[c], &p), TRI_OK);
            for (int again = 0; again < 2; again++) { /* memory is used again */
                tri_pack_best_fit(&p, lengths, count);
                check(&p, count, capacities[c]);
                const int64_t bins = best_fit_decreasing(count, capacities[c], expected);
                assert_int_equal(rooms_of(&p, capacities[c], room), bins);
                qsort(room, (size_t)bins, sizeof *room, ascending);
                qsort(expected, (size_t)bins, sizeof *expected, ascending);
                assert_memory_equal(room, expected, (size_t)bins * sizeof *room);
            }
            tri_pack_in_order(&p, lengths, count);
            check(&p, count, capacities[c]);
            tri_packing_close(&p);
        }
}

static void refuses_sequences_beyond_its_set(void **state)
{
    (void)state;
    struct tri_packing p;
    assert_int_equal(tri_packing_open(10, INT64_C(1) << 30, &p), TRI_UNSUPPORTED);
    assert_error_has("lower data.max_length");
}

/* Samples whose lengths are those that long-context data has: a heavy tail. */
static void put_heavy_tail(void)
{
    FILE *f = fopen(in_scratch("a.jsonl"), "w");
    assert_non_null(f);
    for (int i = 0; i < MOST; i++) {
        const double u = tri_rng_uniform(9, 9, (uint64_t)i);
        int tokens = (int)(16 / (u + 0.02));
        fputs("{\"input_ids\":[", f);
        for (int t = 0; t < tokens; t++)
            fprintf(f, "%s%d", t ? "," : "", i % 300);
        fputs("]}\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

static void best_fit_leaves_little_room(void **state)
{
    (void)state;
    put_heavy_tail();
    options.pack_samples = true;
    options.max_length = 1024;
    double full[2];
    uint64_t identity[2];
    for (int strategy = 0; strategy < 2; strategy++) {
        options.packing_strategy = strategy;
        struct tri_dataset *dataset = must_open_data("a.jsonl");
        full[strategy] = tri_dataset_stats(dataset)->packing;
        identity[strategy] = tri_dataset_identity(dataset);
        tri_dataset_close(dataset);
    }
    assert_true(full[TRI_PACKING_BEST_FIT] > 0.99);
    assert_true(full[TRI_PACKING_IN_ORDER] < 0.9);
    assert_true(identity[0] != identity[1]);
}

/* Each epoch has every sample once, in other company; nothing depends on what was read before. */
static void epochs_are_packed_alike_and_differently(void **state)
{
    (void)state;
    struct tri_batch batch;
    int64_t first[2] = {0, 0};
    put_heavy_tail();
    options.pack_samples = true;
    options.max_length = 1024;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    struct tri_dataset *other = must_open_data("a.jsonl");
    assert_int_equal(tri_batch_open(1024, &batch), TRI_OK);
    for (int64_t epoch = 1; epoch >= 0; epoch--) {
        uint64_t sum = 0;
        int64_t tokens = 0, docs = 0;
        for (int64_t i = 0; i < tri_dataset_sequences(dataset, epoch); i++) {
            tri_batch_clear(&batch);
            assert_int_equal(tri_dataset_read(dataset, epoch, i, &batch), TRI_OK);
            const uint64_t identity = batch.identity;
            if (i == 0)
                first[epoch] = (int64_t)identity;
            sum += identity;
            tokens += batch.num_tokens;
            docs += batch.num_docs;
            for (int64_t d = 0; d < batch.num_docs; d++) /* isolated: nothing crosses a border */
                assert_int_equal(batch.labels[batch.doc_begin[d + 1] - 1], TRI_IGNORE_LABEL);
            if (i % 7 == 0) { /* the same from a dataset that was asked for another epoch before */
                tri_batch_clear(&batch);
                assert_int_equal(tri_dataset_read(other, epoch ^ 1, 0, &batch), TRI_OK);
                tri_batch_clear(&batch);
                assert_int_equal(tri_dataset_read(other, epoch, i, &batch), TRI_OK);
                assert_true(batch.identity == identity);
            }
        }
        assert_int_equal(tokens, tri_dataset_stats(dataset)->tokens);
        assert_int_equal(docs, MOST);
        assert_true(sum != 0);
    }
    assert_int_equal(tri_dataset_sequences(dataset, 0), tri_dataset_sequences(dataset, 5));
    assert_true(first[0] != first[1]);
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
    tri_dataset_close(other);
}

static void grouped_windows_are_sorted(void **state)
{
    (void)state;
    struct tri_batch batch;
    put_heavy_tail();
    options.group_by_length = true;
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(tri_batch_open(tri_dataset_max_sequence(dataset), &batch), TRI_OK);
    assert_int_equal(tri_dataset_sequences(dataset, 0), MOST);
    int64_t tokens = 0, before = 0, later = 0;
    for (int64_t i = 0; i < MOST; i++) {
        tri_batch_clear(&batch);
        assert_int_equal(tri_dataset_read(dataset, 0, i, &batch), TRI_OK);
        if (i % TRI_GROUP_WINDOW > 0)
            assert_true(batch.num_tokens <= before);
        before = batch.num_tokens;
        later += i >= TRI_GROUP_WINDOW ? before : 0;
        tokens += before;
    }
    assert_int_equal(tokens, tri_dataset_stats(dataset)->tokens);
    assert_true(later > tokens / 10); /* windows are alike: shuffled before they are sorted */
    tri_batch_close(&batch);
    tri_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_fit_is_best_fit_decreasing),
        cmocka_unit_test(refuses_sequences_beyond_its_set),
        FIXTURE_TEST(best_fit_leaves_little_room),
        FIXTURE_TEST(epochs_are_packed_alike_and_differently),
        FIXTURE_TEST(grouped_windows_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
