/* {"instruction": "...", "input"?: "...", "output": "...", "system"?: "...",
 *  "history"?: [["question", "answer"], ...]}: a conversation whose last question is the
 * instruction and, on the next line, the input (as LLaMA-Factory reads it). */
#include "data/formats/chat.h"
#include "data/formats/format.h"

static enum tri_status optional_text(const json_t *root, const char *name, const char **text,
                                     size_t *bytes)
{
    *text = "";
    *bytes = 0;
    return tri_json_given(root, name) ? tri_json_string_of(root, name, text, bytes) : TRI_OK;
}

static enum tri_status add_history(const json_t *root, json_t *messages)
{
    const json_t *history = tri_json_given(root, "history");
    if (history && !json_is_array(history))
        return tri_fail(TRI_INVALID, "\"history\" is %s: it must be a list of pairs",
                        tri_json_kind(history));
    for (size_t i = 0; i < json_array_size(history); i++) {
        const json_t *pair = json_array_get(history, i);
        for (size_t k = 0; k < 2; k++) {
            const json_t *text = json_array_get(pair, k);
            if (json_array_size(pair) != 2 || !json_is_string(text))
                return tri_fail(TRI_INVALID,
                                "\"history\"[%zu] must be a question and its answer, two strings",
                                i);
            TRI_TRY(tri_add_message(messages, k == 0 ? "user" : "assistant",
                                    json_string_value(text), json_string_length(text)));
        }
    }
    return TRI_OK;
}

static enum tri_status make_messages(const json_t *root, json_t *messages)
{
    const char *instruction, *input, *output, *system;
    size_t instruction_bytes, input_bytes, output_bytes, system_bytes;
    TRI_TRY(tri_json_string_of(root, "instruction", &instruction, &instruction_bytes));
    TRI_TRY(tri_json_string_of(root, "output", &output, &output_bytes));
    TRI_TRY(optional_text(root, "input", &input, &input_bytes));
    TRI_TRY(optional_text(root, "system", &system, &system_bytes));
    if (output_bytes == 0)
        return tri_fail(TRI_INVALID, "\"output\" is empty: remove the line");
    if (system_bytes > 0)
        TRI_TRY(tri_add_message(messages, "system", system, system_bytes));
    TRI_TRY(add_history(root, messages));
    struct tri_text question = {0};
    tri_text_add(&question, instruction, instruction_bytes);
    if (input_bytes > 0)
        tri_text_add(&question, "\n", 1);
    tri_text_add(&question, input, input_bytes);
    const enum tri_status st =
        question.failed
            ? tri_fail(TRI_NOMEM, "no memory for a message")
            : tri_add_message(messages, "user", tri_text_data(&question), question.bytes);
    tri_text_free(&question);
    TRI_TRY(st);
    return tri_add_message(messages, "assistant", output, output_bytes);
}

enum tri_status tri_format_alpaca(const struct tri_sample_rules *rules, json_t *root,
                                  struct tri_sample *out)
{
    struct tri_conversation conversation = {.messages = NULL};
    json_t *messages = json_array();
    if (!messages)
        return tri_fail(TRI_NOMEM, "no memory for a conversation");
    enum tri_status st = make_messages(root, messages);
    conversation.messages = messages;
    if (st == TRI_OK)
        st = tri_chat_sample(rules, &conversation, out);
    json_decref(messages);
    return st;
}
