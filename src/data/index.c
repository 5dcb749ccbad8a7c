#include "data/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "data/ahead.h"
#include "data/ahead_files.h"
#include "data/fingerprint.h"
#include "data/formats/format.h"
#include "data/megatron.h"
#include "data/options.h"
#include "data/overlength.h"
#include "text/utf8.h"

enum { WINDOW_BYTES = 16 << 20, SHOWN_BAD = 5 };
static const double quiet_seconds = 2; /* shorter passes say nothing */

struct pass {
    const struct tri_data_files *files;
    const struct tri_sample_rules *rules;
    struct tri_length_rule rule;
    struct tri_index index;
    const struct tri_index_watch *watch; /* or NULL */
    int64_t units_in_file;               /* of struct tri_index_place */
    int64_t skip;                        /* units of this file that were seen before */
    struct tri_ahead *ahead;
    int64_t files_ahead; /* text files before this number were encoded */
    int format;          /* of the lines of this file; TRI_DATA_AUTO: none was read yet */
    double begin;
    uint64_t bytes_done, bytes_total;
};

static void show_progress(const struct pass *pass, uint64_t bytes_in_file)
{
    const double seconds = tri_clock() - pass->begin;
    const double done = (double)(pass->bytes_done + bytes_in_file);
    if (seconds < quiet_seconds || done == 0)
        return;
    char eta[16];
    tri_duration_text(seconds * ((double)pass->bytes_total - done) / done, eta);
    tri_progress("reading data: %.1f of %.1f MiB, %" PRId64 " samples, %" PRId64 " tokens, %s left",
                 done / 1048576, (double)pass->bytes_total / 1048576, pass->index.stats.samples,
                 pass->index.stats.tokens, eta);
}

/* Let go of mapped pages that were looked at: they must not count as memory of this process. */
static void forget(const struct tri_map *map, size_t from, size_t to)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    from -= from % page;
    to -= to % page;
    if (to > from)
        (void)madvise((void *)(uintptr_t)(map->data + from), to - from, MADV_DONTNEED);
}

/* A bad sample ends the pass with its place (file and line or document), or is counted. */
static enum tri_status leave_out(struct pass *pass, uint32_t file, int64_t line,
                                 enum tri_status status)
{
    const bool bad = status == TRI_INVALID || status == TRI_FORMAT || status == TRI_UNSUPPORTED;
    if (pass->files->file[file].kind == TRI_FILE_MEGATRON)
        tri_error_prefix("%s, document %" PRId64, pass->files->file[file].path, line);
    else if (pass->files->file[file].list)
        tri_error_prefix("%s, element %" PRId64, pass->files->file[file].path, line);
    else
        tri_error_prefix("%s:%" PRId64, pass->files->file[file].path, line);
    if (!bad || !pass->rules->skip_bad)
        return status;
    if (pass->index.stats.bad++ < SHOWN_BAD)
        tri_warn("left out: %s", tri_error_text());
    tri_error_clear();
    return TRI_OK;
}

/* Add a sample and show it to whoever watches. A bad one is none. */
static enum tri_status add_sample(struct pass *pass, const struct tri_sample *sample,
                                  struct tri_record record, int64_t line)
{
    const enum tri_status st = tri_index_add(&pass->index, &pass->rule, sample, record, line);
    if (st != TRI_OK)
        return leave_out(pass, record.file, line, st);
    if (!pass->watch)
        return TRI_OK;
    const struct tri_index_place place = {.file = record.file,
                                          .units = pass->units_in_file,
                                          .identity = pass->index.identity,
                                          .stats = pass->index.stats};
    return pass->watch->see(pass->watch->ctx, sample, &record, line, &place);
}

/* Check and hash a text window by window. On failure *line is the bad one. */
static enum tri_status scan_text(struct pass *pass, const struct tri_map *map, int64_t *line)
{
    const char *text = (const char *)map->data;
    size_t at = 0;
    while (at < map->bytes) {
        const size_t left = map->bytes - at;
        const size_t window = left < WINDOW_BYTES ? left : WINDOW_BYTES;
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
        forget(map, at, at + valid);
        at += valid;
        show_progress(pass, at);
    }
    return TRI_OK;
}

static enum tri_status add_text(struct pass *pass, uint32_t file, const struct tri_map *map)
{
    struct tri_sample sample;
    if (pass->units_in_file++ < pass->skip)
        return TRI_OK;
    int64_t line = 1;
    enum tri_status st = scan_text(pass, map, &line);
    if (st == TRI_OK)
        st = tri_sample_from_text(pass->rules, (const char *)map->data, map->bytes, &sample);
    if (st != TRI_OK)
        return leave_out(pass, file, line, st);
    st = add_sample(pass, &sample, (struct tri_record){.bytes = map->bytes, .file = file}, 1);
    tri_sample_close(&sample);
    return st;
}

static bool is_blank(const unsigned char *line, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
            return false;
    return true;
}

