#include "unit/scratch.h"

#include "recipe/recipe.h"

#define MINIMAL                                                                                    \
    "model: {name_or_path: m}\n"                                                                   \
    "data: {sources: [a.txt]}\n"                                                                   \
    "optimizer: {learning_rate: 1e-5}\n"

static struct tri_recipe *parse_with(const char *text, int count, char *const *overrides)
{
    struct tri_recipe *recipe = NULL;
    if (tri_recipe_parse("r.yml", text, strlen(text), count, overrides, &recipe) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return recipe;
}

static struct tri_recipe *parse(const char *text)
{
    return parse_with(text, 0, NULL);
}

static void fails_with(const char *text, int count, char *const *overrides, const char *part)
{
    struct tri_recipe *recipe = NULL;
    if (tri_recipe_parse("r.yml", text, strlen(text), count, overrides, &recipe) == TRI_OK)
        fail_msg("accepted, but should say: %s", part);
    assert_null(recipe);
    assert_error_has(part);
}

/* The minimal recipe with more lines behind it (its own are lines 1 to 3). */
static void line_fails(const char *line, const char *part)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n", MINIMAL, line);
    fails_with(text, 0, NULL, part);
}

static struct tri_recipe *line_parses(const char *line)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n", MINIMAL, line);
    return parse(text);
}

static char *dump(const struct tri_recipe *recipe)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(tri_recipe_dump(recipe, to), TRI_OK);
    fclose(to);
    return text;
}

static void dump_has(const struct tri_recipe *recipe, const char *part)
{
    char *text = dump(recipe);
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in the dump:\n%s", part, text);
    free(text);
}

/* The dump of `text` with runs of spaces made one, so that tests do not depend on columns. */
static void dump_has_line(const struct tri_recipe *recipe, const char *part)
{
    char *text = dump(recipe), *to = text;
    for (const char *from = text; *from != '\0'; from++)
        if (!(*from == ' ' && from[1] == ' '))
            *to++ = *from;
    *to = '\0';
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in the dump:\n%s", part, text);
    free(text);
}

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

static void reads_aliases(void **state)
{
    (void)state;
    struct tri_recipe *r = parse("model_name_or_path: m\n"
                                 "data.sources: a\n"
                                 "lr: 1e-5\n"
                                 "per_device_train_batch_size: 2\n"
                                 "max_grad_norm: 0.5\n"
                                 "sequence_len: 128ki\n"
                                 "num_train_epochs: 3\n"
                                 "max_steps: -1\n"
                                 "warmup_steps: 7\n"
                                 "lr_scheduler_type: constant_with_warmup\n"
                                 "output_dir: out\n"
                                 "save_steps: 500\n"
                                 "gradient_checkpointing: false\n"
                                 "optim: adamw_torch_fused\n"
                                 "sample_packing: true\n"
                                 "excess_length_strategy: raise\n"
                                 "torch_dtype: bf16\n"
                                 "attn_implementation: kernels-community/flash-attn3\n"
                                 "logging_steps: 10\n"
                                 "eval_steps: null\n");
    assert_string_equal(r->model.name_or_path, "m");
    assert_string_equal(r->data.sources[0], "a");
    assert_int_equal(r->train.micro_batch_size, 2);
    assert_true(r->train.gradient_clipping == 0.5);
    assert_int_equal(r->data.max_length, 131072);
    assert_true(r->train.epochs == 3);
    assert_int_equal(r->train.train_iters, 0);
    assert_int_equal(r->scheduler.warmup_steps, 7);
    assert_int_equal(r->scheduler.name, TRI_SCHEDULE_CONSTANT);
    assert_string_equal(r->checkpoint.output_dir, "out");
    assert_int_equal(r->checkpoint.save_every_n_steps, 500);
    assert_int_equal(r->pass.activation_checkpointing, TRI_REMAT_NONE);
    assert_string_equal(r->optimizer.type, "adamw");
    assert_true(r->data.pack_samples);
    assert_int_equal(r->data.overlength, TRI_OVERLENGTH_ERROR);
    assert_string_equal(r->model.dtype, "bfloat16");
    assert_string_equal(r->model.attn_implementation, "kernels-community/flash-attn3");
    dump_has_line(r, "max_length: 131072 # r.yml:6 as sequence_len");
    dump_has_line(r, "# r.yml:18 as attn_implementation; computed by Trireme's own kernel");
    tri_recipe_close(r);
}

