/* A pass over the lines of a file. */
#include <string.h>

#include "base/fingerprint.h"
#include "data/formats/format.h"
#include "data/index_pass.h"
#include "data/options.h"

static bool is_blank(const unsigned char *line, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static enum tri_status add_line(struct tri_pass *pass, struct tri_record record,
                                const unsigned char *text, int64_t line)
{
    struct tri_sample sample;
    if (pass->units_in_file++ < pass->skip)
        return TRI_OK;
    pass->index.identity = tri_fingerprint(pass->index.identity, text, record.bytes);
    enum tri_status st = TRI_OK;
    if (!tri_ahead_take(pass->ahead, pass->rules, (const char *)text, &sample))
        st = tri_sample_from_line(pass->rules, (const char *)text, record.bytes, &sample);
    if (st != TRI_OK)
        return tri_pass_leave_out(pass, record.file, line, st);
    if (pass->format == TRI_DATA_AUTO)
        pass->format = sample.format;
    if (pass->format == sample.format)
        st = tri_pass_add(pass, &sample, record, line);
    else
        st = tri_pass_leave_out(
            pass, record.file, line,
            tri_fail(TRI_INVALID,
                     "this line is of the format %s, the first of this file of %s: give "
                     "each format a file of its own, or set data.format",
                     tri_format_name(sample.format), tri_format_name(pass->format)));
    tri_sample_close(&sample);
    return st;
}

enum tri_status tri_pass_lines(struct tri_pass *pass, uint32_t file, const struct tri_map *map)
{
    size_t kept_from = 0; /* pages before are forgotten */
    size_t ahead = 0;     /* texts before are tokenized */
    int64_t line = 1;
    for (size_t at = 0; at < map->bytes; line++) {
        if (at >= ahead && pass->units_in_file >= pass->skip)
            ahead = at + tri_ahead_fill(pass->ahead, pass->rules, (const char *)map->data + at,
                                        map->bytes - at);
        const unsigned char *text = map->data + at;
        const unsigned char *end = memchr(text, '\n', map->bytes - at);
        const size_t bytes = end ? (size_t)(end - text) : map->bytes - at;
        if (!is_blank(text, bytes)) {
            const struct tri_record record = {.offset = at, .bytes = bytes, .file = file};
            TRI_TRY(add_line(pass, record, text, line));
        }
        at += bytes + (end != NULL);
        if (at - kept_from >= TRI_PASS_WINDOW) {
            tri_pass_forget(map, kept_from, at);
            kept_from = at;
            tri_pass_show(pass, at);
        }
    }
    if (pass->units_in_file == 0)
        return tri_fail(TRI_INVALID, "%s: the file holds no sample: remove it",
                        pass->files->file[file].path);
    return TRI_OK;
}
