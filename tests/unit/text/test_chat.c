/* Conversations: rendered as Transformers does, and trained where the rules of chat.h say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "text/chat.h"

enum { LIMIT = 64 << 20, PATH_BYTES = 4096, SHOWN = 1 << 16 };

static struct tri_chat_template *open_golden(const char *name)
{
    char path[PATH_BYTES], *text;
    size_t bytes;
    struct tri_chat_template *chat;
    json_t *tokens = json_pack("{ssss}", "bos_token", "<s>", "eos_token", "</s>");
    snprintf(path, sizeof path, TEST_DATA "/golden/chat/templates/%s.jinja", name);
    if (tri_file_read(path, LIMIT, &text, &bytes) != TRI_OK ||
        tri_chat_open(name, text, bytes, tokens, &chat) != TRI_OK)
        fail_msg("%s", tri_error_text());
    free(text);
    json_decref(tokens);
    return chat;
}

static struct tri_chat_template *open_text(const char *text)
{
    struct tri_chat_template *chat;
    if (tri_chat_open("chat template", text, strlen(text), NULL, &chat) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return chat;
}

/* The text with what is trained in { } and no other mark. */
static void show(const struct tri_chat_text *text, char shown[SHOWN])
{
    size_t n = 0, at = 0, trained = 0;
    bool inside = false;
    for (size_t i = 0; i <= text->num_spans; i++) {
        const struct tri_chat_span *span = &text->spans[i];
        const bool now = i < text->num_spans && span->trained;
        if (now != inside)
            shown[n++] = now ? '{' : '}';
        inside = now;
        if (i == text->num_spans)
            break;
        assert_int_equal(span->begin, at);
        assert_true(span->end > span->begin && n + (span->end - at) + 3 < SHOWN);
        memcpy(shown + n, text->text + at, span->end - at);
        n += span->end - at;
        at = span->end;
        trained += span->trained ? span->end - span->begin : 0;
    }
    shown[n] = '\0';
    assert_int_equal(at, text->bytes);
    assert_int_equal(trained, text->trained_bytes);
}

static void assert_shown(const struct tri_chat_template *chat, const char *messages,
                         const struct tri_chat_options *options, const char *want)
{
    static const struct tri_chat_options plain;
    char *shown = malloc(SHOWN);
    struct tri_chat_text text;
    json_t *list = json_loads(messages, 0, NULL);
    assert_non_null(list);
    assert_non_null(shown);
    if (tri_chat_render(chat, list, NULL, options == NULL ? &plain : options, &text) != TRI_OK)
        fail_msg("%s", tri_error_text());
    show(&text, shown);
    assert_string_equal(shown, want);
    tri_chat_text_free(&text);
    json_decref(list);
    free(shown);
}

static void assert_refused(const struct tri_chat_template *chat, const char *messages,
                           const struct tri_chat_options *options, const char *part)
{
    static const struct tri_chat_options plain;
    struct tri_chat_text text;
    json_t *list = json_loads(messages, 0, NULL);
    assert_non_null(list);
    assert_int_not_equal(
        tri_chat_render(chat, list, NULL, options == NULL ? &plain : options, &text), TRI_OK);
    if (strstr(tri_error_text(), part) == NULL)
        fail_msg("%s\ninstead of: %s", tri_error_text(), part);
    json_decref(list);
}

/* The checkpoints' own templates, loaded from their folders. */
static void test_checkpoints(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3_style", "qwen3", "qwen_style"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[PATH_BYTES], *lines;
        size_t bytes;
        struct tri_chat_template *chat;
        snprintf(path, sizeof path, TEST_DATA "/golden/tokenizers/%s", names[i]);
        if (tri_chat_load(path, &chat) != TRI_OK)
            fail_msg("%s", tri_error_text());
        strcat(path, "/golden_chat.jsonl");
        assert_int_equal(tri_file_read(path, LIMIT, &lines, &bytes), TRI_OK);
        int count = 0;
        for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n"), count++) {
            json_t *chat_line = json_loads(line, 0, NULL);
            struct tri_chat_text text;
            const struct tri_chat_options options = {
                .generation_prompt =
                    json_is_true(json_object_get(chat_line, "add_generation_prompt"))};
            if (tri_chat_render(chat, json_object_get(chat_line, "messages"), NULL, &options,
                                &text) != TRI_OK)
                fail_msg("%s", tri_error_text());
            assert_string_equal(text.text,
                                json_string_value(json_object_get(chat_line, "rendered")));
            assert_int_equal(text.has_bos, i == 0);
            tri_chat_text_free(&text);
            json_decref(chat_line);
        }
        assert_int_equal(count, 4);
        free(lines);
        tri_chat_close(chat);
    }
    struct tri_chat_template *chat;
    assert_int_equal(tri_chat_load(TEST_DATA "/golden/tokenizers/gpt2_style", &chat), TRI_INVALID);
    assert_non_null(strstr(tri_error_text(), "has no chat template"));
}

