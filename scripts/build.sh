#!/bin/sh
# Configures and builds a preset quietly:  build.sh PRESET [TARGET...]
# The unit tests are required, not optional, when REEF_TESTS=ON is in the environment.
set -eu
cd "$(dirname "$0")/.."

preset=$1
shift
[ -d "build/$preset" ] || echo "Building build/$preset ..."
mkdir -p build/log
log=build/log/cmake-$preset.log
if ! cmake --preset "$preset" ${REEF_TESTS:+-DREEF_TESTS="$REEF_TESTS"} >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
[ $# -eq 0 ] || set -- --target "$@"
status=0
cmake --build --preset "$preset" "$@" -- --quiet >"$log" 2>&1 || status=$?
grep -v '^ninja: no work to do' "$log" >&2 || true
exit $status
