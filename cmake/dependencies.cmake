# What the build uses, in one target, and what it found, in one printed block. Missing required
# packages stop here with their Debian names, all of them at once.
find_package(PkgConfig REQUIRED QUIET)
add_library(trireme_dependencies INTERFACE)

# Remember one line of the block that trireme_print_found() prints.
function(trireme_found what value)
  string(LENGTH "${what}:" length)
  math(EXPR pad "18 - ${length}")
  if(pad LESS 1)
    set(pad 1)
  endif()
  string(REPEAT " " ${pad} spaces)
  set_property(GLOBAL APPEND PROPERTY TRIREME_FOUND "  ${what}:${spaces}${value}")
endfunction()

function(trireme_print_found)
  get_property(lines GLOBAL PROPERTY TRIREME_FOUND)
  list(JOIN lines "\n" text)
  message("\n${text}\n")
endfunction()

function(trireme_need name module debian)
  pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  if(${name}_FOUND)
    target_link_libraries(trireme_dependencies INTERFACE PkgConfig::${name})
    trireme_found("${module} ${${name}_VERSION}" yes)
  else()
    set_property(GLOBAL APPEND PROPERTY TRIREME_MISSING ${debian})
  endif()
endfunction()

set(kind "${CMAKE_BUILD_TYPE}")
if(TRIREME_SANITIZE)
  string(APPEND kind ", sanitizers ${TRIREME_SANITIZE}")
endif()
if(TRIREME_WERROR)
  string(APPEND kind ", warnings are errors")
endif()
trireme_found("Trireme ${PROJECT_VERSION}" "${kind}")
trireme_found("compiler" "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")

trireme_need(JANSSON jansson libjansson-dev)
trireme_need(YAML yaml-0.1 libyaml-dev)
trireme_need(PCRE2 libpcre2-8 libpcre2-dev)
trireme_need(UTF8PROC libutf8proc libutf8proc-dev)
trireme_need(ZLIB zlib zlib1g-dev)
trireme_need(ZSTD libzstd libzstd-dev)

# OpenBLAS by path: Debian's alternatives prefer the pthread build, ours is the OpenMP one, which
# nests inside our own OpenMP loops. Elsewhere give -DTRIREME_OPENBLAS=file -DTRIREME_CBLAS=folder.
find_library(TRIREME_OPENBLAS openblas
  PATHS /usr/lib/${CMAKE_C_LIBRARY_ARCHITECTURE}/openblas-openmp
  NO_DEFAULT_PATH)
find_path(TRIREME_CBLAS cblas.h
  PATHS /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE}/openblas-openmp
  NO_DEFAULT_PATH)
if(TRIREME_OPENBLAS AND TRIREME_CBLAS)
  get_filename_component(folder ${TRIREME_OPENBLAS} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  trireme_found("OpenBLAS" "yes (${folder})")
  target_include_directories(trireme_dependencies INTERFACE ${TRIREME_CBLAS})
  target_link_libraries(trireme_dependencies INTERFACE ${TRIREME_OPENBLAS})
else()
  set_property(GLOBAL APPEND PROPERTY TRIREME_MISSING libopenblas-openmp-dev)
endif()

get_property(missing GLOBAL PROPERTY TRIREME_MISSING)
if(missing)
  list(JOIN missing " " missing)
  message(FATAL_ERROR "Packages are missing: ${missing} (make deps installs them)")
endif()

find_package(Threads REQUIRED QUIET)
target_link_libraries(trireme_dependencies INTERFACE Threads::Threads m)

if(TRIREME_OPENMP)
  find_package(OpenMP REQUIRED QUIET COMPONENTS C)
  target_link_libraries(trireme_dependencies INTERFACE OpenMP::OpenMP_C)
  trireme_found("OpenMP ${OpenMP_C_VERSION}" yes)
else()
  trireme_found("OpenMP" "no, left out on request")
endif()

# Ranks as processes under mpirun or srun. Without MPI src/comm/mpi/absent.c says so.
option(TRIREME_MPI "Build the MPI communicator where MPI is found" ON)
set(TRIREME_MPI_KIND AUTO CACHE STRING "Which MPI, where both are installed: AUTO, openmpi or mpich")
set_property(CACHE TRIREME_MPI_KIND PROPERTY STRINGS AUTO openmpi mpich)
set(modules ompi-c ompi mpich)
if(TRIREME_MPI_KIND STREQUAL "mpich")
  set(modules mpich)
endif()
pkg_search_module(TRIREME_MPI_C QUIET IMPORTED_TARGET ${modules})
if(TRIREME_MPI AND TRIREME_MPI_C_FOUND)
  set(TRIREME_HAVE_MPI ON)
  target_link_libraries(trireme_dependencies INTERFACE PkgConfig::TRIREME_MPI_C)
  trireme_found("MPI ${TRIREME_MPI_C_VERSION}" "yes (${TRIREME_MPI_C_MODULE_NAME})")
else()
  set(TRIREME_HAVE_MPI OFF)
  trireme_found("MPI" "no, left out (ranks are threads of one process)")
endif()