#define DIALOG                                                                                     \
    "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"u1\"},"             \
    "{\"role\":\"assistant\",\"content\":\"a1\"},{\"role\":\"user\",\"content\":\"u2\"},"          \
    "{\"role\":\"assistant\",\"content\":\"a2\"}]"

static void test_headers(void **state)
{
    (void)state;
    struct tri_chat_template *chat = open_golden("llama3");
    assert_shown(chat, DIALOG, NULL,
                 "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
                 "<|start_header_id|>user<|end_header_id|>\n\nu1<|eot_id|>"
                 "<|start_header_id|>assistant<|end_header_id|>\n\n{a1<|eot_id|>}"
                 "<|start_header_id|>user<|end_header_id|>\n\nu2<|eot_id|>"
                 "<|start_header_id|>assistant<|end_header_id|>\n\n{a2<|eot_id|>}");
    tri_chat_close(chat);
    /* Phi-3 writes an end of text when no prompt follows: still the prompt is found. */
    chat = open_golden("phi3");
    assert_shown(chat, DIALOG, NULL,
                 "<|system|>\nS<|end|>\n<|user|>\nu1<|end|>\n<|assistant|>\n{a1<|end|>}\n"
                 "<|user|>\nu2<|end|>\n<|assistant|>\n{a2<|end|>}\n</s>");
    tri_chat_close(chat);
    chat = open_golden("olmo2");
    assert_shown(chat, DIALOG, NULL,
                 "<s><|system|>\nS\n<|user|>\nu1\n<|assistant|>\n{a1</s>}\n"
                 "<|user|>\nu2\n<|assistant|>\n{a2</s>}");
    tri_chat_close(chat);
    /* No header at all: what follows [/INST] is the model's, the space as well. */
    chat = open_golden("mistral_tools");
    assert_shown(chat, DIALOG, NULL, "<s>[INST] u1[/INST]{ a1</s>}[INST] u2[/INST]{ a2</s>}");
    tri_chat_close(chat);
    chat = open_golden("deepseek");
    assert_shown(chat, DIALOG, NULL,
                 "<s>S<｜User｜>u1<｜Assistant｜>{a1<｜end▁of▁sentence｜>}"
                 "<｜User｜>u2<｜Assistant｜>{a2<｜end▁of▁sentence｜>}");
    tri_chat_close(chat);
}

/* Qwen3 writes think blocks in the last round alone: no prefix of the text for earlier turns. */
static void test_think(void **state)
{
    (void)state;
    static const char dialog[] =
        "[{\"role\":\"user\",\"content\":\"u1\"},"
        "{\"role\":\"assistant\",\"content\":\"<think>\\nt1\\n</think>\\n\\na1\"},"
        "{\"role\":\"user\",\"content\":\"u2\"},{\"role\":\"assistant\",\"content\":\"a2\"}]";
    struct tri_chat_template *chat = open_golden("qwen3");
    json_t *off = json_pack("{sb}", "enable_thinking", 0);
    const struct tri_chat_options ignore = {.ignore_empty_think = true},
                                  last = {.last_round = true}, no_think = {.variables = off};
    assert_shown(chat, dialog, NULL,
                 "<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n{a1<|im_end|>}\n"
                 "<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n"
                 "{<think>\n\n</think>\n\na2<|im_end|>}\n");
    assert_shown(chat, dialog, &ignore,
                 "<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n{a1<|im_end|>}\n"
                 "<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n"
                 "<think>\n\n</think>\n\n{a2<|im_end|>}\n");
    assert_shown(chat, dialog, &last,
                 "<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\na1<|im_end|>\n"
                 "<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n"
                 "{<think>\n\n</think>\n\na2<|im_end|>}\n");
    /* With thinking off the empty block is part of the prompt. */
    assert_shown(chat, dialog, &no_think,
                 "<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n{a1<|im_end|>}\n"
                 "<|im_start|>user\nu2<|im_end|>\n<|im_start|>assistant\n"
                 "<think>\n\n</think>\n\n{a2<|im_end|>}\n");
    assert_shown(chat,
                 "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"\","
                 "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}}]},"
                 "{\"role\":\"tool\",\"content\":\"r\"},{\"role\":\"assistant\",\"content\":\"a\","
                 "\"reasoning_content\":\"why\"}]",
                 &ignore,
                 "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n"
                 "{<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>"
                 "<|im_end|>}\n<|im_start|>user\n<tool_response>\nr\n</tool_response><|im_end|>\n"
                 "<|im_start|>assistant\n{<think>\nwhy\n</think>\n\na<|im_end|>}\n");
    json_decref(off);
    tri_chat_close(chat);
}

