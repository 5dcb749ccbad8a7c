/* The vector kernels compiled for any processor. */
#include "backend/cpu/simd/simd.h"

#include "backend/cpu/simd/vec_generic.h"

#include "backend/cpu/simd/math.inc"
#include "backend/cpu/simd/pointwise.inc"
#include "backend/cpu/simd/norm.inc"
#include "backend/cpu/simd/rope.inc"
#include "backend/cpu/simd/loss.inc"
#include "backend/cpu/simd/optim.inc"
#include "backend/cpu/simd/product.inc"
#include "backend/cpu/simd/attn_forward.inc"
#include "backend/cpu/simd/attn_backward_block.inc"
#include "backend/cpu/simd/attn_backward.inc"

static const struct tri_simd table = {
    .name = "generic",
#include "backend/cpu/simd/table.inc"
};
const struct tri_simd *const tri_simd_generic = &table;
