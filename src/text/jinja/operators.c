/* Arithmetic, with Python's rules: true division, floor division, the sign of a remainder. */
#include <math.h>

#include "text/jinja/run.h"

static enum tri_status fail_types(const struct tri_jinja_run *run, enum tri_jinja_operator op,
                                  struct tri_jinja_value a, struct tri_jinja_value b)
{
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "**"};
    return tri_jinja_fail(run, TRI_INVALID, "unsupported operands for %s: %s and %s", names[op],
                          tri_jinja_type_name(a), tri_jinja_type_name(b));
}

static enum tri_status fail_range(const struct tri_jinja_run *run)
{
    return tri_jinja_fail(run, TRI_UNSUPPORTED, "an integer of more than 64 bits");
}

static bool multiply(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static enum tri_status integer_power(struct tri_jinja_run *run, int64_t a, int64_t b,
                                     struct tri_jinja_value *out)
{
    if (b < 0) {
        if (a == 0)
            return tri_jinja_fail(run, TRI_INVALID, "division by zero");
        *out = tri_jinja_float(pow((double)a, (double)b));
        return TRI_OK;
    }
    int64_t result = 1;
    while (b > 0) {
        if ((b & 1) != 0 && !multiply(result, a, &result))
            return fail_range(run);
        b >>= 1;
        if (b > 0 && !multiply(a, a, &a))
            return fail_range(run);
    }
    *out = tri_jinja_int(result);
    return TRI_OK;
}

static enum tri_status operate_integers(struct tri_jinja_run *run, enum tri_jinja_operator op,
                                        int64_t a, int64_t b, struct tri_jinja_value *out)
{
    int64_t result;
    switch (op) {
    case TRI_JINJA_ADD:
        if (__builtin_add_overflow(a, b, &result))
            return fail_range(run);
        break;
    case TRI_JINJA_SUB:
        if (__builtin_sub_overflow(a, b, &result))
            return fail_range(run);
        break;
    case TRI_JINJA_MUL:
        if (!multiply(a, b, &result))
            return fail_range(run);
        break;
    case TRI_JINJA_POW:
        return integer_power(run, a, b, out);
    default:
        if (b == 0)
            return tri_jinja_fail(run, TRI_INVALID, "division by zero");
        if (op == TRI_JINJA_DIV) {
            *out = tri_jinja_float((double)a / (double)b);
            return TRI_OK;
        }
        if (a == INT64_MIN && b == -1) {
            if (op == TRI_JINJA_FLOORDIV)
                return fail_range(run);
            result = 0;
            break;
        }
        bool down = a % b != 0 && (a < 0) != (b < 0);
        if (op == TRI_JINJA_FLOORDIV)
            result = a / b - down;
        else
            result = a % b + (down ? b : 0);
    }
    *out = tri_jinja_int(result);
    return TRI_OK;
}

static enum tri_status operate_floats(struct tri_jinja_run *run, enum tri_jinja_operator op,
                                      double a, double b, struct tri_jinja_value *out)
{
    double result;
    switch (op) {
    case TRI_JINJA_ADD:
        result = a + b;
        break;
    case TRI_JINJA_SUB:
        result = a - b;
        break;
    case TRI_JINJA_MUL:
        result = a * b;
        break;
    case TRI_JINJA_POW:
        result = pow(a, b);
        if (isfinite(a) && isfinite(b) && !isfinite(result))
            return tri_jinja_fail(run, TRI_INVALID, "a power that is not a finite number");
        break;
    default:
        if (b == 0)
            return tri_jinja_fail(run, TRI_INVALID, "division by zero");
        if (op == TRI_JINJA_DIV) {
            result = a / b;
            break;
        }
        /* CPython's float_floor_div and float_rem. */
        double mod = fmod(a, b), quotient = (a - mod) / b;
        if (mod != 0 && (b < 0) != (mod < 0)) {
            mod += b;
            quotient -= 1;
        } else if (mod == 0) {
            mod = copysign(0.0, b);
        }
        double floored = quotient == 0 ? copysign(0.0, a / b) : floor(quotient);
        if (quotient != 0 && quotient - floored > 0.5)
            floored += 1;
        result = op == TRI_JINJA_MOD ? mod : floored;
    }
    *out = tri_jinja_float(result);
    return TRI_OK;
}

/* A string or list `count` times. */
static enum tri_status repeat(struct tri_jinja_run *run, struct tri_jinja_value value,
                              int64_t count, struct tri_jinja_value *out)
{
    if (count < 0)
        count = 0;
    int64_t size =
        value.kind == TRI_JINJA_STRING ? (int64_t)value.as.string->bytes : value.as.list->count;
    int64_t total;
    if (!multiply(size, count, &total) || (uint64_t)total > run->pool.limit)
        return tri_jinja_fail(run, TRI_NOMEM, "a repetition over the limit of memory");
    TRI_TRY(tri_jinja_step(run, total / 64));
    if (size == 0)
        count = 0;
    if (value.kind == TRI_JINJA_STRING) {
        struct tri_jinja_buffer buffer = {.pool = &run->pool};
        for (int64_t i = 0; i < count && !buffer.failed; i++)
            tri_jinja_buffer_add(&buffer, value.as.string->data, value.as.string->bytes);
        return tri_jinja_buffer_value(&buffer, out);
    }
    TRI_TRY(tri_jinja_list(&run->pool, value.kind, total, out));
    struct tri_jinja_list *list = out->as.list;
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < size; k++)
            list->items[list->count++] = value.as.list->items[k];
    return TRI_OK;
}

