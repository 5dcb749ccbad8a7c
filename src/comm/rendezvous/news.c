/* The news that a rank failed. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/rendezvous/private.h"

void tri_rendezvous_wait(struct tri_rendezvous *rv)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 100 * 1000 * 1000;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&rv->changed, &rv->lock, &until);
}

void tri_rendezvous_note(struct tri_rendezvous *rv, int rank, enum tri_status status,
                         const char *text, bool from_hub)
{
    pthread_mutex_lock(&rv->lock);
    bool news = rv->failed == TRI_OK;
    if (news || (from_hub && !rv->told)) {
        rv->failed = status;
        rv->failed_rank = rank;
        snprintf(rv->text, sizeof rv->text, "%s", text);
    }
    rv->told = rv->told || from_hub;
    pthread_cond_broadcast(&rv->changed);
    pthread_mutex_unlock(&rv->lock);
    if (!news)
        return;
    pthread_mutex_lock(&rv->heard_lock);
    if (rv->heard != NULL)
        rv->heard(rv->heard_ctx);
    rv->heard = NULL;
    pthread_mutex_unlock(&rv->heard_lock);
}

void tri_rendezvous_on_failure(struct tri_rendezvous *rv, void (*heard)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&rv->heard_lock);
    pthread_mutex_lock(&rv->lock);
    bool failed = rv->failed != TRI_OK;
    pthread_mutex_unlock(&rv->lock);
    rv->heard = failed ? NULL : heard;
    rv->heard_ctx = ctx;
    if (failed && heard != NULL)
        heard(ctx);
    pthread_mutex_unlock(&rv->heard_lock);
}

enum tri_status tri_rendezvous_explain(const struct tri_rendezvous *rv, const char *what)
{
    if (rv->failed_rank < 0 || rv->failed_rank == rv->rank)
        return tri_fail(rv->failed, "%s", rv->text);
    return tri_fail(TRI_PEER, "rank %d failed: %s (this rank was in %s)", rv->failed_rank, rv->text,
                    what);
}

enum tri_status tri_rendezvous_check(struct tri_rendezvous *rv, const char *what)
{
    pthread_mutex_lock(&rv->lock);
    enum tri_status st = rv->failed == TRI_OK ? TRI_OK : tri_rendezvous_explain(rv, what);
    pthread_mutex_unlock(&rv->lock);
    return st;
}

int tri_rendezvous_first_failed(struct tri_rendezvous *rv, double seconds)
{
    double deadline = tri_clock() + seconds;
    pthread_mutex_lock(&rv->lock);
    while (!rv->told && !rv->over && tri_clock() < deadline)
        tri_rendezvous_wait(rv);
    int rank = rv->failed != TRI_OK ? rv->failed_rank : -1;
    pthread_mutex_unlock(&rv->lock);
    return rank;
}

void tri_rendezvous_fail(struct tri_rendezvous *rv, enum tri_status status, const char *text)
{
    struct tri_frame frame = tri_frame_make(TRI_FRAME_FAIL, strlen(text) + 1);
    pthread_mutex_lock(&rv->lock);
    bool known = rv->failed != TRI_OK;
    pthread_mutex_unlock(&rv->lock);
    if (known)
        return;
    char copy[TRI_FRAME_TEXT];
    snprintf(copy, sizeof copy, "%s", text); /* `text` may be the error text that is overwritten */
    frame.bytes = (uint32_t)strlen(copy) + 1;
    frame.status = (int32_t)status;
    (void)tri_rendezvous_send(rv, &frame, copy, tri_clock() + TRI_RENDEZVOUS_FAREWELL);
    tri_rendezvous_note(rv, rv->rank, status, copy, false);
}
