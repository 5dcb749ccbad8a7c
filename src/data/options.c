#include "data/options.h"

#include <math.h>

#define AT(member) offsetof(struct tri_data_options, member)

static const struct tri_option options[] = {
    {.name = "sources",
     .aliases = "train_files",
     .type = TRI_OPTION_STRINGS,
     .offset = AT(sources),
     .second = AT(num_sources),
     .doc = "Files, folders, or patterns such as src/*/*.c. A .jsonl file "
            "holds one sample a line "
            "(text, or input_ids and perhaps labels, position_ids, "
            "attention_mask); any other "
            "file is one document. Of a folder the .txt and .jsonl files are "
            "read.",
     .flags = TRI_OPTION_REQUIRED | TRI_OPTION_NUMBERS},
    {.name = "eval_sources",
     .aliases = "validation_files",
     .type = TRI_OPTION_STRINGS,
     .offset = AT(eval_sources),
     .second = AT(num_eval_sources),
     .doc = "The same, for evaluation.",
     .flags = TRI_OPTION_MUTABLE},
    {.name = "format",
     .aliases = "dataset_format",
     .type = TRI_OPTION_CHOICE,
     .offset = AT(format),
     .fallback = "auto",
     .choices = "auto,messages=chat=openai,sharegpt=conversations,prompt_"
                "completion,alpaca,"
                "text=pretrain=completion,tokenized=input_ids",
     .doc = "What the lines of .jsonl files hold. auto: their keys tell, the "
            "first line of a file "
            "for all of it.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "max_length",
     .aliases = "max_length,sequence_len,cutoff_len,max_seq_length,max_seq_len,"
                "seq_length,"
                "data.max_seq_length",
     .type = TRI_OPTION_INT,
     .offset = AT(max_length),
     .fallback = "0",
     .min = 0,
     .max = INFINITY,
     .doc = "Tokens of one sequence. 0: the longest sample of the data.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "eval_max_length",
     .aliases = NULL,
     .type = TRI_OPTION_INT,
     .offset = AT(eval_max_length),
     .fallback = "0",
     .min = 0,
     .max = INFINITY,
     .doc = "Tokens of one sequence of eval_sources. 0: max_length.",
     .flags = TRI_OPTION_MUTABLE},
    {.name = "overlength",
     .aliases = "excess_length_strategy,truncation_strategy,truncation_mode",
     .type = TRI_OPTION_CHOICE,
     .offset = AT(overlength),
     .fallback = "error",
     .choices = "error=raise,drop=delete,truncate=right=keep_start,split",
     .doc = "What to do with a sample longer than max_length. Tokens lost are "
            "always reported.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "pack_samples",
     .aliases = "packing,sample_packing,data.packing",
     .type = TRI_OPTION_BOOL,
     .offset = AT(pack_samples),
     .fallback = "false",
     .doc = "Put several documents into one sequence. They never see each other.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "packing_strategy",
     .aliases = "packing_strategy",
     .type = TRI_OPTION_CHOICE,
     .offset = AT(packing_strategy),
     .fallback = "best_fit",
     .choices = "best_fit=bfd=ffd,in_order=sequential",
     .doc = "best_fit: the longest samples first, each where the least room is "
            "left over. "
            "in_order: samples follow each other as they come, and the rest of "
            "a sequence stays "
            "empty.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "group_by_length",
     .aliases = "group_by_length",
     .type = TRI_OPTION_BOOL,
     .offset = AT(group_by_length),
     .fallback = "false",
     .doc = "Without packing: samples of similar length come after each other "
            "(the 512 next ones "
            "are sorted), so that the ranks of a step take equally long.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "shuffle",
     .type = TRI_OPTION_BOOL,
     .offset = AT(shuffle),
     .fallback = "true",
     .doc = "Read the samples in an order that depends only on the seed and "
            "the epoch.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "seed",
     .aliases = "data_seed",
     .type = TRI_OPTION_INT,
     .offset = AT(seed),
     .fallback = "-1",
     .min = -1,
     .max = INFINITY,
     .doc = "Seed of the order. -1: the run's seed.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "tokenizer",
     .type = TRI_OPTION_STRING,
     .offset = AT(tokenizer),
     .fallback = "auto",
     .choices = "auto,bytes",
     .doc = "auto: the model's tokenizer.json, else bytes. bytes: one token a "
            "byte.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "mask_inputs",
     .aliases = "completion_only_loss,assistant_only_loss",
     .type = TRI_OPTION_BOOL,
     .offset = AT(mask_inputs),
     .fallback = "true",
     .doc = "Of conversations and of prompts with completions, train only what "
            "the model has to "
            "write. false: train every token of them.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "mask_history",
     .aliases = "mask_history",
     .type = TRI_OPTION_BOOL,
     .offset = AT(mask_history),
     .fallback = "false",
     .doc = "Of conversations, train only what follows the last message of the "
            "user.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "ignore_empty_think",
     .aliases = "ignore_empty_think",
     .type = TRI_OPTION_BOOL,
     .offset = AT(ignore_empty_think),
     .fallback = "false",
     .doc = "Do not train an empty <think></think> block that the template "
            "writes.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "roles_to_train",
     .aliases = "roles_to_train",
     .type = TRI_OPTION_STRINGS,
     .offset = AT(roles_to_train),
     .second = AT(num_roles_to_train),
     .doc = "Roles whose messages are trained; none: assistant. A message's "
            "own train, loss or "
            "weight decides over its role.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "chat_template",
     .aliases = "chat_template,chat_template_path,chat_template_jinja",
     .type = TRI_OPTION_STRING,
     .offset = AT(chat_template),
     .fallback = "auto",
     .doc = "auto: the model's own (chat_template.jinja, or chat_template in "
            "tokenizer_config.json). chatml, alpaca: these well-known ones. "
            "Else a Jinja file.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "chat_template_kwargs",
     .aliases = "chat_template_kwargs",
     .type = TRI_OPTION_MAP,
     .offset = AT(chat_template_kwargs),
     .doc = "Variables for the chat template, such as {enable_thinking: "
            "false}. A line may have "
            "its own in a column of this name.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "chat_date",
     .type = TRI_OPTION_STRING,
     .offset = AT(chat_date),
     .fallback = "2024-07-26",
     .doc = "The date that chat templates write (strftime_now). It is fixed, "
            "so that a run gives "
            "the same tokens on every day.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "add_bos",
     .type = TRI_OPTION_BOOL,
     .offset = AT(add_bos),
     .fallback = "true",
     .doc = "Begin each text document with the tokenizer's first token, when "
            "it has one and the "
            "text does not begin with it.",
     .flags = TRI_OPTION_NUMBERS},
    {.name = "add_eos",
     .type = TRI_OPTION_BOOL,
     .offset = AT(add_eos),
     .fallback = "true",
     .doc = "End each text document with the tokenizer's last token, when it "
            "has one and the text "
            "does not end with it.",
     .flags = TRI_OPTION_NUMBERS},
};

const struct tri_option_table tri_data_option_table = {"data", options,
                                                       sizeof options / sizeof *options};
