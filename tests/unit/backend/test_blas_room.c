/* A limit on address space: refused before OpenBLAS would try for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/cpu/blas_room.h"

enum { THREADS = 64 }; /* 8 GiB */

/* The exit code of a process with a limit of `bytes`: 0 taken, 1 refused by name, 2 otherwise. */
static int take_under(size_t bytes)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(3);
        enum tri_status st = tri_blas_room_take(THREADS);
        if (st == TRI_OK)
            _exit(tri_blas_room_bytes() == 0 ? 4 : 0);
        bool named = st == TRI_NOMEM && strstr(tri_error_text(), "ulimit -v") != NULL &&
                     tri_blas_room_bytes() == 0;
        _exit(named ? 1 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_small_limit_is_refused(void **state)
{
    (void)state;
    assert_int_equal(take_under((size_t)4 << 30), 1);
}

static void a_large_limit_is_counted(void **state)
{
    (void)state;
    assert_int_equal(take_under((size_t)1 << 46), 0);
    assert_int_equal(tri_blas_room_bytes(), 0); /* this process has no limit */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_limit_is_refused),
        cmocka_unit_test(a_large_limit_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
