#include "train/trainer.h"

#include <stdlib.h>

#include "base/rng.h"

static enum tri_status get_flat(struct tri_trainer *t, const char *name, enum tri_dtype dtype,
                                void **out)
{
    int64_t n = t->model->num_elements;
    TRI_TRY(tri_arena_alloc(t->exec.arena, name, (size_t)n * tri_dtype_bytes(dtype), out));
    /* Padding between parameters has to stay zero through every update. */
    return t->exec.ops->zero(t->exec.stream, tri_view1(*out, dtype, n));
}

enum tri_status tri_trainer_open(const struct tri_trainer_config *config, struct tri_trainer **out)
{
    enum tri_status st;
    struct tri_trainer *t = calloc(1, sizeof *t);
    if (t == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a trainer");
    struct tri_backend *backend = config->backend;
    t->model = config->model;
    t->act = config->act;
    t->stat = config->act == TRI_F64 ? TRI_F64 : TRI_F32;
    t->clip = config->clip;
    t->world = config->world;
    t->sequence = config->sequence;
    t->exec = (struct tri_exec){
        .backend = backend, .ops = &backend->ops, .stream = backend->stream, .arena = NULL};
    TRI_TRY_GOTO(st,
                 tri_arena_open(config->memory != NULL ? config->memory : backend->memory,
                                config->capacity, &t->exec.arena),
                 free_trainer);
    TRI_TRY_GOTO(st, get_flat(t, "weights", t->act, &t->weights), close_arena);
    if (config->optimizer != NULL) {
        TRI_TRY_GOTO(st, get_flat(t, "gradients", t->stat, &t->grads), close_arena);
        TRI_TRY_GOTO(st,
                     tri_optimizer_open(t->exec, t->model, config->optimizer, t->act, t->stat,
                                        t->weights, t->grads, &t->optimizer),
                     close_arena);
    }
    struct tri_pass_config pass = {.exec = t->exec,
                                   .model = t->model,
                                   .act = t->act,
                                   .stat = t->stat,
                                   .weights = t->weights,
                                   .grads = t->grads,
                                   .sequence = config->sequence,
                                   .options = config->pass,
                                   .progress = config->progress};
    TRI_TRY_GOTO(st, tri_pass_open(&pass, &t->pass), close_arena);
    *out = t;
    return TRI_OK;

close_arena:
    tri_arena_close(t->exec.arena);
free_trainer:
    free(t);
    return st;
}

void tri_trainer_close(struct tri_trainer *t)
{
    if (t == NULL)
        return;
    tri_pass_close(t->pass);
    tri_arena_close(t->exec.arena);
    free(t);
}

enum tri_status tri_trainer_weights_loaded(struct tri_trainer *t)
{
    if (t->optimizer.master == NULL || t->optimizer.master == t->weights)
        return TRI_OK;
    int64_t n = t->model->num_elements;
    return t->exec.ops->copy(t->exec.stream, tri_view1(t->weights, t->act, n),
                             tri_view1(t->optimizer.master, t->stat, n));
}

static bool is_norm_weight(enum tri_role role)
{
    return role == TRI_NORM1_W || role == TRI_NORM2_W || role == TRI_FINAL_NORM_W ||
           role == TRI_Q_NORM || role == TRI_K_NORM;
}

enum tri_status tri_trainer_init(struct tri_trainer *t, uint64_t seed)
{
    enum { BLOCK = 1 << 16 };
    enum tri_status st = TRI_OK;
    struct tri_flat flat = tri_flat_weights(t);
    float *block = malloc(BLOCK * sizeof *block);
    if (block == NULL)
        return tri_fail(TRI_NOMEM, "no memory to draw weights");
    for (int p = 0; p < t->model->num_params && st == TRI_OK; p++) {
        const struct tri_param *param = &t->model->params[p];
        int64_t width = param->num_dims == 2 ? param->dim[1] : 1;
        int64_t rows_at_once = width < BLOCK ? BLOCK / width : 0;
        if (rows_at_once == 0) {
            st = tri_fail(TRI_UNSUPPORTED, "a parameter with rows of %lld elements",
                          (long long)width);
            break;
        }
        for (int64_t row = 0; row < param->dim[0] && st == TRI_OK; row += rows_at_once) {
            int64_t rows = param->dim[0] - row < rows_at_once ? param->dim[0] - row : rows_at_once;
            int64_t n = rows * width;
#pragma omp parallel for schedule(static)
            for (int64_t i = 0; i < n; i++)
                block[i] =
                    param->num_dims == 2
                        ? (float)(t->model->arch.init_range *
                                  tri_rng_normal(seed, (uint64_t)p, (uint64_t)(row * width + i)))
                    : is_norm_weight(param->role) ? 1.0f
                                                  : 0.0f;
            st = tri_flat_sink(&flat, p, row, rows, block);
        }
    }
    free(block);
    return st != TRI_OK ? st : tri_trainer_weights_loaded(t);
}
