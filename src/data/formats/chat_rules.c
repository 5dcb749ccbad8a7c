/* The chat template of a run, and what the recipe says about it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/hash.h"
#include "data/formats/chat.h"

enum { TEMPLATE_BYTES = 1 << 20 };

/* Templates that can be named: for models that come without one. */
static const struct {
    const char *name, *text;
} named[] = {
    {"chatml", "{% for message in messages %}"
               "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
               "'\\n' }}"
               "{% endfor %}"
               "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
    /* Taori et al. 2023, in the layout for several turns that LLaMA-Factory gives it. */
    {"alpaca",
     "{{ bos_token }}"
     "{% for message in messages %}"
     "{% if message['role'] == 'system' %}{{ message['content'] }}"
     "{% elif message['role'] == 'user' %}"
     "{% if loop.first %}{{ 'Below is an instruction that describes a task. Write a response that "
     "appropriately completes the request.' }}{% endif %}"
     "{{ '\\n\\n### Instruction:\\n' + message['content'] + '\\n\\n### Response:\\n' }}"
     "{% elif message['role'] == 'assistant' %}{{ message['content'] }}{{ eos_token }}"
     "{% else %}{{ raise_exception('alpaca has no turn of the role ' + message['role']) }}"
     "{% endif %}{% endfor %}"},
};

static const char *named_text(const char *name)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(named[i].name, name) == 0)
            return named[i].text;
    return NULL;
}

static enum tri_status no_template(void)
{
    return tri_fail(TRI_INVALID,
                    "this is a conversation, and there is no model whose chat template "
                    "could be used: set data.chat_template to a file or to chatml");
}

static enum tri_status open_template(const char *choice, const char *folder,
                                     struct tri_chat_template **out)
{
    const bool own = !choice || strcmp(choice, "auto") == 0;
    if (own)
        return folder ? tri_chat_load(folder, out) : no_template();
    json_t *tokens = NULL;
    char *file = NULL;
    const char *text = named_text(choice);
    size_t bytes = text ? strlen(text) : 0;
    enum tri_status st = TRI_OK;
    if (!text) {
        st = tri_file_read(choice, TEMPLATE_BYTES, &file, &bytes);
        text = file;
        if (st != TRI_OK)
            tri_error_prefix("data.chat_template (auto, chatml, alpaca, or the path of a Jinja "
                             "file)");
    }
    if (st == TRI_OK && folder)
        st = tri_chat_tokens(folder, &tokens);
    if (st == TRI_OK)
        st = tri_chat_open(choice, text, bytes, tokens, out);
    json_decref(tokens);
    free(file);
    return st;
}

/* YYYY-MM-DD to seconds since 1970. */
static enum tri_status read_date(const char *text, int64_t *out)
{
    struct tm date = {0};
    const char *end = text ? strptime(text, "%Y-%m-%d", &date) : NULL;
    if (!end || *end != '\0')
        return tri_fail(TRI_INVALID, "data.chat_date is \"%s\": write it as 2024-07-26",
                        text ? text : "");
    *out = (int64_t)timegm(&date);
    return TRI_OK;
}

static enum tri_status read_options(const struct tri_data_options *options,
                                    struct tri_chat_rules *rules)
{
    rules->options = (struct tri_chat_options){
        .roles = (const char *const *)options->roles_to_train,
        .num_roles = (size_t)options->num_roles_to_train,
        .last_round = options->mask_history,
        .ignore_empty_think = options->ignore_empty_think,
    };
    if (options->num_roles_to_train == 0)
        rules->options.roles = NULL;
    if (options->chat_date)
        TRI_TRY(read_date(options->chat_date, &rules->options.now));
    if (!options->chat_template_kwargs)
        return TRI_OK;
    TRI_TRY(tri_json_parse("data.chat_template_kwargs", options->chat_template_kwargs,
                           strlen(options->chat_template_kwargs), &rules->variables));
    rules->options.variables = rules->variables;
    return TRI_OK;
}

static uint64_t identify(const struct tri_data_options *options, const struct tri_chat_rules *rules)
{
    uint64_t hash = tri_hash_word(TRI_HASH_START, tri_chat_identity(rules->chat));
    const uint64_t words[] = {options->mask_inputs, rules->options.last_round,
                              rules->options.ignore_empty_think, (uint64_t)rules->options.now,
                              rules->options.num_roles};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = tri_hash_word(hash, words[i]);
    for (size_t i = 0; i < rules->options.num_roles; i++)
        hash = tri_hash_bytes(hash, rules->options.roles[i], strlen(rules->options.roles[i]) + 1);
    const char *more = options->chat_template_kwargs ? options->chat_template_kwargs : "";
    return tri_hash_bytes(hash, more, strlen(more));
}

enum tri_status tri_chat_rules_open(const struct tri_data_options *options,
                                    const char *model_folder, struct tri_chat_rules **out)
{
    struct tri_chat_rules *rules = calloc(1, sizeof *rules);
    if (!rules)
        return tri_fail(TRI_NOMEM, "no memory for a chat template");
    enum tri_status st = read_options(options, rules);
    if (st == TRI_OK) {
        rules->status = open_template(options->chat_template, model_folder, &rules->chat);
        if (rules->status == TRI_NOMEM)
            st = TRI_NOMEM;
        else if (rules->status != TRI_OK && !(rules->reason = strdup(tri_error_text())))
            st = tri_fail(TRI_NOMEM, "no memory for a chat template");
        else if (rules->status != TRI_OK)
            tri_error_clear();
        else
            rules->identity = identify(options, rules);
    }
    if (st != TRI_OK) {
        tri_chat_rules_close(rules);
        return st;
    }
    *out = rules;
    return TRI_OK;
}

void tri_chat_rules_close(struct tri_chat_rules *rules)
{
    if (!rules)
        return;
    tri_chat_close(rules->chat);
    json_decref(rules->variables);
    free(rules->reason);
    free(rules);
}
