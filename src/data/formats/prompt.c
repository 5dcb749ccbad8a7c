/* {"prompt": "...", "completion": "..."}: a text of which the completion is trained, or both as
 * lists of messages: one conversation of which the completion's messages may be trained. */
#include <string.h>

#include "data/formats/chat.h"
#include "data/formats/format.h"

static enum tri_status read_texts(const struct tri_sample_rules *rules, const json_t *root,
                                  struct tri_sample *out)
{
    const char *prompt, *completion;
    size_t prompt_bytes, completion_bytes;
    TRI_TRY(tri_json_string_of(root, "prompt", &prompt, &prompt_bytes));
    TRI_TRY(tri_json_string_of(root, "completion", &completion, &completion_bytes));
    if (completion_bytes == 0)
        return tri_fail(TRI_INVALID, "\"completion\" is empty: remove the line");
    struct tri_text text = {0};
    tri_text_add(&text, prompt, prompt_bytes);
    tri_text_add(&text, completion, completion_bytes);
    const enum tri_status st =
        text.failed ? tri_fail(TRI_NOMEM, "no memory for a prompt of %zu bytes", prompt_bytes)
                    : tri_prompt_sample(rules, text.data, text.bytes, prompt_bytes, out);
    tri_text_free(&text);
    return st;
}

/* Append messages; those that are not `trained` are kept from it, whatever their role. */
static enum tri_status append(const json_t *from, bool trained, json_t *messages)
{
    for (size_t i = 0; i < json_array_size(from); i++) {
        json_t *message = json_copy(json_array_get(from, i));
        int bad = message == NULL;
        if (!trained) {
            (void)json_object_del(message, "loss");
            (void)json_object_del(message, "weight");
            bad = bad || json_object_set_new(message, "train", json_false()) != 0;
        }
        bad = bad || json_array_append(messages, message) != 0;
        json_decref(message);
        if (bad)
            return tri_fail(TRI_NOMEM, "no memory for a message");
    }
    return TRI_OK;
}

static enum tri_status read_messages(const struct tri_sample_rules *rules, const json_t *root,
                                     struct tri_sample *out)
{
    const json_t *prompt = json_object_get(root, "prompt");
    const json_t *completion = json_object_get(root, "completion");
    struct tri_conversation conversation;
    TRI_TRY(tri_messages_check(rules, "prompt", prompt));
    TRI_TRY(tri_messages_check(rules, "completion", completion));
    TRI_TRY(tri_conversation_extras(root, &conversation));
    json_t *messages = json_array();
    if (!messages)
        return tri_fail(TRI_NOMEM, "no memory for a conversation");
    conversation.messages = messages;
    enum tri_status st = append(prompt, rules->train_inputs, messages);
    if (st == TRI_OK)
        st = append(completion, true, messages);
    if (st == TRI_OK)
        st = tri_chat_sample(rules, &conversation, out);
    json_decref(messages);
    return st;
}

enum tri_status tri_format_prompt(const struct tri_sample_rules *rules, json_t *root,
                                  struct tri_sample *out)
{
    const bool messages = json_is_array(json_object_get(root, "prompt"));
    if (messages != json_is_array(json_object_get(root, "completion")))
        return tri_fail(TRI_INVALID,
                        "\"prompt\" is %s and \"completion\" is %s: both must be strings, or both "
                        "lists of messages",
                        tri_json_kind(json_object_get(root, "prompt")),
                        tri_json_kind(json_object_get(root, "completion")));
    return messages ? read_messages(rules, root, out) : read_texts(rules, root, out);
}
