/* From a dataset to optimizer steps.
 *
 * A step takes the next micro_batch_size * gradient_accumulation_steps sequences for each replica
 * of the model: the first micro-batch of every replica, then the second of every replica, and so
 * on, so that the data of a step does not depend on how many replicas share it. It goes on across
 * the end of an epoch into the next one, so every step is whole and no sequence is ever left out.
 * The position {epoch, sequence} is all the state there is: saved and set again, the loader gives
 * the same batches as if it had never stopped. */
#ifndef TRI_DATA_LOADER_H
#define TRI_DATA_LOADER_H

#include <stdint.h>

#include "base/status.h"
#include "data/batch.h"
#include "data/dataset.h"

/* The next sequence to be read. */
struct tri_data_position {
    int64_t epoch;
    int64_t sequence; /* below the number of sequences of the epoch */
};

/* The data of one optimizer step. Owned by the loader, valid until its next step. */
struct tri_step_data {
    struct tri_batch *batches; /* (num_batches) micro-batches, finished */
    int64_t num_batches;       /* gradient_accumulation_steps */
    int64_t num_tokens;        /* over all of them */
    int64_t num_trained;       /* N of the loss, known before the first backward; at least 1 */
    int64_t num_docs;
    uint64_t identity; /* which samples these are */
};

struct tri_loader;

/* Which replica of how many reads here. */
struct tri_replica {
    int64_t index;
    int64_t count;
};

/* Reserve room for the largest step there can be; nothing is allocated later but what parsing a
 * line takes. The dataset must outlive the loader. */
enum tri_status tri_loader_open(struct tri_dataset *dataset, int64_t micro_batch_size,
                                int64_t gradient_accumulation_steps, struct tri_replica replica,
                                struct tri_loader **out);
void tri_loader_close(struct tri_loader *loader); /* NULL is allowed */

/* Read the next step and move on. After a failure the position is unchanged. */
enum tri_status tri_loader_next(struct tri_loader *loader, struct tri_step_data *out);

struct tri_data_position tri_loader_position(const struct tri_loader *loader);
/* A position that the data does not have is an error. */
enum tri_status tri_loader_seek(struct tri_loader *loader, struct tri_data_position position);

/* Passes over the data that lie behind the position, as a fraction: 1.5 is the middle of the
 * second. */
double tri_loader_epochs(struct tri_loader *loader);

/* Sequences of `epochs` passes. With packing each epoch is counted, for its number of sequences is
 * its own. */
double tri_loader_sequences(const struct tri_loader *loader, double epochs);

/* Steps from the beginning that `epochs` passes take, rounded up: the last step fills itself from
 * the epoch after. */
enum tri_status tri_loader_steps(struct tri_loader *loader, double epochs, int64_t *out);

#endif
