/* Decoders as tokenizer.json describes them, flattened into a list of steps. */
#include <stdlib.h>
#include <string.h>

#include "text/decoder.h"
#include "text/member.h"
#include "text/normalizer.h"
#include "text/unicode.h"

static enum tri_status copy(const char *text, size_t bytes, char **out, size_t *out_bytes)
{
    *out = strdup(text);
    if (!*out)
        return tri_fail(TRI_NOMEM, "no memory for a tokenizer");
    *out_bytes = bytes;
    return TRI_OK;
}

static enum tri_status read_character(const json_t *value, const char *name,
                                      struct tri_decoder_step *step)
{
    const char *text;
    size_t bytes, length = 0;
    TRI_TRY(tri_member_string(value, name, &text, &bytes));
    if (bytes > 0)
        (void)tri_char_at(text, &length);
    if (bytes == 0 || length != bytes)
        return tri_fail(TRI_FORMAT, "\"%s\" must be one character", name);
    return copy(text, bytes, &step->from, &step->from_bytes);
}

static enum tri_status read_replace(const json_t *value, struct tri_decoder_step *step)
{
    const char *text;
    size_t bytes;
    TRI_TRY(tri_members_check(value, "type pattern content"));
    TRI_TRY(tri_pattern_read(value, &step->from, &step->from_bytes, &step->regex));
    TRI_TRY(tri_member_string(value, "content", &text, &bytes));
    return copy(text, bytes, &step->to, &step->to_bytes);
}

static enum tri_status read_strip(const json_t *value, struct tri_decoder_step *step)
{
    TRI_TRY(tri_members_check(value, "type content start stop"));
    TRI_TRY(tri_member_count(value, "start", INT32_MAX, &step->start));
    TRI_TRY(tri_member_count(value, "stop", INT32_MAX, &step->stop));
    return read_character(value, "content", step);
}

static enum tri_status read_metaspace(const json_t *value, struct tri_decoder_step *step)
{
    const char *scheme;
    size_t bytes;
    TRI_TRY(tri_members_check(value, "type replacement prepend_scheme add_prefix_space split "
                                     "str_rep"));
    TRI_TRY(tri_member_text(value, "prepend_scheme", &scheme, &bytes));
    if (json_is_false(json_object_get(value, "add_prefix_space")) &&
        (!scheme || strcmp(scheme, "never") != 0))
        return tri_fail(TRI_FORMAT,
                        "\"add_prefix_space\" and \"prepend_scheme\" contradict each other");
    if (scheme && strcmp(scheme, "always") != 0 && strcmp(scheme, "first") != 0 &&
        strcmp(scheme, "never") != 0)
        return tri_fail(TRI_UNSUPPORTED, "the prepend_scheme \"%.64s\" is not read", scheme);
    step->keep_first = scheme && strcmp(scheme, "never") == 0;
    return read_character(value, "replacement", step);
}

static enum tri_status read_step(const json_t *value, const char *type,
                                 struct tri_decoder_step *step)
{
    static const char *const names[] = {"ByteLevel", "ByteFallback", "Fuse",
                                        "Replace",   "Strip",        "Metaspace"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i], type) != 0)
        i++;
    step->kind = (enum tri_decoder_kind)i;
    switch (i) {
    case TRI_DECODE_BYTE_LEVEL:
        return tri_members_check(value, "type add_prefix_space trim_offsets use_regex");
    case TRI_DECODE_BYTE_FALLBACK:
    case TRI_DECODE_FUSE:
        return tri_members_check(value, "type");
    case TRI_DECODE_REPLACE:
        return read_replace(value, step);
    case TRI_DECODE_STRIP:
        return read_strip(value, step);
    case TRI_DECODE_METASPACE:
        return read_metaspace(value, step);
    default:
        return tri_fail(TRI_UNSUPPORTED, "\"%.64s\" is not read", type);
    }
}

static enum tri_status read(const json_t *value, int depth, void *ctx)
{
    struct tri_decoder *decoder = ctx;
    const char *type = tri_member_type(value);
    if (strcmp(type, "Sequence") == 0)
        return tri_member_sequence(value, "decoders", depth, read, decoder);
    if (decoder->count == TRI_DECODER_STEPS)
        return tri_fail(TRI_UNSUPPORTED, "more than %d steps", TRI_DECODER_STEPS);
    return read_step(value, type, &decoder->step[decoder->count++]);
}

enum tri_status tri_decoder_open(const json_t *value, struct tri_decoder *out)
{
    struct tri_decoder decoder = {.count = 0};
    if (value && !json_is_null(value)) {
        decoder.present = true;
        const enum tri_status st = read(value, 0, &decoder);
        if (st != TRI_OK) {
            tri_error_prefix("decoder");
            tri_decoder_close(&decoder);
            return st;
        }
    }
    *out = decoder;
    return TRI_OK;
}

void tri_decoder_close(struct tri_decoder *decoder)
{
    for (int i = 0; i < decoder->count; i++) {
        free(decoder->step[i].from);
        free(decoder->step[i].to);
        tri_regex_close(decoder->step[i].regex);
    }
    memset(decoder, 0, sizeof *decoder);
}
