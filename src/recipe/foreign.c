/* Keys of ArcticTraining, DeepSpeed, Hugging Face and Axolotl recipes that Trireme knows but does
 * not honour. A value that asks for nothing is accepted and listed in the dump; one that asks for
 * something is refused with the reason. Nothing is dropped silently. */
#include <string.h>
#include <strings.h>

#include "recipe/private.h"

#define NO_RANKS                                                                                   \
    "one process trains so far; leave it out or set it to 1 (sharding over processes is planned)"
#define NO_FSDP "write zero_stage: 3, which divides the same things among the ranks"
#define NO_LOGGER                                                                                  \
    "there is no such logger; turn it off (report_to: [csv, tensorboard] writes files of metrics)"
#define NO_ADAPTER "adapters (LoRA) are not there yet: all parameters are trained; leave it out"
#define NO_HALF    "float16 training is not there; use model.dtype: bfloat16 or float32"
#define NO_OFFLOAD "offload to host memory is not there yet; set it to false"
#define TRAIN_ALL  "write data.mask_inputs: false to train prompts and questions too"
#define AUTOMATIC  "it needs no setting here"
#define LAUNCHER   "the launcher's own key"

static const struct foreign table[] = {
    /* ArcticTraining */
    {"code", "*", "Trireme loads no Python code"},
    {"skip_validation", "false", "a recipe is always checked; leave it out"},
    {"expert_parallel_size", "1,0", NO_RANKS},
    {"arctic_moe", "false", "mixtures of experts are not there yet"},
    {"activation_checkpoint_cpu_offload", "false", NO_OFFLOAD},
    {"activation_offloading", "false", NO_OFFLOAD},
    {"offload_fraction", "0", NO_OFFLOAD},
    {"fpdt.offload", "false", NO_OFFLOAD},
    {"tiled_loss", "true", "the loss is always computed in tiles; leave it out"},
    {"exit_iteration_this_run", "0", "use exit_iteration, which counts from the first step"},
    {"min_iterations", "0", "use epochs or train_iters to read the data more than once"},
    {"eval_log_iter_interval", "*", "every evaluation is logged"},
    {"train_log_metrics_path", "*", "metrics go to metrics.jsonl in the output folder"},
    {"mem_profiler", "none", "use `trireme rehearse` to see what a step allocates"},
    {"mem_profiler_dir", "*", "there is no memory profiler"},
    {"mem_profiler_max_entries", "*", "there is no memory profiler"},
    {"kill_switch_path", "*", "send SIGTERM instead: the run saves and ends"},
    {"model.type", "huggingface", "there is one kind of model, with our own kernels; leave it out"},
    {"model.save_name", "*", "the model is saved in checkpoint.output_dir"},
    {"model.peft_config", "", NO_ADAPTER},
    {"data.num_proc", "*", AUTOMATIC},
    {"data.dl_num_workers", "*", AUTOMATIC},
    {"data.cache_fs_type", "*", "any file system that can map and lock files will do"},
    {"data.fail_on_missing_cache", "false", "write data.cache: require"},
    {"data.train_eval_split", "", "give data.eval_sources of their own"},
    {"data.div_length", "*", "any length works; nothing is padded to a multiple"},
    {"data.pad_to", "div_length,none", "nothing is padded; leave it out"},
    {"data.filter_samples", "false", "use data.overlength: drop to leave out long samples"},
    {"data.drop_last", "false", "the last, shorter step is trained too; leave it out"},
    {"data.fuse_positions_prob", "0", "packed documents are always isolated"},
    {"data.repeat_to_pack_max_length", "false", "samples are never repeated within an epoch"},
    {"data.always_max_length", "false", "samples are never repeated within an epoch"},
    {"data.sources.type",
     "huggingface,huggingface_instruct,text,json,jsonl,file,files,local,auto,chat_template",
     "a source is a file, and data.format says what is in it"},
    {"data.sources.split", "train", "a source is a file or a folder of files; give that path"},
    {"data.sources.sample_ratio", "1,1.0", "write data.weights, with a number for each source"},
    {"data.sources.sample_count", "0", "give a file with the samples you want"},
    {"data.sources.sample_seed", "*", "all samples are read"},
    {"data.sources.process", "*", "samples are always made into tokens"},
    {"data.sources.content_key", "text", "the text of a line must be called text"},
    {"data.sources.role_mapping", "",
     "messages with role and content, and conversations with from and value, are read as they "
     "are"},
    {"tokenizer.name_or_path", "", "the tokenizer is that of model.name_or_path; leave it out"},
    {"tokenizer.tokenize_kwargs", "", "see data.add_bos and data.add_eos"},
    {"logger.output_dir", "*", "messages go to standard error"},
    {"logger.print_output_ranks", "*", "there is one process"},
    {"logger.file_output_ranks", "*", "messages go to standard error"},
    {"checkpoint.type", "huggingface,deepspeed", "the folder is in Hugging Face layout"},
    {"checkpoint.enabled", "true", "use checkpoint.save_every_n_steps: 0 for no saves"},
    {"checkpoint.save_every_n_epochs", "0", "use checkpoint.save_every_n_steps or ..._minutes"},
    {"wandb", "false", NO_LOGGER},

    /* DeepSpeed */
    {"deepspeed", "", "put its keys into the recipe itself"},
    {"zero_optimization.offload_optimizer.device", "none", NO_OFFLOAD},
    {"zero_optimization.offload_param.device", "none", NO_OFFLOAD},
    {"zero_optimization.*", "*", "each layer is sent while another is computed; no sizes to set"},
    {"train_batch_size", "", "give micro_batch_size and gradient_accumulation_steps"},
    {"fp16.enabled", "false", NO_HALF},
    {"fp16.*", "*", "float16 is off"},
    {"fp16", "false", NO_HALF},
    {"bf16.enabled", "false", "use model.dtype: bfloat16"},
    {"bf16.*", "*", "see model.dtype"},
    {"bf16", "false", "use model.dtype: bfloat16"},
    {"bfloat16.enabled", "false", "use model.dtype: bfloat16"},
    {"tf32", "false", "products are never rounded behind your back; leave it out"},
    {"fp8", "false", "float8 training is not there; use model.dtype"},
    {"communication_data_type", "*", "gradients are always summed in float32"},
    {"seq_parallel_communication_data_type", "*", "gradients are always summed in float32"},
    {"data_types.grad_accum_dtype", "fp32,float32", "gradients are always summed in float32"},
    {"prescale_gradients", "*", "gradients are summed over tokens, never scaled"},
    {"gradient_predivide_factor", "*", "gradients are summed over tokens, never scaled"},
    {"wall_clock_breakdown", "*", "times are in metrics.jsonl"},
    {"activation_checkpointing.cpu_checkpointing", "false", NO_OFFLOAD},
    {"activation_checkpointing.*", "*", "see activation_checkpointing: full, selective, none"},
    {"optimizer.params.*", "*", "see optimizer.*"},
    {"scheduler.type", "", "use scheduler.name"},
    {"scheduler.params.*", "", "use scheduler.warmup_steps and scheduler.min_lr_ratio"},
    {"tensorboard", "false", "write report_to: [tensorboard]"},
    {"csv_monitor", "false", "write report_to: [csv]"},
    {"comet", "false", NO_LOGGER},
    {"flops_profiler", "false", "rates are in metrics.jsonl; turn it off"},
    {"comms_logger", "false", "collectives are not logged; turn it off"},
    {"autotuning", "false", "settings are not searched for; turn it off"},
    {"compile", "false", "nothing is compiled at run time; turn it off"},
    {"curriculum_learning", "false", "lengths do not grow during a run; turn it off"},
    {"data_efficiency", "false", "lengths do not grow during a run; turn it off"},

    /* Hugging Face, TRL, Axolotl, LLaMA-Factory */
    {"adam_beta1", "", "write optimizer.betas: [beta1, beta2]"},
    {"adam_beta2", "", "write optimizer.betas: [beta1, beta2]"},
    {"gradient_checkpointing_kwargs", "", "see activation_checkpointing"},
    {"per_device_eval_batch_size", "*", "evaluation takes one sequence at a time"},
    {"eval_strategy", "no,steps", "use eval_interval"},
    {"save_strategy", "no,steps", "use checkpoint.save_every_n_steps"},
    {"logging_strategy", "steps,no", "use log_interval"},
    {"run_name", "*", "runs are told apart by their output folder"},
    {"push_to_hub", "false", "nothing is uploaded; copy the output folder yourself"},
    {"use_liger_kernel", "*", "we have our own kernels"},
    {"enable_liger_kernel", "*", "we have our own kernels"},
    {"flash_attention", "*", "we have our own kernel"},
    {"torch_compile", "false", "nothing is compiled at run time; turn it off"},
    {"pad_to_multiple_of", "*", "any length works; nothing is padded"},
    {"pad_to_sequence_len", "false", "nothing is padded; leave it out"},
    {"train_on_inputs", "false", TRAIN_ALL},
    {"train_on_prompt", "false", TRAIN_ALL},
    {"train_on_input", "false", TRAIN_ALL},
    {"train_on_eos", "turn", "the end of each trained turn is trained, and no other"},
    {"train_on_eot", "turn", "the end of each trained turn is trained, and no other"},
    {"loss_scale", "default",
     "see data.mask_history (last_round), data.mask_inputs and data.roles_to_train"},
    {"message_field_training", "train,loss,weight",
     "a message may say train, loss or weight; rename the field"},
    {"field_messages", "messages,conversations", "rename the column to messages"},
    {"loss_type", "chunked_nll,nll", "the loss is the mean over trained tokens, in tiles"},
    {"adapter", "none", NO_ADAPTER},
    {"finetuning_type", "full", NO_ADAPTER},
    {"use_peft", "false", NO_ADAPTER},
    {"load_in_4bit", "false", "quantised training is not there; set it to false"},
    {"load_in_8bit", "false", "quantised training is not there; set it to false"},
    {"peft_config", "", NO_ADAPTER},
    {"datasets", "", "use data.sources with paths of files"},
    {"dataset", "", "use data.sources with paths of files"},
    {"trust_remote_code", "*", "no Python code is ever loaded"},
    {"sequence_parallel_mode", "ulysses,auto", "there is one way to share a sequence"},
    {"parallelism_config.*", "1,true,deepspeed,torch,none", NO_RANKS},
    {"fsdp", "none", NO_FSDP},
    {"fsdp_config", "", NO_FSDP},
    {"rope_scaling", "", "write model.rope: {type, factor, original_max_position_embeddings}"},
    {"local_rank", "*", LAUNCHER},
    {"num_processes", "1", NO_RANKS},
    {"num_gpus", "1,0", NO_RANKS},
};

