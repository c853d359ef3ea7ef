#!/bin/sh
# Installs what a group of make targets needs, if it is missing:  bootstrap.sh run|man|docs|test|full|net|check|peers|python|wheel|deb|container|aarch64 ...
# Silent when everything is there. Root installs at once; with passwordless sudo it says what it would install and asks, unless REEF_YES=1
# or CI is set; without a terminal to ask on, or without sudo, it prints the one command to run.
# Things are looked for by command or header, not by package, so any source of them will do.
set -eu

has_command() { command -v "$1" >/dev/null 2>&1; }

# Debian puts these where the PATH of users often does not lead.
has_system_command() { has_command "$1" || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ]; }

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

# Debian puts it where the PATH of users often does not lead.
has_server() { has_command nats-server || [ -x /usr/sbin/nats-server ] || [ -x "${REEF_NATS_SERVER:-}" ]; }

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
        need python3 test -x /usr/bin/python3
        need python3-numpy has_python_module numpy
        need python3-pytest has_python_module pytest
        ;;
    full) # the tests that `make test` leaves out where these are not there
        need libopenblas-dev has_header cblas.h
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
    net) # agents on a network, and what their tests run
        need libsodium-dev has_header sodium.h
        need libnats-dev has_header nats/nats.h
        need nats-server has_server
        need prometheus has_command prometheus
        need systemd has_command systemd-analyze
        need curl has_command curl
        need libmicrohttpd-dev has_header microhttpd.h
        need nodejs has_command node
        need npm has_command npm
        need spin has_command spin
        need openssl has_command openssl
        need iproute2 has_system_command ip
        need nftables has_system_command nft
        ;;
    man)
        need scdoc has_command scdoc
        ;;
    docs) # the site of the documentation; the rest is in docs/requirements.txt
        need python3 test -x /usr/bin/python3
        need python3-venv has_python_module ensurepip
        need python3-numpy has_python_module numpy
        need doxygen has_command doxygen
        ;;
    check)
        need gcc has_command gcc
        need clang has_command clang
        need libclang-rt-14-dev has_fuzzer
        need clang-format has_command clang-format
        need clang-tidy has_command clang-tidy
        need cppcheck has_command cppcheck
        need doxygen has_command doxygen
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
    wheel) # the rest comes by pip, into an environment of its own
        need python3 test -x /usr/bin/python3
        need python3-venv has_python_module ensurepip
        need binutils has_command readelf
        ;;
    deb) # packages, and a system to try them in
        need debhelper has_command dh
        need dh-python has_command dh_python3
        need lintian has_command lintian
        need debootstrap has_command debootstrap
        need scdoc has_command scdoc
        need libopenblas-dev has_header cblas.h
        need libopenmpi-dev has_command mpicc
        need libmetis-dev has_header metis.h
        need libsodium-dev has_header sodium.h
        need libnats-dev has_header nats/nats.h
        need libmicrohttpd-dev has_header microhttpd.h
        need nodejs has_command node
        need npm has_command npm
        ;;
    container) # builds the image of packaging/container, and tries it
        need buildah has_command buildah
        need debootstrap has_command debootstrap
        ;;
    aarch64) # libraries of another architecture, to which apt must be told first
        need gcc-aarch64-linux-gnu has_command aarch64-linux-gnu-gcc
        need libc6-dev-arm64-cross has_arm_library libm.so
        need qemu-user has_command qemu-aarch64
        need libcmocka-dev:arm64 has_arm_library libcmocka.so
        need libjansson-dev:arm64 has_arm_library libjansson.so
        need libyaml-dev:arm64 has_arm_library libyaml.a
        case $missing in
        *:arm64*) foreign=arm64 ;;
        esac
        ;;
    *)
        echo "bootstrap.sh: unknown group $group (run, man, docs, test, full, net, check, peers, python, wheel, deb, aarch64)" >&2
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
may_use_sudo() {
    [ "${REEF_YES:-}" != 1 ] && [ -z "${CI:-}" ] || return 0
    [ -t 0 ] && [ -t 2 ] || give_up "Packages are missing; REEF_YES=1 lets this script install them with sudo."
    printf 'Install with sudo:%s? [y/N] ' "$missing" >&2
    read -r answer || answer=
    case $answer in
    y | Y | yes) ;;
    *) give_up "Nothing was installed." ;;
    esac
}
if [ -n "$as_root" ]; then
    { has_command sudo && sudo -n true 2>/dev/null; } || give_up "Packages are missing and root is needed."
    may_use_sudo
fi

# env, because sudo drops the variable. The lock timeout waits for other package runs to end.
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@"; }

echo "Installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
added=
if [ -n "$foreign" ] && ! dpkg --print-foreign-architectures | grep -qx "$foreign"; then
    $as_root dpkg --add-architecture "$foreign"
    added=$foreign
fi
# A stale mirror list is not fatal by itself; the install decides.
apt update </dev/null >"$log" 2>&1 || true
# shellcheck disable=SC2086 # a list of packages
if ! apt install --no-install-recommends $missing </dev/null >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    # the system is left as it was
    [ -z "$added" ] || { $as_root dpkg --remove-architecture "$added" && apt update </dev/null >"$log" 2>&1; } || true
    give_up "The installation failed."
fi
