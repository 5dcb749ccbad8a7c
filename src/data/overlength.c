#include "data/overlength.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "data/options.h"

_Static_assert(sizeof(struct tri_record) == 32, "an index costs 32 bytes a sample");
_Static_assert(sizeof(struct tri_record_counts) == 16, "and 16 with the counts of each");

static enum tri_status make_room(struct tri_index *index)
{
    const int64_t capacity = index->capacity ? index->capacity + index->capacity / 2 : 1024;
    struct tri_record *records = realloc(index->records, (size_t)capacity * sizeof *records);
    if (records)
        index->records = records;
    struct tri_record_counts *counts =
        index->keep_counts ? realloc(index->counts, (size_t)capacity * sizeof *counts) : NULL;
    if (counts)
        index->counts = counts;
    if (!records || (index->keep_counts && !counts))
        return tri_fail(TRI_NOMEM, "no memory for an index of %" PRId64 " samples", capacity);
    index->capacity = capacity;
    return TRI_OK;
}

static enum tri_status push(struct tri_index *index, struct tri_record record, int64_t documents,
                            int64_t trained)
{
    if (index->count == index->capacity)
        TRI_TRY(make_room(index));
    if (index->counts)
        index->counts[index->count] = (struct tri_record_counts){documents, trained};
    index->records[index->count++] = record;
    struct tri_data_stats *stats = &index->stats;
    stats->pieces++;
    stats->documents += documents;
    stats->tokens += record.tokens;
    stats->trained += trained;
    if (record.tokens > stats->longest_piece)
        stats->longest_piece = record.tokens;
    return TRI_OK;
}

static enum tri_status split(struct tri_index *index, int64_t limit,
                             const struct tri_sample *sample, struct tri_record record)
{
    if ((sample->tokens - 1) / limit > UINT32_MAX)
        return tri_fail(TRI_UNSUPPORTED, "a sample of %" PRId64 " tokens in pieces of %" PRId64,
                        sample->tokens, limit);
    for (int64_t first = 0; first < sample->tokens; first += limit) {
        const int64_t left = sample->tokens - first;
        record.tokens = left < limit ? left : limit;
        record.piece = (uint32_t)(first / limit);
        int64_t documents, trained;
        tri_sample_measure(sample, first, record.tokens, &documents, &trained);
        if (trained > 0)
            TRI_TRY(push(index, record, documents, trained));
        else
            index->stats.tokens_lost += record.tokens;
    }
    return TRI_OK;
}

static enum tri_status truncate_sample(struct tri_index *index, int64_t limit,
                                       const struct tri_sample *sample, struct tri_record record)
{
    int64_t documents, trained;
    tri_sample_measure(sample, 0, limit, &documents, &trained);
    if (trained == 0)
        return tri_fail(TRI_INVALID,
                        "truncated from %" PRId64 " to data.max_length %" PRId64
                        " tokens, this sample has no trained token: raise data.max_length or set "
                        "data.overlength to drop or split",
                        sample->tokens, limit);
    record.tokens = limit;
    index->stats.tokens_lost += sample->tokens - limit;
    return push(index, record, documents, trained);
}

static int length_class(int64_t tokens)
{
    int i = 0;
    while (tokens > 1 && i < TRI_LENGTH_CLASSES - 1) {
        tokens /= 2;
        i++;
    }
    return i;
}

static void lose(struct tri_policy_loss *loss, const struct tri_sample *sample, int64_t trained,
                 int64_t kept, int64_t kept_trained)
{
    loss->samples += kept == 0;
    loss->tokens += sample->tokens - kept;
    loss->trained += trained - kept_trained;
}

/* What each policy makes of a sample that is too long, whichever is in force. */
static void weigh_policies(struct tri_data_stats *stats, int64_t limit,
                           const struct tri_sample *sample, int64_t trained)
{
    int64_t documents, some, kept = 0, kept_trained = 0;
    lose(&stats->loss[TRI_OVERLENGTH_DROP], sample, trained, 0, 0);
    for (int64_t first = 0; first < sample->tokens; first += limit) {
        const int64_t left = sample->tokens - first, count = left < limit ? left : limit;
        tri_sample_measure(sample, first, count, &documents, &some);
        kept += some > 0 ? count : 0;
        kept_trained += some;
        if (first == 0)
            lose(&stats->loss[TRI_OVERLENGTH_TRUNCATE], sample, trained, kept, kept_trained);
    }
    lose(&stats->loss[TRI_OVERLENGTH_SPLIT], sample, trained, kept, kept_trained);
}