enum { NUM_FOREIGN = sizeof table / sizeof *table };

const struct foreign *tri_foreign_at(size_t index)
{
    return index < NUM_FOREIGN ? &table[index] : NULL;
}

static bool matches(const char *pattern, const char *key)
{
    size_t bytes = strlen(pattern);
    if (pattern[bytes - 1] == '*')
        return strncmp(pattern, key, bytes - 1) == 0;
    return strcmp(pattern, key) == 0;
}

const struct foreign *tri_foreign_find(const char *key)
{
    for (size_t i = 0; i < NUM_FOREIGN; i++)
        if (matches(table[i].key, key))
            return &table[i];
    return NULL;
}

/* Is `text` one of the words of a list by commas? */
static bool is_listed(const char *list, const char *text)
{
    for (const char *p = list; *p != '\0';) {
        size_t bytes = strcspn(p, ",");
        if (bytes == strlen(text) && strncasecmp(p, text, bytes) == 0)
            return true;
        p += bytes + (p[bytes] == ',');
    }
    return false;
}

bool tri_foreign_is_off(const struct foreign *foreign, const struct tri_yaml *value)
{
    if (strcmp(foreign->off, "*") == 0 || tri_yaml_is_null(value))
        return true;
    if (value->kind == TRI_YAML_SCALAR)
        return strcasecmp(value->text, "auto") == 0 || is_listed(foreign->off, value->text);
    if (value->kind == TRI_YAML_MAPPING)
        for (const struct tri_yaml *child = value->first; child != NULL; child = child->next)
            if (strcmp(child->key, "enable") == 0 || strcmp(child->key, "enabled") == 0)
                return child->kind == TRI_YAML_SCALAR && is_listed("false,no,off,0", child->text);
    return value->count == 0;
}

