/* The over-length policy (data/index.h): what of a sample enters the index. */
#ifndef TRI_DATA_OVERLENGTH_H
#define TRI_DATA_OVERLENGTH_H

#include "data/index.h"

struct tri_length_rule {
    int64_t limit; /* tokens; INT64_MAX: no sample is too long */
    int policy;    /* enum tri_overlength */
    /* The first sample that was too long: for the error policy, whose message comes after the pass
     * and tells how many there are. */
    int64_t first_file, first_line, first_tokens;
};

/* Add a sample, or what the policy leaves of it, and count. `record` says where the sample is. A
 * sample that trains nothing is an error. */
enum tri_status tri_index_add(struct tri_index *index, struct tri_length_rule *rule,
                              const struct tri_sample *sample, struct tri_record record,
                              int64_t line);

/* The same when tri_sample_measure's answer for the whole sample is known: its tokens are looked at
 * only if there are too many. */
enum tri_status tri_index_add_measured(struct tri_index *index, struct tri_length_rule *rule,
                                       const struct tri_sample *sample, int64_t documents,
                                       int64_t trained, struct tri_record record, int64_t line);

/* The end of a pass: was a sample too long under the policy `error`, and is any left? */
enum tri_status tri_index_finish(struct tri_index *index, const struct tri_length_rule *rule,
                                 const struct tri_data_files *files, int64_t max_length);

#endif
