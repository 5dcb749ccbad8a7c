#!/bin/bash
# What all ranks would say is said once: what describes speaks for the launcher's ranks, an error
# that everybody finds has one line, and one of a single rank is not lost.
# Usage: once.sh MPIRUN TRIREME GOLDEN
. "$(dirname "$0")/job.sh"
mpirun=$1 trireme=$2 golden=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seq -f '{"text": "line %g"}' 6 >"$folder/train.jsonl"
cat >"$folder/recipe.yml" <<EOF
model: {name_or_path: $golden/llama_gqa}
data: {sources: [$folder/train.jsonl], tokenizer: bytes, max_length: 192, cache_dir: $folder}
optimizer: {learning_rate: 1e-3}
backend: cpu
checkpoint: {output_dir: $folder/out}
EOF
fail() { # WHAT
    cat "$folder/text"
    echo "$1"
    exit 1
}
once() { # TEXT ARGUMENT...
    local text=$1
    shift
    timeout 60 "$mpirun" -np 3 "$trireme" "$@" >"$folder/text" 2>&1 || true
    [ "$(grep -c "$text" "$folder/text")" = 1 ] || fail "not once: $text"
}
once '^trireme [0-9]' version
once '^CPU kernels' info
once '^First steps:' help
once 'as the first of 3 ranks in ZeRO stage' rehearse "$folder/recipe.yml"
once 'x 3 replicas)$' data inspect "$folder/recipe.yml" --sequence_parallel_size 1
once '^data.sources: 6 samples' data build "$folder/recipe.yml"
once '^error: ranks: 3, but a launcher started 3' rehearse "$folder/recipe.yml" --ranks 3

if ! is_hydra "$mpirun"; then # which lets ranks live when one has failed before MPI_Init
    once "^error: unknown verb 'trian'" trian
    once "^error: .*unknown key 'oops'" train "$folder/recipe.yml" --oops 1
fi
once '^error: rank [0-9]: .*nonexistent' train "$folder/recipe.yml" --model.name_or_path nonexistent

alone() { # TEXT ARGUMENT... of the last rank
    local text=$1
    shift
    timeout 60 "$mpirun" -np 2 "$trireme" train "$folder/recipe.yml" : \
        -np 1 "$trireme" train "$folder/recipe.yml" "$@" >"$folder/text" 2>&1 &&
        fail "trained although one rank failed: $*"
    grep -q "$text" "$folder/text" || fail "lost: $text"
}
alone "^error: .*unknown key 'oops'" --oops 1
alone '^error: rank 2.*nonexistent' --model.name_or_path nonexistent
echo "what all ranks would say is said once"
