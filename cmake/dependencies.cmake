# What the build found, in one target. Missing required packages stop here with their Debian names.
find_package(PkgConfig REQUIRED)
add_library(trireme_dependencies INTERFACE)

function(trireme_need name module debian)
  pkg_check_modules(${name} IMPORTED_TARGET ${module})
  if(NOT ${name}_FOUND)
    message(FATAL_ERROR "${module} not found: install ${debian} (make deps does it)")
  endif()
  target_link_libraries(trireme_dependencies INTERFACE PkgConfig::${name})
  message(STATUS "${module} ${${name}_VERSION}: yes")
endfunction()

trireme_need(JANSSON jansson libjansson-dev)
trireme_need(YAML yaml-0.1 libyaml-dev)

# OpenBLAS by path: Debian's alternatives prefer the pthread build, ours is the OpenMP one, which
# nests inside our own OpenMP loops.
find_library(TRIREME_OPENBLAS openblas
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/lib/x86_64-linux-gnu/openblas-openmp
  NO_DEFAULT_PATH)
find_path(TRIREME_CBLAS cblas.h
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openblas-openmp /usr/include/x86_64-linux-gnu/openblas-openmp
  NO_DEFAULT_PATH)
if(NOT TRIREME_OPENBLAS OR NOT TRIREME_CBLAS)
  message(FATAL_ERROR "OpenBLAS (OpenMP build) not found: install libopenblas-openmp-dev (make deps does it)")
endif()
message(STATUS "OpenBLAS: ${TRIREME_OPENBLAS}")
target_include_directories(trireme_dependencies INTERFACE ${TRIREME_CBLAS})
target_link_libraries(trireme_dependencies INTERFACE ${TRIREME_OPENBLAS} m)

find_package(Threads REQUIRED)
target_link_libraries(trireme_dependencies INTERFACE Threads::Threads)

if(TRIREME_OPENMP)
  find_package(OpenMP REQUIRED COMPONENTS C)
  target_link_libraries(trireme_dependencies INTERFACE OpenMP::OpenMP_C)
  message(STATUS "OpenMP ${OpenMP_C_VERSION}: yes")
else()
  message(STATUS "OpenMP: no, left out on request")
endif()
