#include "backend/cuda/documents.h"

#include <string.h>

#include "backend/cuda/context.h"

enum { SLOT_BORDERS = TRI_CUDA_MAX_DOCUMENTS + 1 };

enum tri_status tri_documents_open(struct tri_documents *documents)
{
    size_t bytes = (size_t)TRI_CUDA_DOCUMENT_SLOTS * SLOT_BORDERS * sizeof(int64_t);
    *documents = (struct tri_documents){.next = 0};
    enum tri_status st = tri_cuda_check(cudaMalloc((void **)&documents->device, bytes),
                                        "allocate memory for document borders");
    if (st == TRI_OK)
        st = tri_cuda_check(cudaMallocHost((void **)&documents->host, bytes),
                            "allocate page-locked memory for document borders");
    for (int i = 0; i < TRI_CUDA_DOCUMENT_SLOTS && st == TRI_OK; i++)
        st = tri_cuda_check(
            cudaEventCreateWithFlags(&documents->uploaded[i], cudaEventDisableTiming),
            "create an event");
    if (st != TRI_OK)
        tri_documents_close(documents);
    return st;
}

void tri_documents_close(struct tri_documents *documents)
{
    for (int i = 0; i < TRI_CUDA_DOCUMENT_SLOTS; i++)
        if (documents->uploaded[i] != NULL)
            (void)cudaEventDestroy(documents->uploaded[i]);
    (void)cudaFree(documents->device);
    (void)cudaFreeHost(documents->host);
    *documents = (struct tri_documents){.next = 0};
}

enum tri_status tri_documents_get(struct tri_stream *s, const struct tri_attn *op,
                                  const int64_t **out)
{
    struct tri_documents *documents = &s->documents;
    int64_t count = op->num_docs + 1;
    if (op->num_docs < 1 || op->num_docs > TRI_CUDA_MAX_DOCUMENTS)
        return tri_fail(TRI_UNSUPPORTED, "%lld documents in one sequence: attention takes 1 to %d",
                        (long long)op->num_docs, TRI_CUDA_MAX_DOCUMENTS);
    size_t bytes = (size_t)count * sizeof(int64_t);
    for (int i = 0; i < TRI_CUDA_DOCUMENT_SLOTS; i++)
        if (documents->count[i] == count &&
            memcmp(documents->host + (size_t)i * SLOT_BORDERS, op->doc_begin, bytes) == 0) {
            *out = documents->device + (size_t)i * SLOT_BORDERS;
            return TRI_OK;
        }
    int slot = documents->next;
    int64_t *host = documents->host + (size_t)slot * SLOT_BORDERS;
    int64_t *device = documents->device + (size_t)slot * SLOT_BORDERS;
    /* The host copy may still be the source of an upload that is queued. */
    TRI_TRY(tri_cuda_check(cudaEventSynchronize(documents->uploaded[slot]), "wait for an upload"));
    documents->count[slot] = 0;
    memcpy(host, op->doc_begin, bytes);
    TRI_TRY(tri_cuda_check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, s->stream),
                           "upload document borders"));
    TRI_TRY(
        tri_cuda_check(cudaEventRecord(documents->uploaded[slot], s->stream), "record an event"));
    documents->count[slot] = count;
    documents->next = (slot + 1) % TRI_CUDA_DOCUMENT_SLOTS;
    *out = device;
    return TRI_OK;
}
