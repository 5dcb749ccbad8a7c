/* Making a cache: one pass over the data, written part by part. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/cache/card.h"
#include "data/cache/part.h"
#include "data/lock.h"
#include "data/options.h"
#include "data/unpack.h"

struct build {
    uint64_t key, part_bytes;
    const char *folder;
    struct tri_part_writer *part; /* NULL: none is open */
    int64_t parts;                /* finished */
    struct tri_index_place place; /* behind the last sample */
};

static char *part_path(const char *folder, int64_t number)
{
    char name[32];
    snprintf(name, sizeof name, "part-%06" PRId64, number);
    return tri_path_join(folder, name);
}

static enum tri_status begin_part(struct build *build)
{
    char *path = part_path(build->folder, build->parts);
    if (!path)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    const enum tri_status st = tri_part_create(path, build->key, &build->part);
    free(path);
    return st;
}

static enum tri_status end_part(struct build *build)
{
    struct tri_part_writer *part = build->part;
    if (!part)
        return TRI_OK;
    build->part = NULL;
    TRI_TRY(tri_part_finish(part, &build->place));
    build->parts++;
    return TRI_OK;
}

static enum tri_status see(void *ctx, const struct tri_sample *sample,
                           const struct tri_record *record, int64_t line,
                           const struct tri_index_place *place)
{
    struct build *build = ctx;
    if (!build->part)
        TRI_TRY(begin_part(build));
    TRI_TRY(tri_part_add(build->part, sample, record->file, line));
    build->place = *place;
    return tri_part_bytes(build->part) >= build->part_bytes ? end_part(build) : TRI_OK;
}

/* Parts that an earlier build finished: go on behind the last of them. */
static enum tri_status find_parts(struct build *build)
{
    build->place = (struct tri_index_place){.identity = TRI_HASH_START};
    for (;; build->parts++) {
        struct tri_part part;
        char *path = part_path(build->folder, build->parts);
        if (!path)
            return tri_fail(TRI_NOMEM, "no memory for a path");
        const bool there = tri_path_exists(path);
        const enum tri_status st = there ? tri_part_open(path, build->key, &part) : TRI_OK;
        free(path);
        if (!there || st != TRI_OK) /* what cannot be read is made again */
            break;
        build->place = part.place;
        tri_part_close(&part);
    }
    tri_error_clear();
    if (build->parts > 0)
        tri_info("going on with a build that was interrupted: %" PRId64 " sample%s, %" PRId64
                 " token%s are there",
                 build->place.stats.samples, tri_plural(build->place.stats.samples),
                 build->place.stats.tokens, tri_plural(build->place.stats.tokens));
    return TRI_OK;
}

static enum tri_status make_parts(struct build *build, const struct tri_data_files *files,
                                  const struct tri_sample_rules *rules)
{
    struct tri_index index;
    TRI_TRY(find_parts(build));
    const struct tri_index_watch watch = {.ctx = build, .see = see, .start = build->place};
    enum tri_status st = tri_index_watch(files, rules, 0, TRI_OVERLENGTH_ERROR, &watch, &index);
    if (st == TRI_OK) {
        build->place.identity = index.identity;
        tri_index_close(&index);
        st = end_part(build);
    }
    tri_part_abandon(build->part);
    return st;
}

static enum tri_status make(const char *folder, const char *building,
                            const struct tri_cache_key *key, const struct tri_data_files *files,
                            const struct tri_sample_rules *rules, uint64_t part_bytes)
{
    struct build build = {.key = key->key, .part_bytes = part_bytes, .folder = building};
    TRI_TRY(tri_make_folder(building));
    TRI_TRY(make_parts(&build, files, rules));
    const struct tri_cache_card card = {
        .key = *key, .version = TRI_CACHE_VERSION, .parts = build.parts};
    TRI_TRY(tri_cache_card_save(building, &card, &build.place, files));
    TRI_TRY(tri_remove_folder(folder)); /* one without cache.json */
    TRI_TRY(tri_rename_folder(building, folder));
    tri_info("made the tokens of %" PRId64 " file%s", files->count, tri_plural(files->count));
    return TRI_OK;
}

enum tri_status tri_cache_build(const char *home, const struct tri_cache_key *key,
                                const struct tri_data_files *files,
                                const struct tri_sample_rules *rules, uint64_t part_bytes)
{
    char *folder = NULL, *building = NULL, *lock = NULL;
    int fd = -1;
    enum tri_status st = tri_make_folder(home);
    if (st == TRI_OK)
        st = tri_cache_path(home, key, &folder);
    if (st == TRI_OK) {
        building = tri_path_append(folder, ".building");
        lock = tri_path_append(folder, ".lock");
        st = building && lock
                 ? tri_data_lock(lock, "waiting for the process that is making this cache",
                                 building, &fd)
                 : tri_fail(TRI_NOMEM, "no memory for a path");
    }
    if (st == TRI_OK && !tri_cache_exists(home, key))
        st = make(folder, building, key, files, rules, part_bytes);
    if (fd >= 0)
        close(fd);
    free(lock);
    free(building);
    free(folder);
    return tri_cache_folder_failed(st);
}