static enum tri_status join(struct tri_jinja_run *run, struct tri_jinja_value a,
                            struct tri_jinja_value b, struct tri_jinja_value *out)
{
    if (a.kind == TRI_JINJA_STRING) {
        struct tri_jinja_buffer buffer = {.pool = &run->pool};
        const bool markup = a.as.string->markup || b.as.string->markup;
        tri_jinja_add_escaped(a.as.string, markup, &buffer);
        tri_jinja_add_escaped(b.as.string, markup, &buffer);
        TRI_TRY(tri_jinja_step(run, (int64_t)(buffer.bytes / 64)));
        TRI_TRY(tri_jinja_buffer_value(&buffer, out));
        return markup ? tri_jinja_mark_safe(run, out) : TRI_OK;
    }
    const struct tri_jinja_list *x = a.as.list, *y = b.as.list;
    TRI_TRY(tri_jinja_step(run, (x->count + y->count) / 8));
    TRI_TRY(tri_jinja_list(&run->pool, a.kind, x->count + y->count, out));
    for (int64_t i = 0; i < x->count; i++)
        out->as.list->items[i] = x->items[i];
    for (int64_t i = 0; i < y->count; i++)
        out->as.list->items[x->count + i] = y->items[i];
    out->as.list->count = x->count + y->count;
    return TRI_OK;
}

static bool can_repeat(struct tri_jinja_value value)
{
    return value.kind == TRI_JINJA_STRING || value.kind == TRI_JINJA_LIST ||
           value.kind == TRI_JINJA_TUPLE;
}

enum tri_status tri_jinja_operate(struct tri_jinja_run *run, enum tri_jinja_operator op,
                                  struct tri_jinja_value a, struct tri_jinja_value b,
                                  struct tri_jinja_value *out)
{
    if (a.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, a);
    if (op == TRI_JINJA_MOD && a.kind == TRI_JINJA_STRING)
        return tri_jinja_percent(run, a.as.string, b, out);
    if (b.kind == TRI_JINJA_UNDEFINED)
        return tri_jinja_fail_undefined(run, b);
    if (tri_jinja_is_integer(a) && tri_jinja_is_integer(b))
        return operate_integers(run, op, tri_jinja_as_int(a), tri_jinja_as_int(b), out);
    if (tri_jinja_is_number(a) && tri_jinja_is_number(b))
        return operate_floats(run, op, tri_jinja_as_float(a), tri_jinja_as_float(b), out);
    if (op == TRI_JINJA_ADD && a.kind == b.kind && can_repeat(a))
        return join(run, a, b, out);
    if (op == TRI_JINJA_MUL && can_repeat(a) && tri_jinja_is_integer(b))
        return repeat(run, a, tri_jinja_as_int(b), out);
    if (op == TRI_JINJA_MUL && can_repeat(b) && tri_jinja_is_integer(a))
        return repeat(run, b, tri_jinja_as_int(a), out);
    return fail_types(run, op, a, b);
}
