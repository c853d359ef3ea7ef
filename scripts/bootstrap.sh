#!/bin/sh
# Installs what a group of make targets needs, if it is missing:  bootstrap.sh run|man|test|check|peers|python|aarch64 ...
# Silent when everything is there. Without root or passwordless sudo it prints the one command to run.
# Things are looked for by command or header, not by package, so any source of them will do.
set -eu

has_command() { command -v "$1" >/dev/null 2>&1; }

has_compiler() { has_command cc || has_command gcc; }

# Asks the compiler, which knows its own search path.
has_header() {
    compiler=$(command -v cc || command -v gcc || command -v clang) || return 1
    printf '#include <%s>\n' "$1" | "$compiler" -E -x c - >/dev/null 2>&1
}

has_fuzzer() {
    resources=$(clang -print-resource-dir 2>/dev/null) || return 1
    find "$resources/" -name 'libclang_rt.fuzzer*' 2>/dev/null | grep -q .
}

# Debian's interpreter, which is the one that finds Debian's packages.
has_python_module() { /usr/bin/python3 -c "import $1" >/dev/null 2>&1; }

# The cross compiler names a library it does not find without its folder.
has_arm_library() {
    case $(aarch64-linux-gnu-gcc -print-file-name="$1" 2>/dev/null) in
    */*) ;;
    *) return 1 ;;
    esac
}

missing=
foreign=
need() { # need PACKAGE PROBE...
    package=$1
    shift
    "$@" || missing="$missing $package"
}

for group in "$@"; do
    case $group in
    run)
        need gcc has_compiler
        need libc6-dev has_header math.h
        need cmake has_command cmake
        need ninja-build has_command ninja
        need libyaml-dev has_header yaml.h
        need gnuplot-nox has_command gnuplot
        ;;
    test)
        need libcmocka-dev has_header cmocka.h
        need libjansson-dev has_header jansson.h
        need bats has_command bats
        need pkg-config has_command pkg-config
        need libopenblas-dev has_header cblas.h
        need python3 test -x /usr/bin/python3
        need python3-numpy has_python_module numpy
        need python3-pytest has_python_module pytest
        need chromium has_command chromium
        need chromium-driver has_command chromedriver
        need python3-selenium has_python_module selenium
        need scdoc has_command scdoc
        need zsh has_command zsh
        need fish has_command fish
        need libopenmpi-dev has_command mpicc
        need openmpi-bin has_command mpirun
        need libmetis-dev has_header metis.h
        ;;
    man)
        need scdoc has_command scdoc
        ;;
    check)
        need gcc has_command gcc
        need clang has_command clang
        need libclang-rt-14-dev has_fuzzer
        need clang-format has_command clang-format
        need clang-tidy has_command clang-tidy
        need cppcheck has_command cppcheck
        ;;
    peers)
        need python3-venv has_python_module ensurepip
        need python3-numpy has_python_module numpy
        need python3-scipy has_python_module scipy
        need python3-torch has_python_module torch
        ;;
    python) # beside those of test: what the extras of the Python package use
        need python3-venv has_python_module ensurepip
        need python3-torch has_python_module torch
        need python3-pandas has_python_module pandas
        need python3-matplotlib has_python_module matplotlib
        need python3-tqdm has_python_module tqdm
        need mypy has_python_module mypy
        ;;
    aarch64) # libraries of another architecture, to which apt must be told first
        need gcc-aarch64-linux-gnu has_command aarch64-linux-gnu-gcc
        need libc6-dev-arm64-cross has_arm_library libm.so
        need qemu-user has_command qemu-aarch64
        need libcmocka-dev:arm64 has_arm_library libcmocka.so
        need libjansson-dev:arm64 has_arm_library libjansson.so
        case $missing in
        *:arm64*) foreign=arm64 ;;
        esac
        ;;
    *)
        echo "bootstrap.sh: unknown group $group (run, man, test, check, peers, python, aarch64)" >&2
        exit 2
        ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
give_up() {
    echo "$1 To install what is missing:" >&2
    if [ -n "$foreign" ]; then
        echo "    ${as_root:+$as_root }dpkg --add-architecture $foreign" >&2
        echo "    ${as_root:+$as_root }apt-get update" >&2
    fi
    echo "    ${as_root:+$as_root }apt-get install --no-install-recommends$missing" >&2
    exit 1
}

has_command apt-get || give_up "This is not a Debian-like system; the Debian packages are named below."
if [ -n "$as_root" ]; then
    { has_command sudo && sudo -n true 2>/dev/null; } || give_up "Packages are missing and root is needed."
fi

# env, because sudo drops the variable. The lock timeout waits for other package runs to end.
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"; }

echo "Installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[ -z "$foreign" ] || $as_root dpkg --add-architecture "$foreign"
# A stale mirror list is not fatal by itself; the install decides.
apt update </dev/null >"$log" 2>&1 || true
# shellcheck disable=SC2086 # a list of packages
if ! apt install --no-install-recommends $missing </dev/null >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    give_up "The installation failed."
fi
