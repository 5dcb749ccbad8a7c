#!/bin/bash
# The whole test of a change (make test): the checks that need no build, the tests in the dev
# build, the same under ASan and UBSan, and a few seconds of every fuzz harness.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
step() { echo "== $1 =="; }

step "packages"
tools/install_deps.sh test
step "format"
tools/format.sh --check
step "layers"
tools/check_layers.sh
step "headers"
tools/check_headers.sh

for preset in dev asan fuzz; do
    if [ $preset = fuzz ] && ! ls tests/fuzz/fuzz_*.c >/dev/null 2>&1; then
        continue
    fi
    step "build $preset"
    tools/build.sh $preset
    step "test $preset"
    if [ $preset = asan ]; then
        ctest --preset asan-quick
    else
        ctest --preset $preset
    fi
done
echo "make test: all passed in $((SECONDS - started)) s"
