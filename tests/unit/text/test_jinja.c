/* The template language against Python's jinja2 (tests/golden/chat, made by
 * tools/chat_fixtures.py), and its refusals and limits. The environment variable CHAT_FIXTURES
 * names another folder of that form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>

#include "base/file.h"
#include "text/jinja/jinja.h"

enum { NOW = 1739145600, PATH_BYTES = 4096, LIMIT = 64 << 20 };

static const char *folder(void)
{
    const char *other = getenv("CHAT_FIXTURES");
    return other != NULL ? other : TEST_DATA "/golden/chat";
}

static char *read_text(const char *name, size_t *bytes)
{
    char path[PATH_BYTES], *text;
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    if (tri_file_read(path, LIMIT, &text, bytes) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return text;
}

/* A line of JSON; NUL is allowed in strings, as templates may print it. */
static json_t *next_line(char **at)
{
    char *end = strchr(*at, '\n');
    json_error_t error;
    if (end == NULL)
        return NULL;
    json_t *value = json_loadb(*at, (size_t)(end - *at), JSON_ALLOW_NUL, &error);
    if (value == NULL)
        fail_msg("%s", error.text);
    *at = end + 1;
    return value;
}

static enum tri_status render(const struct tri_jinja *jinja, json_t *variables, json_t *messages,
                              struct tri_jinja_output *out)
{
    const struct tri_jinja_input input = {.variables = variables,
                                          .messages = messages,
                                          .message_count = -1,
                                          .now = NOW,
                                          .limits = tri_jinja_default_limits(100000)};
    return tri_jinja_render(jinja, &input, out);
}

/* Where range `r` begins (0) or ends (1); -1: there is none. */
static int64_t range_end(const json_t *ranges, size_t r, size_t which)
{
    const json_t *range = json_array_get(ranges, r);
    return range == NULL ? -1 : json_integer_value(json_array_get(range, which));
}

/* The marks cover the text, and those of generation blocks are where Python found them. */
static void check_marks(const struct tri_jinja_output *out, const json_t *ranges)
{
    size_t at = 0, r = 0;
    for (size_t m = 0; m < out->num_marks; m++) {
        assert_int_equal(out->marks[m].begin, at);
        assert_true(out->marks[m].end > at);
        at = out->marks[m].end;
        if (!out->marks[m].generation)
            continue;
        /* Python notes empty blocks, too, and does not join neighbours. */
        while (range_end(ranges, r, 0) == range_end(ranges, r, 1) && range_end(ranges, r, 0) >= 0)
            r++;
        assert_int_equal(range_end(ranges, r, 0), out->marks[m].begin);
        while (range_end(ranges, r, 1) < (int64_t)out->marks[m].end)
            assert_int_equal(range_end(ranges, r + 1, 0), range_end(ranges, r, 1)), r++;
        assert_int_equal(range_end(ranges, r++, 1), out->marks[m].end);
    }
    assert_int_equal(at, out->bytes);
}

static void check(const char *template, size_t bytes, json_t *variables, json_t *messages,
                  const json_t *want)
{
    struct tri_jinja *jinja = NULL;
    struct tri_jinja_output out = {0};
    const json_t *text = json_object_get(want, "text");
    enum tri_status st = tri_jinja_open("chat template", template, bytes, &jinja);
    if (st == TRI_OK)
        st = render(jinja, variables, messages, &out);
    if (text == NULL && st == TRI_OK)
        fail_msg("%s\nPython refuses: %s\nbut we wrote: %s", template,
                 json_string_value(json_object_get(want, "error")), out.text);
    if (text == NULL) {
        assert_non_null(strstr(tri_error_text(), "chat template line "));
        assert_null(strpbrk(tri_error_text(), "\n\r"));
    } else if (st != TRI_OK) {
        fail_msg("%s\nPython writes: %s\nbut: %s", template, json_string_value(text),
                 tri_error_text());
    } else if (out.bytes != json_string_length(text) ||
               memcmp(out.text, json_string_value(text), out.bytes) != 0) {
        fail_msg("%s\nPython writes: %s\nbut we wrote: %s", template, json_string_value(text),
                 out.text);
    } else {
        check_marks(&out, json_object_get(want, "ranges"));
    }
    tri_jinja_output_free(&out);
    tri_jinja_close(jinja);
}

static void test_snippets(void **state)
{
    (void)state;
    size_t bytes;
    char *text = read_text("variables.json", &bytes), *lines = read_text("snippets.jsonl", &bytes);
    json_t *variables = json_loads(text, 0, NULL), *line;
    int count = 0;
    assert_non_null(variables);
    for (char *at = lines; (line = next_line(&at)) != NULL; count++) {
        const json_t *template = json_object_get(line, "template");
        check(json_string_value(template), json_string_length(template), variables, NULL, line);
        json_decref(line);
    }
    assert_true(count > 200);
    json_decref(variables);
    free(text);
    free(lines);
}

