/* What may stand after `is`. */
#include "text/jinja/characters.h"
#include "text/jinja/run.h"

enum kind_test {
    DEFINED,
    UNDEFINED,
    NONE,
    BOOLEAN,
    IS_TRUE,
    IS_FALSE,
    INTEGER,
    FLOAT,
    NUMBER,
    STRING,
    MAPPING,
    SEQUENCE,
    ITERABLE,
    CALLABLE,
    ESCAPED,
};

/* Has a length and can be indexed; Jinja's Undefined has both. */
static bool is_sequence(enum tri_jinja_kind kind)
{
    return kind == TRI_JINJA_STRING || kind == TRI_JINJA_LIST || kind == TRI_JINJA_TUPLE ||
           kind == TRI_JINJA_RANGE || kind == TRI_JINJA_DICT || kind == TRI_JINJA_UNDEFINED;
}

static bool is_callable(enum tri_jinja_kind kind)
{
    return kind == TRI_JINJA_MACRO || kind == TRI_JINJA_BUILTIN || kind == TRI_JINJA_JOINER ||
           kind == TRI_JINJA_LOOP || kind == TRI_JINJA_UNDEFINED;
}

static bool has_kind(struct tri_jinja_value v, enum kind_test test)
{
    switch (test) {
    case DEFINED:
        return v.kind != TRI_JINJA_UNDEFINED;
    case UNDEFINED:
        return v.kind == TRI_JINJA_UNDEFINED;
    case NONE:
        return v.kind == TRI_JINJA_NONE;
    case BOOLEAN:
        return v.kind == TRI_JINJA_BOOL;
    case IS_TRUE:
        return v.kind == TRI_JINJA_BOOL && v.as.boolean;
    case IS_FALSE:
        return v.kind == TRI_JINJA_BOOL && !v.as.boolean;
    case INTEGER:
        return v.kind == TRI_JINJA_INT;
    case FLOAT:
        return v.kind == TRI_JINJA_FLOAT;
    case NUMBER:
        return tri_jinja_is_number(v);
    case STRING:
        return v.kind == TRI_JINJA_STRING;
    case MAPPING:
        return v.kind == TRI_JINJA_DICT;
    case SEQUENCE:
        return is_sequence(v.kind);
    case ITERABLE:
        return is_sequence(v.kind) || v.kind == TRI_JINJA_VIEW || v.kind == TRI_JINJA_ITER ||
               v.kind == TRI_JINJA_LOOP;
    case CALLABLE:
        return is_callable(v.kind);
    default:
        return false; /* nothing is ever escaped */
    }
}

static enum tri_status test_kind(struct tri_jinja_run *run, struct tri_jinja_value self,
                                 const struct tri_jinja_arguments *arguments,
                                 struct tri_jinja_value *out)
{
    (void)run;
    *out = tri_jinja_bool(has_kind(self, (enum kind_test)arguments->which));
    return TRI_OK;
}

static enum tri_status test_compare(struct tri_jinja_run *run, struct tri_jinja_value self,
                                    const struct tri_jinja_arguments *arguments,
                                    struct tri_jinja_value *out)
{
    bool holds;
    TRI_TRY(tri_jinja_compare(run, (enum tri_jinja_operator)arguments->which, self,
                              arguments->values[0], &holds));
    *out = tri_jinja_bool(holds);
    return TRI_OK;
}

/* odd: remainder 1 of 2; even: 0 of 2; divisibleby(n): 0 of n. */
static enum tri_status test_remainder(struct tri_jinja_run *run, struct tri_jinja_value self,
                                      const struct tri_jinja_arguments *arguments,
                                      struct tri_jinja_value *out)
{
    struct tri_jinja_value divisor = tri_jinja_int(2), remainder;
    bool same;
    if (arguments->count > 0)
        divisor = arguments->values[0];
    TRI_TRY(tri_jinja_operate(run, TRI_JINJA_MOD, self, divisor, &remainder));
    TRI_TRY(tri_jinja_equal(run, remainder, tri_jinja_int(arguments->which), &same));
    *out = tri_jinja_bool(same);
    return TRI_OK;
}

static enum tri_status test_case(struct tri_jinja_run *run, struct tri_jinja_value self,
                                 const struct tri_jinja_arguments *arguments,
                                 struct tri_jinja_value *out)
{
    const bool upper = arguments->which != 0;
    TRI_TRY(tri_jinja_to_string(run, self, &self));
    const struct tri_jinja_string *text = self.as.string;
    bool cased = false, all = true;
    for (size_t at = 0; at < text->bytes && all;) {
        uint32_t c;
        at += tri_character_decode(text->data + at, text->bytes - at, &c);
        cased = cased || tri_character_is_cased(c);
        all = upper ? !tri_character_is_lower(c) : !tri_character_is_upper(c);
    }
    *out = tri_jinja_bool(cased && all);
    return TRI_OK;
}

