#include "data/sample.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/batch.h"
#include "data/options.h"

/* Is the token at `place` of a text this one? A template may have written what add_bos and add_eos
 * are about, and twice is wrong. */
static enum tri_status has_token(const struct tri_tokenizer *tokenizer, const char *text,
                                 size_t bytes, int64_t place, int64_t id, bool *has)
{
    int32_t found;
    TRI_TRY(tokenizer->encode(tokenizer, text, bytes, place, 1, &found));
    *has = found == id;
    return TRI_OK;
}

enum tri_status tri_sample_from_text(const struct tri_sample_rules *rules, const char *text,
                                     size_t bytes, struct tri_sample *out)
{
    const struct tri_tokenizer *tokenizer = rules->tokenizer;
    if (!tokenizer)
        return tri_fail(TRI_INVALID, "this is text, and there is no tokenizer: give \"input_ids\"");
    if (bytes == 0)
        return tri_fail(TRI_INVALID, "empty document: remove it");
    int64_t tokens;
    TRI_TRY(tokenizer->count(tokenizer, text, bytes, &tokens));
    const bool bos = rules->add_bos && tokenizer->bos >= 0;
    const bool eos = rules->add_eos && tokenizer->eos >= 0;
    bool has_bos = false, has_eos = false;
    if (bos && tokens > 0)
        TRI_TRY(has_token(tokenizer, text, bytes, 0, tokenizer->bos, &has_bos));
    if (eos && tokens > 0)
        TRI_TRY(has_token(tokenizer, text, bytes, tokens - 1, tokenizer->eos, &has_eos));
    *out = (struct tri_sample){
        .rules = rules,
        .tokens = tokens + (bos && !has_bos) + (eos && !has_eos),
        .format = TRI_DATA_TEXT,
        .text = text,
        .text_bytes = bytes,
        .bos = bos && !has_bos,
        .eos = eos && !has_eos,
    };
    return TRI_OK;
}

enum tri_status tri_sample_of_tokens(const struct tri_sample_rules *rules, int64_t tokens,
                                     bool labels, bool begins, struct tri_sample *out)
{
    const size_t count = tokens > 0 ? (size_t)tokens : 1;
    struct tri_sample sample = {.rules = rules, .tokens = tokens, .format = TRI_DATA_TOKENIZED};
    sample.ids = malloc(count * sizeof *sample.ids);
    if (labels)
        sample.labels = malloc(count * sizeof *sample.labels);
    if (begins)
        sample.begins = calloc(count, sizeof *sample.begins);
    if (!sample.ids || (labels && !sample.labels) || (begins && !sample.begins)) {
        tri_sample_close(&sample);
        return tri_fail(TRI_NOMEM, "no memory for a sample of %" PRId64 " tokens", tokens);
    }
    *out = sample;
    return TRI_OK;
}

void tri_sample_close(struct tri_sample *sample)
{
    json_decref(sample->root);
    free(sample->ids);
    free(sample->labels);
    free(sample->begins);
    memset(sample, 0, sizeof *sample);
}

/* Does a document of the sample begin at token i? */
static bool begins_document(const struct tri_sample *sample, int64_t i)
{
    return i == 0 || (sample->begins && sample->begins[i]);
}

void tri_sample_measure(const struct tri_sample *sample, int64_t first, int64_t count,
                        int64_t *documents, int64_t *trained)
{
    *documents = 0;
    *trained = 0;
    if (!sample->labels && !sample->begins) { /* nothing to look at, whatever the length */
        *documents = count > 0;
        *trained = count > 0 ? count - 1 : 0;
        return;
    }
    for (int64_t i = first; i < first + count; i++) {
        if (i == first || begins_document(sample, i))
            (*documents)++;
        else if (!sample->labels || sample->labels[i] != TRI_IGNORE_LABEL)
            (*trained)++;
    }
}

static enum tri_status take_text_ids(const struct tri_sample *sample, int64_t first, int64_t count,
                                     int32_t *ids)
{
    const struct tri_tokenizer *tokenizer = sample->rules->tokenizer;
    int64_t done = 0;
    if (sample->bos && first == 0 && count > 0)
        ids[done++] = (int32_t)tokenizer->bos;
    const bool with_eos = sample->eos && first + count == sample->tokens && done < count;
    const int64_t middle = count - done - with_eos;
    if (middle > 0)
        TRI_TRY(tokenizer->encode(tokenizer, sample->text, sample->text_bytes,
                                  first + done - sample->bos, middle, ids + done));
    if (with_eos)
        ids[count - 1] = (int32_t)tokenizer->eos;
    return TRI_OK;
}

enum tri_status tri_sample_take(const struct tri_sample *sample, int64_t first, int64_t count,
                                int32_t *ids, int32_t *labels, int64_t *positions)
{
    if (first < 0 || count < 0 || first > sample->tokens || count > sample->tokens - first)
        return tri_fail(TRI_INTERNAL,
                        "tokens %" PRId64 " to %" PRId64 " of a sample of %" PRId64
                        " were asked for",
                        first, first + count, sample->tokens);
    if (sample->text)
        TRI_TRY(take_text_ids(sample, first, count, ids));
    else
        memcpy(ids, sample->ids + first, (size_t)count * sizeof *ids);
    memcpy(labels, sample->labels ? sample->labels + first : ids, (size_t)count * sizeof *labels);
    for (int64_t i = 0; i < count; i++)
        positions[i] = i == 0 || begins_document(sample, first + i) ? 0 : positions[i - 1] + 1;
    return TRI_OK;
}
