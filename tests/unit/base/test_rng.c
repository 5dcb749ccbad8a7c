#include "unit/scratch.h"

#include <math.h>

#include "base/rng.h"

/* Random123's known answers for philox4x32-10 (kat_vectors: counter, key, result). Our counter is
 * (counter low, counter high, stream low, stream high), the key is (seed low, seed high). */
struct answer {
    uint32_t counter[4], key[2], result[4];
};

static const struct answer answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static uint64_t join(const uint32_t words[2])
{
    return (uint64_t)words[1] << 32 | words[0];
}

static void known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint32_t out[4];
        tri_rng_words(join(answers[i].key), join(answers[i].counter + 2), join(answers[i].counter),
                      out);
        assert_memory_equal(out, answers[i].result, sizeof out);
    }
}

/* Mean and variance within five standard errors of 2^16 draws. */
static void uniform_is_uniform(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < N; i++) {
        double u = tri_rng_uniform(3, 5, i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
    }
    assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N));
    assert_true(fabs(squares / N - 1.0 / 12) < 5 * sqrt(1.0 / 180 / N));
}

static void normal_is_normal(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    double sum = 0, squares = 0, fourth = 0;
    for (uint64_t i = 0; i < N; i++) {
        double x = tri_rng_normal(42, 7, i);
        assert_true(isfinite(x));
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    assert_true(fabs(sum / N) < 5 * sqrt(1.0 / N));
    assert_true(fabs(squares / N - 1) < 5 * sqrt(2.0 / N));
    assert_true(fabs(fourth / N - 3) < 5 * sqrt(96.0 / N));
}

/* Every index comes exactly once. */
static void assert_permutes(uint64_t seed, uint64_t stream, int64_t count)
{
    char *seen = calloc((size_t)count, 1);
    assert_non_null(seen);
    for (int64_t i = 0; i < count; i++) {
        int64_t image = tri_rng_permute(seed, stream, count, i);
        if (image < 0 || image >= count || seen[image])
            fail_msg("permutation of %lld: %lld goes to %lld", (long long)count, (long long)i,
                     (long long)image);
        seen[image] = 1;
    }
    free(seen);
}

static void permute_is_a_permutation(void **state)
{
    (void)state;
    for (int64_t count = 1; count <= 300; count++)
        assert_permutes(42, (uint64_t)count % 5, count);
    static const int64_t counts[] = {1023, 1024, 1025, 4095, 4096, 4097, 65537, 99991};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_permutes(i, 1, counts[i]);
    assert_permutes(UINT64_MAX, UINT64_MAX, 1000);
}

static int64_t fixed_points(uint64_t seed_a, uint64_t stream_a, uint64_t seed_b, uint64_t stream_b)
{
    enum { COUNT = 10000 };
    int64_t same = 0;
    for (int64_t i = 0; i < COUNT; i++)
        same += tri_rng_permute(seed_a, stream_a, COUNT, i) ==
                tri_rng_permute(seed_b, stream_b, COUNT, i);
    return same;
}

/* Two independent permutations agree in one place on average (Poisson): 12 has a chance of 1e-9. */
static void permutations_differ_by_seed_and_stream(void **state)
{
    (void)state;
    assert_int_equal(fixed_points(1, 1, 1, 1), 10000);
    assert_true(fixed_points(1, 1, 2, 1) < 12);
    assert_true(fixed_points(1, 1, 1, 2) < 12);
    int64_t moved = 0;
    for (int64_t i = 0; i < 10000; i++)
        moved += tri_rng_permute(1, 1, 10000, i) != i;
    assert_true(moved > 10000 - 12);
}

static void permute_reaches_large_counts(void **state)
{
    (void)state;
    const int64_t count = ((int64_t)1 << 40) + 12345;
    for (int64_t i = 0; i < 100; i++) {
        int64_t image = tri_rng_permute(9, 9, count, count - 1 - i);
        assert_true(image >= 0 && image < count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(uniform_is_uniform),
        cmocka_unit_test(normal_is_normal),
        cmocka_unit_test(permute_is_a_permutation),
        cmocka_unit_test(permutations_differ_by_seed_and_stream),
        cmocka_unit_test(permute_reaches_large_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
