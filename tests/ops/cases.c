/* Cases of the token-wise layers, and what all builders share. */
#include "ops/cases.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/rng.h"

const int64_t tri_case_rows[TRI_CASE_NUM_ROWS] = {0, 1, 3, 17, 113};
const int64_t tri_case_widths[TRI_CASE_NUM_WIDTHS] = {1, 7, 64, 80, 128, 203};

/* Gaps of an odd number of elements. */
enum { GAP = 5 };

void tri_case_begin(struct tri_test_case *c, enum tri_test_op op, const char *format, ...)
{
    memset(c, 0, sizeof(*c));
    c->op = op;
    c->scale = 1;
    c->slack = 1;
    c->sum_length = 1;
    va_list args;
    va_start(args, format);
    vsnprintf(c->name, sizeof(c->name), format, args);
    va_end(args);
}

struct tri_test_tensor *tri_case_add(struct tri_test_case *c, const char *name,
                                     enum tri_test_kind kind, enum tri_test_role role, int64_t pad,
                                     int64_t d0, int64_t d1, int64_t d2)
{
    assert_true(c->num_tensors < TRI_TEST_MAX_TENSORS);
    struct tri_test_tensor *tensor = &c->tensor[c->num_tensors++];
    *tensor = (struct tri_test_tensor){
        .name = name, .kind = kind, .role = role, .pad = pad, .alias = -1, .dim = {d0, d1, d2}};
    while (tensor->num_dims < TRI_MAX_DIMS && tensor->dim[tensor->num_dims] >= 0)
        tensor->num_dims++;
    int64_t count = tri_test_count(tensor);
    tensor->value = calloc((size_t)count + 1, sizeof(double));
    assert_non_null(tensor->value);
    uint64_t seed = tri_hash_bytes(TRI_HASH_START, name, strlen(name));
    for (int64_t i = 0; role != TRI_TEST_OUT && i < count; i++)
        tensor->value[i] = tri_rng_normal(seed, 0, (uint64_t)i);
    return tensor;
}

void tri_case_add_absent(struct tri_test_case *c, const char *name)
{
    assert_true(c->num_tensors < TRI_TEST_MAX_TENSORS);
    c->tensor[c->num_tensors++] = (struct tri_test_tensor){.name = name, .alias = -1};
}

void tri_case_done(struct tri_case_visitor v, struct tri_test_case *c)
{
    v.visit(c, v.ctx);
    tri_test_case_free(c);
}

/* ---- embed -------------------------------------------------------------------------------------
 */

void tri_case_embed(struct tri_test_case *c, bool backward, int64_t rows, int64_t vocabulary,
                    int64_t width, int64_t pad)
{
    tri_case_begin(c, backward ? TRI_TEST_EMBED_BACKWARD : TRI_TEST_EMBED_FORWARD,
                   "embed_%s T=%lld V=%lld E=%lld pad=%lld", backward ? "backward" : "forward",
                   (long long)rows, (long long)vocabulary, (long long)width, (long long)pad);
    struct tri_test_tensor *ids;
    if (backward) {
        tri_case_add(c, "dtable", TRI_TEST_STAT, TRI_TEST_INOUT, pad, vocabulary, width, -1);
        ids = tri_case_add(c, "ids", TRI_TEST_I32, TRI_TEST_IN, 0, rows, -1, -1);
        tri_case_add(c, "dy", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, width, -1);
    } else {
        tri_case_add(c, "y", TRI_TEST_ACT, TRI_TEST_OUT, pad, rows, width, -1);
        ids = tri_case_add(c, "ids", TRI_TEST_I32, TRI_TEST_IN, 0, rows, -1, -1);
        tri_case_add(c, "table", TRI_TEST_ACT, TRI_TEST_IN, pad, vocabulary, width, -1);
    }
    for (int64_t t = 0; t < rows; t++)
        ids->value[t] = floor(tri_rng_uniform(7, 0, (uint64_t)t) * (double)vocabulary);
    c->sum_length = rows;
    c->exact = !backward;
}

static void list_embed(struct tri_case_visitor v)
{
    struct tri_test_case c;
    for (int i = 0; i < TRI_CASE_NUM_ROWS; i++)
        for (int j = 0; j < TRI_CASE_NUM_WIDTHS; j++)
            for (int backward = 0; backward < 2; backward++) {
                tri_case_embed(&c, backward, tri_case_rows[i], i % 2 == 0 ? 19 : 1,
                               tri_case_widths[j], j % 2 == 0 ? GAP : 0);
                tri_case_done(v, &c);
            }
}

