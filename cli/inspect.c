/* trireme data inspect: what training will see, in numbers and in words. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "data/index.h"
#include "data/pack.h"
#include "inspect.h"
#include "train/run.h"

static double percent(double part, double whole)
{
    return whole > 0 ? 100 * part / whole : 0;
}

/* ---- lengths ---------------------------------------------------------------------------------
 */

static void print_lengths(const struct tri_data_stats *stats)
{
    enum { WIDTH = 50 };
    int64_t most = 1;
    int first = TRI_LENGTH_CLASSES, last = 0;
    for (int i = 0; i < TRI_LENGTH_CLASSES; i++) {
        if (stats->lengths[i] == 0)
            continue;
        first = i < first ? i : first;
        last = i;
        most = stats->lengths[i] > most ? stats->lengths[i] : most;
    }
    printf("\nlengths in tokens (%" PRId64 " sample%s, the longest has %" PRId64 ")\n",
           stats->samples, tri_plural(stats->samples), stats->longest);
    for (int i = first; i <= last; i++) {
        const int64_t count = stats->lengths[i];
        const int bar = (int)ceil((double)WIDTH * (double)count / (double)most);
        printf("  %10" PRId64 " - %-10" PRId64 " %9" PRId64 "  %.*s\n", INT64_C(1) << i,
               (INT64_C(2) << i) - 1, count, bar,
               "##################################################");
    }
}

/* ---- packing ---------------------------------------------------------------------------------
 */

/* What each strategy makes of the samples in the order of the files. */
static enum tri_status print_strategies(const struct tri_index *index)
{
    const struct tri_data_stats *stats = &index->stats;
    const int64_t room = stats->max_length, count = index->count;
    struct tri_packing packing;
    int64_t *lengths = malloc((size_t)count * sizeof *lengths);
    if (lengths == NULL)
        return tri_fail(TRI_NOMEM, "no memory for %" PRId64 " lengths", count);
    const int64_t capacity = stats->tokens < room ? stats->tokens : room;
    const enum tri_status st = tri_packing_open(count, capacity, &packing);
    if (st != TRI_OK) {
        free(lengths);
        return st;
    }
    for (int64_t i = 0; i < count; i++)
        lengths[i] = index->records[i].tokens;
    for (int strategy = 0; strategy < 2; strategy++) {
        const bool best = strategy == TRI_PACKING_BEST_FIT;
        if (best)
            tri_pack_best_fit(&packing, lengths, count);
        else
            tri_pack_in_order(&packing, lengths, count);
        printf("  data.packing_strategy: %-8s makes %9" PRId64 " sequences, %6.2f%% full\n",
               best ? "best_fit" : "in_order", packing.num_bins,
               percent((double)stats->tokens, (double)packing.num_bins * (double)room));
    }
    tri_packing_close(&packing);
    free(lengths);
    return TRI_OK;
}

static enum tri_status print_packing(const struct tri_run *run)
{
    const struct tri_data_options *options = &run->recipe->data;
    const struct tri_index *index = tri_dataset_index(run->data);
    const struct tri_data_stats *stats = &index->stats;
    const double documents =
        (double)tri_dataset_epoch(run->data).documents / (double)stats->sequences;
    if (!options->pack_samples)
        printf("\npacking: off, each sample is a sequence: %" PRId64 " of them, the longest has "
               "%" PRId64 " token%s\n",
               stats->sequences, stats->longest_piece, tri_plural(stats->longest_piece));
    else
        printf("\npacking: %" PRId64 " sequence%s of at most %" PRId64
               " tokens, %.2f%% full, %.1f document%s in each\n",
               stats->sequences, tri_plural(stats->sequences), stats->max_length,
               100 * stats->packing, documents, fabs(documents - 1) < 0.05 ? "" : "s");
    return options->num_weights > 0 ? TRI_OK : print_strategies(index);
}

/* ---- too long samples ------------------------------------------------------------------------
 */

static void print_policies(const struct tri_run *run)
{
    static const char *const names[] = {"error", "drop", "truncate", "split"};
    const struct tri_data_stats *stats = tri_dataset_stats(run->data);
    const int policy = run->recipe->data.overlength;
    if (stats->overlong == 0) {
        printf("\ntoo long: no sample is longer than %" PRId64 " tokens (data.max_length%s)\n",
               stats->max_length, run->recipe->data.max_length == 0 ? ": the longest" : "");
        return;
    }
    printf("\ntoo long: %" PRId64 " of %" PRId64 " samples %s longer than data.max_length %" PRId64
           "; data.overlength: %s%s\n",
           stats->overlong, stats->samples, stats->overlong == 1 ? "is" : "are", stats->max_length,
           names[policy],
           policy == TRI_OVERLENGTH_ERROR ? ", so training will not start; they are left out below"
                                          : "");
    for (int i = TRI_OVERLENGTH_DROP; i <= TRI_OVERLENGTH_SPLIT; i++) {
        const struct tri_policy_loss *loss = &stats->loss[i];
        printf("  %-8s loses %9" PRId64 " sample%s, %12" PRId64 " token%s, %12" PRId64
               " of them trained\n",
               names[i], loss->samples, tri_plural(loss->samples), loss->tokens,
               tri_plural(loss->tokens), loss->trained);
    }
}

