/* A pass over whole documents: a text, or those of a Megatron dataset. */
#include <inttypes.h>
#include <string.h>

#include "base/fingerprint.h"
#include "base/log.h"
#include "data/index_pass.h"
#include "data/megatron.h"
#include "text/utf8.h"

/* Check and hash a text window by window. On failure *line is the bad one. */
static enum tri_status scan_text(struct tri_pass *pass, const struct tri_map *map, int64_t *line)
{
    const char *text = (const char *)map->data;
    size_t at = 0;
    while (at < map->bytes) {
        const size_t left = map->bytes - at;
        const size_t window = left < TRI_PASS_WINDOW ? left : TRI_PASS_WINDOW;
        const size_t valid = tri_utf8_valid(text + at, window);
        /* Short of the window by a character that its end cuts: the next window begins there. */
        if (valid != window && (window == left || window - valid > 3)) {
            at += valid;
            for (const char *p = text; (p = memchr(p, '\n', (size_t)(text + at - p))); p++)
                (*line)++;
            return tri_fail(TRI_INVALID,
                            "invalid UTF-8 at byte %zu of the file (0x%02X): write the file as "
                            "UTF-8, or leave it out",
                            at, map->data[at]);
        }
        pass->index.identity = tri_fingerprint(pass->index.identity, map->data + at, valid);
        tri_pass_forget(map, at, at + valid);
        at += valid;
        tri_pass_show(pass, at);
    }
    return TRI_OK;
}

/* A mark of bytes or white space alone would be trained like words. */
static enum tri_status check_text(const char *text, size_t bytes)
{
    if (bytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        return tri_fail(TRI_INVALID,
                        "the text begins with a byte order mark (U+FEFF): remove it by "
                        "sed -i '1s/^\\xEF\\xBB\\xBF//'");
    size_t blank = 0;
    while (blank < bytes && strchr(" \t\r\n\f\v", text[blank]) != NULL && text[blank] != '\0')
        blank++;
    if (blank == bytes && bytes > 0)
        return tri_fail(TRI_INVALID, "the document is nothing but white space: remove it");
    return TRI_OK;
}

enum tri_status tri_pass_text(struct tri_pass *pass, uint32_t file, const struct tri_map *map)
{
    struct tri_sample sample;
    if (pass->units_in_file++ < pass->skip)
        return TRI_OK;
    int64_t line = 1;
    enum tri_status st = scan_text(pass, map, &line);
    if (st == TRI_OK)
        st = check_text((const char *)map->data, map->bytes);
    if (st == TRI_OK)
        st = tri_sample_from_text(pass->rules, (const char *)map->data, map->bytes, &sample);
    if (st != TRI_OK)
        return tri_pass_leave_out(pass, file, line, st);
    st = tri_pass_add(pass, &sample, (struct tri_record){.bytes = map->bytes, .file = file}, 1);
    tri_sample_close(&sample);
    return st;
}

/* The documents of a Megatron dataset; those without two tokens have nothing to train. */
enum tri_status tri_pass_set(struct tri_pass *pass, uint32_t number)
{
    const struct tri_data_file *file = &pass->files->file[number];
    int64_t left_out = 0;
    for (int64_t d = 0; d < file->set->documents; d++) {
        if (tri_megatron_length(file->set, d) < 2) {
            left_out++;
            continue;
        }
        if (pass->units_in_file++ < pass->skip)
            continue;
        struct tri_sample sample;
        TRI_TRY(tri_sample_from_set(pass->rules, file->set, d, &sample));
        pass->index.identity =
            tri_fingerprint(pass->index.identity, (const unsigned char *)sample.ids,
                            (size_t)sample.tokens * sizeof *sample.ids);
        const struct tri_record record = {.offset = (uint64_t)d, .file = number};
        const enum tri_status st = tri_pass_add(pass, &sample, record, d);
        tri_sample_close(&sample);
        TRI_TRY(st);
        if (d % 1024 == 0)
            tri_pass_show(pass, file->bytes * (uint64_t)d / (uint64_t)file->set->documents);
    }
    if (left_out > 0)
        tri_info("%s: %" PRId64 " document%s less than two tokens and %s left out", file->path,
                 left_out, left_out == 1 ? " has" : "s have", left_out == 1 ? "is" : "are");
    if (pass->units_in_file == 0)
        return tri_fail(TRI_INVALID, "%s: the set holds no document of two tokens: remove it",
                        file->path);
    return TRI_OK;
}
