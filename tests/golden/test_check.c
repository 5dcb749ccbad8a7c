/* The model is what Transformers says it is, on every golden folder and on what can be made of
 * one: shards, 16-bit weights, and folders that are damaged. */
#include "program.h"
#include "unit/ckpt/hf_fixture.h"

#include "comm/thread/thread.h"
#include "verify/check.h"

static struct finished f;

static const struct tri_pass_options *pass_options(void)
{
    static struct tri_pass_options options;
    if (options.backend == NULL)
        assert_int_equal(tri_option_defaults(&tri_pass_option_table, &options), TRI_OK);
    return &options;
}

/* What every rank does. */
struct rank_job {
    const char *folder;
    struct tri_check_way way;
    FILE *to;
    struct tri_check_result result; /* of the first rank */
};

static enum tri_status check_rank(struct tri_comm *world, void *ctx)
{
    struct rank_job *job = ctx;
    bool first = world == NULL || world->rank == 0;
    struct tri_check_result result;
    TRI_TRY(tri_check(job->folder, &job->way, world, first ? job->to : NULL, &result));
    if (first)
        job->result = result;
    return TRI_OK;
}

/* The table that `check` prints without its first line, which names the folder; NULL when it
 * fails. The caller frees it. */
static char *check_split(const char *folder, int ranks, int zero_stage, int64_t chunk_size,
                         struct tri_check_result *result)
{
    struct tri_pass_options options = *pass_options();
    char cpu[] = "cpu";
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    assert_non_null(memory);
    options.chunk_size = chunk_size;
    if (ranks > 1)
        options.backend = cpu; /* threads exchange host memory */
    struct rank_job job = {.folder = folder,
                           .way = {.pass = &options, .dtype = "float32", .zero_stage = zero_stage},
                           .to = memory};
    enum tri_status st =
        ranks > 1 ? tri_comm_threads_run(ranks, 100, check_rank, &job) : check_rank(NULL, &job);
    assert_int_equal(fclose(memory), 0);
    if (st != TRI_OK) {
        free(text);
        return NULL;
    }
    *result = job.result;
    size_t first = strcspn(text, "\n");
    memmove(text, text + first, bytes - first + 1);
    return text;
}

static char *check(const char *folder, struct tri_check_result *result)
{
    return check_split(folder, 1, 0, 0, result);
}

static void assert_split_within_bounds(const char *folder, int ranks, int zero_stage,
                                       int64_t chunk_size)
{
    struct tri_check_result result;
    char *table = check_split(folder, ranks, zero_stage, chunk_size, &result);
    if (table == NULL)
        fail_msg("%s: %s", folder, tri_error_text());
    if (result.failed != 0 || result.rows < 9)
        fail_msg("%s: %d ranks, zero %d: %d of %d over%s", folder, ranks, zero_stage, result.failed,
                 result.rows, table);
    free(table);
}

static void assert_within_bounds(const char *folder)
{
    assert_split_within_bounds(folder, 1, 0, 0);
}

static void all_folders_are_within_bounds(void **state)
{
    (void)state;
    int count = 0;
    DIR *dir = opendir(TEST_DATA "/golden");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char folder[PROGRAM_PATH], config[PROGRAM_PATH + 16];
        snprintf(folder, sizeof folder, TEST_DATA "/golden/%s", entry->d_name);
        snprintf(config, sizeof config, "%s/config.json", folder);
        if (entry->d_name[0] == '.' || !tri_path_exists(config))
            continue;
        assert_within_bounds(folder);
        /* The sequence over ranks, P dividing the heads and not, more ranks than heads; whole and
         * in chunks; each stage of what ranks divide among them on some folders. */
        static const struct {
            int ranks;
            int64_t chunk_size;
        } splits[] = {{2, 0}, {3, 37}, {4, 64}, {8, 0}};
        for (int i = 0; i < 4; i++)
            assert_split_within_bounds(folder, splits[i].ranks, (count + i) % 4,
                                       splits[i].chunk_size);
        count++;
    }
    closedir(dir);
    assert_true(count >= 10);
}

