/* Weights that do not fit the model, and what may differ. */
#include "unit/ckpt/hf_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(names_what_does_not_fit),
        SCRATCH_TEST(tolerates_buffers),
        SCRATCH_TEST(tied_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
