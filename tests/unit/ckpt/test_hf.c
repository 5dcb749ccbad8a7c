#include "unit/scratch.h"

#include <math.h>

#include "base/json.h"
#include "ckpt/hf.h"
#include "tensor/half.h"

/* Parameters as one flat buffer, laid out as the model says. */
struct flat {
    const struct tri_model *model;
    float *data;    /* (num_elements) */
    int64_t rows;   /* handed over */
    int64_t values; /* likewise */
};

static int64_t width_of(const struct tri_model *model, int param)
{
    return model->params[param].num_dims == 2 ? model->params[param].dim[1] : 1;
}

static enum tri_status put_rows(void *ctx, int param, int64_t row, int64_t rows, const float *data)
{
    struct flat *flat = ctx;
    int64_t width = width_of(flat->model, param);
    assert_true(row >= 0 && rows > 0 && row + rows <= flat->model->params[param].dim[0]);
    memcpy(flat->data + flat->model->params[param].offset + row * width, data,
           (size_t)(rows * width) * sizeof *data);
    flat->rows += rows;
    flat->values += rows * width;
    return TRI_OK;
}

static enum tri_status get_rows(void *ctx, int param, int64_t row, int64_t rows, float *data)
{
    struct flat *flat = ctx;
    int64_t width = width_of(flat->model, param);
    assert_true(row >= 0 && rows > 0 && row + rows <= flat->model->params[param].dim[0]);
    memcpy(data, flat->data + flat->model->params[param].offset + row * width,
           (size_t)(rows * width) * sizeof *data);
    return TRI_OK;
}

static struct flat flat_open(const struct tri_model *model)
{
    struct flat flat = {.model = model};
    flat.data = calloc((size_t)model->num_elements, sizeof *flat.data);
    assert_non_null(flat.data);
    return flat;
}

static struct tri_model *open_model(const char *folder)
{
    char *path = tri_path_join(folder, "config.json");
    struct tri_model *model = NULL;
    if (tri_model_open(path, NULL, &model) != TRI_OK)
        fail_msg("%s", tri_error_text());
    free(path);
    return model;
}

static char *golden(const char *name)
{
    return tri_path_join(TEST_DATA "/golden", name);
}

static void load_ok(const struct tri_model *model, const char *folder, struct flat *flat)
{
    if (tri_hf_load(model, folder, put_rows, flat) != TRI_OK)
        fail_msg("%s", tri_error_text());
    assert_int_equal(flat->values, model->num_weights);
}

static void save_ok(const struct tri_model *model, const char *folder,
                    const struct tri_hf_export *how, struct flat *flat)
{
    if (tri_hf_save(model, folder, how, get_rows, flat) != TRI_OK)
        fail_msg("%s", tri_error_text());
}

static json_t *load_json(const char *path)
{
    json_t *value = NULL;
    if (tri_json_load(path, &value) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return value;
}

static void assert_json_text(const json_t *object, const char *key, const char *expected)
{
    assert_string_equal(json_string_value(json_object_get(object, key)), expected);
}

static void assert_same_tensors(const char *a, const char *b)
{
    struct tri_st *x = NULL, *y = NULL;
    assert_int_equal(tri_st_open(a, &x), TRI_OK);
    assert_int_equal(tri_st_open(b, &y), TRI_OK);
    assert_int_equal(tri_st_count(x), tri_st_count(y));
    for (int64_t i = 0; i < tri_st_count(x); i++) {
        const struct tri_st_tensor *t = tri_st_at(x, i), *u = tri_st_at(y, i);
        assert_string_equal(t->name, u->name);
        assert_int_equal(t->dtype, u->dtype);
        assert_int_equal(t->num_dims, u->num_dims);
        assert_memory_equal(t->dim, u->dim, sizeof t->dim);
        assert_memory_equal(t->data, u->data, t->bytes);
    }
    tri_st_close(x);
    tri_st_close(y);
}

static const char *const golden_names[] = {"gpt_neox",
                                           "gpt_neox_sequential",
                                           "llama3_rope_packed",
                                           "llama_gqa",
                                           "llama_mqa",
                                           "llama_tied_batch2",
                                           "llama_yarn",
                                           "mistral_window",
                                           "phi3",
                                           "qwen2",
                                           "qwen3"};

/* --- weights --- */

/* In, out, and every tensor is the same again; with and without shards. */
static void round_trips(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden_names / sizeof golden_names[0]; i++) {
        char *source = golden(golden_names[i]);
        struct tri_model *model = open_model(source);
        struct flat flat = flat_open(model);
        load_ok(model, source, &flat);
        struct tri_hf_export how = {.source_folder = source, .dtype = TRI_F32};
        save_ok(model, scratch, &how, &flat);
        assert_true(tri_path_exists(in_scratch("model.safetensors")));
        assert_same_tensors(source, scratch);

        how.max_shard_bytes = 100000;
        save_ok(model, scratch, &how, &flat);
        assert_false(tri_path_exists(in_scratch("model.safetensors")));
        assert_same_tensors(source, scratch);

        struct tri_model *again = open_model(scratch);
        assert_memory_equal(&again->arch.rope, &model->arch.rope, sizeof model->arch.rope);
        assert_int_equal(again->num_weights, model->num_weights);
        tri_model_close(again);
        tri_model_close(model);
        free(flat.data);
        free(source);
    }
}

