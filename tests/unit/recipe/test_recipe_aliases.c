/* Keys and whole recipes of other tools: read, refused by name, or without meaning here. */
#include "unit/recipe/recipe_fixture.h"

static void reads_aliases(void **state)
{
    (void)state;
    struct tri_recipe *r = parse("model_name_or_path: m\n"
                                 "data.sources: a\n"
                                 "lr: 1e-5\n"
                                 "per_device_train_batch_size: 2\n"
                                 "max_grad_norm: 0.5\n"
                                 "sequence_len: 128ki\n"
                                 "num_train_epochs: 3\n"
                                 "max_steps: -1\n"
                                 "warmup_steps: 7\n"
                                 "lr_scheduler_type: constant_with_warmup\n"
                                 "output_dir: out\n"
                                 "save_steps: 500\n"
                                 "gradient_checkpointing: false\n"
                                 "optim: adamw_torch_fused\n"
                                 "sample_packing: true\n"
                                 "excess_length_strategy: raise\n"
                                 "torch_dtype: bf16\n"
                                 "attn_implementation: kernels-community/flash-attn3\n"
                                 "logging_steps: 10\n"
                                 "eval_steps: null\n");
    assert_string_equal(r->model.name_or_path, "m");
    assert_string_equal(r->data.sources[0], "a");
    assert_int_equal(r->train.micro_batch_size, 2);
    assert_true(r->train.gradient_clipping == 0.5);
    assert_int_equal(r->data.max_length, 131072);
    assert_true(r->train.epochs == 3);
    assert_int_equal(r->train.train_iters, 0);
    assert_int_equal(r->scheduler.warmup_steps, 7);
    assert_int_equal(r->scheduler.name, TRI_SCHEDULE_CONSTANT);
    assert_string_equal(r->checkpoint.output_dir, "out");
    assert_int_equal(r->checkpoint.save_every_n_steps, 500);
    assert_int_equal(r->pass.activation_checkpointing, TRI_REMAT_NONE);
    assert_string_equal(r->optimizer.type, "adamw");
    assert_true(r->data.pack_samples);
    assert_int_equal(r->data.overlength, TRI_OVERLENGTH_ERROR);
    assert_string_equal(r->model.dtype, "bfloat16");
    assert_string_equal(r->model.attn_implementation, "kernels-community/flash-attn3");
    dump_has_line(r, "max_length: 131072 # r.yml:6 as sequence_len");
    dump_has_line(r, "# r.yml:18 as attn_implementation; computed by Trireme's own kernel");
    tri_recipe_close(r);
}

static void reads_a_recipe_of_arctic(void **state)
{
    (void)state;
    struct tri_recipe *r = parse("type: sft\n"
                                 "micro_batch_size: 1\n"
                                 "model:\n"
                                 "  type: huggingface\n"
                                 "  name_or_path: meta-llama/Llama-3.1-8B-Instruct\n"
                                 "  attn_implementation: flash_attention_2\n"
                                 "  hf_config_kwargs: {sliding_window: 4096}\n"
                                 "data:\n"
                                 "  sources:\n"
                                 "    - a.txt\n"
                                 "    - type: huggingface\n"
                                 "      name_or_path: b.jsonl\n"
                                 "      split: train\n"
                                 "  cache_dir: /data-cache\n"
                                 "  num_proc: 16\n"
                                 "  max_length: 3_800_000\n"
                                 "tiled_mlp_compute: true\n"
                                 "activation_checkpoint_cpu_offload: false\n"
                                 "optimizer: {type: cpu_adam, lr: 1e-5, betas: [0.9, 0.95]}\n"
                                 "scheduler: {name: cosine, warmup_ratio: 10%}\n"
                                 "checkpoint:\n"
                                 "  - type: huggingface\n"
                                 "    output_dir: out\n"
                                 "    save_every_n_steps: 300\n"
                                 "    save_end_of_training: true\n"
                                 "    auto_resume: false\n"
                                 "deepspeed:\n"
                                 "  zero_optimization: {stage: 3, overlap_comm: true}\n"
                                 "  seq_parallel_communication_data_type: bf16\n"
                                 "wandb: {enable: false, project: x}\n");
    assert_int_equal(r->data.num_sources, 2);
    assert_string_equal(r->data.sources[1], "b.jsonl");
    assert_int_equal(r->data.max_length, 3800000);
    assert_string_equal(r->optimizer.type, "adamw");
    assert_true(r->optimizer.beta2 == 0.95);
    assert_true(r->scheduler.warmup_ratio == 0.1);
    assert_string_equal(r->checkpoint.output_dir, "out");
    assert_int_equal(r->checkpoint.save_every_n_steps, 300);
    assert_false(r->checkpoint.auto_resume);
    assert_string_equal(r->model.hf_config_kwargs, "{\"sliding_window\": 4096}");
    dump_has(r, "# Read, but without effect:\n#   r.yml:4: model.type: no effect\n");
    dump_has(r, "#   r.yml:15: data.num_proc: no effect: it needs no setting here\n");
    dump_has(r, "zero_optimization.overlap_comm: no effect");
    assert_int_equal(r->train.zero_stage, TRI_ZERO_FIRST + 3);
    tri_recipe_close(r);
}

