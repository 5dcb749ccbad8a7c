/* {"messages": [{"role": "user", "content": "..."}, ...], "tools"?: [...],
 *  "chat_template_kwargs"?: {...}}
 *
 * Content that is a list of text parts is joined. A message may have "train", "loss" or "weight"
 * (text/chat.h). */
#include <string.h>

#include "data/formats/chat.h"
#include "data/formats/format.h"

enum { NAME_BYTES = 40 };

static bool is_known_role(const struct tri_sample_rules *rules, const char *role)
{
    static const char *const known[] = {"system", "developer", "user",    "assistant",
                                        "tool",   "function",  "ipython", "environment"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(role, known[i]) == 0)
            return true;
    const struct tri_chat_options *options = rules->chat ? &rules->chat->options : NULL;
    for (size_t i = 0; options && i < options->num_roles; i++)
        if (strcmp(role, options->roles[i]) == 0)
            return true;
    return false;
}

/* Join parts of {"type": "text", "text": "..."}. */
static enum tri_status join_parts(size_t index, const json_t *parts, json_t **out)
{
    struct tri_text text = {0};
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        const json_t *value = json_object_get(part, "text");
        if (!json_is_string(value)) {
            tri_text_free(&text);
            return tri_fail(TRI_UNSUPPORTED,
                            "part %zu of message %zu has no \"text\": only text is trained", i,
                            index);
        }
        tri_text_add(&text, json_string_value(value), json_string_length(value));
    }
    *out = text.failed ? NULL : json_stringn(tri_text_data(&text), text.bytes);
    tri_text_free(&text);
    return *out ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for a message");
}

/* Fields that other tools train by, and this one does not know. */
static enum tri_status check_fields(size_t index, json_t *message)
{
    static const char *const known[] = {"train", "loss", "weight"};
    static const char *const parts[] = {"train", "loss", "weight", "mask"};
    for (void *it = json_object_iter(message); it; it = json_object_iter_next(message, it)) {
        const char *field = json_object_iter_key(it);
        bool read = json_is_null(json_object_iter_value(it)), important = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            read = read || strcmp(field, known[i]) == 0;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            important = important || strstr(field, parts[i]) != NULL;
        char name[NAME_BYTES];
        tri_printable(field, name, sizeof name);
        if (important && !read)
            return tri_fail(TRI_UNSUPPORTED,
                            "message %zu has a field \"%s\", which is not read and may say what to "
                            "train: write \"train\": true or false",
                            index, name);
    }
    return TRI_OK;
}

static enum tri_status check_message(const struct tri_sample_rules *rules, size_t index,
                                     json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!role)
        return tri_fail(TRI_INVALID,
                        "message %zu is %s: it must be an object with \"role\" and "
                        "\"content\"",
                        index,
                        json_is_object(message) ? "without \"role\"" : tri_json_kind(message));
    if (!is_known_role(rules, role)) {
        char name[NAME_BYTES];
        tri_printable(role, name, sizeof name);
        return tri_fail(TRI_INVALID,
                        "message %zu has the unknown role \"%s\": system, developer, user, "
                        "assistant and tool are known, and what data.roles_to_train names",
                        index, name);
    }
    TRI_TRY(check_fields(index, message));
    const json_t *content = json_object_get(message, "content");
    if (!json_is_array(content))
        return TRI_OK;
    json_t *joined = NULL;
    TRI_TRY(join_parts(index, content, &joined));
    if (json_object_set_new(message, "content", joined) != 0)
        return tri_fail(TRI_NOMEM, "no memory for a message");
    return TRI_OK;
}

enum tri_status tri_messages_check(const struct tri_sample_rules *rules, const char *name,
                                   const json_t *messages)
{
    if (!json_is_array(messages))
        return tri_fail(TRI_INVALID, "\"%s\" is %s: it must be a list of messages", name,
                        tri_json_kind(messages));
    if (json_array_size(messages) == 0)
        return tri_fail(TRI_INVALID, "\"%s\" is empty: remove the line", name);
    for (size_t i = 0; i < json_array_size(messages); i++)
        TRI_TRY(check_message(rules, i, json_array_get(messages, i)));
    return TRI_OK;
}

enum tri_status tri_conversation_extras(const json_t *root, struct tri_conversation *out)
{
    out->tools = tri_json_given(root, "tools");
    out->variables = tri_json_given(root, "chat_template_kwargs");
    if (out->variables && !json_is_object(out->variables))
        return tri_fail(TRI_INVALID, "\"chat_template_kwargs\" is %s: it must be an object",
                        tri_json_kind(out->variables));
    return TRI_OK;
}

enum tri_status tri_format_messages(const struct tri_sample_rules *rules, json_t *root,
                                    struct tri_sample *out)
{
    struct tri_conversation conversation = {.messages = json_object_get(root, "messages")};
    TRI_TRY(tri_messages_check(rules, "messages", conversation.messages));
    TRI_TRY(tri_conversation_extras(root, &conversation));
    return tri_chat_sample(rules, &conversation, out);
}
