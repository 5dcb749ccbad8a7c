#include "data/ahead.h"

#include <string.h>

enum { WINDOW_BYTES = 4 << 20, WINDOW_LINES = 4096 };

struct span {
    size_t begin, end;
};

static void tokenize(const struct tri_sample_rules *rules, const char *line, size_t bytes)
{
    static const char name[] = "\"text\"";
    if (!memmem(line, bytes, name, sizeof name - 1))
        return; /* tokenized already, or nothing that is read */
    struct tri_sample sample;
    if (tri_sample_from_line(rules, line, bytes, &sample) == TRI_OK)
        tri_sample_close(&sample);
    else
        tri_error_clear();
}

size_t tri_tokenize_ahead(const struct tri_sample_rules *rules, const char *data, size_t bytes)
{
    struct span line[WINDOW_LINES];
    size_t at = 0;
    int count = 0;
    while (at < bytes && at < WINDOW_BYTES && count < WINDOW_LINES) {
        const char *end = memchr(data + at, '\n', bytes - at);
        line[count].begin = at;
        line[count++].end = end ? (size_t)(end - data) : bytes;
        at = line[count - 1].end + (end != NULL);
    }
    if (!rules->tokenizer || !rules->tokenizer->keeps || count < 2)
        return at;
    struct tri_sample_rules quiet = *rules;
    quiet.columns = NULL; /* they are noted in the order of the lines */
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < count; i++)
        tokenize(&quiet, data + line[i].begin, line[i].end - line[i].begin);
    return at;
}
