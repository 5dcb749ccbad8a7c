/* How much of a difference is rounding.
 *
 * float64: proofs by the reference kernels. Sums in another order differ by some 1e-15 for each of
 * the few products in a row; 1e-10 is far above that, and far below one lost token.
 *
 * float32: a sum of K products in another order is off by about u sqrt(K) of its size, u = 2^-24
 * (Higham and Mary 2019, "A new approach to probabilistic rounding error analysis"). A gradient has
 * seen the seven products of each layer, forward and twice backward, and the head's: 2 (7 L + 1) in
 * a row. Twice that is the bound.
 *
 * bfloat16: sums are made in float32, but about ten tensors of a layer are stored with u = 2^-9,
 * forward and backward; their roundings are independent, so they add up like a random walk.
 *
 * A loss is a mean over many tokens, whose roundings are independent too: a tenth of the bound. */
#include <math.h>

#include "verify/proof/proofs.h"

double tri_proof_bound(const struct tri_subject *s, enum tri_dtype act)
{
    const struct tri_arch *a = &s->model->arch;
    double layers = (double)a->num_layers;
    if (act == TRI_F64)
        return 1e-10;
    if (act == TRI_BF16)
        return 2 * 0x1p-9 * sqrt(2 * (10 * layers + 5));
    double longest = fmax(fmax((double)a->hidden, (double)a->mlp_width),
                          fmax((double)(a->num_heads * a->head_dim), (double)s->tokens));
    return 2 * 0x1p-24 * sqrt(longest) * 2 * (7 * layers + 1);
}

double tri_proof_bit_bound(const struct tri_subject *s, enum tri_dtype act)
{
    return s->cuda && !s->run->recipe->pass.deterministic ? tri_proof_bound(s, act) : 0;
}
