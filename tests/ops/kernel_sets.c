#include "ops/kernel_sets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

struct tri_backend *tri_test_open_kernels(enum tri_cpu_kernels kernels, int threads)
{
    struct tri_cpu_config config = {.threads = threads, .kernels = kernels};
    struct tri_backend *backend = NULL;
    enum tri_status status = tri_cpu_open(&config, &backend);
    if (status == TRI_UNSUPPORTED) {
        print_message("skipped: %s\n", tri_error_text());
        return NULL;
    }
    if (status != TRI_OK)
        fail_msg("%s", tri_error_text());
    return backend;
}
