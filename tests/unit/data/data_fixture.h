/* A dataset over files in the scratch folder, read with the byte tokenizer. */
#ifndef TESTS_UNIT_DATA_FIXTURE_H
#define TESTS_UNIT_DATA_FIXTURE_H

#include "unit/scratch.h"

#include "base/log.h"
#include "data/dataset.h"
#include "data/loader.h"

enum { FIXTURE_VOCAB = 300 };

static struct tri_tokenizer *tokenizer;
static struct tri_data_options options;

static inline int fixture_open(void **state)
{
    const struct tri_token_ids model = {.vocab = FIXTURE_VOCAB, .bos = 256, .eos = 257, .pad = -1};
    tri_log_set_level(TRI_LOG_ERROR);
    options = (struct tri_data_options){.shuffle = true, .seed = -1};
    if (tri_byte_tokenizer_open(&model, &tokenizer) != TRI_OK)
        return -1;
    return scratch_open(state);
}

static inline int fixture_close(void **state)
{
    tri_tokenizer_close(tokenizer);
    return scratch_close(state);
}

/* Open the file or folder `name` of the scratch folder; seed 42. */
static inline enum tri_status open_data(const char *name, struct tri_dataset **out)
{
    char source[4400];
    snprintf(source, sizeof source, "%s/%s", scratch, name);
    const struct tri_data_target target = {
        .tokenizer = tokenizer, .vocab = FIXTURE_VOCAB, .seed = 42};
    return tri_dataset_open(&options, (char *[]){source}, 1, &target, out);
}

static inline struct tri_dataset *must_open_data(const char *name)
{
    struct tri_dataset *dataset;
    if (open_data(name, &dataset) != TRI_OK)
        fail_msg("%s: %s", name, tri_error_text());
    return dataset;
}

static inline void assert_refused(const char *name, enum tri_status status, const char *message)
{
    struct tri_dataset *dataset;
    const enum tri_status st = open_data(name, &dataset);
    if (st != status)
        fail_msg("status %d (%s) instead of %d", st, st ? tri_error_text() : "", status);
    assert_error_has(message);
}

/* `count` tokenized samples, of 2 to `longest` tokens; sample i consists of the id i. */
static inline void put_samples(const char *name, int count, int longest)
{
    FILE *f = fopen(in_scratch(name), "w");
    assert_non_null(f);
    for (int i = 0; i < count; i++) {
        const int tokens = 2 + i * 7 % (longest - 1);
        fputs("{\"input_ids\":[", f);
        for (int t = 0; t < tokens; t++)
            fprintf(f, "%s%d", t ? "," : "", i);
        fputs("]}\n", f);
    }
    assert_int_equal(fclose(f), 0);
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)

#endif
