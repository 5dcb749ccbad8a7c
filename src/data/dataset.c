#include "data/dataset.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "data/cache/open.h"
#include "data/files.h"
#include "data/formats/chat.h"
#include "data/index.h"
#include "data/order.h"
#include "data/reader.h"
#include "data/weights.h"

struct tri_dataset {
    struct tri_data_files files;
    struct tri_sample_rules rules;
    struct tri_chat_rules *chat;
    struct tri_cache *cache; /* NULL: samples are read from the files */
    struct tri_index index;
    struct tri_order order;
    struct tri_record_counts epoch; /* the first */
    uint64_t identity;
};

static uint64_t identify(const struct tri_dataset *dataset, const struct tri_data_options *options)
{
    const struct tri_sample_rules *rules = &dataset->rules;
    const struct tri_order *order = &dataset->order;
    const uint64_t words[] = {
        rules->tokenizer ? rules->tokenizer->identity : 0,
        rules->add_bos,
        rules->add_eos,
        rules->train_inputs,
        (uint64_t)order->max_length,
        (uint64_t)options->overlength,
        order->pack ? 1 + (uint64_t)order->strategy : 0,
        order->group,
        order->mixture.shuffle,
        order->mixture.shuffle ? order->mixture.seed : 0,
        (uint64_t)dataset->index.count,
    };
    uint64_t hash = dataset->index.identity;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = tri_hash_word(hash, words[i]);
    hash = tri_mixture_hash(&order->mixture, hash);
    if (dataset->index.stats.rendered > 0)
        hash = tri_hash_word(hash, dataset->chat->identity);
    return hash;
}

static void list_unread_columns(const struct tri_columns *columns)
{
    if (columns->count == 0)
        return;
    struct tri_text list = {0};
    for (int i = 0; i < columns->count; i++)
        tri_text_printf(&list, "%s%s", i ? ", " : "", columns->name[i]);
    tri_info("columns of the data that are not read: %s", tri_text_data(&list));
    tri_text_free(&list);
}

static enum tri_status check_options(const struct tri_data_options *options,
                                     const struct tri_data_target *target)
{
    const struct tri_tokenizer *tokenizer = target->tokenizer;
    const int64_t vocab = target->vocab;
    if (options->max_length < 0)
        return tri_fail(TRI_INVALID,
                        "data.max_length is %" PRId64 ": 0 (the longest sample) or more",
                        options->max_length);
    if (vocab < 1 || vocab > INT32_MAX)
        return tri_fail(TRI_INVALID, "a vocabulary of %" PRId64 " ids: 1 to 2^31 - 1 are possible",
                        vocab);
    if (tokenizer && tokenizer->vocab > vocab)
        return tri_fail(TRI_INVALID,
                        "the tokenizer (%s) has %" PRId64
                        " ids and the model's embedding only %" PRId64
                        ": use the tokenizer that the model was made with, or give the model more "
                        "rows (vocab_size)",
                        tokenizer->name, tokenizer->vocab, vocab);
    return TRI_OK;
}

/* The index, from the cache if there is one, else from the files. */
static enum tri_status make_index(struct tri_dataset *dataset,
                                  const struct tri_data_options *options, bool shared)
{
    struct tri_columns columns = {.count = 0};
    dataset->rules.columns = &columns;
    enum tri_status st =
        tri_cache_choose(options, shared, &dataset->files, &dataset->rules, &dataset->cache);
    if (st == TRI_OK && dataset->cache)
        st = tri_cache_index(dataset->cache, &dataset->files, &dataset->rules, options->max_length,
                             options->overlength, &dataset->index);
    else if (st == TRI_OK)
        st = tri_data_files_unpack(&dataset->files, options->cache_dir);
    if (st == TRI_OK && !dataset->cache)
        st = tri_index_open(&dataset->files, &dataset->rules, options->max_length,
                            options->overlength, &dataset->index);
    dataset->rules.columns = NULL;
    if (st == TRI_OK)
        list_unread_columns(&columns);
    return st;
}

