#include "data/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "data/copy.h"

/* Of a file, or of the files in a folder; 0 when there is nothing yet. */
static double bytes_of(const char *path)
{
    struct stat info;
    double bytes = 0;
    if (stat(path, &info) != 0)
        return 0;
    if (!S_ISDIR(info.st_mode))
        return (double)info.st_size;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode))
            bytes += (double)info.st_size;
    (void)closedir(folder);
    return bytes;
}

/* Asks again and again, since who sleeps in flock cannot say how far the other is. */
static int wait_for(int file, const char *waiting, const char *making)
{
    const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    const double begin = tri_clock();
    int rc;
    tri_info("%s", waiting);
    while ((rc = flock(file, LOCK_EX | LOCK_NB)) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
        const double seconds = tri_clock() - begin;
        char text[24];
        if (seconds >= TRI_COPY_QUIET)
            tri_progress("%s: %s written so far, %s", waiting, tri_bytes(bytes_of(making)).s,
                         tri_duration_text(seconds, text));
        (void)nanosleep(&pause, NULL);
    }
    const int code = errno;
    if (tri_clock() - begin >= TRI_COPY_QUIET)
        tri_progress_end();
    errno = code;
    return rc;
}

enum tri_status tri_data_lock(const char *path, const char *waiting, const char *making, int *fd)
{
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0)
        return tri_fail_errno(errno, "cannot write %s", path);
    int rc = flock(file, LOCK_EX | LOCK_NB);
    if (rc != 0 && errno == EWOULDBLOCK)
        rc = wait_for(file, waiting, making);
    if (rc != 0) {
        const int code = errno;
        (void)close(file);
        return tri_fail_errno(code, "cannot lock %s", path);
    }
    *fd = file;
    return TRI_OK;
}
