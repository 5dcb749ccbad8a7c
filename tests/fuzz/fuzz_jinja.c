/* A template from a stranger, with fixed messages: it is refused in one line, or it ends within its
 * budgets and its marks cover its text. Masks are cut from it without reading outside of it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/check.h"
#include "text/chat.h"
#include "text/jinja/jinja.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char messages_text[] =
    "[{\"role\":\"system\",\"content\":\"Be brief.\"},"
    "{\"role\":\"user\",\"content\":\" 2+2? \\u00e9\\n\"},"
    "{\"role\":\"assistant\",\"content\":\"<think>\\nhm\\n</think>\\n\\n4\",\"tool_calls\":"
    "[{\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":{\"x\":[1,2.5,null,true]}}}]},"
    "{\"role\":\"tool\",\"content\":\"r\"},{\"role\":\"user\",\"content\":\"\"},"
    "{\"role\":\"assistant\",\"content\":\"X\",\"weight\":1}]";
static const char tools_text[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\","
                                 "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]";

static void render(const struct tri_jinja *jinja, json_t *variables, json_t *messages)
{
    struct tri_jinja_output out;
    const struct tri_jinja_input input = {
        .variables = variables,
        .messages = messages,
        .message_count = -1,
        .now = 1739145600,
        .limits = {.steps = 200000, .bytes = (size_t)32 << 20},
    };
    if (tri_jinja_render(jinja, &input, &out) != TRI_OK) {
        check_error();
        return;
    }
    size_t at = 0;
    for (size_t m = 0; m < out.num_marks; m++) {
        CHECK(out.marks[m].begin == at && out.marks[m].end > at);
        CHECK(out.marks[m].message >= -1 &&
              out.marks[m].message < (int64_t)json_array_size(messages));
        at = out.marks[m].end;
    }
    CHECK(at == out.bytes);
    CHECK(out.text[out.bytes] == '\0');
    CHECK(tri_utf8_valid(out.text, out.bytes) == out.bytes);
    tri_jinja_output_free(&out);
}

static void mask(const char *text, size_t bytes, const json_t *messages, const json_t *tools,
                 const json_t *variables)
{
    struct tri_chat_template *chat;
    struct tri_chat_text out;
    const struct tri_chat_options options = {.ignore_empty_think = bytes % 2 == 1,
                                             .last_round = bytes % 3 == 1,
                                             .generation_prompt = bytes % 5 == 1};
    if (tri_chat_open("template", text, bytes, variables, &chat) != TRI_OK)
        return;
    if (tri_chat_render(chat, messages, tools, &options, &out) == TRI_OK) {
        size_t at = 0, trained = 0, cursor = 0;
        for (size_t i = 0; i < out.num_spans; i++) {
            CHECK(out.spans[i].begin == at && out.spans[i].end > at);
            at = out.spans[i].end;
            trained += out.spans[i].trained ? at - out.spans[i].begin : 0;
            CHECK(tri_chat_is_trained(&out, at - 1, &cursor) == out.spans[i].trained);
        }
        CHECK(at == out.bytes && trained == out.trained_bytes);
        tri_chat_text_free(&out);
    } else {
        check_error();
    }
    tri_chat_close(chat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static json_t *messages, *tools, *variables;
    if (messages == NULL) {
        messages = json_loads(messages_text, 0, NULL);
        tools = json_loads(tools_text, 0, NULL);
        variables = json_pack("{sssssOsn}", "bos_token", "<s>", "eos_token", "</s>", "tools", tools,
                              "documents");
        CHECK(messages != NULL && tools != NULL && variables != NULL);
    }
    struct tri_jinja *jinja;
    if (tri_jinja_open("template", (const char *)data, bytes, &jinja) != TRI_OK) {
        check_error();
        return 0;
    }
    render(jinja, variables, messages);
    tri_jinja_close(jinja);
    /* Budgets of a mask are those of training: only templates that cannot be slow. */
    if (bytes < 4096 && memmem(data, bytes, "range", 5) == NULL &&
        memmem(data, bytes, "macro", 5) == NULL && memmem(data, bytes, "*", 1) == NULL)
        mask((const char *)data, bytes, messages, tools, variables);
    return 0;
}
