#include "data/loader.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"

struct tri_loader {
    struct tri_dataset *dataset;
    int64_t micro_batch_size;
    struct tri_replica replica;
    int64_t num_batches;
    struct tri_batch *batches; /* (num_batches) */
    struct tri_data_position position;
};

/* a * b for two positive numbers, or false. */
static bool multiply(int64_t a, int64_t b, int64_t *out)
{
    if (a > INT64_MAX / b)
        return false;
    *out = a * b;
    return true;
}

enum tri_status tri_loader_open(struct tri_dataset *dataset, int64_t micro_batch_size,
                                int64_t gradient_accumulation_steps, struct tri_replica replica,
                                struct tri_loader **out)
{
    int64_t tokens, per_step;
    if (micro_batch_size < 1 || gradient_accumulation_steps < 1)
        return tri_fail(TRI_INVALID, "micro_batch_size and gradient_accumulation_steps are at "
                                     "least 1");
    if (!multiply(tri_dataset_max_sequence(dataset), micro_batch_size, &tokens) ||
        !multiply(tokens, gradient_accumulation_steps, &per_step))
        return tri_fail(TRI_INVALID,
                        "a step of %" PRId64 " x %" PRId64 " sequences of %" PRId64
                        " tokens is too large: lower micro_batch_size",
                        micro_batch_size, gradient_accumulation_steps,
                        tri_dataset_max_sequence(dataset));

    struct tri_loader *loader = malloc(sizeof *loader);
    if (!loader)
        return tri_fail(TRI_NOMEM, "no memory for a loader");
    *loader = (struct tri_loader){
        .dataset = dataset, .micro_batch_size = micro_batch_size, .replica = replica};
    enum tri_status st = TRI_OK;
    loader->batches = calloc((size_t)gradient_accumulation_steps, sizeof *loader->batches);
    if (!loader->batches)
        st = tri_fail(TRI_NOMEM, "no memory for %" PRId64 " micro-batches",
                      gradient_accumulation_steps);
    while (st == TRI_OK && loader->num_batches < gradient_accumulation_steps) {
        st = tri_batch_open(tokens, &loader->batches[loader->num_batches]);
        loader->num_batches += st == TRI_OK;
    }
    if (st != TRI_OK) {
        tri_loader_close(loader);
        return st;
    }
    *out = loader;
    return TRI_OK;
}

void tri_loader_close(struct tri_loader *loader)
{
    if (!loader)
        return;
    for (int64_t i = 0; i < loader->num_batches; i++)
        tri_batch_close(&loader->batches[i]);
    free(loader->batches);
    free(loader);
}

/* Move on, across the end of an epoch. */
static void advance(const struct tri_dataset *dataset, struct tri_data_position *position)
{
    position->sequence++;
    if (position->sequence == tri_dataset_sequences(dataset, position->epoch)) {
        position->sequence = 0;
        position->epoch++;
    }
}

/* Append this replica's rows of a micro-batch and pass those of the others. */
static enum tri_status read_rows(const struct tri_loader *loader,
                                 struct tri_data_position *position, struct tri_batch *into)
{
    for (int64_t r = 0; r < loader->replica.count; r++)
        for (int64_t row = 0; row < loader->micro_batch_size; row++) {
            if (r == loader->replica.index)
                TRI_TRY(
                    tri_dataset_read(loader->dataset, position->epoch, position->sequence, into));
            advance(loader->dataset, position);
        }
    return TRI_OK;
}

enum tri_status tri_loader_next(struct tri_loader *loader, struct tri_step_data *out)
{
    struct tri_data_position position = loader->position;
    struct tri_step_data step = {
        .batches = loader->batches,
        .num_batches = loader->num_batches,
        .identity = TRI_HASH_START,
    };
    for (int64_t i = 0; i < loader->num_batches; i++) {
        struct tri_batch *batch = &loader->batches[i];
        tri_batch_clear(batch);
        TRI_TRY(read_rows(loader, &position, batch));
        step.num_tokens += batch->num_tokens;
        step.num_trained += batch->num_trained;
        step.num_docs += batch->num_docs;
        step.identity = tri_hash_word(step.identity, batch->identity);
    }
    loader->position = position;
    *out = step;
    return TRI_OK;
}

struct tri_data_position tri_loader_position(const struct tri_loader *loader)
{
    return loader->position;
}

enum tri_status tri_loader_seek(struct tri_loader *loader, struct tri_data_position position)
{
    if (position.epoch < 0 || position.sequence < 0 ||
        position.sequence >= tri_dataset_sequences(loader->dataset, position.epoch))
        return tri_fail(TRI_INVALID,
                        "the saved data position (epoch %" PRId64 ", sequence %" PRId64
                        ") is not in this data: was it changed?",
                        position.epoch, position.sequence);
    loader->position = position;
    return TRI_OK;
}

double tri_loader_epochs(struct tri_loader *loader)
{
    const struct tri_data_position at = loader->position;
    return (double)at.epoch +
           (double)at.sequence / (double)tri_dataset_sequences(loader->dataset, at.epoch);
}

double tri_loader_sequences(const struct tri_loader *loader, double epochs)
{
    const int64_t whole = (int64_t)epochs;
    double sequences = 0;
    if (tri_dataset_is_packed(loader->dataset)) /* each epoch packs in its own order */
        for (int64_t epoch = 0; epoch < whole; epoch++)
            sequences += (double)tri_dataset_sequences(loader->dataset, epoch);
    else
        sequences = (double)whole * (double)tri_dataset_sequences(loader->dataset, 0);
    if (epochs > (double)whole)
        sequences +=
            ceil((epochs - (double)whole) * (double)tri_dataset_sequences(loader->dataset, whole));
    return sequences;
}

enum tri_status tri_loader_steps(struct tri_loader *loader, double epochs, int64_t *out)
{
    const double per_step = (double)loader->micro_batch_size * (double)loader->num_batches *
                            (double)loader->replica.count;
    /* Whole numbers are exact in a double up to 2^53; packing 2^32 samples takes minutes. */
    const bool packed = tri_dataset_is_packed(loader->dataset);
    const double most = packed ? 0x1p32 : 0x1p53;
    if (!(epochs >= 0 && epochs * (double)tri_dataset_stats(loader->dataset)->pieces < most))
        return tri_fail(TRI_INVALID,
                        "epochs is %g: too many passes over %" PRId64 " samples: set train_iters",
                        epochs, tri_dataset_stats(loader->dataset)->pieces);
    *out = (int64_t)ceil(tri_loader_sequences(loader, epochs) / per_step);
    return TRI_OK;
}
