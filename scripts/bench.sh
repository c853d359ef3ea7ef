#!/bin/sh
# Builds and runs every benchmark:  bench.sh [FLAGS...]     (FLAGS go to each of them)
# Tables go to the terminal; the same lines go as JSON to build/bench/NAME.jsonl, except those of bench_gram and bench_problems.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
for source in bench/bench_*.c; do
    name=$(basename "$source" .c)
    REEF_BENCH=ON scripts/build.sh release "$name"
    "build/release/bench/$name" --json "build/bench/$name.jsonl" "$@"
done
