#include "train/warnings.h"

#include <inttypes.h>

#include "base/log.h"

static const char *rope_name(enum tri_rope_type type)
{
    static const char *const names[] = {"default", "linear", "dynamic", "yarn", "llama3"};
    return names[type];
}

/* Positions that the rotary embedding reaches: what it was trained on, times its factor. */
static double reach(const struct tri_arch *a)
{
    double trained = (double)a->max_positions;
    switch (a->rope.type) {
    case TRI_ROPE_DYNAMIC:
        return 1e300; /* stretches itself to the length at hand */
    case TRI_ROPE_LINEAR:
    case TRI_ROPE_YARN:
    case TRI_ROPE_LLAMA3: {
        double original =
            a->rope.original_max_positions > 0 ? (double)a->rope.original_max_positions : trained;
        double stretched = original * a->rope.factor;
        return stretched > trained ? stretched : trained;
    }
    case TRI_ROPE_DEFAULT:
        break;
    }
    return trained;
}

void tri_warn_model(const struct tri_model *model, const json_t *overrides)
{
    const struct tri_arch *a = &model->arch;
    int64_t windows = 0;
    for (int64_t l = 0; l < a->num_layers; l++)
        windows += a->window[l] > 0;
    tri_info("model: %s, %.4g million parameters, %" PRId64 " layers of %" PRId64 ", %" PRId64
             " query and %" PRId64 " key heads of %" PRId64 ", vocabulary %" PRId64,
             a->family, (double)model->num_weights / 1e6, a->num_layers, a->hidden, a->num_heads,
             a->num_kv_heads, a->head_dim, a->vocab);
    tri_info("rope: %s, theta %.10g, factor %.6g, %" PRId64 " of %" PRId64
             " elements turn, made for %.0f positions%s",
             rope_name(a->rope.type), a->rope.theta, a->rope.factor > 0 ? a->rope.factor : 1.0,
             a->rope.rotary_dim, a->head_dim, reach(a) < 1e300 ? reach(a) : 0.0,
             overrides != NULL ? " (config.json changed by the recipe)" : "");
    if (windows > 0)
        tri_info("attention: %" PRId64 " of %" PRId64 " layers see a sliding window", windows,
                 a->num_layers);
}

void tri_warn_length(const struct tri_model *model, const struct tri_dataset *data,
                     const struct tri_dataset *eval)
{
    const struct tri_dataset *both[] = {data, eval};
    for (int i = 0; i < 2; i++) {
        if (both[i] == NULL)
            continue;
        int64_t longest = tri_dataset_stats(both[i])->longest_piece;
        if ((double)longest > reach(&model->arch))
            tri_warn(
                "a document of %" PRId64 " tokens is longer than the %.0f positions this model "
                "was made for and its rotary embedding is unchanged: set model.rope (type: "
                "yarn, factor: %.2f)",
                longest, reach(&model->arch), (double)longest / (double)model->arch.max_positions);
    }
}
