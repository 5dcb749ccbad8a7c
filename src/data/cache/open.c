#include "data/cache/open.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/unpack.h"

/* Tokenizing less than this at one time or another is no wait worth a file. */
enum { LARGE_BYTES = 64 << 20 };

enum tri_status tri_data_files_unpack(struct tri_data_files *files, const char *cache_dir)
{
    for (int64_t i = 0; i < files->count; i++)
        TRI_TRY(tri_data_file_unpack(&files->file[i], cache_dir));
    return TRI_OK;
}

/* Is there much to be tokenized? Files are unpacked, so that it is not their packed sizes. */
static bool is_large(const struct tri_data_files *files)
{
    uint64_t bytes = 0;
    for (int64_t i = 0; i < files->count; i++)
        bytes += files->file[i].kind == TRI_FILE_MEGATRON ? 0 : files->file[i].bytes;
    return bytes > LARGE_BYTES;
}

static enum tri_status use(const char *home, const struct tri_cache_key *key,
                           struct tri_cache **out)
{
    char *folder = NULL;
    TRI_TRY(tri_cache_open(home, key, out));
    TRI_TRY(tri_cache_path(home, key, &folder));
    tri_info("tokens come from the cache %s (%s)", folder,
             tri_bytes((double)tri_cache_bytes(*out)).s);
    free(folder);
    return TRI_OK;
}

static enum tri_status choose(const struct tri_data_options *options, bool shared, const char *home,
                              struct tri_data_files *files, const struct tri_sample_rules *rules,
                              struct tri_cache **out)
{
    struct tri_cache_key key;
    const int choice = options->cache;
    TRI_TRY(tri_cache_key(files, rules, &key));
    if (tri_cache_exists(home, &key)) {
        if (choice == TRI_CACHE_BUILD)
            tri_info("nothing to build: the tokens are there already");
        const enum tri_status st = use(home, &key, out);
        if (st == TRI_OK || choice != TRI_CACHE_AUTO)
            return st;
        tri_warn("%s; until then the files are read", tri_error_text());
        tri_error_clear();
        return TRI_OK;
    }
    const int others = tri_cache_mention(home, &key);
    if (choice == TRI_CACHE_REQUIRE)
        return tri_fail(TRI_INVALID,
                        "data.cache: require, and %s/%016" PRIx64 " is not there%s: run trireme "
                        "data build with this recipe",
                        home, key.key, others > 0 ? " (others are, see above)" : "");
    if (choice == TRI_CACHE_AUTO && !shared)
        return TRI_OK;
    TRI_TRY(tri_data_files_unpack(files, options->cache_dir));
    if (choice == TRI_CACHE_AUTO && !is_large(files))
        return TRI_OK;
    TRI_TRY(tri_cache_build(home, &key, files, rules, TRI_CACHE_PART_BYTES));
    return use(home, &key, out);
}

enum tri_status tri_cache_choose(const struct tri_data_options *options, bool shared,
                                 struct tri_data_files *files, const struct tri_sample_rules *rules,
                                 struct tri_cache **out)
{
    char *folder = NULL;
    *out = NULL;
    if (options->cache == TRI_CACHE_OFF)
        return TRI_OK;
    enum tri_status st = tri_cache_folder(options->cache_dir, &folder);
    if (st != TRI_OK && options->cache == TRI_CACHE_AUTO) { /* no home: no cache either */
        tri_error_clear();
        return TRI_OK;
    }
    TRI_TRY(st);
    char *home = tri_path_join(folder, "tokens");
    free(folder);
    st = home ? choose(options, shared, home, files, rules, out)
              : tri_fail(TRI_NOMEM, "no memory for a path");
    free(home);
    return st;
}
