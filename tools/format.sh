#!/bin/bash
# Format the sources, or with --check say which are not formatted and change nothing.
#
# The check speaks for clang-format 14 (Debian 12) alone: other versions differ in details, and a
# formatting that depends on the machine would be worse than none.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
if [ "${1:-}" != --check ]; then
    [ "$version" = 14 ] ||
        echo "Note: this is clang-format $version; the project's format is that of version 14"
    tools/sources.sh | xargs -r clang-format -i
elif [ "$version" != 14 ]; then
    echo "Format not checked: this is clang-format $version, the project's format is that of version 14"
elif ! report=$(tools/sources.sh | xargs -r clang-format --dry-run -Werror 2>&1); then
    files=$(sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error:.*/\1/p' <<<"$report" | sort -u)
    echo "Not formatted (make format repairs it):" $files >&2
    exit 1
fi
