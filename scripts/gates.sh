#!/usr/bin/env bash
# Static and dynamic gates by name:  gates.sh [GATE...]     (without names: all that need no long run)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

jobs=$(nproc 2>/dev/null || echo 2)
export REEF_TESTS=ON

c_files() { # c_files EXTENSIONS FOLDER...
    local kind=$1 folder
    shift
    for folder in "$@"; do
        [ ! -d "$folder" ] || find "$folder" -name "*.[$kind]" | LC_ALL=C sort
    done
}

# Formatted as .clang-format says; `make format` repairs. A status is passed on as CONTRIBUTING.md says, not by ?: .
gate_format() {
    ! c_files c src tools | xargs grep -nE 'REEF_OK \?.*: status;|!= REEF_OK \? status' || return 1
    c_files ch include src tools tests examples bench | xargs clang-format --dry-run -Werror
}

# Dependencies point down only, and the script that checks it works.
gate_layers() { scripts/check_layers.sh --self-test && scripts/check_layers.sh; }

# Each public header stands alone, in C and in C++.
gate_headers() {
    local header flags=(-Iinclude -Ibuild/clang/include -Wall -Wextra -Wpedantic -Werror -fsyntax-only)
    flags+=(-Wno-empty-translation-unit) # version.h has only macros
    cmake --preset clang >/dev/null || return 1
    for header in include/reef/*.h build/clang/include/reef/*.h; do
        clang -x c -std=c11 "${flags[@]}" "$header" && clang -x c++ -std=c++11 "${flags[@]}" "$header" || return 1
    done
}

# Doxygen reads the public headers without a warning: everything in them has its comment.
gate_doxygen() { mkdir -p build && doxygen docs/Doxyfile; }

gate_gcc() { scripts/build.sh gcc; }
gate_clang() { scripts/build.sh clang; }

gate_symbols() { scripts/build.sh gcc reef_shared reef_static && scripts/check_symbols.sh build/gcc; }

# Every rule has its page, with every parameter; no link leads nowhere.
gate_docs() { python3 scripts/make_house.py --check && scripts/build.sh gcc reef_tool && scripts/check_docs.sh build/gcc/reef; }

# .clang-tidy says what is looked for; functions of more than 60 lines are among it. Not in tests: the slow analyzer,
# which would only follow the macros of cmocka; comparing doubles bit by bit and replacing malloc are meant there.
gate_tidy() {
    local full=$log_dir/tidy-full.log status=0 tidy=(xargs -r -n 1 -P "$jobs" clang-tidy --quiet -p build/clang)
    local in_tests='-clang-analyzer-*,-bugprone-suspicious-memory-comparison'
    in_tests+=,-readability-inconsistent-declaration-parameter-name
    cmake --preset clang >/dev/null || return
    c_files c src tools examples bench | "${tidy[@]}" >"$full" 2>&1 || status=1
    c_files c tests | grep '/test_' | "${tidy[@]}" --checks="$in_tests" >>"$full" 2>&1 || status=1
    [ $status -ne 0 ] || return 0
    echo "with the reasoning behind each in $full:"
    grep -E ': (error|warning): |: note: [0-9]+ lines' "$full" | LC_ALL=C sort -u | grep . || tail -n 20 "$full"
    return 1
}

gate_cppcheck() {
    mkdir -p build/cppcheck && cmake --preset clang >/dev/null &&
        cppcheck --quiet --error-exitcode=1 --enable=warning,performance,portability --inline-suppr --std=c11 \
            --suppressions-list=cmake/cppcheck-suppressions.txt --cppcheck-build-dir=build/cppcheck -j "$jobs" \
            -Iinclude -Isrc -Ibuild/clang/include src tools examples
}

# ThreadSanitizer: the tests that use threads; the others are slow here and could show nothing.
# Systems with much address randomisation defeat it, hence setarch where that is allowed.
gate_tsan() {
    local fixed=()
    ! setarch "$(uname -m)" -R true 2>/dev/null || fixed=(setarch "$(uname -m)" -R)
    scripts/build.sh tsan reef_thread_tests && "${fixed[@]}" ctest --preset tsan -C server -L threads -j "$jobs"
}

# 64-bit Arm under qemu: the tests of the kernels, that is of NEON against the scalar rules.
gate_aarch64() {
    local source targets=()
    for source in tests/kernels/test_*.c; do
        targets+=("test_kernels_$(basename "${source#*/test_}" .c)")
    done
    scripts/build.sh aarch64 "${targets[@]}" && ctest --preset aarch64 -R '^kernels\.' -j "$jobs"
}

# The command line without optional parts: tests that need one must leave themselves out, or `make test` fails where few packages are installed.
gate_bare() { REEF_TESTS=OFF scripts/build.sh bare && scripts/cli_tests.sh build/bare; }

gate_fuzz() { REEF_TESTS=OFF scripts/fuzz.sh "${FUZZ_SECONDS:-10}"; }

[ $# -gt 0 ] || set -- format layers headers doxygen gcc clang symbols docs tidy cppcheck
for gate in "$@"; do
    step "$gate" gate "gate_$gate"
done
finish
