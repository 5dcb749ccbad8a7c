/* {"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}, ...],
 *  "system"?: "...", "tools"?: [...]}, as ShareGPT and LLaMA-Factory write it.
 *
 * A turn of "function_call" holds the JSON of one call, or of a list of calls, as its value. Turns
 * with "role" and "content" are taken as they are. */
#include <string.h>

#include "data/formats/chat.h"
#include "data/formats/format.h"

enum { NAME_BYTES = 40 };

static const char *role_of(const char *from)
{
    static const char *const roles[][2] = {
        {"human", "user"},          {"user", "user"},       {"gpt", "assistant"},
        {"assistant", "assistant"}, {"model", "assistant"}, {"chatgpt", "assistant"},
        {"bot", "assistant"},       {"system", "system"},   {"function_call", "assistant"},
        {"observation", "tool"},    {"tool", "tool"},       {"function_response", "tool"},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(from, roles[i][0]) == 0)
            return roles[i][1];
    return NULL;
}

/* Append {"type": "function", "function": call} to a list. */
static int append_call(json_t *calls, json_t *call)
{
    json_t *entry = json_object();
    int bad = entry == NULL;
    bad = bad || json_object_set_new(entry, "type", json_string("function")) != 0;
    bad = bad || json_object_set(entry, "function", call) != 0;
    bad = bad || json_array_append(calls, entry) != 0;
    json_decref(entry);
    return bad;
}

/* {"name": ..., "arguments": ...}, or a list of such, to tool_calls. */
static enum tri_status set_calls(size_t index, json_t *message, const char *value, size_t bytes)
{
    json_t *parsed = NULL;
    enum tri_status st = tri_json_parse("the function call", value, bytes, &parsed);
    if (st != TRI_OK) {
        tri_error_prefix("message %zu", index);
        return st;
    }
    json_t *calls = json_array();
    int bad = calls == NULL;
    const bool list = json_is_array(parsed);
    const size_t count = list ? json_array_size(parsed) : 1;
    for (size_t i = 0; i < count && !bad && st == TRI_OK; i++) {
        json_t *call = list ? json_array_get(parsed, i) : parsed;
        if (!json_is_string(json_object_get(call, "name")))
            st = tri_fail(TRI_INVALID, "message %zu: a function call has no \"name\"", index);
        else
            bad = append_call(calls, call);
    }
    if (st == TRI_OK)
        bad = bad || json_object_set(message, "tool_calls", calls) != 0;
    json_decref(calls);
    json_decref(parsed);
    return bad ? tri_fail(TRI_NOMEM, "no memory for a message") : st;
}

/* A turn's fields beside from and value say whether it is trained: they are kept. */
static json_t *copy_turn(const json_t *turn, const char *role)
{
    json_t *message = json_copy((json_t *)(uintptr_t)turn);
    if (!message)
        return NULL;
    (void)json_object_del(message, "from");
    (void)json_object_del(message, "value");
    if (json_object_set_new(message, "role", json_string(role)) != 0) {
        json_decref(message);
        return NULL;
    }
    return message;
}

static enum tri_status add_turn(size_t index, const json_t *turn, json_t *messages)
{
    const char *from = json_string_value(json_object_get(turn, "from"));
    const json_t *value = json_object_get(turn, "value");
    if (!from && json_object_get(turn, "role"))
        return json_array_append(messages, (json_t *)(uintptr_t)turn) == 0
                   ? TRI_OK
                   : tri_fail(TRI_NOMEM, "no memory for a message");
    if (!from || !json_is_string(value))
        return tri_fail(TRI_INVALID,
                        "message %zu needs \"from\" and \"value\", both strings (\"value\" is %s)",
                        index, tri_json_kind(value));
    const char *role = role_of(from);
    if (!role) {
        char name[NAME_BYTES];
        tri_printable(from, name, sizeof name);
        return tri_fail(TRI_INVALID,
                        "message %zu is from \"%s\", which is unknown: human, gpt, system, "
                        "function_call and observation are known",
                        index, name);
    }
    json_t *message = copy_turn(turn, role);
    enum tri_status st = message ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for a message");
    const char *text = json_string_value(value);
    const size_t bytes = json_string_length(value);
    const bool call = strcmp(from, "function_call") == 0;
    if (st == TRI_OK && call)
        st = set_calls(index, message, text, bytes);
    if (st == TRI_OK &&
        (json_object_set_new(message, "content", json_stringn(text, call ? 0 : bytes)) != 0 ||
         json_array_append(messages, message) != 0))
        st = tri_fail(TRI_NOMEM, "no memory for a message");
    json_decref(message);
    return st;
}

static enum tri_status make_messages(const json_t *root, json_t *messages)
{
    const json_t *turns = json_object_get(root, "conversations");
    if (!json_is_array(turns))
        return tri_fail(TRI_INVALID, "\"conversations\" is %s: it must be a list of messages",
                        tri_json_kind(turns));
    if (json_array_size(turns) == 0)
        return tri_fail(TRI_INVALID, "\"conversations\" is empty: remove the line");
    if (tri_json_given(root, "system")) {
        const char *text;
        size_t bytes;
        TRI_TRY(tri_json_string_of(root, "system", &text, &bytes));
        if (bytes > 0)
            TRI_TRY(tri_add_message(messages, "system", text, bytes));
    }
    for (size_t i = 0; i < json_array_size(turns); i++)
        TRI_TRY(add_turn(i, json_array_get(turns, i), messages));
    return TRI_OK;
}

enum tri_status tri_format_conversations(const struct tri_sample_rules *rules, json_t *root,
                                         struct tri_sample *out)
{
    struct tri_conversation conversation;
    json_t *messages = json_array();
    if (!messages)
        return tri_fail(TRI_NOMEM, "no memory for a conversation");
    enum tri_status st;
    TRI_TRY_GOTO(st, make_messages(root, messages), drop_messages);
    TRI_TRY_GOTO(st, tri_messages_check(rules, "conversations", messages), drop_messages);
    TRI_TRY_GOTO(st, tri_conversation_extras(root, &conversation), drop_messages);
    conversation.messages = messages;
    st = tri_chat_sample(rules, &conversation, out);
drop_messages:
    json_decref(messages);
    return st;
}
