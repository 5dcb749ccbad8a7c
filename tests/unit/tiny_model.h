/* Small random models of every kind of block, and trainers on them, without any file. */
#ifndef TESTS_UNIT_TINY_MODEL_H
#define TESTS_UNIT_TINY_MODEL_H

#include "unit/scratch.h"

#include <math.h>

#include "backend/cpu/cpu.h"
#include "base/rng.h"
#include "train/trainer.h"

struct tiny_model {
    const char *name;
    const char *config;
};

enum { TINY_VOCAB = 64, TINY_HIDDEN = 32 };

#define TINY_COMMON                                                                                \
    "\"vocab_size\":64,\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":4,"      \
    "\"intermediate_size\":48,\"max_position_embeddings\":512,"

static const struct tiny_model tiny_models[] = {
    {"llama, grouped heads", "{" TINY_COMMON "\"model_type\":\"llama\",\"num_key_value_heads\":2,"
                             "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,"
                             "\"tie_word_embeddings\":false}"},
    {"llama, tied", "{" TINY_COMMON "\"model_type\":\"llama\",\"num_key_value_heads\":4,"
                    "\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,"
                    "\"tie_word_embeddings\":true}"},
    {"qwen3, QK-norm", "{" TINY_COMMON "\"model_type\":\"qwen3\",\"num_key_value_heads\":1,"
                       "\"head_dim\":16,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,"
                       "\"tie_word_embeddings\":false}"},
    {"qwen2, window in one layer",
     "{" TINY_COMMON "\"model_type\":\"qwen2\",\"num_key_value_heads\":2,\"hidden_act\":\"silu\","
     "\"rms_norm_eps\":1e-6,\"use_sliding_window\":true,\"sliding_window\":9,"
     "\"layer_types\":[\"full_attention\",\"sliding_attention\"],"
     "\"tie_word_embeddings\":false}"},
    {"gpt_neox, parallel", "{" TINY_COMMON "\"model_type\":\"gpt_neox\",\"hidden_act\":\"gelu\","
                           "\"layer_norm_eps\":1e-5,\"rotary_pct\":0.25,"
                           "\"use_parallel_residual\":true,\"tie_word_embeddings\":false}"},
    {"gpt_neox, sequential", "{" TINY_COMMON "\"model_type\":\"gpt_neox\",\"hidden_act\":\"gelu\","
                             "\"layer_norm_eps\":1e-5,\"rotary_pct\":1.0,"
                             "\"use_parallel_residual\":false,\"tie_word_embeddings\":false}"},
    {"llama, dynamic rope",
     "{\"vocab_size\":64,\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
     "\"intermediate_size\":48,\"max_position_embeddings\":8,\"model_type\":\"llama\","
     "\"num_key_value_heads\":2,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-6,"
     "\"rope_parameters\":{\"rope_type\":\"dynamic\",\"rope_theta\":10000.0,\"factor\":2.0},"
     "\"tie_word_embeddings\":false}"},
};

enum { NUM_TINY_MODELS = sizeof tiny_models / sizeof tiny_models[0] };

/* How a model is computed. */
struct tiny_way {
    bool exact;  /* float64 by the reference kernels; else float32 by the fast ones */
    int threads; /* 0: one */
    int zero_stage;
    bool eval_whole;
    struct tri_pass_options pass;
};

static inline struct tiny_way tiny_way(bool exact)
{
    return (struct tiny_way){.exact = exact, .pass = {.tiled_mlp_compute = true}};
}

struct tiny {
    struct tri_model *model;
    struct tri_backend *backend;
    struct tri_trainer *trainer;
};