static void shards_and_their_index(void **state)
{
    (void)state;
    char *source = golden("llama_gqa");
    struct tri_model *model = open_model(source);
    struct flat flat = flat_open(model);
    load_ok(model, source, &flat);
    struct tri_hf_export how = {
        .source_folder = source, .dtype = TRI_F32, .max_shard_bytes = 200000};
    save_ok(model, scratch, &how, &flat);

    json_t *index = load_json(in_scratch("model.safetensors.index.json"));
    const json_t *map = json_object_get(index, "weight_map");
    assert_int_equal(json_object_size(map), model->num_hf);
    json_int_t total =
        json_integer_value(json_object_get(json_object_get(index, "metadata"), "total_size"));
    assert_int_equal(total, model->num_weights * 4);
    int shards = 0;
    sscanf(json_string_value(json_object_get(map, model->hf[0].name)),
           "model-00001-of-%05d.safetensors", &shards);
    assert_in_range(shards, 3, 5);
    for (int s = 1; s <= shards; s++) {
        char name[64];
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", s, shards);
        struct tri_st *st = NULL;
        assert_int_equal(tri_st_open(in_scratch(name), &st), TRI_OK);
        size_t bytes = 0;
        for (int64_t i = 0; i < tri_st_count(st); i++) {
            const struct tri_st_tensor *t = tri_st_at(st, i);
            bytes += t->bytes;
            assert_json_text(map, t->name, name);
        }
        assert_true(bytes <= 200000);
        tri_st_close(st);
    }
    json_decref(index);

    /* A later save with other shards leaves none of these behind. */
    how.max_shard_bytes = 50000;
    save_ok(model, scratch, &how, &flat);
    assert_same_tensors(source, scratch);
    how.max_shard_bytes = 0;
    save_ok(model, scratch, &how, &flat);
    assert_same_tensors(source, scratch);
    assert_int_equal(count_entries(scratch), 3); /* weights, config, generation_config */
    tri_model_close(model);
    free(flat.data);
    free(source);
}

/* BF16 and F16 out and in again lose exactly what the rounding loses; F64 narrows. */
static void converts_dtypes(void **state)
{
    (void)state;
    char *source = golden("qwen2");
    struct tri_model *model = open_model(source);
    struct flat flat = flat_open(model), back = flat_open(model);
    load_ok(model, source, &flat);
    static const enum tri_dtype dtypes[] = {TRI_BF16, TRI_F16};
    for (size_t d = 0; d < 2; d++) {
        struct tri_hf_export how = {.source_folder = source, .dtype = dtypes[d]};
        save_ok(model, scratch, &how, &flat);
        back.values = 0;
        load_ok(model, scratch, &back);
        for (int64_t i = 0; i < model->num_elements; i++) {
            float expected = d == 0 ? tri_bf16_to_float(tri_bf16_from_float(flat.data[i]))
                                    : tri_f16_to_float(tri_f16_from_float(flat.data[i]));
            assert_true(back.data[i] == expected);
        }
        json_t *config = load_json(in_scratch("config.json"));
        assert_json_text(config, "dtype", d == 0 ? "bfloat16" : "float16");
        assert_null(json_object_get(config, "torch_dtype"));
        json_decref(config);
    }
    struct tri_hf_export how = {.source_folder = source, .dtype = TRI_I32};
    assert_int_equal(tri_hf_save(model, scratch, &how, get_rows, &flat), TRI_INVALID);
    tri_model_close(model);
    free(flat.data);
    free(back.data);
    free(source);
}

