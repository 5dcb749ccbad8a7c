#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "data/batch.h"
#include "data/cache/part_private.h"
#include "data/options.h"

_Static_assert(sizeof(bool) == 1, "begins are mapped as they are");

static enum tri_status damaged(const char *path, const char *how)
{
    return tri_fail(TRI_FORMAT, "%s: %s: remove the folder and run trireme data build again", path,
                    how);
}

static bool table_is_sound(const struct tri_cache_entry *entries,
                           const struct tri_part_footer *footer)
{
    for (int64_t i = 0; i < footer->count; i++) {
        struct tri_part_layout layout;
        const struct tri_cache_entry *entry = &entries[i];
        if (!tri_part_lay_out(entry, &layout) || entry->offset % 8 != 0 ||
            entry->offset > footer->table || layout.end > footer->table - entry->offset ||
            entry->trained < 0 || entry->trained >= entry->tokens || entry->documents < 1)
            return false;
    }
    return true;
}

static enum tri_status check(const char *path, uint64_t key, const struct tri_map *map,
                             struct tri_part_footer *footer)
{
    struct tri_part_header header;
    if (map->bytes < sizeof header + sizeof *footer || map->bytes % 8 != 0)
        return damaged(path, "the file is cut off");
    memcpy(&header, map->data, sizeof header);
    memcpy(footer, map->data + map->bytes - sizeof *footer, sizeof *footer);
    if (header.magic != TRI_PART_MAGIC)
        return damaged(path, "not a part of a cache");
    if (header.version != TRI_CACHE_VERSION)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: the cache has version %" PRIu64
                        " and this is version %d: remove the folder and run trireme data build "
                        "again",
                        path, header.version, TRI_CACHE_VERSION);
    if (header.key != key)
        return damaged(path, "it belongs to another cache");
    if (footer->magic != TRI_PART_MAGIC)
        return damaged(path, "the file is cut off");
    const uint64_t end = map->bytes - sizeof *footer;
    if (footer->table % 8 != 0 || footer->table < sizeof header || footer->table > end ||
        footer->count < 0 || (end - footer->table) % sizeof(struct tri_cache_entry) != 0 ||
        (uint64_t)footer->count != (end - footer->table) / sizeof(struct tri_cache_entry))
        return damaged(path, "its table does not fit");
    return TRI_OK;
}

enum tri_status tri_part_open(const char *path, uint64_t key, struct tri_part *out)
{
    struct tri_part part = {.path = strdup(path)};
    struct tri_part_footer footer;
    enum tri_status st =
        part.path ? tri_map_open(path, &part.map) : tri_fail(TRI_NOMEM, "no memory for a path");
    if (st == TRI_OK)
        st = check(path, key, &part.map, &footer);
    if (st == TRI_OK) {
        part.entries = (const struct tri_cache_entry *)(const void *)(part.map.data + footer.table);
        part.count = footer.count;
        part.place = footer.place;
        if (tri_part_hash(part.entries, &footer) != footer.hash ||
            !table_is_sound(part.entries, &footer))
            st = damaged(path, "its table is damaged");
    }
    if (st != TRI_OK) {
        tri_part_close(&part);
        return st;
    }
    *out = part;
    return TRI_OK;
}

void tri_part_close(struct tri_part *part)
{
    tri_map_close(&part->map);
    free(part->path);
    memset(part, 0, sizeof *part);
}

void tri_part_forget(const struct tri_part *part)
{
    (void)madvise((void *)(uintptr_t)part->map.data, part->map.bytes, MADV_DONTNEED);
}

enum tri_status tri_part_check(const struct tri_part *part)
{
    struct stat info;
    if (stat(part->path, &info) != 0)
        return tri_fail_errno(errno, "cannot read %s any more", part->path);
    if ((uint64_t)info.st_size != part->map.bytes)
        return tri_fail(TRI_INVALID,
                        "%s has changed since it was opened: it has %lld bytes and had %zu: remove "
                        "the folder and run trireme data build again",
                        part->path, (long long)info.st_size, part->map.bytes);
    return TRI_OK;
}

/* Are the tokens [first, first + count) those that were written? Whole blocks are hashed. */
static bool is_as_written(const struct tri_cache_entry *entry, const struct tri_sample *sample,
                          const unsigned char *begins, const uint64_t *hashes, int64_t first,
                          int64_t count)
{
    const size_t bytes = (size_t)tri_part_blocks(entry->tokens) * sizeof *hashes;
    if (tri_hash_bytes(TRI_HASH_START, hashes, bytes) != entry->hash)
        return false;
    for (int64_t at = first - first % TRI_PART_BLOCK; at < first + count; at += TRI_PART_BLOCK) {
        const int64_t left = entry->tokens - at;
        const int64_t n = left < TRI_PART_BLOCK ? left : TRI_PART_BLOCK;
        if (tri_part_block_hash(sample->ids, sample->labels, begins, at, n) !=
            hashes[at / TRI_PART_BLOCK])
            return false;
    }
    return true;
}

static bool tokens_are_sound(const struct tri_sample *sample, const unsigned char *begins,
                             int64_t first, int64_t count)
{
    const int64_t vocab = sample->rules->vocab;
    for (int64_t i = first; i < first + count; i++) {
        const int32_t label = sample->labels ? sample->labels[i] : 0;
        if (sample->ids[i] < 0 || sample->ids[i] >= vocab || label >= vocab ||
            (label < 0 && label != TRI_IGNORE_LABEL) || (begins && begins[i] > 1))
            return false;
    }
    return true;
}

enum tri_status tri_part_sample(const struct tri_part *part, int64_t number,
                                const struct tri_sample_rules *rules, int64_t first, int64_t count,
                                struct tri_sample *out)
{
    if (number < 0 || number >= part->count)
        return tri_fail(TRI_INTERNAL, "sample %" PRId64 " of a part of %" PRId64, number,
                        part->count);
    TRI_TRY(tri_part_check(part));
    const struct tri_cache_entry *entry = &part->entries[number];
    if (first < 0 || count < 0 || first > entry->tokens || count > entry->tokens - first)
        return tri_fail(TRI_INTERNAL, "token %" PRId64 " of a sample of %" PRId64, first + count,
                        entry->tokens);
    struct tri_part_layout layout;
    if (!tri_part_lay_out(entry, &layout)) /* the table was checked, and has changed since */
        return damaged(part->path, "its table is damaged");
    const unsigned char *at = part->map.data + entry->offset;
    const unsigned char *begins = entry->flags & TRI_CACHE_BEGINS ? at + layout.begins : NULL;
    const uint64_t *hashes = (const uint64_t *)(const void *)(at + layout.hashes);
    struct tri_sample sample = {
        .rules = rules,
        .tokens = entry->tokens,
        .format = TRI_DATA_TOKENIZED,
        .rendered = (entry->flags & TRI_CACHE_RENDERED) != 0,
        .ids = (int32_t *)(uintptr_t)at,
    };
    if (entry->flags & TRI_CACHE_LABELS)
        sample.labels = (int32_t *)(uintptr_t)(at + layout.labels);
    if (!is_as_written(entry, &sample, begins, hashes, first, count) ||
        !tokens_are_sound(&sample, begins, first, count))
        return tri_fail(TRI_FORMAT,
                        "%s: sample %" PRId64 " is damaged: remove the folder and run trireme data "
                        "build again",
                        part->path, number);
    sample.begins = (bool *)(uintptr_t)begins;
    *out = sample;
    return TRI_OK;
}
