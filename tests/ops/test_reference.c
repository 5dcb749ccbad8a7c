/* What the oracle itself says, against formulas written down a second time and known numbers;
 * gradients are test_gradients.c's. Also: every storage dtype works. */
#include "ops/cases.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/cpu.h"
#include "backend/dry/dry.h"

static struct tri_ops ops(void)
{
    struct tri_ops table;
    tri_cpu_reference_ops(&table);
    return table;
}

static void close_to(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-14 * (1 + fabs(expected))))
        fail_msg("%.17g instead of %.17g", got, expected);
}

/* Nobody may meet a NULL entry: not in the oracle, and not where a step is only counted or
 * rehearsed. */
static void assert_complete(struct tri_ops table)
{
    void (*entry[sizeof(table) / sizeof(void (*)(void))])(void);
    memcpy(entry, &table, sizeof(table));
    for (size_t i = 0; i < sizeof(entry) / sizeof(entry[0]); i++)
        assert_true(entry[i] != NULL);
}

static void test_complete(void **state)
{
    (void)state;
    static const enum tri_dry_mode modes[] = {TRI_DRY_COUNT, TRI_DRY_REHEARSE};
    const struct tri_cpu_config config = {.kernels = TRI_CPU_REFERENCE};
    struct tri_backend *cpu, *dry;
    assert_complete(ops());
    assert_int_equal(tri_cpu_open(&config, &cpu), TRI_OK);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(tri_dry_open(cpu, modes[i], &dry), TRI_OK);
        assert_complete(dry->ops);
        tri_dry_close(dry);
    }
    tri_cpu_close(cpu);
}

static void test_norm(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 6}, w[] = {1, 1, 2, -1}, b[] = {0, 1, 0, 0}, y[4];
    struct tri_view vx = tri_view2(x, TRI_F64, 1, 4), vy = tri_view2(y, TRI_F64, 1, 4);
    struct tri_view vw = tri_view1(w, TRI_F64, 4), vb = tri_view1(b, TRI_F64, 4);
    struct tri_norm rms = {TRI_NORM_RMS, 0}, layer = {TRI_NORM_LAYER, 0.5};

    assert_int_equal(ops().norm_forward(NULL, &rms, vy, vx, vw, tri_view_none()), TRI_OK);
    double root = sqrt(50.0 / 4); /* mean square */
    for (int i = 0; i < 4; i++)
        close_to(y[i], w[i] * x[i] / root);

    assert_int_equal(ops().norm_forward(NULL, &layer, vy, vx, vw, vb), TRI_OK);
    root = sqrt(14.0 / 4 + 0.5); /* mean 3, so deviations -2 -1 0 3 */
    for (int i = 0; i < 4; i++)
        close_to(y[i], w[i] * (x[i] - 3) / root + b[i]);
}

static void test_linear(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, w[] = {1, 0, -1, 2, 1, 0}, b[] = {10, 20};
    double y[] = {1000, 1000, 1000, 1000};
    struct tri_view vx = tri_view2(x, TRI_F64, 2, 3), vw = tri_view2(w, TRI_F64, 2, 3);
    struct tri_view vy = tri_view2(y, TRI_F64, 2, 2), vb = tri_view1(b, TRI_F64, 2);
    assert_int_equal(ops().linear_forward(NULL, true, vy, vx, vw, vb), TRI_OK);
    const double expected[] = {1008, 1024, 1008, 1033};
    for (int i = 0; i < 4; i++)
        close_to(y[i], expected[i]);
}

/* Values at 1, -2 and 0.5, from the formulas in 30 digits. */
static void test_act(void **state)
{
    (void)state;
    static const double expected[][3] = {
        {0.7310585786300049, -0.2384058440442351, 0.3112296656009273},   /* silu */
        {0.8413447460685429, -0.04550026389635842, 0.34573123063700656}, /* gelu */
        {0.8411919906082768, -0.04540230591222494, 0.3457140098251439},  /* gelu, tanh */
        {0.8457957659328212, -0.06434137685579186, 0.35038843660638014}, /* quick_gelu */
        {1, 0, 0.5},                                                     /* relu */
    };
    double gate[] = {1, -2, 0.5}, up[] = {2, 3, -1}, y[3];
    struct tri_view vg = tri_view2(gate, TRI_F64, 1, 3), vu = tri_view2(up, TRI_F64, 1, 3);
    struct tri_view vy = tri_view2(y, TRI_F64, 1, 3);
    for (int act = TRI_ACT_SILU; act <= TRI_ACT_RELU; act++)
        for (int gated = 0; gated < 2; gated++) {
            assert_int_equal(ops().act_forward(NULL, (enum tri_activation)act, vy, vg,
                                               gated ? vu : tri_view_none()),
                             TRI_OK);
            for (int i = 0; i < 3; i++)
                close_to(y[i], expected[act][i] * (gated ? up[i] : 1));
        }
}