/* Rows of [head][q, k, v] become q, then k, then v. The expected places are written out by hand. */
static void scatters_and_gathers_fused_qkv(void **state)
{
    (void)state;
    enum { HEADS = 2, D = 3, E = 4, ROWS = 3 * HEADS * D };
    struct tri_param params[] = {{.role = TRI_QKV_W, .num_dims = 2, .dim = {ROWS, E}}};
    struct tri_hf_tensor hf[] = {{.name = "qkv",
                                  .num_dims = 2,
                                  .dim = {ROWS, E},
                                  .num_parts = 3,
                                  .part = {{0, 0 * D, 3 * D, 0, D, D, HEADS},
                                           {0, 1 * D, 3 * D, HEADS * D, D, D, HEADS},
                                           {0, 2 * D, 3 * D, 2 * HEADS * D, D, D, HEADS}}}};
    struct tri_model model = {.params = params,
                              .num_params = 1,
                              .num_elements = ROWS * E,
                              .num_weights = ROWS * E,
                              .hf = hf,
                              .num_hf = 1};
    float data[ROWS * E], back[ROWS * E];
    for (int i = 0; i < ROWS * E; i++)
        data[i] = (float)i;
    struct flat flat = flat_open(&model);
    assert_int_equal(tri_hf_scatter(&model, 0, data, put_rows, &flat), TRI_OK);
    assert_int_equal(flat.rows, ROWS);
    static const int source_row[ROWS] = {0,  1,  2,  9, 10, 11, 3,  4,  5,
                                         12, 13, 14, 6, 7,  8,  15, 16, 17};
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < E; c++)
            assert_true(flat.data[r * E + c] == (float)(source_row[r] * E + c));
    assert_int_equal(tri_hf_gather(&model, 0, get_rows, &flat, back), TRI_OK);
    assert_memory_equal(back, data, sizeof data);
    free(flat.data);
}

/* Tensors larger than a piece travel in several. */
static void pieces_of_large_tensors(void **state)
{
    (void)state;
    enum { ROWS = 3000, E = 1001, SPLIT = 1700 };
    struct tri_param params[] = {{.role = TRI_QKV_W, .num_dims = 2, .dim = {ROWS, E}}};
    struct tri_hf_tensor hf[] = {{.name = "w", .num_dims = 2, .dim = {ROWS, E}, .num_parts = 2}};
    hf[0].part[0] = (struct tri_hf_part){
        .param = 0, .src_row = 0, .dst_row = ROWS - SPLIT, .rows = SPLIT, .blocks = 1};
    hf[0].part[1] = (struct tri_hf_part){
        .param = 0, .src_row = SPLIT, .dst_row = 0, .rows = ROWS - SPLIT, .blocks = 1};
    struct tri_model model = {.arch = {.class_name = "X"},
                              .params = params,
                              .num_params = 1,
                              .num_elements = (int64_t)ROWS * E,
                              .num_weights = (int64_t)ROWS * E,
                              .hf = hf,
                              .num_hf = 1};
    struct flat flat = flat_open(&model), back = flat_open(&model);
    for (int64_t i = 0; i < model.num_elements; i++)
        flat.data[i] = (float)(i % 251);
    put_text(in_scratch("config.json"), "{}");
    struct tri_hf_export how = {.source_folder = scratch, .dtype = TRI_BF16};
    save_ok(&model, scratch, &how, &flat);
    load_ok(&model, scratch, &back);
    assert_memory_equal(back.data, flat.data, (size_t)model.num_elements * sizeof(float));

    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(scratch, &st), TRI_OK);
    const uint16_t *first = tri_st_find(st, "w")->data;
    assert_true(tri_bf16_to_float(first[0]) == flat.data[(ROWS - SPLIT) * E]);
    tri_st_close(st);
    free(flat.data);
    free(back.data);
}

/* --- what does not fit --- */

/* Write the tensors of a folder, changed by `edit`, as scratch/model.safetensors. An edit returns
 * false to leave a tensor out, and may change its description. */
