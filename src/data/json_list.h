/* A file that is one JSON list, to lines: each element on a line of its own.
 *
 * Only brackets, strings and commas are looked at, piece by piece, so a list may be of any size;
 * whether an element is good JSON is found when its line is read. */
#ifndef TRI_DATA_JSON_LIST_H
#define TRI_DATA_JSON_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "data/decompress.h"

struct tri_json_list {
    const char *what; /* names the list in errors */
    struct tri_decompress_sink sink;
    /* Private; all zero is the beginning. */
    int64_t elements; /* begun */
    int64_t depth;    /* open brackets: 1 is between elements or in one without brackets */
    bool in_string, escaped, in_element, ended;
};

/* A sink for the list, with a struct tri_json_list as its context. */
enum tri_status tri_json_list_take(void *ctx, const void *data, size_t bytes, size_t used);

/* Was the list complete? To be asked behind the last piece. */
enum tri_status tri_json_list_finish(const struct tri_json_list *list);

#endif
