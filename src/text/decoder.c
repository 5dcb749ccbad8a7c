#include "text/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "text/bytechar.h"
#include "text/normalizer.h"
#include "text/unicode.h"
#include "text/utf8.h"

static const char replacement[] = "\xEF\xBF\xBD";

enum tri_status tri_texts_add(struct tri_texts *texts, const char *text, size_t bytes)
{
    if (texts->count == texts->capacity) {
        const int64_t capacity = texts->capacity ? 2 * texts->capacity : 256;
        size_t *end = realloc(texts->end, (size_t)capacity * sizeof *end);
        if (!end)
            return tri_fail(TRI_NOMEM, "no memory to decode tokens");
        texts->end = end;
        texts->capacity = capacity;
    }
    tri_text_add(&texts->bytes, text, bytes);
    if (texts->bytes.failed)
        return tri_fail(TRI_NOMEM, "no memory to decode tokens");
    texts->end[texts->count++] = texts->bytes.bytes;
    return TRI_OK;
}

void tri_texts_free(struct tri_texts *texts)
{
    tri_text_free(&texts->bytes);
    free(texts->end);
    memset(texts, 0, sizeof *texts);
}

static const char *text_of(const struct tri_texts *texts, int64_t i, size_t *bytes)
{
    const size_t begin = i > 0 ? texts->end[i - 1] : 0;
    *bytes = texts->end[i] - begin;
    return tri_text_data(&texts->bytes) + begin;
}

/* Bytes at p that begin a character without ending it; at least 1. */
static size_t broken_bytes(const unsigned char *p, size_t left)
{
    unsigned char low = 0x80, high = 0xBF;
    size_t length = 0;
    if (p[0] >= 0xC2 && p[0] <= 0xDF)
        length = 2;
    else if (p[0] >= 0xE0 && p[0] <= 0xEF)
        length = 3;
    else if (p[0] >= 0xF0 && p[0] <= 0xF4)
        length = 4;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    size_t n = 1;
    while (n < length && n < left && p[n] >= low && p[n] <= high) {
        low = 0x80;
        high = 0xBF;
        n++;
    }
    return n;
}

void tri_text_add_lossy(struct tri_text *out, const char *bytes, size_t count)
{
    for (size_t at = 0; at < count;) {
        const size_t valid = tri_utf8_valid(bytes + at, count - at);
        tri_text_add(out, bytes + at, valid);
        at += valid;
        if (at < count) {
            tri_text_add(out, replacement, 3);
            at += broken_bytes((const unsigned char *)bytes + at, count - at);
        }
    }
}

