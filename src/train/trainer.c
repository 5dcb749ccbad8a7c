#include "train/trainer.h"

#include <stdlib.h>

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
    t->threads = (int)config->pass->threads;
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
