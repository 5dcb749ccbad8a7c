/* Private to comm/rendezvous: what the two files of the hub share. */
#ifndef TRI_COMM_RENDEZVOUS_HUB_STATE_H
#define TRI_COMM_RENDEZVOUS_HUB_STATE_H

#include <poll.h>
#include <pthread.h>

#include "comm/rendezvous/exchange.h"
#include "comm/rendezvous/frame.h"

struct tri_hub_connection {
    int fd;
    int rank; /* -1: a stranger, who has not said who he is */
    double since;
    bool bye; /* close when all is sent */
    struct tri_buffer in, out;
};

struct tri_hub {
    pthread_t thread;
    int listen_fd, wake_fd;
    int size, num_here; /* ranks that came, those that left since included */
    bool welcome, failed;
    struct tri_frame news; /* why it failed, and who */
    char news_text[TRI_FRAME_TEXT];
    double deadline; /* for all ranks to come */
    char token[TRI_RENDEZVOUS_TOKEN];
    bool *here; /* (size) */
    struct tri_hub_connection *connections;
    struct pollfd *polls;
    int num_connections, room;
    struct tri_hub_exchange *exchanges;
    _Atomic bool closing;
    double leave_by; /* written before closing */
};

/* Tell all ranks that the job failed, and why: the first failure counts. `rank` -1: none alone. */
void tri_hub_fail(struct tri_hub *hub, int rank, enum tri_status status, const char *text);

/* Answer every whole frame that has come over a connection. */
enum tri_status tri_hub_read(struct tri_hub *hub, struct tri_hub_connection *connection);

#endif
