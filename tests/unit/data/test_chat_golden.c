/* The references of chat templates, read as lines of a data set: rendered and encoded alike. */
#include "unit/data/chat_fixture.h"

enum { LIMIT = 64 << 20 };

static char *read_golden(const char *name)
{
    char path[4400], *text;
    size_t bytes;
    snprintf(path, sizeof path, TEST_DATA "/golden/%s", name);
    if (tri_file_read(path, LIMIT, &text, &bytes) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return text;
}

/* The next line as JSON; the text is cut up. */
static json_t *next_line(char **text)
{
    char *line = *text, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *text = end + 1;
    json_t *value = json_loadb(line, (size_t)(end - line), 0, NULL);
    assert_non_null(value);
    return value;
}

/* Take away what the template was just found to write nothing of: the reference is the same. */
static bool strip(json_t *line)
{
    json_t *messages = json_object_get(line, "messages");
    if (!strstr(tri_error_text(), "of which the chat template writes nothing"))
        return false;
    if (strstr(tri_error_text(), "there are \"tools\""))
        return json_object_del(line, "tools") == 0;
    bool any = false;
    for (size_t i = 0; i < json_array_size(messages); i++)
        any = json_object_del(json_array_get(messages, i), "tool_calls") == 0 || any;
    return any;
}

/* False for the refusal that chat.h documents: it cannot be told where a turn begins. */
static bool read_sample(json_t *line, struct tri_sample *out)
{
    char *text = json_dumps(line, 0);
    assert_non_null(text);
    const enum tri_status st = tri_sample_from_line(&chat_rules, text, strlen(text), out);
    if (st != TRI_OK && strip(line)) {
        free(text);
        return read_sample(line, out);
    }
    if (st != TRI_OK && !strstr(tri_error_text(), "does not start with its generation prompt"))
        fail_msg("%s: %.200s", tri_error_text(), text);
    free(text);
    json_decref(line);
    return st == TRI_OK;
}

static void refuse_sample(json_t *line)
{
    char *text = json_dumps(line, 0);
    struct tri_sample sample;
    assert_non_null(text);
    assert_int_not_equal(tri_sample_from_line(&chat_rules, text, strlen(text), &sample), TRI_OK);
    free(text);
    json_decref(line);
}

/* Ids of Transformers' apply_chat_template with the checkpoints' own templates: the template's bos
 * is the only one. */
static void test_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3_style", "qwen_style"};
    for (size_t i = 0; i < 2; i++) {
        char path[4400];
        snprintf(path, sizeof path, TEST_DATA "/golden/tokenizers/%s", names[i]);
        chat_defaults("auto");
        chat_open(path);
        chat_rules.add_bos = chat_rules.add_eos = true; /* not for conversations */
        snprintf(path, sizeof path, "tokenizers/%s/golden_chat.jsonl", names[i]);
        char *text = read_golden(path), *at = text;
        int compared = 0;
        for (json_t *golden; (golden = next_line(&at)); json_decref(golden)) {
            if (json_is_true(json_object_get(golden, "add_generation_prompt")))
                continue;
            const json_t *want = json_object_get(golden, "ids");
            struct tri_sample sample;
            assert_true(read_sample(
                json_pack("{sO}", "messages", json_object_get(golden, "messages")), &sample));
            assert_int_equal(sample.tokens, json_array_size(want));
            for (size_t t = 0; t < json_array_size(want); t++)
                assert_int_equal(sample.ids[t], json_integer_value(json_array_get(want, t)));
            tri_sample_close(&sample);
            compared++;
        }
        assert_true(compared >= 2);
        free(text);
        chat_close();
    }
}

static bool in_ranges(const json_t *ranges, int64_t byte)
{
    for (size_t i = 0; i < json_array_size(ranges); i++) {
        const json_t *range = json_array_get(ranges, i);
        if (byte >= json_integer_value(json_array_get(range, 0)) &&
            byte < json_integer_value(json_array_get(range, 1)))
            return true;
    }
    return false;
}

/* A byte is a token here, so the ids are the text of the reference; and what the template puts into
 * {% generation %} is what is trained. */
