#include "data/ahead_files.h"

#include "base/file.h"
#include "text/utf8.h"

/* Tokenizers keep several times as much. */
enum { WINDOW_BYTES = 32 << 20, WINDOW_FILES = 1024 };

static void encode(const struct tri_sample_rules *rules, const struct tri_data_file *file)
{
    struct tri_map map;
    if (tri_data_file_map(file, &map) != TRI_OK) {
        tri_error_clear();
        return;
    }
    const char *text = (const char *)map.data;
    struct tri_sample sample;
    if (map.bytes > 0 && tri_utf8_valid(text, map.bytes) == map.bytes) {
        if (tri_sample_from_text(rules, text, map.bytes, &sample) == TRI_OK)
            tri_sample_close(&sample);
        else
            tri_error_clear();
    }
    tri_map_close(&map);
}

int64_t tri_ahead_files(const struct tri_sample_rules *rules, const struct tri_data_files *files,
                        int64_t from)
{
    uint64_t bytes = 0;
    int64_t end = from;
    while (end < files->count && end - from < WINDOW_FILES && bytes < WINDOW_BYTES &&
           files->file[end].kind == TRI_FILE_TEXT)
        bytes += files->file[end++].bytes;
    if (end - from < 2 || !rules->tokenizer || !rules->tokenizer->keeps)
        return end; /* one file takes as long in its turn */
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = from; i < end; i++)
        encode(rules, &files->file[i]);
    return end;
}