const char *tri_foreign_refused(const char *key, const char *value)
{
    /* Hugging Face's resume_from_checkpoint also takes a folder. */
    if (strcmp(key, "checkpoint.auto_resume") == 0 &&
        (strchr(value, '/') != NULL || strncmp(value, "checkpoint", 10) == 0))
        return "a run goes on from the newest checkpoint-N of checkpoint.output_dir; for another "
               "one remove those that are newer, or copy it into a new output_dir";
    static const struct {
        const char *key, *values, *why;
    } refused[] = {
        {"type", "dpo,kto,orpo,grpo,ppo,rm,reward",
         "this training is not there; causal (pretrain) and sft are"},
        {"model.attn_implementation", "eager,paged|eager",
         "it needs a mask of length x length, which no long sequence can have; write sdpa, or "
         "leave the key out: our kernel gives the same numbers"},
        {"model.dtype", "float16,fp16,half,torch.float16", NO_HALF},
        {"report_to",
         "wandb,mlflow,comet,comet_ml,swanlab,clearml,neptune,trackio,azure_ml,dagshub", NO_LOGGER},
        {"data.packing_strategy", "wrapped,bfd_split",
         "it cuts documents apart; write data.overlength: split, which cuts only those that are "
         "too long, and best_fit"},
        {"data.tokenizer", "sentencepiece,tiktoken",
         "there is no such tokenizer; auto reads the model's tokenizer.json"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(refused[i].key, key) == 0 && is_listed(refused[i].values, value))
            return refused[i].why;
    return NULL;
}
