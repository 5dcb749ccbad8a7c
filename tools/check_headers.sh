#!/bin/bash
# Check that every header compiles alone, as C11 and as C++17 (which is what nvcc sees).
# A header that passed is checked again only when a header has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=build/check_headers.stamp
headers=$(tools/sources.sh | grep -E '^(include|src)/.*\.h$')
cuda=/usr/local/cuda/include
if [ ! -d $cuda ]; then
    # Without the CUDA toolkit these cannot compile; cuda.h is the one that needs no CUDA.
    headers="$(grep -vE "^src/(backend/cuda|comm/nccl)/" <<<"$headers")"
    headers="$headers src/backend/cuda/cuda.h src/comm/nccl/nccl.h"
    cuda=
fi
mpi=$(pkg-config --cflags ompi-c 2>/dev/null || pkg-config --cflags mpich 2>/dev/null || true)
if [ -z "$mpi" ]; then
    headers=$(grep -v "^src/comm/mpi/private.h" <<<"$headers")
fi
newer=$(for header in $headers tools/check_headers.sh; do
    [ "$header" -ot $stamp ] || echo "$header"
done)
[ -n "$newer" ] || exit 0

flags="-Wall -Wextra -Werror -D_GNU_SOURCE -Iinclude -Isrc"
flags="$flags ${cuda:+-isystem $cuda} ${mpi//-I/-isystem } $(pkg-config --cflags jansson yaml-0.1) -fsyntax-only"
export flags

check() {
    local bad=0
    echo "#include \"$1\"" | clang -std=c11 -x c $flags - || bad=1
    echo "#include \"$1\"" | clang++ -std=c++17 -x c++ $flags - || bad=1
    [ $bad = 0 ] || echo "headers: $1 does not compile alone" >&2
    return $bad
}
export -f check

printf "%s\n" $headers | sed -E "s,^(include|src)/,," | xargs -n 1 -P 2 bash -c 'check "$1" || exit 1' check
mkdir -p build
touch $stamp
