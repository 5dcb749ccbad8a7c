/* What a recipe says of itself: the effective dump, its hash, the explanation of keys. */
#include "unit/recipe/recipe_fixture.h"

/* The dump of a recipe with odd values is a recipe with the same values. */
static void dumps_what_it_can_read(void **state)
{
    (void)state;
    struct tri_recipe *r =
        line_parses("output_dir: \"a \\\"b\\\"\\u2028: #c\"\n"
                    "optimizer.betas: [0.1, 0.30000000000000004]\n"
                    "model.hf_config_kwargs: {a: [1, true, null, \"x\\ny\"], \"b \\uFEFF\": {}}\n"
                    "data.eval_sources: [\"a, b\", '[c]', \"null\"]\n"
                    "model.disable_activation_checkpoint: true\n"
                    "fpdt: {enabled: false, chunk_size: 8ki}\n"
                    "max_steps: 2^40\n");
    char *text = dump(r);
    struct tri_recipe *again = parse(text);
    assert_string_equal(again->checkpoint.output_dir, "a \"b\"\xE2\x80\xA8: #c");
    assert_true(again->optimizer.beta2 == 0.30000000000000004);
    assert_string_equal(again->model.hf_config_kwargs, r->model.hf_config_kwargs);
    assert_int_equal(again->data.num_eval_sources, 3);
    assert_string_equal(again->data.eval_sources[2], "null");
    assert_true(tri_recipe_hash(again) == tri_recipe_hash(r));
    assert_int_equal(tri_recipe_check_same(r, again), TRI_OK);
    free(text);
    tri_recipe_close(again);
    tri_recipe_close(r);
}

static void shows_what_the_model_decided(void **state)
{
    (void)state;
    struct tri_recipe *r = parse(MINIMAL);
    assert_int_equal(tri_recipe_note(r, "model.dtype", "float32", "the CPU backend"), TRI_OK);
    assert_int_equal(tri_recipe_note(r, "data.max_length", "about 5000", "the data"), TRI_OK);
    assert_int_equal(tri_recipe_note(r, "model.layers", "32", "config.json"), TRI_OK);
    dump_has_line(r, "dtype: float32 # the CPU backend\n");
    dump_has_line(r, "max_length: 0 # about 5000, by the data\n");
    dump_has(r, "# Decided by the model and the machine:\n#   model.layers: 32 (config.json)\n");

    /* A run that goes on compares with its own dump, in which auto has become a value. */
    char *text = dump(r);
    struct tri_recipe *before = parse(text), *again = parse(MINIMAL);
    free(text);
    assert_int_equal(tri_recipe_check_same(before, r), TRI_OK);
    assert_true(tri_recipe_hash(before) == tri_recipe_hash(r));
    assert_int_equal(tri_recipe_note(again, "model.dtype", "bfloat16", "another machine"), TRI_OK);
    assert_int_equal(tri_recipe_check_same(before, again), TRI_INVALID);
    assert_error_has("model.dtype was float32 when the run was saved and is bfloat16 now");
    tri_recipe_close(before);
    tri_recipe_close(again);
    tri_recipe_close(r);
}

static void hashes_what_changes_numbers(void **state)
{
    (void)state;
    struct tri_recipe *base = parse(MINIMAL);
    static const char *const same[] = {"output_dir: x", "threads: 3", "tiled_mlp_compute: false",
                                       "seed: 42", "activation_checkpointing: none"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct tri_recipe *r = line_parses(same[i]);
        assert_true(tri_recipe_hash(r) == tri_recipe_hash(base));
        assert_int_equal(tri_recipe_check_same(base, r), TRI_OK);
        tri_recipe_close(r);
    }
    static const char *const other[] = {"seed: 43", "data.max_length: 5", "gradient_clipping: 2",
                                        "model.rope: {type: yarn, factor: 2}"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        struct tri_recipe *r = line_parses(other[i]);
        assert_true(tri_recipe_hash(r) != tri_recipe_hash(base));
        assert_int_equal(tri_recipe_check_same(base, r), TRI_INVALID);
        tri_recipe_close(r);
    }
    struct tri_recipe *r = line_parses("seed: 43");
    assert_int_equal(tri_recipe_check_same(base, r), TRI_INVALID);
    assert_error_has("seed was 42 when the run was saved and is 43 now");
    tri_recipe_close(r);
    r = line_parses("epochs: 5");
    assert_int_equal(tri_recipe_check_same(base, r), TRI_OK);
    tri_recipe_close(r);
    tri_recipe_close(base);
}

static void explains_every_key(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    tri_recipe_help(to);
    fclose(to);
    static const char *const keys[] = {
        "\n  optimizer.learning_rate\n",  "\n  train_iters\n",
        "\n  model.rope.factor\n",        "\n  fpdt.chunk_size\n",
        "a number from 0 to 1; required", "also: optimizer.lr learning_rate lr"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_non_null(strstr(text, keys[i]));
    free(text);
    to = fopen("/dev/null", "w");
    assert_non_null(to);
    assert_true(tri_recipe_help_key("lr", to));
    assert_true(tri_recipe_help_key("scheduler", to));
    assert_false(tri_recipe_help_key("frobnicate", to));
    assert_false(tri_recipe_help_key("", to));
    fclose(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dumps_what_it_can_read),
        cmocka_unit_test(shows_what_the_model_decided),
        cmocka_unit_test(hashes_what_changes_numbers),
        cmocka_unit_test(explains_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
