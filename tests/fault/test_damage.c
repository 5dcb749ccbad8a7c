/* Bits of a checkpoint that a disk or a copy changed. */
#include "program.h"

static struct finished f;

/* Change one bit of a file, `part` of 1 of the way through it. */
static void flip_bit(const char *name, double part)
{
    FILE *file = fopen(in_scratch(name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const long at = (long)(part * (double)(ftell(file) - 1));
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    const int byte = fgetc(file);
    assert_true(byte != EOF);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fputc(byte ^ 4, file), byte ^ 4);
    assert_int_equal(fclose(file), 0);
}

/* checkpoint-3 and checkpoint-5 of 12 steps. */
static void train_half(void)
{
    static const char *const half[] = {"--exit_iteration", "5", NULL};
    train_well(half);
    assert_true(has("out/checkpoint-3") && has("out/checkpoint-5"));
}

static void refused(const char *name)
{
    char part[128];
    snprintf(part, sizeof part, "checkpoint-5/%s is damaged: bytes 0 to ", name);
    project_run("train", NULL, NULL, &f);
    assert_one_error(&f, part);
    assert_one_error(&f, "move that folder away to go on from checkpoint-3");
    assert_true(!has("out/checkpoint-6") && !has("out/config.json"));
}

static void every_file_of_a_resume_is_compared(void **state)
{
    (void)state;
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors",
                                        "trainer_state.json", "recipe.yml", "config.json"};
    train_half();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[64];
        snprintf(path, sizeof path, "out/checkpoint-5/%s", names[i]);
        for (int place = 0; place < 3; place++) {
            flip_bit(path, 0.5 * place);
            refused(names[i]);
            flip_bit(path, 0.5 * place);
        }
    }
    train_well(NULL);
    assert_true(has("out/checkpoint-12"));
}

static void several_ranks_compare_as_well(void **state)
{
    (void)state;
    static const char *const ranks[] = {
        "--ranks", "2", "--sequence_parallel_size", "2", "--exit_iteration", "5", NULL};
    train_well(ranks);
    flip_bit("out/checkpoint-5/optimizer.safetensors", 0.7);
    const char *const on[] = {"--ranks", "2", "--sequence_parallel_size", "2", NULL};
    project_run("train", NULL, on, &f);
    assert_one_error(&f, "optimizer.safetensors is damaged: bytes 0 to ");
    flip_bit("out/checkpoint-5/optimizer.safetensors", 0.7);
    train_well(on);
}

static void the_only_checkpoint_says_so(void **state)
{
    (void)state;
    static const char *const two[] = {"--exit_iteration", "2", NULL};
    train_well(two);
    flip_bit("out/checkpoint-2/model.safetensors", 0.9);
    project_run("train", NULL, NULL, &f);
    assert_one_error(&f, "there is no earlier checkpoint");
}

static void an_evaluation_compares(void **state)
{
    (void)state;
    char model[PROGRAM_PATH], data[PROGRAM_PATH];
    train_half();
    snprintf(model, sizeof model, "%s/out/checkpoint-5", scratch);
    snprintf(data, sizeof data, "[%s/eval.jsonl]", scratch);
    const char *const eval[] = {
        "--model.init", "checkpoint", "--model.name_or_path", model, "--data.eval_sources",
        data,           NULL};
    project_run("eval", NULL, eval, &f);
    assert_finished_well(&f);
    flip_bit("out/checkpoint-5/model.safetensors", 1);
    project_run("eval", NULL, eval, &f);
    assert_one_error(&f, "checkpoint-5/model.safetensors is damaged: bytes 0 to ");
    flip_bit("out/checkpoint-5/model.safetensors", 1);
    char text[] = "{\"bos_token_id\": 1}\n";
    put_text(in_scratch("out/checkpoint-5/generation_config.json"), text);
    project_run("eval", NULL, eval, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "generation_config.json is not what was saved"));
}

static void a_file_of_another_length(void **state)
{
    (void)state;
    train_half();
    FILE *file = fopen(in_scratch("out/checkpoint-5/trainer_state.json"), "a");
    assert_non_null(file);
    fputs("\n", file);
    assert_int_equal(fclose(file), 0);
    project_run("train", NULL, NULL, &f);
    assert_one_error(&f, "trainer_state.json has ");
}

