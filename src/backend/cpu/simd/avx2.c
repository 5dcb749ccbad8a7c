/* The vector kernels compiled for AVX2 with FMA (cmake/cpu.cmake gives this file its flags). */
#include "backend/cpu/simd/simd.h"

#if defined(__AVX2__) && defined(__FMA__)

#include "backend/cpu/simd/vec_avx2.h"

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
    .name = "avx2",
#include "backend/cpu/simd/table.inc"
};
const struct tri_simd *const tri_simd_avx2 = &table;

#else
const struct tri_simd *const tri_simd_avx2 = NULL;
#endif
