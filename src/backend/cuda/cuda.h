/* The CUDA backend: one card, float32 or bfloat16 activations, float32 gradients and moments.
 *
 * Callers never ask how the program was built: without CUDA every function here exists and says
 * why nothing can run (absent.c). The CUDA runtime is linked statically, the driver, cuBLASLt and
 * cuDNN are found at run time, so that one binary runs with and without a card. */
#ifndef TRI_BACKEND_CUDA_CUDA_H
#define TRI_BACKEND_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/backend.h"

/* Which attention runs. */
enum tri_cuda_attention {
    TRI_CUDA_ATTENTION_AUTO,  /* cuDNN where it is there and takes the call, our own otherwise */
    TRI_CUDA_ATTENTION_CUDNN, /* cuDNN must be there; a call that it refuses is an error */
    TRI_CUDA_ATTENTION_OWN,
};

/* Which matrix products run. */
enum tri_cuda_products {
    TRI_CUDA_PRODUCTS_AUTO, /* cuBLASLt where it is there, our plain kernel (slow) otherwise */
    TRI_CUDA_PRODUCTS_CUBLASLT,
    TRI_CUDA_PRODUCTS_OWN,
};

struct tri_cuda_config {
    int device; /* which card, as CUDA_VISIBLE_DEVICES numbers them */
    enum tri_cuda_attention attention;
    enum tri_cuda_products products;
    bool
        tf32; /* float32 products may round their inputs to TF32 (10 bits); default exact float32 */
};

/* Cards that are visible, as CUDA_VISIBLE_DEVICES says; 0 where none can be used. */
int tri_cuda_num_cards(void);

/* The card of this process, which those who name none get: 0 until another is chosen. Ranks that
 * are processes choose one each, before they open anything. */
int tri_cuda_card(void);
enum tri_status tri_cuda_choose_card(int device);

/* `config` NULL: defaults, on the card of the process. TRI_UNSUPPORTED with one clear line when the
 * build has no CUDA, or the machine no driver, a driver too old, no card, or a card older than
 * compute capability 8.0. */
enum tri_status tri_cuda_open(const struct tri_cuda_config *config, struct tri_backend **out);
void tri_cuda_close(struct tri_backend *backend); /* NULL is allowed */

/* The queues of a backend. `backend->stream` is the compute stream. The other two take only copy,
 * zero, upload, download, read_scalars and sync. Host memory given to `upload` on any of them may
 * be reused at once, unless it is page-locked: then only after the stream has passed it. */
enum tri_cuda_stream { TRI_CUDA_COMPUTE, TRI_CUDA_TO_DEVICE, TRI_CUDA_TO_HOST };
struct tri_stream *tri_cuda_stream(struct tri_backend *backend, enum tri_cuda_stream which);

/* Queue on a cudaStream_t of the caller instead, which must outlive the backend and may be one of
 * CUDA's own (cudaStreamLegacy, cudaStreamPerThread). Before anything was queued. */
enum tri_status tri_cuda_stream_adopt(struct tri_stream *s, void *cuda_stream);

/* What is queued on `waiter` from now on runs after what is queued on `other` until now. */
enum tri_status tri_cuda_stream_wait(struct tri_stream *waiter, struct tri_stream *other);

/* A library that is opened at run time. */
struct tri_cuda_library {
    bool found;
    char version[32];  /* "13.1.0" */
    char path[512];    /* where it was loaded from */
    char problem[512]; /* why not, when not found */
};

/* What is here, for `trireme info` and for the choice of a backend. */
struct tri_cuda_info {
    bool built;     /* this program has CUDA */
    bool available; /* tri_cuda_open would find a usable card */
    char problem[256];
    int num_cards;
    char card[256];
    int capability; /* 90 for 9.0 */
    int num_multiprocessors;
    size_t memory_bytes;
    size_t memory_free;
    int driver_cuda; /* newest CUDA the driver knows: 13000 for 13.0; 0: no driver */
    int runtime_cuda;
    struct tri_cuda_library cublaslt;
    struct tri_cuda_library cudnn;
};

/* Look at card `device`. Never fails: what is missing is said in `problem`. */
void tri_cuda_probe(int device, struct tri_cuda_info *out);

/* Whether a usable card is there. */
bool tri_cuda_available(void);

#endif