/* Every token back to its bytes, or itself when a character of it stands for none; one text. */
static enum tri_status byte_level(const struct tri_texts *in, struct tri_texts *out)
{
    struct tri_text bytes = {0};
    for (int64_t i = 0; i < in->count; i++) {
        size_t length;
        const char *token = text_of(in, i, &length);
        const size_t before = bytes.bytes;
        for (size_t at = 0, step; at < length; at += step) {
            const int byte = tri_char_byte(tri_char_at(token + at, &step));
            if (byte < 0) {
                bytes.bytes = before;
                tri_text_add(&bytes, token, length);
                break;
            }
            const char c = (char)byte;
            tri_text_add(&bytes, &c, 1);
        }
    }
    struct tri_text text = {0};
    tri_text_add_lossy(&text, tri_text_data(&bytes), bytes.bytes);
    text.failed = text.failed || bytes.failed;
    const enum tri_status st = text.failed ? tri_fail(TRI_NOMEM, "no memory to decode tokens")
                                           : tri_texts_add(out, tri_text_data(&text), text.bytes);
    tri_text_free(&bytes);
    tri_text_free(&text);
    return st;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of a token such as <0x0A>, -1 for others. */
static int fallback_byte(const char *token, size_t bytes)
{
    if (bytes != 6 || memcmp(token, "<0x", 3) != 0 || token[5] != '>')
        return -1;
    if (token[3] == '+') /* as Rust reads numbers */
        return hex_digit(token[4]);
    const int high = hex_digit(token[3]), low = hex_digit(token[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

/* Bytes that followed each other: their text, or U+FFFD for each. */
static enum tri_status end_bytes(struct tri_text *bytes, struct tri_texts *out)
{
    if (bytes->failed)
        return tri_fail(TRI_NOMEM, "no memory to decode tokens");
    const size_t count = bytes->bytes;
    bytes->bytes = 0;
    if (count == 0)
        return TRI_OK;
    if (tri_utf8_valid(bytes->data, count) == count)
        return tri_texts_add(out, bytes->data, count);
    for (size_t i = 0; i < count; i++)
        TRI_TRY(tri_texts_add(out, replacement, 3));
    return TRI_OK;
}

static enum tri_status byte_fallback(const struct tri_texts *in, struct tri_texts *out)
{
    struct tri_text bytes = {0};
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < in->count; i++) {
        size_t length;
        const char *token = text_of(in, i, &length);
        const int byte = fallback_byte(token, length);
        if (byte >= 0) {
            const char c = (char)byte;
            tri_text_add(&bytes, &c, 1);
            continue;
        }
        st = end_bytes(&bytes, out);
        if (st == TRI_OK)
            st = tri_texts_add(out, token, length);
    }
    if (st == TRI_OK)
        st = end_bytes(&bytes, out);
    tri_text_free(&bytes);
    return st;
}

static enum tri_status replace(const struct tri_decoder_step *step, const struct tri_texts *in,
                               struct tri_texts *out)
{
    struct tri_regex_work *work = NULL;
    struct tri_text text = {0};
    enum tri_status st = tri_regex_work_open(&work);
    for (int64_t i = 0; st == TRI_OK && i < in->count; i++) {
        size_t length;
        const char *token = text_of(in, i, &length);
        bool same;
        text.bytes = 0;
        st = tri_replace(step->regex, work, step->from, step->from_bytes, step->to, step->to_bytes,
                         token, length, &text, &same);
        if (st == TRI_OK)
            st = same ? tri_texts_add(out, token, length)
                      : tri_texts_add(out, tri_text_data(&text), text.bytes);
    }
    tri_text_free(&text);
    tri_regex_work_close(work);
    return st;
}

static bool is_at(const struct tri_decoder_step *step, const char *text, size_t bytes)
{
    return bytes >= step->from_bytes && memcmp(text, step->from, step->from_bytes) == 0;
}

static enum tri_status strip(const struct tri_decoder_step *step, const struct tri_texts *in,
                             struct tri_texts *out)
{
    for (int64_t i = 0; i < in->count; i++) {
        size_t length;
        const char *token = text_of(in, i, &length);
        for (int64_t n = 0; n < step->start && is_at(step, token, length); n++) {
            token += step->from_bytes;
            length -= step->from_bytes;
        }
        for (int64_t n = 0; n < step->stop && length >= step->from_bytes &&
                            is_at(step, token + length - step->from_bytes, step->from_bytes);
             n++)
            length -= step->from_bytes;
        TRI_TRY(tri_texts_add(out, token, length));
    }
    return TRI_OK;
}

/* Marks to spaces; those of the first token vanish, unless nothing put them there. */
static enum tri_status metaspace(const struct tri_decoder_step *step, const struct tri_texts *in,
                                 struct tri_texts *out)
{
    struct tri_text text = {0};
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < in->count; i++) {
        size_t length, bytes;
        const char *token = text_of(in, i, &length);
        text.bytes = 0;
        for (size_t at = 0; at < length; at += bytes) {
            (void)tri_char_at(token + at, &bytes);
            if (!is_at(step, token + at, length - at))
                tri_text_add(&text, token + at, bytes);
            else if (i > 0 || step->keep_first)
                tri_text_add(&text, " ", 1);
        }
        st = text.failed ? tri_fail(TRI_NOMEM, "no memory to decode tokens")
                         : tri_texts_add(out, tri_text_data(&text), text.bytes);
    }
    tri_text_free(&text);
    return st;
}

static enum tri_status apply(const struct tri_decoder_step *step, const struct tri_texts *in,
                             struct tri_texts *out)
{
    switch (step->kind) {
    case TRI_DECODE_BYTE_LEVEL:
        return byte_level(in, out);
    case TRI_DECODE_BYTE_FALLBACK:
        return byte_fallback(in, out);
    case TRI_DECODE_FUSE:
        return tri_texts_add(out, tri_text_data(&in->bytes), in->bytes.bytes);
    case TRI_DECODE_REPLACE:
        return replace(step, in, out);
    case TRI_DECODE_STRIP:
        return strip(step, in, out);
    case TRI_DECODE_METASPACE:
        return metaspace(step, in, out);
    }
    return tri_fail(TRI_INTERNAL, "a step that does not decode");
}

enum tri_status tri_decode(const struct tri_decoder *decoder, struct tri_texts *tokens,
                           struct tri_text *out)
{
    for (int i = 0; i < decoder->count; i++) {
        struct tri_texts next = {.count = 0};
        const enum tri_status st = apply(&decoder->step[i], tokens, &next);
        if (st != TRI_OK) {
            tri_texts_free(&next);
            return st;
        }
        tri_texts_free(tokens);
        *tokens = next;
    }
    for (int64_t i = 0; i < tokens->count; i++) {
        size_t length;
        const char *text = text_of(tokens, i, &length);
        if (i > 0 && !decoder->present)
            tri_text_add(out, " ", 1);
        tri_text_add(out, text, length);
    }
    if (out->failed)
        return tri_fail(TRI_NOMEM, "no memory to decode tokens");
    return TRI_OK;
}
