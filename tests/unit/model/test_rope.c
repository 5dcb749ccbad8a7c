/* Rotary frequencies against numbers computed independently with 40 digits (Python, mpmath): each
 * formula was written there from the papers, and its values pasted here with 17 digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/arch.h"

enum { MAX_PAIRS = 8 };

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12 * fabs(expected)))
        fail_msg("got %.17g, expected %.17g", got, expected);
}

static void check_at(const struct tri_rope *rope, int64_t max_positions, int64_t length,
                     const double *expected, double expected_scale)
{
    double inv_freq[MAX_PAIRS], scale = 0.0;
    tri_rope_frequencies(rope, max_positions, length, inv_freq, &scale);
    for (int64_t j = 0; j < rope->rotary_dim / 2; j++)
        assert_near(inv_freq[j], expected[j]);
    assert_near(scale, expected_scale);
}

static const double plain[] = {1.0,  0.31622776601683793,   0.1,   0.031622776601683793,
                               0.01, 0.0031622776601683793, 0.001, 0.00031622776601683793};

static void default_is_theta_to_a_power(void **state)
{
    (void)state;
    struct tri_rope rope = {.type = TRI_ROPE_DEFAULT, .theta = 10000, .rotary_dim = 16};
    check_at(&rope, 512, 512, plain, 1.0);
    check_at(&rope, 512, 16000000, plain, 1.0);

    static const double part[] = {1.0, 0.012599210498948732, 0.00015874010519681995};
    rope.theta = 500000;
    rope.rotary_dim = 6;
    check_at(&rope, 512, 512, part, 1.0);
}

static void linear_divides(void **state)
{
    (void)state;
    static const double expected[] = {
        0.25,   0.079056941504209483,   0.025,   0.0079056941504209483,
        0.0025, 0.00079056941504209483, 0.00025, 7.9056941504209483e-5};
    struct tri_rope rope = {.type = TRI_ROPE_LINEAR, .theta = 10000, .rotary_dim = 16, .factor = 4};
    check_at(&rope, 512, 512, expected, 1.0);
}

static void dynamic_follows_the_length(void **state)
{
    (void)state;
    static const double at_2048[] = {1.0,
                                     0.23948135600598382,
                                     0.057351319874464763,
                                     0.013734571852269751,
                                     0.0032891738913431769,
                                     0.00078769582363834248,
                                     0.00018863846396516054,
                                     4.5175395145262562e-5};
    static const double at_million[] = {
        1.0,
        0.09703028531608413,
        0.0094148762685206915,
        0.0009135281305501922,
        8.86398951515541e-5,
        8.6007543169430766e-6,
        8.3453364530652899e-7,
        8.0975037709964262e-8,
    };
    struct tri_rope rope = {
        .type = TRI_ROPE_DYNAMIC, .theta = 10000, .rotary_dim = 16, .factor = 2};
    check_at(&rope, 512, 100, plain, 1.0);
    check_at(&rope, 512, 512, plain, 1.0);
    check_at(&rope, 512, 2048, at_2048, 1.0);
    check_at(&rope, 512, 1000000, at_million, 1.0);
}

static void yarn_blends_by_rotations(void **state)
{
    (void)state;
    static const double usual[] = {1.0,     0.31622776601683793,  0.1,     0.025693505988868082,
                                   0.00625, 0.001383496476323666, 0.00025, 7.9056941504209483e-5};
    struct tri_rope rope = {.type = TRI_ROPE_YARN,
                            .theta = 10000,
                            .rotary_dim = 16,
                            .factor = 4,
                            .original_max_positions = 4096,
                            .truncate = true};
    check_at(&rope, 16384, 16384, usual, 1.1386294361119891); /* 0.1 ln 4 + 1 */

    static const double betas[] = {1.0,
                                   0.31622776601683793,
                                   0.1,
                                   0.02239946675952602,
                                   0.0041666666666666667,
                                   0.00039528470752104742,
                                   0.000125,
                                   3.9528470752104742e-5};
    rope.factor = 8;
    rope.original_max_positions = 2048;
    rope.beta_fast = 16;
    rope.beta_slow = 2;
    rope.attention_factor = 1.25;
    check_at(&rope, 16384, 16384, betas, 1.25);

    /* A context so short that the ramp begins at pair 0 and ends at pair 1. */
    static const double brief[] = {1.0, 0.025, 0.0025, 0.00025};
    struct tri_rope small = {.type = TRI_ROPE_YARN,
                             .theta = 10000,
                             .rotary_dim = 8,
                             .factor = 4,
                             .original_max_positions = 32,
                             .truncate = true};
    check_at(&small, 512, 512, brief, 1.1386294361119891);
}

static void yarn_without_truncation(void **state)
{
    (void)state;
    static const double expected[] = {1.0,
                                      0.17782794100389228,
                                      0.031622776601683793,
                                      0.0054854276421033114,
                                      0.00048963031924379086,
                                      4.445698525097307e-6,
                                      7.9056941504209483e-7,
                                      1.4058533129758727e-7};
    struct tri_rope rope = {.type = TRI_ROPE_YARN,
                            .theta = 1000000,
                            .rotary_dim = 16,
                            .factor = 40,
                            .original_max_positions = 32768,
                            .mscale = 0.707,
                            .mscale_all_dim = 1.0,
                            .truncate = false};
    check_at(&rope, 131072, 131072, expected, 0.92104235531633989);
}

static void llama3_blends_by_wavelength(void **state)
{
    (void)state;
    static const double expected[] = {1.0,
                                      0.19392274474868577,
                                      0.037606030930863936,
                                      0.007292664737217109,
                                      0.00052484616099295467,
                                      3.4281021959525915e-5,
                                      6.6478698711812358e-6,
                                      1.2891731721515574e-6};
    struct tri_rope rope = {.type = TRI_ROPE_LLAMA3,
                            .theta = 500000,
                            .rotary_dim = 16,
                            .factor = 8,
                            .original_max_positions = 8192,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4};
    check_at(&rope, 131072, 131072, expected, 1.0);

    static const double short_context[] = {1.0, 0.004700753866357992, 0.00017677669529663688,
                                           6.6478698711812358e-6};
    rope.rotary_dim = 8;
    rope.original_max_positions = 64;
    check_at(&rope, 512, 512, short_context, 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_is_theta_to_a_power),
        cmocka_unit_test(linear_divides),
        cmocka_unit_test(dynamic_follows_the_length),
        cmocka_unit_test(yarn_blends_by_rotations),
        cmocka_unit_test(yarn_without_truncation),
        cmocka_unit_test(llama3_blends_by_wavelength),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