static void reads_a_recipe_of_arctic(void **state)
{
    (void)state;
    struct tri_recipe *r = parse("type: sft\n"
                                 "micro_batch_size: 1\n"
                                 "model:\n"
                                 "  type: huggingface\n"
                                 "  name_or_path: meta-llama/Llama-3.1-8B-Instruct\n"
                                 "  attn_implementation: flash_attention_2\n"
                                 "  hf_config_kwargs: {sliding_window: 4096}\n"
                                 "data:\n"
                                 "  sources:\n"
                                 "    - a.txt\n"
                                 "    - type: huggingface\n"
                                 "      name_or_path: b.jsonl\n"
                                 "      split: train\n"
                                 "  cache_dir: /data-cache\n"
                                 "  num_proc: 16\n"
                                 "  max_length: 3_800_000\n"
                                 "tiled_mlp_compute: true\n"
                                 "activation_checkpoint_cpu_offload: false\n"
                                 "optimizer: {type: cpu_adam, lr: 1e-5, betas: [0.9, 0.95]}\n"
                                 "scheduler: {name: cosine, warmup_ratio: 10%}\n"
                                 "checkpoint:\n"
                                 "  - type: huggingface\n"
                                 "    output_dir: out\n"
                                 "    save_every_n_steps: 300\n"
                                 "    save_end_of_training: true\n"
                                 "    auto_resume: false\n"
                                 "deepspeed:\n"
                                 "  zero_optimization: {stage: 3, overlap_comm: true}\n"
                                 "  seq_parallel_communication_data_type: bf16\n"
                                 "wandb: {enable: false, project: x}\n");
    assert_int_equal(r->data.num_sources, 2);
    assert_string_equal(r->data.sources[1], "b.jsonl");
    assert_int_equal(r->data.max_length, 3800000);
    assert_string_equal(r->optimizer.type, "adamw");
    assert_true(r->optimizer.beta2 == 0.95);
    assert_true(r->scheduler.warmup_ratio == 0.1);
    assert_string_equal(r->checkpoint.output_dir, "out");
    assert_int_equal(r->checkpoint.save_every_n_steps, 300);
    assert_false(r->checkpoint.auto_resume);
    assert_string_equal(r->model.hf_config_kwargs, "{\"sliding_window\": 4096}");
    dump_has(r, "# Read, but without effect:\n#   r.yml:4: model.type: no effect\n");
    dump_has(r, "#   r.yml:15: data.num_proc: no effect: it needs no setting here\n");
    dump_has(r, "zero_optimization.overlap_comm: no effect");
    assert_int_equal(r->train.zero_stage, TRI_ZERO_FIRST + 3);
    tri_recipe_close(r);
}

static void refuses_what_it_cannot_honour(void **state)
{
    (void)state;
    line_fails("model.peft_config: {peft_type: lora}",
               "r.yml:4: model.peft_config: not supported: adapters (LoRA)");
    line_fails("fp16: {enabled: true}", "r.yml:4: fp16: not supported");
    line_fails("wandb: {enable: true}", "wandb: not supported: there is no such logger");
    line_fails("wandb: {project: x}", "wandb: not supported");
    line_fails("type: dpo", "r.yml:4: type: 'dpo' is not supported");
    line_fails("deepspeed: {zero_optimization: {stage: 4}}", "expected one of auto, 0, 1, 2, 3");
    line_fails("fsdp: full_shard", "fsdp: not supported: write zero_stage: 3");
    line_fails("zero_optimization.offload_optimizer.device: cpu", "not supported");
    line_fails("activation_checkpoint_cpu_offload: true", "not supported: offload");
    line_fails("model.type: liger", "model.type: not supported");
    line_fails("attn_implementation: eager", "'eager' is not supported: it needs a mask");
    line_fails("attn_implementation: paged|eager", "'paged|eager' is not supported");
    line_fails("optimizer.type: sgd", "expected one of adamw");
    line_fails("bf16: true", "use model.dtype: bfloat16");
    line_fails("deepspeed: ds.json", "put its keys into the recipe");
    line_fails("deepspeed: {frob: 1}", "unknown key");
    line_fails("data.eval_sources: [{type: huggingface_vlm, name_or_path: x}]",
               "data.sources.type: not supported: a source is a file, and data.format says");
    line_fails("data.eval_sources: [{type: huggingface}]", "needs name_or_path");
    line_fails("checkpoint: [{output_dir: a}, {output_dir: b}]", "expected one mapping");
}

static void accepts_values_that_ask_for_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "model.peft_config: null",
        "fp16: {enabled: false, loss_scale: 0}",
        "fp16: auto",
        "wandb: {enable: false}",
        "zero_optimization: {stage: 0, offload_optimizer: {device: none, pin_memory: true}}",
        "activation_checkpoint_cpu_offload: false",
        "report_to: none",
        "checkpoint: []",
        "checkpoint:",
        "scheduler:",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        tri_recipe_close(line_parses(lines[i]));
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
    line_fails("train_iters: 10\nwarmup_steps: 11", "scheduler.warmup_steps 11");
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
        cmocka_unit_test(reads_aliases),
        cmocka_unit_test(reads_a_recipe_of_arctic),
        cmocka_unit_test(refuses_what_it_cannot_honour),
        cmocka_unit_test(accepts_values_that_ask_for_nothing),
        cmocka_unit_test(lets_the_command_line_win),
        cmocka_unit_test(checks_keys_together),
        cmocka_unit_test(dumps_what_it_can_read),
        cmocka_unit_test(shows_what_the_model_decided),
        cmocka_unit_test(hashes_what_changes_numbers),
        cmocka_unit_test(explains_every_key),
        SCRATCH_TEST(opens_files),
        cmocka_unit_test(reads_the_examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
