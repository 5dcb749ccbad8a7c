#include "comm/rendezvous/rendezvous.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/rendezvous/private.h"

/* For the hub to answer a rank that gives up. */
static const double word_seconds = 2;

int tri_rendezvous_rank(const struct tri_rendezvous *rv)
{
    return rv->rank;
}

int tri_rendezvous_size(const struct tri_rendezvous *rv)
{
    return rv->size;
}

struct tri_rendezvous_group tri_rendezvous_all(const struct tri_rendezvous *rv)
{
    return (struct tri_rendezvous_group){.id = 1, .place = rv->rank, .size = rv->size};
}

/* Take the answer out of the list; the lock is held. */
static struct tri_rendezvous_answer *take(struct tri_rendezvous *rv,
                                          const struct tri_rendezvous_group *group)
{
    for (struct tri_rendezvous_answer **p = &rv->answers; *p != NULL; p = &(*p)->next)
        if ((*p)->group == group->id && (*p)->sequence == group->sequence) {
            struct tri_rendezvous_answer *found = *p;
            *p = found->next;
            return found;
        }
    return NULL;
}

enum tri_status tri_rendezvous_gather(struct tri_rendezvous *rv, struct tri_rendezvous_group *group,
                                      const char *what, void *recv, const void *send, size_t bytes,
                                      double timeout)
{
    double deadline = tri_clock() + timeout;
    struct tri_frame frame = tri_frame_make(TRI_FRAME_GIVE, bytes);
    if (bytes > TRI_RENDEZVOUS_MAX_BYTES)
        return tri_fail(TRI_INTERNAL, "%s: %zu bytes at once", what, bytes);
    TRI_TRY(tri_rendezvous_check(rv, what));
    frame.group = group->id;
    frame.sequence = group->sequence;
    frame.place = group->place;
    frame.size = group->size;
    snprintf(frame.what, sizeof frame.what, "%.31s", what);
    enum tri_status st = tri_rendezvous_send(rv, &frame, send, deadline);

    struct tri_rendezvous_answer *answer = NULL;
    pthread_mutex_lock(&rv->lock);
    while (st == TRI_OK && (answer = take(rv, group)) == NULL && rv->failed == TRI_OK &&
           tri_clock() < deadline)
        tri_rendezvous_wait(rv);
    if (st == TRI_OK && answer == NULL && rv->failed != TRI_OK)
        st = tri_rendezvous_explain(rv, what);
    else if (st == TRI_OK && answer == NULL)
        st = tri_fail(TRI_COMM,
                      "rank %d waited %.3g s in %s: a peer is gone or stuck; raise comm.timeout if "
                      "it is only slow",
                      rv->rank, timeout, what);
    pthread_mutex_unlock(&rv->lock);
    if (st == TRI_OK && answer->bytes != bytes * (size_t)group->size)
        st = tri_fail(TRI_INTERNAL, "%s: %zu bytes came back for %zu", what, answer->bytes,
                      bytes * (size_t)group->size);
    if (st == TRI_OK) {
        if (answer->bytes > 0)
            memcpy(recv, answer->data, answer->bytes);
        group->sequence++;
    } else if (st != TRI_PEER) {
        tri_rendezvous_fail(rv, st, tri_error_text());
        /* The hub knows who has not come, and whether another rank failed before. */
        (void)tri_rendezvous_first_failed(rv, word_seconds);
        st = tri_rendezvous_check(rv, what);
    }
    if (answer != NULL)
        free(answer->data);
    free(answer);
    return st;
}
