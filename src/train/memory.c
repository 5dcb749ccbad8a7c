#include "train/memory.h"

#include <stdlib.h>
#include <string.h>

#include "backend/dry/dry.h"
#include "comm/self/self.h"

static enum tri_status make_document(int64_t tokens, struct tri_batch *out)
{
    TRI_TRY(tri_batch_open(tokens, out));
    out->num_tokens = tokens;
    memset(out->ids, 0, (size_t)tokens * sizeof *out->ids);
    memset(out->labels, 0, (size_t)tokens * sizeof *out->labels);
    for (int64_t t = 0; t < tokens; t++)
        out->positions[t] = t;
    return tri_batch_finish(out);
}

enum tri_status tri_memory_step(struct tri_trainer *trainer, int64_t tokens, int64_t micro_batches,
                                uint64_t *trace)
{
    enum tri_status st;
    struct tri_batch document;
    TRI_TRY(make_document(tokens, &document));
    /* All micro-batches are the same document. */
    struct tri_batch *batches = malloc((size_t)micro_batches * sizeof *batches);
    if (batches == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for %lld micro-batches", (long long)micro_batches);
        goto close_document;
    }
    for (int64_t i = 0; i < micro_batches; i++)
        batches[i] = document;
    tri_arena_restart_trace(trainer->exec.arena);
    if (trainer->zero->grads != NULL) {
        struct tri_step_stats stats;
        /* Somebody else may be the one who updates: then there is nothing to update with. */
        st = trainer->optimizer.m != NULL
                 ? tri_train_step(trainer, batches, micro_batches, 0.0, &stats)
                 : tri_train_gradients(trainer, batches, micro_batches, &stats);
    } else {
        double loss;
        int64_t trained;
        st = tri_train_eval(trainer, &document, &loss, &trained);
    }
    *trace = tri_arena_trace(trainer->exec.arena);
    free(batches);
close_document:
    tri_batch_close(&document);
    return st;
}

static void sort(void *ctx, const char *name, size_t bytes)
{
    struct tri_memory_plan *plan = ctx;
    if (strcmp(name, "weights") == 0)
        plan->weights += bytes;
    else if (strcmp(name, "gradients") == 0)
        plan->gradients += bytes;
    else
        plan->optimizer += bytes;
}

/* Put a communicator that talks to nobody in the place of a real one. */
static enum tri_status silence(struct tri_comm **comm)
{
    if (*comm == NULL)
        return TRI_OK;
    return tri_comm_dry((*comm)->rank, (*comm)->size, NULL, comm);
}

enum tri_status tri_memory_count(const struct tri_trainer_config *config, int64_t tokens,
                                 int64_t micro_batches, struct tri_memory_plan *out)
{
    enum tri_status st;
    struct tri_backend *dry = NULL;
    struct tri_trainer *trainer = NULL;
    struct tri_memory_plan plan = {0};
    struct tri_trainer_config counting = *config;
    TRI_TRY(silence(&counting.world));
    TRI_TRY_GOTO(st, silence(&counting.sequence), close_world);
    TRI_TRY_GOTO(st, tri_dry_open(config->backend, TRI_DRY_COUNT, &dry), close_sequence);
    counting.backend = dry;
    counting.memory = NULL;
    counting.capacity = (size_t)1 << 46; /* addresses only */
    counting.progress.report = NULL;
    TRI_TRY_GOTO(st, tri_trainer_open(&counting, &trainer), close_dry);
    tri_arena_visit(trainer->exec.arena, sort, &plan);
    TRI_TRY_GOTO(st, tri_memory_step(trainer, tokens, micro_batches, &plan.trace), close_trainer);
    plan.total = tri_arena_peak(trainer->exec.arena);
    plan.step = plan.total - tri_arena_used(trainer->exec.arena);
    *out = plan;
close_trainer:
    tri_trainer_close(trainer);
close_dry:
    tri_dry_close(dry);
close_sequence:
    tri_comm_close(counting.sequence);
close_world:
    tri_comm_close(counting.world);
    return st;
}
