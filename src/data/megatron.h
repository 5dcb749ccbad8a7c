/* Megatron-LM's indexed datasets: PREFIX.idx says where each sequence lies in PREFIX.bin.
 *
 * PREFIX.idx, little-endian, without padding:
 *   "MMIDIDX\0\0"           9 bytes
 *   version                 uint64, 1
 *   type of a token         uint8: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16
 *                           (6 float64 and 7 float32 exist and are refused)
 *   number of sequences N   uint64
 *   number of marks M       uint64
 *   lengths                 int32 (N), in tokens
 *   pointers                int64 (N), in bytes of PREFIX.bin
 *   marks                   int64 (M): document d is the sequences [mark[d], mark[d + 1])
 *   modes                   int8 (N), only in multimodal sets; not read
 *
 * Both files are mapped, and every number is checked when they are opened; tokens are checked as
 * they are read. */
#ifndef TRI_DATA_MEGATRON_H
#define TRI_DATA_MEGATRON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file.h"
#include "base/status.h"

struct tri_megatron {
    int64_t documents;
    /* Private from here. */
    struct tri_map index, tokens;
    const char *what; /* for messages */
    int64_t sequences;
    int64_t marks;   /* 0: every sequence is a document */
    int token_bytes; /* 1, 2, 4 or 8 */
    bool is_signed;
};

/* `path` is the name of PREFIX.idx and must outlive the set: errors name it. */
enum tri_status tri_megatron_open(const char *path, struct tri_megatron *out);
void tri_megatron_close(struct tri_megatron *set);

/* The same of two files in memory, which stay the caller's: nothing is to be closed. */
enum tri_status tri_megatron_parse(const char *what, struct tri_map index, struct tri_map tokens,
                                   struct tri_megatron *out);

/* Tokens of a document; 0 is possible. */
int64_t tri_megatron_length(const struct tri_megatron *set, int64_t document);

/* They themselves, each checked to be below `vocab`: (tri_megatron_length). */
enum tri_status tri_megatron_read(const struct tri_megatron *set, int64_t document, int64_t vocab,
                                  int32_t *ids);

/* A document of at least one token as a sample that trains on all of it. */
struct tri_sample;
struct tri_sample_rules;
enum tri_status tri_sample_from_set(const struct tri_sample_rules *rules,
                                    const struct tri_megatron *set, int64_t document,
                                    struct tri_sample *out);

/* PREFIX.bin that goes with PREFIX.idx; the caller frees it. */
enum tri_status tri_megatron_tokens_path(const char *path, char **out);

#endif