static enum tri_status test_sameas(struct tri_jinja_run *run, struct tri_jinja_value self,
                                   const struct tri_jinja_arguments *arguments,
                                   struct tri_jinja_value *out)
{
    const struct tri_jinja_value other = arguments->values[0];
    bool same = self.kind == other.kind;
    if (same && (self.kind == TRI_JINJA_BOOL || self.kind == TRI_JINJA_NONE))
        TRI_TRY(tri_jinja_equal(run, self, other, &same));
    else if (same && self.kind >= TRI_JINJA_LIST && self.kind <= TRI_JINJA_RANGE)
        same = self.as.list == other.as.list;
    else if (same && (self.kind == TRI_JINJA_DICT || self.kind == TRI_JINJA_NAMESPACE))
        same = self.as.dict == other.as.dict;
    else if (same)
        return tri_jinja_fail(run, TRI_UNSUPPORTED, "sameas for %s (use ==)",
                              tri_jinja_type_name(self));
    *out = tri_jinja_bool(same);
    return TRI_OK;
}

/* Is there a filter or a test of this name? */
static enum tri_status test_known(struct tri_jinja_run *run, struct tri_jinja_value self,
                                  const struct tri_jinja_arguments *arguments,
                                  struct tri_jinja_value *out)
{
    const struct tri_jinja_string *name;
    TRI_TRY(tri_jinja_string_argument(run, self, "a name", &name));
    bool known = false;
    if (name != NULL)
        known = (arguments->which == 0 ? tri_jinja_find_filter(name->data, name->bytes)
                                       : tri_jinja_find_test(name->data, name->bytes)) != NULL;
    *out = tri_jinja_bool(known);
    return TRI_OK;
}

static const struct tri_jinja_builtin items[] = {
    {"defined", test_kind, "", 0, DEFINED},
    {"undefined", test_kind, "", 0, UNDEFINED},
    {"none", test_kind, "", 0, NONE},
    {"boolean", test_kind, "", 0, BOOLEAN},
    {"true", test_kind, "", 0, IS_TRUE},
    {"false", test_kind, "", 0, IS_FALSE},
    {"integer", test_kind, "", 0, INTEGER},
    {"float", test_kind, "", 0, FLOAT},
    {"number", test_kind, "", 0, NUMBER},
    {"string", test_kind, "", 0, STRING},
    {"mapping", test_kind, "", 0, MAPPING},
    {"sequence", test_kind, "", 0, SEQUENCE},
    {"iterable", test_kind, "", 0, ITERABLE},
    {"callable", test_kind, "", 0, CALLABLE},
    {"escaped", test_kind, "", 0, ESCAPED},
    {"eq", test_compare, "value", 1, TRI_JINJA_EQ},
    {"equalto", test_compare, "value", 1, TRI_JINJA_EQ},
    {"ne", test_compare, "value", 1, TRI_JINJA_NE},
    {"lt", test_compare, "value", 1, TRI_JINJA_LT},
    {"lessthan", test_compare, "value", 1, TRI_JINJA_LT},
    {"le", test_compare, "value", 1, TRI_JINJA_LE},
    {"gt", test_compare, "value", 1, TRI_JINJA_GT},
    {"greaterthan", test_compare, "value", 1, TRI_JINJA_GT},
    {"ge", test_compare, "value", 1, TRI_JINJA_GE},
    {"==", test_compare, "value", 1, TRI_JINJA_EQ},
    {"!=", test_compare, "value", 1, TRI_JINJA_NE},
    {"<", test_compare, "value", 1, TRI_JINJA_LT},
    {"<=", test_compare, "value", 1, TRI_JINJA_LE},
    {">", test_compare, "value", 1, TRI_JINJA_GT},
    {">=", test_compare, "value", 1, TRI_JINJA_GE},
    {"in", test_compare, "container", 1, TRI_JINJA_IN},
    {"odd", test_remainder, "", 0, 1},
    {"even", test_remainder, "", 0, 0},
    {"divisibleby", test_remainder, "number", 1, 0},
    {"lower", test_case, "", 0, 0},
    {"upper", test_case, "", 0, 1},
    {"sameas", test_sameas, "other", 1, 0},
    {"filter", test_known, "", 0, 0},
    {"test", test_known, "", 0, 1},
};

const struct tri_jinja_builtins tri_jinja_tests = {items, sizeof items / sizeof *items};
