/* Private to comm/rendezvous: one process of the job. */
#ifndef TRI_COMM_RENDEZVOUS_PRIVATE_H
#define TRI_COMM_RENDEZVOUS_PRIVATE_H

#include <pthread.h>

#include "comm/rendezvous/frame.h"
#include "comm/rendezvous/hub.h"

enum { TRI_RENDEZVOUS_FAREWELL = 5 /* seconds for others to leave, at the end of a job */ };

/* All parts of an exchange, until the member that waits for them takes them. */
struct tri_rendezvous_answer {
    struct tri_rendezvous_answer *next;
    uint64_t group, sequence;
    size_t bytes;
    char *data;
};

struct tri_rendezvous {
    int rank, size, fd, wake_fd;
    struct tri_hub *hub; /* on rank 0 */
    pthread_t watcher;   /* reads the connection */
    pthread_mutex_t lock;
    pthread_mutex_t send_lock; /* keeps frames of threads apart */
    pthread_cond_t changed;
    bool watched, welcome, over; /* watcher: was started, heard that all are there, has ended */
    struct tri_rendezvous_answer *answers;
    int failed_rank; /* -1: none alone */
    enum tri_status failed;
    bool told; /* by the hub: otherwise only this rank knows of its failure */
    char text[TRI_FRAME_TEXT];
    void (*heard)(void *ctx);
    void *heard_ctx;
    pthread_mutex_t heard_lock; /* held while `heard` runs */
};

/* Wait on `changed` for up to 0.1 s; the lock is held. */
void tri_rendezvous_wait(struct tri_rendezvous *rv);

/* Remember that the job failed, and tell who wants to hear it. The hub's word replaces this rank's
 * own, which another failure may have preceded. */
void tri_rendezvous_note(struct tri_rendezvous *rv, int rank, enum tri_status status,
                         const char *text, bool from_hub);

/* The failure as this rank's error; the lock is held. */
enum tri_status tri_rendezvous_explain(const struct tri_rendezvous *rv, const char *what);

/* Send a frame whole, until `deadline` of tri_clock. A connection that broke is not an error here:
 * the watcher tells. */
enum tri_status tri_rendezvous_send(struct tri_rendezvous *rv, const struct tri_frame *frame,
                                    const void *payload, double deadline);

/* The watcher's thread: reads until the connection ends, or for a few seconds after wake_fd. */
void *tri_rendezvous_watch(void *rv);

#endif