static void put_edited(const char *source, bool (*edit)(struct tri_st_decl *decl),
                       const struct tri_st_decl *more, int num_more)
{
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(source, &st), TRI_OK);
    struct tri_st_decl decl[128];
    const void *data[128];
    size_t bytes[128];
    int count = 0;
    static const unsigned char zero[1 << 17];
    for (int64_t i = 0; i < tri_st_count(st); i++) {
        const struct tri_st_tensor *t = tri_st_at(st, i);
        decl[count] = (struct tri_st_decl){t->name, t->dtype, t->num_dims, {t->dim[0], t->dim[1]}};
        if (edit != NULL && !edit(&decl[count]))
            continue;
        data[count++] = t->data;
    }
    for (int i = 0; i < num_more; i++) {
        decl[count] = more[i];
        data[count++] = zero;
    }
    for (int i = 0; i < count; i++) {
        bytes[i] = tri_dtype_bytes(decl[i].dtype);
        for (int d = 0; d < decl[i].num_dims; d++)
            bytes[i] *= (size_t)decl[i].dim[d];
    }
    struct tri_st_writer *writer = NULL;
    assert_int_equal(tri_st_writer_open(in_scratch("model.safetensors"), decl, count, &writer),
                     TRI_OK);
    for (int i = 0; i < count; i++)
        assert_int_equal(tri_st_writer_append(writer, data[i], bytes[i]), TRI_OK);
    assert_int_equal(tri_st_writer_commit(writer), TRI_OK);
    tri_st_close(st);
}

static enum tri_status sink_nothing_expected(void *ctx, int param, int64_t row, int64_t rows,
                                             const float *data)
{
    (void)ctx, (void)param, (void)row, (void)rows, (void)data;
    fail_msg("rows were handed over");
    return TRI_INTERNAL;
}

static void load_fails(const char *name, enum tri_status expected, const char *part)
{
    char *source = golden(name);
    struct tri_model *model = open_model(source);
    assert_int_equal(tri_hf_load(model, scratch, sink_nothing_expected, NULL), expected);
    assert_error_has(scratch);
    assert_error_has(part);
    tri_model_close(model);
    free(source);
}

static bool drop_k_proj(struct tri_st_decl *decl)
{
    return strcmp(decl->name, "model.layers.1.self_attn.k_proj.weight") != 0;
}

static bool drop_layer_one(struct tri_st_decl *decl)
{
    return strncmp(decl->name, "model.layers.1.", 15) != 0;
}

static bool transpose_k_proj(struct tri_st_decl *decl)
{
    if (!drop_k_proj(decl)) {
        int64_t rows = decl->dim[0];
        decl->dim[0] = decl->dim[1];
        decl->dim[1] = rows;
    }
    return true;
}

static bool flatten_k_proj(struct tri_st_decl *decl)
{
    if (!drop_k_proj(decl)) {
        decl->num_dims = 1;
        decl->dim[0] *= decl->dim[1];
    }
    return true;
}

static bool make_k_proj_integer(struct tri_st_decl *decl)
{
    if (!drop_k_proj(decl))
        decl->dtype = TRI_I32;
    return true;
}

static void names_what_does_not_fit(void **state)
{
    (void)state;
    char *source = golden("llama_gqa");
    put_edited(source, drop_k_proj, NULL, 0);
    load_fails("llama_gqa", TRI_INVALID,
               "1 of the 21 tensors that config.json asks for is missing: "
               "model.layers.1.self_attn.k_proj.weight");
    put_edited(source, drop_layer_one, NULL, 0);
    load_fails("llama_gqa", TRI_INVALID,
               "9 of the 21 tensors that config.json asks for are missing");
    assert_error_has("model.layers.1.");
    assert_error_has(", ...");

    put_edited(source, transpose_k_proj, NULL, 0);
    load_fails("llama_gqa", TRI_INVALID,
               "tensor model.layers.1.self_attn.k_proj.weight has shape [64, 16], but config.json "
               "asks for [16, 64]");
    put_edited(source, flatten_k_proj, NULL, 0);
    load_fails("llama_gqa", TRI_INVALID, "has shape [1024], but config.json asks for [16, 64]");
    put_edited(source, make_k_proj_integer, NULL, 0);
    load_fails("llama_gqa", TRI_UNSUPPORTED,
               "tensor model.layers.1.self_attn.k_proj.weight is int32");

    const struct tri_st_decl more[] = {{"z1", TRI_F32, 1, {4}},
                                       {"z2", TRI_F32, 1, {4}},
                                       {"z3", TRI_F32, 1, {4}},
                                       {"z4", TRI_F32, 1, {4}}};
    put_edited(source, NULL, more, 1);
    load_fails("llama_gqa", TRI_INVALID, "1 tensor has no place in the model");
    put_edited(source, NULL, more, 4);
    load_fails("llama_gqa", TRI_INVALID,
               "4 tensors have no place in the model that config.json describes: z1, z2, z3, ...");
    put_edited(source, drop_k_proj, more, 4);
    load_fails("llama_gqa", TRI_INVALID,
               "1 missing (model.layers.1.self_attn.k_proj.weight), 4 without a place in the model "
               "(z1, z2, z3, ...)");
    free(source);

    /* A head that the config wants but the file lacks, since the model was tied. */
    source = golden("llama_tied_batch2");
    put_edited(source, NULL, NULL, 0);
    free(source);
    load_fails("llama_mqa", TRI_INVALID, "missing: lm_head.weight");
}

