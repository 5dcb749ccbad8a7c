/* data.weights: the mixture of the sources that the files of an index come from. */
#ifndef TRI_DATA_WEIGHTS_H
#define TRI_DATA_WEIGHTS_H

#include "data/files.h"
#include "data/index.h"
#include "data/mixture.h"
#include "data/options.h"

enum tri_status tri_mixture_of_sources(const struct tri_data_options *options, int64_t num_sources,
                                       const struct tri_data_files *files,
                                       const struct tri_index *index, uint64_t seed,
                                       struct tri_mixture *out);

/* Is an epoch every sample once? */
bool tri_mixture_is_plain(const struct tri_mixture *mixture);

/* Mix the weights into a hash. Those of a plain mixture change nothing. */
uint64_t tri_mixture_hash(const struct tri_mixture *mixture, uint64_t hash);

/* Count epoch 0: its samples and tokens into the statistics of the index (epoch_samples,
 * epoch_tokens), the rest is returned. The index has kept counts unless the mixture is plain. */
struct tri_record_counts tri_mixture_count(const struct tri_mixture *mixture,
                                           struct tri_index *index);

#endif
