/* Formats of conversations and prompts, and what of them is trained. */
#include "unit/data/chat_fixture.h"

#define Q(text) "<|im_start|>user\n" text "<|im_end|>\n"
#define A(text) "<|im_start|>assistant\n" text "\n"

static const char two_rounds[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"q1\"},"
    "{\"role\":\"assistant\",\"content\":\"a1\"},{\"role\":\"user\",\"content\":\"q2\"},"
    "{\"role\":\"assistant\",\"content\":\"a2\"}]}";

/* The same line under each option. */
static void test_masks(void **state)
{
    (void)state;
    char *roles[] = {(char *)(uintptr_t) "user", (char *)(uintptr_t) "assistant"};
    chat_defaults("chatml");
    chat_open(NULL);
    assert_chat(two_rounds, "<|im_start|>system\nS<|im_end|>\n" Q("q1") A("{a1<|im_end|>}") Q("q2")
                                A("{a2<|im_end|>}"));
    chat_close();

    chat_options.mask_history = true;
    chat_open(NULL);
    assert_chat(two_rounds, "<|im_start|>system\nS<|im_end|>\n" Q("q1") A("a1<|im_end|>") Q("q2")
                                A("{a2<|im_end|>}"));
    chat_close();

    chat_defaults("chatml");
    chat_options.roles_to_train = roles;
    chat_options.num_roles_to_train = 2;
    chat_open(NULL);
    assert_chat(two_rounds, "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n{q1<|im_end|>}\n" A(
                                "{a1<|im_end|>}") "<|im_start|>user\n{q2<|im_end|>}\n" A("{a2<|im_"
                                                                                         "end|>}"));
    chat_close();

    chat_defaults("chatml");
    chat_options.mask_inputs = false;
    chat_open(NULL);
    assert_chat(two_rounds, "{<|im_start|>system\nS<|im_end|>\n" Q("q1") A("a1<|im_end|>") Q("q2")
                                A("a2<|im_end|>") "}");
    chat_close();
}

static void test_messages_say_whether_they_are_trained(void **state)
{
    (void)state;
    static const char line[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q1\",\"train\":true},"
        "{\"role\":\"assistant\",\"content\":\"a1\",\"weight\":0},"
        "{\"role\":\"user\",\"content\":\"q2\"},"
        "{\"role\":\"assistant\",\"content\":\"a2\",\"loss\":true}]}";
    chat_defaults("chatml");
    chat_open(NULL);
    assert_chat(line,
                "<|im_start|>user\n{q1<|im_end|>}\n" A("a1<|im_end|>") Q("q2") A("{a2<|im_end|>}"));
    chat_close();
    chat_options.mask_inputs = false; /* a message that says no is still not trained */
    chat_open(NULL);
    assert_chat(line, "{" Q("q1") "}" A("a1<|im_end|>") "{" Q("q2") A("a2<|im_end|>") "}");
    chat_close();
}

static void test_sharegpt(void **state)
{
    (void)state;
    chat_defaults("chatml");
    chat_open(NULL);
    assert_chat("{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},"
                "{\"from\":\"gpt\",\"value\":\"a\"}],\"system\":\"S\",\"id\":\"7\"}",
                "<|im_start|>system\nS<|im_end|>\n" Q("q") A("{a<|im_end|>}"));
    assert_chat("{\"conversations\":[{\"role\":\"user\",\"content\":\"q\"},"
                "{\"from\":\"gpt\",\"value\":\"a\",\"weight\":0},"
                "{\"from\":\"observation\",\"value\":\"o\"},{\"from\":\"gpt\",\"value\":\"b\"}]}",
                Q("q") A("a<|im_end|>") "<|im_start|>tool\no<|im_end|>\n" A("{b<|im_end|>}"));
    chat_close();
}

static void test_calls_and_tools(void **state)
{
    (void)state;
    put_text(in_scratch("calls.jinja"),
             "{% for t in tools %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}"
             "<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}{{ c.function | tojson }}"
             "{% endfor %}</s>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}");
    char path[4400];
    snprintf(path, sizeof path, "%s", in_scratch("calls.jinja"));
    chat_defaults(path);
    chat_open(NULL);
    static const char want[] =
        "[f]<user>q</s>\n<assistant>{{\"name\": \"f\", \"arguments\": {\"x\": "
        "1}}</s>}\n<tool>2</s>\n<assistant>{two</s>}\n";
    assert_chat("{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},{\"from\":"
                "\"function_call\",\"value\":\"{\\\"name\\\":\\\"f\\\",\\\"arguments\\\":{\\\"x\\\""
                ":1}}\"},{\"from\":\"observation\",\"value\":\"2\"},{\"from\":\"gpt\",\"value\":"
                "\"two\"}],\"tools\":\"[{\\\"function\\\":{\\\"name\\\":\\\"f\\\"}}]\"}",
                want);
    assert_chat(
        "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"q\"}]}"
        ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":"
        "\"f\",\"arguments\":{\"x\":1}}}]},{\"role\":\"tool\",\"content\":\"2\"},{\"role\":"
        "\"assistant\",\"content\":\"two\"}],\"tools\":[{\"function\":{\"name\":\"f\"}}]}",
        want);
    chat_close();
}

/* A template that passes over calls or tools would train a model not to call. */
static void test_calls_that_the_template_does_not_write(void **state)
{
    (void)state;
    static const char call[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
        "\"content\":\"I call "
        "f\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]}]}";
    static const char tools[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":"
                                "\"assistant\",\"content\":\"a\"}],\"tools\":[{\"name\":\"f\"}]}";
    chat_defaults("chatml");
    chat_open(NULL);
    assert_no_chat(call, TRI_INVALID,
                   "message 1 has \"tool_calls\", of which the chat template writes nothing: set "
                   "data.chat_template to a template that writes tools");
    assert_no_chat(tools, TRI_INVALID,
                   "there are \"tools\", of which the chat template writes nothing: set "
                   "data.chat_template to a template that writes tools");
    assert_no_chat("{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"},{\"from\":"
                   "\"function_call\",\"value\":\"{\\\"name\\\":\\\"f\\\"}\"}]}",
                   TRI_INVALID, "data.chat_template"); /* there is no content either */
    /* Empty lists are none. */
    assert_chat("{\"messages\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
                "\"content\":\"a\",\"tool_calls\":[]}],\"tools\":[]}",
                Q("q") A("{a<|im_end|>}"));
    chat_close();
    /* One that needs the calls reads them. */
    char path[4400];
    snprintf(path, sizeof path, "%s", in_scratch("needs.jinja"));
    put_text(path,
             "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.role == 'assistant' "
             "%}{{ m.tool_calls[0].function.name }}{% endif %}</s>{% endfor %}"
             "{% if add_generation_prompt %}<assistant>{% endif %}");
    chat_defaults(path);
    chat_open(NULL);
    assert_chat(call, "<user>q</s><assistant>{I call ff</s>}");
    chat_close();
}

static void test_prompts(void **state)
{
    (void)state;
    chat_defaults("chatml");
    chat_open(NULL);
    assert_chat("{\"prompt\":\"1+1=\",\"completion\":\"2\"}", "1+1={2}");
    assert_chat("{\"prompt\":\"\",\"completion\":\"22\"}", "{22}");
    chat_rules.add_bos = chat_rules.add_eos = true;
    assert_chat("{\"prompt\":\"1+1=\",\"completion\":\"2\"}", "<s>1+1={2</s>}");
    chat_rules.train_inputs = true;
    assert_chat("{\"prompt\":\"1+1=\",\"completion\":\"2\"}", "{<s>1+1=2</s>}");
    chat_rules.train_inputs = false;
    /* As messages: those of the prompt are not trained, whatever their role. */
    assert_chat("{\"prompt\":[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
                "\"content\":\"a\"},{\"role\":\"user\",\"content\":\"r\"}],"
                "\"completion\":[{\"role\":\"assistant\",\"content\":\"b\"}]}",
                Q("q") A("a<|im_end|>") Q("r") A("{b<|im_end|>}"));
    chat_close();
}

/* A token over the border of prompt and completion is trained: Llama-3's tokenizer joins a space
 * and the word behind it. */
static void test_token_across_the_border(void **state)
{
    (void)state;
    chat_defaults("chatml");
    chat_open(TEST_DATA "/golden/tokenizers/llama3_style");
    assert_chat("{\"prompt\":\"In the beginning God \",\"completion\":\"created the heaven\"}",
                "In the beginning God{ created the heaven}");
    assert_chat("{\"prompt\":\"In the beginning God\",\"completion\":\" created the heaven\"}",
                "In the beginning God{ created the heaven}");
    chat_close();
}

static void test_alpaca(void **state)
{
    (void)state;
    chat_defaults("chatml");
    chat_open(NULL);
    assert_chat("{\"instruction\":\"Add.\",\"input\":\"1, 1\",\"output\":\"2\"}",
                Q("Add.\n1, 1") A("{2<|im_end|>}"));
    assert_chat("{\"instruction\":\"And 2?\",\"input\":\"\",\"output\":\"3\",\"system\":\"S\","
                "\"history\":[[\"Add.\",\"2\"]]}",
                "<|im_start|>system\nS<|im_end|>\n" Q("Add.") A("{2<|im_end|>}") Q("And 2?")
                    A("{3<|im_end|>}"));
    chat_close();
    chat_defaults("alpaca");
    chat_open(NULL);
    assert_chat(
        "{\"instruction\":\"Add.\",\"output\":\"2\"}",
        "Below is an instruction that describes a task. Write a response that appropriately "
        "completes the request.\n\n### Instruction:\nAdd.\n\n### Response:\n{2}");
    chat_close();
}

static void test_bad_conversations(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum tri_status status;
        const char *message;
    } cases[] = {
        {"{\"messages\":[]}", TRI_INVALID, "\"messages\" is empty: remove the line"},
        {"{\"messages\":\"hi\"}", TRI_INVALID, "\"messages\" is a string: it must be a list"},
        {"{\"messages\":[\"hi\"]}", TRI_INVALID, "message 0 is a string: it must be an object"},
        {"{\"messages\":[{\"content\":\"hi\"}]}", TRI_INVALID, "message 0 is without \"role\""},
        {"{\"messages\":[{\"role\":\"bot\\n\",\"content\":\"hi\"}]}", TRI_INVALID,
         "message 0 has the unknown role \"bot?\": system, developer, user"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]}",
         TRI_UNSUPPORTED, "part 0 of message 0 has no \"text\""},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"weight\":0.5}]}", TRI_UNSUPPORTED,
         "message 0: \"weight\" must be true, false, 0 or 1"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\",\"loss_scale\":0.5}]}",
         TRI_UNSUPPORTED, "message 0 has a field \"loss_scale\", which is not read"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":{\"a\":1}}", TRI_INVALID,
         "\"tools\" is an object: it must be a list of functions"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"tools\":\"[\"}", TRI_FORMAT,
         "\"tools\""},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"chat_template_kwargs\":[1]}",
         TRI_INVALID, "\"chat_template_kwargs\" is a list: it must be an object"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"images\":[\"a.png\"]}",
         TRI_UNSUPPORTED, "column \"images\" (a list) is not read"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"labels\":[1]}", TRI_INVALID,
         "\"labels\" goes with \"input_ids\""},
        {"{\"messages\":[{\"role\":\"user\"}],\"text\":\"a\"}", TRI_INVALID,
         "both \"messages\" and \"text\" are given: remove one, or set data.format"},
        {"{\"conversations\":[]}", TRI_INVALID, "\"conversations\" is empty"},
        {"{\"conversations\":[{\"from\":\"me\",\"value\":\"a\"}]}", TRI_INVALID,
         "message 0 is from \"me\", which is unknown: human, gpt"},
        {"{\"conversations\":[{\"from\":\"gpt\",\"value\":5}]}", TRI_INVALID,
         "message 0 needs \"from\" and \"value\", both strings (\"value\" is an integer)"},
        {"{\"conversations\":[7]}", TRI_INVALID, "message 0 needs \"from\" and \"value\""},
        {"{\"conversations\":[{\"from\":\"function_call\",\"value\":\"x\"}]}", TRI_FORMAT,
         "message 0: the function call"},
        {"{\"conversations\":[{\"from\":\"function_call\",\"value\":\"[1]\"}]}", TRI_INVALID,
         "message 0: a function call has no \"name\""},
        {"{\"prompt\":\"a\",\"completion\":\"\"}", TRI_INVALID, "\"completion\" is empty"},
        {"{\"prompt\":[],\"completion\":\"a\"}", TRI_INVALID,
         "\"prompt\" is a list and \"completion\" is a string: both must be strings"},
        {"{\"prompt\":[],\"completion\":[]}", TRI_INVALID, "\"prompt\" is empty"},
        {"{\"prompt\":{},\"completion\":\"a\"}", TRI_INVALID, "\"prompt\" is an object"},
        {"{\"instruction\":\"a\",\"output\":\"\"}", TRI_INVALID, "\"output\" is empty"},
        {"{\"instruction\":\"a\",\"output\":\"b\",\"history\":[[\"a\"]]}", TRI_INVALID,
         "\"history\"[0] must be a question and its answer"},
        {"{\"instruction\":\"a\",\"output\":\"b\",\"history\":{}}", TRI_INVALID,
         "\"history\" is an object"},
        {"{\"instruction\":5,\"output\":\"b\"}", TRI_INVALID, "\"instruction\" is an integer"},
    };
    chat_defaults("chatml");
    chat_open(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_no_chat(cases[i].line, cases[i].status, cases[i].message);
    chat_rules.format = TRI_DATA_PROMPT;
    assert_no_chat("{\"text\":\"a\",\"prompt\":\"b\"}", TRI_INVALID,
                   "\"completion\" is missing: data.format is prompt_completion, which needs it");
    /* A format that is set decides where columns of two are there. */
    chat_rules.format = TRI_DATA_TEXT;
    assert_chat("{\"text\":\"ab\",\"prompt\":\"b\",\"completion\":\"c\"}", "{ab}");
    chat_close();
}