static inline struct tri_model *tiny_parse(const char *config)
{
    struct tri_model *model = NULL;
    if (tri_model_parse("config.json", config, strlen(config), NULL, &model) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return model;
}

static inline struct tri_optim_options tiny_optimizer(void)
{
    return (struct tri_optim_options){
        .learning_rate = 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8};
}

/* Weights that make every part count: matrices of size 1/sqrt(width), norms around one, biases
 * that are not zero. `zero` makes all of them zero. */
static inline void tiny_weights(struct tri_trainer *t, bool zero)
{
    struct tri_flat flat = tri_flat_weights(t);
    for (int p = 0; p < t->model->num_params; p++) {
        const struct tri_param *param = &t->model->params[p];
        int64_t width = param->num_dims == 2 ? param->dim[1] : 1;
        int64_t n = param->dim[0] * width;
        bool norm = param->role == TRI_NORM1_W || param->role == TRI_NORM2_W ||
                    param->role == TRI_FINAL_NORM_W || param->role == TRI_Q_NORM ||
                    param->role == TRI_K_NORM;
        float *data = malloc((size_t)n * sizeof *data);
        assert_non_null(data);
        for (int64_t i = 0; i < n; i++) {
            double x = tri_rng_normal(11, (uint64_t)p, (uint64_t)i);
            data[i] = zero                   ? 0.0f
                      : param->num_dims == 2 ? (float)(x / sqrt((double)width))
                                             : (float)((norm ? 1.0 : 0.0) + 0.2 * x);
        }
        assert_int_equal(tri_flat_sink(&flat, p, 0, param->dim[0], data), TRI_OK);
        free(data);
    }
    assert_int_equal(tri_trainer_weights_loaded(t), TRI_OK);
}

/* As one of several ranks; NULL communicators: alone. */
static inline struct tiny tiny_open_on(const char *config, const struct tiny_way *way,
                                       struct tri_comm *world, struct tri_comm *sequence)
{
    struct tiny tiny = {.model = tiny_parse(config)};
    struct tri_cpu_config cpu = {.threads = way->threads > 0 ? way->threads : 1,
                                 .kernels = way->exact ? TRI_CPU_REFERENCE : TRI_CPU_AUTO};
    struct tri_optim_options optimizer = tiny_optimizer();
    if (tri_cpu_open(&cpu, &tiny.backend) != TRI_OK)
        fail_msg("%s", tri_error_text());
    struct tri_trainer_config trainer = {.model = tiny.model,
                                         .backend = tiny.backend,
                                         .act = way->exact ? TRI_F64 : TRI_F32,
                                         .capacity = (size_t)1 << 28,
                                         .pass = &way->pass,
                                         .optimizer = &optimizer,
                                         .clip = 1.0,
                                         .world = world,
                                         .sequence = sequence,
                                         .zero_stage = way->zero_stage,
                                         .eval_whole = way->eval_whole};
    if (tri_trainer_open(&trainer, &tiny.trainer) != TRI_OK)
        fail_msg("%s", tri_error_text());
    tiny_weights(tiny.trainer, false);
    return tiny;
}

static inline struct tiny tiny_open(const char *config, const struct tiny_way *way)
{
    return tiny_open_on(config, way, NULL, NULL);
}

static inline void tiny_close(struct tiny *tiny)
{
    tri_trainer_close(tiny->trainer);
    tri_cpu_close(tiny->backend);
    tri_model_close(tiny->model);
}

/* Documents of these lengths, one after the other; ids and labels by a fixed dice, every third
 * label left out. */
static inline struct tri_batch tiny_batch(const int64_t *lengths, int64_t count)
{
    struct tri_batch batch;
    int64_t tokens = 0;
    for (int64_t d = 0; d < count; d++)
        tokens += lengths[d];
    assert_int_equal(tri_batch_open(tokens, &batch), TRI_OK);
    batch.num_tokens = tokens;
    int64_t t = 0;
    for (int64_t d = 0; d < count; d++)
        for (int64_t i = 0; i < lengths[d]; i++, t++) {
            uint32_t dice[4];
            tri_rng_words(17, (uint64_t)d, (uint64_t)i, dice);
            batch.ids[t] = (int32_t)(dice[0] % TINY_VOCAB);
            batch.labels[t] = dice[1] % 3 == 0 ? TRI_IGNORE_LABEL : batch.ids[t];
            batch.positions[t] = i;
        }
    if (tri_batch_finish(&batch) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return batch;
}

/* Element i of a flat buffer of statistics. */
static inline double tiny_at(const struct tri_trainer *t, const void *flat, int64_t i)
{
    return t->stat == TRI_F64 ? ((const double *)flat)[i] : (double)((const float *)flat)[i];
}

/* Copy what this rank holds of a buffer to its places in one laid out like the model. */
static inline void tiny_collect(const struct tri_trainer *t, const struct tri_zero_buffer *buffer,
                                double *to)
{
    const struct tri_partition *p = &t->zero->partition;
    for (int u = 0; u < t->model->num_units; u++) {
        int64_t begin = p->rank * p->units[u].part;
        int64_t count = t->model->unit_begin[u + 1] - t->model->unit_begin[u];
        int64_t from =
            buffer->holds == TRI_ZERO_HOLDS_OWN ? p->units[u].own : p->units[u].full + begin;
        for (int64_t i = 0; i < p->units[u].part && begin + i < count; i++)
            to[t->model->unit_begin[u] + begin + i] = tiny_at(t, buffer->data, from + i);
    }
}

/* A copy of a flat buffer as doubles; the caller frees it. */
static inline double *tiny_copy(const struct tri_trainer *t, const void *flat)
{
    double *copy = malloc((size_t)t->model->num_elements * sizeof *copy);
    assert_non_null(copy);
    for (int64_t i = 0; i < t->model->num_elements; i++)
        copy[i] = tiny_at(t, flat, i);
    return copy;
}

#endif