static enum tri_status open_parts(struct tri_dataset *dataset,
                                  const struct tri_data_options *options, char *const *sources,
                                  int64_t num_sources, uint64_t seed, bool shared)
{
    TRI_TRY(tri_data_files_open(sources, num_sources, &dataset->files));
    TRI_TRY(make_index(dataset, options, shared));
    struct tri_mixture mixture;
    TRI_TRY(tri_mixture_of_sources(options, num_sources, &dataset->files, &dataset->index, seed,
                                   &mixture));
    const struct tri_order_rules rules = {.pack = options->pack_samples,
                                          .strategy = options->packing_strategy,
                                          .group = options->group_by_length};
    TRI_TRY(tri_order_open(&dataset->index, &mixture, &rules, &dataset->order));

    struct tri_data_stats *stats = &dataset->index.stats;
    dataset->epoch = tri_mixture_count(&dataset->order.mixture, &dataset->index);
    stats->sequences = tri_order_sequences(&dataset->order, 0);
    stats->packing =
        (double)stats->epoch_tokens / ((double)stats->sequences * (double)stats->max_length);
    dataset->identity = identify(dataset, options);
    return TRI_OK;
}

enum tri_status tri_dataset_open(const struct tri_data_options *options, char *const *sources,
                                 int64_t num_sources, const struct tri_data_target *target,
                                 struct tri_dataset **out)
{
    TRI_TRY(check_options(options, target));
    struct tri_dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset)
        return tri_fail(TRI_NOMEM, "no memory for a dataset");
    dataset->rules = (struct tri_sample_rules){
        .tokenizer = target->tokenizer,
        .vocab = target->vocab,
        .add_bos = options->add_bos,
        .add_eos = options->add_eos,
        .train_inputs = !options->mask_inputs,
        .format = options->format,
        .skip_bad = options->on_bad_sample == TRI_BAD_SKIP,
        .keep_counts = options->num_weights > 0,
    };
    enum tri_status st = tri_chat_rules_open(options, target->model_folder, &dataset->chat);
    dataset->rules.chat = dataset->chat;
    if (st == TRI_OK)
        st =
            open_parts(dataset, options, sources, num_sources,
                       options->seed >= 0 ? (uint64_t)options->seed : target->seed, target->shared);
    if (st != TRI_OK) {
        tri_dataset_close(dataset);
        return st;
    }
    *out = dataset;
    return TRI_OK;
}

void tri_dataset_close(struct tri_dataset *dataset)
{
    if (!dataset)
        return;
    tri_order_close(&dataset->order);
    tri_index_close(&dataset->index);
    tri_cache_close(dataset->cache);
    tri_data_files_close(&dataset->files);
    tri_chat_rules_close(dataset->chat);
    free(dataset);
}

const struct tri_data_stats *tri_dataset_stats(const struct tri_dataset *dataset)
{
    return &dataset->index.stats;
}

struct tri_record_counts tri_dataset_epoch(const struct tri_dataset *dataset)
{
    return dataset->epoch;
}

const struct tri_index *tri_dataset_index(const struct tri_dataset *dataset)
{
    return &dataset->index;
}

void tri_dataset_report(const struct tri_dataset *dataset, const char *title)
{
    const struct tri_data_stats *stats = &dataset->index.stats;
    tri_info("%s: %" PRId64 " file%s, %" PRId64 " sample%s (the longest has %" PRId64
             " token%s), %" PRId64 " token%s, %" PRId64 " of them trained",
             title, stats->files, tri_plural(stats->files), stats->samples,
             tri_plural(stats->samples), stats->longest, tri_plural(stats->longest), stats->tokens,
             tri_plural(stats->tokens), stats->trained);
    if (!tri_mixture_is_plain(&dataset->order.mixture))
        tri_info("%s: by data.weights an epoch has %" PRId64 " sample%s, %" PRId64 " token%s, "
                 "%" PRId64 " of them trained",
                 title, stats->epoch_samples, tri_plural(stats->epoch_samples), stats->epoch_tokens,
                 tri_plural(stats->epoch_tokens), dataset->epoch.trained);
    if (dataset->order.pack)
        tri_info("%s: packed into %" PRId64 " sequence%s of at most %" PRId64
                 " tokens, %.1f%% full",
                 title, stats->sequences, tri_plural(stats->sequences), stats->max_length,
                 100 * stats->packing);
    if (stats->bad > 0)
        tri_warn("%s: %" PRId64 " sample%s bad and left out (data.on_bad_sample)", title,
                 stats->bad, stats->bad == 1 ? " is" : "s are");
    if (stats->overlong > 0)
        tri_info("%s: %" PRId64 " sample%s longer than %" PRId64 " tokens", title, stats->overlong,
                 stats->overlong == 1 ? " is" : "s are", stats->max_length);
    if (stats->tokens_lost > 0 || stats->trained_lost > 0)
        tri_warn("%s: %" PRId64 " token%s and %" PRId64
                 " training target%s are lost to data.overlength",
                 title, stats->tokens_lost, tri_plural(stats->tokens_lost), stats->trained_lost,
                 tri_plural(stats->trained_lost));
}

