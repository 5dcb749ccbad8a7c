#include "data/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/log.h"

enum tri_status tri_data_lock(const char *path, const char *waiting, int *fd)
{
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0)
        return tri_fail_errno(errno, "cannot write %s", path);
    int rc = flock(file, LOCK_EX | LOCK_NB);
    if (rc != 0 && errno == EWOULDBLOCK) {
        tri_info("%s", waiting);
        do
            rc = flock(file, LOCK_EX);
        while (rc != 0 && errno == EINTR);
    }
    if (rc != 0) {
        const int code = errno;
        (void)close(file);
        return tri_fail_errno(code, "cannot lock %s", path);
    }
    *fd = file;
    return TRI_OK;
}
