#!/bin/bash
# A job that is asked to stop saves and ends well, whichever of its ranks hears of it: one that is
# not the first, all of them several times, the launcher, which passes SIGUSR1 on, or the script of
# docs/cluster.md, which makes that of every SIGTERM.
# Usage: stop.sh MPIRUN TRIREME GOLDEN
. "$(dirname "$0")/job.sh"
mpirun=$1 trireme=$2 golden=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ((i = 0; i < 50000; i++)); do
    echo '{"text": "one of many texts to evaluate"}'
done >"$folder/eval.jsonl"
for i in $(seq 50); do
    echo "{\"text\": \"$(printf 'line %d of a text that repeats itself; ' $((i % 4)) 4 4)\"}"
done >"$folder/train.jsonl"
cat >"$folder/recipe.yml" <<EOF
model: {name_or_path: $golden/llama_gqa, init: random}
data: {sources: [$folder/train.jsonl], tokenizer: bytes, max_length: 192}
optimizer: {learning_rate: 1e-3}
train_iters: 100000
backend: cpu
checkpoint: {output_dir: $folder/out}
EOF

fail() {
    tail -5 "$folder/text"
    echo "$1: $2"
    exit 1
}

signal() {
    case $1 in
    rank) kill -TERM "$(ranks_of "$mpirun" "$job" | sort -n | tail -1)" ;;
    all)
        local ranks
        ranks=$(ranks_of "$mpirun" "$job")
        # shellcheck disable=SC2086
        for number in TERM TERM USR1 USR2 TERM; do
            kill -$number $ranks 2>/dev/null || true
        done
        ;;
    launcher) kill -USR1 "$job" ;;
    script) kill -TERM "$job" ;;
    esac
}

# As docs/cluster.md has it.
cat >"$folder/script" <<'EOF'
setsid "$@" &
trap 'kill -USR1 $!' INT TERM
while wait $!; code=$?; [ $code -gt 128 ] && kill -0 $! 2>/dev/null; do :; done
exit $code
EOF

for way in rank all launcher script; do
    before=$(ls "$folder/out" 2>/dev/null | grep -c '^checkpoint-' || true)
    : >"$folder/text" # the last run's steps are not this one's
    script=()
    [ $way != script ] || script=(bash "$folder/script")
    "${script[@]}" "$mpirun" -np 3 "$trireme" train "$folder/recipe.yml" >>"$folder/text" 2>&1 &
    job=$!
    for ((tries = 0; tries < 600; tries++)); do
        grep -qs "^step [0-9]*/" "$folder/text" && break
        sleep 0.1
    done
    signal $way
    wait $job || fail $way "a job that is asked to stop ends with exit code $?"
    last=$(sed -n 's/.*stopped by .* after step \([0-9]*\);.*/\1/p' "$folder/text")
    [ -n "$last" ] || fail $way "it did not say that it stopped"
    [ -f "$folder/out/checkpoint-$last/trainer_state.json" ] || fail $way "step $last is not saved"
    if [ "$before" -gt 0 ]; then
        grep -q 'resumed from' "$folder/text" || fail $way "it did not go on from what was saved"
    fi
    named=$(sed -n 's/.*stopped by \(.*\) after step .*/\1/p' "$folder/text")
    [[ $named =~ ^SIG(TERM|USR1|USR2)$ ]] || fail $way "it was stopped by $named"
    echo "$way: stopped and saved after step $last"
done

# An evaluation is broken off before the same sequence on all ranks, and what is done is saved.
for way in rank all; do
    : >"$folder/text"
    "$mpirun" -np 3 "$trireme" train "$folder/recipe.yml" --data.eval_sources "$folder/eval.jsonl" \
        --eval_interval 1 --zero_stage 3 --checkpoint.output_dir "$folder/$way" \
        >>"$folder/text" 2>&1 &
    job=$!
    for ((tries = 0; tries < 600; tries++)); do
        grep -qs "^step 1/" "$folder/text" && break
        sleep 0.1
    done
    signal $way
    wait $job || fail $way "a job that is asked to stop ends with exit code $?"
    grep -q '^evaluation broken off at sequence [0-9]*/50000 by SIG' "$folder/text" ||
        fail $way "the evaluation was not broken off"
    [ -f "$folder/$way/checkpoint-1/trainer_state.json" ] || fail $way "step 1 is not saved"
    grep -q eval_loss "$folder/$way/metrics.jsonl" && fail $way "a part of an evaluation has a loss"
    echo "$way: evaluation broken off, step 1 saved"
done
