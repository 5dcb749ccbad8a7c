/* trireme data inspect: what training will see, in numbers and in words. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utf8proc.h>

#include "cli.h"
#include "data/index.h"
#include "data/pack.h"
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
    if (!options->pack_samples)
        printf("\npacking: off, each sample is a sequence: %" PRId64 " of them, the longest has "
               "%" PRId64 " token%s\n",
               stats->sequences, stats->longest_piece, tri_plural(stats->longest_piece));
    else
        printf("\npacking: %" PRId64 " sequence%s of at most %" PRId64
               " tokens, %.2f%% full, %.1f documents in each\n",
               stats->sequences, tri_plural(stats->sequences), stats->max_length,
               100 * stats->packing, (double)stats->documents / (double)stats->sequences);
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
        printf("  %-8s loses %9" PRId64 " samples, %12" PRId64 " tokens, %12" PRId64
               " of them trained\n",
               names[i], loss->samples, loss->tokens, loss->trained);
    }
}

/* ---- steps -----------------------------------------------------------------------------------
 */

/* Of so many epochs, each of which may pack in its own way (as tri_loader_steps counts). */
static double count_sequences(const struct tri_run *run, double epochs)
{
    const int64_t whole = (int64_t)epochs;
    const bool packed = tri_dataset_is_packed(run->data);
    double count = packed ? 0 : (double)whole * (double)tri_dataset_sequences(run->data, 0);
    for (int64_t epoch = 0; packed && epoch < whole; epoch++)
        count += (double)tri_dataset_sequences(run->data, epoch);
    if (epochs > (double)whole)
        count += ceil((epochs - (double)whole) * (double)tri_dataset_sequences(run->data, whole));
    return count;
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
    printf("\nsteps: %.2f an epoch = %" PRId64 " sequence%s / (%" PRId64
           " micro_batch_size x %" PRId64 " gradient_accumulation_steps x %" PRId64 " replica%s)\n",
           (double)sequences / per_step, sequences, tri_plural(sequences), train->micro_batch_size,
           train->gradient_accumulation_steps, replicas, tri_plural(replicas));
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
    const bool fills = (double)steps * per_step > count_sequences(run, train->epochs);
    printf("  epochs: %g, so %" PRId64 " step%s%s\n", train->epochs, steps, tri_plural(steps),
           fills ? "; the last one is filled up from the next epoch" : "");
    return TRI_OK;
}

/* ---- sequences -------------------------------------------------------------------------------
 */

static bool in_colour(void)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && (none == NULL || *none == '\0') &&
           !(terminal != NULL && strcmp(terminal, "dumb") == 0);
}

/* C1 controls, and what changes the order of writing (UAX 9). */
static bool is_command(utf8proc_int32_t point)
{
    return (point >= 0x80 && point < 0xA0) || point == 0x061C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069);
}

/* Text from files may hold what a terminal takes for commands. */
static void print_safely(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const unsigned char c = (unsigned char)text[at];
        utf8proc_int32_t point;
        const utf8proc_ssize_t read = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                       (utf8proc_ssize_t)(bytes - at), &point);
        const size_t size = read > 0 ? (size_t)read : 0; /* 0: no UTF-8 */
        if (c < 0x80 ? (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F : size == 0)
            printf("\\x%02X", c);
        else if (size > 1 && is_command(point))
            printf("\\u%04" PRIX32, (uint32_t)point);
        else
            fwrite(text + at, 1, size, stdout);
        at += size > 0 ? size : 1;
    }
}

/* A run of tokens that are all trained, or all not. */
static void print_run(const struct tri_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                      bool trained, bool colour)
{
    struct tri_text text = {0};
    printf("%s", trained ? colour ? "\033[32m" : "[" : colour ? "\033[2m" : "");
    if (tokenizer != NULL && tokenizer->decode(tokenizer, ids, count, false, &text) == TRI_OK &&
        !text.failed) {
        print_safely(tri_text_data(&text), text.bytes);
    } else { /* data that was tokenized elsewhere */
        tri_error_clear();
        for (int64_t i = 0; i < count; i++)
            printf("%s%" PRId32, i > 0 ? " " : "", ids[i]);
    }
    printf("%s", colour ? "\033[0m" : trained ? "]" : "");
    tri_text_free(&text);
}

/* A token is trained when the one before it has it as its label. */
static bool is_trained(const struct tri_batch *batch, int64_t begin, int64_t t)
{
    return t > begin && batch->labels[t - 1] >= 0;
}

static void print_document(const struct tri_run *run, const struct tri_batch *batch, int64_t begin,
                           int64_t end, bool colour)
{
    for (int64_t t = begin; t < end;) {
        const bool trained = is_trained(batch, begin, t);
        int64_t next = t + 1;
        while (next < end && is_trained(batch, begin, next) == trained)
            next++;
        print_run(run->tokenizer, batch->ids + t, next - t, trained, colour);
        t = next;
    }
}

static void print_sequence(const struct tri_run *run, const struct tri_batch *batch, int64_t number,
                           int64_t tokens, bool colour)
{
    printf("\nsequence %" PRId64 ": %" PRId64 " token%s, %" PRId64 " trained, %" PRId64
           " document%s\n",
           number, batch->num_tokens, tri_plural(batch->num_tokens), batch->num_trained,
           batch->num_docs, tri_plural(batch->num_docs));
    for (int64_t d = 0; d < batch->num_docs; d++) {
        const int64_t begin = batch->doc_begin[d], end = batch->doc_begin[d + 1];
        if (begin >= tokens)
            break;
        if (batch->num_docs > 1)
            printf("-- document %" PRId64 ", %" PRId64 " token%s\n", d, end - begin,
                   tri_plural(end - begin));
        print_document(run, batch, begin, end < tokens ? end : tokens, colour);
        printf("\n");
    }
    if (batch->num_tokens > tokens)
        printf("... and %" PRId64 " token%s more (--tokens shows them)\n",
               batch->num_tokens - tokens, tri_plural(batch->num_tokens - tokens));
}

static enum tri_status print_sequences(struct tri_run *run, int64_t samples, int64_t tokens)
{
    struct tri_batch batch;
    const bool colour = in_colour();
    const int64_t all = tri_dataset_sequences(run->data, 0);
    if (samples == 0)
        return TRI_OK;
    printf("\nthe first sequences of training; what is trained is %s (never the first token\n"
           "of a document, which nothing comes before)\n",
           colour ? "in \033[32mcolour\033[0m" : "in [brackets]");
    TRI_TRY(tri_batch_open(tri_dataset_max_sequence(run->data), &batch));
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < samples && i < all; i++) {
        tri_batch_clear(&batch);
        st = tri_dataset_read(run->data, 0, i, &batch);
        if (st == TRI_OK)
            print_sequence(run, &batch, i, tokens, colour);
    }
    tri_batch_close(&batch);
    return st;
}

enum tri_status tri_cli_inspect(struct tri_run *run, int64_t samples, int64_t tokens)
{
    const struct tri_data_stats *stats = tri_dataset_stats(run->data);
    printf("%" PRId64 " file%s, %" PRId64 " sample%s; an epoch trains on %" PRId64 " of %" PRId64
           " tokens (%.1f%%)\n",
           stats->files, tri_plural(stats->files), stats->samples, tri_plural(stats->samples),
           stats->trained, stats->tokens, percent((double)stats->trained, (double)stats->tokens));
    print_lengths(stats);
    print_policies(run);
    TRI_TRY(print_packing(run));
    TRI_TRY(print_steps(run));
    return print_sequences(run, samples, tokens);
}
