#include "zero/partition.h"

#include <stdlib.h>

/* A part keeps the alignment of parameters. */
enum { PART_ALIGN = 64 };

enum tri_status tri_partition_open(const struct tri_model *model, int ranks, int rank,
                                   struct tri_partition *out)
{
    struct tri_partition p = {.model = model, .ranks = ranks, .rank = rank};
    p.units = calloc((size_t)model->num_units, sizeof *p.units);
    if (p.units == NULL)
        return tri_fail(TRI_NOMEM, "no memory to divide a model of %d units", model->num_units);
    for (int u = 0; u < model->num_units; u++) {
        int64_t count = model->unit_begin[u + 1] - model->unit_begin[u];
        int64_t step = (int64_t)PART_ALIGN * ranks;
        int64_t part = (count + step - 1) / step * PART_ALIGN;
        p.units[u] =
            (struct tri_zero_unit){.full = p.full_elements, .own = p.own_elements, .part = part};
        p.full_elements += part * ranks;
        p.own_elements += part;
    }
    *out = p;
    return TRI_OK;
}

void tri_partition_close(struct tri_partition *partition)
{
    free(partition->units);
    partition->units = NULL;
}

/* This rank's elements of a parameter and of the padding behind it; none: count <= 0. */
static struct tri_own_run own_run(const struct tri_partition *p, int param)
{
    const struct tri_model *model = p->model;
    int u = tri_model_unit(model, param);
    const struct tri_zero_unit *unit = &p->units[u];
    bool last = param + 1 == model->num_params || tri_model_unit(model, param + 1) != u;
    int64_t begin = model->params[param].offset - model->unit_begin[u];
    int64_t end =
        last ? unit->part * p->ranks : model->params[param + 1].offset - model->unit_begin[u];
    int64_t own_begin = unit->part * p->rank;
    int64_t own_end = own_begin + unit->part;
    begin = begin > own_begin ? begin : own_begin;
    end = end < own_end ? end : own_end;
    return (struct tri_own_run){.full = unit->full + begin,
                                .own = unit->own + begin - own_begin,
                                .count = end - begin,
                                .decay = model->params[param].decay};
}

bool tri_partition_next_run(const struct tri_partition *p, int *param, struct tri_own_run *out)
{
    struct tri_own_run run = {.count = 0};
    for (; *param < p->model->num_params; ++*param) {
        struct tri_own_run next = own_run(p, *param);
        if (next.count <= 0)
            continue;
        if (run.count == 0)
            run = next;
        else if (next.decay == run.decay && next.full == run.full + run.count)
            run.count += next.count;
        else
            break;
    }
    *out = run;
    return run.count > 0;
}
