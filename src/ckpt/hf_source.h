/* The small files of a model folder, kept in memory: a run that saves days later must not need the
 * folder it started from. */
#ifndef TRI_CKPT_HF_SOURCE_H
#define TRI_CKPT_HF_SOURCE_H

#include <stddef.h>

#include "base/status.h"

enum { TRI_HF_SOURCE_FILES = 11 };

struct tri_hf_file {
    const char *name;
    char *data; /* NULL: the folder has no such file */
    size_t bytes;
};

struct tri_hf_source {
    char *folder;                                 /* for errors */
    struct tri_hf_file file[TRI_HF_SOURCE_FILES]; /* config.json first, then what is carried over */
};

/* Read config.json and, where they are there, the tokenizer and generation files of `folder`. */
enum tri_status tri_hf_source_open(const char *folder, struct tri_hf_source **out);
void tri_hf_source_close(struct tri_hf_source *source);

#endif
