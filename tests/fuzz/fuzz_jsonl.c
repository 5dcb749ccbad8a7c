/* A line of JSONL, of every format: whatever it holds, it is refused in one line, or every cut of
 * it is a batch. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/batch.h"
#include "data/formats/chat.h"
#include "data/sample.h"
#include "fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { VOCAB = 300, MAX_TOKENS = 1 << 16 };

/* Tokens [first, first + count) make a batch that agrees with what was measured. */
static void check_cut(const struct tri_sample *sample, int64_t first, int64_t count,
                      struct tri_batch *batch)
{
    int64_t documents, trained;
    tri_sample_measure(sample, first, count, &documents, &trained);
    CHECK(tri_sample_take(sample, first, count, batch->ids, batch->labels, batch->positions) ==
          TRI_OK);
    batch->num_tokens = count;
    CHECK(tri_batch_finish(batch) == TRI_OK);
    CHECK(batch->num_docs == documents);
    CHECK(batch->num_trained == trained);
    for (int64_t t = 0; t < count; t++) {
        CHECK(batch->ids[t] >= 0 && batch->ids[t] < VOCAB);
        CHECK(batch->labels[t] == TRI_IGNORE_LABEL ||
              (batch->labels[t] >= 0 && batch->labels[t] < VOCAB));
    }
    for (int64_t d = 0; d < batch->num_docs; d++)
        CHECK(batch->positions[batch->doc_begin[d]] == 0);
}

/* A template that looks at all that a conversation may have. */
static const char template_text[] =
    "{% for t in tools %}[{{ t }}]{% endfor %}{% for m in messages %}<{{ m.role }}>"
    "{{ m.content | trim }}{% for c in m.tool_calls %}{{ c.function.name }}"
    "{{ c.function.arguments | tojson }}{% endfor %}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}{{ who }}";

static const struct tri_chat_rules *chat_rules(bool from_file)
{
    static struct tri_chat_rules *rules[2];
    char path[] = "/tmp/fuzz-jsonl-XXXXXX";
    if (rules[from_file])
        return rules[from_file];
    struct tri_data_options options = {.chat_template = (char *)(uintptr_t) "chatml",
                                       .ignore_empty_think = from_file};
    if (from_file) {
        const int fd = mkstemp(path);
        CHECK(fd >= 0);
        CHECK(write(fd, template_text, sizeof template_text - 1) > 0);
        CHECK(close(fd) == 0);
        options.chat_template = path;
    }
    CHECK(tri_chat_rules_open(&options, NULL, &rules[from_file]) == TRI_OK);
    CHECK(rules[from_file]->chat);
    if (from_file)
        CHECK(unlink(path) == 0);
    return rules[from_file];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct tri_tokenizer *tokenizer;
    static struct tri_batch batch;
    static struct tri_columns columns;
    if (!tokenizer) {
        const struct tri_token_ids model = {.vocab = VOCAB, .bos = 256, .eos = 257, .pad = -1};
        CHECK(tri_byte_tokenizer_open(&model, &tokenizer) == TRI_OK);
        CHECK(tri_batch_open(MAX_TOKENS, &batch) == TRI_OK);
    }
    columns.count = 0;
    const struct tri_sample_rules rules = {
        .tokenizer = tokenizer,
        .vocab = VOCAB,
        .add_bos = bytes % 2 == 1,
        .add_eos = bytes % 3 == 1,
        .train_inputs = bytes % 5 == 1,
        .chat = chat_rules(bytes % 2 == 0),
        .columns = &columns,
    };
    struct tri_sample sample;
    if (tri_sample_from_line(&rules, (const char *)data, bytes, &sample) != TRI_OK) {
        check_error();
        return 0;
    }
    CHECK(sample.tokens >= 1);
    if (sample.tokens <= MAX_TOKENS) {
        check_cut(&sample, 0, sample.tokens, &batch);
        const int64_t piece = 1 + (int64_t)(bytes % 7);
        for (int64_t first = 0; first < sample.tokens; first += piece) {
            const int64_t left = sample.tokens - first;
            check_cut(&sample, first, left < piece ? left : piece, &batch);
        }
    }
    tri_sample_close(&sample);
    return 0;
}
