/* A sample read again from where the index found it. */
#ifndef TRI_DATA_READER_H
#define TRI_DATA_READER_H

#include "base/file.h"
#include "data/files.h"
#include "data/sample.h"

struct tri_reading {
    struct tri_sample sample;
    struct tri_map map; /* the sample may lie in it */
};

/* The sample at [offset, offset + bytes) of a file that has not changed since it was listed. Errors
 * name the file. One thread at a time. */
enum tri_status tri_reading_open(struct tri_data_file *file, const struct tri_sample_rules *rules,
                                 uint64_t offset, uint64_t bytes, struct tri_reading *out);
void tri_reading_close(struct tri_reading *reading);

#endif
