#!/bin/sh
# Configures and builds a preset quietly:  build.sh PRESET [TARGET...]
# REEF_TESTS=ON in the environment makes the unit tests required, not optional; REEF_BENCH=ON adds the benchmarks.
set -eu
cd "$(dirname "$0")/.."

preset=$1
shift
[ -d "build/$preset" ] || echo "Building build/$preset ..."
mkdir -p build/log
log=build/log/cmake-$preset.log
if ! cmake --preset "$preset" ${REEF_TESTS:+-DREEF_TESTS="$REEF_TESTS"} \
    ${REEF_BENCH:+-DREEF_BENCH="$REEF_BENCH"} >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
[ $# -eq 0 ] || set -- --target "$@"
status=0
cmake --build --preset "$preset" "$@" -- --quiet >"$log" 2>&1 || status=$?
grep -v '^ninja: no work to do' "$log" >&2 || true
exit $status
