# Flags that every target of ours is built with.
add_library(trireme_options INTERFACE)
target_compile_options(trireme_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
  -Wno-unknown-pragmas -fno-math-errno)
# Cutting text with snprintf is meant, and what gcc guesses about lengths depends on its version, on
# the optimiser and even on the length of a path.
target_compile_options(trireme_options INTERFACE $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>)
if(NOT TRIREME_OPENMP)
  # Numbers of threads appear in pragmas alone.
  target_compile_options(trireme_options INTERFACE -Wno-unused-variable -Wno-unused-but-set-variable)
endif()
if(TRIREME_WERROR)
  target_compile_options(trireme_options INTERFACE -Werror)
endif()
if(TRIREME_SANITIZE)
  target_compile_options(trireme_options INTERFACE
    -fsanitize=${TRIREME_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(trireme_options INTERFACE -fsanitize=${TRIREME_SANITIZE})
endif()
target_compile_definitions(trireme_options INTERFACE _GNU_SOURCE)
