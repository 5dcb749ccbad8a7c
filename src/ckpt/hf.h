/* Hugging Face folders in and out.
 *
 * Rows travel through callbacks, so that their destination may be host memory, a device, or the
 * shard of a rank. `data` is float32, `rows` rows of the parameter's width (1 for 1-D parameters). */
#ifndef TRI_CKPT_HF_H
#define TRI_CKPT_HF_H

#include "ckpt/safetensors.h"
#include "model/arch.h"

typedef enum tri_status tri_rows_sink(void *ctx, int param, int64_t row, int64_t rows,
                                      const float *data);
typedef enum tri_status tri_rows_source(void *ctx, int param, int64_t row, int64_t rows,
                                        float *data);

/* Find a model: a folder with config.json, or a hub id in the local cache
 * ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub). The caller frees *folder. */
enum tri_status tri_hf_find(const char *name_or_path, char **folder);

/* Read every weight. Missing, surplus or misshapen tensors are errors that name them (a tied
 * lm_head.weight and non-parameter buffers such as rotary inv_freq are tolerated). */
enum tri_status tri_hf_load(const struct tri_model *model, const char *folder, tri_rows_sink *sink,
                            void *ctx);

/* Gather the rows of one Hugging Face tensor (in its own order) from the parameters, and scatter
 * them: used for weights, and by the optimizer state, gradients and golden files. */
enum tri_status tri_hf_gather(const struct tri_model *model, int hf, tri_rows_source *source,
                              void *ctx, float *out);
enum tri_status tri_hf_scatter(const struct tri_model *model, int hf, const float *data,
                               tri_rows_sink *sink, void *ctx);

struct tri_hf_export {
    const char *source_folder; /* config.json, tokenizer and generation files come from here */
    const struct json_t *config_overrides; /* members that the recipe replaced; or NULL */
    enum tri_dtype dtype;      /* of the written weights */
    double max_shard_bytes;
};

/* Write a folder that Transformers loads unchanged: config.json, model.safetensors (or shards and
 * an index), generation_config.json, tokenizer files. `folder` exists. Nonfinite weights are
 * TRI_NONFINITE and nothing is written. */
enum tri_status tri_hf_save(const struct tri_model *model, const char *folder,
                            const struct tri_hf_export *how, tri_rows_source *source, void *ctx);

#endif
