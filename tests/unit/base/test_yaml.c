#include "unit/scratch.h"

#include "base/yaml.h"

static struct tri_yaml *parse(const char *text)
{
    struct tri_yaml *root = NULL;
    if (tri_yaml_parse("x.yml", text, strlen(text), &root) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return root;
}

static void fails(const char *text, size_t bytes, const char *part)
{
    struct tri_yaml *root = NULL;
    assert_int_equal(tri_yaml_parse("x.yml", text, bytes, &root), TRI_FORMAT);
    assert_null(root);
    assert_error_has(part);
}

static void fails_text(const char *text, const char *part)
{
    fails(text, strlen(text), part);
}

static void knows_places(void **state)
{
    (void)state;
    struct tri_yaml *root = parse("# comment\na: 1\nb:\n  - x\n  - {c: 'd'}\n");
    assert_int_equal(root->kind, TRI_YAML_MAPPING);
    assert_int_equal(root->count, 2);
    const struct tri_yaml *a = root->first, *b = a->next;
    assert_string_equal(a->key, "a");
    assert_string_equal(a->text, "1");
    assert_int_equal(a->key_line, 2);
    assert_int_equal(a->column, 4);
    assert_false(a->quoted);
    assert_int_equal(b->kind, TRI_YAML_SEQUENCE);
    assert_int_equal(b->key_line, 3);
    assert_int_equal(b->first->line, 4);
    const struct tri_yaml *d = b->first->next->first;
    assert_string_equal(d->key, "c");
    assert_string_equal(d->text, "d");
    assert_int_equal(d->line, 5);
    assert_true(d->quoted);
    assert_null(b->next);
    tri_yaml_free(root);
}

static void skips_a_byte_order_mark(void **state)
{
    (void)state;
    struct tri_yaml *root = parse("\xEF\xBB\xBF"
                                  "a: 1\nb: 2\n");
    assert_int_equal(root->count, 2);
    assert_string_equal(root->first->key, "a");
    assert_int_equal(root->first->key_line, 1);
    tri_yaml_free(root);
    root = parse("\xEF\xBB\xBF");
    assert_int_equal(root->count, 0);
    tri_yaml_free(root);
    fails_text("a: 1\n\xEF\xBB\xBF"
               "b: 2\n",
               "x.yml:2");
}

static void reads_nothing_as_an_empty_mapping(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "# only a comment\n", "---\n...\n"};
    for (int i = 0; i < 3; i++) {
        struct tri_yaml *root = parse(texts[i]);
        assert_int_equal(root->kind, TRI_YAML_MAPPING);
        assert_int_equal(root->count, 0);
        tri_yaml_free(root);
    }
}

static void refuses_duplicates(void **state)
{
    (void)state;
    fails_text("a: 1\nb: 2\na: 3\n", "x.yml:3: duplicate key 'a', first given at x.yml:1");
    fails_text("s:\n  k: 1\n  k: 2\n", "x.yml:3: duplicate key 'k', first given at x.yml:2");
    tri_yaml_free(parse("s: {k: 1}\nt: {k: 2}\n"));
}

static void refuses_bad_syntax(void **state)
{
    (void)state;
    fails_text("a:\n\tb: 1\n", "x.yml:2: a tab");
    fails_text("a: [1, 2\n", "x.yml:");
    fails_text("a: b: c\n", "x.yml:1:");
    fails_text("a: \"x\n", "x.yml:");
    fails_text("- a\n- b\n", "x.yml:1: expected 'key: value'");
    fails_text("just words\n", "x.yml:1: expected 'key: value'");
    fails_text("a: 1\n---\nb: 2\n", "x.yml:2: a second document");
    fails_text("a: \xFF\n", "UTF-8");
    fails("a: b\0c\n", 7, "x.yml");
    fails_text("a: \"b\\0c\"\n", "zero bytes");
    fails_text("? [a]\n: 1\n", "a key must be a plain word");
    fails_text("\"a\\nb\": 1\n", "control characters");
}

static void refuses_indirection(void **state)
{
    (void)state;
    fails_text("a: &x 1\nb: *x\n", "x.yml:1: anchors");
    fails_text("b: *x\n", "x.yml:1: anchors");
    fails_text("a: &x [1]\n", "x.yml:1: anchors");
    fails_text("a: {<<: *x}\n", "x.yml:1: anchors");
    fails_text("a: !!python/object:os.system x\n", "x.yml:1: tags");
    fails_text("a: !x {b: 1}\n", "x.yml:1: tags");
    fails_text("&k a: 1\n", "x.yml:1: anchors");
}

