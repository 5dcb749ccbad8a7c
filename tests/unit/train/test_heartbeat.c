/* Signs of life are written by a thread of their own while the caller is silent. */
#include "unit/scratch.h"

#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/heartbeat.h"

/* A terminal in place of standard error: there progress lines are refreshed often. */
struct terminal {
    int master, saved;
    char text[1 << 14];
    size_t bytes;
};

static void open_terminal(struct terminal *t)
{
    memset(t, 0, sizeof *t);
    t->master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(t->master >= 0);
    assert_int_equal(grantpt(t->master), 0);
    assert_int_equal(unlockpt(t->master), 0);
    const int slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    fflush(stderr);
    t->saved = dup(2);
    assert_int_equal(dup2(slave, 2), 2);
    close(slave);
}

static void close_terminal(struct terminal *t)
{
    assert_int_equal(dup2(t->saved, 2), 2);
    close(t->saved);
    close(t->master);
}

/* Read what comes for so long, or until `part` has come. */
static bool comes(struct terminal *t, const char *part, double seconds)
{
    const double end = tri_clock() + seconds;
    while (tri_clock() < end && t->bytes + 1 < sizeof t->text) {
        struct pollfd ready = {.fd = t->master, .events = POLLIN};
        if (poll(&ready, 1, 10) <= 0)
            continue;
        const ssize_t got = read(t->master, t->text + t->bytes, sizeof t->text - 1 - t->bytes);
        if (got > 0)
            t->bytes += (size_t)got;
        t->text[t->bytes] = '\0';
        if (part != NULL && strstr(t->text, part) != NULL)
            return true;
    }
    return false;
}

static void news_are_repeated_until_a_rest(void **state)
{
    (void)state;
    static struct terminal t;
    struct tri_heartbeat *heartbeat = NULL;
    tri_log_set_level(TRI_LOG_INFO);
    assert_int_equal(tri_heartbeat_open(0.005, &heartbeat), TRI_OK);
    open_terminal(&t);
    tri_heartbeat_say(heartbeat, "layer %d", 7);
    const bool repeated = comes(&t, "layer 7 (", 20);
    tri_heartbeat_rest(heartbeat);
    (void)comes(&t, NULL, 0.05); /* what was on its way */
    t.bytes = 0;
    t.text[0] = '\0';
    const bool at_rest = !comes(&t, "layer 7", 0.3); /* three refreshes, sixty beats */
    tri_heartbeat_say(heartbeat, "layer %d", 8);
    const bool goes_on = comes(&t, "layer 8 (", 20);
    tri_heartbeat_close(heartbeat);
    close_terminal(&t);
    assert_true(repeated);
    assert_true(at_rest);
    assert_true(goes_on);
}

static void without_a_heartbeat_news_are_shown_once(void **state)
{
    (void)state;
    static struct terminal t;
    open_terminal(&t);
    (void)comes(&t, NULL, 0.15); /* a refresh is due */
    tri_heartbeat_say(NULL, "somebody else");
    const bool shown = comes(&t, "somebody else", 20);
    tri_heartbeat_rest(NULL);
    tri_heartbeat_close(NULL);
    close_terminal(&t);
    assert_true(shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(news_are_repeated_until_a_rest),
        cmocka_unit_test(without_a_heartbeat_news_are_shown_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
