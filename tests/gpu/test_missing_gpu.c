/* What is missing is said in one line: no card, and libraries that are not where they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gpu/card.h"

/* CUDA reads its environment once a process, so each check has its own. */
static void in_child(int (*check)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(check());
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* With a driver: every card hidden. Without one: the driver is what is missing. */
static int hidden_card(void)
{
    struct tri_backend *backend = NULL;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    if (tri_cuda_available())
        return 1;
    if (tri_cuda_open(NULL, &backend) != TRI_UNSUPPORTED || backend != NULL)
        return 2;
    const char *text = tri_error_text();
    if (strchr(text, '\n') != NULL)
        return 3;
    return strstr(text, "CUDA_VISIBLE_DEVICES") == NULL && strstr(text, "driver") == NULL ? 4 : 0;
}

static void test_no_card(void **state)
{
    (void)state;
    in_child(hidden_card);
}

static int broken_library(void)
{
    struct tri_cuda_info info;
    setenv("TRIREME_CUBLASLT", "/nowhere/libcublasLt.so", 1);
    tri_cuda_probe(0, &info);
    if (info.cublaslt.found || strstr(info.cublaslt.problem, "/nowhere") == NULL)
        return 1;
    if (!info.available)
        return 0;
    struct tri_cuda_config insist = {.products = TRI_CUDA_PRODUCTS_CUBLASLT};
    struct tri_backend *backend = NULL;
    if (tri_cuda_open(&insist, &backend) != TRI_UNSUPPORTED)
        return 2;
    if (strstr(tri_error_text(), "TRIREME_CUBLASLT") == NULL)
        return 3;
    /* Not insisting: the plain kernel runs. */
    if (tri_cuda_open(NULL, &backend) != TRI_OK)
        return 4;
    int wrong = strstr(backend->kernels, "products: own") == NULL ? 5 : 0;
    tri_cuda_close(backend);
    return wrong;
}

static void test_broken_library(void **state)
{
    (void)state;
    in_child(broken_library);
}

static int no_such_card(void)
{
    struct tri_cuda_config config = {.device = 1000};
    struct tri_backend *backend = NULL;
    return tri_cuda_open(&config, &backend) == TRI_UNSUPPORTED ? 0 : 1;
}

static void test_no_such_card(void **state)
{
    (void)state;
    in_child(no_such_card);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_card),
        cmocka_unit_test(test_broken_library),
        cmocka_unit_test(test_no_such_card),
    };
    return cmocka_run_group_tests_name("gpu.missing", tests, NULL, NULL);
}
