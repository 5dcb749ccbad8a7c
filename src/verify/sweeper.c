#include "verify/sweeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* `read` returns at the end of the pipe, which comes when its other end is closed. Ranks that this
 * process started may still write for a moment, hence the second try. A process group of its own
 * keeps Ctrl-C away. */
static int start(const char *folder, int wait_fd, pid_t *process)
{
    static const char script[] = "read -r end; rm -rf -- \"$0\" 2>/dev/null || "
                                 "{ sleep 1; rm -rf -- \"$0\"; }";
    char *argv[] = {"sh", "-c", (char *)script, (char *)folder, NULL};
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    int error = posix_spawnattr_init(&attr);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_init(&files);
    if (error != 0)
        goto destroy_attr;
    error = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
    if (error == 0)
        error = posix_spawnattr_setpgroup(&attr, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&files, wait_fd, STDIN_FILENO);
    /* Who reads our output until its end must not wait for this process. */
    for (int fd = STDOUT_FILENO; error == 0 && fd <= STDERR_FILENO; fd++)
        error = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
    if (error == 0)
        error = posix_spawn(process, "/bin/sh", &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
destroy_attr:
    posix_spawnattr_destroy(&attr);
    return error;
}

void tri_sweeper_open(const char *folder, struct tri_sweeper *out)
{
    int ends[2];
    *out = (struct tri_sweeper){.process = 0, .stop = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t process;
    int error = start(folder, ends[0], &process);
    close(ends[0]);
    if (error != 0) {
        close(ends[1]);
        return;
    }
    *out = (struct tri_sweeper){.process = process, .stop = ends[1]};
}

void tri_sweeper_close(struct tri_sweeper *sweeper)
{
    if (sweeper->process == 0)
        return;
    close(sweeper->stop);
    while (waitpid(sweeper->process, NULL, 0) < 0 && errno == EINTR)
        ;
    sweeper->process = 0;
}
