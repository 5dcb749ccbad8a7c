/* What comes from the hub, and what goes to it. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/rendezvous/private.h"

static enum tri_status keep_answer(struct tri_rendezvous *rv, const struct tri_frame *frame,
                                   const char *payload)
{
    struct tri_rendezvous_answer *answer = malloc(sizeof *answer);
    char *data = malloc(frame->bytes + 1);
    if (answer == NULL || data == NULL) {
        free(answer);
        free(data);
        return tri_fail(TRI_NOMEM, "no memory for %u bytes from the other ranks", frame->bytes);
    }
    answer->group = frame->group;
    answer->sequence = frame->sequence;
    answer->bytes = frame->bytes;
    answer->data = memcpy(data, payload, frame->bytes);
    pthread_mutex_lock(&rv->lock);
    answer->next = rv->answers;
    rv->answers = answer;
    pthread_cond_broadcast(&rv->changed);
    pthread_mutex_unlock(&rv->lock);
    return TRI_OK;
}

static enum tri_status handle(struct tri_rendezvous *rv, const struct tri_frame *frame,
                              const char *payload)
{
    char text[TRI_FRAME_TEXT];
    size_t bytes = frame->bytes < sizeof text ? frame->bytes : sizeof text - 1;
    switch (frame->kind) {
    case TRI_FRAME_WELCOME:
        pthread_mutex_lock(&rv->lock);
        rv->welcome = true;
        pthread_cond_broadcast(&rv->changed);
        pthread_mutex_unlock(&rv->lock);
        return TRI_OK;
    case TRI_FRAME_TAKE:
        return keep_answer(rv, frame, payload);
    case TRI_FRAME_NEWS:
        memcpy(text, payload, bytes);
        text[bytes] = '\0';
        tri_rendezvous_note(rv, frame->place,
                            frame->status > 0 ? (enum tri_status)frame->status : TRI_COMM, text,
                            true);
        return TRI_OK;
    default:
        return tri_fail(TRI_COMM, "the hub sent what only ranks send");
    }
}

static enum tri_status read_frames(struct tri_rendezvous *rv, struct tri_buffer *in)
{
    for (;;) {
        struct tri_frame frame;
        const char *payload = NULL;
        size_t whole = 0;
        bool there = false;
        TRI_TRY(tri_frame_next(in, TRI_FRAME_MAX, &there, &frame, &payload, &whole));
        if (!there)
            return TRI_OK;
        TRI_TRY(handle(rv, &frame, payload));
        tri_buffer_drop(in, whole);
    }
}

void *tri_rendezvous_watch(void *argument)
{
    struct tri_rendezvous *rv = argument;
    struct tri_buffer in = {0};
    enum tri_status st = TRI_OK;
    const char *end = NULL;
    bool leaving = false;
    double leave_by = 0;
    while (end == NULL && st == TRI_OK && !(leaving && tri_clock() > leave_by)) {
        struct pollfd wait[2] = {{.fd = rv->fd, .events = POLLIN},
                                 {.fd = leaving ? -1 : rv->wake_fd, .events = POLLIN}};
        if (poll(wait, 2, leaving ? 100 : -1) < 0)
            continue;
        if (wait[1].revents != 0) {
            leaving = true;
            leave_by = tri_clock() + TRI_RENDEZVOUS_FAREWELL;
        }
        if (wait[0].revents != 0)
            st = tri_socket_receive(rv->fd, &in, &end);
        if (st == TRI_OK)
            st = read_frames(rv, &in);
    }
    tri_buffer_free(&in);
    if (!leaving)
        tri_rendezvous_note(rv, 0, TRI_COMM, st != TRI_OK ? tri_error_text() : end, true);
    pthread_mutex_lock(&rv->lock);
    rv->over = true;
    pthread_cond_broadcast(&rv->changed);
    pthread_mutex_unlock(&rv->lock);
    return NULL;
}

enum tri_status tri_rendezvous_send(struct tri_rendezvous *rv, const struct tri_frame *frame,
                                    const void *payload, double deadline)
{
    struct tri_buffer out = {0};
    bool gone = false;
    enum tri_status st = tri_frame_put(&out, frame, payload);
    pthread_mutex_lock(&rv->send_lock);
    while (st == TRI_OK && out.used > 0 && !gone) {
        st = tri_socket_send(rv->fd, &out, &gone);
        struct pollfd wait = {.fd = rv->fd, .events = POLLOUT};
        if (out.used > 0 && !gone && poll(&wait, 1, 100) == 0 && tri_clock() > deadline)
            st = tri_fail(TRI_COMM, "rank 0 takes no message: is its process stopped?");
    }
    pthread_mutex_unlock(&rv->send_lock);
    tri_buffer_free(&out);
    return st; /* a connection that is gone is the watcher's news */
}
