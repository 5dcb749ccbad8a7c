/* Text files encoded before their turn, on all threads.
 *
 * A tokenizer keeps what it encoded lately, so whoever comes to a file afterwards finds its tokens.
 * What is wrong with a file is left for its turn. */
#ifndef TRI_DATA_AHEAD_FILES_H
#define TRI_DATA_AHEAD_FILES_H

#include "data/files.h"
#include "data/sample.h"

/* Encode the next few megabytes of text files from number `from` on; returns the number of the
 * first file that was not looked at. */
int64_t tri_ahead_files(const struct tri_sample_rules *rules, const struct tri_data_files *files,
                        int64_t from);

#endif