static void tolerates_buffers(void **state)
{
    (void)state;
    char *source = golden("llama_gqa");
    struct tri_model *model = open_model(source);
    struct flat flat = flat_open(model);
    const struct tri_st_decl inv_freq = {
        "model.layers.0.self_attn.rotary_emb.inv_freq", TRI_F32, 1, {8}};
    put_edited(source, NULL, &inv_freq, 1);
    load_ok(model, scratch, &flat);
    tri_model_close(model);
    free(flat.data);
    free(source);

    source = golden("gpt_neox");
    model = open_model(source);
    flat = flat_open(model);
    const struct tri_st_decl mask[] = {
        {"gpt_neox.layers.0.attention.bias", TRI_U8, 4, {1, 1, 16, 16}},
        {"gpt_neox.layers.0.attention.masked_bias", TRI_F32, 0, {0}},
        {"gpt_neox.layers.0.attention.rotary_emb.inv_freq", TRI_F32, 1, {2}}};
    put_edited(source, NULL, mask, 3);
    load_ok(model, scratch, &flat);
    tri_model_close(model);
    free(flat.data);
    free(source);

    /* Such a bias means something in other families. */
    source = golden("llama_gqa");
    put_edited(source, NULL, mask, 1);
    load_fails("llama_gqa", TRI_INVALID, "gpt_neox.layers.0.attention.bias");
    free(source);
}

/* A tied head that is written out must be the embedding, and is not written again. */
static void tied_heads(void **state)
{
    (void)state;
    char *source = golden("llama_tied_batch2");
    struct tri_model *model = open_model(source);
    struct tri_st *st = NULL;
    assert_int_equal(tri_st_open(source, &st), TRI_OK);
    const struct tri_st_tensor *embed = tri_st_find(st, "model.embed_tokens.weight");
    struct tri_st_decl head = {"lm_head.weight", TRI_F32, 2, {embed->dim[0], embed->dim[1]}};
    tri_st_close(st);

    put_edited(source, NULL, &head, 1);
    load_fails("llama_tied_batch2", TRI_INVALID,
               "lm_head.weight differs from model.embed_tokens.weight");
    assert_error_has("tie_word_embeddings");

    /* All zero, embedding and head are the same. */
    struct flat flat = flat_open(model);
    struct tri_hf_export how = {.source_folder = source, .dtype = TRI_F32};
    save_ok(model, scratch, &how, &flat);
    assert_int_equal(tri_make_folder(in_scratch("tied")), TRI_OK);
    assert_int_equal(rename(in_scratch("model.safetensors"), in_scratch("tied/model.safetensors")),
                     0);
    put_edited(in_scratch("tied"), NULL, &head, 1);
    load_ok(model, scratch, &flat);
    save_ok(model, scratch, &how, &flat);
    assert_int_equal(tri_st_open(scratch, &st), TRI_OK);
    assert_null(tri_st_find(st, "lm_head.weight"));
    assert_int_equal(tri_st_count(st), model->num_hf);
    tri_st_close(st);
    tri_model_close(model);
    free(flat.data);
    free(source);
}

/* --- saving: configuration, companions, failures --- */

static const char *const old_config =
    "{\"model_type\": \"llama\", \"hidden_size\": 8, \"intermediate_size\": 16,"
    " \"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1,"
    " \"vocab_size\": 11, \"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-06,"
    " \"rope_theta\": 10000.0, \"torch_dtype\": \"float32\", \"tie_word_embeddings\": false,"
    " \"bos_token_id\": 1, \"eos_token_id\": [2, 3], \"use_cache\": false}";

static char source_folder[4400], out_folder[4400], no_folder[4400];

