#!/bin/bash
# One of four processes is killed while it trains with ZeRO: the job ends and names it, and two
# ranks in another stage go on from the last checkpoint with the losses of a run that nobody
# disturbed. Usage: kill.sh MPIRUN TRIREME GOLDEN
. "$(dirname "$0")/job.sh"
mpirun=$1 trireme=$2 golden=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for i in $(seq 200); do
    echo "{\"text\": \"$(printf 'line %d of a text that repeats itself; ' $(seq $((i % 4 + 1))))\"}"
done >"$folder/train.jsonl"
cat >"$folder/recipe.yml" <<EOF
model: {name_or_path: $golden/llama_gqa, init: random}
data: {sources: [$folder/train.jsonl], tokenizer: bytes, max_length: 192}
optimizer: {learning_rate: 1e-3}
train_iters: 150
backend: cpu
checkpoint: {save_every_n_steps: 3, save_end_of_training: false}
EOF

"$mpirun" -np 4 "$trireme" train "$folder/recipe.yml" --zero_stage 3 \
    --checkpoint.output_dir "$folder/out" >"$folder/text" 2>&1 &
job=$!
for ((tries = 0; tries < 600; tries++)); do
    [ -d "$folder/out/checkpoint-6" ] && break
    sleep 0.1
done
kill -9 "$(ranks_of "$mpirun" $job | tail -1)"
if wait $job; then
    echo "a job with a killed rank must end with an error"
    exit 1
fi
# MPICH's launcher ends all ranks at once when one is gone: nobody is left to name it.
is_hydra "$mpirun" || grep -q 'rank [0-9].*signal 9' "$folder/text" || {
    tail -5 "$folder/text"
    echo "nobody named the rank that was killed"
    exit 1
}

last=$(ls "$folder/out" | sed -n 's/^checkpoint-\([0-9]*\)$/\1/p' | sort -n | tail -1)
[ "$last" -lt 150 ] || { echo "the job had ended before it was disturbed"; exit 1; }
steps=$((last + 6))
"$trireme" train "$folder/recipe.yml" --checkpoint.output_dir "$folder/out" \
    --ranks 2 --zero_stage 1 --exit_iteration $steps >"$folder/text" 2>&1
"$trireme" train "$folder/recipe.yml" --checkpoint.output_dir "$folder/whole" \
    --exit_iteration $steps >"$folder/text" 2>&1
losses() {
    sed -n 's/.*"step": *\([0-9]*\),.*"loss": *\([0-9.e-]*\),.*/\1 \2/p' "$1/metrics.jsonl"
}
paste -d ' ' <(losses "$folder/out") <(losses "$folder/whole") | awk -v steps=$steps '
    { d = $2 - $4; if (d < 0) d = -d; if ($1 != $3 || d > 1e-5 * $4) bad = 1; n++ }
    END { if (bad || n != steps) { print "other losses after the resume"; exit 1 } }'
echo "rank killed after step $last; resumed with two ranks to the same losses"
