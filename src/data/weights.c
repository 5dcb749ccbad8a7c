#include "data/weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

static enum tri_status read_weight(const struct tri_data_options *options, int64_t source,
                                   double *out)
{
    double weight = 1;
    if (options->num_weights > 0) {
        const enum tri_status st = tri_text_number(options->weights[source], &weight);
        if (st != TRI_OK) {
            tri_error_prefix("data.weights");
            return st;
        }
    }
    if (!(weight > 0))
        return tri_fail(TRI_INVALID, "data.weights: %s is not above 0: leave the source out",
                        options->weights[source]);
    *out = weight;
    return TRI_OK;
}

enum tri_status tri_mixture_of_sources(const struct tri_data_options *options, int64_t num_sources,
                                       const struct tri_data_files *files,
                                       const struct tri_index *index, uint64_t seed,
                                       struct tri_mixture *out)
{
    if (options->num_weights > 0 && options->num_weights != num_sources)
        return tri_fail(TRI_INVALID,
                        "data.weights has %" PRId64 " numbers and data.sources %" PRId64
                        " sources: give one for each",
                        options->num_weights, num_sources);
    struct tri_mixture_part *parts = calloc((size_t)num_sources, sizeof *parts);
    if (!parts)
        return tri_fail(TRI_NOMEM, "no memory for %" PRId64 " sources", num_sources);
    for (int64_t i = 0; i < index->count; i++) /* those of a source come together */
        parts[files->file[index->records[i].file].source].count++;
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < num_sources; i++) {
        parts[i].first = i > 0 ? parts[i - 1].first + parts[i - 1].count : 0;
        st = read_weight(options, i, &parts[i].weight);
    }
    if (st == TRI_OK)
        st = tri_mixture_open(parts, num_sources, seed, options->shuffle, out);
    free(parts);
    return st;
}

bool tri_mixture_is_plain(const struct tri_mixture *mixture)
{
    for (int64_t i = 0; i < mixture->num_parts; i++)
        if (mixture->parts[i].weight != 1)
            return false;
    return true;
}

uint64_t tri_mixture_hash(const struct tri_mixture *mixture, uint64_t hash)
{
    if (tri_mixture_is_plain(mixture))
        return hash;
    for (int64_t i = 0; i < mixture->num_parts; i++) {
        uint64_t weight;
        memcpy(&weight, &mixture->parts[i].weight, sizeof weight);
        hash = tri_hash_word(tri_hash_word(hash, (uint64_t)mixture->parts[i].count), weight);
    }
    return hash;
}

struct tri_record_counts tri_mixture_count(const struct tri_mixture *mixture,
                                           struct tri_index *index)
{
    struct tri_data_stats *stats = &index->stats;
    struct tri_record_counts epoch = {stats->documents, stats->trained};
    stats->epoch_samples = tri_mixture_places(mixture, 0);
    stats->epoch_tokens = stats->tokens;
    if (tri_mixture_is_plain(mixture))
        return epoch;
    epoch = (struct tri_record_counts){0, 0};
    stats->epoch_tokens = 0;
    for (int64_t place = 0; place < stats->epoch_samples; place++) {
        const int64_t number = tri_mixture_record(mixture, 0, place);
        stats->epoch_tokens += index->records[number].tokens;
        epoch.documents += index->counts[number].documents;
        epoch.trained += index->counts[number].trained;
    }
    return epoch;
}
