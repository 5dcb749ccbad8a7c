#include "train/trainer.h"

#include <stdlib.h>

#include "base/minmax.h"
#include "base/rng.h"

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
    struct tri_zero_config zero = {.exec = t->exec,
                                   .model = t->model,
                                   .world = t->world,
                                   .stage = config->zero_stage,
                                   .act = t->act,
                                   .stat = t->stat,
                                   .training = config->optimizer != NULL || config->gradients};
    TRI_TRY_GOTO(st, tri_zero_open(&zero, &t->zero), close_arena);
    if (config->optimizer != NULL)
        TRI_TRY_GOTO(st, tri_optimizer_open(t->exec, t->zero, config->optimizer, &t->optimizer),
                     close_zero);
    struct tri_pass_config pass = {.exec = t->exec,
                                   .model = t->model,
                                   .act = t->act,
                                   .stat = t->stat,
                                   .zero = t->zero,
                                   .sequence = config->sequence,
                                   .options = config->pass,
                                   .progress = config->progress};
    TRI_TRY_GOTO(st, tri_pass_open(&pass, &t->pass), close_zero);
    t->eval_pass = t->pass;
    if (config->eval_whole && config->sequence != NULL) {
        /* A pass of its own, so that nothing of training's has to be changed and put back. */
        pass.sequence = NULL;
        TRI_TRY_GOTO(st, tri_pass_open(&pass, &t->eval_pass), close_pass);
    }
    *out = t;
    return TRI_OK;

close_pass:
    tri_pass_close(t->pass);
close_zero:
    tri_zero_close(t->zero);
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
    if (t->eval_pass != t->pass)
        tri_pass_close(t->eval_pass);
    tri_pass_close(t->pass);
    tri_zero_close(t->zero);
    tri_arena_close(t->exec.arena);
    free(t);
}

enum tri_status tri_trainer_weights_loaded(struct tri_trainer *t)
{
    const struct tri_zero *z = t->zero;
    struct tri_own_run run;
    if (t->optimizer.master == NULL || t->optimizer.master == z->weights)
        return TRI_OK;
    for (int param = 0; tri_partition_next_run(&z->partition, &param, &run);) {
        char *to =
            (char *)z->weights + (size_t)tri_zero_weights_at(z, &run) * tri_dtype_bytes(z->act);
        char *from = (char *)t->optimizer.master + (size_t)run.own * tri_dtype_bytes(z->stat);
        TRI_TRY(t->exec.ops->copy(t->exec.stream, tri_view1(to, z->act, run.count),
                                  tri_view1(from, z->stat, run.count)));
    }
    return tri_zero_share_weights(t->zero);
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
            int64_t rows = tri_min(param->dim[0] - row, rows_at_once);
            int64_t n = rows * width;
            if (!tri_zero_holds_rows(flat.zero, &flat.buffer, p, row, rows))
                continue;
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