/* ---- norm --------------------------------------------------------------------------------------
 */

void tri_case_norm(struct tri_test_case *c, bool backward, struct tri_norm norm, int64_t rows,
                   int64_t heads, int64_t n, bool bias, bool accumulate, int64_t pad)
{
    tri_case_begin(c, backward ? TRI_TEST_NORM_BACKWARD : TRI_TEST_NORM_FORWARD,
                   "norm_%s %s T=%lld H=%lld N=%lld bias=%d accumulate=%d pad=%lld",
                   backward ? "backward" : "forward", norm.kind == TRI_NORM_RMS ? "rms" : "layer",
                   (long long)rows, (long long)heads, (long long)n, bias, accumulate,
                   (long long)pad);
    int64_t d1 = heads > 0 ? heads : n, d2 = heads > 0 ? n : -1;
    c->norm = norm;
    c->flag = accumulate;
    c->slack = n == 1 ? 4 : 1; /* little is left of x / |x|: rounding shows */
    if (!backward) {
        tri_case_add(c, "y", TRI_TEST_ACT, TRI_TEST_OUT, pad, rows, d1, d2)->alias = 1;
        tri_case_add(c, "x", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, d1, d2);
        tri_case_add(c, "w", TRI_TEST_ACT, TRI_TEST_IN, pad, n, -1, -1);
        if (bias)
            tri_case_add(c, "b", TRI_TEST_ACT, TRI_TEST_IN, pad, n, -1, -1);
        else
            tri_case_add_absent(c, "b");
        c->sum_length = n;
        return;
    }
    struct tri_test_tensor *dx = tri_case_add(
        c, "dx", TRI_TEST_ACT, accumulate ? TRI_TEST_INOUT : TRI_TEST_OUT, pad, rows, d1, d2);
    dx->alias = accumulate ? -1 : 3;
    tri_case_add(c, "dw", TRI_TEST_STAT, TRI_TEST_INOUT, pad, n, -1, -1);
    if (bias)
        tri_case_add(c, "db", TRI_TEST_STAT, TRI_TEST_INOUT, pad, n, -1, -1);
    else
        tri_case_add_absent(c, "db");
    tri_case_add(c, "dy", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, d1, d2);
    tri_case_add(c, "x", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, d1, d2);
    tri_case_add(c, "w", TRI_TEST_ACT, TRI_TEST_IN, pad, n, -1, -1);
    c->sum_length = n + rows * (heads > 0 ? heads : 1);
}

static void list_norm(struct tri_case_visitor v)
{
    struct tri_test_case c;
    for (int i = 0; i < TRI_CASE_NUM_ROWS; i++)
        for (int j = 0; j < TRI_CASE_NUM_WIDTHS; j++)
            for (int variant = 0; variant < 8; variant++) {
                enum tri_norm_kind kind = variant & 1 ? TRI_NORM_LAYER : TRI_NORM_RMS;
                int64_t n = tri_case_widths[j];
                /* Of a single element little is left but eps: make it count. */
                struct tri_norm norm = {kind, n == 1 ? 0.5 : 1e-5};
                int64_t heads = (i + variant / 2) % 3 == 0 ? 4 : 0;
                tri_case_norm(&c, variant & 2, norm, tri_case_rows[i], heads, n,
                              kind == TRI_NORM_LAYER && (i + j) % 2 == 0, variant & 4,
                              (i + j + variant) % 3 == 0 ? GAP : 0);
                tri_case_done(v, &c);
            }
}

/* ---- linear ------------------------------------------------------------------------------------
 */

