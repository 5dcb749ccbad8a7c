/* A JSON list to lines: the same in one piece and in many, and a good list gives good lines. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/json_list.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static enum tri_status keep(void *ctx, const void *data, size_t bytes, size_t used)
{
    (void)used;
    tri_text_add(ctx, data, bytes);
    return TRI_OK;
}

static enum tri_status to_lines(const uint8_t *data, size_t bytes, size_t step,
                                struct tri_json_list *list, struct tri_text *out)
{
    *list = (struct tri_json_list){.what = "list", .sink = {out, keep}};
    for (size_t at = 0; at < bytes; at += step)
        TRI_TRY(tri_json_list_take(list, data + at, bytes - at < step ? bytes - at : step, at));
    return tri_json_list_finish(list);
}

/* Every element of a list that jansson reads is its line. */
static void compare(const json_t *whole, const struct tri_text *lines)
{
    const char *at = tri_text_data(lines), *const behind = at + lines->bytes;
    for (size_t i = 0; i < json_array_size(whole); i++) {
        const char *end = memchr(at, '\n', (size_t)(behind - at));
        CHECK(end);
        json_t *element =
            json_loadb(at, (size_t)(end - at), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        CHECK(json_equal(element, json_array_get(whole, i)));
        json_decref(element);
        at = end + 1;
    }
    CHECK(at == behind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tri_json_list list, other;
    struct tri_text once = {0}, pieces = {0};
    const enum tri_status st = to_lines(data, bytes, bytes + 1, &list, &once);
    CHECK(st == to_lines(data, bytes, 1 + bytes % 7, &other, &pieces));
    CHECK(once.bytes == pieces.bytes || st != TRI_OK);
    CHECK(st != TRI_OK || memcmp(tri_text_data(&once), tri_text_data(&pieces), once.bytes) == 0);
    json_t *whole = json_loadb((const char *)data, bytes, JSON_ALLOW_NUL, NULL);
    if (json_is_array(whole)) {
        CHECK(st == TRI_OK);
        CHECK(list.elements == (int64_t)json_array_size(whole));
        compare(whole, &once);
    }
    json_decref(whole);
    tri_error_clear();
    tri_text_free(&once);
    tri_text_free(&pieces);
    return 0;
}
