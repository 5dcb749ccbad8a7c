/* The files of an exported folder that are not weights: written together, they appear together. */
#ifndef TRI_CKPT_HF_EXPORT_H
#define TRI_CKPT_HF_EXPORT_H

#include "base/file.h"
#include "ckpt/hf.h"

enum { TRI_EXPORT_MAX_FILES = 16 };

/* Files written and synced, waiting for their names. All zero is an empty set. */
struct tri_export_set {
    struct tri_writer *file[TRI_EXPORT_MAX_FILES];
    int count;
    struct tri_sums *sums; /* take hashes of what is written; or NULL */
};

/* Write indented JSON. */
enum tri_status tri_export_json(struct tri_export_set *set, const char *folder, const char *name,
                                const struct json_t *value);

/* Write the generation and tokenizer files, and config.json last. */
enum tri_status tri_export_companions(struct tri_export_set *set, const struct tri_model *model,
                                      const char *folder, const struct tri_hf_export *how);

/* Give all files their names. The set is empty afterwards in every case. */
enum tri_status tri_export_commit(struct tri_export_set *set);
void tri_export_abandon(struct tri_export_set *set);

#endif
