/* Text through a byte-level tokenizer and back, cut where no merge joins against not cut, and where
 * its bytes lie among the tokens. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/check.h"
#include "text/bytechar.h"
#include "text/subword.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"
#include "text/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static const char *const merges[] = {"a b",
                                     "ab c",
                                     "a a",
                                     "aa aa",
                                     "\xC4\xA0 a",
                                     "\xC4\xA0 \xC4\xA0",
                                     "\xC3\x83 \xC2\xA9",
                                     "1 2",
                                     "b c",
                                     "\xC4\xA0\x61 b",
                                     "c c",
                                     "cc cc"};

static void add_token(struct tri_text *json, int *id, const char *text)
{
    tri_text_printf(json, "%s", *id > 0 ? ", " : "");
    tri_text_add_quoted(json, text);
    tri_text_printf(json, ": %d", (*id)++);
}

/* `pre_tokenizer` decides how long the pieces are. */
static struct tri_subword *open_small(const char *pre_tokenizer)
{
    struct tri_text json = {0};
    int id = 0;
    tri_text_printf(&json,
                    "{\"added_tokens\": [{\"id\": %d, \"content\": \"<s>\"}], "
                    "\"pre_tokenizer\": %s, \"decoder\": {\"type\": \"ByteLevel\"}, "
                    "\"model\": {\"type\": \"BPE\", \"vocab\": {",
                    256 + (int)(sizeof merges / sizeof *merges), pre_tokenizer);
    for (unsigned i = 0; i < 256; i++) {
        char text[5] = {0};
        (void)tri_char_put(tri_byte_char((unsigned char)i), text);
        add_token(&json, &id, text);
    }
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        char text[16];
        const char *space = strchr(merges[i], ' ');
        snprintf(text, sizeof text, "%.*s%s", (int)(space - merges[i]), merges[i], space + 1);
        add_token(&json, &id, text);
    }
    tri_text_printf(&json, "}, \"merges\": [");
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        tri_text_printf(&json, "%s", i > 0 ? ", " : "");
        tri_text_add_quoted(&json, merges[i]);
    }
    tri_text_printf(&json, "]}}");
    const struct tri_token_ids model = {.vocab = 1000, .bos = -1, .eos = -1, .pad = -1};
    struct tri_tokenizer *tokenizer = NULL;
    CHECK(tri_json_tokenizer_parse(json.data, json.bytes, NULL, NULL, &model, &tokenizer) ==
          TRI_OK);
    tri_text_free(&json);
    return (struct tri_subword *)tokenizer;
}

static void check(struct tri_subword *s, const char *text, size_t bytes)
{
    struct tri_ids cut = {.count = 0}, whole = {.count = 0};
    s->bpe.may_cut = true;
    CHECK(tri_subword_encode(s, text, bytes, &cut) == TRI_OK);
    s->bpe.may_cut = false;
    CHECK(tri_subword_encode(s, text, bytes, &whole) == TRI_OK);
    CHECK(cut.count == whole.count);
    CHECK(cut.count == 0 ||
          memcmp(cut.data, whole.data, (size_t)cut.count * sizeof *cut.data) == 0);
    struct tri_text out = {0};
    CHECK(s->base.decode(&s->base, cut.data, cut.count, false, &out) == TRI_OK);
    CHECK(out.bytes == bytes);
    CHECK(bytes == 0 || memcmp(out.data, text, bytes) == 0);
    tri_text_free(&out);
    tri_ids_free(&cut);
    tri_ids_free(&whole);
}

/* Every character is a place; tokens cover the text byte after byte. */
static void check_places(struct tri_subword *s, const char *text, size_t bytes)
{
    struct tri_text_place *places = malloc((bytes + 1) * sizeof *places);
    struct tri_ids ids = {.count = 0};
    size_t count = 0, begin = 0, end = 0;
    CHECK(places);
    for (size_t at = 0; at <= bytes; at++)
        if (at == bytes || ((unsigned char)text[at] & 0xC0) != 0x80)
            places[count++].offset = at;
    CHECK(s->base.encode_at(&s->base, text, bytes, places, count, &ids) == TRI_OK);
    int64_t token = -1; /* [begin, end) are its bytes */
    for (size_t i = 0; i < count; i++) {
        while (token < ids.count && end <= places[i].offset) {
            begin = end;
            if (++token == ids.count)
                break;
            const struct tri_added_token *added = tri_added_token_of(&s->added, ids.data[token]);
            const char *name = added ? "" : s->bpe.vocab.token[ids.data[token]].text;
            end += added ? added->pattern_bytes : 0;
            for (size_t k = 0; !added && k < s->bpe.vocab.token[ids.data[token]].bytes; k++)
                end += ((unsigned char)name[k] & 0xC0) != 0x80;
        }
        CHECK(places[i].token == token);
        CHECK(places[i].inside == (token < ids.count && begin < places[i].offset));
    }
    tri_ids_free(&ids);
    free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tri_subword *words, *texts;
    if (!words) {
        words = open_small("{\"type\": \"ByteLevel\", \"add_prefix_space\": false}");
        texts = open_small("{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                           "\"use_regex\": false}");
    }
    bytes = tri_utf8_valid((const char *)data, bytes);
    check(words, (const char *)data, bytes);
    check(texts, (const char *)data, bytes);
    check_places(words, (const char *)data, bytes);
    check_places(texts, (const char *)data, bytes);
    return 0;
}
