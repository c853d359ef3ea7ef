#!/bin/sh
# Tests the Python package as it lies in the tree with the library of a build:  python_tests.sh BUILD-FOLDER [PYTEST-OPTION...]
# PYTHON names the interpreter; by default it is Debian's, which is the one that finds Debian's packages. Tests that need more than
# numpy (PyTorch, pandas, Flower, ...) run where that is there; `make test-python-extras` sees to it that it is.
set -eu
cd "$(dirname "$0")/.."

build=$1
shift
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
REEF_LIBRARY=$(cd "$build" && pwd)/libreef.so
REEF_DATA=${REEF_DATA:-$PWD/data}
# One thread for the others' linear algebra: on a busy machine their threads spend their time waiting for each other.
export REEF_LIBRARY REEF_DATA PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
[ $# -gt 0 ] || set -- tests/python
exec "$python" -m pytest -q -p no:cacheprovider -rsfE --durations=5 "$@"
