/* NFC, NFD, NFKC and NFKD by utf8proc, held to the edition of Unicode that the reference knows. */
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "text/normalizer.h"
#include "text/unicode.h"

/* Characters of everyday scripts that are their own NFC whatever stands beside them: they neither
 * decompose nor have a combining class nor compose with what comes before. */
static bool is_own_nfc(uint32_t c)
{
    return c < 0x300 || (c >= 0x400 && c <= 0x482) || (c >= 0x48A && c <= 0x557) ||
           (c >= 0x5D0 && c <= 0x5EA) || (c >= 0x620 && c <= 0x64A) || (c >= 0x904 && c <= 0x928) ||
           (c >= 0x2010 && c <= 0x2027) || (c >= 0x2030 && c <= 0x205E) ||
           (c >= 0x2190 && c <= 0x2328) || (c >= 0x232B && c <= 0x2426) ||
           (c >= 0x2440 && c <= 0x2ADB) || (c >= 0x3000 && c <= 0x3029) ||
           (c >= 0x3041 && c <= 0x3096) || (c >= 0x309B && c <= 0x31BF) ||
           (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xAC00 && c <= 0xD7A3) ||
           (c >= 0xFF00 && c <= 0xFFEF) || (c >= 0x1F300 && c <= 0x1F9FF);
}

/* Normalise a run on its own and append it. */
static enum tri_status add_run(utf8proc_option_t options, const char *run, size_t bytes,
                               struct tri_text *out)
{
    if (bytes > INT32_MAX / 4)
        return tri_fail(TRI_UNSUPPORTED,
                        "a run of %zu bytes without an ASCII character cannot be normalised",
                        bytes);
    utf8proc_uint8_t *form = NULL;
    const utf8proc_ssize_t length =
        utf8proc_map((const utf8proc_uint8_t *)run, (utf8proc_ssize_t)bytes, &form, options);
    if (length < 0) {
        free(form);
        return tri_fail(length == UTF8PROC_ERROR_NOMEM ? TRI_NOMEM : TRI_INVALID,
                        "a text cannot be normalised: %s", utf8proc_errmsg(length));
    }
    tri_text_add(out, (const char *)form, (size_t)length);
    free(form);
    return TRI_OK;
}

/* A run of other than ASCII characters behind at most one that is. Characters that are never
 * normalised divide it: whatever stands before one of them does not touch what stands behind. */
static enum tri_status add_divided(utf8proc_option_t options, const char *run, size_t bytes,
                                   struct tri_text *out)
{
    size_t begin = 0;
    for (size_t at = 0, length; at < bytes; at += length) {
        if (!tri_char_is_never_normalized(tri_char_at(run + at, &length)))
            continue;
        if (at > begin)
            TRI_TRY(add_run(options, run + begin, at - begin, out));
        tri_text_add(out, run + at, length);
        begin = at + length;
    }
    return bytes > begin ? add_run(options, run + begin, bytes - begin, out) : TRI_OK;
}

/* Where the ASCII characters from `at` on end. */
static size_t skip_ascii(const char *text, size_t at, size_t bytes)
{
    while (bytes - at >= 8) {
        uint64_t word;
        memcpy(&word, text + at, 8);
        if (word & UINT64_C(0x8080808080808080))
            break;
        at += 8;
    }
    while (at < bytes && (unsigned char)text[at] < 0x80)
        at++;
    return at;
}

enum tri_status tri_normal_form(enum tri_normalizer_kind form, const char *text, size_t bytes,
                                struct tri_text *out, bool *same)
{
    const bool compose = form == TRI_NORMALIZE_NFC || form == TRI_NORMALIZE_NFKC;
    const bool compatible = form == TRI_NORMALIZE_NFKC || form == TRI_NORMALIZE_NFKD;
    const utf8proc_option_t options =
        (utf8proc_option_t)(UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                            (compatible ? UTF8PROC_COMPAT : 0));
    size_t done = 0; /* of the text, appended or not yet needed */
    bool changed = false;
    for (size_t at = skip_ascii(text, 0, bytes); at < bytes; at = skip_ascii(text, at, bytes)) {
        /* Nothing before the ASCII character in front can change, nor any ASCII character behind:
         * they are all starters that compose only with what follows. */
        const size_t begin = at > 0 ? at - 1 : 0;
        bool own = form == TRI_NORMALIZE_NFC;
        while (at < bytes && (unsigned char)text[at] >= 0x80) {
            size_t length;
            own = is_own_nfc(tri_char_at(text + at, &length)) && own;
            at += length;
        }
        if (own)
            continue;
        tri_text_add(out, text + done, begin - done);
        TRI_TRY(add_divided(options, text + begin, at - begin, out));
        done = at;
        changed = true;
    }
    if (changed)
        tri_text_add(out, text + done, bytes - done);
    if (out->failed)
        return tri_fail(TRI_NOMEM, "no memory to normalise a text of %zu bytes", bytes);
    *same = !changed;
    return TRI_OK;
}
