#include "verify/rehearse.h"

#include "backend/dry/dry.h"
#include "base/clock.h"
#include "base/log.h"
#include "train/machine.h"
#include "train/run.h"

static enum tri_status check_plan(const struct tri_rehearsal *r, size_t capacity)
{
    if (r->plan.total > capacity)
        return tri_fail(TRI_NOMEM,
                        "a step over %lld tokens needs %.2f GiB and %.2f GiB are available: lower "
                        "data.max_length, micro_batch_size or fpdt.chunk_size",
                        (long long)r->tokens, (double)r->plan.total / 0x1p30,
                        (double)capacity / 0x1p30);
    return TRI_OK;
}

static enum tri_status rehearse(struct tri_run *run, struct tri_backend *dry,
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
                                        .clip = recipe->train.gradient_clipping};
    int64_t micro = recipe->train.gradient_accumulation_steps;
    struct tri_trainer *trainer = NULL;
    double start = tri_clock();
    TRI_TRY(tri_memory_count(&config, r->tokens, micro, &r->plan));
    TRI_TRY(check_plan(r, config.capacity));
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
    struct tri_rehearsal r = {.tokens = recipe->data.max_length * recipe->train.micro_batch_size};
    if (r.tokens == 0)
        return tri_fail(TRI_INVALID, "rehearse needs a length: give data.max_length, such as "
                                     "--data.max_length 128k");
    if (recipe->train.ranks > 1)
        tri_warn("ranks: %lld has no effect: rehearse shows one rank that holds the whole sequence",
                 (long long)recipe->train.ranks);
    TRI_TRY(tri_run_open_model(recipe, &run));
    enum tri_status st = tri_dry_open(run->backend, TRI_DRY_REHEARSE, &dry);
    if (st == TRI_OK)
        st = rehearse(run, dry, &r);
    tri_dry_close(dry);
    tri_run_close(run);
    if (st == TRI_OK)
        *out = r;
    return st;
}
