/* Activations of the MLP, with or without a gate. */
#include "backend/cpu/reference/reference.h"

#include <assert.h>
#include <math.h>

/* Constants spelled out: C11 itself has none. */
static const double root_half = 0.70710678118654752440;            /* sqrt(1/2) */
static const double root_two_over_pi = 0.79788456080286535588;     /* sqrt(2/pi) */
static const double one_over_root_two_pi = 0.39894228040143267794; /* 1/sqrt(2 pi) */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Hendrycks & Gimpel 2016, the tanh form. */
static double gelu_tanh_inner(double x)
{
    return tanh(root_two_over_pi * (x + 0.044715 * x * x * x));
}

static double activate(enum tri_activation act, double x)
{
    switch (act) {
    case TRI_ACT_SILU:
        return x * sigmoid(x);
    case TRI_ACT_GELU:
        return x * 0.5 * erfc(-x * root_half);
    case TRI_ACT_GELU_TANH:
        return 0.5 * x * (1 + gelu_tanh_inner(x));
    case TRI_ACT_QUICK_GELU:
        return x * sigmoid(1.702 * x);
    case TRI_ACT_RELU:
        return x > 0 ? x : 0;
    }
    return NAN;
}

static double derivative(enum tri_activation act, double x)
{
    switch (act) {
    case TRI_ACT_SILU: {
        double p = sigmoid(x);
        return p * (1 + x * (1 - p));
    }
    case TRI_ACT_GELU: /* Phi(x) + x phi(x) */
        return 0.5 * erfc(-x * root_half) + x * one_over_root_two_pi * exp(-0.5 * x * x);
    case TRI_ACT_GELU_TANH: {
        double t = gelu_tanh_inner(x);
        double inner = root_two_over_pi * (1 + 3 * 0.044715 * x * x);
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }
    case TRI_ACT_QUICK_GELU: {
        double p = sigmoid(1.702 * x);
        return p * (1 + 1.702 * x * (1 - p));
    }
    case TRI_ACT_RELU:
        return x > 0 ? 1 : 0;
    }
    return NAN;
}

enum tri_status tri_reference_act_forward(struct tri_stream *s, enum tri_activation act,
                                          struct tri_view y, struct tri_view gate,
                                          struct tri_view up)
{
    (void)s;
    assert(tri_view_same_shape(y, gate));
    TRI_TRY(tri_reference_check("act_forward", (struct tri_view[]){y, gate, up}, 3));
    for (int64_t r = 0; r < tri_reference_rows(y); r++) {
        int64_t y_row = tri_reference_row(y, r);
        int64_t gate_row = tri_reference_row(gate, r);
        int64_t up_row = tri_view_present(up) ? tri_reference_row(up, r) : 0;
        for (int64_t i = 0; i < tri_reference_width(y); i++) {
            double value = activate(act, tri_reference_get(gate, gate_row + i));
            if (tri_view_present(up))
                value *= tri_reference_get(up, up_row + i);
            tri_reference_set(y, y_row + i, value);
        }
    }
    return TRI_OK;
}

/* dgate = dy * up * act'(gate)     dup = dy * act(gate) */
enum tri_status tri_reference_act_backward(struct tri_stream *s, enum tri_activation act,
                                           struct tri_view dgate, struct tri_view dup,
                                           struct tri_view dy, struct tri_view gate,
                                           struct tri_view up)
{
    (void)s;
    assert(tri_view_same_shape(dy, gate) && tri_view_present(dup) == tri_view_present(up));
    TRI_TRY(tri_reference_check("act_backward", (struct tri_view[]){dgate, dup, dy, gate, up}, 5));
    for (int64_t r = 0; r < tri_reference_rows(dy); r++) {
        int64_t dy_row = tri_reference_row(dy, r);
        int64_t gate_row = tri_reference_row(gate, r);
        int64_t dgate_row = tri_reference_row(dgate, r);
        for (int64_t i = 0; i < tri_reference_width(dy); i++) {
            double out = tri_reference_get(dy, dy_row + i);
            double g = tri_reference_get(gate, gate_row + i);
            double u = 1; /* all three are read before dgate and dup, which may be gate and up */
            if (tri_view_present(up)) {
                u = tri_reference_get(up, tri_reference_row(up, r) + i);
                tri_reference_set(dup, tri_reference_row(dup, r) + i, out * activate(act, g));
            }
            tri_reference_set(dgate, dgate_row + i, out * u * derivative(act, g));
        }
    }
    return TRI_OK;
}
