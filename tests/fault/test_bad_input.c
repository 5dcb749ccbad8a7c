/* What users get wrong: each is one line of error that says where and what to do, and exit code 1,
 * before anything is written. */
#include "program.h"

static struct finished f;

/* "train recipe.yml KEY VALUE ..." must be refused, and leave no output folder. */
static void refused(const char *const *extra, const char *part)
{
    project_run("train", NULL, extra, &f);
    assert_one_error(&f, part);
    assert_false(has("out"));
}

static void refused_key(const char *key, const char *value, const char *part)
{
    const char *const extra[] = {key, value, NULL};
    refused(extra, part);
}

/* A file of the scratch folder as "[PATH]", for data.sources. */
static const char *source(const char *name)
{
    static char text[PROGRAM_PATH + 2];
    snprintf(text, sizeof text, "[%s/%s]", scratch, name);
    return text;
}

static void refused_data(const char *name, const void *data, size_t bytes, const char *part)
{
    put_file(in_scratch(name), data, bytes);
    refused_key("--data.sources", source(name), part);
    if (strstr(f.err, name) == NULL)
        fail_msg("%s is not named: %s", name, f.err);
}

/* ---- missing ----------------------------------------------------------------------------------
 */

static void missing_files(void **state)
{
    (void)state;
    refused_key("--data.sources", source("nowhere.jsonl"), "nowhere.jsonl");
    refused_key("--data.eval_sources", source("nowhere.txt"), "nowhere.txt");
    refused_key("--model.name_or_path", in_scratch("nowhere"), "nowhere");
    refused_key("--model.init", "checkpoint", "model.safetensors"); /* a config.json alone */
    assert_int_equal(remove(in_scratch("model/config.json")), 0);
    refused(NULL, "config.json");
    assert_int_equal(remove(in_scratch("recipe.yml")), 0);
    refused(NULL, "recipe.yml");
}

static void folders_without_data(void **state)
{
    (void)state;
    assert_int_equal(mkdir(in_scratch("empty"), 0777), 0);
    refused_key("--data.sources", source("empty"), "empty");
    refused_data("nothing.jsonl", "", 0, "nothing.jsonl");
}

/* By another name as well. */
static void sources_named_twice(void **state)
{
    (void)state;
    char sources[2 * PROGRAM_PATH];
    assert_int_equal(symlink("train.jsonl", in_scratch("again.jsonl")), 0);
    snprintf(sources, sizeof sources, "[%s/train.jsonl, %s/again.jsonl]", scratch, scratch);
    const char *const twice[] = {"--data.sources", sources, NULL};
    project_run("train", NULL, twice, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "/again.jsonl) is in the data more than once"));
    assert_non_null(strstr(f.err, "(1 repeat in all)"));
}

/* ---- weights ----------------------------------------------------------------------------------
 */

static const char golden[] = TEST_DATA "/golden/llama_gqa";

/* Copy the golden model's file into weights/ with at most `bytes` bytes of it. */
static void put_golden(const char *name, size_t bytes)
{
    char from[PROGRAM_PATH], to[PROGRAM_PATH];
    struct tri_map map;
    mkdir(in_scratch("weights"), 0777);
    snprintf(from, sizeof from, "%s/%s", golden, name);
    snprintf(to, sizeof to, "%s/weights/%s", scratch, name);
    assert_int_equal(tri_map_open(from, &map), TRI_OK);
    put_file(to, map.data, map.bytes < bytes ? map.bytes : bytes);
    tri_map_close(&map);
}

static void refused_weights(const char *part)
{
    const char *const extra[] = {"--model.name_or_path", in_scratch("weights"), "--model.init",
                                 "checkpoint", NULL};
    refused(extra, part);
}

static void truncated_weights(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 7, 100, 3000, 519519};
    put_golden("config.json", SIZE_MAX);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put_golden("model.safetensors", sizes[i]);
        refused_weights("model.safetensors");
    }
}

