#!/bin/bash
# Every stage of ZeRO with a process a rank: golden folders stay within their bounds, and processes
# train to the bits of ranks that are threads. Usage: zero.sh MPIRUN TRIREME GOLDEN
. "$(dirname "$0")/job.sh"
mpirun=$1 trireme=$2 golden=$3

for stage in 0 1 2 3; do
    timeout 100 "$mpirun" -np 3 "$trireme" check "$golden/llama_tied_batch2" "$golden/gpt_neox" \
        --backend cpu --zero $stage
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for i in $(seq 40); do
    echo "{\"text\": \"$(printf 'line %d of a text that repeats itself; ' $(seq $((i % 4 + 1))))\"}"
done >"$folder/train.jsonl"
cat >"$folder/recipe.yml" <<EOF
model: {name_or_path: $golden/llama_gqa, init: random}
data: {sources: [$folder/train.jsonl], tokenizer: bytes, max_length: 192, pack_samples: true}
optimizer: {learning_rate: 1e-3}
train_iters: 3
gradient_accumulation_steps: 2
backend: cpu
EOF
run() { # OUTPUT ARGUMENT...
    local output=$1
    shift
    timeout 100 "$@" --checkpoint.output_dir "$folder/$output"
}
run processes "$mpirun" -np 2 "$trireme" train "$folder/recipe.yml" --zero_stage 3
run threads "$trireme" train "$folder/recipe.yml" --ranks 2 --zero_stage 3
for file in model.safetensors checkpoint-3/optimizer.safetensors; do
    cmp "$folder/processes/$file" "$folder/threads/$file"
done
echo "processes and threads agree to the bit"
