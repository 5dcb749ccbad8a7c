#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct tri_text *text, size_t bytes)
{
    if (text->failed)
        return false;
    if (bytes < text->capacity - text->bytes)
        return true;
    if (bytes > SIZE_MAX / 4 - text->bytes) {
        text->failed = true;
        return false;
    }
    size_t capacity = 2 * (text->bytes + bytes) + 64;
    char *data = realloc(text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void tri_text_add(struct tri_text *text, const char *data, size_t bytes)
{
    if (!make_room(text, bytes))
        return;
    if (bytes > 0)
        memcpy(text->data + text->bytes, data, bytes);
    text->bytes += bytes;
    text->data[text->bytes] = '\0';
}

void tri_text_printf(struct tri_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes < 0 || !make_room(text, (size_t)bytes)) {
        text->failed = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text->data + text->bytes, (size_t)bytes + 1, format, args);
    va_end(args);
    text->bytes += (size_t)bytes;
}

void tri_text_free(struct tri_text *text)
{
    free(text->data);
    *text = (struct tri_text){0};
}

const char *tri_text_data(const struct tri_text *text)
{
    return text->data == NULL ? "" : text->data;
}

enum { WORD_BYTES = 64 };

/* Letters in lower case and one kind of dash, so that these never count as errors. */
static size_t plain_word(const char *word, char *out)
{
    size_t n = 0;
    for (; word[n] != '\0' && n < WORD_BYTES; n++)
        out[n] = word[n] == '-' ? '_' : (char)tolower((unsigned char)word[n]);
    return n;
}

int tri_text_distance(const char *a, const char *b)
{
    char x[WORD_BYTES], y[WORD_BYTES];
    size_t m = plain_word(a, x), n = plain_word(b, y);

    /* Optimal string alignment: three rows of the usual table. */
    int rows[3][WORD_BYTES + 1];
    int *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= m; i++) {
        int *spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = (int)i;
        for (size_t j = 1; j <= n; j++) {
            int best = above[j - 1] + (x[i - 1] != y[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && x[i - 1] == y[j - 2] && x[i - 2] == y[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return row[n];
}

int64_t tri_text_nearest(const char *word, const char *const *names, size_t count)
{
    int64_t nearest = -1;
    size_t length = strlen(word);
    /* One error in three letters is still a typing error; beyond that it is another word. */
    int limit =
        length < 6 ? 1 + (length > 3) : (int)((length < WORD_BYTES ? length : WORD_BYTES) / 3);
    for (size_t i = 0; i < count; i++) {
        int distance = tri_text_distance(word, names[i]);
        if (distance <= limit) {
            limit = distance - 1;
            nearest = (int64_t)i;
        }
    }
    return nearest;
}

bool tri_text_is_utf8(const char *data, size_t bytes, size_t *at)
{
    const unsigned char *p = (const unsigned char *)data;
    size_t i = 0;
    while (i < bytes) {
        /* The second byte's range keeps out long forms, surrogates and values over 10FFFF. */
        size_t more = 0;
        unsigned char low = 0x80, high = 0xBF;
        if (p[i] >= 0xC2 && p[i] <= 0xDF) {
            more = 1;
        } else if (p[i] >= 0xE0 && p[i] <= 0xEF) {
            more = 2;
            low = p[i] == 0xE0 ? 0xA0 : 0x80;
            high = p[i] == 0xED ? 0x9F : 0xBF;
        } else if (p[i] >= 0xF0 && p[i] <= 0xF4) {
            more = 3;
            low = p[i] == 0xF0 ? 0x90 : 0x80;
            high = p[i] == 0xF4 ? 0x8F : 0xBF;
        } else if (p[i] == 0 || p[i] >= 0x80) {
            break;
        }
        if (more > bytes - i - 1)
            break;
        bool good = true;
        for (size_t k = 1; k <= more; k++) {
            good = good && p[i + k] >= low && p[i + k] <= high;
            low = 0x80;
            high = 0xBF;
        }
        if (!good)
            break;
        i += more + 1;
    }
    if (i < bytes && at != NULL)
        *at = i;
    return i == bytes;
}
