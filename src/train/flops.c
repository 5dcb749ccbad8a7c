#include "train/flops.h"

/* Products of the layers that a backward computes again, as a part of the layers' forward. */
static double recomputed_linear(const struct tri_pass *pass)
{
    const struct tri_arch *a = &pass->net.model->arch;
    double e = (double)a->hidden;
    double q = (double)(a->num_heads * a->head_dim);
    double kv = (double)(a->num_kv_heads * a->head_dim);
    double in = (double)((a->gated_mlp ? 2 : 1) * a->mlp_width);
    double again = 0;
    if (pass->remat == TRI_REMAT_FULL)
        again += e * (q + 2 * kv);
    if (pass->remat != TRI_REMAT_NONE) {
        again += e * in; /* the MLP's first product; its second is not needed */
        if (!a->parallel_residual)
            again += e * q; /* the input of the MLP */
    }
    return 2 * again * (double)a->num_layers;
}

void tri_step_flops(const struct tri_pass *pass, const struct tri_batch *batches, int64_t count,
                    struct tri_step_stats *stats)
{
    const struct tri_arch *a = &pass->net.model->arch;
    double tokens = 0;
    double pairs = 0; /* over all layers */
    for (int64_t i = 0; i < count; i++) {
        tokens += (double)batches[i].num_tokens;
        for (int64_t l = 0; l < a->num_layers; l++)
            pairs += tri_batch_attended_pairs(&batches[i], a->window[l]);
    }
    double linear = tri_model_linear_flops(pass->net.model) * tokens;
    double attention = 4.0 * (double)(a->num_heads * a->head_dim) * pairs;
    stats->model_flops = 3 * (linear + attention);
    stats->ran_flops = 3 * linear + recomputed_linear(pass) * tokens + 3.5 * attention +
                       (pass->remat == TRI_REMAT_FULL ? attention : 0);
}