/* The source folder of the tests below, with random-looking weights. */
static struct tri_model *put_source(struct flat *flat)
{
    snprintf(source_folder, sizeof source_folder, "%s/source", scratch);
    snprintf(out_folder, sizeof out_folder, "%s/out", scratch);
    snprintf(no_folder, sizeof no_folder, "%s/none", scratch);
    assert_int_equal(tri_make_folder(source_folder), TRI_OK);
    assert_int_equal(tri_make_folder(out_folder), TRI_OK);
    put_text(in_scratch("source/config.json"), old_config);
    struct tri_model *model = open_model(in_scratch("source"));
    *flat = flat_open(model);
    for (int64_t i = 0; i < model->num_elements; i++)
        flat->data[i] = (float)(i * 37 % 101) / 64 - 0.7f;
    return model;
}

static void writes_the_configuration(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    json_t *overrides =
        json_pack("{s:i, s:{s:s, s:f, s:f}}", "max_position_embeddings", 128, "rope_parameters",
                  "rope_type", "linear", "factor", 2.0, "rope_theta", 10000.0);
    struct tri_hf_export how = {
        .source_folder = source_folder, .config_overrides = overrides, .dtype = TRI_BF16};
    save_ok(model, out_folder, &how, &flat);

    json_t *config = load_json(in_scratch("out/config.json"));
    assert_json_text(config, "torch_dtype", "bfloat16");
    assert_null(json_object_get(config, "dtype"));
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(config, "architectures"), 0)),
        "LlamaForCausalLM");
    assert_int_equal(json_integer_value(json_object_get(config, "max_position_embeddings")), 128);
    assert_true(json_is_false(json_object_get(config, "use_cache")));
    json_decref(config);

    struct tri_model *again = open_model(in_scratch("out"));
    assert_int_equal(again->arch.rope.type, TRI_ROPE_LINEAR);
    assert_true(again->arch.rope.factor == 2.0);
    assert_int_equal(again->arch.max_positions, 128);
    tri_model_close(again);

    json_t *generation = load_json(in_scratch("out/generation_config.json"));
    assert_int_equal(json_integer_value(json_object_get(generation, "bos_token_id")), 1);
    assert_int_equal(json_array_size(json_object_get(generation, "eos_token_id")), 2);
    assert_null(json_object_get(generation, "pad_token_id"));
    json_decref(generation);
    json_decref(overrides);
    tri_model_close(model);
    free(flat.data);
}

static void carries_files_over(void **state)
{
    (void)state;
    static const char *const names[] = {
        "generation_config.json",  "tokenizer.json",      "tokenizer_config.json",
        "special_tokens_map.json", "vocab.json",          "merges.txt",
        "tokenizer.model",         "chat_template.jinja", "added_tokens.json"};
    enum { COUNT = sizeof names / sizeof names[0] };
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    char path[128];
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "source/%s", names[i]);
        put_text(in_scratch(path), names[i]); /* not even JSON: carried over as bytes */
    }
    put_text(in_scratch("source/README.md"), "not ours to copy");
    struct tri_hf_export how = {.source_folder = source_folder, .dtype = TRI_F32};
    save_ok(model, out_folder, &how, &flat);
    for (int i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "out/%s", names[i]);
        assert_file_is(in_scratch(path), names[i]);
    }
    assert_int_equal(count_entries(in_scratch("out")), COUNT + 2); /* config, weights */

    /* Saving over the source itself. */
    how.source_folder = out_folder;
    save_ok(model, out_folder, &how, &flat);
    assert_file_is(in_scratch("out/tokenizer.json"), "tokenizer.json");
    assert_int_equal(count_entries(in_scratch("out")), COUNT + 2);
    tri_model_close(model);
    free(flat.data);
}

/* The files of an earlier save, for comparison. */
static void assert_out_is_old(void)
{
    assert_int_equal(count_entries(in_scratch("out")), 2);
    assert_file_is(in_scratch("out/model.safetensors"), "old weights");
    assert_file_is(in_scratch("out/config.json"), "old config");
}

static void put_old_out(void)
{
    put_text(in_scratch("out/model.safetensors"), "old weights");
    put_text(in_scratch("out/config.json"), "old config");
}

