#!/bin/bash
# The example's loop as processes prints what it prints as threads, bit for bit.
# Usage: example.sh MPIRUN PROGRAM SOURCES
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1

model=$3/examples/tiny-byte-llama
threads=$(timeout 60 "$2" "$model" "$3/README.md" 2 3 200)
processes=$(timeout 60 "$1" -np 2 "$2" "$model" "$3/README.md" mpi 3 200)
[ "$(grep -c '^step ' <<<"$threads")" = 3 ]
if [ "$threads" != "$processes" ]; then
    printf 'as threads:\n%s\nas processes:\n%s\n' "$threads" "$processes"
    exit 1
fi
echo "processes and threads print the same"
