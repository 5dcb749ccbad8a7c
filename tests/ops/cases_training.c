/* Cases of the loss, the optimizer, and of moving and filling. */
#include "ops/cases.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

/* ---- loss --------------------------------------------------------------------------------------
 */

void tri_case_cross_entropy(struct tri_test_case *c, bool backward, int64_t rows,
                            int64_t vocabulary, int64_t ignored, double scale, double loudness,
                            int64_t pad)
{
    tri_case_begin(c, TRI_TEST_CROSS_ENTROPY,
                   "cross_entropy backward=%d T=%lld V=%lld ignored=%lld loudness=%g pad=%lld",
                   backward, (long long)rows, (long long)vocabulary, (long long)ignored, loudness,
                   (long long)pad);
    tri_case_add(c, "loss_sum", TRI_TEST_F64, TRI_TEST_INOUT, 0, 1, -1, -1);
    struct tri_test_tensor *logits =
        tri_case_add(c, "logits", TRI_TEST_ACT, backward ? TRI_TEST_INOUT : TRI_TEST_IN, pad, rows,
                     vocabulary, -1);
    struct tri_test_tensor *labels =
        tri_case_add(c, "labels", TRI_TEST_I32, TRI_TEST_IN, 0, rows, -1, -1);
    for (int64_t i = 0; i < rows * vocabulary; i++)
        logits->value[i] *= loudness;
    for (int64_t t = 0; t < rows; t++)
        labels->value[t] = ignored > 0 && t % ignored == 0
                               ? -100
                               : floor(tri_rng_uniform(17, 0, (uint64_t)t) * (double)vocabulary);
    c->flag = backward;
    c->scale = scale;
    c->sum_length = vocabulary;
    c->slack = loudness;
    c->floor = sqrt((double)rows) * scale;
    c->exact_zeros = true;
}

void tri_case_list_loss(struct tri_case_visitor v)
{
    struct tri_test_case c;
    for (int i = 0; i < TRI_CASE_NUM_ROWS; i++)
        for (int j = 0; j < TRI_CASE_NUM_WIDTHS; j++)
            for (int backward = 0; backward < 2; backward++) {
                tri_case_cross_entropy(&c, backward, tri_case_rows[i], tri_case_widths[j],
                                       (i + j) % 4, 1.0 / 7, j % 3 == 2 ? 15 : 1,
                                       (i + j) % 2 == 0 ? 5 : 0);
                tri_case_done(v, &c);
            }
    tri_case_cross_entropy(&c, true, 3, 50257, 2, 0.5, 1, 0);
    tri_case_done(v, &c);

    /* Logits of -infinity, as for tokens that a vocabulary does not use. */
    tri_case_cross_entropy(&c, true, 17, 80, 3, 0.5, 1, 5);
    for (int64_t t = 0; t < 17; t++) {
        int64_t label = (int64_t)c.tensor[2].value[t];
        c.tensor[1].value[t * 80 + (label < 0 ? 0 : (label + 1) % 80)] = -INFINITY;
    }
    tri_case_done(v, &c);
}

/* ---- optimizer ---------------------------------------------------------------------------------
 */

static void case_adamw(struct tri_test_case *c, int64_t n, int64_t step, enum tri_test_kind weights,
                       bool has_weights)
{
    tri_case_begin(c, TRI_TEST_ADAMW, "adamw n=%lld step=%lld weights=%d", (long long)n,
                   (long long)step, has_weights ? (int)weights : -1);
    tri_case_add(c, "p", TRI_TEST_STAT, TRI_TEST_INOUT, 0, n, -1, -1);
    tri_case_add(c, "m", TRI_TEST_STAT, TRI_TEST_INOUT, 0, n, -1, -1);
    struct tri_test_tensor *v = tri_case_add(c, "v", TRI_TEST_STAT, TRI_TEST_INOUT, 0, n, -1, -1);
    if (has_weights)
        tri_case_add(c, "w", weights, TRI_TEST_OUT, 0, n, -1, -1);
    else
        tri_case_add_absent(c, "w");
    tri_case_add(c, "g", TRI_TEST_STAT, TRI_TEST_IN, 0, n, -1, -1);
    for (int64_t i = 0; i < n; i++)
        v->value[i] = i == 3 ? 0 : fabs(v->value[i]);
    /* A learning rate so large that the update is not lost in the weight. */
    c->adamw = (struct tri_adamw){.lr = 0.1,
                                  .beta1 = 0.9,
                                  .beta2 = 0.95,
                                  .eps = 1e-8,
                                  .weight_decay = step % 2 == 0 ? 0 : 0.1,
                                  .step = step,
                                  .grad_scale = 0.37};
    c->sum_length = 2;
}

