/* A rehearsal asks for the memory that the step will ask for, and touches it. */
#include "unit/verify/trace.h"

static struct finished f;

/* Samples that fill their sequences: documents of exactly `tokens` tokens. */
static void put_full_samples(const char *name, int count, int tokens)
{
    FILE *file = fopen(in_scratch(name), "w");
    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        fputs("{\"input_ids\": [", file);
        for (int t = 0; t < tokens; t++)
            fprintf(file, "%s%d", t > 0 ? "," : "", (i * 31 + t * 7) % 256);
        fputs("]}\n", file);
    }
    assert_int_equal(fclose(file), 0);
}

/* Train and rehearse with the same keys; every trace must be the same. */
static void assert_rehearsed(const char *const *keys)
{
    char planned[17], rehearsed[17], source[PROGRAM_PATH];
    const char *extra[PROGRAM_MAX_ARGS] = {
        "--data.sources",      source,  "--data.max_length", "160",
        "--data.pack_samples", "false", "--train_iters",     "2"};
    int n = 8;
    snprintf(source, sizeof source, "[%s/full.jsonl]", scratch);
    for (int i = 0; keys[i] != NULL; i++)
        extra[n++] = keys[i];
    assert_int_equal(tri_remove_folder(in_scratch("out")), TRI_OK);
    train_well(extra);
    project_run("rehearse", NULL, extra, &f);
    assert_finished_well(&f);
    read_trace(f.out, "allocation trace ", rehearsed);
    read_trace(f.out, "(planned ", planned);
    assert_string_equal(rehearsed, planned);
    json_t *lines = metrics_of("out");
    assert_int_equal(json_array_size(lines), 2);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(
            json_string_value(json_object_get(json_array_get(lines, i), "allocation_trace")),
            rehearsed);
    json_decref(lines);
}

static void trace_is_that_of_training(void **state)
{
    (void)state;
    char first[17];
    put_full_samples("full.jsonl", 6, 160);
    static const char *const stages[] = {"auto", "0", "1", "2", "3"};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        /* The first of two ranks. */
        const char *const shared[] = {"--ranks", "2", "--zero_stage", stages[i], NULL};
        assert_rehearsed(shared);
    }
    const char *const plain[] = {NULL};
    assert_rehearsed(plain);
    read_trace(f.out, "allocation trace ", first);
    const char *const cut[] = {"--fpdt.chunk_size",
                               "48",
                               "--tiled_mlp_num_shards",
                               "7",
                               "--gradient_accumulation_steps",
                               "2",
                               NULL};
    assert_rehearsed(cut);
    const char *const kept[] = {"--activation_checkpointing", "none", NULL};
    assert_rehearsed(kept);
    /* And it is one of this way of computing: another one has another trace. */
    char other[17];
    read_trace(f.out, "allocation trace ", other);
    assert_string_not_equal(first, other);
}

/* Layers that make weights the most of it: 25 MB, of which two layers are 2 MB; gradients as much,
 * moments twice that. Half of the moments are away in stage 1, of the gradients in stage 2. */
static void the_lowest_stage_that_fits_is_chosen(void **state)
{
    (void)state;
    static const struct {
        const char *limit_gb, *stage;
    } cases[] = {{"1", "ZeRO stage 1"}, {"0.068", "ZeRO stage 2"}, {"0.058", "ZeRO stage 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const extra[] = {"--model.hf_config_kwargs",
                                     "{\"num_hidden_layers\": 24, \"hidden_size\": 128, "
                                     "\"intermediate_size\": 512}",
                                     "--data.max_length",
                                     "160",
                                     "--ranks",
                                     "2",
                                     "--memory_limit_gb",
                                     cases[i].limit_gb,
                                     NULL};
        project_run("rehearse", NULL, extra, &f);
        assert_finished_well(&f);
        if (strstr(f.out, cases[i].stage) == NULL)
            fail_msg("%s GiB: \"%s\" is not in: %s", cases[i].limit_gb, cases[i].stage, f.out);
    }
}

static void needs_neither_weights_nor_data(void **state)
{
    (void)state;
    const char *const extra[] = {"--data.sources",
                                 "[/nowhere/at/all.jsonl]",
                                 "--model.init",
                                 "checkpoint",
                                 "--data.max_length",
                                 "1k",
                                 NULL};
    project_run("rehearse", NULL, extra, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.out, "over 1000 tokens"));
    assert_false(has("out"));
}

static void refuses_what_does_not_fit(void **state)
{
    (void)state;
    const char *const extra[] = {"--data.max_length", "1m", "--memory_limit_gb", "0.1", NULL};
    project_run("rehearse", NULL, extra, &f);
    assert_one_error(&f, "a step over 1000000 tokens needs");
    const char *const endless[] = {"--data.max_length", "0", NULL};
    project_run("rehearse", NULL, endless, &f);
    assert_one_error(&f, "data.max_length");
}

static void attention_is_what_the_model_pins(void **state)
{
    (void)state;
    const char *const same[] = {"--data.max_length",
                                "128",
                                "--model.hf_config_kwargs",
                                "{_attn_implementation: sdpa}",
                                "--model.attn_implementation",
                                "sdpa",
                                NULL};
    project_run("rehearse", NULL, same, &f);
    assert_finished_well(&f);
    const char *const other[] = {"--data.max_length",
                                 "128",
                                 "--model.hf_config_kwargs",
                                 "{_attn_implementation: sdpa}",
                                 "--model.attn_implementation",
                                 "flash_attention_2",
                                 NULL};
    project_run("rehearse", NULL, other, &f);
    assert_one_error(&f, "does not match the sdpa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(trace_is_that_of_training),
        PROJECT_TEST(the_lowest_stage_that_fits_is_chosen),
        PROJECT_TEST(needs_neither_weights_nor_data),
        PROJECT_TEST(refuses_what_does_not_fit),
        PROJECT_TEST(attention_is_what_the_model_pins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