void tri_case_linear(struct tri_test_case *c, enum tri_case_linear_op op, int64_t rows, int64_t k,
                     int64_t n, bool bias, bool accumulate, int64_t pad)
{
    static const enum tri_test_op ops[] = {TRI_TEST_LINEAR_FORWARD, TRI_TEST_LINEAR_BACKWARD_X,
                                           TRI_TEST_LINEAR_BACKWARD_W};
    static const char *const names[] = {"forward", "backward_x", "backward_w"};
    tri_case_begin(c, ops[op], "linear_%s T=%lld K=%lld N=%lld bias=%d accumulate=%d pad=%lld",
                   names[op], (long long)rows, (long long)k, (long long)n, bias, accumulate,
                   (long long)pad);
    enum tri_test_role out = accumulate ? TRI_TEST_INOUT : TRI_TEST_OUT;
    c->flag = accumulate;
    switch (op) {
    case TRI_CASE_FORWARD:
        tri_case_add(c, "y", TRI_TEST_ACT, out, pad, rows, n, -1);
        tri_case_add(c, "x", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, k, -1);
        tri_case_add(c, "w", TRI_TEST_ACT, TRI_TEST_IN, pad, n, k, -1);
        if (bias)
            tri_case_add(c, "b", TRI_TEST_ACT, TRI_TEST_IN, pad, n, -1, -1);
        else
            tri_case_add_absent(c, "b");
        c->sum_length = k;
        break;
    case TRI_CASE_BACKWARD_X:
        tri_case_add(c, "dx", TRI_TEST_ACT, out, pad, rows, k, -1);
        tri_case_add(c, "dy", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, n, -1);
        tri_case_add(c, "w", TRI_TEST_ACT, TRI_TEST_IN, pad, n, k, -1);
        c->sum_length = n;
        break;
    case TRI_CASE_BACKWARD_W:
        tri_case_add(c, "dw", TRI_TEST_STAT, TRI_TEST_INOUT, pad, n, k, -1);
        if (bias)
            tri_case_add(c, "db", TRI_TEST_STAT, TRI_TEST_INOUT, pad, n, -1, -1);
        else
            tri_case_add_absent(c, "db");
        tri_case_add(c, "dy", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, n, -1);
        tri_case_add(c, "x", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, k, -1);
        c->sum_length = rows;
        break;
    }
}

static void list_linear(struct tri_case_visitor v)
{
    struct tri_test_case c;
    for (int op = TRI_CASE_FORWARD; op <= TRI_CASE_BACKWARD_W; op++) {
        for (int i = 0; i < TRI_CASE_NUM_ROWS; i++)
            for (int j = 0; j < TRI_CASE_NUM_WIDTHS; j++)
                for (int variant = 0; variant < 2; variant++) {
                    tri_case_linear(
                        &c, (enum tri_case_linear_op)op, tri_case_rows[i], tri_case_widths[j],
                        tri_case_widths[(i + j + variant) % TRI_CASE_NUM_WIDTHS],
                        (j + variant) % 2 == 0, variant == 1, (i + j) % 2 == 0 ? GAP : 0);
                    tri_case_done(v, &c);
                }
        tri_case_linear(&c, (enum tri_case_linear_op)op, 300, 520, 390, true, false, 0);
        tri_case_done(v, &c);
    }
}

/* ---- rope --------------------------------------------------------------------------------------
 */

void tri_case_rope(struct tri_test_case *c, bool inverse, int64_t rows, int64_t heads, int64_t d,
                   int64_t rotated, int64_t pad)
{
    tri_case_begin(c, TRI_TEST_ROPE, "rope inverse=%d T=%lld H=%lld D=%lld R=%lld pad=%lld",
                   inverse, (long long)rows, (long long)heads, (long long)d, (long long)rotated,
                   (long long)pad);
    /* The transpose reads what the rotation wrote. */
    tri_case_add(c, inverse ? "dx" : "y", TRI_TEST_ACT, TRI_TEST_OUT, pad, rows, heads, d)->alias =
        1;
    tri_case_add(c, inverse ? "dy" : "x", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, heads, d);
    struct tri_test_tensor *table =
        tri_case_add(c, "table", TRI_TEST_STAT, TRI_TEST_IN, pad, rows, rotated, -1);
    for (int64_t i = 0; i < rows * rotated / 2; i++) {
        double angle = 100 * tri_rng_uniform(11, 0, (uint64_t)i);
        int64_t at = i / (rotated / 2) * rotated + i % (rotated / 2);
        table->value[at] = cos(angle);
        table->value[at + rotated / 2] = sin(angle);
    }
    c->flag = inverse;
    c->sum_length = 2;
}

