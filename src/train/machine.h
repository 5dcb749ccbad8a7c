/* Which machine to use: backend, dtype, how much memory there is. */
#ifndef TRI_TRAIN_MACHINE_H
#define TRI_TRAIN_MACHINE_H

#include "backend/backend.h"
#include "pass/options.h"

/* Open the backend that the options ask for; `auto` is a card where there is one. Close it with
 * tri_machine_close. */
enum tri_status tri_machine_open(const struct tri_pass_options *options, struct tri_backend **out);
void tri_machine_close(struct tri_backend *backend);

/* model.dtype for this backend. `auto` is float32 on the CPU and bfloat16 on CUDA; float64 needs
 * the CPU; bfloat16 needs CUDA. */
enum tri_status tri_machine_dtype(const struct tri_backend *backend, const char *name,
                                  enum tri_dtype *out);

/* Host memory that this process may still take: the least of what is available, the cgroup's limit
 * and the address-space limit. */
size_t tri_machine_host_bytes(void);

/* How much backend memory a run may use: pass.memory_limit_gb, else what the machine has left, of a
 * card without what libraries will take beside the plan. */
size_t tri_machine_capacity(const struct tri_backend *backend,
                            const struct tri_pass_options *options);

/* Highest resident set of this process so far, in bytes. */
size_t tri_machine_peak_rss(void);

/* Most memory that computing took so far: of the card what the arena holds, of the CPU the resident
 * set of the process. */
size_t tri_machine_peak(const struct tri_backend *backend, const struct tri_arena *arena);

/* Rate of a large matrix product in FLOP/s, measured for about `seconds`: the roof that MFU is a
 * part of. */
enum tri_status tri_machine_measure_roof(struct tri_backend *backend, enum tri_dtype act,
                                         double seconds, double *flops);

#endif
