/* Products through CBLAS.
 *
 * The result is cut into pieces, each computed by one thread in one call: rank threads then never
 * wait for each other inside OpenBLAS (its OpenMP build runs one threaded product at a time), and
 * busy cores get fewer pieces. The cuts depend only on shapes and the number of threads; with the
 * kernels of Haswell and Zen, and rows enough for all threads, not even the bits do. */
#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "backend/cpu/stream.h"
#include "base/minmax.h"

/* CBLAS counts in int; longer dimensions are cut. PIECE_GRAIN is a multiple of the rows that the
 * inner loops of OpenBLAS take at once (12 on Haswell and Zen), so that a cut of rows there changes
 * no bit of any row. */
enum { MAX_DIM = (1 << 30) / 48 * 48, MIN_PIECE = 96, PIECE_GRAIN = 48, PIECES_PER_THREAD = 3 };

/* C(m,n) = beta C + A B, all row-major. A is (m,k), or (k,m) when `ta`; B is (k,n), or (n,k) when
 * `tb`. */
struct product {
    const struct tri_cpu *cpu;
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
    float beta; /* 0 or 1 */
};

static int64_t leading(struct tri_view v)
{
    int64_t cols = v.dim[1] > 0 ? v.dim[1] : 1;
    return v.dim[0] > 1 && v.stride[0] > cols ? v.stride[0] : cols;
}

/* C[i : i+m, j : j+n]; all of k, a cut at a time. */
static void product_piece(const struct product *p, int64_t i, int64_t m, int64_t j, int64_t n)
{
    for (int64_t at = 0; at < p->k; at += MAX_DIM) {
        int64_t k = tri_min(p->k - at, MAX_DIM);
        const float *a = p->a + (p->ta ? at * p->lda + i : i * p->lda + at);
        const float *b = p->b + (p->tb ? j * p->ldb + at : at * p->ldb + j);
        cblas_sgemm(CblasRowMajor, p->ta ? CblasTrans : CblasNoTrans,
                    p->tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1.0f, a, (int)p->lda,
                    b, (int)p->ldb, at == 0 ? p->beta : 1.0f, p->c + i * p->ldc + j, (int)p->ldc);
    }
}

/* Length of one piece of `count` so that there are about `wanted` of them. */
static int64_t piece_length(int64_t count, int64_t wanted)
{
    int64_t length = (count + wanted - 1) / wanted;
    length = (length + PIECE_GRAIN - 1) / PIECE_GRAIN * PIECE_GRAIN;
    return tri_min(tri_max(length, MIN_PIECE), MAX_DIM);
}

static void product_pieces(const struct product *p)
{
    const int workers = tri_cpu_workers(p->cpu, p->m * p->n * (1 + p->k / 16));
    const int64_t wanted = workers == 1 ? 1 : (int64_t)workers * PIECES_PER_THREAD;
    const int64_t rows = piece_length(p->m, wanted);
    const int64_t bands = (p->m + rows - 1) / rows;
    /* Columns are only cut where the rows do not go round: that may change the last bits. */
    const int64_t cols = piece_length(p->n, bands < workers ? (wanted + bands - 1) / bands : 1);
    const int64_t across = (p->n + cols - 1) / cols;
    const int64_t pieces = (p->m + rows - 1) / rows * across;
#pragma omp parallel for num_threads(workers) schedule(dynamic, 1)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t i = piece / across * rows;
        int64_t j = piece % across * cols;
        product_piece(p, i, tri_min(rows, p->m - i), j, tri_min(cols, p->n - j));
    }
}

static enum tri_status product_run(const struct product *p)
{
    if (p->m == 0 || p->n == 0)
        return TRI_OK;
    if (p->lda > INT_MAX || p->ldb > INT_MAX || p->ldc > INT_MAX)
        return tri_fail(TRI_UNSUPPORTED,
                        "product of %lld x %lld x %lld: a row stride is over %d elements, which "
                        "CBLAS cannot take; copy the tensor to a contiguous one",
                        (long long)p->m, (long long)p->n, (long long)p->k, INT_MAX);
    if (p->k == 0) {
        for (int64_t i = 0; p->beta == 0.0f && i < p->m; i++)
            memset(p->c + i * p->ldc, 0, (size_t)p->n * sizeof *p->c);
        return TRI_OK;
    }
    /* Every call runs on the thread that makes it: OpenBLAS asks this setting. */
#ifdef _OPENMP
    const int before = omp_get_max_threads();
    omp_set_num_threads(1);
    product_pieces(p);
    omp_set_num_threads(before);
#else
    openblas_set_num_threads(1);
    product_pieces(p);
#endif
    return TRI_OK;
}

static bool all_f32(struct tri_view a, struct tri_view b, struct tri_view c)
{
    return a.dtype == TRI_F32 && b.dtype == TRI_F32 && c.dtype == TRI_F32;
}

