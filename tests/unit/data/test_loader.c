/* Optimizer steps: nothing lost, nothing twice, and resuming is as if nothing had happened. */
#include "unit/data/data_fixture.h"

enum { NUM_SAMPLES = 17, LONGEST = 12, NUM_STEPS = 24 };

/* What a step consists of, in one number. */
static const struct tri_replica one_replica = {0, 1};

static uint64_t digest(const struct tri_step_data *step)
{
    uint64_t hash = step->identity;
    for (int64_t i = 0; i < step->num_batches; i++)
        for (int64_t t = 0; t < step->batches[i].num_tokens; t++)
            hash = hash * 31 + (uint64_t)(step->batches[i].ids[t] + 7 * step->batches[i].labels[t]);
    return hash;
}

static void test_no_sequence_is_lost_or_read_twice(void **state)
{
    (void)state;
    struct tri_loader *loader;
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(tri_loader_open(dataset, 2, 3, one_replica, &loader), TRI_OK);
    int times[NUM_SAMPLES] = {0};
    for (int n = 0; n < NUM_SAMPLES; n++) { /* 17 steps of 6 sequences: exactly 6 epochs */
        struct tri_step_data step;
        assert_int_equal(tri_loader_next(loader, &step), TRI_OK);
        assert_int_equal(step.num_batches, 3);
        int64_t tokens = 0, trained = 0, docs = 0;
        for (int64_t i = 0; i < 3; i++) {
            const struct tri_batch *batch = &step.batches[i];
            assert_int_equal(batch->num_docs, 2);
            for (int64_t d = 0; d < 2; d++)
                times[batch->ids[batch->doc_begin[d]]]++;
            tokens += batch->num_tokens;
            trained += batch->num_trained;
            docs += batch->num_docs;
        }
        assert_int_equal(step.num_tokens, tokens);
        assert_int_equal(step.num_trained, trained);
        assert_int_equal(step.num_docs, docs);
        /* Every epoch is complete before the next one begins. */
        const int64_t epoch = (n + 1) * 6 / NUM_SAMPLES;
        for (int i = 0; i < NUM_SAMPLES; i++)
            assert_in_range(times[i], epoch, epoch + 1);
        assert_int_equal(tri_loader_position(loader).epoch, epoch);
        assert_int_equal(tri_loader_position(loader).sequence, (n + 1) * 6 % NUM_SAMPLES);
        assert_true(tri_loader_epochs(loader) ==
                    (n + 1) * 6 / NUM_SAMPLES + (n + 1) * 6 % NUM_SAMPLES / (double)NUM_SAMPLES);
    }
    for (int i = 0; i < NUM_SAMPLES; i++)
        assert_int_equal(times[i], 6);
    tri_loader_close(loader);
    tri_dataset_close(dataset);
}

static void test_resuming_equals_going_on(void **state)
{
    (void)state;
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    for (int pack = 0; pack < 3; pack++) {
        struct tri_loader *loader;
        struct tri_step_data step;
        uint64_t want[NUM_STEPS];
        struct tri_data_position position[NUM_STEPS];
        options.pack_samples = pack > 0;
        options.packing_strategy = pack == 2 ? TRI_PACKING_IN_ORDER : TRI_PACKING_BEST_FIT;
        options.max_length = 30;
        struct tri_dataset *dataset = must_open_data("a.jsonl");
        assert_int_equal(tri_loader_open(dataset, 1, 3, one_replica, &loader), TRI_OK);
        for (int n = 0; n < NUM_STEPS; n++) {
            position[n] = tri_loader_position(loader);
            assert_int_equal(tri_loader_next(loader, &step), TRI_OK);
            want[n] = digest(&step);
        }
        assert_true(position[NUM_STEPS - 1].epoch >= 3);
        tri_loader_close(loader);
        tri_dataset_close(dataset);

        for (int stop = 0; stop < NUM_STEPS; stop += 5) { /* another process, some steps in */
            dataset = must_open_data("a.jsonl");
            assert_int_equal(tri_loader_open(dataset, 1, 3, one_replica, &loader), TRI_OK);
            assert_int_equal(tri_loader_seek(loader, position[stop]), TRI_OK);
            for (int n = stop; n < NUM_STEPS; n++) {
                assert_int_equal(tri_loader_next(loader, &step), TRI_OK);
                assert_true(digest(&step) == want[n]);
            }
            tri_loader_close(loader);
            tri_dataset_close(dataset);
        }
    }
}

