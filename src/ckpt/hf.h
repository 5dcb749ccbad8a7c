/* Hugging Face folders in and out.
 *
 * Rows travel through callbacks, so that their destination may be host memory, a device, or the
 * shard of a rank. `data` is float32, `rows` rows of the parameter's width (1 for 1-D parameters).
 */
#ifndef TRI_CKPT_HF_H
#define TRI_CKPT_HF_H

#include "base/job.h"
#include "ckpt/safetensors.h"
#include "ckpt/hf_source.h"
#include "model/arch.h"

typedef enum tri_status tri_rows_sink(void *ctx, int param, int64_t row, int64_t rows,
                                      const float *data);
typedef enum tri_status tri_rows_source(void *ctx, int param, int64_t row, int64_t rows,
                                        float *data);

/* Find a model: a folder with config.json, or a hub id in the local cache, which is the first of
 * $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub whose
 * variable is set, as in Python's huggingface_hub. Nothing is downloaded. The caller frees
 * *folder. */
enum tri_status tri_hf_find(const char *name_or_path, char **folder);

/* Read every weight (F32, F16, BF16, F64). Missing, surplus or misshapen tensors are errors that
 * name them, found before the first row is handed over. Tolerated: the head of a tied model, if it
 * equals the embedding, and buffers that are no parameters, such as rotary inv_freq. Where the
 * folder has hashes of its files, all that is read is compared with them. */
enum tri_status tri_hf_load(const struct tri_model *model, const char *folder, tri_rows_sink *sink,
                            void *ctx);

/* Gather the rows of one Hugging Face tensor (in its own order) from the parameters, and scatter
 * them: used for weights, and by the optimizer state, gradients and golden files. */
enum tri_status tri_hf_gather(const struct tri_model *model, int hf, tri_rows_source *source,
                              void *ctx, float *out);
enum tri_status tri_hf_scatter(const struct tri_model *model, int hf, const float *data,
                               tri_rows_sink *sink, void *ctx);

struct tri_hf_export {
    const struct tri_hf_source *source; /* config.json, tokenizer and generation files, or NULL: */
    const char *source_folder;          /* they are read from here when saving */
    const struct json_t *config_overrides; /* what the recipe laid over config.json; or NULL */
    enum tri_dtype dtype;                  /* of the written weights: TRI_F32, TRI_BF16, TRI_F16 */
    double max_shard_bytes;                /* a larger tensor gets a file of its own; 0: one file */
    struct tri_sums *sums;                 /* take hashes of all files that are written; or NULL */
    struct tri_job *job; /* told of the bytes of weights that are written; or NULL */
    bool keep_weights;   /* tri_hf_weights_are_saved: only the other files are written */
};

/* Are the weight files that tri_hf_save would write into `folder` there, byte for byte? `known` has
 * hashes of files that were made of these weights. What cannot be read is not there. */
bool tri_hf_weights_are_saved(const struct tri_model *model, const char *folder,
                              const struct tri_hf_export *how, struct tri_sums *known);

/* Write a folder that Transformers loads unchanged: config.json, model.safetensors (or shards and
 * an index), generation_config.json, tokenizer files. `folder` exists; it may be the source.
 *
 * Every file is complete on the disk before the first gets its name, so that a failure leaves the
 * folder as it was: a weight that is not finite, or not in `dtype`, is TRI_NONFINITE. Weight files
 * of an earlier save that are not part of this one are removed at the end. */
enum tri_status tri_hf_save(const struct tri_model *model, const char *folder,
                            const struct tri_hf_export *how, tri_rows_source *source, void *ctx);

#endif
