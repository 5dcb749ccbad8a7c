/* Signs of life are written by a thread of their own while the caller is silent. */
#include "unit/scratch.h"

#include <fcntl.h>
#include <time.h>

#include "base/log.h"
#include "train/heartbeat.h"

static int saved_stderr = -1;

static void capture(void)
{
    fflush(stderr);
    saved_stderr = dup(2);
    int fd = open(in_scratch("err"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(saved_stderr >= 0 && fd >= 0);
    assert_int_equal(dup2(fd, 2), 2);
    close(fd);
}

static char *release(void)
{
    fflush(stderr);
    assert_int_equal(dup2(saved_stderr, 2), 2);
    close(saved_stderr);
    return get_text(in_scratch("err"));
}

/* Wait until the captured text has `part`, at most five seconds. */
static bool comes(const char *part)
{
    for (int i = 0; i < 500; i++) {
        char *text = get_text(in_scratch("err"));
        const bool there = strstr(text, part) != NULL;
        free(text);
        if (there)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

static void news_are_repeated_until_a_rest(void **state)
{
    (void)state;
    struct tri_heartbeat *heartbeat = NULL;
    tri_log_set_level(TRI_LOG_INFO);
    assert_int_equal(tri_heartbeat_open(0.005, &heartbeat), TRI_OK);
    capture();
    tri_progress_end(); /* a log file gets a line every ten seconds: this is the first */
    tri_heartbeat_say(heartbeat, "layer %d", 7);
    tri_progress_end();
    const bool repeated = comes("layer 7 (");
    tri_heartbeat_rest(heartbeat);
    tri_progress_end();
    tri_heartbeat_say(NULL, "somebody else");
    tri_progress_end();
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* ten beats */
    tri_heartbeat_close(heartbeat);
    char *text = release();
    assert_true(repeated);
    const char *after = strstr(text, "somebody else\n");
    assert_non_null(after);
    assert_null(strstr(after, "layer 7"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(news_are_repeated_until_a_rest, scratch_open,
                                        scratch_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
