# Instruction sets of the vector kernels: each file is compiled for one and chosen at run time.
include(CheckCCompilerFlag)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(TRIREME_AVX2_FLAGS -mavx2 -mfma)
  set(TRIREME_AVX512_FLAGS -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma)
  check_c_compiler_flag("-mavx2 -mfma" TRIREME_HAVE_AVX2)
  check_c_compiler_flag("-mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma" TRIREME_HAVE_AVX512)
  if(TRIREME_HAVE_AVX2)
    set_source_files_properties(src/backend/cpu/simd/avx2.c
      PROPERTIES COMPILE_OPTIONS "${TRIREME_AVX2_FLAGS}")
  endif()
  if(TRIREME_HAVE_AVX512)
    set_source_files_properties(src/backend/cpu/simd/avx512.c
      PROPERTIES COMPILE_OPTIONS "${TRIREME_AVX512_FLAGS}")
  endif()
endif()