static void list_rope(struct tri_case_visitor v)
{
    static const double inv_freq[64] = {1, 0.9, 0.5, 0.1, 1e-2, 1e-3, 3e-5, 1e-7};
    static const int64_t sizes[][2] = {{64, 64}, {80, 32}, {128, 128}, {7, 6}, {203, 2}, {2, 2}};
    struct tri_test_case c;
    for (int i = 0; i < TRI_CASE_NUM_ROWS; i++)
        for (int j = 0; j < 6; j++) {
            int64_t pad = (i + j) % 2 == 0 ? GAP : 0;
            for (int inverse = 0; inverse < 2; inverse++) {
                tri_case_rope(&c, inverse, tri_case_rows[i], 1 + (i + j) % 3, sizes[j][0],
                              sizes[j][1], pad);
                tri_case_done(v, &c);
            }
            tri_case_begin(&c, TRI_TEST_ROPE_TABLE, "rope_table T=%lld R=%lld pad=%lld",
                           (long long)tri_case_rows[i], (long long)sizes[j][1], (long long)pad);
            tri_case_add(&c, "table", TRI_TEST_STAT, TRI_TEST_OUT, pad, tri_case_rows[i],
                         sizes[j][1], -1);
            struct tri_test_tensor *pos =
                tri_case_add(&c, "pos", TRI_TEST_I64, TRI_TEST_IN, 0, tri_case_rows[i], -1, -1);
            for (int64_t t = 0; t < tri_case_rows[i]; t++)
                pos->value[t] = (double)(t * 148471 % 16777217);
            c.inv_freq = inv_freq;
            c.scale = 1.25;
            tri_case_done(v, &c);
        }
}

/* ---- act ---------------------------------------------------------------------------------------
 */

void tri_case_act(struct tri_test_case *c, bool backward, enum tri_activation act, int64_t rows,
                  int64_t f, bool gated, int64_t pad)
{
    tri_case_begin(c, backward ? TRI_TEST_ACT_BACKWARD : TRI_TEST_ACT_FORWARD,
                   "act_%s act=%d T=%lld F=%lld gated=%d pad=%lld",
                   backward ? "backward" : "forward", act, (long long)rows, (long long)f, gated,
                   (long long)pad);
    c->act = act;
    if (!backward) {
        tri_case_add(c, "y", TRI_TEST_ACT, TRI_TEST_OUT, pad, rows, f, -1);
    } else {
        tri_case_add(c, "dgate", TRI_TEST_ACT, TRI_TEST_OUT, pad, rows, f, -1)->alias = 3;
        if (gated)
            tri_case_add(c, "dup", TRI_TEST_ACT, TRI_TEST_OUT, pad, rows, f, -1)->alias = 4;
        else
            tri_case_add_absent(c, "dup");
        tri_case_add(c, "dy", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, f, -1);
    }
    struct tri_test_tensor *gate =
        tri_case_add(c, "gate", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, f, -1);
    if (gated)
        tri_case_add(c, "up", TRI_TEST_ACT, TRI_TEST_IN, pad, rows, f, -1);
    else
        tri_case_add_absent(c, "up");
    /* Away from the corner of ReLU, so that differences can be taken. */
    for (int64_t i = 0; i < rows * f; i++)
        gate->value[i] += gate->value[i] < 0 ? -0.01 : 0.01;
}

static void list_act(struct tri_case_visitor v)
{
    static const double tails[] = {0, 20, -20, 100, -100, 1e4, -1e4, 9, -9, 5, -5};
    struct tri_test_case c;
    for (int act = TRI_ACT_SILU; act <= TRI_ACT_RELU; act++)
        for (int i = 0; i < TRI_CASE_NUM_ROWS; i++)
            for (int j = 0; j < TRI_CASE_NUM_WIDTHS; j++)
                for (int backward = 0; backward < 2; backward++) {
                    tri_case_act(&c, backward, (enum tri_activation)act, tri_case_rows[i],
                                 tri_case_widths[j], (i + j) % 2 == 0,
                                 (i + j / 2) % 2 == 0 ? GAP : 0);
                    struct tri_test_tensor *gate = &c.tensor[backward ? 3 : 1];
                    for (int64_t n = 0; n < 11 && n < tri_test_count(gate) / 4; n++)
                        gate->value[n] = tails[n];
                    tri_case_done(v, &c);
                }
}

/* ---- the list of lists -------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    void (*list)(struct tri_case_visitor v);
} families[] = {
    {"move", tri_case_list_move}, {"embed", list_embed},        {"norm", list_norm},
    {"linear", list_linear},      {"rope", list_rope},          {"act", list_act},
    {"attn", tri_case_list_attn}, {"loss", tri_case_list_loss}, {"optim", tri_case_list_optim},
};

const char *const tri_case_families[] = {"move", "embed", "norm", "linear", "rope",
                                         "act",  "attn",  "loss", "optim",  NULL};

void tri_case_visit(const char *family, void (*visit)(struct tri_test_case *c, void *ctx),
                    void *ctx)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (strcmp(families[i].name, family) == 0)
            families[i].list((struct tri_case_visitor){visit, ctx});
}
