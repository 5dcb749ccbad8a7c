#!/bin/bash
# Run the fuzz harnesses, two at a time, on the build of the preset fuzz.
#
# Usage: tools/fuzz.sh SECONDS [NAME ...]      (default: every harness)
# FUZZ_SEED=N walks the same way every time; without it each run explores on its own.
# New inputs collect in build/fuzz/corpus/NAME; an input that breaks something is written to
# build/fuzz/findings, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."

export seconds=$1
shift
if [ $# = 0 ]; then
    for source in tests/fuzz/fuzz_*.c; do
        [ -f "$source" ] || continue
        name=$(basename "$source" .c)
        set -- "$@" "${name#fuzz_}"
    done
fi
if [ $# = 0 ]; then
    echo "No harness in tests/fuzz"
    exit 0
fi

fuzz() {
    local name=$1
    local seeds=tests/fuzz/corpus/$name found=build/fuzz/corpus/$name log=build/fuzz/$name.log
    local dictionary=tests/fuzz/$name.dict
    mkdir -p "$found" build/fuzz/findings
    local folders=("$found")
    [ ! -d "$seeds" ] || folders+=("$seeds")
    local options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
        -seed="${FUZZ_SEED:-0}"
        -artifact_prefix="build/fuzz/findings/$name-")
    [ ! -f "$dictionary" ] || options+=(-dict="$dictionary")
    if "build/fuzz/tests/fuzz/fuzz_$name" "${options[@]}" "${folders[@]}" >"$log" 2>&1; then
        echo "fuzz $name: no finding in $seconds s," \
            "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs," \
            "coverage $(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)"
    else
        tail -n 40 "$log"
        echo "fuzz $name: FINDING; the end of build/fuzz/$name.log is above. To replay the input:" \
            "build/fuzz/tests/fuzz/fuzz_$name FILE"
        return 1
    fi
}
export -f fuzz

printf '%s\n' "$@" | xargs -n 1 -P 2 bash -c 'fuzz "$1" || exit 1' fuzz