/* Each row of y = or += b. */
static void put_bias(const struct tri_cpu *cpu, bool accumulate, struct tri_view y,
                     struct tri_view b)
{
    float *data = y.data;
    const int64_t rows = y.dim[0];
#pragma omp parallel for num_threads(tri_cpu_workers(cpu, tri_view_count(y))) schedule(static)
    for (int64_t t = 0; t < rows; t++) {
        float *row = data + t * y.stride[0];
        if (accumulate)
            cpu->simd->add(y.dim[1], row, b.data);
        else
            memcpy(row, b.data, (size_t)y.dim[1] * sizeof *row);
    }
}

/* db(N) += column sums of dy(T,N). Threads own columns; runs of rows are summed in float32, the
 * runs in float64. */
static void add_column_sums(const struct tri_cpu *cpu, struct tri_view db, struct tri_view dy)
{
    enum { COLUMNS = 256, RUN = 64 };
    const float *data = dy.data;
    float *to = db.data;
    const int64_t rows = dy.dim[0];
    const int64_t cols = dy.dim[1];
    const int64_t pieces = (cols + COLUMNS - 1) / COLUMNS;
#pragma omp parallel for num_threads(tri_cpu_workers(cpu, rows *cols)) schedule(static)
    for (int64_t piece = 0; piece < pieces; piece++) {
        const int64_t col = piece * COLUMNS;
        const int64_t n = tri_min(cols - col, COLUMNS);
        double total[COLUMNS] = {0};
        for (int64_t first = 0; first < rows; first += RUN) {
            float run[COLUMNS] = {0};
            const int64_t end = tri_min(rows, first + RUN);
            for (int64_t t = first; t < end; t++)
                cpu->simd->add(n, run, data + t * dy.stride[0] + col);
            for (int64_t i = 0; i < n; i++)
                total[i] += run[i];
        }
        for (int64_t i = 0; i < n; i++)
            to[col + i] = (float)(to[col + i] + total[i]);
    }
}

static enum tri_status linear_forward(struct tri_stream *s, bool accumulate, struct tri_view y,
                                      struct tri_view x, struct tri_view w, struct tri_view b)
{
    if (!all_f32(y, x, w) || (b.data != NULL && b.dtype != TRI_F32))
        return s->cpu->reference.linear_forward(s, accumulate, y, x, w, b);
    if (b.data != NULL)
        put_bias(s->cpu, accumulate, y, b);
    const struct product p = {.cpu = s->cpu,
                              .tb = true,
                              .m = y.dim[0],
                              .n = y.dim[1],
                              .k = x.dim[1],
                              .a = x.data,
                              .lda = leading(x),
                              .b = w.data,
                              .ldb = leading(w),
                              .c = y.data,
                              .ldc = leading(y),
                              .beta = accumulate || b.data != NULL ? 1.0f : 0.0f};
    return product_run(&p);
}

static enum tri_status linear_backward_x(struct tri_stream *s, bool accumulate, struct tri_view dx,
                                         struct tri_view dy, struct tri_view w)
{
    if (!all_f32(dx, dy, w))
        return s->cpu->reference.linear_backward_x(s, accumulate, dx, dy, w);
    const struct product p = {.cpu = s->cpu,
                              .m = dx.dim[0],
                              .n = dx.dim[1],
                              .k = dy.dim[1],
                              .a = dy.data,
                              .lda = leading(dy),
                              .b = w.data,
                              .ldb = leading(w),
                              .c = dx.data,
                              .ldc = leading(dx),
                              .beta = accumulate ? 1.0f : 0.0f};
    return product_run(&p);
}

static enum tri_status linear_backward_w(struct tri_stream *s, struct tri_view dw,
                                         struct tri_view db, struct tri_view dy, struct tri_view x)
{
    if (!all_f32(dw, dy, x) || (db.data != NULL && db.dtype != TRI_F32))
        return s->cpu->reference.linear_backward_w(s, dw, db, dy, x);
    if (db.data != NULL)
        add_column_sums(s->cpu, db, dy);
    const struct product p = {.cpu = s->cpu,
                              .ta = true,
                              .m = dw.dim[0],
                              .n = dw.dim[1],
                              .k = dy.dim[0],
                              .a = dy.data,
                              .lda = leading(dy),
                              .b = x.data,
                              .ldb = leading(x),
                              .c = dw.data,
                              .ldc = leading(dw),
                              .beta = 1.0f};
    return product_run(&p);
}

void tri_cpu_fast_linear(struct tri_ops *ops)
{
    ops->linear_forward = linear_forward;
    ops->linear_backward_x = linear_backward_x;
    ops->linear_backward_w = linear_backward_w;
}
