/* cache.json: what a cache is, for people and for whoever looks for one. */
#ifndef TRI_DATA_CACHE_CARD_H
#define TRI_DATA_CACHE_CARD_H

#include "data/cache/cache.h"

struct tri_cache_card {
    struct tri_cache_key key;
    int64_t version;
    int64_t parts;
};

/* Write FOLDER/cache.json; `place` is the end of the data. */
enum tri_status tri_cache_card_save(const char *folder, const struct tri_cache_card *card,
                                    const struct tri_index_place *place,
                                    const struct tri_data_files *files);
enum tri_status tri_cache_card_load(const char *folder, struct tri_cache_card *out);

#endif
