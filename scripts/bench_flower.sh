#!/bin/sh
# Colluders inside the honest spread in Flower, its strategies and Reef's:  bench_flower.sh [OPTION...]
# Options are those of bench/flower/compare.py (--help). Results go to results/flower.csv; what is in there is not run again. The environment is
# that of scripts/python_extras.sh.
set -eu
cd "$(dirname "$0")/.."

# shellcheck disable=SC2034 # scripts/venv.sh reads it
offline=
folder=build/python
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
mkdir -p $folder
. scripts/venv.sh

environment flower '' 'flwr pytest scikit-build-core numpy' || {
    echo "Flower cannot be installed here: $(why $folder/flower.log)" >&2
    exit 1
}
scripts/build.sh release reef_shared
REEF_LIBRARY=$PWD/build/release/libreef.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 \
    exec $folder/flower/bin/python bench/flower/compare.py "$@"