static void hashes_that_are_damaged_themselves(void **state)
{
    (void)state;
    train_half();
    put_text(in_scratch("out/checkpoint-5/trireme_checksums.json"),
             "{\"format\": 1, \"block_bytes\": 67108864, \"files\": {\"recipe.yml\": "
             "{\"bytes\": -1, \"blocks\": [7]}}}");
    project_run("train", NULL, NULL, &f);
    assert_one_error(&f, "trireme_checksums.json");
}

static void a_bit_of_the_hashes(void **state)
{
    (void)state;
    train_half();
    for (int i = 1; i < 10; i++) { /* names, lengths and hashes of files, and what is between */
        flip_bit("out/checkpoint-5/trireme_checksums.json", 0.1 * i);
        project_run("train", NULL, NULL, &f);
        assert_one_error(&f, "out/checkpoint-5/trireme_checksums.json");
        assert_null(strstr(f.err, "optimizer.safetensors"));
        flip_bit("out/checkpoint-5/trireme_checksums.json", 0.1 * i);
    }
}

static void files_that_a_resume_does_not_read(void **state)
{
    (void)state;
    train_half();
    flip_bit("out/checkpoint-5/generation_config.json", 0.5);
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "checkpoint-5/generation_config.json is not what was saved"));
    assert_int_equal(unlink(in_scratch("out/checkpoint-12/generation_config.json")), 0);
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "checkpoint-12/generation_config.json"));
    assert_non_null(strstr(f.err, "training does not read it"));
}

static void hashes_that_were_there(void **state)
{
    (void)state;
    train_half();
    assert_int_equal(unlink(in_scratch("out/checkpoint-5/trireme_checksums.json")), 0);
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "has no trireme_checksums.json any more, with which it was"));
}

static void forget_checksums(const char *name)
{
    json_t *root = NULL;
    assert_int_equal(tri_json_load(in_scratch(name), &root), TRI_OK);
    assert_int_equal(json_object_del(root, "checksums"), 0);
    assert_int_equal(tri_json_save(in_scratch(name), root), TRI_OK);
    json_decref(root);
}

static void checkpoints_of_earlier_versions_are_believed(void **state)
{
    (void)state;
    train_half();
    assert_int_equal(unlink(in_scratch("out/checkpoint-5/trireme_checksums.json")), 0);
    forget_checksums("out/checkpoint-5/trainer_state.json");
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "has no trireme_checksums.json, as those of earlier versions"));
    assert_non_null(strstr(f.err, "resumed from"));
}

static void move_in_scratch(const char *from, const char *to)
{
    char path[PROGRAM_PATH];
    snprintf(path, sizeof path, "%s/%s", scratch, from);
    assert_int_equal(rename(path, in_scratch(to)), 0);
}

static void a_folder_with_the_name_of_another_step(void **state)
{
    (void)state;
    train_half();
    move_in_scratch("out/checkpoint-5", "out/checkpoint-6");
    project_run("train", NULL, NULL, &f);
    assert_one_error(&f, "checkpoint-6/trainer_state.json is of step 5");
    assert_one_error(&f, "rename it to checkpoint-5");
    move_in_scratch("out/checkpoint-6", "out/checkpoint-+6"); /* which is no name of ours */
    project_run("train", NULL, NULL, &f);
    assert_finished_well(&f);
    assert_non_null(strstr(f.err, "resumed from"));
    assert_non_null(strstr(f.err, "checkpoint-3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROJECT_TEST(every_file_of_a_resume_is_compared),
        PROJECT_TEST(several_ranks_compare_as_well),
        PROJECT_TEST(the_only_checkpoint_says_so),
        PROJECT_TEST(an_evaluation_compares),
        PROJECT_TEST(a_file_of_another_length),
        PROJECT_TEST(hashes_that_are_damaged_themselves),
        PROJECT_TEST(a_bit_of_the_hashes),
        PROJECT_TEST(files_that_a_resume_does_not_read),
        PROJECT_TEST(hashes_that_were_there),
        PROJECT_TEST(a_folder_with_the_name_of_another_step),
        PROJECT_TEST(checkpoints_of_earlier_versions_are_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
