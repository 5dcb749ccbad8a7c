/* Cross entropy over a large vocabulary, with one likely token and a tail of tokens that each are
 * too small to change 1 in float32, but not together: the tail must count, in the loss and in the
 * gradient. Every kernel set of the CPU against closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ops/kernel_sets.h"

enum { VOCABULARY = 256 * 1024 + 3, LIKELY = 70000 };
static const float tail_logit = -17.4f; /* e^-17.4 < 2^-25 */

static void check(struct tri_backend *backend, float *logits)
{
    static const int32_t label = LIKELY;
    for (int i = 0; i < VOCABULARY; i++)
        logits[i] = i == LIKELY ? 0.0f : tail_logit;
    struct tri_view view = tri_view2(logits, TRI_F32, 1, VOCABULARY);
    const double each = exp((double)tail_logit), tail = (VOCABULARY - 1) * each;
    double loss = 0;
    assert_int_equal(backend->ops.cross_entropy(backend->stream, true, 1.0, &loss, view, &label),
                     TRI_OK);
    assert_int_equal(backend->ops.sync(backend->stream), TRI_OK);

    const double off = fabs(loss - log1p(tail));
    const double want = each / (1 + tail), got = (double)logits[0];
    print_message("%s: loss off by %.1e, gradient of the tail by %.1e of it\n", backend->kernels,
                  off, fabs(got / want - 1));
    assert_true(off <= 2e-6);
    assert_true(fabs(got / want - 1) <= 2e-6);
}

static void test_tail(void **state)
{
    (void)state;
    float *logits = malloc(VOCABULARY * sizeof *logits);
    assert_non_null(logits);
    for (int k = TRI_CPU_REFERENCE; k <= TRI_CPU_AVX512; k++) {
        struct tri_backend *backend = tri_test_open_kernels((enum tri_cpu_kernels)k, 1);
        if (backend == NULL)
            continue;
        check(backend, logits);
        tri_cpu_close(backend);
    }
    free(logits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tail)};
    return cmocka_run_group_tests_name("ops.loss_tail", tests, NULL, NULL);
}
