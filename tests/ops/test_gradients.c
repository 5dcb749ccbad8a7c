/* Gradients of every op against central differences, in float64 through the reference kernels.
 *
 * With random weights c the scalar L = sum(c * y) has gradient backward(c). Each input is moved one
 * element at a time (a sample of them) and along random directions of all its elements; errors are
 * relative to the norm of the whole gradient of that input. */
#include "ops/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

static const double step = 1e-5;
static const double tolerance = 1e-6;
enum { NUM_ELEMENTS = 16, NUM_DIRECTIONS = 3 };

/* A forward case, its backward case, and which tensors belong together by name. */
struct problem {
    struct tri_test_case *forward, *backward;
    const char *output;  /* of forward */
    const char *weights; /* the output's gradient among backward's inputs; NULL: L = scale * y */
    const char *input[5][2]; /* input of forward, its gradient in backward */
};

static int find(const struct tri_test_case *c, const char *name)
{
    for (int i = 0; i < c->num_tensors; i++)
        if (strcmp(c->tensor[i].name, name) == 0)
            return i;
    fail_msg("%s has no tensor %s", c->name, name);
    return -1;
}

/* (L(input + h * direction) - L(input - h * direction)) / 2h */
static double difference(struct tri_test_place *host, const struct problem *p, int input,
                         const double *direction)
{
    struct tri_test_tensor *tensor = &p->forward->tensor[input];
    int output = find(p->forward, p->output);
    int64_t count = tri_test_count(tensor);
    int64_t outputs = tri_test_count(&p->forward->tensor[output]);
    double *original = tensor->value;
    double *moved = malloc((size_t)(count + 1) * sizeof(double));
    assert_non_null(moved);
    struct tri_test_result result[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < count; i++)
            moved[i] = original[i] + (side == 0 ? step : -step) * direction[i];
        tensor->value = moved;
        tri_test_run(host, p->forward, TRI_F64, TRI_F64, false, &result[side]);
    }
    tensor->value = original;
    free(moved);

    const double *weight =
        p->weights == NULL ? NULL : p->backward->tensor[find(p->backward, p->weights)].value;
    double sum = 0;
    for (int64_t i = 0; i < outputs; i++)
        sum += (result[0].value[output][i] - result[1].value[output][i]) *
               (weight == NULL ? p->backward->scale : weight[i]);
    tri_test_result_free(&result[0]);
    tri_test_result_free(&result[1]);
    return sum / (2 * step);
}

static void check_input(struct tri_test_place *host, const struct problem *p, int input,
                        const double *gradient)
{
    int64_t count = tri_test_count(&p->forward->tensor[input]);
    double norm = tri_test_norm(gradient, count);
    /* Below this, differences of sums of order 1 are rounding only. */
    double noise = 1e-9;
    double *direction = calloc((size_t)count + 1, sizeof(double));
    assert_non_null(direction);

    double squares = 0;
    int64_t sampled = count < NUM_ELEMENTS ? count : NUM_ELEMENTS;
    for (int64_t n = 0; n < sampled; n++) {
        int64_t i = tri_rng_permute(19, 0, count, n);
        direction[i] = 1;
        double error = difference(host, p, input, direction) - gradient[i];
        direction[i] = 0;
        squares += error * error;
    }
    if (!(sqrt(squares) <= tolerance * norm + noise))
        fail_msg("%s: gradient of %s: error %.3g of norm %.3g in %lld elements", p->backward->name,
                 p->forward->tensor[input].name, sqrt(squares), norm, (long long)sampled);

    for (int n = 0; n < NUM_DIRECTIONS && count > 0; n++) {
        double expected = 0;
        for (int64_t i = 0; i < count; i++) {
            direction[i] = tri_rng_normal(23, (uint64_t)n, (uint64_t)i) / sqrt((double)count);
            expected += direction[i] * gradient[i];
        }
        double error = fabs(difference(host, p, input, direction) - expected);
        if (!(error <= tolerance * norm + noise))
            fail_msg("%s: gradient of %s along direction %d: error %.3g of norm %.3g",
                     p->backward->name, p->forward->tensor[input].name, n, error, norm);
    }
    free(direction);
}

/* Run backward, take off what gradients began with, and check each input. Frees both cases. */
static void check(struct problem p)
{
    struct tri_test_place host;
    struct tri_test_result result;
    tri_test_place_open(tri_test_reference(), &host);
    tri_test_run(&host, p.backward, TRI_F64, TRI_F64, false, &result);
    for (int n = 0; n < 5 && p.input[n][0] != NULL; n++) {
        int input = find(p.forward, p.input[n][0]);
        int gradient = find(p.backward, p.input[n][1]);
        const struct tri_test_tensor *tensor = &p.backward->tensor[gradient];
        if (tensor->num_dims == 0)
            continue;
        bool in_place = p.backward->op == TRI_TEST_CROSS_ENTROPY; /* it began as the logits */
        if (tensor->role == TRI_TEST_INOUT && !in_place)
            for (int64_t i = 0; i < tri_test_count(tensor); i++)
                result.value[gradient][i] -= tensor->value[i];
        check_input(&host, &p, input, result.value[gradient]);
    }
    tri_test_result_free(&result);
    tri_test_place_close(&host);
    tri_test_case_free(p.forward);
    tri_test_case_free(p.backward);
}