static void test_flags(void **state)
{
    (void)state;
    struct tri_chat_template *chat = open_golden("phi3");
    static const char *const both[] = {"user", "assistant"};
    static const char *const none[] = {"nobody"};
    const struct tri_chat_options options = {.roles = both, .num_roles = 2},
                                  nobody = {.roles = none, .num_roles = 1},
                                  last = {.last_round = true};
    static const char dialog[] =
        "[{\"role\":\"user\",\"content\":\"u1\",\"train\":true},"
        "{\"role\":\"assistant\",\"content\":\"a1\",\"loss\":false},"
        "{\"role\":\"assistant\",\"content\":\"a2\",\"weight\":1},"
        "{\"role\":\"user\",\"content\":\"u2\"},{\"role\":\"assistant\",\"content\":\"a3\","
        "\"weight\":0.0}]";
    assert_shown(chat, dialog, NULL,
                 "<|user|>\n{u1<|end|>}\n<|assistant|>\na1<|end|>\n<|assistant|>\n{a2<|end|>}\n"
                 "<|user|>\nu2<|end|>\n<|assistant|>\na3<|end|>\n</s>");
    assert_shown(chat, dialog, &last,
                 "<|user|>\n{u1<|end|>}\n<|assistant|>\na1<|end|>\n<|assistant|>\n{a2<|end|>}\n"
                 "<|user|>\nu2<|end|>\n<|assistant|>\na3<|end|>\n</s>");
    assert_shown(chat, DIALOG, &options,
                 "<|system|>\nS<|end|>\n<|user|>\n{u1<|end|>}\n<|assistant|>\n{a1<|end|>}\n"
                 "<|user|>\n{u2<|end|>}\n<|assistant|>\n{a2<|end|>}\n</s>");
    assert_shown(chat, "[{\"role\":\"user\",\"content\":\"u\"}]", NULL, "<|user|>\nu<|end|>\n</s>");
    assert_shown(chat, "[{\"role\":\"assistant\",\"content\":\"a\"}]", &nobody,
                 "<|assistant|>\na<|end|>\n</s>");
    assert_refused(chat, "[{\"role\":\"assistant\",\"content\":\"a\",\"weight\":0.5}]", NULL,
                   "message 0: \"weight\" must be true, false, 0 or 1");
    assert_refused(chat, "[{\"role\":\"user\",\"content\":\"\",\"loss\":1,\"train\":false}]", NULL,
                   "contradict");
    assert_refused(chat, "[]", NULL, "at least one message");
    assert_refused(chat, "[{\"content\":\"a\"}]", NULL, "message 0 has no \"role\"");
    assert_refused(chat, "[{\"role\":\"user\",\"content\":\"a\"},3]", NULL,
                   "message 1 is not an object");
    assert_refused(chat, "[{\"role\":\"critic\",\"content\":\"a\",\"train\":true}]", NULL,
                   "message 0 (critic) is to be trained, but the chat template writes nothing");
    tri_chat_close(chat);
}

static void test_generation(void **state)
{
    (void)state;
    struct tri_chat_template *chat = open_golden("generation");
    assert_shown(chat, DIALOG, NULL,
                 "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nu1<|im_end|>\n"
                 "<|im_start|>assistant\n{a1<|im_end|>}\n<|im_start|>user\nu2<|im_end|>\n"
                 "<|im_start|>assistant\n{a2<|im_end|>}\n");
    assert_shown(chat,
                 "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"a\","
                 "\"train\":false},{\"role\":\"assistant\",\"content\":\"b\"}]",
                 NULL,
                 "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n"
                 "<|im_start|>assistant\n{b<|im_end|>}\n");
    assert_refused(chat, "[{\"role\":\"user\",\"content\":\"u\",\"train\":true}]", NULL,
                   "has no generation block for it");
    tri_chat_close(chat);
    /* Blocks of a loop over indices are told apart by their order. */
    chat = open_text("{% for i in range(messages|length) %}{% set m = messages[i] %}"
                     "{% if m.role == 'user' %}[{{ m.content }}]{% else %}{% generation %}"
                     "{{ m.content }}.{% endgeneration %}{% endif %}{% endfor %}");
    assert_shown(chat,
                 "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"content\":\"a\","
                 "\"loss\":0},{\"role\":\"user\",\"content\":\"v\"},"
                 "{\"role\":\"assistant\",\"content\":\"b\"}]",
                 NULL, "[u]a.[v]{b.}");
    tri_chat_close(chat);
}

