#include "data/megatron.h"

#include <inttypes.h>

#include "data/sample.h"

enum tri_status tri_sample_from_set(const struct tri_sample_rules *rules,
                                    const struct tri_megatron *set, int64_t document,
                                    struct tri_sample *out)
{
    struct tri_sample sample;
    TRI_TRY(tri_sample_of_tokens(rules, tri_megatron_length(set, document), false, false, &sample));
    const enum tri_status st = tri_megatron_read(set, document, rules->vocab, sample.ids);
    if (st != TRI_OK) {
        tri_sample_close(&sample);
        return st;
    }
    *out = sample;
    return TRI_OK;
}