/* ---- steps -----------------------------------------------------------------------------------
 */

/* Where epochs have not all the same number of sequences, those of the first ones. */
static void print_epochs(const struct tri_run *run)
{
    enum { SHOWN = 8 };
    const double epochs = run->recipe->train.epochs;
    const int64_t first = tri_dataset_sequences(run->data, 0);
    const int64_t end = epochs > SHOWN ? SHOWN : (int64_t)ceil(epochs);
    bool even = true;
    for (int64_t epoch = 1; epoch < end; epoch++)
        even = even && tri_dataset_sequences(run->data, epoch) == first;
    if (even)
        return;
    printf("  each epoch makes its own sequences: ");
    for (int64_t epoch = 0; epoch < end; epoch++)
        printf("%s%" PRId64, epoch > 0 ? ", " : "", tri_dataset_sequences(run->data, epoch));
    printf("%s\n", epochs > SHOWN ? ", ..." : "");
}

static enum tri_status print_steps(const struct tri_run *run)
{
    const struct tri_train_options *train = &run->recipe->train;
    const int64_t ranks = train->ranks;
    const int64_t shards =
        tri_mesh_choose(ranks, train->sequence_parallel_size, run->model->arch.num_heads);
    const int64_t replicas = ranks > 0 && shards > 0 && ranks % shards == 0 ? ranks / shards : 1;
    const int64_t sequences = tri_dataset_sequences(run->data, 0);
    const double per_step = (double)train->micro_batch_size *
                            (double)train->gradient_accumulation_steps * (double)replicas;
    printf("\nsteps: %.2f in the first epoch = %" PRId64 " sequence%s / (%" PRId64
           " micro_batch_size x %" PRId64 " gradient_accumulation_steps x %" PRId64 " replica%s)\n",
           (double)sequences / per_step, sequences, tri_plural(sequences), train->micro_batch_size,
           train->gradient_accumulation_steps, replicas, tri_plural(replicas));
    if (per_step > (double)sequences)
        printf("  a step passes over the data %.1f times\n", per_step / (double)sequences);
    if (train->train_iters > 0) {
        printf("  train_iters: %" PRId64 " step%s, %.2f epochs\n", train->train_iters,
               tri_plural(train->train_iters),
               (double)train->train_iters * per_step / (double)sequences);
        return TRI_OK;
    }
    int64_t steps; /* of one replica */
    TRI_TRY(tri_loader_steps(run->loader, train->epochs, &steps));
    if (replicas > 1)
        steps = (steps + replicas - 1) / replicas;
    const bool fills = (double)steps * per_step > tri_loader_sequences(run->loader, train->epochs);
    printf("  epochs: %g, so %" PRId64 " step%s%s\n", train->epochs, steps, tri_plural(steps),
           fills ? "; the last one is filled up from the next epoch" : "");
    if (tri_dataset_is_packed(run->data))
        print_epochs(run);
    return TRI_OK;
}

/* What is in the files, and what of it an epoch takes: by weights, and after data.overlength. */
static void print_epoch(const struct tri_run *run)
{
    const struct tri_data_stats *stats = tri_dataset_stats(run->data);
    const struct tri_record_counts epoch = tri_dataset_epoch(run->data);
    const bool weighted = run->recipe->data.num_weights > 0;
    const bool split = stats->overlong > 0 && run->recipe->data.overlength == TRI_OVERLENGTH_SPLIT;
    printf("%" PRId64 " file%s, %" PRId64 " sample%s; an epoch ", stats->files,
           tri_plural(stats->files), stats->samples, tri_plural(stats->samples));
    if (weighted || stats->epoch_samples != stats->samples)
        printf("%shas %" PRId64 " %s%s and ", weighted ? "(by data.weights) " : "",
               stats->epoch_samples, split ? "piece" : "sample", tri_plural(stats->epoch_samples));
    printf("trains on %" PRId64 " of %" PRId64 " tokens (%.1f%%)\n", epoch.trained,
           stats->epoch_tokens, percent((double)epoch.trained, (double)stats->epoch_tokens));
}

enum tri_status tri_cli_inspect(struct tri_run *run, int64_t samples, int64_t tokens)
{
    const struct tri_data_stats *stats = tri_dataset_stats(run->data);
    print_epoch(run);
    print_lengths(stats);
    print_policies(run);
    TRI_TRY(print_packing(run));
    TRI_TRY(print_steps(run));
    return tri_cli_inspect_sequences(run, samples, tokens);
}