static void test_templates_fail_with_their_reason(void **state)
{
    (void)state;
    static const char line[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}";
    chat_defaults("auto");
    chat_open(NULL);
    assert_no_chat(line, TRI_INVALID, "there is no model whose chat template could be used");
    assert_chat("{\"text\":\"a b\"}", "{a b}"); /* nothing is wrong until one is needed */
    chat_close();
    chat_open(TEST_DATA "/golden/tokenizers/gpt2_style");
    assert_no_chat(line, TRI_INVALID, "has no chat template");
    chat_close();

    char path[4400];
    snprintf(path, sizeof path, "%s", in_scratch("absent.jinja"));
    chat_defaults(path);
    chat_open(NULL);
    assert_no_chat(line, TRI_IO,
                   "data.chat_template (auto, chatml, alpaca, or the path of a Jinja "
                   "file): ");
    chat_close();
    put_text(path, "{% for m in messages %}");
    chat_open(NULL);
    assert_no_chat(line, TRI_FORMAT, "absent.jinja");
    chat_close();
    put_text(path, "{{ raise_exception('no ' + messages[0].content) }}");
    chat_open(NULL);
    assert_no_chat(line, TRI_INVALID, "no a");
    chat_close();
    put_text(path, "{# nothing #}");
    chat_open(NULL);
    assert_no_chat(line, TRI_INVALID, "makes an empty text of this conversation");
    chat_close();
}

