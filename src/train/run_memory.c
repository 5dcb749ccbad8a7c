/* The memory that a run takes on each rank, and the stage of ZeRO with which it fits. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "train/machine.h"
#include "train/memory.h"
#include "train/run_private.h"

/* What this rank may take: a card is its own, ranks on the CPU share the machine's memory. */
static size_t capacity_of(const struct tri_run *run)
{
    size_t bytes = tri_machine_capacity(run->backend, &run->recipe->pass);
    bool shared = run->mesh.world != NULL && strcmp(run->backend->name, "cuda") != 0;
    return shared ? bytes / (size_t)run->mesh.world->size : bytes;
}

struct tri_trainer_config tri_run_trainer_config(struct tri_run *run, enum tri_run_purpose purpose)
{
    const struct tri_recipe *r = run->recipe;
    return (struct tri_trainer_config){
        .model = run->model,
        .backend = run->backend,
        .act = run->act,
        .capacity = capacity_of(run),
        .pass = &r->pass,
        .optimizer = purpose == TRI_RUN_TRAIN ? &r->optimizer : NULL,
        .clip = r->train.gradient_clipping,
        .progress = {.ctx = run, .report = tri_run_report},
        .world = run->mesh.world,
        .sequence = run->mesh.sequence,
        .zero_stage = run->zero_stage,
        .eval_whole = r->train.disable_in_eval,
    };
}

/* What the longest step and the longest evaluation take. */
struct plan {
    struct tri_memory_plan train, eval;
    size_t step, total, capacity;
};

static enum tri_status count_memory(struct tri_run *run, enum tri_run_purpose purpose,
                                    struct plan *out)
{
    struct tri_trainer_config config = tri_run_trainer_config(run, purpose);
    struct plan p = {.capacity = config.capacity};
    if (purpose == TRI_RUN_TRAIN)
        TRI_TRY(tri_memory_count(
            &config, tri_dataset_max_sequence(run->data) * run->recipe->train.micro_batch_size, 1,
            &p.train));
    if (run->eval != NULL) {
        config.optimizer = NULL;
        TRI_TRY(tri_memory_count(&config, tri_dataset_max_sequence(run->eval), 1, &p.eval));
    }
    p.step = p.train.step > p.eval.step ? p.train.step : p.eval.step;
    p.total =
        (purpose == TRI_RUN_TRAIN ? p.train.total - p.train.step : p.eval.total - p.eval.step) +
        p.step;
    *out = p;
    return TRI_OK;
}

/* The lowest stage of ZeRO that fits on every rank, from the first worth having: stage 1 sends no
 * more than stage 0 does. */
static enum tri_status choose_stage(struct tri_run *run, enum tri_run_purpose purpose,
                                    struct plan *plan)
{
    enum { MOST = 3 };
    int choice = run->recipe->train.zero_stage;
    int64_t stage = choice == TRI_ZERO_AUTO ? 1 : choice - TRI_ZERO_FIRST;
    if (run->mesh.world == NULL)
        stage = 0;
    for (;; stage++) {
        run->zero_stage = (int)stage;
        TRI_TRY(count_memory(run, purpose, plan));
        if (run->mesh.world == NULL || choice != TRI_ZERO_AUTO)
            return TRI_OK;
        int64_t over = plan->total > plan->capacity;
        TRI_TRY(tri_comm_max_int(run->mesh.world, &over, 1));
        if (over == 0 || stage == MOST)
            break;
    }
    char text[8];
    snprintf(text, sizeof text, "%d", run->zero_stage);
    return tri_recipe_note(run->recipe, "zero_stage", text, "what fits in memory");
}

enum tri_status tri_run_plan_memory(struct tri_run *run, enum tri_run_purpose purpose)
{
    struct plan p = {.total = 0};
    TRI_TRY(choose_stage(run, purpose, &p));
    run->planned_bytes = p.total;
    tri_info(
        "memory of a rank: %s = weights %s + gradients %s + optimizer %s + step %s; %s available",
        tri_bytes((double)p.total).s,
        tri_bytes((double)(purpose == TRI_RUN_TRAIN ? p.train.weights : p.eval.weights)).s,
        tri_bytes((double)p.train.gradients).s, tri_bytes((double)p.train.optimizer).s,
        tri_bytes((double)p.step).s, tri_bytes((double)p.capacity).s);
    if (run->mesh.world != NULL)
        tri_info("ZeRO stage %d over %d ranks", run->zero_stage, run->mesh.world->size);
    if (p.total <= p.capacity)
        return TRI_OK;
    const char *advice = "most of it is weights and optimizer state: use a smaller model";
    if (p.step > p.total / 2)
        advice = "lower data.max_length, micro_batch_size or fpdt.chunk_size, or set "
                 "activation_checkpointing: full";
    else if (run->mesh.world != NULL && run->zero_stage < 3)
        advice = "set zero_stage: 3, which divides weights and optimizer state among the ranks";
    return tri_fail(TRI_NOMEM, "this run needs %s and %s are available: %s",
                    tri_bytes((double)p.total).s, tri_bytes((double)p.capacity).s, advice);
}
