#!/bin/bash
# Print the C sources and headers of the project, one a line: what git tracks, or outside a git
# checkout what is there.
set -euo pipefail
cd "$(dirname "$0")/.."

folders=()
for folder in include src cli tests bench examples; do
    [ ! -d $folder ] || folders+=("$folder")
done
if git ls-files --error-unmatch CMakeLists.txt >/dev/null 2>&1; then
    # A tracked file that was just deleted is still listed.
    git ls-files -- "${folders[@]}" | while read -r file; do
        [ ! -f "$file" ] || echo "$file"
    done
else
    find "${folders[@]}" -type f
fi | grep -E '\.(c|h|cu|cuh)$' | LC_ALL=C sort