uint64_t tri_dataset_identity(const struct tri_dataset *dataset)
{
    return dataset->identity;
}

int64_t tri_dataset_max_sequence(const struct tri_dataset *dataset)
{
    const struct tri_data_stats *stats = &dataset->index.stats;
    if (!dataset->order.pack)
        return stats->longest_piece;
    if (stats->tokens >= stats->max_length || !tri_mixture_is_plain(&dataset->order.mixture))
        return stats->max_length;
    return stats->tokens;
}

int64_t tri_dataset_sequences(const struct tri_dataset *dataset, int64_t epoch)
{
    return tri_order_sequences(&dataset->order, epoch);
}

bool tri_dataset_is_packed(const struct tri_dataset *dataset)
{
    return dataset->order.pack || !tri_mixture_is_even(&dataset->order.mixture);
}

/* Put the tokens of a record behind those of a batch. */
static enum tri_status take_record(const struct tri_dataset *dataset,
                                   const struct tri_record *record, struct tri_batch *into)
{
    const int64_t at = into->num_tokens, first = record->piece * dataset->order.max_length;
    struct tri_reading reading;
    if (dataset->cache) {
        TRI_TRY(tri_cache_sample(dataset->cache, record, first, &dataset->rules, &reading.sample));
        return tri_sample_take(&reading.sample, first, record->tokens, into->ids + at,
                               into->labels + at, into->positions + at);
    }
    TRI_TRY(tri_reading_open(&dataset->files.file[record->file], &dataset->rules, record->offset,
                             record->bytes, &reading));
    const enum tri_status st =
        tri_sample_take(&reading.sample, first, record->tokens, into->ids + at, into->labels + at,
                        into->positions + at);
    tri_reading_close(&reading);
    if (st != TRI_OK)
        tri_error_prefix("%s, byte %" PRIu64, dataset->files.file[record->file].path,
                         record->offset);
    return st;
}

static enum tri_status read_record(const struct tri_dataset *dataset, int64_t number,
                                   struct tri_batch *into)
{
    const struct tri_record *record = &dataset->index.records[number];
    const int64_t at = into->num_tokens;
    if (record->tokens > into->max_tokens - at)
        return tri_fail(TRI_INTERNAL,
                        "a batch with room for %" PRId64 " tokens holds %" PRId64
                        " and was to take %" PRId64 " more",
                        into->max_tokens, at, record->tokens);
    const enum tri_status st = take_record(dataset, record, into);
    return st == TRI_OK ? tri_batch_extend(into, record->tokens) : st;
}

enum tri_status tri_dataset_read(struct tri_dataset *dataset, int64_t epoch, int64_t index,
                                 struct tri_batch *into)
{
    int64_t place, end;
    if (!tri_order_sequence(&dataset->order, epoch, index, &place, &end))
        return tri_fail(TRI_INTERNAL, "epoch %" PRId64 " has no sequence %" PRId64, epoch, index);
    for (; place < end; place++) {
        const int64_t number = tri_order_record(&dataset->order, epoch, place);
        TRI_TRY(read_record(dataset, number, into));
        into->identity = tri_hash_word(into->identity, (uint64_t)number);
    }
    return TRI_OK;
}
