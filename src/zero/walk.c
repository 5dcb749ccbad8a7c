/* A pass over units: what is gathered ahead of use, and where gradients go afterwards.
 *
 * What is lent are two rooms, used in turns. When a unit is entered, its weights are waited for and
 * the gradients of the unit before the last, whose room it takes, are done; then the gradients of
 * the last unit and the weights of the next are sent beside the computation. Gradients with a place
 * of their own are sent when the unit is left, and nobody waits for them before the end of the
 * step. */
#include <stdlib.h>

#include "base/arena.h"
#include "zero/zero.h"

static int turn(const struct tri_zero_walk *w, int unit)
{
    return abs(unit - w->first) % 2;
}

static void *part_of(const struct tri_zero *z, void *room, int unit, enum tri_dtype dtype)
{
    int64_t begin = z->partition.rank * z->partition.units[unit].part;
    return (char *)room + (size_t)begin * tri_dtype_bytes(dtype);
}

static enum tri_status get_rooms(struct tri_zero_walk *w, const char *name, enum tri_dtype dtype,
                                 void *rooms[2])
{
    const struct tri_partition *p = &w->zero->partition;
    int64_t longest = 0;
    int low = w->first < w->last ? w->first : w->last;
    int high = w->first < w->last ? w->last : w->first;
    for (int u = low; u <= high; u++)
        longest = p->units[u].part > longest ? p->units[u].part : longest;
    size_t bytes = (size_t)(longest * p->ranks) * tri_dtype_bytes(dtype);
    for (int i = 0; i < 2 && i <= high - low; i++)
        TRI_TRY(tri_arena_alloc(w->zero->exec.arena, name, bytes, &rooms[i]));
    return TRI_OK;
}

static enum tri_status gather(struct tri_zero_walk *w, int unit, struct tri_stream *side)
{
    struct tri_zero *z = w->zero;
    const struct tri_zero_unit *u = &z->partition.units[unit];
    size_t size = tri_dtype_bytes(z->act);
    return z->world->ops->all_gather(z->world, side, w->weights[turn(w, unit)],
                                     (const char *)z->weights + (size_t)u->own * size,
                                     (size_t)u->part * size);
}

/* The sum over ranks lands in this rank's part of a unit's gradients; in stage 0, where no rank has
 * a part, in all of them. */
static enum tri_status reduce(struct tri_zero *z, int unit, void *grads, struct tri_stream *side)
{
    int64_t n = z->partition.units[unit].part;
    if (z->stage == 0)
        return z->world->ops->all_reduce(z->world, side, grads, n, z->stat, TRI_SUM);
    return z->world->ops->reduce_scatter(z->world, side, part_of(z, grads, unit, z->stat), grads, n,
                                         z->stat);
}

/* Micro-batches, and the two uses of a tied embedding, add up in the own buffer. */
static enum tri_status keep_reduced(struct tri_zero_walk *w)
{
    struct tri_zero *z = w->zero;
    int unit = w->reducing;
    if (unit < 0)
        return TRI_OK;
    w->reducing = -1;
    const struct tri_zero_unit *u = &z->partition.units[unit];
    void *own = (char *)z->grads + (size_t)u->own * tri_dtype_bytes(z->stat);
    void *sum = part_of(z, w->grads[turn(w, unit)], unit, z->stat);
    return z->exec.ops->add(z->exec.stream, tri_view1(own, z->stat, u->part),
                            tri_view1(sum, z->stat, u->part));
}

/* Wait for what is on its way, then send what is next: `incoming` is a unit to gather, or -1. */
static enum tri_status turn_over(struct tri_zero_walk *w, int incoming)
{
    struct tri_zero *z = w->zero;
    struct tri_stream *side;
    TRI_TRY(tri_comm_join(z->world, z->exec.stream));
    TRI_TRY(keep_reduced(w));
    if (w->complete < 0 && incoming < 0)
        return TRI_OK;
    TRI_TRY(tri_comm_fork(z->world, z->exec.stream, &side));
    if (w->complete >= 0)
        TRI_TRY(reduce(z, w->complete, w->grads[turn(w, w->complete)], side));
    w->reducing = w->complete;
    w->complete = -1;
    return incoming >= 0 ? gather(w, incoming, side) : TRI_OK;
}

enum tri_status tri_zero_walk_begin(struct tri_zero *z, int first, int last, int what,
                                    struct tri_zero_walk *out)
{
    bool adds = (what & (TRI_ZERO_GRADS | TRI_ZERO_SOME_GRADS)) != 0;
    bool all_here = z->completing && (what & TRI_ZERO_GRADS) != 0;
    struct tri_zero_walk w = {.zero = z,
                              .first = first,
                              .last = last,
                              .gathers = (what & TRI_ZERO_WEIGHTS) != 0 && z->stage == 3,
                              .lends = adds && z->stage >= 2,
                              .finishes = all_here && z->stage < 2 && z->world != NULL,
                              .mark = tri_arena_mark(z->exec.arena),
                              .complete = -1,
                              .reducing = -1};
    if (w.gathers)
        TRI_TRY(get_rooms(&w, "weights of a unit", z->act, w.weights));
    if (w.lends)
        TRI_TRY(get_rooms(&w, "gradients of a unit", z->stat, w.grads));
    if (w.gathers)
        TRI_TRY(turn_over(&w, first));
    *out = w;
    return TRI_OK;
}

enum tri_status tri_zero_walk_enter(struct tri_zero_walk *w, int unit)
{
    struct tri_zero *z = w->zero;
    if (!w->gathers && !w->lends)
        return TRI_OK;
    int next = unit == w->last ? -1 : unit + (w->last > w->first ? 1 : -1);
    TRI_TRY(turn_over(w, w->gathers ? next : -1));
    if (w->gathers)
        z->unit_weights[unit] = w->weights[turn(w, unit)];
    if (!w->lends)
        return TRI_OK;
    void *room = w->grads[turn(w, unit)];
    int64_t n = z->partition.units[unit].part * z->partition.ranks;
    TRI_TRY(z->exec.ops->zero(z->exec.stream, tri_view1(room, z->stat, n)));
    z->unit_grads[unit] = room;
    return TRI_OK;
}

enum tri_status tri_zero_walk_leave(struct tri_zero_walk *w, int unit)
{
    struct tri_zero *z = w->zero;
    struct tri_stream *side;
    if (w->gathers)
        z->unit_weights[unit] = NULL;
    if (w->lends) {
        z->unit_grads[unit] = NULL;
        w->complete = unit;
    }
    if (!w->finishes)
        return TRI_OK;
    TRI_TRY(tri_comm_fork(z->world, z->exec.stream, &side));
    return reduce(z, unit, z->unit_grads[unit], side);
}

enum tri_status tri_zero_walk_end(struct tri_zero_walk *w)
{
    if (w->lends) {
        TRI_TRY(turn_over(w, -1)); /* the last unit's are sent */
        TRI_TRY(turn_over(w, -1)); /* and have arrived */
    }
    tri_arena_release(w->zero->exec.arena, w->mark);
    return TRI_OK;
}
