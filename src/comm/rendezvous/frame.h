/* Private to comm/rendezvous: messages over a socket. All processes of a job are the same program
 * on the same kind of machine, so a frame is a struct. What comes in is not trusted before the
 * token was right, and its sizes are bounded always. */
#ifndef TRI_COMM_RENDEZVOUS_FRAME_H
#define TRI_COMM_RENDEZVOUS_FRAME_H

#include "comm/rendezvous/rendezvous.h"

enum tri_frame_kind {
    TRI_FRAME_HELLO,   /* to the hub: rank, size, payload token */
    TRI_FRAME_KNOWN,   /* from it: you are of this job */
    TRI_FRAME_WELCOME, /* from it: all are there */
    TRI_FRAME_GIVE,    /* to it: a member's part of an exchange */
    TRI_FRAME_TAKE,    /* from it: all parts */
    TRI_FRAME_FAIL,    /* to it: this rank failed; status, payload text */
    TRI_FRAME_NEWS,    /* from it: the job failed; rank (-1: none alone), status, payload text */
    TRI_FRAME_BYE,     /* to it: the connection may close */
    TRI_FRAME_KINDS,
};

struct tri_frame {
    uint64_t magic;
    uint32_t kind;
    uint32_t bytes; /* of the payload behind it */
    uint64_t group, sequence;
    int32_t place, size; /* in a group, or rank and size of the job */
    int32_t status;
    char what[36];
};

enum {
    TRI_FRAME_TEXT = 600, /* bytes of an error text */
    TRI_FRAME_MAX = 64 * 1024 * 1024,
};

struct tri_frame tri_frame_make(enum tri_frame_kind kind, size_t bytes);

/* Bytes that wait to be sent or to be parsed. */
struct tri_buffer {
    char *data;
    size_t used, capacity;
};
enum tri_status tri_buffer_add(struct tri_buffer *buffer, const void *data, size_t bytes);
void tri_buffer_drop(struct tri_buffer *buffer, size_t bytes); /* the first ones */
void tri_buffer_free(struct tri_buffer *buffer);

/* Queue a frame and its payload. */
enum tri_status tri_frame_put(struct tri_buffer *out, const struct tri_frame *frame,
                              const void *payload);

/* If a whole frame is at the front: *payload points into the buffer, *whole is its length, which
 * tri_buffer_drop takes away. False: more must come. A frame that cannot be is TRI_COMM. `most`
 * bounds the payload. */
enum tri_status tri_frame_next(const struct tri_buffer *in, size_t most, bool *there,
                               struct tri_frame *frame, const char **payload, size_t *whole);

/* Move what the socket takes or has, without waiting. *gone: the other side has closed. *end: NULL,
 * or how the connection ended, as what is said of the other side. */
enum tri_status tri_socket_send(int fd, struct tri_buffer *out, bool *gone);
enum tri_status tri_socket_receive(int fd, struct tri_buffer *in, const char **end);

/* Connections notice a machine that vanished, send small messages at once, never block, and are
 * not inherited. */
enum tri_status tri_socket_prepare(int fd);

/* Connect to the first of host:port that answers within `seconds`; one try of each. -1: none. */
int tri_socket_connect(const char *host, int port, double seconds);

#endif
