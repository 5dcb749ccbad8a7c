/* The rotary embedding of a config.json in both spellings.
 *
 * Transformers 4 writes rope_theta (gpt_neox: rotary_emb_base) and partial_rotary_factor (gpt_neox:
 * rotary_pct) at the top and the rest in rope_scaling, Transformers 5 everything in
 * rope_parameters. Whatever is there twice must agree. */
#include <math.h>
#include <string.h>

#include "model/config_read.h"

static const double max_theta = 1e15;

/* The object under `name`, as something to read; object == NULL when absent, null or empty. */
static enum tri_status read_object(const struct tri_config *c, const char *name, const char *inside,
                                   struct tri_config *out)
{
    *out = (struct tri_config){c->what, inside, NULL};
    const json_t *value = json_object_get(c->object, name);
    if (value == NULL || json_is_null(value))
        return TRI_OK;
    if (!json_is_object(value)) {
        char text[TRI_SHOWN_BYTES];
        return tri_fail(TRI_INVALID, "%s: %s is %s: give an object or null", c->what, name,
                        tri_config_shown(value, text));
    }
    if (json_object_size(value) > 0)
        out->object = value;
    return TRI_OK;
}

struct place {
    const struct tri_config *in;
    const char *key;
};

/* Read a number that may stand in several places, which must agree. NaN in *value: in none. */
static enum tri_status read_places(const struct place *places, int count, double min, double max,
                                   double *value)
{
    const struct place *first = NULL;
    *value = NAN;
    for (int i = 0; i < count; i++) {
        const struct place *p = &places[i];
        if (p->in->object == NULL || !tri_config_has(p->in, p->key))
            continue;
        double number = 0.0;
        TRI_TRY(tri_config_number(p->in, p->key, min, max, &number));
        if (first != NULL && number != *value)
            return tri_fail(TRI_INVALID, "%s: %s%s is %.17g but %s%s is %.17g: keep one of the two",
                            p->in->what, first->in->inside, first->key, *value, p->in->inside,
                            p->key, number);
        if (first == NULL)
            first = p;
        *value = number;
    }
    return TRI_OK;
}

static bool same_rope(const struct tri_rope *a, const struct tri_rope *b)
{
    return a->type == b->type && a->theta == b->theta && a->rotary_dim == b->rotary_dim &&
           a->factor == b->factor && a->original_max_positions == b->original_max_positions &&
           a->low_freq_factor == b->low_freq_factor && a->high_freq_factor == b->high_freq_factor &&
           a->beta_fast == b->beta_fast && a->beta_slow == b->beta_slow &&
           a->attention_factor == b->attention_factor && a->mscale == b->mscale &&
           a->mscale_all_dim == b->mscale_all_dim && a->truncate == b->truncate;
}

/* A spelling of another family would be ignored there. */
static enum tri_status check_spelling(const struct tri_config *c, const struct tri_family *family)
{
    static const char *const own[] = {"rotary_emb_base", "rotary_pct"};
    const char *const family_keys[] = {family->rope_theta_key, family->rope_partial_key};
    for (int i = 0; i < 2; i++)
        if (strcmp(own[i], family_keys[i]) != 0 && tri_config_has(c, own[i])) {
            char text[TRI_SHOWN_BYTES];
            return tri_fail(TRI_UNSUPPORTED,
                            "%s: %s is %s, but the family %s calls it %s: rename it or check "
                            "model_type",
                            c->what, own[i],
                            tri_config_shown(json_object_get(c->object, own[i]), text),
                            family->model_type, family_keys[i]);
        }
    return TRI_OK;
}

enum tri_status tri_config_rope(const struct tri_config *c, const struct tri_family *family,
                                int64_t head_dim, int64_t max_positions, struct tri_rope *out)
{
    struct tri_config modern, old;
    TRI_TRY(check_spelling(c, family));
    TRI_TRY(read_object(c, "rope_parameters", "rope_parameters.", &modern));
    TRI_TRY(read_object(c, "rope_scaling", "rope_scaling.", &old));

    const struct place thetas[] = {
        {&modern, "rope_theta"}, {&old, "rope_theta"}, {c, "rope_theta"}, {c, "rotary_emb_base"}};
    const struct place partials[] = {{&modern, "partial_rotary_factor"},
                                     {&old, "partial_rotary_factor"},
                                     {c, "partial_rotary_factor"},
                                     {c, "rotary_pct"}};
    double theta, partial;
    TRI_TRY(read_places(thetas, 4, 0.0, max_theta, &theta));
    TRI_TRY(read_places(partials, 4, 0.0, 1.0, &partial));
    if (isnan(theta))
        theta = 10000.0;
    if (isnan(partial))
        partial = family->rope_partial;
    if (theta <= 1.0)
        return tri_fail(TRI_INVALID, "%s: rope_theta is %g: give a number over 1", c->what, theta);

    struct tri_rope rope = {.theta = theta, .rotary_dim = (int64_t)((double)head_dim * partial)};
    if (rope.rotary_dim < 2 || rope.rotary_dim % 2 != 0)
        return tri_fail(TRI_UNSUPPORTED,
                        "%s: %lld of the %lld elements of a head would be rotated "
                        "(partial_rotary_factor %g): an even number, at least 2, is needed",
                        c->what, (long long)rope.rotary_dim, (long long)head_dim, partial);

    struct tri_rope rope_old = rope;
    if (modern.object != NULL)
        TRI_TRY(tri_config_rope_stretch(c, &modern, max_positions, &rope));
    if (old.object != NULL)
        TRI_TRY(tri_config_rope_stretch(c, &old, max_positions, &rope_old));
    if (modern.object != NULL && old.object != NULL && !same_rope(&rope, &rope_old))
        return tri_fail(TRI_INVALID,
                        "%s: rope_parameters and rope_scaling contradict each other: keep one of "
                        "the two",
                        c->what);
    if (modern.object == NULL)
        rope = rope_old;
    if ((family->rope_types >> rope.type & 1) == 0)
        return tri_fail(TRI_UNSUPPORTED, "%s: the family %s has no rope_type %s: choose default",
                        c->what, family->model_type, tri_rope_type_name(rope.type));
    *out = rope;
    return TRI_OK;
}
