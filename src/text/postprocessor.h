/* What the post-processor of a tokenizer puts around the tokens of one text. */
#ifndef TRI_TEXT_POSTPROCESSOR_H
#define TRI_TEXT_POSTPROCESSOR_H

#include <jansson.h>

#include "base/status.h"
#include "text/ids.h"

/* All zero puts nothing. */
struct tri_postprocessor {
    struct tri_ids before, after;
};

/* `value` is the member "post_processor"; null or absent (NULL): nothing. Ids are below `vocab`. */
enum tri_status tri_postprocessor_open(const json_t *value, int64_t vocab,
                                       struct tri_postprocessor *out);
void tri_postprocessor_close(struct tri_postprocessor *postprocessor);

#endif
