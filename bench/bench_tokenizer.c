/* trireme_bench_tokenizer: how fast text becomes tokens on one core.
 *
 * Usage: trireme_bench_tokenizer FOLDER FILE [ROUNDS]
 *
 * FOLDER holds tokenizer.json; FILE is repeated up to 4 MB, so that the words of a small file are
 * not all there is to time. Seconds are those of the processor, not of the wall, and each round
 * is held against checking the same text for UTF-8, measured right before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/text.h"
#include "common.h"
#include "text/subword.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

enum { TEXT_BYTES = 4000000, FILE_LIMIT = 1 << 30 };

static double processor_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_text(const char *path, struct tri_text *out)
{
    char *file;
    size_t bytes;
    bench_check(tri_file_read(path, FILE_LIMIT, &file, &bytes));
    do
        tri_text_add(out, file, bytes);
    while (bytes > 0 && out->bytes < TEXT_BYTES);
    free(file);
    if (out->failed)
        bench_check(tri_fail(TRI_NOMEM, "no memory for the text"));
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "Usage: trireme_bench_tokenizer FOLDER FILE [ROUNDS]\n");
        return 2;
    }
    const int rounds = argc > 3 ? atoi(argv[3]) : 5;
    const struct tri_token_ids model = {.vocab = TRI_VOCAB_LIMIT, .bos = -1, .eos = -1, .pad = -1};
    struct tri_tokenizer *tokenizer;
    struct tri_text text = {0};
    const double opening = processor_seconds();
    bench_check(tri_json_tokenizer_open(argv[1], &model, &tokenizer));
    printf("opened in %.2f s: %lld ids\n", processor_seconds() - opening,
           (long long)tokenizer->vocab);
    read_text(argv[2], &text);
    for (int i = 0; i < rounds; i++) {
        struct tri_ids ids = {.count = 0};
        const double begin = processor_seconds();
        const size_t valid = tri_utf8_valid(text.data, text.bytes);
        const double between = processor_seconds();
        bench_check(
            tri_subword_encode((struct tri_subword *)tokenizer, text.data, text.bytes, &ids));
        const double end = processor_seconds();
        printf("%zu bytes, %lld tokens: %.1f MB/s a core, %.4f of UTF-8 checking\n", valid,
               (long long)ids.count, (double)text.bytes / (end - between) / 1e6,
               (between - begin) / (end - between));
        tri_ids_free(&ids);
    }
    tri_text_free(&text);
    tri_tokenizer_close(tokenizer);
    return 0;
}
