#!/bin/sh
# ByzFL's own training framework with its aggregators and with Reef's:  bench_byzfl.sh [OPTION...]
# Options are those of bench/byzfl/compare.py (--help). Results go to results/byzfl.csv; what is in there is not run again. The environment is
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

environment byzfl --system-site-packages '--ignore-installed numpy>=1.26.4,<2 scipy>=1.12' '--no-deps byzfl' || {
    echo "ByzFL cannot be installed here: $(why $folder/byzfl.log)" >&2
    exit 1
}
scripts/build.sh release reef_shared
REEF_LIBRARY=$PWD/build/release/libreef.so PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 \
    exec $folder/byzfl/bin/python bench/byzfl/compare.py "$@"
