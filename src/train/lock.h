/* One run at a time in an output folder. */
#ifndef TRI_TRAIN_LOCK_H
#define TRI_TRAIN_LOCK_H

#include <stdbool.h>

#include "base/status.h"

/* Take OUTPUT/.lock. The kernel drops it when the process ends, however it ends. A folder that
 * another process holds is TRI_INVALID and the message names that process. */
enum tri_status tri_lock_take(const char *folder, int *lock);
void tri_lock_drop(int lock);

/* Is it still the lock of the folder that has this name? Not if that was removed or renamed. */
bool tri_lock_is_of(int lock, const char *folder);

#endif
