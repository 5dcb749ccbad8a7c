/* A lock among processes that would make the same file or folder. */
#ifndef TRI_DATA_LOCK_H
#define TRI_DATA_LOCK_H

#include "base/status.h"

/* Wait until nobody else holds the lock file `path`; close *fd to let it go, which the end of the
 * process does too. `waiting` is told if there is somebody to wait for, and told again with the
 * bytes of `making`, the file or the folder of files that the other is writing. */
enum tri_status tri_data_lock(const char *path, const char *waiting, const char *making, int *fd);

#endif
