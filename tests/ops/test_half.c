/* Conversions of the 16-bit formats, against their definition: the nearest of all values, found by
 * search in the table of the 2^15 decoded ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tensor/half.h"

struct format {
    const char *name;
    int exponent_bits, fraction_bits;
    float (*decode)(uint16_t h);
    uint16_t (*encode)(float value);
    uint16_t (*encode_double)(double value);
};
static const struct format formats[] = {
    {"bfloat16", 8, 7, tri_bf16_to_float, tri_bf16_from_float, tri_bf16_from_double},
    {"float16", 5, 10, tri_f16_to_float, tri_f16_from_float, tri_f16_from_double},
};

/* The value of positive bits by the definition of IEEE 754; one past the largest finite number is
 * taken as the power of two that it would be, which is where rounding to infinity begins. */
static double definition(const struct format *f, uint32_t bits)
{
    int bias = (1 << (f->exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> f->fraction_bits);
    double fraction = (double)(bits & ((1u << f->fraction_bits) - 1));
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - f->fraction_bits);
    return ldexp(fraction + (1 << f->fraction_bits), exponent - bias - f->fraction_bits);
}

static uint32_t infinity_bits(const struct format *f)
{
    return ((1u << f->exponent_bits) - 1) << f->fraction_bits;
}

/* Nearest to |value|, ties to the even neighbour. */
static uint32_t nearest(const struct format *f, double magnitude)
{
    uint32_t low = 0, high = infinity_bits(f);
    if (magnitude >= definition(f, high))
        return high;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (definition(f, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double below = magnitude - definition(f, low), above = definition(f, high) - magnitude;
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

static void test_decode(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        const struct format *f = &formats[n];
        for (uint32_t bits = 0; bits < 0x8000; bits++) {
            float value = f->decode((uint16_t)bits), minus = f->decode((uint16_t)(bits | 0x8000));
            if (bits > infinity_bits(f)) {
                assert_true(isnan(value) && isnan(minus));
                assert_true(isnan(f->decode(f->encode(value))));
                continue;
            }
            double expected = bits == infinity_bits(f) ? INFINITY : definition(f, bits);
            if (value != expected || minus != -expected || !signbit(minus))
                fail_msg("%s %04x is %g, not %g", f->name, bits, value, expected);
            assert_int_equal(f->encode(value), bits);
            assert_int_equal(f->encode(minus), bits | 0x8000);
        }
    }
}

static void check_encode(const struct format *f, double value)
{
    uint32_t sign = signbit(value) ? 0x8000 : 0;
    uint32_t expected = nearest(f, fabs(value)) | sign;
    uint32_t got = f->encode_double(value);
    if (got != expected)
        fail_msg("%s of the double %a: %04x, not %04x", f->name, value, got, expected);
    float narrow = (float)value;
    expected = nearest(f, fabs((double)narrow)) | sign;
    got = f->encode(narrow);
    if (got != expected)
        fail_msg("%s of the float %a: %04x, not %04x", f->name, narrow, got, expected);
}

static void test_encode(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        const struct format *f = &formats[n];
        for (uint32_t bits = 0; bits < infinity_bits(f); bits++) {
            /* A tie and its neighbours, in double and in float precision. */
            double tie = (definition(f, bits) + definition(f, bits + 1)) / 2;
            check_encode(f, tie);
            check_encode(f, -nextafter(tie, INFINITY));
            check_encode(f, nextafter(tie, 0));
            check_encode(f, nextafterf((float)tie, INFINITY));
            check_encode(f, -nextafterf((float)tie, 0));
        }
        for (uint64_t i = 0; i < 20000; i++)
            check_encode(f, ldexp(tri_rng_normal(3, 0, i), (int)(i % 300) - 150));
        check_encode(f, 1e300);
        check_encode(f, 1e-300);
        check_encode(f, -INFINITY);
        assert_true(isnan(f->decode(f->encode_double(NAN))));
        assert_true(
            isnan(f->decode(f->encode(tri_float_of_bits(0xFF800001u))))); /* last bit only */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_decode),
                                       cmocka_unit_test(test_encode)};
    return cmocka_run_group_tests_name("ops.half", tests, NULL, NULL);
}
