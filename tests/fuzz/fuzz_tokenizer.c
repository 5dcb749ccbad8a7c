/* tokenizer.json: whatever it holds, it is refused in one line, or encodes every text to ids of its
 * vocabulary, in any range, and decodes them. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fuzz/check.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MOST_IDS = 4096 };

static void check_text(const struct tri_tokenizer *tokenizer, const char *text, size_t bytes)
{
    static int32_t ids[MOST_IDS], part[MOST_IDS];
    int64_t count;
    if (tokenizer->count(tokenizer, text, bytes, &count) != TRI_OK) {
        check_error();
        return;
    }
    CHECK(count >= 0);
    if (count > MOST_IDS)
        return;
    CHECK(tokenizer->encode(tokenizer, text, bytes, 0, count, ids) == TRI_OK);
    for (int64_t i = 0; i < count; i++)
        CHECK(ids[i] >= 0 && ids[i] < tokenizer->vocab);
    for (int64_t first = 0; first < count; first += 3) {
        const int64_t n = count - first < 5 ? count - first : 5;
        CHECK(tokenizer->encode(tokenizer, text, bytes, first, n, part) == TRI_OK);
        CHECK(memcmp(part, ids + first, (size_t)n * sizeof *part) == 0);
    }
    struct tri_text out = {0};
    if (tokenizer->decode(tokenizer, ids, count, count % 2 == 0, &out) == TRI_OK)
        CHECK(tri_utf8_valid(tri_text_data(&out), out.bytes) == out.bytes);
    else
        check_error();
    tri_text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const texts[] = {
        "",
        " ",
        "abc",
        "ab  abc\r\n\tab12 345 <s>abc </s>ab",
        "e\xCC\x81\xC3\xA9 \xE1\xA0\x8E\xF0\xAE\xAF\xB0 \xEA\xB0\x80\xE1\x86\xA8\xF0\x9F\x98\x80",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
        "\xE2\x96\x81\x61\xE2\x96\x81 b<0x0A>",
    };
    const struct tri_token_ids model = {.vocab = 1000, .bos = -1, .eos = -1, .pad = -1};
    struct tri_tokenizer *tokenizer;
    tri_log_set_level(TRI_LOG_ERROR);
    if (tri_json_tokenizer_parse((const char *)data, bytes, NULL, NULL, &model, &tokenizer) !=
        TRI_OK) {
        check_error();
        return 0;
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_text(tokenizer, texts[i], strlen(texts[i]));
    if (tri_utf8_valid((const char *)data, bytes) == bytes)
        check_text(tokenizer, (const char *)data, bytes);
    tri_tokenizer_close(tokenizer);
    return 0;
}
