/* Address space for OpenBLAS, which tries for ever where it gets none. */
#ifndef TRI_BACKEND_CPU_BLAS_ROOM_H
#define TRI_BACKEND_CPU_BLAS_ROOM_H

#include <stddef.h>

#include "base/status.h"

/* Is there room for `threads` more threads in products? TRI_NOMEM where `ulimit -v` leaves none. */
enum tri_status tri_blas_room_take(int threads);
void tri_blas_room_give_back(int threads);

/* What OpenBLAS may take for all threads of the backends that are open, where address space is
 * limited; otherwise 0. */
size_t tri_blas_room_bytes(void);

#endif