static void refuses_what_it_cannot_honour(void **state)
{
    (void)state;
    line_fails("model.peft_config: {peft_type: lora}",
               "r.yml:4: model.peft_config: not supported: adapters (LoRA)");
    line_fails("fp16: {enabled: true}", "r.yml:4: fp16: not supported");
    line_fails("wandb: {enable: true}", "wandb: not supported: there is no such logger");
    line_fails("wandb: {project: x}", "wandb: not supported");
    line_fails("type: dpo", "r.yml:4: type: 'dpo' is not supported");
    line_fails("deepspeed: {zero_optimization: {stage: 4}}", "expected one of auto, 0, 1, 2, 3");
    line_fails("fsdp: full_shard", "fsdp: not supported: write zero_stage: 3");
    line_fails("zero_optimization.offload_optimizer.device: cpu", "not supported");
    line_fails("activation_checkpoint_cpu_offload: true", "not supported: offload");
    line_fails("model.type: liger", "model.type: not supported");
    line_fails("attn_implementation: eager", "'eager' is not supported: it needs a mask");
    line_fails("attn_implementation: paged|eager", "'paged|eager' is not supported");
    line_fails("resume_from_checkpoint: out/checkpoint-7",
               "'out/checkpoint-7' is not supported: a run goes on from the newest checkpoint-N");
    line_fails("resume_from_checkpoint: maybe", "expected true or false");
    line_fails("optimizer.type: sgd", "expected one of adamw");
    line_fails("bf16: true", "use model.dtype: bfloat16");
    line_fails("deepspeed: ds.json", "put its keys into the recipe");
    line_fails("deepspeed: {frob: 1}", "unknown key");
    line_fails("data.eval_sources: [{type: huggingface_vlm, name_or_path: x}]",
               "data.sources.type: not supported: a source is a file, and data.format says");
    line_fails("data.eval_sources: [{type: huggingface}]", "needs name_or_path");
    line_fails("checkpoint: [{output_dir: a}, {output_dir: b}]", "expected one mapping");
}

static void accepts_values_that_ask_for_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "model.peft_config: null",
        "fp16: {enabled: false, loss_scale: 0}",
        "fp16: auto",
        "wandb: {enable: false}",
        "zero_optimization: {stage: 0, offload_optimizer: {device: none, pin_memory: true}}",
        "activation_checkpoint_cpu_offload: false",
        "report_to: none",
        "checkpoint: []",
        "checkpoint:",
        "scheduler:",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        tri_recipe_close(line_parses(lines[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_aliases),
        cmocka_unit_test(reads_a_recipe_of_arctic),
        cmocka_unit_test(refuses_what_it_cannot_honour),
        cmocka_unit_test(accepts_values_that_ask_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
