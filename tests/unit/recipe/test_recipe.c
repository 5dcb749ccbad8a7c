/* Recipes: defaults, where a mistake is, what the command line lays over a file, keys together. */
#include "unit/recipe/recipe_fixture.h"

static void has_defaults(void **state)
{
    (void)state;
    struct tri_recipe *r = parse(MINIMAL);
    assert_string_equal(r->model.name_or_path, "m");
    assert_int_equal(r->data.num_sources, 1);
    assert_string_equal(r->data.sources[0], "a.txt");
    assert_true(r->optimizer.learning_rate == 1e-5);
    assert_true(r->optimizer.beta1 == 0.9 && r->optimizer.beta2 == 0.999);
    assert_true(r->optimizer.weight_decay == 0.1);
    assert_int_equal(r->scheduler.name, TRI_SCHEDULE_LINEAR);
    assert_true(r->train.epochs == 1);
    assert_true(r->train.gradient_clipping == 1);
    assert_int_equal(r->train.seed, 42);
    assert_int_equal(r->data.overlength, TRI_OVERLENGTH_ERROR);
    assert_int_equal(r->pass.activation_checkpointing, TRI_REMAT_FULL);
    assert_true(r->pass.tiled_mlp_compute);
    assert_int_equal(r->checkpoint.save_total_limit, 2);
    assert_null(r->checkpoint.output_dir);
    tri_recipe_close(r);
}

static void names_what_is_missing(void **state)
{
    (void)state;
    fails_with("model: {name_or_path: m}\ndata: {sources: [a]}\n", 0, NULL,
               "r.yml: optimizer.learning_rate is missing: it has no default");
    fails_with("model: {name_or_path: m}\ndata: {sources: [a]}\nlr: auto\n", 0, NULL,
               "learning_rate is missing");
    fails_with("lr: 1\ndata: {sources: [a]}\n", 0, NULL, "model.name_or_path is missing");
    fails_with("lr: 1\nmodel: {name_or_path: m}\n", 0, NULL, "data.sources is missing");
    fails_with("", 0, NULL, "is missing");
}

static void suggests_the_nearest_key(void **state)
{
    (void)state;
    line_fails("optimizer.learnin_rate: 1",
               "r.yml:4: unknown key 'optimizer.learnin_rate'; did you mean "
               "'optimizer.learning_rate'?");
    line_fails("optimzer: {eps: 1}", "r.yml:4: unknown key 'optimzer'; did you mean 'optimizer'?");
    line_fails("\n\nmicro_batch: 1", "r.yml:6: unknown key 'micro_batch'");
    line_fails("data.learning_rate: 1", "did you mean 'optimizer.learning_rate'?");
    line_fails("max_step: 5", "did you mean 'max_steps'?");
    line_fails("frobnicate: 1", "unknown key 'frobnicate' (`trireme help recipe`");
    line_fails("scheduler:\n  nmae: linear", "r.yml:5: unknown key 'scheduler.nmae'; did you mean "
                                             "'scheduler.name'?");
}

static void refuses_a_key_given_twice(void **state)
{
    (void)state;
    line_fails("seed: 1\nseed: 2", "r.yml:5: duplicate key 'seed', first given at r.yml:4");
    line_fails("lr: 2", "r.yml:4: 'lr' sets optimizer.learning_rate again, first given as "
                        "'optimizer.learning_rate' in line 3");
    line_fails("max_steps: 5\ntrain_iters: 5", "r.yml:5: 'train_iters' sets train_iters again");
    line_fails("epochs: null\nnum_epochs: 5", "r.yml:5: 'num_epochs' sets epochs again");
    line_fails("gradient_clipping: 1\ndeepspeed: {gradient_clipping: 1}", "again");
}

static void says_where_a_bad_value_is(void **state)
{
    (void)state;
    line_fails("seed: -1", "r.yml:4: seed: expected an integer >= 0, got '-1'");
    line_fails("micro_batch_size: 1.5", "r.yml:4: micro_batch_size: expected a whole number");
    line_fails("micro_batch_size: [1]", "it cannot be a list: expected an integer");
    line_fails("micro_batch_size: {a: 1}", "it cannot be a mapping: expected an integer");
    line_fails("optimizer.betas: [0.9]", "expected two numbers");
    line_fails("optimizer.betas: [0.9, 1]", "optimizer.betas must be below 1");
    line_fails("scheduler: {name: polynomial}", "expected one of constant, linear, cosine, wsd");
    line_fails("model.attn_implementation: spda", "expected one of auto, sdpa");
    line_fails("data.eval_sources: [[a]]", "single values");
    line_fails("model.hf_config_kwargs: '{}'", "expected a mapping");
    line_fails("model.hf_config_kwargs: [1]", "expected a mapping");
    line_fails("model.hf_config_kwargs: {a: [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]}", "16 levels");
    line_fails("model: 5", "duplicate key 'model'");
    fails_with("lr: 1\nmodel: 5\n", 0, NULL, "r.yml:2: model: expected a mapping");
}

