#include "text/token_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { BUCKETS = 1 << 16, ENTRY_TOKENS = 24 /* what an entry costs beside its ids */ };

struct entry {
    struct tri_text_key key;
    int32_t *ids;
    int64_t tokens;
    struct entry *older, *newer; /* by last use */
    struct entry *next;          /* in the bucket */
};

struct tri_token_cache {
    pthread_mutex_t lock;
    int64_t max_tokens, tokens;
    struct entry *oldest, *newest;
    struct entry *bucket[BUCKETS];
};

struct tri_text_key tri_text_key(const char *text, size_t bytes)
{
    struct tri_text_key key = {{TRI_HASH_START, ~TRI_HASH_START}, bytes};
    size_t at = 0;
    for (; bytes - at >= 16; at += 16) {
        uint64_t word[2];
        memcpy(word, text + at, 16);
        key.hash[0] = tri_hash_word(key.hash[0], word[0]);
        key.hash[1] = tri_hash_word(key.hash[1], word[1]);
    }
    key.hash[0] = tri_hash_bytes(key.hash[0] ^ key.hash[1], text + at, bytes - at);
    key.hash[1] = tri_hash_word(key.hash[1], key.hash[0]);
    return key;
}

enum tri_status tri_token_cache_open(int64_t max_tokens, struct tri_token_cache **out)
{
    struct tri_token_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return tri_fail(TRI_NOMEM, "no memory for a cache of tokens");
    if (pthread_mutex_init(&cache->lock, NULL) != 0) {
        free(cache);
        return tri_fail(TRI_NOMEM, "no lock for a cache of tokens");
    }
    cache->max_tokens = max_tokens;
    *out = cache;
    return TRI_OK;
}

static void unlink_use(struct tri_token_cache *cache, struct entry *entry)
{
    *(entry->older ? &entry->older->newer : &cache->oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &cache->newest) = entry->older;
    entry->older = entry->newer = NULL;
}

static void link_newest(struct tri_token_cache *cache, struct entry *entry)
{
    entry->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = entry;
    cache->newest = entry;
}

static struct entry **find(struct tri_token_cache *cache, const struct tri_text_key *key)
{
    struct entry **link = &cache->bucket[key->hash[0] % BUCKETS];
    while (*link && ((*link)->key.hash[0] != key->hash[0] || (*link)->key.hash[1] != key->hash[1] ||
                     (*link)->key.bytes != key->bytes))
        link = &(*link)->next;
    return link;
}

static void drop_oldest(struct tri_token_cache *cache)
{
    struct entry *entry = cache->oldest;
    *find(cache, &entry->key) = entry->next;
    unlink_use(cache, entry);
    cache->tokens -= entry->tokens + ENTRY_TOKENS;
    free(entry->ids);
    free(entry);
}

void tri_token_cache_close(struct tri_token_cache *cache)
{
    if (!cache)
        return;
    while (cache->oldest)
        drop_oldest(cache);
    (void)pthread_mutex_destroy(&cache->lock);
    free(cache);
}

bool tri_token_cache_get(struct tri_token_cache *cache, const struct tri_text_key *key,
                         int64_t first, int64_t count, int32_t *ids, int64_t *copied,
                         int64_t *tokens)
{
    (void)pthread_mutex_lock(&cache->lock);
    struct entry *entry = *find(cache, key);
    if (entry) {
        *tokens = entry->tokens;
        const int64_t left = first < entry->tokens ? entry->tokens - first : 0;
        *copied = count < left ? count : left;
        if (*copied > 0)
            memcpy(ids, entry->ids + first, (size_t)*copied * sizeof *ids);
        unlink_use(cache, entry);
        link_newest(cache, entry);
    }
    (void)pthread_mutex_unlock(&cache->lock);
    return entry != NULL;
}

void tri_token_cache_put(struct tri_token_cache *cache, const struct tri_text_key *key,
                         struct tri_ids *ids)
{
    struct entry *entry = malloc(sizeof *entry);
    if (!entry) {
        tri_ids_free(ids);
        return;
    }
    *entry = (struct entry){.key = *key, .ids = ids->data, .tokens = ids->count};
    if (ids->count > 0 && ids->count < ids->capacity) {
        int32_t *fitted = realloc(ids->data, (size_t)ids->count * sizeof *fitted);
        entry->ids = fitted ? fitted : ids->data;
    }
    memset(ids, 0, sizeof *ids);

    (void)pthread_mutex_lock(&cache->lock);
    struct entry **link = find(cache, key);
    if (*link) { /* another thread was faster */
        (void)pthread_mutex_unlock(&cache->lock);
        free(entry->ids);
        free(entry);
        return;
    }
    *link = entry;
    link_newest(cache, entry);
    cache->tokens += entry->tokens + ENTRY_TOKENS;
    while (cache->tokens > cache->max_tokens && cache->oldest != cache->newest)
        drop_oldest(cache);
    (void)pthread_mutex_unlock(&cache->lock);
}