/* ---- the same model in other files ------------------------------------------------------------
 */

static const char source[] = TEST_DATA "/golden/llama_gqa";

static void copy_file(const char *from, const char *to, const char *name)
{
    char a[PROGRAM_PATH], b[PROGRAM_PATH];
    snprintf(a, sizeof a, "%s/%s", from, name);
    snprintf(b, sizeof b, "%s/%s", to, name);
    assert_int_equal(tri_file_copy(a, b), TRI_OK);
}

/* NAME/: the model of `from` written again, with the reference of the golden folder. */
static void put_variant(const char *from, const char *name, enum tri_dtype dtype, double shard)
{
    char to[PROGRAM_PATH];
    struct tri_model *model = open_model(source);
    struct flat flat = flat_open(model);
    const struct tri_hf_export how = {
        .source_folder = source, .dtype = dtype, .max_shard_bytes = shard};
    snprintf(to, sizeof to, "%s/%s", scratch, name);
    assert_int_equal(tri_make_folder(to), TRI_OK);
    load_ok(model, from, &flat);
    save_ok(model, to, &how, &flat);
    copy_file(source, to, "reference.json");
    copy_file(source, to, "reference.safetensors");
    free(flat.data);
    tri_model_close(model);
}

static void assert_same_tables(const char *a, const char *b)
{
    struct tri_check_result x, y;
    char *first = check(a, &x);
    char *second = check(b, &y);
    if (first == NULL || second == NULL)
        fail_msg("%s", tri_error_text());
    assert_string_equal(first, second);
    free(first);
    free(second);
}

static void shards_are_the_same_model(void **state)
{
    (void)state;
    put_variant(source, "shards", TRI_F32, 65536);
    assert_true(has("shards/model.safetensors.index.json"));
    assert_false(has("shards/model.safetensors"));
    assert_within_bounds(in_scratch("shards"));
    assert_same_tables(in_scratch("shards"), source);
}

/* 16-bit weights are wide ones of the same value. The reference is that of the weights before they
 * were rounded, so its bounds do not hold, but every number must agree with that of a float32 file
 * with the rounded weights. */
static void sixteen_bit_weights_are_their_values(void **state)
{
    (void)state;
    static const struct {
        enum tri_dtype dtype;
        const char *narrow, *wide;
    } cases[] = {{TRI_BF16, "bf16", "bf16 as float32"}, {TRI_F16, "f16", "f16 as float32"}};
    for (int i = 0; i < 2; i++) {
        char narrow[PROGRAM_PATH], wide[PROGRAM_PATH], file[PROGRAM_PATH + 32];
        struct tri_st *st = NULL;
        snprintf(narrow, sizeof narrow, "%s/%s", scratch, cases[i].narrow);
        snprintf(wide, sizeof wide, "%s/%s", scratch, cases[i].wide);
        put_variant(source, cases[i].narrow, cases[i].dtype, 0);
        put_variant(narrow, cases[i].wide, TRI_F32, 0);
        snprintf(file, sizeof file, "%s/model.safetensors", narrow);
        assert_int_equal(tri_st_open(file, &st), TRI_OK);
        assert_int_equal(tri_st_at(st, 0)->dtype, cases[i].dtype);
        tri_st_close(st);
        assert_same_tables(narrow, wide);

        /* The comparison can see rounding: the model before it has another table. */
        struct tri_check_result result;
        char *table = check(narrow, &result);
        char *unrounded = check(source, &result);
        assert_string_not_equal(table, unrounded);
        free(table);
        free(unrounded);
    }
}

/* ---- damaged folders --------------------------------------------------------------------------
 */

enum damage { DROP, RESHAPE, CHANGE_FIRST, RETYPE };

