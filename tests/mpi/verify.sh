#!/bin/bash
# `trireme verify` with a process a rank: all rows are within their bounds, one rank speaks, and
# nothing is left among temporary files. Usage: verify.sh MPIRUN TRIREME GOLDEN
. "$(dirname "$0")/job.sh"
mpirun=$1 trireme=$2 golden=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tmp"
for i in 1 2 3 4; do
    echo "{\"text\": \"$(printf 'line %d; ' $(seq $i))\"}"
done >"$folder/train.jsonl"
cat >"$folder/recipe.yml" <<EOF
model: {name_or_path: $golden/llama_tied_batch2}
data: {sources: [$folder/train.jsonl], tokenizer: bytes, max_length: 192}
optimizer: {learning_rate: 1e-3}
gradient_accumulation_steps: 4
backend: cpu
EOF
TMPDIR=$folder/tmp timeout 200 "$mpirun" -np 3 "$trireme" verify "$folder/recipe.yml" \
    >"$folder/text" 2>"$folder/errors" || { cat "$folder/text" "$folder/errors"; exit 1; }
for row in '^3 ranks, ZeRO 3 .* ok$' '^saved by 3 ranks in ZeRO 3' '^\([0-9]*\) of \1 ok'; do
    [ "$(grep -c "$row" "$folder/text")" = 1 ] || { cat "$folder/text"; echo "no $row"; exit 1; }
done
left=$(find "$folder/tmp" -name 'trireme-verify-*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "processes agree with one rank"
