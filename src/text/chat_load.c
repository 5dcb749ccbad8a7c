/* The chat template and special tokens of a model's folder. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "text/chat_private.h"

enum { TEMPLATE_BYTES = 1 << 20, PATH_TEXT = 4096 };

/* A JSON object in the folder; an empty one when the file is not there. */
static enum tri_status read_object(const char *folder, const char *name, json_t **out)
{
    char *path = tri_path_join(folder, name);
    enum tri_status st = TRI_OK;
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", folder);
    if (!tri_path_exists(path)) {
        *out = json_object();
        if (*out == NULL)
            st = tri_fail(TRI_NOMEM, "%s: no memory", folder);
    } else {
        st = tri_json_load(path, out);
        if (st == TRI_OK && !json_is_object(*out)) {
            json_decref(*out);
            st = tri_fail(TRI_FORMAT, "%s: not an object", path);
        }
    }
    free(path);
    return st;
}

/* A special token is its text, or an object with its text as content. */
static const char *token_text(const json_t *value)
{
    const char *text = json_string_value(value);
    return text != NULL ? text : json_string_value(json_object_get(value, "content"));
}

static enum tri_status copy_tokens(const json_t *from, json_t *to)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    int bad = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = token_text(json_object_get(from, names[i]));
        if (text != NULL && json_object_get(to, names[i]) == NULL)
            bad |= json_object_set_new(to, names[i], json_string(text));
    }
    const json_t *more = json_object_get(from, "additional_special_tokens");
    if (json_array_size(more) > 0 && json_object_get(to, "additional_special_tokens") == NULL) {
        json_t *texts = json_array();
        for (size_t i = 0; i < json_array_size(more); i++) {
            const char *text = token_text(json_array_get(more, i));
            if (text != NULL)
                bad |= json_array_append_new(texts, json_string(text));
        }
        bad |= json_object_set_new(to, "additional_special_tokens", texts);
    }
    return bad ? tri_fail(TRI_NOMEM, "no memory for special tokens") : TRI_OK;
}

/* Parse one of the templates that tokenizer_config.json holds. */
static enum tri_status open_one(const char *folder, const char *name, const json_t *text,
                                struct tri_chat_template *chat, struct tri_jinja **out)
{
    char what[PATH_TEXT];
    snprintf(what, sizeof what, "%s/tokenizer_config.json, chat template%s%s", folder,
             name == NULL ? "" : " ", name == NULL ? "" : name);
    chat->identity =
        tri_hash_bytes(chat->identity, json_string_value(text), json_string_length(text));
    return tri_jinja_open(what, json_string_value(text), json_string_length(text), out);
}

/* chat_template in tokenizer_config.json: one text, or a list of named ones. */
static enum tri_status open_configured(const char *folder, const json_t *templates,
                                       struct tri_chat_template *chat)
{
    if (json_is_string(templates))
        return open_one(folder, NULL, templates, chat, &chat->usual);
    for (size_t i = 0; i < json_array_size(templates); i++) {
        const json_t *entry = json_array_get(templates, i),
                     *text = json_object_get(entry, "template");
        const char *name = json_string_value(json_object_get(entry, "name"));
        if (name == NULL || !json_is_string(text))
            continue;
        if (strcmp(name, "default") == 0 && chat->usual == NULL)
            TRI_TRY(open_one(folder, name, text, chat, &chat->usual));
        if (strcmp(name, "tool_use") == 0 && chat->with_tools == NULL)
            TRI_TRY(open_one(folder, name, text, chat, &chat->with_tools));
    }
    if (chat->usual == NULL)
        return tri_fail(TRI_INVALID,
                        "%s has no chat template (chat_template.jinja, or chat_template in "
                        "tokenizer_config.json): set data.chat_template to a file, or to chatml or "
                        "alpaca",
                        folder);
    return TRI_OK;
}

static enum tri_status open_file(const char *path, struct tri_chat_template *chat)
{
    char *text = NULL;
    size_t bytes = 0;
    TRI_TRY(tri_file_read(path, TEMPLATE_BYTES, &text, &bytes));
    chat->identity = tri_hash_bytes(chat->identity, text, bytes);
    enum tri_status st = tri_jinja_open(path, text, bytes, &chat->usual);
    free(text);
    return st;
}

/* The tokens of a folder into `tokens`, and tokenizer_config.json, which the caller drops. */
static enum tri_status load_tokens(const char *folder, json_t *tokens, json_t **config)
{
    json_t *map = NULL;
    TRI_TRY(read_object(folder, "tokenizer_config.json", config));
    enum tri_status st = copy_tokens(*config, tokens);
    if (st == TRI_OK)
        st = read_object(folder, "special_tokens_map.json", &map);
    if (st == TRI_OK)
        st = copy_tokens(map, tokens);
    json_decref(map);
    if (st != TRI_OK)
        json_decref(*config);
    return st;
}

enum tri_status tri_chat_tokens(const char *folder, json_t **out)
{
    json_t *config = NULL, *tokens = json_object();
    if (tokens == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", folder);
    enum tri_status st = load_tokens(folder, tokens, &config);
    if (st != TRI_OK) {
        json_decref(tokens);
        return st;
    }
    json_decref(config);
    *out = tokens;
    return TRI_OK;
}

static enum tri_status load(const char *folder, const char *path, struct tri_chat_template *chat)
{
    json_t *config = NULL;
    chat->identity = TRI_HASH_START;
    chat->tokens = json_object();
    if (chat->tokens == NULL)
        return tri_fail(TRI_NOMEM, "%s: no memory", folder);
    TRI_TRY(load_tokens(folder, chat->tokens, &config));
    enum tri_status st;
    if (tri_path_exists(path))
        st = open_file(path, chat);
    else
        st = open_configured(folder, json_object_get(config, "chat_template"), chat);
    json_decref(config);
    return st;
}

enum tri_status tri_chat_load(const char *folder, struct tri_chat_template **out)
{
    struct tri_chat_template *chat = calloc(1, sizeof *chat);
    char *path = tri_path_join(folder, "chat_template.jinja");
    enum tri_status st = chat == NULL || path == NULL ? tri_fail(TRI_NOMEM, "%s: no memory", folder)
                                                      : load(folder, path, chat);
    free(path);
    if (st != TRI_OK) {
        tri_chat_close(chat);
        return st;
    }
    *out = chat;
    return TRI_OK;
}
