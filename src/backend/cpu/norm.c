/* Normalisation over the last dimension. */
#include <string.h>

#include "backend/cpu/stream.h"

/* Row r of a (rows, N) or (T, H, N) view. */
static float *row_at(struct tri_view v, int64_t r)
{
    float *data = v.data;
    if (v.num_dims == 1)
        return data;
    if (v.num_dims == 2)
        return data + r * v.stride[0];
    return data + r / v.dim[1] * v.stride[0] + r % v.dim[1] * v.stride[1];
}

static int64_t last_dim(struct tri_view v)
{
    return v.dim[v.num_dims - 1];
}

static enum tri_status norm_forward(struct tri_stream *s, const struct tri_norm *op,
                                    struct tri_view y, struct tri_view x, struct tri_view w,
                                    struct tri_view b)
{
    if (x.dtype != TRI_F32 || y.dtype != TRI_F32 || w.dtype != TRI_F32 || w.data == NULL)
        return s->cpu->reference.norm_forward(s, op, y, x, w, b);
    const int64_t n = last_dim(x);
    const int64_t rows = n == 0 ? 0 : tri_view_count(x) / n;
#pragma omp parallel for num_threads(tri_cpu_workers(s->cpu, rows *n)) schedule(static)
    for (int64_t r = 0; r < rows; r++)
        s->cpu->simd->norm_forward(op, n, row_at(y, r), row_at(x, r), w.data, b.data);
    return TRI_OK;
}

/* Rows go in groups, each by one thread: statistics, then dx, dw and db, the latter two
 * into the group's own sums. The sums of up to MAX_GROUPS groups are then added to dw
 * and db by columns, in the order of the rows: the bits do not depend on the number of threads. */
enum { MAX_GROUPS = 128, MIN_GROUP_ROWS = 16, MAX_GROUP_ROWS = 512, GROUP_ELEMENTS = 16384 };

struct backward {
    const struct tri_cpu *cpu;
    const struct tri_norm *op;
    bool accumulate;
    struct tri_view dx, dw, db, dy, x, w;
    int64_t n;
    float *sums; /* (groups, 2, n): of dw, of db */
};

static void backward_group(const struct backward *c, float *sums, int64_t first, int64_t count)
{
    const struct tri_simd *simd = c->cpu->simd;
    float *sum_b = c->db.data == NULL ? NULL : sums + c->n;
    memset(sums, 0, (size_t)((sum_b == NULL ? 1 : 2) * c->n) * sizeof *sums);
    for (int64_t r = first; r < first + count; r++) {
        const float *dy = row_at(c->dy, r);
        const float *x = row_at(c->x, r);
        struct tri_norm_row stats;
        simd->norm_stats(c->op, c->n, dy, x, c->w.data, &stats);
        simd->norm_backward(c->accumulate, c->n, row_at(c->dx, r), sums, sum_b, dy, x, c->w.data,
                            &stats);
    }
}

/* Groups of `rows` rows, covering [first, first + count). */
static void backward_groups(const struct backward *c, int64_t first, int64_t count, int64_t rows)
{
    const int64_t groups = (count + rows - 1) / rows;
#pragma omp parallel for num_threads(tri_cpu_workers(c->cpu, count * c->n)) schedule(dynamic)
    for (int64_t g = 0; g < groups; g++) {
        int64_t left = count - g * rows;
        backward_group(c, c->sums + 2 * c->n * g, first + g * rows, left < rows ? left : rows);
    }
    float *dw = c->dw.data;
    float *db = c->db.data;
    const int reducers = tri_cpu_workers(c->cpu, groups * c->n);
#pragma omp parallel for num_threads(reducers) schedule(static)
    for (int reducer = 0; reducer < reducers; reducer++) {
        int64_t begin = tri_cpu_piece(c->n, 16, reducers, reducer);
        int64_t end = tri_cpu_piece(c->n, 16, reducers, reducer + 1);
        for (int64_t g = 0; g < groups; g++) {
            const float *sums = c->sums + 2 * c->n * g;
            c->cpu->simd->add(end - begin, dw + begin, sums + begin);
            if (db != NULL)
                c->cpu->simd->add(end - begin, db + begin, sums + c->n + begin);
        }
    }
}

static enum tri_status norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                     bool accumulate, struct tri_view dx, struct tri_view dw,
                                     struct tri_view db, struct tri_view dy, struct tri_view x,
                                     struct tri_view w)
{
    if (x.dtype != TRI_F32 || dy.dtype != TRI_F32 || dx.dtype != TRI_F32 || w.dtype != TRI_F32 ||
        dw.dtype != TRI_F32 || dw.data == NULL || 2 * last_dim(x) > TRI_CPU_SCRATCH)
        return s->cpu->reference.norm_backward(s, op, accumulate, dx, dw, db, dy, x, w);
    const struct backward c = {.cpu = s->cpu,
                               .op = op,
                               .accumulate = accumulate,
                               .dx = dx,
                               .dw = dw,
                               .db = db,
                               .dy = dy,
                               .x = x,
                               .w = w,
                               .n = last_dim(x),
                               .sums = s->cpu->scratch};
    if (c.n == 0)
        return TRI_OK;
    const int64_t count = tri_view_count(x) / c.n;
    int64_t rows = GROUP_ELEMENTS / c.n;
    rows = rows < MIN_GROUP_ROWS ? MIN_GROUP_ROWS : rows > MAX_GROUP_ROWS ? MAX_GROUP_ROWS : rows;
    int64_t groups = TRI_CPU_SCRATCH / (2 * c.n);
    groups = groups < MAX_GROUPS ? groups : MAX_GROUPS;
    for (int64_t first = 0; first < count; first += groups * rows) {
        int64_t left = count - first;
        backward_groups(&c, first, left < groups * rows ? left : groups * rows, rows);
    }
    return TRI_OK;
}

void tri_cpu_fast_norm(struct tri_ops *ops)
{
    ops->norm_forward = norm_forward;
    ops->norm_backward = norm_backward;
}
