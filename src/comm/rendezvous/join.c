/* Joining a job, and leaving it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/rendezvous/private.h"

static const double answer_seconds =
    3; /* for whoever listens on a port to say that it is our hub */

/* Read the first frame. It stays in the socket when it is not that the hub knows us: it is news. */
static bool is_known(int fd)
{
    struct tri_buffer in = {0};
    struct tri_frame frame;
    const char *payload;
    size_t whole;
    bool gone = false, there = false;
    enum tri_status st = TRI_OK;
    char some[sizeof frame];
    double deadline = tri_clock() + answer_seconds;
    while (st == TRI_OK && !there && !gone && tri_clock() < deadline) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 100) <= 0)
            continue;
        ssize_t n = recv(fd, some, sizeof some - in.used, MSG_DONTWAIT);
        gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
        if (n > 0)
            st = tri_buffer_add(&in, some, (size_t)n);
        if (st == TRI_OK)
            st = tri_frame_next(&in, 0, &there, &frame, &payload, &whole);
    }
    tri_buffer_free(&in);
    return st == TRI_OK && there && frame.kind == TRI_FRAME_KNOWN;
}

/* Is it our hub that listens there? */
static bool say_hello(int fd, const struct tri_rendezvous_place *place, int rank, int size)
{
    struct tri_buffer out = {0};
    bool gone = false;
    char token[TRI_RENDEZVOUS_TOKEN] = ""; /* zeros behind it */
    struct tri_frame hello = tri_frame_make(TRI_FRAME_HELLO, sizeof token);
    snprintf(token, sizeof token, "%s", place->token);
    hello.place = rank;
    hello.size = size;
    enum tri_status st = tri_frame_put(&out, &hello, token);
    if (st == TRI_OK)
        st = tri_socket_send(fd, &out, &gone); /* a new connection takes a few hundred bytes */
    bool sent = st == TRI_OK && out.used == 0 && !gone;
    tri_buffer_free(&out);
    return sent && is_known(fd);
}

/* Try all hosts and ports until our hub answers. */
static int find_hub(const struct tri_rendezvous_place *place, int rank, int size, double deadline)
{
    struct timespec pause = {.tv_sec = 0, .tv_nsec = 50 * 1000 * 1000};
    do {
        char hosts[TRI_RENDEZVOUS_HOSTS], *rest = NULL;
        snprintf(hosts, sizeof hosts, "%s", place->hosts);
        for (char *host = strtok_r(hosts, " ", &rest); host != NULL;
             host = strtok_r(NULL, " ", &rest))
            for (int i = 0; i < place->num_ports; i++) {
                int fd = tri_socket_connect(host, place->port + i, 2);
                if (fd < 0)
                    continue;
                if (tri_socket_prepare(fd) == TRI_OK && say_hello(fd, place, rank, size))
                    return fd;
                close(fd);
            }
        nanosleep(&pause, NULL);
    } while (tri_clock() < deadline);
    return -1;
}

static enum tri_status wait_for_welcome(struct tri_rendezvous *rv, double deadline)
{
    enum tri_status st = TRI_OK;
    pthread_mutex_lock(&rv->lock);
    while (!rv->welcome && rv->failed == TRI_OK && tri_clock() < deadline)
        tri_rendezvous_wait(rv);
    if (!rv->welcome && rv->failed != TRI_OK)
        st = tri_rendezvous_explain(rv, "the start");
    else if (!rv->welcome)
        st = tri_fail(TRI_COMM, "rank %d waited for the other ranks in vain: the hub is stuck",
                      rv->rank);
    pthread_mutex_unlock(&rv->lock);
    return st;
}

static void free_rendezvous(struct tri_rendezvous *rv)
{
    tri_hub_close(rv->hub, 0);
    if (rv->fd >= 0)
        close(rv->fd);
    if (rv->wake_fd >= 0)
        close(rv->wake_fd);
    while (rv->answers != NULL) {
        struct tri_rendezvous_answer *next = rv->answers->next;
        free(rv->answers->data);
        free(rv->answers);
        rv->answers = next;
    }
    pthread_cond_destroy(&rv->changed);
    pthread_mutex_destroy(&rv->lock);
    pthread_mutex_destroy(&rv->send_lock);
    pthread_mutex_destroy(&rv->heard_lock);
    free(rv);
}

static struct tri_rendezvous *new_rendezvous(int rank, int size)
{
    pthread_condattr_t monotonic;
    struct tri_rendezvous *rv = calloc(1, sizeof *rv);
    if (rv == NULL)
        return NULL;
    rv->rank = rank;
    rv->size = size;
    rv->fd = -1;
    rv->wake_fd = -1;
    rv->failed_rank = -1;
    pthread_mutex_init(&rv->lock, NULL);
    pthread_mutex_init(&rv->send_lock, NULL);
    pthread_mutex_init(&rv->heard_lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&rv->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return rv;
}

/* Connect, and start to listen to the hub. */
static enum tri_status join(struct tri_rendezvous *rv, const struct tri_rendezvous_place *place,
                            double deadline)
{
    struct tri_rendezvous_place here = *place;
    if (rv->rank == 0)
        strcpy(here.hosts, "127.0.0.1");
    rv->fd = find_hub(&here, rv->rank, rv->size, deadline);
    if (rv->fd < 0)
        return tri_fail(TRI_COMM,
                        "rank %d found no rank 0 of this job at %.200s, port %d to %d: is it "
                        "started, are MASTER_ADDR and MASTER_PORT the same everywhere, does a "
                        "firewall close the port?",
                        rv->rank, here.hosts, here.port, here.port + here.num_ports - 1);
    rv->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (rv->wake_fd < 0 || pthread_create(&rv->watcher, NULL, tri_rendezvous_watch, rv) != 0)
        return tri_fail(TRI_NOMEM, "cannot start the thread that listens to the other ranks");
    rv->watched = true;
    return wait_for_welcome(rv, deadline + TRI_RENDEZVOUS_FAREWELL); /* the hub knows who is late */
}

enum tri_status tri_rendezvous_open(const struct tri_rendezvous_place *place, int rank, int size,
                                    double timeout, int listen_fd, struct tri_rendezvous **out)
{
    struct tri_rendezvous *rv = new_rendezvous(rank, size);
    if (rv == NULL) {
        if (listen_fd >= 0)
            close(listen_fd);
        return tri_fail(TRI_NOMEM, "no memory to join %d ranks", size);
    }
    enum tri_status st = TRI_OK;
    if (listen_fd >= 0)
        st = tri_hub_open(listen_fd, place->token, size, timeout, &rv->hub);
    if (st == TRI_OK)
        st = join(rv, place, tri_clock() + timeout);
    if (st != TRI_OK) {
        tri_rendezvous_close(rv);
        return st;
    }
    *out = rv;
    return TRI_OK;
}

void tri_rendezvous_close(struct tri_rendezvous *rv)
{
    if (rv == NULL)
        return;
    tri_rendezvous_on_failure(rv, NULL, NULL);
    if (rv->watched) {
        uint64_t one = 1;
        struct tri_frame bye = tri_frame_make(TRI_FRAME_BYE, 0);
        (void)tri_rendezvous_send(rv, &bye, NULL, tri_clock() + TRI_RENDEZVOUS_FAREWELL);
        ssize_t written = write(rv->wake_fd, &one, sizeof one);
        (void)written; /* the counter of an eventfd takes far more than one */
        pthread_join(rv->watcher, NULL);
    }
    tri_hub_close(rv->hub, TRI_RENDEZVOUS_FAREWELL);
    rv->hub = NULL;
    free_rendezvous(rv);
}