static void lets_the_command_line_win(void **state)
{
    (void)state;
    char *overrides[] = {"--optimizer.learning_rate",
                         "3e-4",
                         "--seed=7",
                         "--tiled_mlp_compute",
                         "false",
                         "--pack-samples-typo",
                         "--data.sources",
                         "[x, y z]",
                         "--betas"};
    overrides[5] = "--data.pack-samples";
    overrides[8] = "--gradient_checkpointing";
    struct tri_recipe *r = parse_with(MINIMAL, 9, overrides);
    assert_true(r->optimizer.learning_rate == 3e-4);
    assert_int_equal(r->train.seed, 7);
    assert_false(r->pass.tiled_mlp_compute);
    assert_true(r->data.pack_samples);
    assert_int_equal(r->data.num_sources, 2);
    assert_string_equal(r->data.sources[1], "y z");
    assert_int_equal(r->pass.activation_checkpointing, TRI_REMAT_FULL);
    dump_has_line(r, "seed: 7 # command line\n");
    tri_recipe_close(r);

    char *last[] = {"--seed", "1", "--seed", "2"};
    r = parse_with(MINIMAL, 4, last);
    assert_int_equal(r->train.seed, 2);
    tri_recipe_close(r);

    char *bad[] = {"--optimizer.learnin_rate", "1"};
    fails_with(MINIMAL, 2, bad,
               "command line: unknown key 'optimizer.learnin_rate'; did you mean "
               "'optimizer.learning_rate'?");
    char *word[] = {"seed", "1"};
    fails_with(MINIMAL, 2, word, "expected --key value, got 'seed'");
    char *nothing[] = {"--seed"};
    fails_with(MINIMAL, 1, nothing, "--seed needs a value");
    char *bytes[] = {"--output_dir", "a\xFF"};
    fails_with(MINIMAL, 2, bytes, "not valid UTF-8");
    char *negative[] = {"--data.seed", "-1"};
    tri_recipe_close(parse_with(MINIMAL, 2, negative));
}

static void checks_keys_together(void **state)
{
    (void)state;
    struct tri_recipe *r = line_parses("train_iters: 10");
    dump_has_line(r, "epochs: 1 # default; no effect: train_iters decides");
    tri_recipe_close(r);
    line_fails("epochs: 0", "nothing to train");
    line_fails("train_iters: 10\nexit_iteration: 11", "exit_iteration 11 is never reached");
    line_fails("train_iters: 10\nwarmup_steps: 11",
               "scheduler.warmup_steps 11 are more than train_iters 10: add "
               "--scheduler.warmup_steps 0");
    line_fails("scheduler: {name: wsd, warmup_ratio: 0.6, decay_ratio: 0.6}",
               "more than all steps");
    line_fails("eval_interval: 5", "needs data.eval_sources");
    line_fails("tiled_mlp_compute: false\ntiled_mlp_num_shards: 4", "needs tiled_mlp_compute");
    line_fails("model.rope.factor: 4", "needs model.rope.type");
    line_fails("model.rope: {type: yarn, factor: 0.5}", "at least 1");
    line_fails("model.disable_activation_checkpoint: true\nactivation_checkpointing: full",
               "contradict");

    r = line_parses("model.disable_activation_checkpoint: true");
    assert_int_equal(r->pass.activation_checkpointing, TRI_REMAT_NONE);
    dump_has_line(r, "activation_checkpointing: none # model.disable_activation_checkpoint");
    tri_recipe_close(r);
    r = line_parses("fpdt: {enabled: true}");
    assert_int_equal(r->pass.chunk_size, 65536);
    tri_recipe_close(r);
    r = line_parses("fpdt: {chunk_size: 8ki}");
    assert_int_equal(r->pass.chunk_size, 8192);
    assert_true(r->pass.fpdt_enabled);
    tri_recipe_close(r);
    r = line_parses("fpdt: {enabled: false, chunk_size: 8ki}");
    assert_int_equal(r->pass.chunk_size, 0);
    tri_recipe_close(r);
}

static void opens_files(void **state)
{
    (void)state;
    struct tri_recipe *r = NULL;
    put_text(in_scratch("r.yml"), MINIMAL);
    assert_int_equal(tri_recipe_open(in_scratch("r.yml"), 0, NULL, &r), TRI_OK);
    assert_string_equal(r->path, in_scratch("r.yml"));
    tri_recipe_close(r);
    r = NULL;
    assert_int_equal(tri_recipe_open(in_scratch("none.yml"), 0, NULL, &r), TRI_IO);
    assert_null(r);
    assert_error_has("none.yml");
}

/* The recipes in examples/ are read, up to what only the machine can say. */
static void reads_the_examples(void **state)
{
    (void)state;
    static const char *const names[] = {"tiny-byte-llama", "continue-pretraining",
                                        "long-documents-packed", "chat"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/../examples/%s.yml", TEST_DATA, names[i]);
        struct tri_recipe *r = NULL;
        if (tri_recipe_open(path, 0, NULL, &r) != TRI_OK)
            fail_msg("%s", tri_error_text());
        tri_recipe_close(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_defaults),
        cmocka_unit_test(names_what_is_missing),
        cmocka_unit_test(suggests_the_nearest_key),
        cmocka_unit_test(refuses_a_key_given_twice),
        cmocka_unit_test(says_where_a_bad_value_is),
        cmocka_unit_test(lets_the_command_line_win),
        cmocka_unit_test(checks_keys_together),
        SCRATCH_TEST(opens_files),
        cmocka_unit_test(reads_the_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
