/* RoPE angles at far positions against long double arithmetic: at most 1e-5 rad off, in float64
 * tables of the reference and float32 tables of every kernel set. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "ops/kernel_sets.h"

enum { PAIRS = 64, NUM_POSITIONS = 9 };
/* Powers of two are the easy ones: their products are exact. */
static const int64_t positions[NUM_POSITIONS] = {
    0,
    1,
    131071,
    16777215,
    16777216,
    16777217,
    11184811,
    INT64_C(1) << 40,
    (INT64_C(1) << 40) + 366503875925,
};
static const double thetas[] = {1e4, 5e5, 1e7};

/* Frequencies of heads of 128 elements. */
static void frequencies(double theta, double inv_freq[PAIRS])
{
    for (int j = 0; j < PAIRS; j++)
        inv_freq[j] = pow(theta, -(double)j / PAIRS);
}

static double element(struct tri_view table, int64_t t, int64_t j)
{
    int64_t at = t * table.stride[0] + j;
    return table.dtype == TRI_F64 ? ((double *)table.data)[at] : ((float *)table.data)[at];
}

/* The largest angle by which a table is off. */
static double worst_angle(const struct tri_ops *ops, struct tri_stream *s, struct tri_view table,
                          double theta, double scale)
{
    double inv_freq[PAIRS], worst = 0;
    frequencies(theta, inv_freq);
    assert_int_equal(ops->rope_table(s, table, positions, inv_freq, scale), TRI_OK);
    assert_int_equal(ops->sync(s), TRI_OK);
    for (int64_t t = 0; t < NUM_POSITIONS; t++)
        for (int64_t j = 0; j < PAIRS; j++) {
            long double angle = (long double)positions[t] * (long double)inv_freq[j];
            double c = element(table, t, j) / scale, d = element(table, t, PAIRS + j) / scale;
            double off = atan2((double)(d * cosl(angle) - c * sinl(angle)),
                               (double)(c * cosl(angle) + d * sinl(angle)));
            double radius = fabs(sqrt(c * c + d * d) - 1);
            worst = fmax(worst, fmax(fabs(off), radius));
            if (isnan(off))
                return NAN;
        }
    return worst;
}

/* A product of 40 + 53 bits must not round by 1e-5: this needs the x87 format or better. */
static void need_long_double(void)
{
    if (LDBL_MANT_DIG < 64) {
        print_message("skipped: long double has %d bits\n", LDBL_MANT_DIG);
        skip();
    }
}

static void test_reference(void **state)
{
    (void)state;
    need_long_double();
    static double data[NUM_POSITIONS * 2 * PAIRS];
    struct tri_ops ops;
    tri_cpu_reference_ops(&ops);
    struct tri_view table = tri_view2(data, TRI_F64, NUM_POSITIONS, 2 * PAIRS);
    for (int i = 0; i < 3; i++) {
        double worst = worst_angle(&ops, NULL, table, thetas[i], 1);
        print_message("theta %g: %.2g rad\n", thetas[i], worst);
        assert_true(worst <= 1e-7);
    }
}

static void test_kernels(void **state)
{
    (void)state;
    need_long_double();
    static float data[NUM_POSITIONS * 2 * PAIRS];
    struct tri_view table = tri_view2(data, TRI_F32, NUM_POSITIONS, 2 * PAIRS);
    for (int k = TRI_CPU_REFERENCE; k <= TRI_CPU_AVX512; k++) {
        struct tri_backend *backend = tri_test_open_kernels((enum tri_cpu_kernels)k, 2);
        if (backend == NULL)
            continue;
        for (int i = 0; i < 3; i++) {
            double worst = worst_angle(&backend->ops, backend->stream, table, thetas[i], 1.5);
            print_message("%s, theta %g: %.2g rad\n", backend->kernels, thetas[i], worst);
            assert_true(worst <= 1e-5);
        }
        tri_cpu_close(backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_kernels)};
    return cmocka_run_group_tests_name("ops.rope_angles", tests, NULL, NULL);
}
