#include "data/cache/part.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "data/batch.h"
#include "data/options.h"

#define MAGIC UINT64_C(0x4548434143495254) /* "TRICACHE" */

struct header {
    uint64_t magic, version, key;
};

struct footer {
    uint64_t table; /* offset */
    int64_t count;
    struct tri_index_place place;
    uint64_t hash; /* of the table and of this up to here */
    uint64_t magic;
};

_Static_assert(sizeof(bool) == 1, "begins are mapped as they are");

static size_t padding(uint64_t bytes)
{
    return (size_t)((8 - bytes % 8) % 8);
}

static uint64_t hash_of(const struct tri_cache_entry *entries, const struct footer *footer)
{
    const uint64_t hash =
        tri_hash_bytes(TRI_HASH_START, entries, (size_t)footer->count * sizeof *entries);
    return tri_hash_bytes(hash, footer, offsetof(struct footer, hash));
}

/* ---- writing ---------------------------------------------------------------------------------
 */

enum { RANGE_TOKENS = 1 << 18 }; /* a text is encoded and written piece by piece */

struct tri_part_writer {
    struct tri_writer *writer;
    uint64_t bytes;
    struct tri_cache_entry *entries;
    int64_t count, capacity;
    int32_t ids[RANGE_TOKENS], labels[RANGE_TOKENS];
    int64_t positions[RANGE_TOKENS];
};

static enum tri_status put(struct tri_part_writer *part, const void *data, size_t bytes)
{
    TRI_TRY(tri_writer_write(part->writer, data, bytes));
    part->bytes += bytes;
    return TRI_OK;
}

static enum tri_status pad(struct tri_part_writer *part)
{
    return put(part, "\0\0\0\0\0\0\0", padding(part->bytes));
}

enum tri_status tri_part_create(const char *path, uint64_t key, struct tri_part_writer **out)
{
    const struct header header = {MAGIC, TRI_CACHE_VERSION, key};
    struct tri_part_writer *part = malloc(sizeof *part);
    if (!part)
        return tri_fail(TRI_NOMEM, "no memory to write %s", path);
    part->writer = NULL;
    part->entries = NULL;
    part->bytes = 0;
    part->count = part->capacity = 0;
    enum tri_status st = tri_writer_open(path, &part->writer);
    if (st == TRI_OK)
        st = put(part, &header, sizeof header);
    if (st != TRI_OK) {
        tri_part_abandon(part);
        return st;
    }
    *out = part;
    return TRI_OK;
}

static enum tri_status put_text(struct tri_part_writer *part, const struct tri_sample *sample)
{
    for (int64_t first = 0; first < sample->tokens; first += RANGE_TOKENS) {
        const int64_t left = sample->tokens - first;
        const int64_t count = left < RANGE_TOKENS ? left : RANGE_TOKENS;
        TRI_TRY(tri_sample_take(sample, first, count, part->ids, part->labels, part->positions));
        TRI_TRY(put(part, part->ids, (size_t)count * sizeof *part->ids));
    }
    return pad(part);
}

static enum tri_status put_tokens(struct tri_part_writer *part, const struct tri_sample *sample)
{
    const size_t count = (size_t)sample->tokens;
    TRI_TRY(put(part, sample->ids, count * sizeof *sample->ids));
    TRI_TRY(pad(part));
    if (sample->labels) {
        TRI_TRY(put(part, sample->labels, count * sizeof *sample->labels));
        TRI_TRY(pad(part));
    }
    if (sample->begins) {
        TRI_TRY(put(part, sample->begins, count * sizeof *sample->begins));
        TRI_TRY(pad(part));
    }
    return TRI_OK;
}

enum tri_status tri_part_add(struct tri_part_writer *part, const struct tri_sample *sample,
                             uint32_t file, int64_t line)
{
    if (part->count == part->capacity) {
        const int64_t capacity = part->capacity ? 2 * part->capacity : 1024;
        struct tri_cache_entry *entries =
            realloc(part->entries, (size_t)capacity * sizeof *entries);
        if (!entries)
            return tri_fail(TRI_NOMEM, "no memory for a table of %" PRId64 " samples", capacity);
        part->entries = entries;
        part->capacity = capacity;
    }
    struct tri_cache_entry entry = {.offset = part->bytes,
                                    .tokens = sample->tokens,
                                    .line = line,
                                    .file = file,
                                    .flags = sample->rendered ? TRI_CACHE_RENDERED : 0};
    tri_sample_measure(sample, 0, sample->tokens, &entry.documents, &entry.trained);
    if (sample->text) {
        TRI_TRY(put_text(part, sample));
    } else {
        entry.flags |=
            (sample->labels ? TRI_CACHE_LABELS : 0u) | (sample->begins ? TRI_CACHE_BEGINS : 0u);
        TRI_TRY(put_tokens(part, sample));
    }
    part->entries[part->count++] = entry;
    return TRI_OK;
}

uint64_t tri_part_bytes(const struct tri_part_writer *part)
{
    return part->bytes;
}

