#include "data/formats/chat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/batch.h"
#include "data/formats/format.h"

/* Is there a field that keeps this message from being trained? text/chat.h has checked them. */
static bool is_withheld(const json_t *message)
{
    static const char *const names[] = {"train", "loss", "weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(message, names[i]);
        if (json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0))
            return true;
    }
    return false;
}

static bool is_trained(const struct tri_sample_rules *rules, const json_t *messages,
                       const struct tri_chat_span *span)
{
    if (!rules->train_inputs)
        return span->trained;
    return span->message < 0 || !is_withheld(json_array_get(messages, (size_t)span->message));
}

/* Two places for each span: where it begins and where it ends. */
static enum tri_status encode(const struct tri_tokenizer *tokenizer,
                              const struct tri_chat_text *text, struct tri_text_place **places,
                              struct tri_ids *ids)
{
    struct tri_text_place *list = malloc((2 * text->num_spans + 1) * sizeof *list);
    if (!list)
        return tri_fail(TRI_NOMEM, "no memory to label a conversation");
    for (size_t i = 0; i < text->num_spans; i++) {
        list[2 * i] = (struct tri_text_place){.offset = text->spans[i].begin};
        list[2 * i + 1] = (struct tri_text_place){.offset = text->spans[i].end};
    }
    const enum tri_status st =
        tokenizer->encode_at(tokenizer, text->text, text->bytes, list, 2 * text->num_spans, ids);
    if (st != TRI_OK) {
        free(list);
        return st;
    }
    *places = list;
    return TRI_OK;
}

static enum tri_status label(const struct tri_sample_rules *rules, const json_t *messages,
                             const struct tri_chat_text *text, struct tri_sample *out)
{
    struct tri_ids ids = {.count = 0};
    struct tri_text_place *places = NULL;
    struct tri_sample sample;
    enum tri_status st;
    TRI_TRY_GOTO(st, encode(rules->tokenizer, text, &places, &ids), free_ids);
    if (ids.count == 0)
        TRI_TRY_GOTO(st,
                     tri_fail(TRI_INVALID, "the chat template makes an empty text of this "
                                           "conversation: remove it"),
                     free_places);
    TRI_TRY_GOTO(st, tri_sample_of_tokens(rules, ids.count, true, false, &sample), free_places);
    memcpy(sample.ids, ids.data, (size_t)ids.count * sizeof *ids.data);
    for (int64_t t = 0; t < ids.count; t++)
        sample.labels[t] = TRI_IGNORE_LABEL;
    for (size_t i = 0; i < text->num_spans; i++) {
        const struct tri_text_place *begin = &places[2 * i], *end = begin + 1;
        if (is_trained(rules, messages, &text->spans[i]))
            for (int64_t t = begin->token; t < end->token + end->inside; t++)
                sample.labels[t] = sample.ids[t];
    }
    *out = sample;
free_places:
    free(places);
free_ids:
    tri_ids_free(&ids);
    return st;
}

/* Tools may be a string that holds their JSON. */
static enum tri_status read_tools(const json_t *tools, json_t **out)
{
    *out = NULL;
    if (!tools || json_is_null(tools) || (json_is_string(tools) && json_string_length(tools) == 0))
        return TRI_OK;
    json_t *list = NULL;
    if (json_is_string(tools))
        TRI_TRY(tri_json_parse("\"tools\"", json_string_value(tools), json_string_length(tools),
                               &list));
    else
        list = json_incref((json_t *)(uintptr_t)tools);
    if (!json_is_array(list)) {
        const char *kind = tri_json_kind(list);
        json_decref(list);
        return tri_fail(TRI_INVALID, "\"tools\" is %s: it must be a list of functions", kind);
    }
    if (json_array_size(list) > 0)
        *out = list;
    else
        json_decref(list);
    return TRI_OK;
}

/* The variables of the recipe, and over them those of the sample. */
static enum tri_status join_variables(const json_t *all, const json_t *own, json_t **out)
{
    *out = all ? json_copy((json_t *)(uintptr_t)all) : json_object();
    if (!*out || json_object_update(*out, (json_t *)(uintptr_t)own) != 0) {
        json_decref(*out);
        return tri_fail(TRI_NOMEM, "no memory for the variables of a chat template");
    }
    return TRI_OK;
}

