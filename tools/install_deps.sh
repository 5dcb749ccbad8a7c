#!/bin/bash
# Install the Debian or Ubuntu packages that Trireme needs. Quiet when everything is there.
#
# Usage: tools/install_deps.sh [--check] [build|test-gpu|test]
#   build     what the program needs
#   test-gpu  also what the tests themselves need
#   test      also what the sanitizers and checks of `make test` need (the default)
#   --check   install nothing; say in one line what is missing and exit 1
set -euo pipefail

check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi
set_name=${1:-test}

# A tool is there when its command is; a library when its package is installed (or, where there is
# no dpkg, when pkg-config knows it).
tools="gcc:gcc cmake:cmake ninja:ninja-build pkg-config:pkg-config"
libraries="libc6-dev: libopenblas-openmp-dev: libjansson-dev:jansson libyaml-dev:yaml-0.1"
libraries="$libraries libpcre2-dev:libpcre2-8 libutf8proc-dev:libutf8proc"
libraries="$libraries zlib1g-dev:zlib libzstd-dev:libzstd"
case $set_name in
build) ;;
test-gpu) libraries="$libraries libcmocka-dev:cmocka" ;;
test)
    tools="$tools clang:clang clang-format:clang-format"
    libraries="$libraries libcmocka-dev:cmocka"
    ;;
*)
    echo "install_deps.sh: unknown set '$set_name': use build, test-gpu or test" >&2
    exit 2
    ;;
esac

have() { command -v "$1" >/dev/null 2>&1; }

# The sanitizer and libFuzzer runtimes are packaged by the version of clang: that of the clang
# here, else the one that apt would install, else the one of the release.
clang_runtime() {
    local major=
    if have clang; then
        major=$(clang --version | sed -n 's/.*clang version \([0-9]*\).*/\1/p' | head -n 1)
    fi
    if [ -z "$major" ] && have apt-cache; then
        major=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
    fi
    if [ -z "$major" ]; then
        case $(. /etc/os-release 2>/dev/null && echo "${ID:-}${VERSION_ID:-}") in
        ubuntu24.04) major=18 ;;
        debian13) major=19 ;;
        *) major=14 ;;
        esac
    fi
    echo "libclang-rt-$major-dev"
}

# Print the missing packages, separated by spaces.
missing() {
    local entry installed list=
    for entry in $tools; do
        have "${entry%%:*}" || list="$list ${entry##*:}"
    done
    if have dpkg-query; then
        [ "$set_name" != test ] || libraries="$libraries $(clang_runtime):"
        installed=$(for entry in $libraries; do echo "${entry%%:*}"; done |
            xargs dpkg-query -W -f='${Package} ${db:Status-Status}\n' 2>/dev/null || true)
        for entry in $libraries; do
            grep -qx "${entry%%:*} installed" <<<"$installed" || list="$list ${entry%%:*}"
        done
    else
        for entry in $libraries; do
            [ -z "${entry##*:}" ] || pkg-config --exists "${entry##*:}" 2>/dev/null ||
                list="$list ${entry%%:*}"
        done
    fi
    echo "${list# }"
}

packages=$(missing)
[ -n "$packages" ] || exit 0

install="apt-get install -y --no-install-recommends"
if ! have apt-get; then
    echo "Missing (by their Debian names; there is no apt-get here to install them): $packages" >&2
    exit 1
fi
if [ $check = yes ]; then
    echo "Missing packages: $packages (make deps installs them)" >&2
    exit 1
fi

# sudo may ask for a password only where somebody can type one.
if [ "$(id -u)" = 0 ]; then
    root=
elif have sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    root=sudo
else
    echo "Missing packages: $packages (as root: apt-get update && $install $packages)" >&2
    exit 1
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 \
        -o DPkg::Lock::Timeout=300 "$@" >>"$log" 2>&1
}
echo "Installing $packages"
# Fresh package lists may name another clang runtime than the guess made without them.
if ! apt update || ! packages=$(missing) || ! apt install -y --no-install-recommends $packages; then
    cat "$log" >&2
    echo "Could not install: $packages (the messages of apt-get are above)" >&2
    exit 1
fi
packages=$(missing)
if [ -n "$packages" ]; then
    echo "Still missing after the installation: $packages" >&2
    exit 1
fi