static void test_steps_of_a_run(void **state)
{
    (void)state;
    struct tri_loader *loader;
    int64_t steps;
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(tri_loader_open(dataset, 2, 3, one_replica, &loader), TRI_OK);
    const struct {
        double epochs;
        int64_t steps;
    } cases[] = {
        {0, 0},  {0.01, 1}, {0.5, 2},
        {1, 3},  {2, 6},    {3, 9},
        {6, 17}, {1.5, 5},  {6e12, 17 * INT64_C(1000000000000)}}; /* not counted one by one */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tri_loader_steps(loader, cases[i].epochs, &steps), TRI_OK);
        assert_int_equal(steps, cases[i].steps);
    }
    assert_int_equal(tri_loader_steps(loader, -1, &steps), TRI_INVALID);
    assert_int_equal(tri_loader_steps(loader, 0.0 / 0.0, &steps), TRI_INVALID);
    assert_int_equal(tri_loader_steps(loader, 1e300, &steps), TRI_INVALID);
    tri_loader_close(loader);
    tri_dataset_close(dataset);

    /* With packing the sequences of each epoch are counted one by one. */
    options.pack_samples = true;
    options.max_length = 30;
    dataset = must_open_data("a.jsonl");
    assert_int_equal(tri_loader_open(dataset, 1, 1, one_replica, &loader), TRI_OK);
    int64_t sequences = 0;
    for (int64_t epoch = 0; epoch < 20; epoch++)
        sequences += tri_dataset_sequences(dataset, epoch);
    assert_int_equal(tri_loader_steps(loader, 20, &steps), TRI_OK);
    assert_int_equal(steps, sequences);
    assert_int_equal(tri_loader_steps(loader, 1e9, &steps), TRI_INVALID);
    assert_error_has("train_iters");
    tri_loader_close(loader);
    tri_dataset_close(dataset);
}

static void test_bad_positions_and_sizes(void **state)
{
    (void)state;
    struct tri_loader *loader;
    put_samples("a.jsonl", NUM_SAMPLES, LONGEST);
    struct tri_dataset *dataset = must_open_data("a.jsonl");
    assert_int_equal(tri_loader_open(dataset, 0, 1, one_replica, &loader), TRI_INVALID);
    assert_int_equal(tri_loader_open(dataset, 1, 0, one_replica, &loader), TRI_INVALID);
    assert_int_equal(tri_loader_open(dataset, INT64_MAX / 2, 1, one_replica, &loader), TRI_INVALID);
    assert_error_has("too large");
    assert_int_equal(tri_loader_open(dataset, 1, 1, one_replica, &loader), TRI_OK);
    const struct tri_data_position bad[] = {{-1, 0}, {0, -1}, {0, NUM_SAMPLES}, {5, INT64_MAX}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tri_loader_seek(loader, bad[i]), TRI_INVALID);
        assert_error_has("is not in this data");
        assert_int_equal(tri_loader_position(loader).sequence, 0);
    }
    tri_loader_close(loader);
    tri_loader_close(NULL);
    tri_dataset_close(dataset);
    tri_dataset_close(NULL);
}

static void test_a_failed_step_can_be_tried_again(void **state)
{
    (void)state;
    struct tri_loader *loader;
    struct tri_step_data step;
    options.shuffle = false;
    assert_int_equal(tri_make_folder(in_scratch("d")), TRI_OK);
    put_text(in_scratch("d/a.txt"), "aaa");
    put_text(in_scratch("d/b.txt"), "bbb");
    struct tri_dataset *dataset = must_open_data("d");
    assert_int_equal(tri_loader_open(dataset, 1, 2, one_replica, &loader), TRI_OK);
    assert_int_equal(rename(in_scratch("d/b.txt"), in_scratch("d/c.txt")), 0);
    assert_int_equal(tri_loader_next(loader, &step), TRI_IO);
    assert_int_equal(tri_loader_position(loader).sequence, 0);
    assert_int_equal(rename(in_scratch("d/c.txt"), in_scratch("d/b.txt")), 0);
    assert_int_equal(tri_loader_next(loader, &step), TRI_OK);
    assert_int_equal(step.batches[0].ids[0], 'a');
    assert_int_equal(step.batches[1].ids[0], 'b');
    tri_loader_close(loader);
    tri_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(test_no_sequence_is_lost_or_read_twice),
        FIXTURE_TEST(test_resuming_equals_going_on),
        FIXTURE_TEST(test_steps_of_a_run),
        FIXTURE_TEST(test_bad_positions_and_sizes),
        FIXTURE_TEST(test_a_failed_step_can_be_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
