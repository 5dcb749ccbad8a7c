#include "verify/rehearse.h"

#include "backend/dry/dry.h"
#include "base/clock.h"
#include "base/text.h"
#include "comm/self/self.h"
#include "train/machine.h"
#include "train/run.h"

static enum tri_status check_plan(const struct tri_rehearsal *r, size_t capacity)
{
    if (r->plan.total > capacity)
        return tri_fail(TRI_NOMEM,
                        "a step over %lld tokens needs %s and %s are available: lower "
                        "data.max_length, micro_batch_size or fpdt.chunk_size",
                        (long long)r->tokens, tri_bytes((double)r->plan.total).s,
                        tri_bytes((double)capacity).s);
    return TRI_OK;
}

/* The first of the recipe's ranks, talking to nobody. */
static enum tri_status open_ranks(const struct tri_recipe *recipe, int64_t num_heads,
                                  const struct tri_backend *dry, struct tri_comm **world,
                                  struct tri_comm **sequence)
{
    int64_t ranks = recipe->train.ranks;
    int64_t shards = 1;
    if (ranks <= 1)
        return TRI_OK;
    int64_t size = tri_mesh_choose(ranks, recipe->train.sequence_parallel_size, num_heads);
    TRI_TRY(tri_mesh_shards(ranks, size, &shards));
    TRI_TRY(tri_comm_dry(0, (int)ranks, &dry->ops, world));
    return tri_comm_dry(0, (int)shards, &dry->ops, sequence);
}

/* Count with the stage of ZeRO that a run would choose: the lowest of 1 to 3 that fits. */
static enum tri_status plan_step(const struct tri_recipe *recipe, struct tri_trainer_config *config,
                                 struct tri_rehearsal *r)
{
    int choice = recipe->train.zero_stage;
    bool chooses = choice == TRI_ZERO_AUTO && config->world != NULL;
    config->zero_stage = chooses ? 1 : choice == TRI_ZERO_AUTO ? 0 : choice - TRI_ZERO_FIRST;
    for (;; config->zero_stage++) {
        TRI_TRY(tri_memory_count(config, r->tokens, recipe->train.gradient_accumulation_steps,
                                 &r->plan));
        if (!chooses || config->zero_stage == 3 || r->plan.total <= config->capacity)
            return check_plan(r, config->capacity);
    }
}

static enum tri_status rehearse(struct tri_run *run, struct tri_backend *dry,
                                struct tri_comm *world, struct tri_comm *sequence,
                                struct tri_rehearsal *r)
{
    const struct tri_recipe *recipe = run->recipe;
    struct tri_trainer_config config = {.model = run->model,
                                        .backend = run->backend,
                                        .act = run->act,
                                        .capacity =
                                            tri_machine_capacity(run->backend, &recipe->pass),
                                        .pass = &recipe->pass,
                                        .optimizer = &recipe->optimizer,
                                        .clip = recipe->train.gradient_clipping,
                                        .world = world,
                                        .sequence = sequence};
    int64_t micro = recipe->train.gradient_accumulation_steps;
    struct tri_trainer *trainer = NULL;
    double start = tri_clock();
    TRI_TRY(plan_step(recipe, &config, r));
    r->ranks = world != NULL ? world->size : 1;
    r->zero_stage = config.zero_stage;
    r->available = config.capacity;
    config.backend = dry;
    config.progress = (struct tri_pass_progress){.ctx = run, .report = tri_run_report};
    TRI_TRY(tri_trainer_open(&config, &trainer));
    enum tri_status st = tri_memory_step(trainer, r->tokens, micro, &r->trace);
    r->arena_peak = tri_arena_peak(trainer->exec.arena);
    r->rss_peak = tri_machine_peak_rss();
    r->seconds = tri_clock() - start;
    tri_trainer_close(trainer);
    return st;
}

enum tri_status tri_rehearse(struct tri_recipe *recipe, struct tri_rehearsal *out)
{
    struct tri_run *run = NULL;
    struct tri_backend *dry = NULL;
    struct tri_comm *world = NULL;
    struct tri_comm *sequence = NULL;
    struct tri_rehearsal r = {.tokens = recipe->data.max_length * recipe->train.micro_batch_size};
    if (r.tokens == 0)
        return tri_fail(TRI_INVALID, "rehearse needs a length: give data.max_length, such as "
                                     "--data.max_length 128k");
    TRI_TRY(tri_run_open_model(recipe, &run));
    enum tri_status st = tri_dry_open(run->backend, TRI_DRY_REHEARSE, &dry);
    if (st == TRI_OK)
        st = open_ranks(recipe, run->model->arch.num_heads, dry, &world, &sequence);
    if (st == TRI_OK)
        st = rehearse(run, dry, world, sequence, &r);
    tri_dry_close(dry);
    tri_comm_close(sequence);
    tri_comm_close(world);
    tri_run_close(run);
    if (st == TRI_OK)
        *out = r;
    return st;
}
