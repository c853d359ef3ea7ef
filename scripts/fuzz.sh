#!/usr/bin/env bash
# Runs every fuzz target for a while:  fuzz.sh [SECONDS]
# Seeds come from tests/fuzz/corpus/NAME (for fuzz_NAME.c), finds are kept in build/fuzz/corpus, crashes in
# build/fuzz/crashes.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}

fuzz_one() {
    local name seconds=$2
    name=$(basename "$1" .c)
    name=${name#fuzz_}
    mkdir -p "build/fuzz/corpus/$name"
    local folders=("build/fuzz/corpus/$name")
    [ ! -d "tests/fuzz/corpus/$name" ] || folders+=("tests/fuzz/corpus/$name")
    local log=build/fuzz/$name.log status=0
    # -timeout: one input that takes 10 s is a finding too.
    UBSAN_OPTIONS=print_stacktrace=1 "build/fuzz/targets/fuzz_$name" -max_total_time="$seconds" -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="build/fuzz/crashes/$name-" "${folders[@]}" \
        >"$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, nothing found"
    else
        echo "$name: FAILED"
        sed -n '/ERROR: \|runtime error: /,$p' "$log" | head -n 40
        tail -n 3 "$log"
    fi
    return "$status"
}
export -f fuzz_one

shopt -s nullglob
sources=(tests/fuzz/fuzz_*.c)
if [ ${#sources[@]} -eq 0 ]; then
    echo "no fuzz targets in tests/fuzz" >&2
    exit 1
fi
scripts/build.sh fuzz
mkdir -p build/fuzz/crashes
jobs=$(nproc 2>/dev/null || echo 2)
# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\n' "${sources[@]}" | xargs -P "$jobs" -I {} bash -c 'fuzz_one "$1" "$2"' _ {} "$seconds"
