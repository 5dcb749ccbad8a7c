#include "data/ahead.h"

#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 4 << 20, WINDOW_LINES = 4096 };

struct line {
    const char *text;
    size_t bytes;
    bool read;
    struct tri_sample sample;
    struct tri_columns columns;
};

struct tri_ahead {
    int count;
    int next; /* lines before were taken or passed over */
    struct line line[WINDOW_LINES];
};

enum tri_status tri_ahead_open(struct tri_ahead **out)
{
    struct tri_ahead *ahead = malloc(sizeof *ahead);
    if (!ahead)
        return tri_fail(TRI_NOMEM, "no memory to read lines");
    ahead->count = ahead->next = 0;
    *out = ahead;
    return TRI_OK;
}

static void drop(struct tri_ahead *ahead)
{
    for (int i = 0; i < ahead->count; i++)
        if (ahead->line[i].read)
            tri_sample_close(&ahead->line[i].sample);
    ahead->count = ahead->next = 0;
}

void tri_ahead_close(struct tri_ahead *ahead)
{
    if (!ahead)
        return;
    drop(ahead);
    free(ahead);
}

static void read_line(const struct tri_sample_rules *rules, struct line *line)
{
    struct tri_sample_rules own = *rules; /* columns are noted in the order of the lines */
    own.columns = rules->columns ? &line->columns : NULL;
    line->read = tri_sample_from_line(&own, line->text, line->bytes, &line->sample) == TRI_OK;
    if (!line->read)
        tri_error_clear();
}

size_t tri_ahead_fill(struct tri_ahead *ahead, const struct tri_sample_rules *rules,
                      const char *data, size_t bytes)
{
    size_t at = 0;
    drop(ahead);
    while (at < bytes && at < WINDOW_BYTES && ahead->count < WINDOW_LINES) {
        const char *end = memchr(data + at, '\n', bytes - at);
        struct line *line = &ahead->line[ahead->count++];
        line->text = data + at;
        line->bytes = end ? (size_t)(end - line->text) : bytes - at;
        line->read = false;
        line->columns.count = 0;
        at += line->bytes + (end != NULL);
    }
    if (ahead->count < 2) /* one line takes as long in its turn */
        return at;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < ahead->count; i++)
        read_line(rules, &ahead->line[i]);
    return at;
}

bool tri_ahead_take(struct tri_ahead *ahead, const struct tri_sample_rules *rules, const char *line,
                    struct tri_sample *out)
{
    while (ahead->next < ahead->count && ahead->line[ahead->next].text < line)
        ahead->next++;
    if (ahead->next == ahead->count)
        return false;
    struct line *found = &ahead->line[ahead->next];
    if (found->text != line || !found->read)
        return false;
    found->read = false;
    *out = found->sample;
    out->rules = rules;
    for (int i = 0; i < found->columns.count; i++)
        tri_columns_note(rules->columns, found->columns.name[i]);
    return true;
}
