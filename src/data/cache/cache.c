#include "data/cache/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "data/cache/card.h"
#include "data/cache/part.h"
#include "data/overlength.h"

/* After so many tokens the pages that were looked at are let go. The system brings in a few more
 * around each. */
enum { FORGET_TOKENS = 16 << 20 };

/* A record's offset is a part and a sample of it. */
enum { SAMPLE_BITS = 40, MOST_PARTS = 1 << 23 };

struct tri_cache {
    struct tri_part *parts;
    int64_t num_parts;
    int64_t looked_at; /* tokens since pages were let go */
};

bool tri_cache_exists(const char *home, const struct tri_cache_key *key)
{
    char *folder = NULL;
    struct tri_cache_card card;
    bool exists = false;
    if (tri_cache_path(home, key, &folder) == TRI_OK) {
        char *path = tri_path_join(folder, "cache.json");
        exists = path && tri_path_exists(path) && tri_cache_card_load(folder, &card) == TRI_OK &&
                 card.key.key == key->key;
        free(path);
    }
    free(folder);
    tri_error_clear();
    return exists;
}

static enum tri_status open_parts(struct tri_cache *cache, const char *folder, uint64_t key,
                                  int64_t count)
{
    if (count < 1 || count > MOST_PARTS)
        return tri_fail(TRI_FORMAT, "%s/cache.json: %" PRId64 " parts cannot be", folder, count);
    cache->parts = calloc((size_t)count, sizeof *cache->parts);
    if (!cache->parts)
        return tri_fail(TRI_NOMEM, "no memory for a cache of %" PRId64 " parts", count);
    for (; cache->num_parts < count; cache->num_parts++) {
        char name[32];
        snprintf(name, sizeof name, "part-%06" PRId64, cache->num_parts);
        char *path = tri_path_join(folder, name);
        if (!path)
            return tri_fail(TRI_NOMEM, "no memory for a path");
        const enum tri_status st = tri_part_open(path, key, &cache->parts[cache->num_parts]);
        free(path);
        TRI_TRY(st);
    }
    return TRI_OK;
}

enum tri_status tri_cache_open(const char *home, const struct tri_cache_key *key,
                               struct tri_cache **out)
{
    char *folder;
    struct tri_cache_card card;
    TRI_TRY(tri_cache_path(home, key, &folder));
    struct tri_cache *cache = calloc(1, sizeof *cache);
    enum tri_status st = cache ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for a cache");
    if (st == TRI_OK)
        st = tri_cache_card_load(folder, &card);
    if (st == TRI_OK && card.version != TRI_CACHE_VERSION)
        st = tri_fail(TRI_UNSUPPORTED,
                      "%s: the cache has version %" PRId64
                      " and this is version %d: remove the folder and run trireme data build again",
                      folder, card.version, TRI_CACHE_VERSION);
    if (st == TRI_OK)
        st = open_parts(cache, folder, key->key, card.parts);
    free(folder);
    if (st != TRI_OK) {
        tri_cache_close(cache);
        return st;
    }
    *out = cache;
    return TRI_OK;
}

void tri_cache_close(struct tri_cache *cache)
{
    if (!cache)
        return;
    for (int64_t i = 0; i < cache->num_parts; i++)
        tri_part_close(&cache->parts[i]);
    free(cache->parts);
    free(cache);
}

uint64_t tri_cache_bytes(const struct tri_cache *cache)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < cache->num_parts; i++)
        bytes += cache->parts[i].map.bytes;
    return bytes;
}

static enum tri_status add(struct tri_index *index, struct tri_length_rule *rule,
                           const struct tri_part *part, int64_t number, struct tri_record record)
{
    const struct tri_cache_entry *entry = &part->entries[number];
    const struct tri_sample_rules any = {.vocab = INT32_MAX};
    /* Only a sample that is too long has to be looked at. */
    struct tri_sample sample = {.rules = &any,
                                .tokens = entry->tokens,
                                .rendered = (entry->flags & TRI_CACHE_RENDERED) != 0};
    if (entry->tokens > rule->limit)
        TRI_TRY(tri_part_sample(part, number, &any, 0, entry->tokens, &sample));
    return tri_index_add_measured(index, rule, &sample, entry->documents, entry->trained, record,
                                  entry->line);
}

static enum tri_status add_part(struct tri_index *index, struct tri_length_rule *rule,
                                const struct tri_data_files *files, const struct tri_part *part,
                                uint64_t number)
{
    if (part->count >> SAMPLE_BITS != 0)
        return tri_fail(TRI_UNSUPPORTED, "a part of a cache with %" PRId64 " samples", part->count);
    TRI_TRY(tri_part_check(part));
    for (int64_t i = 0; i < part->count; i++) {
        const struct tri_record record = {.offset = number << SAMPLE_BITS | (uint64_t)i,
                                          .file = part->entries[i].file};
        if (record.file >= files->count)
            return tri_fail(TRI_FORMAT, "the cache names file %" PRIu32 " of %" PRId64, record.file,
                            files->count);
        TRI_TRY(add(index, rule, part, i, record));
    }
    return TRI_OK;
}

enum tri_status tri_cache_index(const struct tri_cache *cache, const struct tri_data_files *files,
                                const struct tri_sample_rules *rules, int64_t max_length,
                                int overlength, struct tri_index *out)
{
    struct tri_length_rule rule = {.limit = max_length > 0 ? max_length : INT64_MAX,
                                   .policy = overlength};
    const struct tri_index_place *end = &cache->parts[cache->num_parts - 1].place;
    struct tri_index index = {.stats = {.files = files->count, .bad = end->stats.bad},
                              .identity = end->identity,
                              .keep_counts = rules->keep_counts};
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < cache->num_parts; i++)
        st = add_part(&index, &rule, files, &cache->parts[i], (uint64_t)i);
    if (st == TRI_OK)
        st = tri_index_finish(&index, &rule, files, max_length);
    if (st != TRI_OK) {
        tri_index_close(&index);
        return st;
    }
    *out = index;
    return TRI_OK;
}

static void forget(struct tri_cache *cache)
{
    for (int64_t i = 0; i < cache->num_parts; i++)
        tri_part_forget(&cache->parts[i]);
    cache->looked_at = 0;
}

enum tri_status tri_cache_sample(struct tri_cache *cache, const struct tri_record *record,
                                 int64_t first, const struct tri_sample_rules *rules,
                                 struct tri_sample *out)
{
    const uint64_t part = record->offset >> SAMPLE_BITS;
    const uint64_t mask = (UINT64_C(1) << SAMPLE_BITS) - 1;
    if (part >= (uint64_t)cache->num_parts)
        return tri_fail(TRI_INTERNAL, "part %" PRIu64 " of a cache of %" PRId64, part,
                        cache->num_parts);
    if (cache->looked_at > FORGET_TOKENS)
        forget(cache);
    cache->looked_at += record->tokens;
    return tri_part_sample(&cache->parts[part], (int64_t)(record->offset & mask), rules, first,
                           record->tokens, out);
}
