/* Who sees whom through whole models: documents, later tokens and windows. */
#include "unit/pass/pass_fixture.h"

static void change_token(struct tri_batch *batch, int64_t t)
{
    batch->ids[t] = (batch->ids[t] + 1) % TINY_VOCAB;
}

/* Documents before and after the trained one may say what they like. */
static void documents_do_not_see_each_other(void **state)
{
    (void)state;
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int64_t chunk = 0; chunk <= 7; chunk += 7) {
            struct tiny_way way = tiny_way(false);
            way.pass.chunk_size = chunk;
            struct tri_batch batch = tiny_batch(lengths, NUM_DOCS);
            train_only(&batch, 42, 83); /* the third document */
            struct result before = run_batches(tiny_models[m].config, &way, &batch, 1);
            change_token(&batch, 0);
            change_token(&batch, 36); /* ends the first */
            change_token(&batch, 41); /* ends the second */
            change_token(&batch, 83); /* begins the fourth */
            struct result after = run_batches(tiny_models[m].config, &way, &batch, 1);
            assert_same_bits(&tiny_models[m], "another document changed", &after, &before);
            change_token(&batch, 42); /* and the probe can see: its own first token counts */
            struct result own = run_batches(tiny_models[m].config, &way, &batch, 1);
            assert_true(own.loss != before.loss);
            free(before.grads);
            free(after.grads);
            free(own.grads);
            tri_batch_close(&batch);
        }
}

/* Hidden states at the top as floats; the caller frees them. */
static float *top_of(const char *config, const struct tiny_way *way, const struct tri_batch *batch)
{
    struct tiny tiny = tiny_open(config, way);
    struct tri_pass *pass = tiny.trainer->pass;
    struct tri_view top;
    float *copy = malloc((size_t)batch->num_tokens * TINY_HIDDEN * sizeof *copy);
    assert_non_null(copy);
    assert_int_equal(tri_pass_begin(pass, batch, false), TRI_OK);
    assert_int_equal(tri_pass_forward(pass), TRI_OK);
    assert_int_equal(tri_pass_top(pass, &top), TRI_OK);
    memcpy(copy, top.data, (size_t)batch->num_tokens * TINY_HIDDEN * sizeof *copy);
    tri_pass_end(pass);
    tiny_close(&tiny);
    return copy;
}

static void the_future_is_not_seen(void **state)
{
    (void)state;
    const int64_t length = TOKENS;
    for (int m = 0; m < NUM_TINY_MODELS; m++)
        for (int64_t chunk = 0; chunk <= 7; chunk += 7) {
            struct tiny_way way = tiny_way(false);
            way.pass.chunk_size = chunk;
            struct tri_batch batch = tiny_batch(&length, 1);
            float *before = top_of(tiny_models[m].config, &way, &batch);
            for (int64_t t = 20; t < TOKENS; t += 25) {
                int32_t kept = batch.ids[t];
                change_token(&batch, t);
                float *after = top_of(tiny_models[m].config, &way, &batch);
                batch.ids[t] = kept;
                assert_memory_equal(before, after, (size_t)t * TINY_HIDDEN * sizeof *before);
                assert_memory_not_equal(before + t * TINY_HIDDEN, after + t * TINY_HIDDEN,
                                        TINY_HIDDEN * sizeof *before);
                if (t + 1 < TOKENS) /* and what follows does see it */
                    assert_memory_not_equal(before + (t + 1) * TINY_HIDDEN,
                                            after + (t + 1) * TINY_HIDDEN,
                                            TINY_HIDDEN * sizeof *before);
                free(after);
            }
            free(before);
            tri_batch_close(&batch);
        }
}

/* A window of 9 in both layers reaches 8 tokens back a layer: 16 back nothing is left. */
static void a_window_ends(void **state)
{
    (void)state;
    static const char config[] =
        "{" TINY_COMMON "\"model_type\":\"mistral\",\"num_key_value_heads\":2,"
        "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,\"sliding_window\":9,"
        "\"tie_word_embeddings\":false}";
    const int64_t length = TOKENS, changed = 30, row = TINY_HIDDEN;
    for (int64_t chunk = 0; chunk <= 7; chunk += 7) {
        struct tiny_way way = tiny_way(false);
        way.pass.chunk_size = chunk;
        struct tri_batch batch = tiny_batch(&length, 1);
        float *before = top_of(config, &way, &batch);
        change_token(&batch, changed);
        float *after = top_of(config, &way, &batch);
        for (int64_t t = 0; t < TOKENS; t++) {
            bool same =
                memcmp(before + t * row, after + t * row, (size_t)row * sizeof *before) == 0;
            if (same != (t < changed || t > changed + 16))
                fail_msg("chunk %lld: token %lld %s", (long long)chunk, (long long)t,
                         same ? "does not see the change" : "sees the change");
        }
        free(before);
        free(after);
        tri_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_do_not_see_each_other),
        cmocka_unit_test(the_future_is_not_seen),
        cmocka_unit_test(a_window_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
