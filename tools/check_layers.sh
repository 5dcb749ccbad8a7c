#!/bin/bash
# Check that each folder of src/ includes only folders above it in the list of docs/architecture.md.
#
# 1. src/<folder>/ may include itself, the folders left of it in `layers`, and the public headers.
# 2. A folder's options.h declares its part of a recipe. It includes only base, and recipe, which
#    joins these parts, may include any of them.
# 3. backend/cuda/cuda.h, which needs no CUDA, may be included like any other header of backend; the
#    rest of backend/cuda only by itself and by comm/nccl.
# 4. include/ includes only include/. cli/ and tests/ may include everything.
set -euo pipefail
cd "$(dirname "$0")/.."

layers="base tensor backend comm store shard text data attn model zero pass optim ckpt recipe plan train verify api"
bad=0
complain() {
    echo "layers: $1: $2" >&2
    bad=1
}

# position NAME: its index in the list, or nothing
position() {
    local index=0 name
    for name in $layers; do
        [ "$name" != "$1" ] || echo $index
        index=$((index + 1))
    done
}
declare -A place
for name in $layers; do
    place[$name]=$(position "$name")
done

for folder in src/*/; do
    name=$(basename "$folder")
    [ -n "${place[$name]:-}" ] || complain "$folder" "is not in the list of tools/check_layers.sh"
done

# Lines "file included", quoted includes only.
includes=$(grep -rnoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' \
    --include='*.c' --include='*.h' --include='*.inc' --include='*.cu' --include='*.cuh' src include |
    sed -E 's/^([^:]+):([0-9]+):.*"([^"]+)"$/\1 \2 \3/')
while read -r file line included; do
    [ -n "$file" ] || continue
    to=${included%%/*}
    if [[ $file == include/* ]]; then
        [ "$to" = trireme ] || complain "$file:$line" "a public header includes \"$included\""
        continue
    fi
    from=${file#src/}
    from=${from%%/*}
    [ "$to" != trireme ] || continue
    if [ "$to" = "$included" ] || [ -z "${place[$to]:-}" ]; then
        complain "$file:$line" "\"$included\" does not start with a folder of src/"
        continue
    fi
    [ -n "${place[$from]:-}" ] || continue
    if [[ $included == backend/cuda/* && $included != backend/cuda/cuda.h &&
        $file != src/backend/cuda/* && $file != src/comm/nccl/* ]]; then
        complain "$file:$line" "only comm/nccl may include \"$included\""
    elif [[ $file == src/*/options.h && $to != base ]]; then
        complain "$file:$line" "an options.h may include only base"
    elif [[ $from == recipe && $included == "$to"/options.h ]]; then
        :
    elif [ "${place[$to]}" -gt "${place[$from]}" ]; then
        complain "$file:$line" "$from may not include $to, which is below it"
    fi
done <<<"$includes"
exit $bad