/* Templates that do not loop over the messages themselves. */
static void test_prefixes(void **state)
{
    (void)state;
    struct tri_chat_template *chat =
        open_text("{% for i in range(messages|length) %}<{{ messages[i].role }}>"
                  "{{ messages[i].content }}</>\n{% endfor %}"
                  "{% if add_generation_prompt %}<assistant>{% endif %}");
    assert_shown(chat, DIALOG, NULL,
                 "<system>S</>\n<user>u1</>\n<assistant>{a1</>}\n<user>u2</>\n"
                 "<assistant>{a2</>}\n");
    tri_chat_close(chat);
    chat = open_text("{% for i in range(messages|length) %}{% if loop.last %}!{% endif %}"
                     "{{ messages[i].content }}{% endfor %}");
    assert_refused(chat, DIALOG, NULL, "writes message 2 differently when others follow");
    tri_chat_close(chat);
    /* A turn that ends in white space alone keeps it. */
    chat = open_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                     "{% if add_generation_prompt %}assistant:{% endif %}");
    assert_shown(chat, DIALOG, NULL,
                 "system: S\nuser: u1\nassistant:{ a1\n}user: u2\nassistant:{ a2\n}");
    tri_chat_close(chat);
    /* A prompt that the turns do not start with: from the content on. */
    chat = open_text("{% for m in messages %}({{ m.role }}){{ m.content }};{% endfor %}"
                     "{% if add_generation_prompt %}<think>{% endif %}");
    assert_shown(chat, DIALOG, NULL,
                 "(system)S;(user)u1;(assistant){a1;}(user)u2;(assistant){a2;}");
    assert_refused(chat, "[{\"role\":\"assistant\",\"content\":[1]}]", NULL,
                   "does not start with its generation prompt");
    tri_chat_close(chat);
}

/* By origin and by prefix must agree wherever a template allows both: the same dialogs, with the
 * whole text of each turn found by cutting the conversation short. */
static void test_agreement(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3", "olmo2", "generation"};
    char path[] = TEST_DATA "/golden/chat/chats.jsonl", *lines;
    size_t bytes;
    static const struct tri_chat_options plain, prompt = {.generation_prompt = true};
    int compared = 0;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct tri_chat_template *chat = open_golden(names[n]);
        assert_int_equal(tri_file_read(path, LIMIT, &lines, &bytes), TRI_OK);
        for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
            json_t *conversation = json_loads(line, 0, NULL);
            json_t *messages = json_object_get(conversation, "messages");
            struct tri_chat_text whole = {0}, before = {0};
            json_t *cut = json_array();
            size_t cursor = 0;
            if (tri_chat_render(chat, messages, NULL, &plain, &whole) != TRI_OK)
                fail_msg("%s", tri_error_text());
            for (size_t i = 0; i < json_array_size(messages); i++) {
                const json_t *message = json_array_get(messages, i);
                if (i > 0 &&
                    strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0) {
                    assert_int_equal(tri_chat_render(chat, cut, NULL, &prompt, &before), TRI_OK);
                    assert_memory_equal(whole.text, before.text, before.bytes);
                    assert_false(tri_chat_is_trained(&whole, before.bytes - 1, &cursor));
                    assert_true(tri_chat_is_trained(&whole, before.bytes, &cursor));
                    tri_chat_text_free(&before);
                    compared++;
                }
                assert_int_equal(json_array_append(cut, (json_t *)(uintptr_t)message), 0);
            }
            tri_chat_text_free(&whole);
            json_decref(cut);
            json_decref(conversation);
        }
        free(lines);
        tri_chat_close(chat);
    }
    assert_true(compared > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints), cmocka_unit_test(test_headers),
        cmocka_unit_test(test_think),       cmocka_unit_test(test_flags),
        cmocka_unit_test(test_generation),  cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_agreement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
