#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/cache/cache.h"
#include "data/cache/part.h"
#include "data/formats/chat.h"

/* Contents are looked at in this many places: the times of two files may be equal where archives
 * set them, and reading all of them would take longer than opening the cache saves. */
enum { LOOKS = 8, LOOK_BYTES = 1 << 16 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum tri_status hash_contents(const struct tri_data_file *file, uint64_t *hash)
{
    struct tri_map map;
    TRI_TRY(tri_map_open(file->path, &map));
    const size_t look = map.bytes < LOOK_BYTES ? map.bytes : LOOK_BYTES;
    for (size_t i = 0; i < LOOKS && look > 0; i++) /* the first at the start, the last at the end */
        *hash = tri_hash_bytes(*hash, map.data + (map.bytes - look) / (LOOKS - 1) * i, look);
    tri_map_close(&map);
    *hash = tri_hash_word(*hash, file->bytes);
    *hash = tri_hash_word(*hash, (uint64_t)file->modified);
    *hash = tri_hash_word(*hash, (uint64_t)file->kind);
    return TRI_OK;
}

enum tri_status tri_cache_key(const struct tri_data_files *files,
                              const struct tri_sample_rules *rules, struct tri_cache_key *out)
{
    struct tri_cache_key key = {0, TRI_HASH_START, TRI_HASH_START, TRI_HASH_START, TRI_HASH_START};
    for (int64_t i = 0; i < files->count; i++) {
        const char *name = base_name(files->file[i].path);
        key.sources = tri_hash_bytes(key.sources, name, strlen(name));
        TRI_TRY(hash_contents(&files->file[i], &key.contents));
    }
    key.tokenizer = tri_hash_word(key.tokenizer, rules->tokenizer ? rules->tokenizer->identity : 0);
    key.tokenizer = tri_hash_word(key.tokenizer, (uint64_t)rules->vocab);
    const uint64_t settings[] = {rules->add_bos,
                                 rules->add_eos,
                                 rules->train_inputs,
                                 (uint64_t)rules->format,
                                 rules->chat ? rules->chat->identity : 0,
                                 rules->skip_bad};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        key.settings = tri_hash_word(key.settings, settings[i]);
    /* Parts hold this struct as it is, so its size is a part of the version. */
    uint64_t hash = tri_hash_word(TRI_CACHE_VERSION, sizeof(struct tri_index_place));
    hash = tri_hash_word(hash, key.sources);
    hash = tri_hash_word(hash, key.contents);
    hash = tri_hash_word(hash, key.tokenizer);
    key.key = tri_hash_word(hash, key.settings);
    *out = key;
    return TRI_OK;
}

enum tri_status tri_cache_path(const char *home, const struct tri_cache_key *key, char **out)
{
    char name[32];
    snprintf(name, sizeof name, "%016" PRIx64, key->key);
    *out = tri_path_join(home, name);
    return *out ? TRI_OK : tri_fail(TRI_NOMEM, "no memory for a path");
}
