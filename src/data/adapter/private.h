/* Private to data/adapter. A sample is prepared by its owner, becomes one message for each rank of
 * the group, travels, and is read as a shard where it arrives. */
#ifndef TRI_DATA_ADAPTER_PRIVATE_H
#define TRI_DATA_ADAPTER_PRIVATE_H

#include "comm/comm.h"
#include "data/batch.h"
#include "shard/layout.h"
#include "trireme/adapter.h"

/* A sample as its owner sends it. Reused from sample to sample. */
struct tri_prepared {
    int64_t rows, tokens; /* B, S */
    int32_t *ids;         /* (B, S) */
    int32_t *labels;      /* (B, S) shifted */
    int64_t *positions;   /* (B, S) */
    int64_t *doc_begin;   /* (num_docs + 1), over all rows */
    int64_t *doc_position;
    int64_t num_docs;
    int64_t trained;
    uint64_t hash; /* of ids */
    int64_t room;  /* tokens that the arrays have room for */
    struct tri_field fields[TRI_SAMPLE_FIELDS + 1];
    int num_fields;
};

/* Check a sample and derive documents, shifted labels, and the fields that are sent. */
enum tri_status tri_prepare(const struct tri_sample *sample, int64_t fixed_tokens,
                            struct tri_prepared *out);
void tri_prepared_free(struct tri_prepared *p);

/* What the messages of one sample have in common. */
struct tri_envelope {
    int owner;
    int64_t sample;
    struct tri_layout layout; /* of one row */
};

/* Bytes of the message to `rank`, a multiple of 8, and the message itself. */
size_t tri_message_bytes(const struct tri_prepared *p, const struct tri_envelope *e, int rank);
void tri_message_write(const struct tri_prepared *p, const struct tri_envelope *e, int rank,
                       void *out);
/* Point a shard into a message; `fields` is room for TRI_SAMPLE_FIELDS + 1. */
enum tri_status tri_message_read(const void *message, size_t bytes, struct tri_field *fields,
                                 struct tri_shard *out);

/* Bytes of different lengths from each rank to each other, in host memory: send_bytes and
 * recv_bytes (P), messages one after the other. NULL comm: one rank. `by_sums` is for communicators
 * that move device memory: it takes P times the traffic and the same memory. */
enum tri_status tri_scatter_sizes(struct tri_comm *comm, const int64_t *send_bytes,
                                  int64_t *recv_bytes);
enum tri_status tri_scatter(struct tri_comm *comm, bool by_sums, const void *send,
                            const int64_t *send_bytes, void *recv, const int64_t *recv_bytes);

#endif