enum tri_status tri_part_finish(struct tri_part_writer *part, const struct tri_index_place *place)
{
    struct footer footer;
    memset(&footer, 0, sizeof footer); /* its padding is hashed as well */
    footer.table = part->bytes;
    footer.count = part->count;
    footer.place = *place;
    footer.hash = hash_of(part->entries, &footer);
    footer.magic = MAGIC;
    enum tri_status st = put(part, part->entries, (size_t)part->count * sizeof *part->entries);
    if (st == TRI_OK)
        st = put(part, &footer, sizeof footer);
    if (st == TRI_OK) {
        st = tri_writer_commit(part->writer);
        part->writer = NULL;
    }
    tri_part_abandon(part);
    return st;
}

void tri_part_abandon(struct tri_part_writer *part)
{
    if (!part)
        return;
    tri_writer_abandon(part->writer);
    free(part->entries);
    free(part);
}

/* ---- reading ---------------------------------------------------------------------------------
 */

static enum tri_status damaged(const char *path, const char *how)
{
    return tri_fail(TRI_FORMAT, "%s: %s: remove the folder and run trireme data build again", path,
                    how);
}

/* Bytes of a sample with all its arrays. */
static bool extent(const struct tri_cache_entry *entry, uint64_t *bytes)
{
    const uint64_t tokens = (uint64_t)entry->tokens;
    if (entry->tokens < 1 || tokens > UINT64_MAX / 16)
        return false;
    uint64_t size = 4 * tokens + padding(4 * tokens);
    if (entry->flags & TRI_CACHE_LABELS)
        size *= 2;
    if (entry->flags & TRI_CACHE_BEGINS)
        size += tokens + padding(tokens);
    *bytes = size;
    return true;
}

static bool table_is_sound(const struct tri_cache_entry *entries, const struct footer *footer)
{
    for (int64_t i = 0; i < footer->count; i++) {
        uint64_t bytes;
        const struct tri_cache_entry *entry = &entries[i];
        if (!extent(entry, &bytes) || entry->offset % 8 != 0 || entry->offset > footer->table ||
            bytes > footer->table - entry->offset || entry->trained < 0 ||
            entry->trained >= entry->tokens || entry->documents < 1)
            return false;
    }
    return true;
}

static enum tri_status check(const char *path, uint64_t key, const struct tri_map *map,
                             struct footer *footer)
{
    struct header header;
    if (map->bytes < sizeof header + sizeof *footer || map->bytes % 8 != 0)
        return damaged(path, "the file is cut off");
    memcpy(&header, map->data, sizeof header);
    memcpy(footer, map->data + map->bytes - sizeof *footer, sizeof *footer);
    if (header.magic != MAGIC)
        return damaged(path, "not a part of a cache");
    if (header.version != TRI_CACHE_VERSION)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: the cache has version %" PRIu64
                        " and this is version %d: remove the folder and run trireme data build "
                        "again",
                        path, header.version, TRI_CACHE_VERSION);
    if (header.key != key)
        return damaged(path, "it belongs to another cache");
    if (footer->magic != MAGIC)
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
    struct tri_part part = {.count = 0};
    struct footer footer;
    TRI_TRY(tri_map_open(path, &part.map));
    enum tri_status st = check(path, key, &part.map, &footer);
    if (st == TRI_OK) {
        part.entries = (const struct tri_cache_entry *)(const void *)(part.map.data + footer.table);
        part.count = footer.count;
        part.place = footer.place;
        if (hash_of(part.entries, &footer) != footer.hash || !table_is_sound(part.entries, &footer))
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
    memset(part, 0, sizeof *part);
}

void tri_part_forget(const struct tri_part *part)
{
    (void)madvise((void *)(uintptr_t)part->map.data, part->map.bytes, MADV_DONTNEED);
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
    const struct tri_cache_entry *entry = &part->entries[number];
    if (first < 0 || count < 0 || first > entry->tokens || count > entry->tokens - first)
        return tri_fail(TRI_INTERNAL, "token %" PRId64 " of a sample of %" PRId64, first + count,
                        entry->tokens);
    const unsigned char *at = part->map.data + entry->offset;
    const uint64_t bytes = 4 * (uint64_t)entry->tokens;
    struct tri_sample sample = {
        .rules = rules,
        .tokens = entry->tokens,
        .format = TRI_DATA_TOKENIZED,
        .rendered = (entry->flags & TRI_CACHE_RENDERED) != 0,
        .ids = (int32_t *)(uintptr_t)at,
    };
    at += bytes + padding(bytes);
    if (entry->flags & TRI_CACHE_LABELS) {
        sample.labels = (int32_t *)(uintptr_t)at;
        at += bytes + padding(bytes);
    }
    const unsigned char *begins = entry->flags & TRI_CACHE_BEGINS ? at : NULL;
    if (!tokens_are_sound(&sample, begins, first, count))
        return tri_fail(TRI_FORMAT,
                        "sample %" PRId64 " of the cache is damaged: remove the cache and run "
                        "trireme data build again",
                        number);
    sample.begins = (bool *)(uintptr_t)begins;
    *out = sample;
    return TRI_OK;
}
