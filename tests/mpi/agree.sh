#!/bin/bash
# Ranks of machines with folders of their own: another config.json, other weights, another recipe or
# other data on one of them end the job before its first step, and the error says what differs.
# Usage: agree.sh MPIRUN TRIREME GOLDEN
. "$(dirname "$0")/job.sh"
mpirun=$1 trireme=$2 golden=$3

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Folders 0 and 1: what two machines hold under the same names.
prepare() {
    rm -rf "$folder"/[01]
    mkdir -p "$folder/0/out"
    cp -r "$golden/llama_tied_batch2" "$folder/0/model"
    for i in 1 2 3 4; do
        echo "{\"text\": \"$(printf 'line %d; ' $(seq $i))\"}"
    done >"$folder/0/train.jsonl"
    cp "$folder/0/train.jsonl" "$folder/0/eval.jsonl"
    cat >"$folder/0/recipe.yml" <<EOF
model: {name_or_path: model}
data: {sources: [train.jsonl], eval_sources: [eval.jsonl], tokenizer: bytes, max_length: 192}
optimizer: {learning_rate: 1e-3}
train_iters: 2
eval_interval: 1
zero_stage: 3
backend: cpu
checkpoint: {output_dir: out, save_end_of_training: false}
EOF
    cp -r "$folder/0" "$folder/1"
}
train() { # ARGUMENT... of rank 1
    timeout 60 "$mpirun" -np 1 -wdir "$folder/0" "$trireme" train recipe.yml : \
        -np 1 -wdir "$folder/1" "$trireme" train recipe.yml "$@" >"$folder/text" 2>&1
}
refused() { # TEXT ARGUMENT... of rank 1
    local text=$1
    shift
    if train "$@"; then
        echo "trained although: $text"
        exit 1
    fi
    grep -q "$text" "$folder/text" && ! grep -q 'step 1/' "$folder/text" || {
        cat "$folder/text"
        echo "not said, or too late: $text"
        exit 1
    }
    prepare
}

prepare
train --log_level warn --threads 1 || {
    cat "$folder/text"
    echo "equal ranks must train"
    exit 1
}
prepare

sed -i 's/"rms_norm_eps": [^,}]*/"rms_norm_eps": 0.5/' "$folder/1/model/config.json"
refused "the model's rms_norm_eps is [^ ]* on rank 0 and 0.5 on rank 1"

flip() { # FILE: one bit of its last number
    local last
    last=$(tail -c 3 "$1" | head -c 1 | od -An -tu1)
    printf "\\x$(printf %02x $((last ^ 1)))" |
        dd of="$1" bs=1 seek=$(($(stat -c %s "$1") - 3)) conv=notrunc status=none
}
flip "$folder/1/model/model.safetensors"
refused 'the hash of the weights of [a-z0-9._]*weight is [0-9a-f]* on rank 0 and [0-9a-f]* on rank 1'

refused 'sequence_parallel_size is 0 on rank 0 and 1 on rank 1' --sequence_parallel_size 1
refused 'zero_stage is 3 on rank 0 and 0 on rank 1' --zero_stage 0
refused 'eval_interval is 1 on rank 0 and 2 on rank 1' --eval_interval 2
refused 'checkpoint.save_every_n_steps is [0-9]* on rank 0 and 7 on rank 1' \
    --checkpoint.save_every_n_steps 7

head -3 "$folder/0/eval.jsonl" >"$folder/1/eval.jsonl"
refused 'ranks disagree on the evaluation data'

# A checkpoint that only one machine has.
sed -i 's/output_dir: out,/output_dir: out, save_every_n_steps: 1,/' "$folder"/[01]/recipe.yml
train || { cat "$folder/text"; exit 1; }
cp -r "$folder/0/out" "$folder/kept"
refused 'ranks disagree on the newest checkpoint'

# Or that is damaged on one of them.
for machine in 0 1; do
    rm -r "$folder/$machine/out"
    cp -r "$folder/kept" "$folder/$machine/out"
    rm -r "$folder/$machine/out/checkpoint-2"
done
flip "$folder/1/out/checkpoint-1/optimizer.safetensors"
refused "optimizer.safetensors is damaged: bytes 0 to [0-9]* are not those that were saved"

# Or another one under its name; or without the hashes that would tell.
again() { # FILE: no hashes of it, and others in it, on the second machine
    rm -rf "$folder"/[01]/out
    cp -r "$folder/kept" "$folder/0/out"
    cp -r "$folder/kept" "$folder/1/out"
    rm -r "$folder"/[01]/out/checkpoint-2
    rm "$folder"/[01]/out/checkpoint-1/trireme_checksums.json
    flip "$folder/1/out/checkpoint-1/$1"
}
again optimizer.safetensors
cp "$folder/kept/checkpoint-1/trireme_checksums.json" "$folder/0/out/checkpoint-1"
refused 'the hash of trireme_checksums.json is [0-9a-f]* on rank 0 and absent on rank 1'
again optimizer.safetensors
refused "the hash of the optimizer's [mv][.][a-z0-9._]*weight is [0-9a-f]* on rank 0 and [0-9a-f]* on rank 1"
again model.safetensors
refused 'the hash of the weights of [a-z0-9._]*weight is [0-9a-f]* on rank 0 and [0-9a-f]* on rank 1'
echo "ranks that differ are told so"
