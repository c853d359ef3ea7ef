#!/usr/bin/env bash
# Runs every fuzz target for a while:  fuzz.sh [SECONDS]
# With 0 seconds the inputs in tests/fuzz/corpus are only replayed: the same every time, so that gates can depend on it.
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
    local folders=("build/fuzz/corpus/$name") limit=(-max_total_time="$seconds")
    [ "$seconds" -gt 0 ] || { folders=() && limit=(-runs=0); }
    [ ! -d "tests/fuzz/corpus/$name" ] || folders+=("tests/fuzz/corpus/$name")
    local log=build/fuzz/$name.log status=0
    # -timeout: one input that takes 10 s is a finding too.
    UBSAN_OPTIONS=print_stacktrace=1 "build/fuzz/targets/fuzz_$name" "${limit[@]}" -timeout=10 \
        -rss_limit_mb=2048 -print_final_stats=1 -print_funcs=0 -artifact_prefix="build/fuzz/crashes/$name-" "${folders[@]}" \
        >"$log" 2>&1 || status=$?
    if [ "$status" -eq 0 ]; then
        echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs, nothing found"
    else
        # What the target said and where, in one piece, since targets run side by side.
        echo "$name: FAILED"$'\n'"$(grep -m 1 -B 5 -A 40 -E 'ERROR: |runtime error: ' "$log")"
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
