#!/bin/sh
# Builds and runs every benchmark:  bench.sh [FLAGS...]     (FLAGS go to each of them)
set -eu
cd "$(dirname "$0")/.."
for source in bench/bench_*.c; do
    name=$(basename "$source" .c)
    REEF_BENCH=ON scripts/build.sh release "$name"
    "build/release/bench/$name" "$@"
done
