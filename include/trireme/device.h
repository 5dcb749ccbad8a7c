/* Where calls compute: a backend, its queue of work, and room for what lives within a call.
 *
 * Calls that take a device are queued in order on its stream and return at once on a card; on the
 * CPU they have finished when they return. One thread at a time uses a device; ranks that are
 * threads open one each. */
#ifndef TRIREME_DEVICE_H
#define TRIREME_DEVICE_H

#include <stddef.h>

#include "trireme/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tri_device; /* opaque */

struct tri_device_config {
    const char *backend;     /* "cpu" or NULL; "cuda" */
    const char *cpu_kernels; /* NULL: the best; "reference", "generic", "avx2", "avx512" */
    int threads;             /* CPU threads, 0: all cores. Ranks that are threads use 1 each */
    int card;                /* CUDA: which card, as CUDA_VISIBLE_DEVICES numbers them; 0: that of
                                this process, the first unless tri_comm_cards_run chose another */
    void *cuda_stream;       /* a cudaStream_t to queue on, not owned; NULL: one of our own */
    size_t scratch_bytes;    /* most bytes that a call may take; 0: what the machine has */
};

/* TRI_UNSUPPORTED says in one line what is missing (no card, no CUDA in this build, ...). */
enum tri_status tri_device_open(const struct tri_device_config *config, struct tri_device **out);
void tri_device_close(struct tri_device *device); /* NULL is allowed */

/* Wait until everything that was queued has run. */
enum tri_status tri_device_sync(struct tri_device *device);

/* Most scratch that calls have taken so far, in bytes. */
size_t tri_device_scratch_peak(const struct tri_device *device);

#ifdef __cplusplus
}
#endif

#endif