/* Whichever write meets the full disk, the folder stays as it was. */
static void full_disk_changes_nothing(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    put_text(in_scratch("source/tokenizer.json"), "{}");
    struct tri_hf_export how = {
        .source_folder = source_folder, .dtype = TRI_F32, .max_shard_bytes = 1000};
    int failures = 0;
    put_old_out();
    for (;; failures++) {
        assert_true(failures < 20);
        tri_file_fail_at(failures + 1);
        enum tri_status st = tri_hf_save(model, out_folder, &how, get_rows, &flat);
        tri_file_fail_at(0);
        if (st == TRI_OK)
            break;
        assert_int_equal(st, TRI_IO);
        assert_error_has("No space left on device: free space or choose another output_dir");
        assert_out_is_old();
    }
    assert_in_range(failures, 6, 12); /* shards, index, tokenizer, generation and config */
    struct flat back = flat_open(model);
    load_ok(model, in_scratch("out"), &back);
    for (int p = 0; p < model->num_params; p++) /* the padding between parameters is not saved */
        assert_memory_equal(back.data + model->params[p].offset,
                            flat.data + model->params[p].offset,
                            (size_t)(model->params[p].dim[0] * width_of(model, p)) * sizeof(float));
    tri_model_close(model);
    free(flat.data);
    free(back.data);
}

static void refuses_weights_that_are_not_finite(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    put_old_out();
    int last = model->hf[model->num_hf - 1].part[0].param;
    float *weight = &flat.data[model->params[last].offset + 3 * width_of(model, last) + 1];
    struct tri_hf_export how = {.source_folder = source_folder, .dtype = TRI_F32};

    *weight = NAN;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("lm_head.weight holds nan in row 3");
    assert_out_is_old();
    how.dtype = TRI_BF16;
    *weight = -INFINITY;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("lm_head.weight holds -inf in row 3");

    /* Finite, but not in the dtype that is asked for. */
    *weight = 3.4e38f;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("holds 3.4e+38 in row 3, which is beyond bfloat16: save as float32");
    how.dtype = TRI_F16;
    *weight = 65520;
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_NONFINITE);
    assert_error_has("holds 65520 in row 3, which is beyond float16");
    assert_out_is_old();
    *weight = 65500;
    save_ok(model, out_folder, &how, &flat);
    tri_model_close(model);
    free(flat.data);
}

/* A source that was read at the start is all that a save needs of it. */
static void saving_outlives_the_source(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_hf_source *kept = NULL;
    struct tri_model *model = put_source(&flat);
    assert_int_equal(tri_hf_source_open(source_folder, &kept), TRI_OK);
    assert_int_equal(tri_remove_folder(source_folder), TRI_OK);
    struct tri_hf_export how = {.source = kept, .source_folder = source_folder, .dtype = TRI_F32};
    save_ok(model, out_folder, &how, &flat);
    struct tri_hf_source *again = NULL;
    assert_int_equal(tri_hf_source_open(out_folder, &again), TRI_OK);
    for (int i = 1; i < TRI_HF_SOURCE_FILES; i++)
        if (kept->file[i].data != NULL) {
            assert_int_equal(again->file[i].bytes, kept->file[i].bytes);
            assert_memory_equal(again->file[i].data, kept->file[i].data, kept->file[i].bytes);
        }
    tri_hf_source_close(again);
    tri_hf_source_close(kept);
    tri_model_close(model);
    free(flat.data);
}

static void saving_needs_a_source_and_a_folder(void **state)
{
    (void)state;
    struct flat flat;
    struct tri_model *model = put_source(&flat);
    struct tri_hf_export how = {.source_folder = no_folder, .dtype = TRI_F32};
    assert_int_equal(tri_hf_save(model, out_folder, &how, get_rows, &flat), TRI_IO);
    assert_error_has("none/config.json");
    assert_int_equal(count_entries(in_scratch("out")), 0);
    how.source_folder = source_folder;
    assert_int_equal(tri_hf_save(model, in_scratch("nowhere"), &how, get_rows, &flat), TRI_IO);
    assert_error_has("nowhere/model.safetensors: No such file or directory: choose another");
    tri_model_close(model);
    free(flat.data);
}

/* --- finding --- */

static void find_fails(const char *name, enum tri_status expected, const char *part)
{
    char *folder = NULL;
    assert_int_equal(tri_hf_find(name, &folder), expected);
    assert_null(folder);
    assert_error_has(name);
    assert_error_has(part);
}

