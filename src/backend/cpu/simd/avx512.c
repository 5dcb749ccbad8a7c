/* The vector kernels compiled for AVX-512 (cmake/cpu.cmake gives this file its flags). */
#include "backend/cpu/simd/simd.h"

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__)

#include "backend/cpu/simd/vec_avx512.h"

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
    .name = "avx512",
#include "backend/cpu/simd/table.inc"
};
const struct tri_simd *const tri_simd_avx512 = &table;

#else
const struct tri_simd *const tri_simd_avx512 = NULL;
#endif