static void check_template(const char *name)
{
    char path[4400];
    snprintf(path, sizeof path, TEST_DATA "/golden/chat/templates/%s.jinja", name);
    chat_defaults(path);
    chat_open(NULL);
    snprintf(path, sizeof path, "chat/%s.jsonl", name);
    char *chats = read_golden("chat/chats.jsonl"), *golden = read_golden(path);
    char *at = chats, *golden_at = golden;
    int lines = 0, compared = 0;
    for (json_t *chat; (chat = next_line(&at)); lines++) {
        json_t *want = next_line(&golden_at);
        if (json_is_true(json_object_get(chat, "generation_prompt"))) { /* not for training */
            json_decref(want);
            json_decref(chat);
            continue;
        }
        const char *text = json_string_value(json_object_get(want, "text"));
        const json_t *ranges = json_object_get(want, "ranges");
        struct tri_sample sample = {.tokens = 0};
        json_t *line = json_pack("{sOsO}", "messages", json_object_get(chat, "messages"),
                                 "chat_template_kwargs", json_object_get(chat, "variables"));
        assert_int_equal(json_object_set(line, "tools", json_object_get(chat, "tools")), 0);
        if (!text) { /* the template refuses it */
            refuse_sample(line);
        } else if (read_sample(line, &sample)) {
            compared++;
            assert_int_equal(sample.tokens, strlen(text));
        }
        for (int64_t t = 0; t < sample.tokens; t++) {
            if (sample.ids[t] != (unsigned char)text[t])
                fail_msg("%s, line %d: byte %lld", name, lines + 1, (long long)t);
            if (ranges)
                assert_int_equal(sample.labels[t] >= 0, in_ranges(ranges, t));
        }
        tri_sample_close(&sample);
        json_decref(want);
        json_decref(chat);
    }
    assert_int_equal(lines, 50);
    assert_true(compared >= 20);
    free(chats);
    free(golden);
    chat_close();
}

static void test_templates(void **state)
{
    (void)state;
    static const char *const names[] = {"deepseek",      "generation", "llama3", "llama3_tools",
                                        "mistral_tools", "olmo2",      "phi3",   "qwen3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_template(names[i]);
}

/* Masks as Transformers makes them of generation blocks (return_assistant_tokens_mask), token by
 * token. */
static void test_token_masks(void **state)
{
    (void)state;
    char *chats = read_golden("chat/chats.jsonl"),
         *masks = read_golden("chat/generation_masks.jsonl");
    char *at = masks, *chat_at = chats;
    json_t *list = json_array();
    for (json_t *chat; (chat = next_line(&chat_at));)
        assert_int_equal(json_array_append_new(list, chat), 0);
    char name[64] = "", folder[4400];
    int compared = 0;
    for (json_t *golden; (golden = next_line(&at)); json_decref(golden), compared++) {
        const char *tokenizer = json_string_value(json_object_get(golden, "tokenizer"));
        const char *mask = json_string_value(json_object_get(golden, "mask"));
        const int64_t index = json_integer_value(json_object_get(golden, "chat"));
        const json_t *chat = json_array_get(list, (size_t)index);
        if (strcmp(tokenizer, name) != 0) {
            if (compared > 0)
                chat_close();
            snprintf(name, sizeof name, "%s", tokenizer);
            snprintf(folder, sizeof folder, TEST_DATA "/golden/tokenizers/%s", tokenizer);
            chat_defaults(TEST_DATA "/golden/chat/templates/generation.jinja");
            chat_open(folder);
        }
        struct tri_sample sample;
        json_t *line = json_pack("{sOsO}", "messages", json_object_get(chat, "messages"),
                                 "chat_template_kwargs", json_object_get(chat, "variables"));
        assert_true(read_sample(line, &sample));
        assert_int_equal(sample.tokens, strlen(mask));
        for (int64_t t = 0; t < sample.tokens; t++)
            if ((sample.labels[t] >= 0) != (mask[t] == '1'))
                fail_msg("%s, chat %lld, token %lld", name, (long long)index, (long long)t);
        tri_sample_close(&sample);
    }
    assert_int_equal(compared, 75);
    chat_close();
    json_decref(list);
    free(chats);
    free(masks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_token_masks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
