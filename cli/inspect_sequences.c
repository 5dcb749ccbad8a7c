/* trireme data inspect: the first sequences as text, trained tokens apart from the others. */
#include "inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utf8proc.h>

#include "base/text.h"

static bool in_colour(void)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && (none == NULL || *none == '\0') &&
           !(terminal != NULL && strcmp(terminal, "dumb") == 0);
}

/* C1 controls, and what changes the order of writing (UAX 9). */
static bool is_command(utf8proc_int32_t point)
{
    return (point >= 0x80 && point < 0xA0) || point == 0x061C || point == 0x200E ||
           point == 0x200F || (point >= 0x2028 && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069);
}

/* Text from files may hold what a terminal takes for commands. */
static void print_safely(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const unsigned char c = (unsigned char)text[at];
        utf8proc_int32_t point;
        const utf8proc_ssize_t read = utf8proc_iterate((const utf8proc_uint8_t *)text + at,
                                                       (utf8proc_ssize_t)(bytes - at), &point);
        const size_t size = read > 0 ? (size_t)read : 0; /* 0: no UTF-8 */
        if (c < 0x80 ? (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F : size == 0)
            printf("\\x%02X", c);
        else if (size > 1 && is_command(point))
            printf("\\u%04" PRIX32, (uint32_t)point);
        else
            fwrite(text + at, 1, size, stdout);
        at += size > 0 ? size : 1;
    }
}

/* A run of tokens that are all trained, or all not. */
static void print_run(const struct tri_tokenizer *tokenizer, const int32_t *ids, int64_t count,
                      bool trained, bool colour)
{
    struct tri_text text = {0};
    printf("%s", trained ? colour ? "\033[32m" : "[" : colour ? "\033[2m" : "");
    if (tokenizer != NULL && tokenizer->decode(tokenizer, ids, count, false, &text) == TRI_OK &&
        !text.failed) {
        print_safely(tri_text_data(&text), text.bytes);
    } else { /* data that was tokenized elsewhere */
        tri_error_clear();
        for (int64_t i = 0; i < count; i++)
            printf("%s%" PRId32, i > 0 ? " " : "", ids[i]);
    }
    printf("%s", colour ? "\033[0m" : trained ? "]" : "");
    tri_text_free(&text);
}

/* A token is trained when the one before it has it as its label. */
static bool is_trained(const struct tri_batch *batch, int64_t begin, int64_t t)
{
    return t > begin && batch->labels[t - 1] >= 0;
}

static void print_document(const struct tri_run *run, const struct tri_batch *batch, int64_t begin,
                           int64_t end, bool colour)
{
    for (int64_t t = begin; t < end;) {
        const bool trained = is_trained(batch, begin, t);
        int64_t next = t + 1;
        while (next < end && is_trained(batch, begin, next) == trained)
            next++;
        print_run(run->tokenizer, batch->ids + t, next - t, trained, colour);
        t = next;
    }
}

static void print_sequence(const struct tri_run *run, const struct tri_batch *batch, int64_t number,
                           int64_t tokens, bool colour)
{
    printf("\nsequence %" PRId64 ": %" PRId64 " token%s, %" PRId64 " trained, %" PRId64
           " document%s\n",
           number, batch->num_tokens, tri_plural(batch->num_tokens), batch->num_trained,
           batch->num_docs, tri_plural(batch->num_docs));
    for (int64_t d = 0; d < batch->num_docs; d++) {
        const int64_t begin = batch->doc_begin[d], end = batch->doc_begin[d + 1];
        if (begin >= tokens)
            break;
        if (batch->num_docs > 1)
            printf("-- document %" PRId64 ", %" PRId64 " token%s\n", d, end - begin,
                   tri_plural(end - begin));
        print_document(run, batch, begin, end < tokens ? end : tokens, colour);
        printf("\n");
    }
    if (batch->num_tokens > tokens)
        printf("... and %" PRId64 " token%s more (--tokens shows them)\n",
               batch->num_tokens - tokens, tri_plural(batch->num_tokens - tokens));
}

enum tri_status tri_cli_inspect_sequences(struct tri_run *run, int64_t samples, int64_t tokens)
{
    struct tri_batch batch;
    const bool colour = in_colour();
    const int64_t all = tri_dataset_sequences(run->data, 0);
    if (samples == 0)
        return TRI_OK;
    printf("\nthe first sequences of training; what is trained is %s (never the first token\n"
           "of a document, which nothing comes before)\n",
           colour ? "in \033[32mcolour\033[0m" : "in [brackets]");
    TRI_TRY(tri_batch_open(tri_dataset_max_sequence(run->data), &batch));
    enum tri_status st = TRI_OK;
    for (int64_t i = 0; st == TRI_OK && i < samples && i < all; i++) {
        tri_batch_clear(&batch);
        st = tri_dataset_read(run->data, 0, i, &batch);
        if (st == TRI_OK)
            print_sequence(run, &batch, i, tokens, colour);
    }
    tri_batch_close(&batch);
    return st;
}
