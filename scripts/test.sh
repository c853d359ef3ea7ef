#!/usr/bin/env bash
# All tests: unit tests and examples in an optimised and a sanitized build, the command, the installation and the Python package.
# What needs packages that are not there (MPI, METIS, libnats, a browser, shells, PyTorch, ...) is left out and named at the end.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

# Absent cmocka must be an error here, not a reason to leave the unit tests out.
export REEF_TESTS=ON
jobs=$(nproc 2>/dev/null || echo 2)
# What runs in the background does not hear Ctrl-C.
trap 'trap - INT TERM; kill 0' INT

# Fails only if the build does, since then there is nothing else to test. The tests run beside what follows: no processor waits for the
# last test of one step before the next begins.
unit_tests() { # unit_tests PRESET
    local reason name
    step "build $1" build scripts/build.sh "$1" || return
    while IFS=$'\t' read -r reason name; do
        leave_out "$reason" "$name"
    done <"build/$1/left_out.txt"
    later "ctest $1" ctest ctest --preset "$1" -j "$jobs"
}

unit_tests asan
if unit_tests release; then
    # Each of these keeps one processor busy at most.
    later "command line" tap scripts/cli_tests.sh build/release
    later "installation" tap tests/install/run.sh build/release
    later "python" pytest scripts/python_tests.sh build/release
fi
[ ${#waiting[@]} -eq 0 ] || echo "The tests are running side by side ..."
await
finish
