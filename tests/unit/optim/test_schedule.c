#include "unit/scratch.h"

#include <math.h>

#include "optim/schedule.h"

static struct tri_schedule_plan plan_of(const struct tri_schedule_options *options, double peak,
                                        int64_t total)
{
    struct tri_schedule_plan plan;
    if (tri_schedule_resolve(options, peak, total, &plan) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return plan;
}

/* The rate of steps 1, 2, ... by hand. */
static void assert_rates(const struct tri_schedule_plan *plan, const double *expected,
                         int64_t count)
{
    for (int64_t step = 1; step <= count; step++) {
        double got = tri_schedule_rate(plan, step);
        if (!(fabs(got - expected[step - 1]) <= 1e-15 * plan->peak))
            fail_msg("step %lld: rate %.17g, not %.17g", (long long)step, got, expected[step - 1]);
    }
}

static void constant_rises_and_stays(void **state)
{
    (void)state;
    const struct tri_schedule_options options = {.name = TRI_SCHEDULE_CONSTANT, .warmup_steps = 4};
    const double expected[] = {0.5, 1.0, 1.5, 2.0, 2.0, 2.0, 2.0, 2.0};
    struct tri_schedule_plan plan = plan_of(&options, 2.0, 8);
    assert_rates(&plan, expected, 8);
}

/* After warm-up 5 steps remain: 0, 1/5, 2/5, 3/5, 4/5 of the way are done before each. */
static void linear_goes_down_to_the_floor(void **state)
{
    (void)state;
    const struct tri_schedule_options options = {
        .name = TRI_SCHEDULE_LINEAR, .warmup_steps = 2, .min_lr_ratio = 0.1};
    const double expected[] = {0.5, 1.0, 1.0, 0.82, 0.64, 0.46, 0.28};
    struct tri_schedule_plan plan = plan_of(&options, 1.0, 7);
    assert_rates(&plan, expected, 7);
}

/* 4 steps: cos of 0, pi/4, pi/2, 3 pi/4. */
static void cosine_is_half_a_wave(void **state)
{
    (void)state;
    const struct tri_schedule_options options = {
        .name = TRI_SCHEDULE_COSINE, .warmup_steps = 0, .min_lr_ratio = 0.2};
    const double root = 0.70710678118654752440;
    const double expected[] = {1.0, 0.2 + 0.4 * (1 + root), 0.6, 0.2 + 0.4 * (1 - root)};
    struct tri_schedule_plan plan = plan_of(&options, 1.0, 4);
    assert_rates(&plan, expected, 4);
}

/* 10 steps, the last 4 fall: 0, 1/4, 2/4, 3/4 of the way are done before each. */
static void wsd_falls_at_the_end(void **state)
{
    (void)state;
    const struct tri_schedule_options options = {
        .name = TRI_SCHEDULE_WSD, .warmup_steps = 2, .decay_ratio = 0.4};
    const double expected[] = {0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25};
    struct tri_schedule_plan plan = plan_of(&options, 1.0, 10);
    assert_int_equal(plan.decay_steps, 4);
    assert_rates(&plan, expected, 10);
}

/* A fall that would begin inside the warm-up begins after it. */
static void wsd_never_falls_in_warmup(void **state)
{
    (void)state;
    const struct tri_schedule_options options = {
        .name = TRI_SCHEDULE_WSD, .warmup_steps = 6, .decay_ratio = 1};
    const double expected[] = {1. / 6, 2. / 6, 3. / 6, 4. / 6, 5. / 6, 1, 1, 0.75, 0.5, 0.25};
    struct tri_schedule_plan plan = plan_of(&options, 1.0, 10);
    assert_rates(&plan, expected, 10);
}

static void ratios_round_up(void **state)
{
    (void)state;
    struct tri_schedule_options options = {
        .name = TRI_SCHEDULE_LINEAR, .warmup_ratio = 0.1, .warmup_steps = -1, .decay_ratio = 0.1};
    assert_int_equal(plan_of(&options, 1, 100).warmup_steps, 10);
    assert_int_equal(plan_of(&options, 1, 101).warmup_steps, 11);
    assert_int_equal(plan_of(&options, 1, 1).warmup_steps, 1);
    assert_int_equal(plan_of(&options, 1, 101).decay_steps, 11);
    options.warmup_steps = 0; /* a number wins over the ratio */
    assert_int_equal(plan_of(&options, 1, 100).warmup_steps, 0);
}

static const int names[] = {TRI_SCHEDULE_CONSTANT, TRI_SCHEDULE_LINEAR, TRI_SCHEDULE_COSINE,
                            TRI_SCHEDULE_WSD};

static void one_step_trains_at_the_peak(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int64_t warmup = 0; warmup <= 1; warmup++) {
            struct tri_schedule_options options = {
                .name = names[i], .warmup_steps = warmup, .decay_ratio = 0.1};
            struct tri_schedule_plan plan = plan_of(&options, 3e-4, 1);
            assert_true(tri_schedule_rate(&plan, 1) == 3e-4);
        }
}

static void warmup_may_be_the_whole_run(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct tri_schedule_options options = {
            .name = names[i], .warmup_steps = 5, .decay_ratio = 0.1};
        const double expected[] = {0.2, 0.4, 0.6, 0.8, 1.0};
        struct tri_schedule_plan plan = plan_of(&options, 1.0, 5);
        assert_rates(&plan, expected, 5);
    }
}

static void warmup_beyond_the_run_is_refused(void **state)
{
    (void)state;
    struct tri_schedule_options options = {.name = TRI_SCHEDULE_LINEAR, .warmup_steps = 6};
    struct tri_schedule_plan plan;
    assert_int_equal(tri_schedule_resolve(&options, 1, 5, &plan), TRI_INVALID);
    assert_error_has("scheduler.warmup_steps: 6");
    assert_error_has("5 steps");
}

/* No step trains above the peak or below the floor, whatever the numbers. */
static void rates_stay_in_range(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int64_t total = 1; total <= 30; total++)
            for (int64_t warmup = 0; warmup <= total; warmup++) {
                struct tri_schedule_options options = {.name = names[i],
                                                       .warmup_steps = warmup,
                                                       .min_lr_ratio = 0.25,
                                                       .decay_ratio = 0.3};
                struct tri_schedule_plan plan = plan_of(&options, 2.0, total);
                double before = 0;
                for (int64_t step = 1; step <= total; step++) {
                    double rate = tri_schedule_rate(&plan, step);
                    assert_true(rate > 0 && rate <= 2.0);
                    if (step <= warmup)
                        assert_true(rate >= before);
                    else
                        assert_true(rate >= 0.5 && (step == 1 || rate <= before));
                    before = rate;
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_rises_and_stays),
        cmocka_unit_test(linear_goes_down_to_the_floor),
        cmocka_unit_test(cosine_is_half_a_wave),
        cmocka_unit_test(wsd_falls_at_the_end),
        cmocka_unit_test(wsd_never_falls_in_warmup),
        cmocka_unit_test(ratios_round_up),
        cmocka_unit_test(one_step_trains_at_the_peak),
        cmocka_unit_test(warmup_may_be_the_whole_run),
        cmocka_unit_test(warmup_beyond_the_run_is_refused),
        cmocka_unit_test(rates_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
