/* Which cache a dataset uses, if any: data.cache. */
#ifndef TRI_DATA_CACHE_OPEN_H
#define TRI_DATA_CACHE_OPEN_H

#include "data/cache/cache.h"
#include "data/options.h"

/* *out is NULL when samples are to be read from the files. `shared`: several ranks read this data,
 * so a large one is made into a cache by one of them before any waits for another in a collective.
 */
enum tri_status tri_cache_choose(const struct tri_data_options *options, bool shared,
                                 struct tri_data_files *files, const struct tri_sample_rules *rules,
                                 struct tri_cache **out);

/* Unpack what is compressed, as files that are read in place have to be. */
enum tri_status tri_data_files_unpack(struct tri_data_files *files, const char *cache_dir);

#endif
