# The CUDA backend. AUTO takes it when nvcc is there; ON insists; OFF leaves it out. Without it,
# src/backend/cuda/absent.c stands in and says so at run time.
#
# Kernels are compiled apart from the C sources, with their own flags; only cudart is linked, and
# statically. cuBLASLt and cuDNN give headers here and are opened at run time.
set(TRIREME_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set_property(CACHE TRIREME_CUDA PROPERTY STRINGS AUTO ON OFF)
# Each compute capability takes a minute to build, so a build at home is for the card that is here
# (or Hopper without one); the preset `portable` is for all that are supported.
execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
  OUTPUT_VARIABLE TRIREME_CARDS ERROR_QUIET RESULT_VARIABLE TRIREME_NO_CARD)
string(REGEX MATCHALL "[0-9]+\\.[0-9]" TRIREME_CARDS "${TRIREME_CARDS}")
list(TRANSFORM TRIREME_CARDS REPLACE "\\." "")
list(REMOVE_DUPLICATES TRIREME_CARDS)
if(NOT TRIREME_CARDS)
  set(TRIREME_CARDS 90)
endif()
set(TRIREME_CUDA_ARCHITECTURES "${TRIREME_CARDS}" CACHE STRING
  "Compute capabilities that kernels are built for, such as 80;86;89;90;100;120")

set(TRIREME_HAVE_CUDA FALSE)
if(TRIREME_CUDA)
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    # Real code for each card, and PTX of the newest so that later cards run too.
    set(architectures ${TRIREME_CUDA_ARCHITECTURES})
    list(POP_BACK architectures newest)
    list(TRANSFORM architectures APPEND -real)
    set(CMAKE_CUDA_ARCHITECTURES ${architectures} ${newest})
    enable_language(CUDA)
    find_package(CUDAToolkit)
    find_path(TRIREME_CUBLASLT_INCLUDE cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_path(TRIREME_CUDNN_INCLUDE cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(TARGET CUDA::cudart_static AND TRIREME_CUBLASLT_INCLUDE)
      set(TRIREME_HAVE_CUDA TRUE)
    endif()
  endif()
  if(TRIREME_CUDA STREQUAL "ON" AND NOT TRIREME_HAVE_CUDA)
    message(FATAL_ERROR "TRIREME_CUDA is ON, but nvcc, cudart_static or cublasLt.h was not found: "
      "install the CUDA toolkit (12.4 or later), or set -DTRIREME_CUDA=OFF")
  endif()
endif()

if(TRIREME_HAVE_CUDA)
  list(JOIN TRIREME_CUDA_ARCHITECTURES " " text)
  trireme_found("CUDA ${CUDAToolkit_VERSION}" "yes, for ${text}")
  list(FILTER TRIREME_SOURCES EXCLUDE REGEX "src/backend/cuda/absent\\.c$")
  file(GLOB TRIREME_KERNELS CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/kernels/*.cu)
  add_library(trireme_kernels OBJECT ${TRIREME_KERNELS})
  target_include_directories(trireme_kernels PRIVATE src include)
  set_target_properties(trireme_kernels PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON)
  # No C++ library is linked into the program, so none may be needed. Line numbers are for profilers.
  target_compile_options(trireme_kernels PRIVATE -lineinfo -Xcompiler=-fno-exceptions,-fno-rtti,-Wall)
  if(TRIREME_WERROR)
    target_compile_options(trireme_kernels PRIVATE -Werror=all-warnings)
  endif()
  list(APPEND TRIREME_SOURCES $<TARGET_OBJECTS:trireme_kernels>)

  # attn_cudnn*.c needs cuDNN's headers; without them attn.c knows only our own kernel.
  file(GLOB TRIREME_CUDNN_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/attn_cudnn.c)
  if(TRIREME_CUDNN_INCLUDE AND TRIREME_CUDNN_SOURCES)
    set_source_files_properties(src/backend/cuda/backend.c PROPERTIES COMPILE_DEFINITIONS TRI_HAVE_CUDNN)
  else()
    list(FILTER TRIREME_SOURCES EXCLUDE REGEX "src/backend/cuda/attn_cudnn[^/]*\\.c$")
    trireme_found("cuDNN" "no, attention on CUDA runs on our own kernel")
  endif()
  # comm/nccl needs NCCL's header only; the library is opened at run time.
  find_path(TRIREME_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(TRIREME_NCCL_INCLUDE)
    list(FILTER TRIREME_SOURCES EXCLUDE REGEX "src/comm/nccl/absent\\.c$")
    target_include_directories(trireme_dependencies SYSTEM INTERFACE ${TRIREME_NCCL_INCLUDE})
  else()
    trireme_found("NCCL" "no, one card a job (libnccl-dev has the header)")
  endif()
  target_include_directories(trireme_dependencies SYSTEM INTERFACE
    ${CUDAToolkit_INCLUDE_DIRS} ${TRIREME_CUBLASLT_INCLUDE} $<$<BOOL:${TRIREME_CUDNN_INCLUDE}>:${TRIREME_CUDNN_INCLUDE}>)
  target_link_libraries(trireme_dependencies INTERFACE CUDA::cudart_static ${CMAKE_DL_LIBS})
else()
  if(TRIREME_CUDA)
    trireme_found("CUDA" "no, left out")
  else()
    trireme_found("CUDA" "no, left out (-DTRIREME_CUDA=AUTO builds it)")
  endif()
  list(FILTER TRIREME_SOURCES EXCLUDE REGEX "src/backend/cuda/(.*/)?[^/]*\\.c$")
  list(APPEND TRIREME_SOURCES ${PROJECT_SOURCE_DIR}/src/backend/cuda/absent.c)
endif()
if(NOT TRIREME_HAVE_CUDA OR NOT TRIREME_NCCL_INCLUDE)
  list(FILTER TRIREME_SOURCES EXCLUDE REGEX "src/comm/nccl/[^/]*\\.c$")
  list(APPEND TRIREME_SOURCES ${PROJECT_SOURCE_DIR}/src/comm/nccl/absent.c)
endif()
