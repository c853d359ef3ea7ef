#!/usr/bin/env bash
# All tests: unit tests and examples in an optimised and a sanitized build, then the command, the installation and the Python package.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

# Absent cmocka must be an error here, not a reason to leave the unit tests out.
export REEF_TESTS=ON
jobs=$(nproc 2>/dev/null || echo 2)

unit_tests() { # unit_tests PRESET; fails only if the build does, since then there is nothing else to test
    step "build $1" build scripts/build.sh "$1" || return
    step "ctest $1" ctest ctest --preset "$1" -j "$jobs" || true
}

unit_tests asan
if unit_tests release; then
    step "command line" tap scripts/cli_tests.sh build/release
    step "installation" tap tests/install/run.sh build/release
    step "python" pytest scripts/python_tests.sh build/release
fi
finish
