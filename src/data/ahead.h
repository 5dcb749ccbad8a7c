/* Tokenize lines before they are looked at, on all threads.
 *
 * Lines are checked and counted one after the other, so that the first bad one is the one that is
 * named. The costly part of that, encoding text, keeps its result for a while (text/tokenizer.h),
 * so it may be done beforehand and in any order. */
#ifndef TRI_DATA_AHEAD_H
#define TRI_DATA_AHEAD_H

#include <stddef.h>

#include "data/sample.h"

/* Encode the texts of the next few megabytes of JSONL; returns how many bytes they are, whole
 * lines. Lines that cannot be read are left for whoever comes to them. */
size_t tri_tokenize_ahead(const struct tri_sample_rules *rules, const char *data, size_t bytes);

#endif