static void refuses_too_much(void **state)
{
    (void)state;
    char deep[400];
    memset(deep, '[', 199);
    memset(deep + 199, ']', 199);
    memcpy(deep, "a: ", 3);
    deep[398] = '\0';
    fails_text(deep, "nested more than 32");

    size_t bytes = (1 << 20) + 1;
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, '#', bytes);
    fails(text, bytes, "too many");
    /* "a: [1,1,1,...]" with more values than allowed */
    size_t used = 0;
    memcpy(text, "a: [", 4);
    used = 4;
    for (int i = 0; i < 70000; i++) {
        memcpy(text + used, "1,", 2);
        used += 2;
    }
    text[used++] = ']';
    fails(text, used, "more than 65,536 values");
    used = 0;
    for (int i = 0; i < 5000; i++)
        used += (size_t)sprintf(text + used, "k%d: 1\n", i);
    fails(text, used, "more than 4096 keys");
    memset(text, 'k', 300);
    memcpy(text + 300, ": 1\n", 4);
    fails(text, 304, "1 to 256 bytes");
    free(text);
}

static void knows_null(void **state)
{
    (void)state;
    struct tri_yaml *root = parse("a:\nb: null\nc: ~\nd: 'null'\ne: ''\nf: []\ng: x\n");
    int expected[] = {1, 1, 1, 0, 0, 0, 0};
    int i = 0;
    for (const struct tri_yaml *node = root->first; node != NULL; node = node->next)
        assert_int_equal(tri_yaml_is_null(node), expected[i++]);
    assert_int_equal(i, 7);
    tri_yaml_free(root);
}

static void prints_json(void **state)
{
    (void)state;
    struct tri_yaml *root =
        parse("a: {b: 1, c: -0.5e-3, d: 01, e: '1', f: True, g: ~, h: [x, \"y\\nz\"], i: 1.}\n");
    struct tri_text text = {0};
    assert_int_equal(tri_yaml_print_json(root->first, &text), TRI_OK);
    assert_string_equal(text.data,
                        "{\"b\": 1, \"c\": -0.5e-3, \"d\": \"01\", \"e\": \"1\", \"f\": true, "
                        "\"g\": null, \"h\": [\"x\", \"y\\u000Az\"], \"i\": \"1.\"}");
    tri_text_free(&text);
    tri_yaml_free(root);
}

static void reads_json(void **state)
{
    (void)state;
    struct tri_yaml *root = parse("{\"a\": [1, 2], \"b\": {\"c\": null}}");
    assert_int_equal(root->count, 2);
    assert_int_equal(root->first->count, 2);
    tri_yaml_free(root);
}

static void reads_single_values(void **state)
{
    (void)state;
    struct tri_yaml *root = NULL;
    assert_int_equal(tri_yaml_parse_value("x", "[a, b]", 6, &root), TRI_OK);
    assert_int_equal(root->kind, TRI_YAML_SEQUENCE);
    assert_int_equal(root->count, 2);
    tri_yaml_free(root);
}

static void loads_files(void **state)
{
    (void)state;
    struct tri_yaml *root = NULL;
    put_text(in_scratch("a.yml"), "a: 1\n");
    assert_int_equal(tri_yaml_load(in_scratch("a.yml"), &root), TRI_OK);
    assert_string_equal(root->first->text, "1");
    tri_yaml_free(root);
    root = NULL;
    assert_int_equal(tri_yaml_load(in_scratch("none.yml"), &root), TRI_IO);
    assert_null(root);
    assert_error_has("none.yml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_places),
        cmocka_unit_test(skips_a_byte_order_mark),
        cmocka_unit_test(reads_nothing_as_an_empty_mapping),
        cmocka_unit_test(refuses_duplicates),
        cmocka_unit_test(refuses_bad_syntax),
        cmocka_unit_test(refuses_indirection),
        cmocka_unit_test(refuses_too_much),
        cmocka_unit_test(knows_null),
        cmocka_unit_test(prints_json),
        cmocka_unit_test(reads_json),
        cmocka_unit_test(reads_single_values),
        SCRATCH_TEST(loads_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