/* bad/: the golden folder with one tensor of its reference changed. */
static void put_damaged(const char *name, enum damage damage, int64_t value)
{
    char to[PROGRAM_PATH], from[PROGRAM_PATH];
    struct tri_st *st = NULL;
    struct tri_st_writer *writer = NULL;
    snprintf(to, sizeof to, "%s/bad", scratch);
    assert_int_equal(tri_make_folder(to), TRI_OK);
    copy_file(source, to, "config.json");
    copy_file(source, to, "model.safetensors");
    copy_file(source, to, "reference.json");
    snprintf(from, sizeof from, "%s/reference.safetensors", source);
    snprintf(to, sizeof to, "%s/bad/reference.safetensors", scratch);
    assert_int_equal(tri_st_open(from, &st), TRI_OK);
    assert_non_null(tri_st_find(st, name));

    struct tri_st_decl *decl = calloc((size_t)tri_st_count(st), sizeof *decl);
    assert_non_null(decl);
    int64_t n = 0;
    for (int64_t i = 0; i < tri_st_count(st); i++) {
        const struct tri_st_tensor *t = tri_st_at(st, i);
        bool hit = strcmp(t->name, name) == 0;
        if (hit && damage == DROP)
            continue;
        struct tri_st_decl d = {.name = t->name, .dtype = t->dtype, .num_dims = t->num_dims};
        memcpy(d.dim, t->dim, sizeof d.dim);
        if (hit && damage == RESHAPE) /* half the columns */
            d.dim[d.num_dims - 1] /= 2;
        if (hit && damage == RETYPE) /* as many bytes */
            d.dtype = t->dtype == TRI_I64 ? TRI_F64 : TRI_I32;
        decl[n++] = d;
    }
    assert_int_equal(tri_st_writer_open(to, decl, n, &writer), TRI_OK);
    for (int64_t i = 0; i < tri_st_count(st); i++) {
        const struct tri_st_tensor *t = tri_st_at(st, i);
        bool hit = strcmp(t->name, name) == 0;
        size_t bytes = t->bytes;
        if (hit && damage == DROP)
            continue;
        if (hit && damage == RESHAPE)
            bytes /= 2;
        if (hit && damage == CHANGE_FIRST) {
            assert_int_equal(tri_st_writer_append(writer, &value, sizeof value), TRI_OK);
            assert_int_equal(tri_st_writer_append(writer, (const char *)t->data + sizeof value,
                                                  bytes - sizeof value),
                             TRI_OK);
            continue;
        }
        assert_int_equal(tri_st_writer_append(writer, t->data, bytes), TRI_OK);
    }
    assert_int_equal(tri_st_writer_commit(writer), TRI_OK);
    free(decl);
    tri_st_close(st);
}

static void damaged(const char *name, enum damage damage, int64_t value, const char *part)
{
    struct tri_check_result result;
    put_damaged(name, damage, value);
    char *table = check(in_scratch("bad"), &result);
    if (table != NULL)
        fail_msg("damage to %s went unseen:%s", name, table);
    assert_error_has(part);
    assert_error_has(in_scratch("bad"));
}

static void damaged_references_are_errors(void **state)
{
    (void)state;
    static const char grad[] = "grad.model.layers.1.mlp.down_proj.weight";
    damaged(grad, DROP, 0, grad);
    damaged(grad, RESHAPE, 0, grad);
    damaged("logits", RESHAPE, 0, "logits");
    damaged("input_ids", DROP, 0, "input_ids");
    damaged("input_ids", RETYPE, 0, "input_ids");
    damaged("input_ids", CHANGE_FIRST, 320, "320");
    damaged("input_ids", CHANGE_FIRST, -1, "-1");
    damaged("labels", CHANGE_FIRST, 320, "320");
    damaged("labels", RESHAPE, 0, "labels");
    damaged("position_ids", DROP, 0, "position_ids");
    damaged("shift_labels", CHANGE_FIRST, 7, "shift_labels[0] is 7");
    damaged("shift_labels", DROP, 0, "shift_labels");
}

/* bad/reference.json with one member replaced. */
static void put_numbers(const char *name, json_t *value)
{
    char path[PROGRAM_PATH];
    json_t *root = NULL;
    put_damaged("logits", DROP, 0);
    snprintf(path, sizeof path, "%s/bad/reference.json", scratch);
    assert_int_equal(tri_json_load(path, &root), TRI_OK);
    if (value == NULL)
        assert_int_equal(json_object_del(root, name), 0);
    else
        assert_int_equal(json_object_set_new(root, name, value), 0);
    assert_int_equal(tri_json_save(path, root), TRI_OK);
    json_decref(root);
}

