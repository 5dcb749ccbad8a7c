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
    const int workers = tri_cpu_workers(s->cpu, rows * n);
#pragma omp parallel for num_threads(workers) if (workers > 1) schedule(static)
    for (int64_t r = 0; r < rows; r++)
        s->cpu->simd->norm_forward(op, n, row_at(y, r), row_at(x, r), w.data, b.data);
    return TRI_OK;
}

/* Rows go through in blocks that stay in cache: statistics by rows, dw and db by columns (each
 * thread owns some, rows in order: the bits do not depend on the number of threads), dx by rows.
 * dw and db come before dx because dx may take the place of dy. */
enum { MAX_BLOCK_ROWS = 512, BLOCK_ELEMENTS = 1 << 19, COLUMN_GRAIN = 64, MAX_COLUMNS = 512 };

struct backward {
    const struct tri_cpu *cpu;
    const struct tri_norm *op;
    bool accumulate;
    struct tri_view dx, dw, db, dy, x, w;
    int64_t n;
};

/* dw, db of columns [begin, end) += rows [first, first + count), summed apart first. */
static void add_columns(const struct backward *c, int64_t first, int64_t count,
                        const struct tri_norm_row *stats, int64_t begin, int64_t end)
{
    float sum_w[MAX_COLUMNS];
    float sum_b[MAX_COLUMNS];
    float *dw = c->dw.data;
    float *db = c->db.data;
    for (int64_t col = begin; col < end; col += MAX_COLUMNS) {
        int64_t n = end - col < MAX_COLUMNS ? end - col : MAX_COLUMNS;
        memset(sum_w, 0, sizeof sum_w);
        memset(sum_b, 0, sizeof sum_b);
        for (int64_t i = 0; i < count; i++)
            c->cpu->simd->norm_backward_w(n, sum_w, db == NULL ? NULL : sum_b,
                                          row_at(c->dy, first + i) + col,
                                          row_at(c->x, first + i) + col, stats + i);
        c->cpu->simd->add(n, dw + col, sum_w);
        if (db != NULL)
            c->cpu->simd->add(n, db + col, sum_b);
    }
}

static void backward_block(const struct backward *c, int64_t first, int64_t count)
{
    struct tri_norm_row stats[MAX_BLOCK_ROWS];
    const struct tri_simd *simd = c->cpu->simd;
    const float *w = c->w.data;
    const int workers = tri_cpu_workers(c->cpu, count * c->n);
#pragma omp parallel num_threads(workers) if (workers > 1)
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            simd->norm_stats(c->op, c->n, row_at(c->dy, first + i), row_at(c->x, first + i), w,
                             stats + i);
#pragma omp for schedule(static)
        for (int worker = 0; worker < workers; worker++)
            add_columns(c, first, count, stats, tri_cpu_piece(c->n, COLUMN_GRAIN, workers, worker),
                        tri_cpu_piece(c->n, COLUMN_GRAIN, workers, worker + 1));
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count; i++)
            simd->norm_backward_x(c->accumulate, c->n, row_at(c->dx, first + i),
                                  row_at(c->dy, first + i), row_at(c->x, first + i), w, stats + i);
    }
}

static enum tri_status norm_backward(struct tri_stream *s, const struct tri_norm *op,
                                     bool accumulate, struct tri_view dx, struct tri_view dw,
                                     struct tri_view db, struct tri_view dy, struct tri_view x,
                                     struct tri_view w)
{
    if (x.dtype != TRI_F32 || dy.dtype != TRI_F32 || dx.dtype != TRI_F32 || w.dtype != TRI_F32 ||
        dw.dtype != TRI_F32 || dw.data == NULL)
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
                               .n = last_dim(x)};
    if (c.n == 0)
        return TRI_OK;
    const int64_t rows = tri_view_count(x) / c.n;
    int64_t block = BLOCK_ELEMENTS / c.n;
    block = block < 16 ? 16 : block > MAX_BLOCK_ROWS ? MAX_BLOCK_ROWS : block;
    for (int64_t first = 0; first < rows; first += block)
        backward_block(&c, first, rows - first < block ? rows - first : block);
    return TRI_OK;
}

void tri_cpu_fast_norm(struct tri_ops *ops)
{
    ops->norm_forward = norm_forward;
    ops->norm_backward = norm_backward;
}
