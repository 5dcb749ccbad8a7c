#include "zero/zero.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

static void *element(void *data, enum tri_dtype dtype, int64_t i)
{
    return (char *)data + (size_t)i * tri_dtype_bytes(dtype);
}

static bool own_weights(const struct tri_zero *z)
{
    return z->stage == 3;
}

static bool own_grads(const struct tri_zero *z)
{
    return z->stage >= 2;
}

/* A buffer that lives as long as the run, zero: padding has to stay zero through every update. */
static enum tri_status get_buffer(struct tri_zero *z, const char *name, enum tri_dtype dtype,
                                  bool own, void **out)
{
    int64_t n = own ? z->partition.own_elements : z->partition.full_elements;
    TRI_TRY(tri_arena_alloc(z->exec.arena, name, (size_t)n * tri_dtype_bytes(dtype), out));
    return z->exec.ops->zero(z->exec.stream, tri_view1(*out, dtype, n));
}

static enum tri_status get_buffers(struct tri_zero *z, bool training)
{
    void *norm2;
    TRI_TRY(get_buffer(z, "weights", z->act, own_weights(z), &z->weights));
    if (!training)
        return TRI_OK;
    TRI_TRY(get_buffer(z, "gradients", z->stat, own_grads(z), &z->grads));
    TRI_TRY(tri_arena_alloc(z->exec.arena, "gradient norm", sizeof(double), &norm2));
    z->norm2 = norm2;
    return TRI_OK;
}

/* Units that are always there. */
static void place_units(struct tri_zero *z)
{
    for (int u = 0; u < z->model->num_units; u++) {
        int64_t full = z->partition.units[u].full;
        if (!own_weights(z))
            z->unit_weights[u] = element(z->weights, z->act, full);
        if (!own_grads(z) && z->grads != NULL)
            z->unit_grads[u] = element(z->grads, z->stat, full);
    }
}

enum tri_status tri_zero_open(const struct tri_zero_config *config, struct tri_zero **out)
{
    enum tri_status st;
    struct tri_zero *z = calloc(1, sizeof *z);
    if (z == NULL)
        return tri_fail(TRI_NOMEM, "no memory for weights and gradients");
    int ranks = config->world != NULL ? config->world->size : 1;
    z->exec = config->exec;
    z->model = config->model;
    z->world = config->world;
    z->stage = ranks > 1 ? config->stage : 0;
    z->act = config->act;
    z->stat = config->stat;
    bool parts = z->stage > 0;
    TRI_TRY_GOTO(
        st,
        tri_partition_open(z->model, parts ? ranks : 1, parts ? z->world->rank : 0, &z->partition),
        free_zero);
    size_t units = (size_t)z->model->num_units;
    z->unit_weights = calloc(units, sizeof *z->unit_weights);
    z->unit_grads = calloc(units, sizeof *z->unit_grads);
    z->blocks = calloc(2 * (size_t)ranks, sizeof *z->blocks);
    if (z->unit_weights == NULL || z->unit_grads == NULL || z->blocks == NULL) {
        st = tri_fail(TRI_NOMEM, "no memory for a table of %zu units", units);
        goto close_zero;
    }
    TRI_TRY_GOTO(st, get_buffers(z, config->training), close_zero);
    place_units(z);
    *out = z;
    return TRI_OK;

close_zero:
    tri_zero_close(z);
    return st;
free_zero:
    free(z);
    return st;
}

void tri_zero_close(struct tri_zero *z)
{
    if (z == NULL)
        return;
    tri_partition_close(&z->partition);
    free(z->unit_weights);
    free(z->unit_grads);
    free(z->blocks);
    free(z);
}

int64_t tri_zero_weights_at(const struct tri_zero *z, const struct tri_own_run *run)
{
    return own_weights(z) ? run->own : run->full;
}

int64_t tri_zero_grads_at(const struct tri_zero *z, const struct tri_own_run *run)
{
    return own_grads(z) ? run->own : run->full;
}

enum tri_status tri_zero_clear_grads(struct tri_zero *z)
{
    int64_t n = own_grads(z) ? z->partition.own_elements : z->partition.full_elements;
    z->completing = false;
    return z->exec.ops->zero(z->exec.stream, tri_view1(z->grads, z->stat, n));
}

void tri_zero_complete_grads(struct tri_zero *z)
{
    z->completing = true;
}

enum tri_status tri_zero_join_grads(struct tri_zero *z)
{
    z->completing = false;
    return z->world != NULL ? tri_comm_join(z->world, z->exec.stream) : TRI_OK;
}

/* *norm2 += the squares of this rank's gradients. */
static enum tri_status add_squares(struct tri_zero *z)
{
    const struct tri_partition *p = &z->partition;
    if (own_grads(z) || p->ranks == 1)
        return z->exec.ops->sum_squares(z->exec.stream, z->norm2,
                                        tri_view1(z->grads, z->stat, p->own_elements));
    for (int u = 0; u < z->model->num_units; u++) {
        void *own = element(z->grads, z->stat, p->units[u].full + p->rank * p->units[u].part);
        TRI_TRY(z->exec.ops->sum_squares(z->exec.stream, z->norm2,
                                         tri_view1(own, z->stat, p->units[u].part)));
    }
    return TRI_OK;
}

enum tri_status tri_zero_grad_norm(struct tri_zero *z, double *norm)
{
    double sum;
    TRI_TRY(z->exec.ops->zero(z->exec.stream, tri_view1(z->norm2, TRI_F64, 1)));
    TRI_TRY(add_squares(z));
    TRI_TRY(z->exec.ops->read_scalars(z->exec.stream, &sum, z->norm2, 1));
    if (z->stage > 0)
        TRI_TRY(tri_comm_sum_double(z->world, &sum, 1));
    *norm = sqrt(sum);
    return TRI_OK;
}

enum tri_status tri_zero_share_weights(struct tri_zero *z)
{
    if (z->stage == 0 || own_weights(z))
        return TRI_OK;
    for (int u = 0; u < z->model->num_units; u++) {
        const struct tri_zero_unit *unit = &z->partition.units[u];
        void *all = element(z->weights, z->act, unit->full);
        const void *own = element(all, z->act, z->partition.rank * unit->part);
        TRI_TRY(z->world->ops->all_gather(z->world, z->exec.stream, all, own,
                                          (size_t)unit->part * tri_dtype_bytes(z->act)));
    }
    return TRI_OK;
}
