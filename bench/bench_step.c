/* Speed and memory of a training step up to the gradients: forward, loss, backward, norm.
 *
 *   trireme_bench_step CONFIG.json TOKENS [--NAME VALUE ...]
 *
 * CONFIG.json describes the model, whose weights are random; TOKENS random ids are one document.
 * --calls N: steps that are timed after one that is not (3). Every other NAME is an option of the
 * pass: backend, activation_checkpointing, fpdt.chunk_size, ... compare_step.py holds the result
 * against Transformers. One line comes out, for it to read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "common.h"
#include "train/machine.h"
#include "train/memory.h"

enum { MAX_CALLS = 100 };

static enum tri_status set_option(struct tri_pass_options *pass, const char *name,
                                  const char *value)
{
    const struct tri_option *option = tri_option_find(&tri_pass_option_table, name);
    if (option == NULL)
        return tri_fail(TRI_INVALID, "unknown option --%s", name);
    return tri_option_set(option, &value, 1, pass);
}

/* One document of random ids. */
static struct tri_batch make_batch(int64_t tokens, int64_t vocab)
{
    struct tri_batch batch;
    bench_check(tri_batch_open(tokens, &batch));
    batch.num_tokens = tokens;
    for (int64_t t = 0; t < tokens; t++) {
        batch.ids[t] = (int32_t)(tri_rng_uniform(1, 0, (uint64_t)t) * (double)vocab);
        batch.labels[t] = batch.ids[t];
        batch.positions[t] = t;
    }
    bench_check(tri_batch_finish(&batch));
    return batch;
}

static void run(struct tri_trainer *trainer, const struct tri_batch *batch, int calls,
                const struct tri_memory_plan *plan, double roof)
{
    double seconds[MAX_CALLS];
    struct tri_step_stats stats;
    bench_check(tri_train_gradients(trainer, batch, 1, &stats));
    for (int i = 0; i < calls; i++) {
        double start = tri_clock();
        bench_check(tri_train_gradients(trainer, batch, 1, &stats));
        seconds[i] = tri_clock() - start;
    }
    double s = bench_median(seconds, calls);
    printf("%lld tokens: %.4f s (forward %.4f, loss and backward %.4f), %.0f tokens/s, %.1f model "
           "TFLOP/s, %.1f ran TFLOP/s, %.1f %% MFU of a product's %.1f TFLOP/s | step memory %.3f "
           "GiB, %.1f KB a token | loss %.6f gradient norm %.6f\n",
           (long long)batch->num_tokens, s, stats.forward_s, stats.backward_s,
           (double)batch->num_tokens / s, stats.model_flops / s * 1e-12,
           stats.ran_flops / s * 1e-12, 100.0 * stats.model_flops / s / roof, roof * 1e-12,
           (double)plan->step / 0x1p30, (double)plan->step / (double)batch->num_tokens * 1e-3,
           stats.loss, stats.grad_norm);
}

int main(int argc, char **argv)
{
    int64_t tokens, calls = 3;
    struct tri_pass_options pass;
    struct tri_optim_options optimizer;
    bench_check(tri_option_defaults(&tri_pass_option_table, &pass));
    bench_check(tri_option_defaults(&tri_optim_option_table, &optimizer));
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: trireme_bench_step CONFIG.json TOKENS [--NAME VALUE ...]\n");
        return 1;
    }
    bench_check(tri_text_int(argv[2], &tokens));
    for (int i = 3; i < argc; i += 2) {
        const char *name = argv[i] + (strncmp(argv[i], "--", 2) == 0 ? 2 : 0);
        const char *value = argv[i + 1];
        if (strcmp(name, "calls") == 0)
            bench_check(tri_text_int(value, &calls));
        else
            bench_check(set_option(&pass, name, value));
    }
    calls = calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : calls;

    struct tri_model *model;
    struct tri_trainer *trainer;
    struct tri_memory_plan plan;
    struct tri_trainer_config config = {.pass = &pass, .optimizer = &optimizer};
    double roof;
    bench_check(tri_model_open(argv[1], NULL, &model));
    bench_check(tri_machine_open(&pass, &config.backend));
    bench_check(tri_machine_dtype(config.backend, NULL, &config.act));
    bench_check(tri_machine_measure_roof(config.backend, config.act, 0.2, &roof));
    config.model = model;
    config.capacity = tri_machine_capacity(config.backend, &pass);
    bench_check(tri_memory_count(&config, tokens, 1, &plan));
    bench_check(tri_trainer_open(&config, &trainer));
    bench_check(tri_trainer_init(trainer, 1, NULL));
    struct tri_batch batch = make_batch(tokens, model->arch.vocab);
    run(trainer, &batch, (int)calls, &plan, roof);

    tri_batch_close(&batch);
    tri_trainer_close(trainer);
    tri_machine_close(config.backend);
    tri_model_close(model);
    tri_option_clear(&tri_pass_option_table, &pass);
    tri_option_clear(&tri_optim_option_table, &optimizer);
    return 0;
}