static void assert_unreadable(const char *part)
{
    struct tri_check_result result;
    char *table = check(in_scratch("bad"), &result);
    assert_null(table);
    assert_error_has(part);
}

static void damaged_numbers_are_errors(void **state)
{
    (void)state;
    put_numbers("losses", NULL);
    assert_unreadable("'losses'");
    put_numbers("losses", json_pack("[f]", 5.0));
    assert_unreadable("'losses'");
    put_numbers("grad_norms", json_pack("[f,f,s]", 1.0, 1.0, "one"));
    assert_unreadable("'grad_norms'");
    put_numbers("hyper", json_object());
    assert_unreadable("reference.json");
    put_text(in_scratch("bad/reference.json"), "{");
    assert_unreadable("reference.json");
}

/* ---- the verb ---------------------------------------------------------------------------------
 */

static void run_check(const char *a, const char *b)
{
    const char *const args[] = {"check", a, b, NULL};
    program_run(NULL, args, &f);
}

static void the_verb_says_so(void **state)
{
    (void)state;
    run_check(source, TEST_DATA "/golden/qwen3");
    assert_finished_well(&f);
    assert_null(strstr(f.out, "OVER"));
    assert_non_null(strstr(f.out, "worst gradient"));
    assert_non_null(strstr(f.out, "qwen3"));
}

/* A reference that is off by twice the bound: the row is marked, the exit code 1, no error. */
static void a_wrong_number_is_exit_code_1(void **state)
{
    (void)state;
    char path[PROGRAM_PATH];
    json_t *root = NULL;
    snprintf(path, sizeof path, "%s/reference.json", source);
    assert_int_equal(tri_json_load(path, &root), TRI_OK);
    json_t *losses = json_deep_copy(json_object_get(root, "losses"));
    json_decref(root);
    double loss = json_number_value(json_array_get(losses, 1));
    assert_int_equal(json_array_set_new(losses, 1, json_real(loss * (1 + 2e-5))), 0);
    put_numbers("losses", losses);
    run_check(in_scratch("bad"), source);
    assert_int_equal(f.code, 1);
    assert_string_equal(f.err, "");
    const char *row = strstr(f.out, "loss before step 2");
    assert_non_null(row);
    assert_non_null(strstr(row, "OVER"));
    assert_true(strstr(row, "OVER") < strchr(row, '\n'));
    /* The rest is fine, and the second folder was checked all the same. */
    assert_null(strstr(strstr(row, "OVER") + 1, "OVER"));
    assert_non_null(strstr(f.out, "golden/llama_gqa"));
}

static void errors_of_the_verb(void **state)
{
    (void)state;
    run_check(in_scratch("nowhere"), NULL);
    assert_one_error(&f, "nowhere");
    put_damaged("grad.lm_head.weight", DROP, 0);
    run_check(in_scratch("bad"), NULL);
    assert_one_error(&f, "grad.lm_head.weight");
    run_check(NULL, NULL);
    assert_one_error(&f, "a golden folder is missing");
    const char *const args[] = {"check", source, "--cpu_kernel", "reference", NULL};
    program_run(NULL, args, &f);
    assert_one_error(&f, "--cpu_kernel");
    const char *const stage[] = {"check", source, "--zero", "4", NULL};
    program_run(NULL, stage, &f);
    assert_one_error(&f, "--zero: 4: 0 to 3 are possible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(all_folders_are_within_bounds),
        SCRATCH_TEST(shards_are_the_same_model),
        SCRATCH_TEST(sixteen_bit_weights_are_their_values),
        SCRATCH_TEST(damaged_references_are_errors),
        SCRATCH_TEST(damaged_numbers_are_errors),
        SCRATCH_TEST(the_verb_says_so),
        SCRATCH_TEST(a_wrong_number_is_exit_code_1),
        SCRATCH_TEST(errors_of_the_verb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
