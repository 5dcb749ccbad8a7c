#include "ckpt/hf_export.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* What a source carries over, the configs that may be made here, and the index of the weights. */
static_assert(TRI_HF_SOURCE_FILES + 2 <= TRI_EXPORT_MAX_FILES, "room in the set");

/* Write the whole of a file into the set. */
static enum tri_status add_file(struct tri_export_set *set, const char *folder, const char *name,
                                const void *data, size_t bytes)
{
    char *path = tri_path_join(folder, name);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory to save into %s", folder);
    struct tri_writer *writer = NULL;
    enum tri_status st = tri_writer_open(path, &writer);
    free(path);
    if (st != TRI_OK)
        return st;
    set->file[set->count++] = writer;
    tri_sums_add(set->sums, name, data, bytes);
    TRI_TRY(tri_writer_write(writer, data, bytes));
    return tri_writer_sync(writer);
}

enum tri_status tri_export_json(struct tri_export_set *set, const char *folder, const char *name,
                                const json_t *value)
{
    char *text = NULL;
    size_t bytes = 0;
    TRI_TRY(tri_json_text(value, &text, &bytes));
    enum tri_status st = add_file(set, folder, name, text, bytes);
    free(text);
    return st;
}

/* What Transformers makes of a config.json that has no generation_config.json beside it. */
static enum tri_status write_generation(struct tri_export_set *set, const char *folder,
                                        const json_t *config)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    json_t *generation = json_pack("{s:b}", "_from_model_config", 1);
    bool complete = generation != NULL;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        json_t *value = json_object_get(config, keys[i]);
        if (value != NULL && !json_is_null(value))
            complete = complete && json_object_set(generation, keys[i], value) == 0;
    }
    enum tri_status st = complete
                             ? tri_export_json(set, folder, "generation_config.json", generation)
                             : tri_fail(TRI_NOMEM, "no memory to save into %s", folder);
    json_decref(generation);
    return st;
}

/* The source's config.json with the recipe's changes, the dtype that is written, and a class. */
static enum tri_status make_config(const struct tri_model *model, const struct tri_hf_export *how,
                                   const struct tri_hf_source *from, json_t **out)
{
    json_t *source = NULL, *config = NULL;
    enum tri_status st;
    TRI_TRY(tri_json_parse(from->file[0].name, from->file[0].data, from->file[0].bytes, &source));
    TRI_TRY_GOTO(st, tri_config_merge(source, how->config_overrides, &config), drop_source);

    /* Transformers 4 says torch_dtype, 5 says dtype: the spelling of the file stays. */
    const char *dtype = tri_dtype_name(how->dtype);
    bool dated = json_object_get(config, "torch_dtype") != NULL;
    bool modern = !dated || json_object_get(config, "dtype") != NULL;
    bool complete = true;
    if (dated)
        complete = json_object_set_new(config, "torch_dtype", json_string(dtype)) == 0;
    if (modern)
        complete = complete && json_object_set_new(config, "dtype", json_string(dtype)) == 0;
    if (json_array_size(json_object_get(config, "architectures")) == 0)
        complete = complete && json_object_set_new(config, "architectures",
                                                   json_pack("[s]", model->arch.class_name)) == 0;
    if (complete) {
        *out = config;
    } else {
        json_decref(config);
        st = tri_fail(TRI_NOMEM, "no memory to make the config.json of %s", from->folder);
    }

drop_source:
    json_decref(source);
    return st;
}

static enum tri_status add_companions(struct tri_export_set *set, const struct tri_model *model,
                                      const char *folder, const struct tri_hf_export *how,
                                      const struct tri_hf_source *from)
{
    json_t *config = NULL;
    TRI_TRY(make_config(model, how, from, &config));
    enum tri_status st;
    for (int i = 1; i < TRI_HF_SOURCE_FILES; i++) {
        const struct tri_hf_file *file = &from->file[i];
        if (file->data != NULL)
            TRI_TRY_GOTO(st, add_file(set, folder, file->name, file->data, file->bytes),
                         drop_config);
        else if (strcmp(file->name, "generation_config.json") == 0)
            TRI_TRY_GOTO(st, write_generation(set, folder, config), drop_config);
    }
    st = tri_export_json(set, folder, "config.json", config);

drop_config:
    json_decref(config);
    return st;
}

enum tri_status tri_export_companions(struct tri_export_set *set, const struct tri_model *model,
                                      const char *folder, const struct tri_hf_export *how)
{
    struct tri_hf_source *opened = NULL;
    if (how->source == NULL)
        TRI_TRY(tri_hf_source_open(how->source_folder, &opened));
    enum tri_status st =
        add_companions(set, model, folder, how, opened != NULL ? opened : how->source);
    tri_hf_source_close(opened);
    return st;
}

enum tri_status tri_export_commit(struct tri_export_set *set)
{
    enum tri_status st = TRI_OK;
    int i = 0;
    for (; i < set->count && st == TRI_OK; i++)
        st = tri_writer_commit(set->file[i]);
    for (; i < set->count; i++)
        tri_writer_abandon(set->file[i]);
    set->count = 0;
    return st;
}

void tri_export_abandon(struct tri_export_set *set)
{
    for (int i = 0; i < set->count; i++)
        tri_writer_abandon(set->file[i]);
    set->count = 0;
}
