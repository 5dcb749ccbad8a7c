#include "data/cache/card.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "data/cache/part.h"

enum { MOST_FILES = 1000 }; /* named in the card; the others are counted */

/* As text: JSON numbers of other readers end at 2^53. */
static json_t *hash_text(uint64_t hash)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static uint64_t read_hash(const json_t *root, const char *name)
{
    const char *text = json_string_value(json_object_get(root, name));
    return text ? strtoull(text, NULL, 16) : 0;
}

static json_t *names_of(const struct tri_data_files *files)
{
    json_t *names = json_array();
    for (int64_t i = 0; i < files->count && i < MOST_FILES; i++)
        json_array_append_new(names, json_string(files->file[i].path));
    return names;
}

enum tri_status tri_cache_card_save(const char *folder, const struct tri_cache_card *card,
                                    const struct tri_index_place *place,
                                    const struct tri_data_files *files)
{
    char *path = tri_path_join(folder, "cache.json");
    json_t *root = json_pack(
        "{s:I, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "version",
        (json_int_t)card->version, "key", hash_text(card->key.key), "sources",
        hash_text(card->key.sources), "contents", hash_text(card->key.contents), "tokenizer",
        hash_text(card->key.tokenizer), "settings", hash_text(card->key.settings), "parts",
        (json_int_t)card->parts, "samples", (json_int_t)place->stats.samples, "tokens",
        (json_int_t)place->stats.tokens, "trained_tokens", (json_int_t)place->stats.trained,
        "longest", (json_int_t)place->stats.longest, "num_files", (json_int_t)files->count, "files",
        names_of(files));
    const enum tri_status st = path && root ? tri_json_save(path, root)
                                            : tri_fail(TRI_NOMEM, "no memory to write a cache");
    json_decref(root);
    free(path);
    return st;
}

enum tri_status tri_cache_card_load(const char *folder, struct tri_cache_card *out)
{
    json_t *root = NULL;
    char *path = tri_path_join(folder, "cache.json");
    enum tri_status st = path ? tri_json_load(path, &root) : tri_fail(TRI_NOMEM, "no memory");
    free(path);
    TRI_TRY(st);
    *out = (struct tri_cache_card){
        .version = json_integer_value(json_object_get(root, "version")),
        .parts = json_integer_value(json_object_get(root, "parts")),
        .key = {.key = read_hash(root, "key"),
                .sources = read_hash(root, "sources"),
                .contents = read_hash(root, "contents"),
                .tokenizer = read_hash(root, "tokenizer"),
                .settings = read_hash(root, "settings")},
    };
    json_decref(root);
    return TRI_OK;
}

static const char *difference(const struct tri_cache_card *card, const struct tri_cache_key *key)
{
    if (card->version != TRI_CACHE_VERSION)
        return "was written by another version of Trireme";
    if (card->key.contents != key->contents)
        return "is of other contents of these files";
    if (card->key.tokenizer != key->tokenizer)
        return "was made with another tokenizer or vocabulary";
    if (card->key.settings != key->settings)
        return "was made with other settings (format, masks, chat template, bos, eos)";
    return "has another layout";
}

int tri_cache_mention(const char *home, const struct tri_cache_key *key)
{
    int count = 0;
    DIR *dir = opendir(home);
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        struct tri_cache_card card;
        if (strlen(entry->d_name) != 16) /* a key, and nothing that is still being built */
            continue;
        char *folder = tri_path_join(home, entry->d_name);
        if (folder && tri_cache_card_load(folder, &card) == TRI_OK) {
            if (card.key.sources == key->sources && card.key.key != key->key) {
                tri_info("the cache %s %s and is not used", folder, difference(&card, key));
                count++;
            }
        } else {
            tri_error_clear();
        }
        free(folder);
    }
    closedir(dir);
    return count;
}