/* Elements 0 and 2, 1 and 3 are the pairs; element 4 does not turn. */
static void test_rope(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4, 5}, y[5], table[4];
    int64_t pos[] = {3};
    double inv_freq[] = {1, 0.1};
    struct tri_view vt = tri_view2(table, TRI_F64, 1, 4);
    assert_int_equal(ops().rope_table(NULL, vt, pos, inv_freq, 2), TRI_OK);
    close_to(table[0], 2 * cos(3));
    close_to(table[1], 2 * cos(3 * 0.1));
    close_to(table[2], 2 * sin(3));
    close_to(table[3], 2 * sin(3 * 0.1));
    struct tri_view vx = tri_view3(x, TRI_F64, 1, 1, 5), vy = tri_view3(y, TRI_F64, 1, 1, 5);
    assert_int_equal(ops().rope(NULL, false, vy, vx, vt), TRI_OK);
    close_to(y[0], 2 * (1 * cos(3) - 3 * sin(3)));
    close_to(y[2], 2 * (3 * cos(3) + 1 * sin(3)));
    close_to(y[1], 2 * (2 * cos(0.3) - 4 * sin(0.3)));
    close_to(y[3], 2 * (4 * cos(0.3) + 2 * sin(0.3)));
    close_to(y[4], 5);
}

static void test_cross_entropy(void **state)
{
    (void)state;
    double logits[] = {1, 2, 3, 7, 7, 7, 0, 1000, 0}, loss = 5;
    int32_t labels[] = {2, -100, 0};
    struct tri_view v = tri_view2(logits, TRI_F64, 3, 3);
    assert_int_equal(ops().cross_entropy(NULL, true, 0.5, &loss, v, labels), TRI_OK);
    double sum = exp(1) + exp(2) + exp(3);
    close_to(loss, 5 + log(sum) - 3 + 1000);
    const double expected[] = {
        exp(1) / sum / 2, exp(2) / sum / 2, (exp(3) / sum - 1) / 2, 0, 0, 0, -0.5, 0.5, 0};
    for (int i = 0; i < 9; i++)
        close_to(logits[i], expected[i]);
}

/* Two steps on one parameter, worked out by hand: g = 2 then g = -1, halved by grad_scale. */
static void test_adamw(void **state)
{
    (void)state;
    double p = 1, m = 0, v = 0, g = 2;
    float w = 0;
    struct tri_adamw op = {.lr = 0.1,
                           .beta1 = 0.9,
                           .beta2 = 0.99,
                           .eps = 0.001,
                           .weight_decay = 0.5,
                           .step = 1,
                           .grad_scale = 0.5};
    struct tri_view vp = tri_view1(&p, TRI_F64, 1), vm = tri_view1(&m, TRI_F64, 1);
    struct tri_view vv = tri_view1(&v, TRI_F64, 1), vg = tri_view1(&g, TRI_F64, 1);
    struct tri_view vw = tri_view1(&w, TRI_F32, 1);
    assert_int_equal(ops().adamw(NULL, &op, vp, vm, vv, vw, vg), TRI_OK);
    double first = 1 - 0.1 * 0.5 - 0.1 * 1 / (1 + 0.001); /* both moments come out as 1 */
    close_to(p, first);
    close_to(m, 0.1);
    close_to(v, 0.01);
    assert_true(w == (float)p);

    op.step = 2;
    g = -1;
    assert_int_equal(ops().adamw(NULL, &op, vp, vm, vv, tri_view_none(), vg), TRI_OK);
    double m_hat = (0.9 * 0.1 - 0.1 * 0.5) / 0.19;
    double v_hat = (0.99 * 0.01 + 0.01 * 0.25) / 0.0199;
    close_to(p, first * 0.95 - 0.1 * m_hat / (sqrt(v_hat) + 0.001));
}

/* The definition of attention, mask and all, with the full matrix of probabilities. */
static bool sees(const struct tri_attn *op, int64_t i, int64_t j)
{
    bool together = false;
    for (int64_t n = 0; n < op->num_docs; n++)
        together = together || (op->doc_begin[n] <= i && i < op->doc_begin[n + 1] &&
                                op->doc_begin[n] <= j && j < op->doc_begin[n + 1]);
    return together && j <= i && (op->window == 0 || i - j < op->window);
}

static void naive_attention(const struct tri_case_attn *shape, const struct tri_test_case *c,
                            double *o, double *lse)
{
    const double *q = c->tensor[2].value, *k = c->tensor[3].value, *v = c->tensor[4].value;
    int64_t d = shape->d;
    for (int64_t i = 0; i < shape->tq; i++)
        for (int64_t h = 0; h < shape->hq; h++) {
            int64_t hk = h / (shape->hq / shape->hk);
            double sum = 0;
            double *out = o + (i * shape->hq + h) * d;
            memset(out, 0, (size_t)d * sizeof(double));
            for (int64_t j = 0; j < shape->tk; j++) {
                if (!sees(&c->attn, shape->q_begin + i, shape->k_begin + j))
                    continue;
                double score = 0;
                for (int64_t n = 0; n < d; n++)
                    score += q[(i * shape->hq + h) * d + n] * k[(j * shape->hk + hk) * d + n];
                double p = exp(c->attn.scale * score);
                sum += p;
                for (int64_t n = 0; n < d; n++)
                    out[n] += p * v[(j * shape->hk + hk) * d + n];
            }
            for (int64_t n = 0; n < d && sum > 0; n++)
                out[n] /= sum;
            lse[i * shape->hq + h] = log(sum); /* -infinity for a query that sees nothing */
        }
}