static void test_bad_dates_and_kwargs(void **state)
{
    (void)state;
    struct tri_chat_rules *rules;
    chat_defaults("chatml");
    chat_options.chat_date = (char *)(uintptr_t) "26 July";
    assert_int_equal(tri_chat_rules_open(&chat_options, NULL, &rules), TRI_INVALID);
    assert_error_has("data.chat_date is \"26 July\": write it as 2024-07-26");

    char path[4400];
    snprintf(path, sizeof path, "%s", in_scratch("date.jinja"));
    put_text(path, "{{ strftime_now('%d %b %Y') }} {{ who }} {{ what }}");
    chat_defaults(path);
    chat_options.chat_date = (char *)(uintptr_t) "2025-02-03";
    chat_options.chat_template_kwargs = (char *)(uintptr_t) "{\"who\":\"all\",\"what\":\"all\"}";
    chat_options.mask_inputs = false;
    chat_open(NULL);
    assert_chat("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                "\"chat_template_kwargs\":{\"what\":\"own\"}}",
                "{03 Feb 2025 all own}");
    chat_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRATCH_TEST(test_masks),
        SCRATCH_TEST(test_messages_say_whether_they_are_trained),
        SCRATCH_TEST(test_sharegpt),
        SCRATCH_TEST(test_calls_and_tools),
        SCRATCH_TEST(test_calls_that_the_template_does_not_write),
        SCRATCH_TEST(test_prompts),
        SCRATCH_TEST(test_token_across_the_border),
        SCRATCH_TEST(test_alpaca),
        SCRATCH_TEST(test_bad_conversations),
        SCRATCH_TEST(test_templates_fail_with_their_reason),
        SCRATCH_TEST(test_bad_dates_and_kwargs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
