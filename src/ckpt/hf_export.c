#include "ckpt/hf_export.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* Tokenizer files, carried over as they are. */
static const char *const carried[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "tokenizer.model",
                                      "chat_template.jinja",
                                      "chat_template.json"};

/* These, generation_config.json, config.json and the index of the weights. */
static_assert(sizeof carried / sizeof carried[0] + 3 <= TRI_EXPORT_MAX_FILES, "room in the set");

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

/* Carry a file over if the source has it. */
static enum tri_status carry(struct tri_export_set *set, const char *from, const char *folder,
                             const char *name, bool *found)
{
    char *path = tri_path_join(from, name);
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path in %s", from);
    enum tri_status st = TRI_OK;
    struct tri_map map;
    *found = tri_path_exists(path);
    if (!*found)
        goto free_path;
    TRI_TRY_GOTO(st, tri_map_open(path, &map), free_path);
    st = add_file(set, folder, name, map.data, map.bytes);
    tri_map_close(&map);

free_path:
    free(path);
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

/* The file's config.json with the recipe's changes, the dtype that is written, and a class. */
static enum tri_status make_config(const struct tri_model *model, const struct tri_hf_export *how,
                                   json_t **out)
{
    char *path = tri_path_join(how->source_folder, "config.json");
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path in %s", how->source_folder);
    json_t *source = NULL, *config = NULL;
    enum tri_status st;
    TRI_TRY_GOTO(st, tri_json_load(path, &source), free_path);
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
        st = tri_fail(TRI_NOMEM, "no memory to make the config.json of %s", how->source_folder);
    }

drop_source:
    json_decref(source);
free_path:
    free(path);
    return st;
}

enum tri_status tri_export_companions(struct tri_export_set *set, const struct tri_model *model,
                                      const char *folder, const struct tri_hf_export *how)
{
    json_t *config = NULL;
    TRI_TRY(make_config(model, how, &config));
    enum tri_status st;
    bool found = false;
    for (size_t i = 0; i < sizeof carried / sizeof carried[0]; i++)
        TRI_TRY_GOTO(st, carry(set, how->source_folder, folder, carried[i], &found), drop_config);
    TRI_TRY_GOTO(st, carry(set, how->source_folder, folder, "generation_config.json", &found),
                 drop_config);
    if (!found)
        TRI_TRY_GOTO(st, write_generation(set, folder, config), drop_config);
    st = tri_export_json(set, folder, "config.json", config);

drop_config:
    json_decref(config);
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
