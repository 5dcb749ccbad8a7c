#!/bin/bash
# The example's loop as processes prints what it prints as threads, bit for bit.
# Usage: example.sh MPIRUN PROGRAM SOURCES
. "$(dirname "$0")/job.sh"

model=$3/examples/tiny-byte-llama
threads=$(timeout 60 "$2" "$model" "$3/README.md" 2 3 200)
processes=$(timeout 60 "$1" -np 2 "$2" "$model" "$3/README.md" mpi 3 200)
[ "$(grep -c '^step ' <<<"$threads")" = 3 ]
if [ "$threads" != "$processes" ]; then
    printf 'as threads:\n%s\nas processes:\n%s\n' "$threads" "$processes"
    exit 1
fi
echo "processes and threads print the same"
