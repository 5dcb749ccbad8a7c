#include "comm/rendezvous/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tri_hub_exchange_free(struct tri_hub_exchange *exchange)
{
    if (exchange == NULL)
        return;
    free(exchange->parts);
    free(exchange->ranks);
    free(exchange);
}

static enum tri_status make(struct tri_hub_exchange **list, int rank, const struct tri_frame *frame,
                            struct tri_hub_exchange **out)
{
    if (frame->size < 1 || frame->size > TRI_RENDEZVOUS_MAX_RANKS ||
        frame->bytes > TRI_RENDEZVOUS_MAX_BYTES ||
        (size_t)frame->size * frame->bytes > TRI_FRAME_MAX)
        return tri_fail(TRI_COMM, "rank %d: an exchange of %d times %u bytes is too large", rank,
                        frame->size, frame->bytes);
    struct tri_hub_exchange *made = calloc(1, sizeof *made);
    if (made == NULL)
        return tri_fail(TRI_NOMEM, "no memory for an exchange");
    made->parts = malloc((size_t)frame->size * frame->bytes + 1);
    made->ranks = malloc((size_t)frame->size * sizeof *made->ranks);
    if (made->parts == NULL || made->ranks == NULL) {
        tri_hub_exchange_free(made);
        return tri_fail(TRI_NOMEM, "no memory for an exchange");
    }
    for (int i = 0; i < frame->size; i++)
        made->ranks[i] = -1;
    made->first = *frame;
    made->first_rank = rank;
    made->next = *list;
    *list = made;
    *out = made;
    return TRI_OK;
}

static struct tri_hub_exchange **find(struct tri_hub_exchange **list, const struct tri_frame *frame)
{
    while (*list != NULL &&
           ((*list)->first.group != frame->group || (*list)->first.sequence != frame->sequence))
        list = &(*list)->next;
    return list;
}

enum tri_status tri_hub_exchange_add(struct tri_hub_exchange **list, int rank,
                                     const struct tri_frame *frame, const char *payload,
                                     struct tri_hub_exchange **full)
{
    struct tri_hub_exchange *exchange = *find(list, frame);
    *full = NULL;
    if (exchange == NULL)
        TRI_TRY(make(list, rank, frame, &exchange));
    const struct tri_frame *first = &exchange->first;
    if (first->bytes != frame->bytes || first->size != frame->size ||
        strcmp(first->what, frame->what) != 0)
        return tri_fail(
            TRI_COMM, "ranks went apart: rank %d is in %s of %u bytes, rank %d in %s of %u bytes",
            exchange->first_rank, first->what, first->bytes, rank, frame->what, frame->bytes);
    if (frame->place < 0 || frame->place >= frame->size || exchange->ranks[frame->place] >= 0)
        return tri_fail(TRI_COMM, "rank %d came to %s as member %d of %d, which is taken", rank,
                        frame->what, frame->place, frame->size);
    memcpy(exchange->parts + (size_t)frame->place * frame->bytes, payload, frame->bytes);
    exchange->ranks[frame->place] = rank;
    if (++exchange->came < frame->size)
        return TRI_OK;
    *find(list, frame) = exchange->next;
    *full = exchange;
    return TRI_OK;
}

void tri_hub_exchange_missing(const struct tri_hub_exchange *list, int asker, int size, char *text,
                              size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    while (list != NULL && (list->first.size != size || list->ranks[asker] != asker))
        list = list->next;
    for (int r = 0; list != NULL && r < size && used + 16 < bytes; r++)
        if (list->ranks[r] < 0)
            used +=
                (size_t)snprintf(text + used, bytes - used, "%srank %d", used > 0 ? ", " : "", r);
}
