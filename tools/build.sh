#!/bin/bash
# Configure a preset if that was not done yet (or the presets changed), then build it.
#
# Usage: tools/build.sh PRESET [TARGET ...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
stamp=build/$preset/.configured
if [ ! -f "$stamp" ] || [ CMakePresets.json -nt "$stamp" ]; then
    cmake --preset "$preset"
    touch "$stamp"
fi
cmake --build --preset "$preset" ${1:+--target "$@"}