void tri_case_list_optim(struct tri_case_visitor v)
{
    static const int64_t counts[] = {0, 1, 7, 64, 203, 5000, 70001};
    struct tri_test_case c;
    for (int i = 0; i < 7; i++) {
        case_adamw(&c, counts[i], 1, TRI_TEST_ACT, true);
        tri_case_done(v, &c);
        case_adamw(&c, counts[i], 1000, TRI_TEST_BF16, true);
        tri_case_done(v, &c);
        case_adamw(&c, counts[i], 7, TRI_TEST_ACT, false);
        tri_case_done(v, &c);

        tri_case_begin(&c, TRI_TEST_SUM_SQUARES, "sum_squares n=%lld", (long long)counts[i]);
        tri_case_add(&c, "sum", TRI_TEST_F64, TRI_TEST_INOUT, 0, 1, -1, -1);
        tri_case_add(&c, "x", TRI_TEST_STAT, TRI_TEST_IN, i % 2 == 0 ? 5 : 0, counts[i], -1, -1);
        c.sum_length = counts[i];
        c.float64 = true;
        tri_case_done(v, &c);
    }
}

/* ---- moving and filling ------------------------------------------------------------------------
 */

/* Ties, overflow, subnormals and numbers that are none, in float32 and the narrower formats. */
static const double specials[] = {
    0.0,       -0.0,     INFINITY,  -INFINITY, NAN,       65519,       65520,
    -65536,    1e-40,    -1e-45,    6e-8,      2.98e-8,   0x1.01p0,    0x1.03p0,
    0x1.002p0, 3.39e38f, 0x1.006p0, 0x1p-14,   0x1.8p-25, 0x1.ff8p-15,
};

static void case_copy(struct tri_test_case *c, enum tri_test_op op, enum tri_test_kind to,
                      enum tri_test_kind from, const int64_t dim[3], int64_t pad)
{
    tri_case_begin(c, op, "%s %d to %d of %lldx%lldx%lld pad=%lld",
                   op == TRI_TEST_COPY ? "copy" : "add", from, to, (long long)dim[0],
                   (long long)dim[1], (long long)dim[2], (long long)pad);
    tri_case_add(c, "dst", to, op == TRI_TEST_COPY ? TRI_TEST_OUT : TRI_TEST_INOUT, pad, dim[0],
                 dim[1], dim[2]);
    struct tri_test_tensor *src =
        tri_case_add(c, "src", from, TRI_TEST_IN, pad > 0 ? pad + 2 : 0, dim[0], dim[1], dim[2]);
    bool integers = from == TRI_TEST_I32 || from == TRI_TEST_I64;
    int64_t count = tri_test_count(src), num_specials = sizeof(specials) / sizeof(specials[0]);
    for (int64_t i = 0; i < count; i++) {
        if (integers)
            src->value[i] = floor(1e9 * src->value[i] / 4);
        else if (op == TRI_TEST_COPY && count > num_specials && i < num_specials)
            src->value[i] = specials[i];
    }
    c->exact = op == TRI_TEST_COPY;
}

void tri_case_list_move(struct tri_case_visitor v)
{
    static const enum tri_test_kind floats[] = {TRI_TEST_ACT, TRI_TEST_F32, TRI_TEST_BF16,
                                                TRI_TEST_F16, TRI_TEST_F64};
    static const int64_t shapes[][3] = {{0, 7, -1},   {1, 1, -1},  {203, -1, -1},
                                        {17, 64, -1}, {3, 4, 203}, {113, 80, -1}};
    struct tri_test_case c;
    for (int s = 0; s < 6; s++) {
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 5; j++) {
                int64_t pad = (s + i + j) % 2 == 0 ? 5 : 0;
                case_copy(&c, TRI_TEST_COPY, floats[i], floats[j], shapes[s], pad);
                tri_case_done(v, &c);
                case_copy(&c, TRI_TEST_ADD, floats[i], floats[j], shapes[s], pad);
                tri_case_done(v, &c);
            }
        case_copy(&c, TRI_TEST_COPY, TRI_TEST_I32, TRI_TEST_I32, shapes[s], 5);
        tri_case_done(v, &c);
        case_copy(&c, TRI_TEST_COPY, TRI_TEST_I64, TRI_TEST_I64, shapes[s], 5);
        tri_case_done(v, &c);

        tri_case_begin(&c, TRI_TEST_ZERO, "zero shape %d", s);
        tri_case_add(&c, "dst", floats[s % 5], TRI_TEST_OUT, s % 2 == 0 ? 5 : 0, shapes[s][0],
                     shapes[s][1], shapes[s][2]);
        c.exact = true;
        tri_case_done(v, &c);
    }
}
