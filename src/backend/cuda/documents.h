/* Document borders on the device, uploaded once per content and stream. */
#ifndef TRI_BACKEND_CUDA_DOCUMENTS_H
#define TRI_BACKEND_CUDA_DOCUMENTS_H

#include <cuda_runtime_api.h>

#include "backend/backend.h"

enum {
    TRI_CUDA_DOCUMENT_SLOTS = 4,
    TRI_CUDA_MAX_DOCUMENTS = (1 << 19) - 1, /* of one sequence: 4 MiB a slot */
};

/* One slot holds num_docs + 1 token indices. Slots are reused in turn; queue order keeps a slot
 * valid for the kernels queued before its next upload. */
struct tri_documents {
    int64_t *device; /* TRI_CUDA_DOCUMENT_SLOTS slots */
    int64_t *host;   /* the same, page-locked: what each slot holds, and the source of its upload */
    int64_t count[TRI_CUDA_DOCUMENT_SLOTS]; /* borders in the slot; 0: free */
    cudaEvent_t uploaded[TRI_CUDA_DOCUMENT_SLOTS];
    int next;
};

enum tri_status tri_documents_open(struct tri_documents *documents);
void tri_documents_close(struct tri_documents *documents);

/* Device memory that holds op->doc_begin, on stream `s`. */
enum tri_status tri_documents_get(struct tri_stream *s, const struct tri_attn *op,
                                  const int64_t **out);

#endif
