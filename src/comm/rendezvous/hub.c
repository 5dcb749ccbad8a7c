#include "comm/rendezvous/hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/rendezvous/hub_state.h"

enum { STRANGERS = 64 /* at most at a time */ };

static const double stranger_seconds = 10;

static void drop(struct tri_hub *hub, int i)
{
    struct tri_hub_connection *c = &hub->connections[i];
    close(c->fd);
    tri_buffer_free(&c->in);
    tri_buffer_free(&c->out);
    *c = hub->connections[--hub->num_connections];
}

/* What a connection has brought, or that it broke. */
static void serve(struct tri_hub *hub, int i, int events)
{
    struct tri_hub_connection *c = &hub->connections[i];
    const char *end = NULL;
    bool deaf = false;
    enum tri_status st = TRI_OK;
    if (events & (POLLIN | POLLHUP | POLLERR)) {
        st = tri_socket_receive(c->fd, &c->in, &end);
        if (st == TRI_OK)
            st = tri_hub_read(hub, c);
    }
    (void)tri_socket_send(c->fd, &c->out, &deaf);
    int rank = c->rank;
    bool bye = c->bye;
    if (st == TRI_OK && end == NULL && !(bye && (c->out.used == 0 || deaf)))
        return;
    drop(hub, i);
    if (rank < 0 || bye)
        return;
    tri_hub_fail(hub, rank, TRI_COMM, st != TRI_OK ? tri_error_text() : end);
}

static void accept_all(struct tri_hub *hub)
{
    for (;;) {
        int fd = accept(hub->listen_fd, NULL, NULL);
        if (fd < 0)
            return;
        if (hub->num_connections == hub->room || tri_socket_prepare(fd) != TRI_OK) {
            close(fd);
            continue;
        }
        hub->connections[hub->num_connections++] =
            (struct tri_hub_connection){.fd = fd, .rank = -1, .since = tri_clock()};
    }
}

static void tell_who_is_missing(struct tri_hub *hub)
{
    char text[TRI_FRAME_TEXT];
    size_t used = (size_t)snprintf(
        text, sizeof text, "%d of %d ranks came in time; not there:", hub->num_here, hub->size);
    for (int r = 0; r < hub->size && used + 16 < sizeof text; r++)
        if (!hub->here[r])
            used += (size_t)snprintf(text + used, sizeof text - used, " %d", r);
    tri_hub_fail(hub, -1, TRI_COMM, text);
}

/* Deadlines: of all ranks, of strangers. Returns the milliseconds to the next look. */
static int look_at_clock(struct tri_hub *hub)
{
    double now = tri_clock();
    bool strangers = false;
    if (!hub->welcome && !hub->failed && now > hub->deadline)
        tell_who_is_missing(hub);
    for (int i = hub->num_connections; i-- > 0;)
        if (hub->connections[i].rank < 0 && now - hub->connections[i].since > stranger_seconds)
            drop(hub, i);
        else
            strangers = strangers || hub->connections[i].rank < 0;
    return strangers || !hub->welcome || hub->closing ? 100 : -1;
}

static bool is_over(const struct tri_hub *hub)
{
    return hub->closing && (hub->num_connections == 0 || tri_clock() > hub->leave_by);
}

static void *run_hub(void *argument)
{
    struct tri_hub *hub = argument;
    while (!is_over(hub)) {
        int wait = look_at_clock(hub);
        int n = hub->num_connections;
        hub->polls[0] = (struct pollfd){.fd = hub->listen_fd, .events = POLLIN};
        hub->polls[1] = (struct pollfd){.fd = hub->wake_fd, .events = POLLIN};
        for (int i = 0; i < n; i++) {
            int events = hub->connections[i].out.used > 0 ? POLLIN | POLLOUT : POLLIN;
            hub->polls[2 + i] =
                (struct pollfd){.fd = hub->connections[i].fd, .events = (short)events};
        }
        if (poll(hub->polls, (nfds_t)(2 + n), wait) < 0)
            continue;
        if (hub->polls[1].revents != 0) {
            uint64_t count;
            if (read(hub->wake_fd, &count, sizeof count) != sizeof count)
                continue;
        }
        for (int i = n; i-- > 0;) /* backwards: drop() moves the last one, which had its turn */
            if (hub->polls[2 + i].revents != 0)
                serve(hub, i, hub->polls[2 + i].revents);
        if (hub->polls[0].revents != 0)
            accept_all(hub);
    }
    return NULL;
}

static void free_hub(struct tri_hub *hub)
{
    while (hub->num_connections > 0)
        drop(hub, hub->num_connections - 1);
    while (hub->exchanges != NULL) {
        struct tri_hub_exchange *next = hub->exchanges->next;
        tri_hub_exchange_free(hub->exchanges);
        hub->exchanges = next;
    }
    if (hub->wake_fd >= 0)
        close(hub->wake_fd);
    close(hub->listen_fd);
    free(hub->here);
    free(hub->connections);
    free(hub->polls);
    free(hub);
}

enum tri_status tri_hub_open(int listen_fd, const char *token, int size, double timeout,
                             struct tri_hub **out)
{
    struct tri_hub *hub = calloc(1, sizeof *hub);
    if (hub == NULL) {
        close(listen_fd);
        return tri_fail(TRI_NOMEM, "no memory for the hub of %d ranks", size);
    }
    hub->listen_fd = listen_fd;
    hub->size = size;
    hub->deadline = tri_clock() + timeout;
    hub->room = size + STRANGERS;
    strncpy(hub->token, token, sizeof hub->token - 1);
    hub->here = calloc((size_t)size, sizeof *hub->here);
    hub->connections = calloc((size_t)hub->room, sizeof *hub->connections);
    hub->polls = calloc((size_t)hub->room + 2, sizeof *hub->polls);
    hub->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (hub->here == NULL || hub->connections == NULL || hub->polls == NULL || hub->wake_fd < 0 ||
        pthread_create(&hub->thread, NULL, run_hub, hub) != 0) {
        free_hub(hub);
        return tri_fail(TRI_NOMEM, "cannot start the hub of %d ranks", size);
    }
    *out = hub;
    return TRI_OK;
}

void tri_hub_close(struct tri_hub *hub, double seconds)
{
    uint64_t one = 1;
    if (hub == NULL)
        return;
    hub->leave_by = tri_clock() + seconds;
    hub->closing = true;
    ssize_t written = write(hub->wake_fd, &one, sizeof one);
    (void)written; /* without it the thread looks within its poll's time */
    pthread_join(hub->thread, NULL);
    free_hub(hub);
}
