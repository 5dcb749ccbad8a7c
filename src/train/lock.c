#include "train/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static enum tri_status write_owner(int fd, const char *path)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return tri_fail_errno(errno, "%s", path);
    return TRI_OK;
}

static enum tri_status take(const char *path, const char *folder, int *lock)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0)
        return tri_fail_errno(errno, "checkpoint.output_dir %s cannot be written", folder);
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        char owner[32] = "";
        int problem = errno;
        ssize_t n = pread(fd, owner, sizeof owner - 1, 0);
        owner[n > 0 ? n : 0] = '\0';
        owner[strcspn(owner, "\n")] = '\0';
        close(fd);
        if (problem != EWOULDBLOCK)
            return tri_fail_errno(problem, "%s", path);
        return tri_fail(TRI_INVALID,
                        "%s is in use by another run (process %s): wait for it, or choose another "
                        "checkpoint.output_dir",
                        folder, owner[0] != '\0' ? owner : "unknown");
    }
    enum tri_status st = write_owner(fd, path);
    if (st != TRI_OK) {
        close(fd);
        return st;
    }
    *lock = fd;
    return TRI_OK;
}

enum tri_status tri_lock_take(const char *folder, int *lock)
{
    char *path = tri_path_join(folder, ".lock");
    if (path == NULL)
        return tri_fail(TRI_NOMEM, "no memory for a path");
    enum tri_status st = take(path, folder, lock);
    free(path);
    return st;
}

void tri_lock_drop(int lock)
{
    if (lock >= 0)
        close(lock);
}

bool tri_lock_is_of(int lock, const char *folder)
{
    struct stat held, named;
    char *path = tri_path_join(folder, ".lock");
    bool same = path != NULL && fstat(lock, &held) == 0 && stat(path, &named) == 0 &&
                held.st_dev == named.st_dev && held.st_ino == named.st_ino;
    free(path);
    return same;
}