static void test_attention(void **state)
{
    (void)state;
    struct tri_test_place host;
    tri_test_place_open(tri_test_reference(), &host);
    for (int i = 0; i < tri_case_num_attn_shapes; i++) {
        const struct tri_case_attn *shape = &tri_case_attn_shapes[i];
        struct tri_test_case c;
        struct tri_test_result result;
        tri_case_attn(&c, false, shape, false, false, 3);
        tri_test_run(&host, &c, TRI_F64, TRI_F64, false, &result);
        int64_t rows = shape->tq * shape->hq;
        double *o = malloc((size_t)(rows * shape->d + 1) * sizeof(double));
        double *lse = malloc((size_t)(rows + 1) * sizeof(double));
        assert_non_null(o);
        assert_non_null(lse);
        naive_attention(shape, &c, o, lse);
        double error = tri_test_distance(result.value[0], o, rows * shape->d);
        if (!(error <= 1e-12 * tri_test_norm(o, rows * shape->d)))
            fail_msg("%s: o is off by %g", c.name, error);
        error = tri_test_distance(result.value[1], lse, rows);
        if (!(error <= 1e-13 * tri_test_norm(lse, rows)))
            fail_msg("%s: lse is off by %g", c.name, error);
        free(o);
        free(lse);
        tri_test_result_free(&result);
        tri_test_case_free(&c);
    }
    tri_test_place_close(&host);
}

/* Half a unit of each storage dtype in every result, and nothing but that. */
struct storage {
    struct tri_test_place host;
    enum tri_dtype dtype;
    double unit;
};

static void check_storage(struct tri_test_case *c, void *ctx)
{
    struct storage *storage = ctx;
    struct tri_test_result exact, stored;
    if (c->sum_length > 300)
        return; /* the same code, only slower */
    tri_test_run(&storage->host, c, storage->dtype, TRI_F64, false, &exact);
    tri_test_run(&storage->host, c, storage->dtype, storage->dtype, false, &stored);
    for (int i = 0; i < c->num_tensors; i++) {
        if (exact.value[i] == NULL || c->exact)
            continue;
        int64_t count = tri_test_count(&c->tensor[i]);
        double norm = fmax(tri_test_norm(exact.value[i], count), c->floor);
        double error = tri_test_distance(exact.value[i], stored.value[i], count);
        /* Gradients of parameters grow row by row in memory: a rounding each time. */
        double growth = sqrt((double)c->sum_length) * 0x1p-24 * fmax(norm, sqrt((double)count));
        bool fixed = c->tensor[i].kind != TRI_TEST_ACT && c->tensor[i].kind != TRI_TEST_STAT;
        if (!fixed && !(error <= storage->unit * norm + growth))
            fail_msg("%s in %s: %s is off by %.3g of %.3g", c->name, tri_dtype_name(storage->dtype),
                     c->tensor[i].name, error, norm);
    }
    tri_test_result_free(&exact);
    tri_test_result_free(&stored);
}

static void test_storage(void **state)
{
    (void)state;
    struct storage kinds[] = {{.dtype = TRI_F32, .unit = 0x1p-24},
                              {.dtype = TRI_BF16, .unit = 0x1p-8},
                              {.dtype = TRI_F16, .unit = 0x1p-11}};
    for (int i = 0; i < 3; i++) {
        tri_test_place_open(tri_test_reference(), &kinds[i].host);
        for (int n = 0; tri_case_families[n] != NULL; n++)
            if (strcmp(tri_case_families[n], "act") != 0 || kinds[i].dtype != TRI_F16)
                tri_case_visit(tri_case_families[n], check_storage, &kinds[i]); /* 1e4 is too far */
        tri_test_place_close(&kinds[i].host);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    int32_t integers[4] = {0};
    float floats[4] = {0};
    struct tri_view i = tri_view1(integers, TRI_I32, 4), f = tri_view1(floats, TRI_F32, 4);
    assert_int_equal(ops().copy(NULL, f, i), TRI_UNSUPPORTED);
    assert_int_equal(ops().add(NULL, i, i), TRI_UNSUPPORTED);
    assert_non_null(strstr(tri_error_text(), "int32"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete), cmocka_unit_test(test_norm),
        cmocka_unit_test(test_linear),   cmocka_unit_test(test_act),
        cmocka_unit_test(test_rope),     cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_adamw),    cmocka_unit_test(test_attention),
        cmocka_unit_test(test_storage),  cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("ops.reference", tests, NULL, NULL);
}
