/* The MLP half of a block with its weights wherever they lie: for a layer of ours (net.h) and for a
 * training loop that is not ours (include/trireme/tiled.h). */
#ifndef TRI_MODEL_MLP_H
#define TRI_MODEL_MLP_H

#include "backend/backend.h"
#include "base/arena.h"

/* y += out(act(in(norm(x)))). Gradients of parameters are absent where a parameter is frozen. */
struct tri_mlp {
    struct tri_exec exec;
    const struct tri_norm *norm; /* NULL: the products read x itself */
    enum tri_activation activation;
    bool gated;
    int64_t tiles; /* of the rows of a call; sizes differ by at most one */
    struct tri_view norm_w, norm_b, in_w, in_b, out_w, out_b; /* in_w (2F or F, E), out_w (E, F) */
    struct tri_view d_norm_w, d_norm_b, d_in_w, d_in_b, d_out_w, d_out_b;
};

/* y(n,E) += mlp(x(n,E)), tile by tile; y may be x. `kept` (n, 2F or F) receives the first product,
 * or is absent. */
enum tri_status tri_mlp_run(const struct tri_mlp *mlp, struct tri_view y, struct tri_view x,
                            struct tri_view kept);

/* dx(n,E) += gradient through the MLP, from dy(n,E); dx may be dy, or absent. Parameter gradients
 * +=. `kept` is what the forward kept, or absent. */
enum tri_status tri_mlp_run_backward(const struct tri_mlp *mlp, struct tri_view dx,
                                     struct tri_view dy, struct tri_view x, struct tri_view kept);

#endif
