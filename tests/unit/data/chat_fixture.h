/* Conversations read as samples: what of them is trained, shown in the text. */
#ifndef TESTS_UNIT_DATA_CHAT_FIXTURE_H
#define TESTS_UNIT_DATA_CHAT_FIXTURE_H

#include "unit/scratch.h"

#include "data/batch.h"
#include "data/formats/chat.h"
#include "data/sample.h"

enum { CHAT_VOCAB = 151936 };

static struct tri_data_options chat_options;
static struct tri_sample_rules chat_rules;

/* Options as a recipe without any of them gives, and a named template. */
static inline void chat_defaults(const char *name)
{
    chat_options = (struct tri_data_options){
        .mask_inputs = true,
        .chat_template = (char *)(uintptr_t)name,
        .chat_date = (char *)(uintptr_t) "2024-07-26",
    };
}

/* Rules of the options at hand; `folder` has a tokenizer, NULL: bytes. */
static inline void chat_open(const char *folder)
{
    const struct tri_token_ids model = {.vocab = CHAT_VOCAB, .bos = 256, .eos = 257, .pad = -1};
    struct tri_tokenizer *tokenizer;
    struct tri_chat_rules *rules;
    if (tri_tokenizer_open("auto", folder, &model, &tokenizer) != TRI_OK ||
        tri_chat_rules_open(&chat_options, folder, &rules) != TRI_OK)
        fail_msg("%s", tri_error_text());
    chat_rules = (struct tri_sample_rules){.tokenizer = tokenizer,
                                           .vocab = CHAT_VOCAB,
                                           .train_inputs = !chat_options.mask_inputs,
                                           .chat = rules};
}

static inline void chat_close(void)
{
    tri_tokenizer_close((struct tri_tokenizer *)(uintptr_t)chat_rules.tokenizer);
    tri_chat_rules_close((struct tri_chat_rules *)(uintptr_t)chat_rules.chat);
}

/* The sample's text with { before and } behind each run of trained tokens; bos and eos of the byte
 * tokenizer as <s> and </s>. The caller frees it. */
static inline char *chat_shown(const struct tri_sample *sample)
{
    const size_t count = (size_t)sample->tokens;
    int32_t *ids = calloc(count, sizeof *ids), *labels = calloc(count, sizeof *labels);
    int64_t *positions = calloc(count, sizeof *positions);
    struct tri_text text = {0};
    bool trained = false;
    assert_true(ids && labels && positions);
    assert_int_equal(tri_sample_take(sample, 0, sample->tokens, ids, labels, positions), TRI_OK);
    for (size_t t = 0; t < count; t++) {
        assert_true(labels[t] == TRI_IGNORE_LABEL || labels[t] == ids[t]);
        assert_int_equal(positions[t], t);
        if (trained != (labels[t] >= 0))
            tri_text_add(&text, trained ? "}" : "{", 1);
        trained = labels[t] >= 0;
        const bool bytes = strcmp(chat_rules.tokenizer->name, "bytes") == 0;
        if (bytes && ids[t] >= 256)
            tri_text_add(&text, ids[t] == 256 ? "<s>" : "</s>", ids[t] == 256 ? 3 : 4);
        else
            assert_int_equal(
                chat_rules.tokenizer->decode(chat_rules.tokenizer, &ids[t], 1, false, &text),
                TRI_OK);
    }
    if (trained)
        tri_text_add(&text, "}", 1);
    free(ids);
    free(labels);
    free(positions);
    return text.data;
}

static inline void assert_chat(const char *line, const char *want)
{
    struct tri_sample sample;
    if (tri_sample_from_line(&chat_rules, line, strlen(line), &sample) != TRI_OK)
        fail_msg("%s: %s", line, tri_error_text());
    char *shown = chat_shown(&sample);
    assert_string_equal(shown, want);
    free(shown);
    tri_sample_close(&sample);
}

static inline void assert_no_chat(const char *line, enum tri_status status, const char *message)
{
    struct tri_sample sample;
    const enum tri_status st = tri_sample_from_line(&chat_rules, line, strlen(line), &sample);
    if (st != status || !strstr(tri_error_text(), message) || strchr(tri_error_text(), '\n'))
        fail_msg("%s: status %d, \"%s\" instead of %d, \"%s\"", line, st, tri_error_text(), status,
                 message);
}

#endif
