/* A long piece of work says how far it is. */
#include "unit/scratch.h"

#include "base/job.h"

static void keep(void *ctx, const char *text)
{
    snprintf(ctx, 128, "%s", text);
}

static void the_part_that_is_done_is_shown(void **state)
{
    (void)state;
    char text[128] = "";
    struct tri_job job = {.show = keep, .ctx = text};
    tri_job_begin(&job, 400, "saving %s", "out");
    assert_string_equal(text, "saving out");
    tri_job_add(&job, 100);
    assert_non_null(strstr(text, "saving out: 25%, "));
    assert_non_null(strstr(text, " left"));
    job.begin -= 30; /* half a minute for this quarter */
    tri_job_add(&job, 0);
    assert_string_equal(text, "saving out: 25%, 1m30s left");
    tri_job_add(&job, 700); /* more than was told: padding */
    assert_string_equal(text, "saving out: 100%, 0.0s left");
    tri_job_end(&job);
}

static void nobody_has_to_know(void **state)
{
    (void)state;
    tri_job_begin(NULL, 1, "nothing");
    tri_job_add(NULL, 1);
    tri_job_end(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_part_that_is_done_is_shown),
        cmocka_unit_test(nobody_has_to_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
