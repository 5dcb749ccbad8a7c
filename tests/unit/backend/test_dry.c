/* A rehearsal makes every page real that a step would write to, whatever the shape of a tensor, and
 * its numbers are never taken for a failure. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/dry/dry.h"

enum { PAGES = 160 };

/* Views have more rows than an op runs on in a rehearsal. */
struct place {
    struct tri_backend *cpu, *dry;
    size_t page;
    float *memory; /* of PAGES pages, none of them real */
};

static void open_place(struct place *p)
{
    const struct tri_cpu_config config = {.threads = 1};
    assert_int_equal(tri_cpu_open(&config, &p->cpu), TRI_OK);
    assert_int_equal(tri_dry_open(p->cpu, TRI_DRY_REHEARSE, &p->dry), TRI_OK);
    p->page = (size_t)sysconf(_SC_PAGESIZE);
    p->memory =
        mmap(NULL, PAGES * p->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p->memory != MAP_FAILED);
    madvise(p->memory, PAGES * p->page, MADV_NOHUGEPAGE);
}

static void close_place(struct place *p)
{
    assert_int_equal(munmap(p->memory, PAGES * p->page), 0);
    tri_dry_close(p->dry);
    tri_cpu_close(p->cpu);
}

/* Pages that a view has elements on are real and no others. */
static void assert_real(const struct place *p, struct tri_view v)
{
    unsigned char real[PAGES], expected[PAGES] = {0};
    const size_t floats = p->page / sizeof(float);
    const int64_t begin = (const float *)v.data - p->memory;
    if (v.num_dims == 2) {
        v.dim[2] = v.dim[1];
        v.dim[1] = v.stride[1] = 1;
    }
    for (int64_t i = 0; i < v.dim[0]; i++)
        for (int64_t j = 0; j < v.dim[1]; j++)
            for (int64_t k = 0; k < v.dim[2]; k++)
                expected[(size_t)(begin + i * v.stride[0] + j * v.stride[1] + k) / floats] = 1;
    assert_int_equal(mincore(p->memory, PAGES * p->page, real), 0);
    for (int i = 0; i < PAGES; i++)
        if ((real[i] & 1) != expected[i])
            fail_msg("page %d is %s", i, expected[i] ? "not real" : "real");
}

static void check_view(struct tri_view (*make)(float *memory, int64_t floats))
{
    struct place p;
    open_place(&p);
    struct tri_view v = make(p.memory, (int64_t)(p.page / sizeof(float)));
    assert_int_equal(p.dry->ops.zero(p.dry->stream, v), TRI_OK);
    assert_real(&p, v);
    close_place(&p);
}

static struct tri_view contiguous(float *memory, int64_t floats)
{
    return tri_view2(memory, TRI_F32, 100, 3 * floats / 2);
}

/* Rows of 1.5 pages, 2.25 pages apart. */
static struct tri_view wide_rows(float *memory, int64_t floats)
{
    struct tri_view v = tri_view2(memory, TRI_F32, 70, floats / 4 * 9);
    return tri_view_cols(v, 0, floats / 2 * 3);
}

/* Short rows of which each lies on two pages. */
static struct tri_view short_rows(float *memory, int64_t floats)
{
    struct tri_view v = tri_view2(memory, TRI_F32, 80, floats * 2);
    return tri_view_cols(v, floats - 8, 16);
}

static struct tri_view strided_heads(float *memory, int64_t floats)
{
    return tri_view_heads(tri_view_cols(tri_view2(memory, TRI_F32, 100, floats * 3 / 2), 0, 64), 4);
}

static struct tri_view gaps_between_heads(float *memory, int64_t floats)
{
    struct tri_view v = tri_view3(memory, TRI_F32, 50, 3, floats);
    v.dim[2] = 16;
    return v;
}

static void every_page_becomes_real(void **state)
{
    (void)state;
    check_view(contiguous);
    check_view(wide_rows);
    check_view(short_rows);
    check_view(strided_heads);
    check_view(gaps_between_heads);
}

static void numbers_are_finite(void **state)
{
    (void)state;
    struct place p;
    open_place(&p);
    const double sums[] = {INFINITY, NAN, 2.5};
    double got[3];
    assert_int_equal(p.dry->ops.read_scalars(p.dry->stream, got, sums, 3), TRI_OK);
    assert_true(got[0] == 0 && got[1] == 0 && got[2] == 2.5);
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_becomes_real),
        cmocka_unit_test(numbers_are_finite),
    };
    return cmocka_run_group_tests_name("unit.dry", tests, NULL, NULL);
}
