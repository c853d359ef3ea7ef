#!/bin/sh
# Merging models by Reef, PyTorch and mergekit beside `cat` of the same files:  bench_merge.sh [--offline] [OPTION...]
# Options are those of bench/merge/bench.py (--files, --megabytes, --repeats, ...). PyTorch and mergekit go with pip to environments of their own in
# build/bench-merge; what cannot be installed is named as absent. --offline installs nothing. docs/merging.md has figures.
set -eu
cd "$(dirname "$0")/.."

# shellcheck disable=SC2034 # scripts/venv.sh reads it
offline=
[ "${1-}" != --offline ] || { offline=yes && shift; }
folder=build/bench-merge
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
mkdir -p $folder
. scripts/venv.sh

scripts/build.sh release reef
if "$python" -c 'import torch' 2>/dev/null; then # Debian's
    environment torch --system-site-packages safetensors && set -- --torch $folder/torch/bin/python "$@"
else
    environment torch '' 'torch safetensors numpy' && set -- --torch $folder/torch/bin/python "$@"
fi || echo "PyTorch is absent: $(why $folder/torch.log)"
environment mergekit '' mergekit && set -- --mergekit $folder/mergekit/bin/python "$@" ||
    echo "mergekit is absent: $(why $folder/mergekit.log)"
PYTHONDONTWRITEBYTECODE=1 exec "$python" bench/merge/bench.py --reef build/release/reef "$@"