static void write_at(const char *name, long offset, const char *data, size_t bytes)
{
    FILE *file = fopen(in_scratch(name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void corrupted_weights(void **state)
{
    (void)state;
    put_golden("config.json", SIZE_MAX);
    put_golden("model.safetensors", SIZE_MAX);
    write_at("weights/model.safetensors", 3, "\xff\xff\xff\xff", 4); /* a header without end */
    refused_weights("model.safetensors");
    put_golden("model.safetensors", SIZE_MAX);
    write_at("weights/model.safetensors", 8, "[", 1); /* no object */
    refused_weights("model.safetensors");
    put_golden("model.safetensors", SIZE_MAX);
    write_at("weights/model.safetensors", 40, "\0\0\0\0", 4);
    refused_weights("model.safetensors");
}

/* One number of config.json changed. */
static void refused_shape(const char *key, int value, const char *part)
{
    char path[PROGRAM_PATH];
    json_t *config = NULL;
    snprintf(path, sizeof path, "%s/config.json", golden);
    assert_int_equal(tri_json_load(path, &config), TRI_OK);
    assert_int_equal(json_object_set_new(config, key, json_integer(value)), 0);
    assert_int_equal(tri_json_save(in_scratch("weights/config.json"), config), TRI_OK);
    json_decref(config);
    refused_weights(part);
}

static void weights_of_another_shape(void **state)
{
    (void)state;
    put_golden("model.safetensors", SIZE_MAX);
    refused_shape("vocab_size", 321, "embed_tokens");
    refused_shape("intermediate_size", 177, "mlp");
    refused_shape("num_hidden_layers", 3, "model.layers.2");
    refused_shape("num_hidden_layers", 1, "model.layers.1");
    refused_shape("num_key_value_heads", 4, "k_proj");
}

/* ---- samples ----------------------------------------------------------------------------------
 */

static void ids_outside_the_vocabulary(void **state)
{
    (void)state;
    static const char high[] = "{\"input_ids\": [1, 2]}\n{\"input_ids\": [1, 259]}\n";
    static const char low[] = "{\"input_ids\": [1, 2]}\n{\"input_ids\": [-1, 2]}\n";
    refused_data("high.jsonl", high, strlen(high), "high.jsonl:2");
    refused_data("low.jsonl", low, strlen(low), "low.jsonl:2");
}

static void samples_that_train_nothing(void **state)
{
    (void)state;
    static const char ignored[] = "{\"input_ids\": [1, 2]}\n"
                                  "{\"input_ids\": [3, 4], \"labels\": [-100, -100]}\n";
    static const char only_first[] = "{\"input_ids\": [3, 4], \"labels\": [3, -100]}\n";
    static const char single[] = "{\"input_ids\": [1, 2]}\n{\"input_ids\": [3]}\n";
    refused_data("ignored.jsonl", ignored, strlen(ignored), "ignored.jsonl:2");
    refused_data("first.jsonl", only_first, strlen(only_first), "first.jsonl:1");
    refused_data("single.jsonl", single, strlen(single), "single.jsonl:2");
}

static void invalid_utf8(void **state)
{
    (void)state;
    static const char line[] = "{\"text\": \"good\"}\n{\"text\": \"bad \xff\"}\n";
    refused_data("bad.txt", "some text \xc3\x28 and more", 21, "UTF-8");
    refused_data("bad.jsonl", line, strlen(line), "UTF-8");
    assert_one_error(&f, "bad.jsonl:2");
}

static void broken_lines(void **state)
{
    (void)state;
    static const char torn[] = "{\"text\": \"good\"}\n{\"text\": \"ba";
    static const char columns[] = "{\"words\": \"good\"}\n";
    refused_data("torn.jsonl", torn, strlen(torn), "torn.jsonl:2");
    refused_data("columns.jsonl", columns, strlen(columns), "columns.jsonl:1");
}

/* Tokens are never lost silently: the policy is to stop. */
static void overlong_samples(void **state)
{
    (void)state;
    const char *const extra[] = {"--data.max_length", "32", "--data.overlength", "error", NULL};
    refused(extra, "data.overlength");
    assert_one_error(&f, "train.jsonl:");
}

/* Longer than the model was made for: a warning that names the setting, and the run goes on. */
static void beyond_the_range_of_the_model(void **state)
{
    (void)state;
    char text[1600];
    memset(text, 'a', sizeof text);
    put_file(in_scratch("long.txt"), text, sizeof text);
    const char *const extra[] = {"--data.sources",
                                 source("long.txt"),
                                 "--data.max_length",
                                 "2000",
                                 "--train_iters",
                                 "2",
                                 NULL};
    project_run("train", NULL, extra, &f);
    assert_finished_well(&f);
    const char *warning = strstr(f.err, "warning: ");
    assert_non_null(warning);
    assert_non_null(strstr(warning, "model.rope"));
    assert_non_null(strstr(warning, "1024"));

    const char *const stretched[] = {"--data.sources",
                                     source("long.txt"),
                                     "--data.max_length",
                                     "2000",
                                     "--train_iters",
                                     "2",
                                     "--model.rope.type",
                                     "yarn",
                                     "--model.rope.factor",
                                     "2",
                                     "--model.rope.original_max_position_embeddings",
                                     "1024",
                                     "--checkpoint.output_dir",
                                     in_scratch("stretched"),
                                     NULL};
    project_run("train", NULL, stretched, &f);
    assert_finished_well(&f);
    assert_null(strstr(f.err, "warning: "));
}

/* ---- the recipe -------------------------------------------------------------------------------
 */

static void put_recipe(const char *text)
{
    put_text(in_scratch("recipe.yml"), text);
}

static void keys_nobody_knows(void **state)
{
    (void)state;
    refused_key("--optimizer.learnin_rate", "1", "did you mean 'optimizer.learning_rate'?");
    refused_key("--train_iterz", "1", "did you mean 'train_iters'?");
    put_recipe("model: {name_or_path: m}\ndata: {sorces: [a]}\noptimizer: {learning_rate: 1e-3}\n");
    refused(NULL, "recipe.yml:2: unknown key 'data.sorces'; did you mean 'data.sources'?");
}

static void keys_that_are_missing(void **state)
{
    (void)state;
    char text[2 * PROGRAM_PATH];
    put_recipe("model: {name_or_path: m}\ndata: {sources: [a]}\ntrain_iters: 2\n"
               "checkpoint: {output_dir: out}\n");
    refused(NULL, "optimizer.learning_rate is missing");
    snprintf(text, sizeof text,
             "model: {name_or_path: %s/model, init: random}\ndata: {sources: [%s/train.jsonl]}\n"
             "optimizer: {learning_rate: 1e-3}\ntrain_iters: 2\n",
             scratch, scratch);
    put_recipe(text);
    refused(NULL, "checkpoint.output_dir is missing");
}

static void values_out_of_range(void **state)
{
    (void)state;
    refused_key("--optimizer.learning_rate", "-1", "optimizer.learning_rate");
    refused_key("--optimizer.learning_rate", "fast", "optimizer.learning_rate");
    refused_key("--optimizer.eps", "0", "optimizer.eps"); /* 0/0 where a gradient is 0 */
    refused_key("--scheduler.name", "cosin", "scheduler.name");
    refused_key("--micro_batch_size", "0", "micro_batch_size");
    refused_key("--sequence_parallel_size", "2", "sequence_parallel_size");
    refused_key("--scheduler.warmup_steps", "13", "warmup_steps");
    refused_key("--model.attn_implementation", "eager", "eager");
    refused_key("--model.dtype", "float64", "float64");
    refused_key("--model.dtype", "bfloat16", "model.dtype");
    refused_key("--eval_interval", "5", "data.eval_sources");
    refused_key("--memory_limit_gb", "0.0001", "and 105 KiB are available");
}

static void a_cut_off_recipe(void **state)
{
    (void)state;
    put_recipe("model: {name_or_path: [\n");
    refused(NULL, "recipe.yml:");
    put_recipe("model: {name_or_path: m}\nmodel: {name_or_path: n}\n");
    refused(NULL, "recipe.yml:2");
}

/* ---- the output folder ------------------------------------------------------------------------
 */

static void output_that_cannot_be_written(void **state)
{
    (void)state;
    char under[PROGRAM_PATH];
    put_text(in_scratch("file"), "");
    snprintf(under, sizeof under, "%s/file/out", scratch);
    refused_key("--checkpoint.output_dir", under, "file");
    refused_key("--checkpoint.output_dir", in_scratch("file"), "file");
    refused_key("--checkpoint.output_dir", "/proc/trireme", "/proc/trireme");
    refused_key("--checkpoint.output_dir", "", "output_dir");
}

/* The model that training starts from would be overwritten. */
static void output_into_the_model(void **state)
{
    (void)state;
    char path[PROGRAM_PATH];
    snprintf(path, sizeof path, "%s/model", scratch);
    refused_key("--checkpoint.output_dir", path, "checkpoint.output_dir");
    snprintf(path, sizeof path, "%s/model/../model/", scratch);
    refused_key("--checkpoint.output_dir", path, "folder of the model");
    assert_int_equal(symlink("model", in_scratch("link")), 0);
    refused_key("--checkpoint.output_dir", in_scratch("link"), "folder of the model");
    assert_int_equal(count_entries(in_scratch("model")), 1);
}

/* Nor is a model overwritten that no checkpoint beside it goes with. */
static void output_over_another_model(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "model.safetensors",
                                        "model.safetensors.index.json"};
    assert_int_equal(mkdir(in_scratch("other"), 0777), 0);
    for (int i = 0; i < 3; i++) {
        char path[PROGRAM_PATH], folder[PROGRAM_PATH];
        snprintf(folder, sizeof folder, "%s/other", scratch);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        put_text(path, "precious");
        refused_key("--checkpoint.output_dir", folder, names[i]);
        assert_one_error(&f, "would overwrite it");
        assert_file_is(path, "precious");
        assert_int_equal(remove(path), 0);
    }
}

/* ---- resuming ---------------------------------------------------------------------------------
 */

static void resume_refused(const char *key, const char *value, const char *part)
{
    const char *const extra[] = {key, value, NULL};
    project_run("train", NULL, extra, &f);
    assert_one_error(&f, part);
    assert_true(has("out/checkpoint-5") && !has("out/checkpoint-6") && !has("out/config.json"));
}

static void resuming_something_else(void **state)
{
    (void)state;
    const char *const half[] = {"--exit_iteration", "5", NULL};
    train_well(half);
    resume_refused("--optimizer.learning_rate", "2e-2", "optimizer.learning_rate");
    resume_refused("--seed", "43", "seed");
    resume_refused("--gradient_accumulation_steps", "2", "gradient_accumulation_steps");
    resume_refused("--scheduler.name", "linear", "scheduler.name");
    resume_refused("--checkpoint.auto_resume", "false", "auto_resume");
    resume_refused("--data.max_length", "100", "checkpoint.output_dir");
    put_documents("train.jsonl", 60, 5);
    resume_refused("--log_interval", "1", "the training data is not the same");
}

static void resuming_a_damaged_checkpoint(void **state)
{
    (void)state;
    const char *const half[] = {"--exit_iteration", "5", NULL};
    train_well(half);
    char *state_text = get_text(in_scratch("out/checkpoint-5/trainer_state.json"));
    put_text(in_scratch("out/checkpoint-5/trainer_state.json"), "{\"format\": 1}");
    resume_refused("--log_interval", "1", "trainer_state.json");
    assert_one_error(&f, "move that folder away");
    put_text(in_scratch("out/checkpoint-5/trainer_state.json"), state_text);
    free(state_text);
    write_at("out/checkpoint-5/optimizer.safetensors", 8, "x", 1);
    resume_refused("--log_interval", "1", "optimizer.safetensors");
    put_text(in_scratch("out/checkpoint-5/model.safetensors"), "torn");
    resume_refused("--log_interval", "1", "model.safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(missing_files),
        PROJECT_TEST(folders_without_data),
        PROJECT_TEST(sources_named_twice),
        PROJECT_TEST(truncated_weights),
        PROJECT_TEST(corrupted_weights),
        PROJECT_TEST(weights_of_another_shape),
        PROJECT_TEST(ids_outside_the_vocabulary),
        PROJECT_TEST(samples_that_train_nothing),
        PROJECT_TEST(invalid_utf8),
        PROJECT_TEST(broken_lines),
        PROJECT_TEST(overlong_samples),
        PROJECT_TEST(beyond_the_range_of_the_model),
        PROJECT_TEST(keys_nobody_knows),
        PROJECT_TEST(keys_that_are_missing),
        PROJECT_TEST(values_out_of_range),
        PROJECT_TEST(a_cut_off_recipe),
        PROJECT_TEST(output_that_cannot_be_written),
        PROJECT_TEST(output_into_the_model),
        PROJECT_TEST(output_over_another_model),
        PROJECT_TEST(resuming_something_else),
        PROJECT_TEST(resuming_a_damaged_checkpoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
