#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/token_cache.h"

static void put(struct tri_token_cache *cache, const char *text, int32_t first, int64_t count)
{
    struct tri_ids ids = {.count = 0};
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(tri_ids_push(&ids, first + (int32_t)i), TRI_OK);
    const struct tri_text_key key = tri_text_key(text, strlen(text));
    tri_token_cache_put(cache, &key, &ids);
    assert_null(ids.data);
}

static bool get(struct tri_token_cache *cache, const char *text, int64_t first, int64_t count,
                int32_t *ids, int64_t *copied, int64_t *tokens)
{
    const struct tri_text_key key = tri_text_key(text, strlen(text));
    return tri_token_cache_get(cache, &key, first, count, ids, copied, tokens);
}

static void test_ranges(void **state)
{
    (void)state;
    struct tri_token_cache *cache;
    int32_t ids[8];
    int64_t copied, tokens;
    assert_int_equal(tri_token_cache_open(1000, &cache), TRI_OK);
    assert_false(get(cache, "a", 0, 8, ids, &copied, &tokens));
    put(cache, "a", 10, 5);
    put(cache, "a", 20, 5); /* as another thread would: the first stays */
    assert_true(get(cache, "a", 1, 3, ids, &copied, &tokens));
    assert_int_equal(tokens, 5);
    assert_int_equal(copied, 3);
    assert_int_equal(ids[0], 11);
    assert_true(get(cache, "a", 4, 8, ids, &copied, &tokens));
    assert_int_equal(copied, 1);
    assert_true(get(cache, "a", 9, 8, ids, &copied, &tokens));
    assert_int_equal(copied, 0);
    put(cache, "", 0, 0);
    assert_true(get(cache, "", 0, 0, NULL, &copied, &tokens));
    assert_int_equal(tokens, 0);
    tri_token_cache_close(cache);
    tri_token_cache_close(NULL);
}

static void test_the_longest_unused_goes_first(void **state)
{
    (void)state;
    struct tri_token_cache *cache;
    int64_t copied, tokens;
    assert_int_equal(tri_token_cache_open(400, &cache), TRI_OK);
    put(cache, "a", 0, 100);
    put(cache, "b", 0, 100);
    put(cache, "c", 0, 100);
    assert_true(get(cache, "a", 0, 0, NULL, &copied, &tokens));
    put(cache, "d", 0, 100); /* with what entries cost beside their ids, one is too many */
    assert_false(get(cache, "b", 0, 0, NULL, &copied, &tokens));
    assert_true(get(cache, "a", 0, 0, NULL, &copied, &tokens));
    assert_true(get(cache, "c", 0, 0, NULL, &copied, &tokens));
    /* The last document stays, however long. */
    put(cache, "e", 0, 5000);
    assert_true(get(cache, "e", 0, 0, NULL, &copied, &tokens));
    assert_int_equal(tokens, 5000);
    assert_false(get(cache, "d", 0, 0, NULL, &copied, &tokens));
    tri_token_cache_close(cache);
}

static void test_keys(void **state)
{
    (void)state;
    static const char text[] = "In the beginning God created the heaven and the earth.";
    const size_t bytes = sizeof text - 1;
    const struct tri_text_key whole = tri_text_key(text, bytes);
    for (size_t n = 0; n < bytes; n++) {
        char other[sizeof text];
        memcpy(other, text, sizeof text);
        other[n] ^= 1;
        const struct tri_text_key key = tri_text_key(other, bytes);
        assert_true(key.hash[0] != whole.hash[0] && key.hash[1] != whole.hash[1]);
        const struct tri_text_key part = tri_text_key(text, n);
        assert_true(part.hash[0] != whole.hash[0] && part.bytes == n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_the_longest_unused_goes_first),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
