#!/bin/bash
# The demo (make demo): train a small byte-level Llama on Trireme's own sources as one long document,
# evaluate it at four times the training length, save it, load it again, and check that the loaded
# model gives the same loss.
set -euo pipefail
cd "$(dirname "$0")/.."

trireme=build/release/trireme
work=build/demo
recipe=examples/demo.yml
started=$SECONDS

rm -rf "$work"
mkdir -p "$work"
# Training text: the library. Evaluation text: 32,766 bytes of the tests, which it never sees; with
# the tokens that begin and end a document that is a document of 32,768 tokens.
cat src/*/*.c src/*/*.h >"$work/train.txt"
cat tests/*/*/*.c >"$work/eval.txt"
truncate --size 32766 "$work/eval.txt"

echo "== train: 8,192-token sequences, random weights; then evaluate at 32,768 tokens and save =="
"$trireme" train "$recipe"

echo "== reload what was saved, and evaluate again =="
"$trireme" eval "$recipe" --model.name_or_path "$work/out" --model.init checkpoint |
    tee "$work/eval.log"

field() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$work/out/metrics.jsonl"; }
first=$(field loss | head -n 1)
last=$(field loss | tail -n 1)
before=$(printf '%.6f' "$(field eval_loss | tail -n 1)")
after=$(sed -n 's/^eval loss \([0-9.]*\),.*/\1/p' "$work/eval.log")

echo "== result =="
printf 'training loss        %.4f -> %.4f\n' "$first" "$last"
echo "loss at 32K          $before when trained, $after when reloaded"
awk -v a="$first" -v b="$last" 'BEGIN { exit !(b < 0.7 * a) }' ||
    { echo "demo: the loss did not fall as it should"; exit 1; }
[ "$before" = "$after" ] || { echo "demo: the reloaded model gives another loss"; exit 1; }
cat <<END
demo: passed in $((SECONDS - started)) s

Next:
  $trireme train $recipe --train_iters 200 --checkpoint.output_dir build/demo/longer
  $trireme rehearse $recipe --data.max_length 1M     what a step over a million tokens needs
  $trireme check tests/golden/llama_gqa              the same numbers as Transformers
  $trireme help recipe                               every key a recipe can have
END
