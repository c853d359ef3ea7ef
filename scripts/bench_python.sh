#!/bin/sh
# reef.aggregate against numpy, ByzFL and Flower on the same lists of arrays:  bench_python.sh [--quick] [--offline]
# One table per environment in build/python, those of scripts/python_extras.sh; what cannot be installed is named. docs/python.md has the
# results. --quick takes small arrays, --offline installs nothing.
set -eu
cd "$(dirname "$0")/.."

length=1000000 offline=
for option in "$@"; do
    case $option in
    --quick) length=100000 ;;
    --offline) offline=yes ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done
folder=build/python
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
export PYTHONDONTWRITEBYTECODE=1
mkdir -p $folder
. scripts/venv.sh

scripts/build.sh release reef_shared
REEF_LIBRARY=$PWD/build/release/libreef.so
export REEF_LIBRARY
bench() { # bench NAME
    if [ -f $folder/"$1"/complete ]; then
        $folder/"$1"/bin/python bench/python/bench.py "$1" --length $length
    else
        echo "$1: cannot be installed here: $(why $folder/"$1".log)"
    fi
    echo
}
environment byzfl --system-site-packages '--ignore-installed numpy>=1.26.4,<2 scipy>=1.12' '--no-deps byzfl' || true
bench byzfl
environment flower '' 'flwr pytest scikit-build-core numpy' || true
bench flower
