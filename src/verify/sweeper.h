/* Removes a folder when this process ends, however it ends. */
#ifndef TRI_VERIFY_SWEEPER_H
#define TRI_VERIFY_SWEEPER_H

#include <sys/types.h>

struct tri_sweeper {
    pid_t process; /* 0: none */
    int stop;      /* closed by the end of this process */
};

/* Start a process that waits for the end of this one and removes `folder` then. Where it cannot be
 * started there is none: the folder is left behind by a signal and by nothing else. */
void tri_sweeper_open(const char *folder, struct tri_sweeper *out);

/* End it; what is left of the folder is removed. */
void tri_sweeper_close(struct tri_sweeper *sweeper);

#endif