/* All chats through one template. */
static void check_template(const char *name, char *chats)
{
    char file[PATH_BYTES];
    size_t bytes, template_bytes;
    snprintf(file, sizeof file, "templates/%s.jinja", name);
    char *template = read_text(file, &template_bytes);
    snprintf(file, sizeof file, "%s.jsonl", name);
    char *wanted = read_text(file, &bytes), *want_at = wanted;
    json_t *chat;
    int count = 0;
    for (char *at = chats; (chat = next_line(&at)) != NULL; count++) {
        json_t *want = next_line(&want_at), *variables = json_object_get(chat, "variables");
        assert_non_null(want);
        assert_int_equal(json_object_set(variables, "tools", json_object_get(chat, "tools")), 0);
        assert_int_equal(json_object_set_new(variables, "documents", json_null()), 0);
        assert_int_equal(json_object_set(variables, "add_generation_prompt",
                                         json_object_get(chat, "generation_prompt")),
                         0);
        check(template, template_bytes, variables, json_object_get(chat, "messages"), want);
        json_decref(want);
        json_decref(chat);
    }
    assert_true(count >= 50);
    print_message("%s: %d chats\n", name, count);
    free(template);
    free(wanted);
}

static void test_templates(void **state)
{
    (void)state;
    char path[PATH_BYTES];
    size_t bytes;
    int count = 0;
    char *chats = read_text("chats.jsonl", &bytes);
    snprintf(path, sizeof path, "%s/templates", folder());
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char *dot = strstr(entry->d_name, ".jinja");
        if (dot == NULL)
            continue;
        *dot = '\0';
        check_template(entry->d_name, chats);
        count++;
    }
    closedir(dir);
    free(chats);
    assert_true(count >= 1);
}

static void assert_error(const char *template, enum tri_status status, const char *part)
{
    struct tri_jinja *jinja = NULL;
    struct tri_jinja_output out;
    json_t *none = json_object();
    enum tri_status st = tri_jinja_open("chat template", template, strlen(template), &jinja);
    if (st == TRI_OK)
        st = render(jinja, none, NULL, &out);
    assert_int_equal(st, status);
    if (strstr(tri_error_text(), part) == NULL)
        fail_msg("%s\nsays: %s\nnot:  %s", template, tri_error_text(), part);
    tri_jinja_close(jinja);
    json_decref(none);
}

static void test_refusals(void **state)
{
    (void)state;
    assert_error("\n\n{{ 1 | xyz }}", TRI_UNSUPPORTED,
                 "chat template line 3: filter 'xyz' is not known");
    assert_error("{{ 1 is xyz }}", TRI_UNSUPPORTED, "line 1: test 'xyz' is not known");
    assert_error("{% if true %}{{ 1 | xyz }}{% endif %}", TRI_UNSUPPORTED,
                 "line 1: filter 'xyz' is not known");
    assert_error("\n{% include 'x' %}", TRI_UNSUPPORTED, "line 2: tag 'include' is not supported");
    assert_error("{% for x in y recursive %}{% endfor %}", TRI_UNSUPPORTED, "recursive loops");
    assert_error("{{ f(*x) }}", TRI_UNSUPPORTED, "*arguments");
    assert_error("{{ 'a'.zfill(3) }}", TRI_UNSUPPORTED, "'zfill' of str is not supported");
    assert_error("{{ '\\ud800' }}", TRI_FORMAT, "is not a character");
    assert_error("{{ 9223372036854775807 + 1 }}", TRI_UNSUPPORTED, "64 bits");
    assert_error("{{ x.y }}", TRI_INVALID, "'x' is undefined");
    assert_error("{{ [].append(1) }}", TRI_INVALID, "which the sandbox forbids");
    assert_error("{{ raise_exception('no ' ~ 1) }}", TRI_INVALID, "refuses these messages: no 1");
    assert_error("{% if x %}\n{% for y in z %}\n", TRI_FORMAT,
                 "line 2: expected a tag {% endfor %}");
    assert_error("{% set x %}{% generation %}{% endgeneration %}{% endset %}", TRI_UNSUPPORTED,
                 "generation block inside a macro");
    assert_error("\xFF", TRI_FORMAT, "not valid UTF-8 at byte 0");
}

static void test_limits(void **state)
{
    (void)state;
    assert_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", TRI_INVALID, "recursive");
    assert_error("{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) "
                 "%}{% endfor %}{% endfor %}{% endfor %}",
                 TRI_INVALID, "does not end");
    assert_error("{% set ns = namespace(x='a' * 1000) %}{% for a in range(99) %}"
                 "{% set ns.x = ns.x + ns.x %}{% endfor %}",
                 TRI_NOMEM, "no memory");
    assert_error("{{ 'a' * 99999999999 }}", TRI_NOMEM, "limit of memory");
    assert_error("{% set ns = namespace(x=[]) %}{% for a in range(9999) %}"
                 "{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
                 TRI_INVALID, "deep");
    assert_error("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", TRI_INVALID, "deep");
    assert_error("{{ 10 ** 10 ** 10 }}", TRI_UNSUPPORTED, "64 bits");

    char text[4000];
    memset(text, '(', sizeof text);
    memcpy(text, "{{ ", 3);
    text[sizeof text - 1] = '\0';
    assert_error(text, TRI_FORMAT, "nested more than");
    for (size_t i = 3; i + 4 < sizeof text; i += 4)
        memcpy(text + i, "not ", 4);
    memcpy(text + sizeof text - 6, "x }}", 5);
    assert_error(text, TRI_UNSUPPORTED, "nested more than");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snippets),
        cmocka_unit_test(test_templates),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
