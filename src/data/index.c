#include "data/index.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/ahead_files.h"
#include "data/index_pass.h"
#include "data/options.h"

enum { SHOWN_BAD = 5 };
static const double quiet_seconds = 2; /* shorter passes say nothing */

void tri_pass_show(const struct tri_pass *pass, uint64_t bytes_in_file)
{
    const double seconds = tri_clock() - pass->begin;
    const double done = (double)(pass->bytes_done + bytes_in_file);
    if (seconds < quiet_seconds || done == 0)
        return;
    char eta[16];
    tri_duration_text(seconds * ((double)pass->bytes_total - done) / done, eta);
    const int64_t samples = pass->index.stats.samples, tokens = pass->index.stats.tokens;
    tri_progress("reading data: %s of %s, %" PRId64 " sample%s, %" PRId64 " token%s, %s left",
                 tri_bytes(done).s, tri_bytes((double)pass->bytes_total).s, samples,
                 tri_plural(samples), tokens, tri_plural(tokens), eta);
}

void tri_pass_forget(const struct tri_map *map, size_t from, size_t to)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    from -= from % page;
    to -= to % page;
    if (to > from)
        (void)madvise((void *)(uintptr_t)(map->data + from), to - from, MADV_DONTNEED);
}

enum tri_status tri_pass_leave_out(struct tri_pass *pass, uint32_t file, int64_t line,
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

enum tri_status tri_pass_add(struct tri_pass *pass, const struct tri_sample *sample,
                             struct tri_record record, int64_t line)
{
    const enum tri_status st = tri_index_add(&pass->index, &pass->rule, sample, record, line);
    if (st != TRI_OK)
        return tri_pass_leave_out(pass, record.file, line, st);
    if (!pass->watch)
        return TRI_OK;
    const struct tri_index_place place = {.file = record.file,
                                          .units = pass->units_in_file,
                                          .identity = pass->index.identity,
                                          .stats = pass->index.stats};
    return pass->watch->see(pass->watch->ctx, sample, &record, line, &place);
}

/* A file begins, unless it began in an earlier run. */
static void begin_file(struct tri_pass *pass, uint32_t number)
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

static enum tri_status add_file(struct tri_pass *pass, uint32_t number)
{
    const struct tri_data_file *file = &pass->files->file[number];
    begin_file(pass, number);
    if (file->kind == TRI_FILE_MEGATRON) {
        pass->bytes_done += file->bytes;
        return tri_pass_set(pass, number);
    }
    if (file->kind == TRI_FILE_TEXT && number >= pass->files_ahead && pass->skip == 0)
        pass->files_ahead = tri_ahead_files(pass->rules, pass->files, number);
    struct tri_map map;
    TRI_TRY(tri_data_file_map(file, &map));
    if (map.bytes > 0) /* a hint, so its failure is not one of ours */
        (void)madvise((void *)(uintptr_t)map.data, map.bytes, MADV_SEQUENTIAL);
    const enum tri_status st = file->kind == TRI_FILE_LINES ? tri_pass_lines(pass, number, &map)
                                                            : tri_pass_text(pass, number, &map);
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
    struct tri_pass pass = {
        .files = files,
        .rules = rules,
        .rule = {.limit = max_length > 0 ? max_length : INT64_MAX, .policy = overlength},
        .index = {.identity = TRI_HASH_START, .keep_counts = rules->keep_counts},
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
        tri_pass_show(&pass, 0);
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
    free(index->counts);
    memset(index, 0, sizeof *index);
}