static enum tri_status add_line(struct pass *pass, struct tri_record record,
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
        return leave_out(pass, record.file, line, st);
    if (pass->format == TRI_DATA_AUTO)
        pass->format = sample.format;
    if (pass->format == sample.format)
        st = add_sample(pass, &sample, record, line);
    else
        st = leave_out(pass, record.file, line,
                       tri_fail(TRI_INVALID,
                                "this line is of the format %s, the first of this file of %s: give "
                                "each format a file of its own, or set data.format",
                                tri_format_name(sample.format), tri_format_name(pass->format)));
    tri_sample_close(&sample);
    return st;
}

static enum tri_status add_lines(struct pass *pass, uint32_t file, const struct tri_map *map)
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
        if (at - kept_from >= WINDOW_BYTES) {
            forget(map, kept_from, at);
            kept_from = at;
            show_progress(pass, at);
        }
    }
    if (pass->units_in_file == 0)
        return tri_fail(TRI_INVALID, "%s: the file holds no sample: remove it",
                        pass->files->file[file].path);
    return TRI_OK;
}

/* The documents of a Megatron dataset; those without two tokens have nothing to train. */
static enum tri_status add_set(struct pass *pass, uint32_t number)
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
        const enum tri_status st = add_sample(pass, &sample, record, d);
        tri_sample_close(&sample);
        TRI_TRY(st);
        if (d % 1024 == 0)
            show_progress(pass, file->bytes * (uint64_t)d / (uint64_t)file->set->documents);
    }
    if (left_out > 0)
        tri_info("%s: %" PRId64 " documents have less than two tokens and are left out", file->path,
                 left_out);
    if (pass->units_in_file == 0)
        return tri_fail(TRI_INVALID, "%s: the set holds no document of two tokens: remove it",
                        file->path);
    return TRI_OK;
}

/* A file begins, unless it began in an earlier run. */
static void begin_file(struct pass *pass, uint32_t number)
{
    const struct tri_data_file *file = &pass->files->file[number];
    pass->units_in_file = 0;
    pass->format = TRI_DATA_AUTO;
    pass->skip = pass->watch && pass->watch->start.file == number ? pass->watch->start.units : 0;
    if (pass->skip > 0)
        return;
    const char *slash = strrchr(file->path, '/');
    const char *name = slash ? slash + 1 : file->path;
    pass->index.identity = tri_hash_bytes(pass->index.identity, name, strlen(name));
    pass->index.identity = tri_hash_word(pass->index.identity, file->bytes);
}

static enum tri_status add_file(struct pass *pass, uint32_t number)
{
    const struct tri_data_file *file = &pass->files->file[number];
    begin_file(pass, number);
    if (file->kind == TRI_FILE_MEGATRON) {
        pass->bytes_done += file->bytes;
        return add_set(pass, number);
    }
    if (file->kind == TRI_FILE_TEXT && number >= pass->files_ahead && pass->skip == 0)
        pass->files_ahead = tri_ahead_files(pass->rules, pass->files, number);
    struct tri_map map;
    TRI_TRY(tri_data_file_map(file, &map));
    if (map.bytes > 0) /* a hint, so its failure is not one of ours */
        (void)madvise((void *)(uintptr_t)map.data, map.bytes, MADV_SEQUENTIAL);
    const enum tri_status st =
        file->kind == TRI_FILE_LINES ? add_lines(pass, number, &map) : add_text(pass, number, &map);
    tri_map_close(&map);
    pass->bytes_done += file->bytes;
    return st;
}

enum tri_status tri_index_open(const struct tri_data_files *files,
                               const struct tri_sample_rules *rules, int64_t max_length,
                               int overlength, struct tri_index *out)
{
    return tri_index_watch(files, rules, max_length, overlength, NULL, out);
}

enum tri_status tri_index_watch(const struct tri_data_files *files,
                                const struct tri_sample_rules *rules, int64_t max_length,
                                int overlength, const struct tri_index_watch *watch,
                                struct tri_index *out)
{
    struct tri_ahead *ahead;
    TRI_TRY(tri_ahead_open(&ahead));
    struct pass pass = {
        .files = files,
        .rules = rules,
        .rule = {.limit = max_length > 0 ? max_length : INT64_MAX, .policy = overlength},
        .index = {.identity = TRI_HASH_START},
        .watch = watch,
        .ahead = ahead,
        .begin = tri_clock(),
    };
    if (watch) {
        pass.index.identity = watch->start.identity;
        pass.index.stats = watch->start.stats;
    }
    pass.index.stats.files = files->count;
    for (int64_t i = 0; i < files->count; i++)
        pass.bytes_total += files->file[i].bytes;

    enum tri_status st = TRI_OK;
    for (int64_t i = watch ? watch->start.file : 0; st == TRI_OK && i < files->count; i++) {
        st = add_file(&pass, (uint32_t)i);
        show_progress(&pass, 0);
    }
    tri_ahead_close(ahead);
    if (tri_clock() - pass.begin >= quiet_seconds)
        tri_progress_end();
    if (st == TRI_OK)
        st = tri_index_finish(&pass.index, &pass.rule, files, max_length);
    if (st != TRI_OK) {
        tri_index_close(&pass.index);
        return st;
    }
    *out = pass.index;
    return TRI_OK;
}

void tri_index_close(struct tri_index *index)
{
    free(index->records);
    memset(index, 0, sizeof *index);
}
