/* What ranks say to the hub, and what it answers. */
#include <stdio.h>
#include <string.h>

#include "comm/rendezvous/hub_state.h"

/* A rank that cannot be told has closed its end: that is seen when it is read next. */
static void put(struct tri_hub_connection *c, const struct tri_frame *frame, const void *payload)
{
    bool gone;
    if (tri_frame_put(&c->out, frame, payload) == TRI_OK)
        (void)tri_socket_send(c->fd, &c->out, &gone);
}

static void put_to_all(struct tri_hub *hub, const struct tri_frame *frame, const void *payload)
{
    for (int i = 0; i < hub->num_connections; i++)
        if (hub->connections[i].rank >= 0)
            put(&hub->connections[i], frame, payload);
}

void tri_hub_fail(struct tri_hub *hub, int rank, enum tri_status status, const char *text)
{
    if (hub->failed)
        return;
    hub->failed = true;
    snprintf(hub->news_text, sizeof hub->news_text, "%s", text);
    hub->news = tri_frame_make(TRI_FRAME_NEWS, strlen(hub->news_text) + 1);
    hub->news.place = rank;
    hub->news.status = (int32_t)status;
    put_to_all(hub, &hub->news, hub->news_text);
}

static void refuse(struct tri_hub_connection *c, const char *text)
{
    struct tri_frame news = tri_frame_make(TRI_FRAME_NEWS, strlen(text) + 1);
    news.place = -1;
    news.status = TRI_COMM;
    put(c, &news, text);
    c->bye = true;
}

static void greet(struct tri_hub *hub, struct tri_hub_connection *c, const struct tri_frame *frame,
                  const char *payload)
{
    char text[TRI_FRAME_TEXT];
    if (frame->bytes != sizeof hub->token || memcmp(payload, hub->token, sizeof hub->token) != 0) {
        c->bye = true; /* of another job: it will look elsewhere */
        return;
    }
    int rank = frame->place;
    struct tri_frame known = tri_frame_make(TRI_FRAME_KNOWN, 0);
    put(c, &known, NULL);
    if (frame->size != hub->size || rank < 0 || rank >= hub->size) {
        snprintf(text, sizeof text,
                 "a process came as rank %d of %d ranks, but rank 0 waits for %d: start all with "
                 "the same WORLD_SIZE",
                 rank, frame->size, hub->size);
        refuse(c, text);
        tri_hub_fail(hub, -1, TRI_COMM, text);
        return;
    }
    if (hub->here[rank]) {
        snprintf(text, sizeof text, "two processes came as rank %d: give each its own RANK", rank);
        refuse(c, text);
        tri_hub_fail(hub, -1, TRI_COMM, text);
        return;
    }
    c->rank = rank;
    hub->here[rank] = true;
    hub->num_here++;
    if (hub->failed)
        put(c, &hub->news, hub->news_text);
    if (hub->num_here < hub->size || hub->failed)
        return;
    struct tri_frame welcome = tri_frame_make(TRI_FRAME_WELCOME, 0);
    hub->welcome = true;
    put_to_all(hub, &welcome, NULL);
}

static void give(struct tri_hub *hub, struct tri_hub_connection *c, const struct tri_frame *frame,
                 const char *payload)
{
    struct tri_hub_exchange *full = NULL;
    if (hub->failed)
        return; /* nobody waits for it */
    enum tri_status st = tri_hub_exchange_add(&hub->exchanges, c->rank, frame, payload, &full);
    if (st != TRI_OK)
        tri_hub_fail(hub, -1, st, tri_error_text());
    if (full == NULL)
        return;
    struct tri_frame take = tri_frame_make(TRI_FRAME_TAKE, (size_t)frame->size * frame->bytes);
    take.group = frame->group;
    take.sequence = frame->sequence;
    for (int i = 0; i < hub->num_connections; i++)
        for (int j = 0; j < full->first.size; j++)
            if (hub->connections[i].rank >= 0 && hub->connections[i].rank == full->ranks[j])
                put(&hub->connections[i], &take, full->parts);
    tri_hub_exchange_free(full);
}

/* A rank says that it failed. When it waited in vain, the hub knows for whom. */
static void hear_failure(struct tri_hub *hub, const struct tri_hub_connection *c,
                         const struct tri_frame *frame, const char *payload)
{
    char said[TRI_FRAME_TEXT], text[2 * TRI_FRAME_TEXT], missing[200] = "";
    size_t bytes = frame->bytes < sizeof said ? frame->bytes : sizeof said - 1;
    memcpy(said, payload, bytes);
    said[bytes] = '\0';
    if (frame->status == TRI_COMM)
        tri_hub_exchange_missing(hub->exchanges, c->rank, hub->size, missing, sizeof missing);
    snprintf(text, sizeof text, "%s%s%s", said, missing[0] != '\0' ? "; not there: " : "", missing);
    enum tri_status status = frame->status > 0 ? (enum tri_status)frame->status : TRI_INTERNAL;
    tri_hub_fail(hub, c->rank, status, text);
}

static enum tri_status handle(struct tri_hub *hub, struct tri_hub_connection *c,
                              const struct tri_frame *frame, const char *payload)
{
    if (c->rank < 0 && frame->kind != TRI_FRAME_HELLO)
        return tri_fail(TRI_COMM, "a stranger spoke before it said hello");
    switch (frame->kind) {
    case TRI_FRAME_HELLO:
        greet(hub, c, frame, payload);
        return TRI_OK;
    case TRI_FRAME_GIVE:
        give(hub, c, frame, payload);
        return TRI_OK;
    case TRI_FRAME_FAIL:
        hear_failure(hub, c, frame, payload);
        return TRI_OK;
    case TRI_FRAME_BYE:
        c->bye = true;
        return TRI_OK;
    default:
        return tri_fail(TRI_COMM, "rank %d sent what only the hub sends", c->rank);
    }
}

enum tri_status tri_hub_read(struct tri_hub *hub, struct tri_hub_connection *c)
{
    size_t most = c->rank < 0 ? 4096 : TRI_RENDEZVOUS_MAX_BYTES;
    for (;;) {
        struct tri_frame frame;
        const char *payload = NULL;
        size_t whole = 0;
        bool there = false;
        TRI_TRY(tri_frame_next(&c->in, most, &there, &frame, &payload, &whole));
        if (!there)
            return TRI_OK;
        TRI_TRY(handle(hub, c, &frame, payload));
        tri_buffer_drop(&c->in, whole);
    }
}
