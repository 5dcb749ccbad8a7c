#include "data/reader.h"

#include <inttypes.h>

#include "data/megatron.h"

static enum tri_status read_sample(const struct tri_data_file *file,
                                   const struct tri_sample_rules *rules, const char *text,
                                   uint64_t bytes, struct tri_sample *out)
{
    switch (file->kind) {
    case TRI_FILE_TEXT:
        return tri_sample_from_text(rules, text, bytes, out);
    case TRI_FILE_LINES:
        return tri_sample_from_line(rules, text, bytes, out);
    case TRI_FILE_MEGATRON: /* has no text */
        break;
    }
    return tri_fail(TRI_INTERNAL, "a file of unknown kind");
}

static enum tri_status read_document(struct tri_data_file *file,
                                     const struct tri_sample_rules *rules, uint64_t document,
                                     struct tri_reading *out)
{
    struct tri_reading reading = {.map = {.bytes = 0}};
    TRI_TRY(tri_data_file_check(file));
    TRI_TRY(tri_sample_from_set(rules, file->set, (int64_t)document, &reading.sample));
    *out = reading;
    return TRI_OK;
}

enum tri_status tri_reading_open(struct tri_data_file *file, const struct tri_sample_rules *rules,
                                 uint64_t offset, uint64_t bytes, struct tri_reading *out)
{
    struct tri_reading reading;
    if (file->kind == TRI_FILE_MEGATRON)
        return read_document(file, rules, offset, out);
    TRI_TRY(tri_data_file_map(file, &reading.map));
    /* Checked once the file is open: what is mapped is what was indexed. */
    enum tri_status st = tri_data_file_check(file);
    if (st == TRI_OK &&
        (reading.map.bytes != file->bytes || offset > file->bytes || bytes > file->bytes - offset))
        st = tri_fail(TRI_INVALID, "%s changes while it is read", file->path);
    if (st == TRI_OK) {
        st = read_sample(file, rules, (const char *)reading.map.data + offset, bytes,
                         &reading.sample);
        if (st != TRI_OK)
            tri_error_prefix("%s, byte %" PRIu64 "%s", file->path, offset,
                             file->unpacked ? " unpacked" : "");
    }
    if (st != TRI_OK) {
        tri_map_close(&reading.map);
        return st;
    }
    *out = reading;
    return TRI_OK;
}

void tri_reading_close(struct tri_reading *reading)
{
    tri_sample_close(&reading->sample);
    tri_map_close(&reading->map);
}