static void test_embed(void **state)
{
    (void)state;
    struct tri_test_case f, b;
    for (int64_t pad = 0; pad <= 5; pad += 5) {
        tri_case_embed(&f, false, 17, 5, 7, pad);
        tri_case_embed(&b, true, 17, 5, 7, pad);
        check((struct problem){&f, &b, "y", "dy", {{"table", "dtable"}}});
    }
}

static void test_norm(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 0, 1}, {3, 0, 7}, {17, 0, 64}, {3, 4, 80}, {17, 2, 1}};
    struct tri_test_case f, b;
    for (int kind = TRI_NORM_RMS; kind <= TRI_NORM_LAYER; kind++)
        for (int i = 0; i < 5; i++)
            for (int variant = 0; variant < 4; variant++) {
                struct tri_norm norm = {(enum tri_norm_kind)kind, shapes[i][2] == 1 ? 0.5 : 1e-5};
                bool bias = kind == TRI_NORM_LAYER && variant % 2 == 0;
                int64_t pad = variant == 0 || variant == 3 ? 5 : 0;
                tri_case_norm(&f, false, norm, shapes[i][0], shapes[i][1], shapes[i][2], bias,
                              false, pad);
                tri_case_norm(&b, true, norm, shapes[i][0], shapes[i][1], shapes[i][2], bias,
                              variant >= 2, pad);
                check((struct problem){&f, &b, "y", "dy", {{"x", "dx"}, {"w", "dw"}, {"b", "db"}}});
            }
}

static void test_linear(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1}, {3, 7, 64}, {17, 80, 7}, {17, 20, 33}};
    struct tri_test_case f, b;
    for (int i = 0; i < 4; i++)
        for (int variant = 0; variant < 2; variant++) {
            int64_t t = shapes[i][0], k = shapes[i][1], n = shapes[i][2], pad = 5 * variant;
            bool bias = variant == 0;
            /* y += gives the same gradient as y =. */
            tri_case_linear(&f, TRI_CASE_FORWARD, t, k, n, bias, variant == 1, pad);
            tri_case_linear(&b, TRI_CASE_BACKWARD_X, t, k, n, bias, variant == 1, pad);
            check((struct problem){&f, &b, "y", "dy", {{"x", "dx"}}});
            tri_case_linear(&f, TRI_CASE_FORWARD, t, k, n, bias, variant == 1, pad);
            tri_case_linear(&b, TRI_CASE_BACKWARD_W, t, k, n, bias, variant == 1, pad);
            check((struct problem){&f, &b, "y", "dy", {{"w", "dw"}, {"b", "db"}}});
        }
}

static void test_rope(void **state)
{
    (void)state;
    struct tri_test_case f, b;
    for (int64_t pad = 0; pad <= 5; pad += 5) {
        tri_case_rope(&f, false, 7, 3, 10, pad > 0 ? 10 : 6, pad);
        tri_case_rope(&b, true, 7, 3, 10, pad > 0 ? 10 : 6, pad);
        check((struct problem){&f, &b, "y", "dy", {{"x", "dx"}}});
    }
}

static void test_act(void **state)
{
    (void)state;
    struct tri_test_case f, b;
    for (int act = TRI_ACT_SILU; act <= TRI_ACT_RELU; act++)
        for (int gated = 0; gated < 2; gated++)
            for (int64_t pad = 0; pad <= 5; pad += 5) {
                tri_case_act(&f, false, (enum tri_activation)act, 5, 13, gated, pad);
                tri_case_act(&b, true, (enum tri_activation)act, 5, 13, gated, pad);
                check((struct problem){&f, &b, "y", "dy", {{"gate", "dgate"}, {"up", "dup"}}});
            }
}

static void test_attn(void **state)
{
    (void)state;
    struct tri_test_case f, b;
    for (int i = 0; i < tri_case_num_attn_shapes; i++) {
        struct tri_case_attn shape = tri_case_attn_shapes[i];
        if (shape.tq > 113)
            continue; /* the same paths, only slower */
        if (shape.loudness > 1)
            shape.loudness = 5; /* differences need a curvature that the step can follow */
        int64_t pad = i % 2 == 0 ? 3 : 0;
        tri_case_attn(&f, false, &shape, false, false, pad);
        tri_case_attn(&b, true, &shape, i % 3 == 0, false, pad);
        check((struct problem){&f, &b, "o", "do", {{"q", "dq"}, {"k", "dk"}, {"v", "dv"}}});
    }
}

static void test_cross_entropy(void **state)
{
    (void)state;
    static const int64_t vocabularies[] = {1, 7, 203};
    struct tri_test_case f, b;
    for (int i = 0; i < 3; i++)
        for (int64_t ignored = 0; ignored <= 3; ignored++) {
            int64_t pad = ignored % 2 == 0 ? 5 : 0;
            tri_case_cross_entropy(&f, false, 9, vocabularies[i], ignored, 0.3, 3, pad);
            tri_case_cross_entropy(&b, true, 9, vocabularies[i], ignored, 0.3, 3, pad);
            check((struct problem){&f, &b, "loss_sum", NULL, {{"logits", "logits"}}});
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),         cmocka_unit_test(test_norm),
        cmocka_unit_test(test_linear),        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_act),           cmocka_unit_test(test_attn),
        cmocka_unit_test(test_cross_entropy),
    };
    return cmocka_run_group_tests_name("ops.gradients", tests, NULL, NULL);
}
