/* The rule by which a backend's results are judged; harness.h states it. */
#include "ops/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

double tri_test_norm(const double *a, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(a[i]))
            sum += a[i] * a[i];
    return sqrt(sum);
}

double tri_test_distance(const double *a, const double *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        if (isnan(a[i]) && isnan(b[i]))
            continue;
        if (!isfinite(a[i]) || !isfinite(b[i])) {
            if (a[i] != b[i])
                return INFINITY;
            continue;
        }
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return sqrt(sum);
}

static void compare_tensor(const struct tri_test_case *c, int index, const char *kernels,
                           enum tri_dtype act, const double *got, const double *plain,
                           const double *oracle)
{
    const struct tri_test_tensor *tensor = &c->tensor[index];
    int64_t count = tri_test_count(tensor);
    if (c->exact) {
        for (int64_t i = 0; i < count; i++)
            if (got[i] != plain[i] && !(isnan(got[i]) && isnan(plain[i])))
                fail_msg("%s on %s: %s[%lld] is %.9g, must be exactly %.9g", c->name, kernels,
                         tensor->name, (long long)i, got[i], plain[i]);
        return;
    }
    for (int64_t i = 0; c->exact_zeros && i < count; i++)
        if (oracle[i] == 0 && got[i] != 0)
            fail_msg("%s on %s: %s[%lld] is %.9g, must be exactly 0", c->name, kernels,
                     tensor->name, (long long)i, got[i]);

    double unit = act == TRI_F64 || c->float64 ? 0x1p-53 : 0x1p-24;
    double norm = fmax(tri_test_norm(oracle, count), c->floor);
    double allowance = (8 + sqrt((double)c->sum_length)) * c->slack * unit * norm;
    double error = tri_test_distance(got, oracle, count);
    double plain_error = tri_test_distance(plain, oracle, count);
    if (!(error <= 2 * plain_error + allowance))
        fail_msg("%s on %s: %s: error %.3g of norm %.3g; the plain error is %.3g, the allowance "
                 "%.3g",
                 c->name, kernels, tensor->name, error, norm, plain_error, allowance);
}

void tri_test_compare(struct tri_test_place *place, const struct tri_test_case *c,
                      enum tri_dtype act)
{
    struct tri_test_place host;
    struct tri_test_result oracle, plain;
    tri_test_place_open(tri_test_reference(), &host);
    tri_test_run(&host, c, act, TRI_F64, false, &oracle);
    tri_test_run(&host, c, act, act, false, &plain);
    tri_test_place_close(&host);

    bool can_alias = false;
    for (int i = 0; i < c->num_tensors; i++)
        can_alias = can_alias || (c->tensor[i].num_dims > 0 && c->tensor[i].alias >= 0);
    for (int aliased = 0; aliased <= (can_alias ? 1 : 0); aliased++) {
        struct tri_test_result got;
        tri_test_run(place, c, act, act, aliased == 1, &got);
        for (int i = 0; i < c->num_tensors; i++)
            if (got.value[i] != NULL)
                compare_tensor(c, i, place->backend->kernels, act, got.value[i], plain.value[i],
                               oracle.value[i]);
        tri_test_result_free(&got);
    }
    tri_test_result_free(&oracle);
    tri_test_result_free(&plain);
}