enum tri_status tri_index_add(struct tri_index *index, struct tri_length_rule *rule,
                              const struct tri_sample *sample, struct tri_record record,
                              int64_t line)
{
    int64_t documents, trained;
    tri_sample_measure(sample, 0, sample->tokens, &documents, &trained);
    return tri_index_add_measured(index, rule, sample, documents, trained, record, line);
}

enum tri_status tri_index_add_measured(struct tri_index *index, struct tri_length_rule *rule,
                                       const struct tri_sample *sample, int64_t documents,
                                       int64_t trained, struct tri_record record, int64_t line)
{
    struct tri_data_stats *stats = &index->stats;
    if (trained == 0)
        return tri_fail(TRI_INVALID,
                        "this sample has no trained token (%" PRId64 " token%s): remove it, or "
                        "check its labels%s",
                        sample->tokens, tri_plural(sample->tokens),
                        sample->rendered ? " (data.roles_to_train, data.mask_history, and train, "
                                           "loss or weight of its messages)"
                                         : "");
    stats->samples++;
    stats->rendered += sample->rendered;
    stats->lengths[length_class(sample->tokens)]++;
    if (sample->tokens > stats->longest)
        stats->longest = sample->tokens;
    if (sample->tokens <= rule->limit) {
        record.tokens = sample->tokens;
        return push(index, record, documents, trained);
    }

    const int64_t trained_before = stats->trained;
    if (stats->overlong++ == 0) {
        rule->first_file = record.file;
        rule->first_line = line;
        rule->first_tokens = sample->tokens;
    }
    weigh_policies(stats, rule->limit, sample, trained);
    switch ((enum tri_overlength)rule->policy) {
    case TRI_OVERLENGTH_ERROR: /* reported at the end, with how many there are */
        return TRI_OK;
    case TRI_OVERLENGTH_DROP:
        stats->tokens_lost += sample->tokens;
        break;
    case TRI_OVERLENGTH_TRUNCATE:
        TRI_TRY(truncate_sample(index, rule->limit, sample, record));
        break;
    case TRI_OVERLENGTH_SPLIT:
        TRI_TRY(split(index, rule->limit, sample, record));
        break;
    }
    stats->trained_lost += trained - (stats->trained - trained_before);
    return TRI_OK;
}

enum tri_status tri_index_finish(struct tri_index *index, const struct tri_length_rule *rule,
                                 const struct tri_data_files *files, int64_t max_length)
{
    struct tri_data_stats *stats = &index->stats;
    if (stats->overlong > 0 && rule->policy == TRI_OVERLENGTH_ERROR)
        return tri_fail(TRI_INVALID,
                        "%s:%" PRId64 ": this sample has %" PRId64 " tokens, data.max_length is "
                        "%" PRId64 " (%" PRId64 " of %" PRId64 " samples %s longer, the longest "
                        "has %" PRId64 "): raise data.max_length, or set data.overlength to drop, "
                        "truncate or split",
                        files->file[rule->first_file].path, rule->first_line, rule->first_tokens,
                        rule->limit, stats->overlong, stats->samples,
                        stats->overlong == 1 ? "is" : "are", stats->longest);
    if (stats->samples == 0)
        return tri_fail(TRI_INVALID,
                        "no sample is left: all %" PRId64 " are bad (data.on_bad_sample: error "
                        "stops at the first and says why)",
                        stats->bad);
    if (stats->pieces == 0)
        return tri_fail(TRI_INVALID,
                        "no sample is left: all %" PRId64 " are longer than data.max_length "
                        "%" PRId64 "%s",
                        stats->samples, rule->limit,
                        rule->policy == TRI_OVERLENGTH_SPLIT
                            ? ", and no piece of them has a trained token: raise data.max_length"
                            : " (the shortest way out: data.overlength: split)");
    stats->max_length = max_length > 0 ? max_length : stats->longest;
    return TRI_OK;
}