enum tri_status tri_chat_sample(const struct tri_sample_rules *rules,
                                const struct tri_conversation *conversation, struct tri_sample *out)
{
    const struct tri_chat_rules *chat = rules->chat;
    if (!chat || !chat->chat)
        return tri_fail(chat ? chat->status : TRI_INVALID, "%s",
                        chat ? chat->reason : "this is a conversation, and there is no template");
    if (!rules->tokenizer)
        return tri_fail(TRI_INVALID, "this is text, and there is no tokenizer: give \"input_ids\"");
    json_t *tools = NULL, *variables = NULL;
    struct tri_chat_options options = chat->options;
    struct tri_chat_text text;
    enum tri_status st;
    TRI_TRY_GOTO(st, read_tools(conversation->tools, &tools), drop_tools);
    if (conversation->variables) {
        TRI_TRY_GOTO(st, join_variables(options.variables, conversation->variables, &variables),
                     drop_tools);
        options.variables = variables;
    }
    TRI_TRY_GOTO(st, tri_chat_render(chat->chat, conversation->messages, tools, &options, &text),
                 drop_variables);
    st = tri_chat_check_calls(chat->chat, conversation->messages, tools, &options, &text);
    if (st == TRI_OK)
        st = label(rules, conversation->messages, &text, out);
    if (st == TRI_OK)
        out->rendered = true;
    tri_chat_text_free(&text);
drop_variables:
    json_decref(variables);
drop_tools:
    json_decref(tools);
    return st;
}

/* Labels of a text of which the tokens from `border` on are trained. */
static enum tri_status label_rest(const struct tri_sample_rules *rules, const struct tri_ids *ids,
                                  int64_t border, struct tri_sample *out)
{
    const struct tri_tokenizer *tokenizer = rules->tokenizer;
    const bool bos = rules->add_bos && tokenizer->bos >= 0 &&
                     (ids->count == 0 || ids->data[0] != tokenizer->bos);
    const bool eos = rules->add_eos && tokenizer->eos >= 0 &&
                     (ids->count == 0 || ids->data[ids->count - 1] != tokenizer->eos);
    struct tri_sample sample;
    TRI_TRY(tri_sample_of_tokens(rules, ids->count + bos + eos, true, false, &sample));
    if (bos)
        sample.ids[0] = (int32_t)tokenizer->bos;
    if (ids->count > 0)
        memcpy(sample.ids + bos, ids->data, (size_t)ids->count * sizeof *ids->data);
    if (eos)
        sample.ids[sample.tokens - 1] = (int32_t)tokenizer->eos;
    for (int64_t t = 0; t < sample.tokens; t++)
        sample.labels[t] =
            rules->train_inputs || t >= border + bos ? sample.ids[t] : TRI_IGNORE_LABEL;
    *out = sample;
    return TRI_OK;
}

enum tri_status tri_prompt_sample(const struct tri_sample_rules *rules, const char *text,
                                  size_t bytes, size_t prompt_bytes, struct tri_sample *out)
{
    if (!rules->tokenizer)
        return tri_fail(TRI_INVALID, "this is text, and there is no tokenizer: give \"input_ids\"");
    struct tri_text_place border = {.offset = prompt_bytes};
    struct tri_ids ids = {.count = 0};
    enum tri_status st =
        rules->tokenizer->encode_at(rules->tokenizer, text, bytes, &border, 1, &ids);
    if (st == TRI_OK)
        st = label_rest(rules, &ids, border.token, out);
    tri_ids_free(&ids);
    return st;
}

enum tri_status tri_add_message(json_t *messages, const char *role, const char *text, size_t bytes)
{
    json_t *message = json_object();
    if (!message || json_object_set_new(message, "role", json_string(role)) != 0 ||
        json_object_set_new(message, "content", json_stringn(text, bytes)) != 0 ||
        json_array_append(messages, message) != 0) {
        json_decref(message);
        return tri_fail(TRI_NOMEM, "no memory for a message");
    }
    json_decref(message);
    return TRI_OK;
}
