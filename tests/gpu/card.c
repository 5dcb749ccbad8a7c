#include "gpu/card.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SKIPPED = 77 };

void tri_test_need_card(void)
{
    struct tri_cuda_info info;
    tri_cuda_probe(0, &info);
    if (!info.available) {
        printf("skipped: %s\n", info.problem);
        exit(SKIPPED);
    }
    printf("%s, CUDA driver %d, runtime %d, cuBLASLt %s, cuDNN %s\n", info.card, info.driver_cuda,
           info.runtime_cuda, info.cublaslt.found ? info.cublaslt.version : "none",
           info.cudnn.found ? info.cudnn.version : "none");
}

struct tri_backend *tri_test_open_card(const struct tri_cuda_config *config)
{
    struct tri_backend *backend = NULL;
    if (tri_cuda_open(config, &backend) != TRI_OK)
        fail_msg("%s", tri_error_text());
    return backend;
}