static void finds_folders(void **state)
{
    (void)state;
    put_text(in_scratch("config.json"), "{}");
    char *folder = NULL;
    assert_int_equal(tri_hf_find(scratch, &folder), TRI_OK);
    assert_string_equal(folder, scratch);
    free(folder);
    assert_int_equal(tri_make_folder(in_scratch("empty")), TRI_OK);
    find_fails(in_scratch("empty"), TRI_IO, "has no config.json");
    find_fails(in_scratch("config.json"), TRI_INVALID, "is a file");
    find_fails(in_scratch("none"), TRI_IO, "there is no such folder");
    find_fails("./none", TRI_IO, "not a hub id");
    find_fails("../none", TRI_IO, "not a hub id");
    find_fails("a/../b", TRI_IO, "not a hub id");
    find_fails("a/b/c", TRI_IO, "not a hub id");
    find_fails("a/", TRI_IO, "not a hub id");
    find_fails("a b", TRI_IO, "not a hub id");
    find_fails("no-such-model", TRI_IO, "give the folder's path, or ORG/NAME");
}

static void put_snapshot(const char *cache, const char *id, bool with_config)
{
    char path[256];
    snprintf(path, sizeof path, "%s/models--%s/snapshots/abc123", cache, id);
    assert_int_equal(tri_make_folder(in_scratch(path)), TRI_OK);
    if (with_config) {
        snprintf(path, sizeof path, "%s/models--%s/snapshots/abc123/config.json", cache, id);
        put_text(in_scratch(path), "{}");
    }
    snprintf(path, sizeof path, "%s/models--%s/refs", cache, id);
    assert_int_equal(tri_make_folder(in_scratch(path)), TRI_OK);
    snprintf(path, sizeof path, "%s/models--%s/refs/main", cache, id);
    put_text(in_scratch(path), "abc123\n");
}

static void finds_hub_ids(void **state)
{
    (void)state;
    put_snapshot("direct", "org--name", true);
    put_snapshot("home/hub", "org--in-home", true);
    put_snapshot("xdg/huggingface/hub", "org--in-xdg", true);
    put_snapshot("user/.cache/huggingface/hub", "plain", true);
    char *folder = NULL;

    assert_int_equal(setenv("HOME", in_scratch("user"), 1), 0);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HF_HOME");
    unsetenv("HF_HUB_CACHE");
    assert_int_equal(tri_hf_find("plain", &folder), TRI_OK);
    assert_string_equal(folder,
                        in_scratch("user/.cache/huggingface/hub/models--plain/snapshots/abc123"));
    free(folder);
    folder = NULL;

    assert_int_equal(setenv("XDG_CACHE_HOME", in_scratch("xdg"), 1), 0);
    assert_int_equal(tri_hf_find("org/in-xdg", &folder), TRI_OK);
    free(folder);
    folder = NULL;

    assert_int_equal(setenv("HF_HOME", in_scratch("home"), 1), 0);
    assert_int_equal(tri_hf_find("org/in-home", &folder), TRI_OK);
    assert_string_equal(folder, in_scratch("home/hub/models--org--in-home/snapshots/abc123"));
    free(folder);
    folder = NULL;

    assert_int_equal(setenv("HF_HUB_CACHE", in_scratch("direct"), 1), 0);
    assert_int_equal(tri_hf_find("org/name", &folder), TRI_OK);
    assert_string_equal(folder, in_scratch("direct/models--org--name/snapshots/abc123"));
    free(folder);

    find_fails("org/none", TRI_IO, in_scratch("direct"));
    assert_error_has("Trireme does not download, run: hf download org/none");
    put_snapshot("direct", "org--half", false);
    find_fails("org/half", TRI_IO, "its download did not finish");
    put_text(in_scratch("direct/models--org--name/refs/main"), "../../..");
    find_fails("org/name", TRI_FORMAT, "does not hold a revision");
    unsetenv("HF_HUB_CACHE");
    unsetenv("HF_HOME");
    unsetenv("XDG_CACHE_HOME");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_open, scratch_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trips),
        TEST(shards_and_their_index),
        TEST(converts_dtypes),
        TEST(scatters_and_gathers_fused_qkv),
        TEST(pieces_of_large_tensors),
        TEST(names_what_does_not_fit),
        TEST(tolerates_buffers),
        TEST(tied_heads),
        TEST(writes_the_configuration),
        TEST(carries_files_over),
        TEST(full_disk_changes_nothing),
        TEST(refuses_weights_that_are_not_finite),
        TEST(saving_outlives_the_source),
        TEST(saving_needs_a_source_and_a_folder),
        TEST(finds_folders),
        TEST(finds_hub_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
