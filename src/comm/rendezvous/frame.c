#include "comm/rendezvous/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint64_t magic = UINT64_C(0x31304D4552495254); /* "TRIREM01" */

struct tri_frame tri_frame_make(enum tri_frame_kind kind, size_t bytes)
{
    struct tri_frame frame;
    memset(&frame, 0, sizeof frame);
    frame.magic = magic;
    frame.kind = kind;
    frame.bytes = (uint32_t)bytes;
    return frame;
}

enum tri_status tri_buffer_add(struct tri_buffer *buffer, const void *data, size_t bytes)
{
    if (buffer->capacity - buffer->used < bytes) {
        size_t capacity = 2 * (buffer->used + bytes);
        char *grown = realloc(buffer->data, capacity);
        if (grown == NULL)
            return tri_fail(TRI_NOMEM, "no memory for a message of %zu bytes", bytes);
        buffer->data = grown;
        buffer->capacity = capacity;
    }
    if (bytes > 0)
        memcpy(buffer->data + buffer->used, data, bytes);
    buffer->used += bytes;
    return TRI_OK;
}

void tri_buffer_drop(struct tri_buffer *buffer, size_t bytes)
{
    buffer->used -= bytes;
    if (buffer->used > 0)
        memmove(buffer->data, buffer->data + bytes, buffer->used);
}

void tri_buffer_free(struct tri_buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

enum tri_status tri_frame_put(struct tri_buffer *out, const struct tri_frame *frame,
                              const void *payload)
{
    TRI_TRY(tri_buffer_add(out, frame, sizeof *frame));
    return tri_buffer_add(out, payload, frame->bytes);
}

enum tri_status tri_frame_next(const struct tri_buffer *in, size_t most, bool *there,
                               struct tri_frame *frame, const char **payload, size_t *whole)
{
    *there = false;
    if (in->used < sizeof *frame)
        return TRI_OK;
    memcpy(frame, in->data, sizeof *frame);
    if (frame->magic != magic || frame->kind >= TRI_FRAME_KINDS || frame->bytes > most)
        return tri_fail(TRI_COMM, "a message that no rank of this program sends");
    frame->what[sizeof frame->what - 1] = '\0';
    *whole = sizeof *frame + frame->bytes;
    *there = in->used >= *whole;
    *payload = in->data + sizeof *frame;
    return TRI_OK;
}

enum tri_status tri_socket_send(int fd, struct tri_buffer *out, bool *gone)
{
    size_t sent = 0;
    *gone = false;
    while (sent < out->used && !*gone) {
        ssize_t n = send(fd, out->data + sent, out->used - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            sent += (size_t)n;
        else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        else if (n < 0 && errno != EINTR)
            *gone = true;
    }
    tri_buffer_drop(out, sent);
    return TRI_OK;
}

/* A process that ends closes its connections, or its kernel answers for it; a machine without power
 * or cable says nothing, and that takes until the keep-alive of tri_socket_prepare gives it up. */
static const char *end_text(int error)
{
    return error == 0 || error == ECONNRESET || error == EPIPE
               ? "its process ended without a word (was it killed?)"
               : "its machine no longer answers (is it down, or its network?)";
}

enum tri_status tri_socket_receive(int fd, struct tri_buffer *in, const char **end)
{
    char some[16384];
    *end = NULL;
    for (;;) {
        ssize_t n = recv(fd, some, sizeof some, MSG_DONTWAIT);
        if (n > 0)
            TRI_TRY(tri_buffer_add(in, some, (size_t)n));
        else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return TRI_OK;
        else if (n == 0 || errno != EINTR) {
            *end = end_text(n == 0 ? 0 : errno);
            return TRI_OK;
        }
        if (n > 0 && (size_t)n < sizeof some)
            return TRI_OK; /* others want their turn too */
    }
}
