#!/usr/bin/env bash
# The Python package with what comes from Python's own registry:  python_extras.sh [--offline]
#   byzfl   Debian's PyTorch, pandas and matplotlib, and ByzFL without its dependencies: all tests, ByzFL's numbers, the notebook
#   transformers  Debian's PyTorch and a version of transformers for it: merged folders are loaded by from_pretrained
#   flower  the package itself, installed with pip, and Flower: its strategies, a deployment of processes, the simulation engine
# Each has a virtual environment in build/python, made with PYTHON (by default Debian's python3, to which Debian's packages belong).
# PyTorch of Debian was built for numpy 1, Flower wants newer things: hence several. What cannot be installed is said and left out; that is no
# failure. --offline installs nothing.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

offline=
[ "${1:-}" != --offline ] || offline=yes
folder=build/python
python=${PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
export PYTHONDONTWRITEBYTECODE=1
mkdir -p $folder
. scripts/venv.sh

skipped() { # skipped PART LOG
    leave_out "$(why "$2")" "Python tests with $1"
    echo "$1: left out, it cannot be installed here: $(why "$2")"
}

# The installed package: no library and no folder of the tree is named to it.
installed_tests() {
    (cd tests/python && env -u REEF_LIBRARY -u REEF_DATA REEF_INSTALLED=1 ../../$folder/flower/bin/python -m pytest -q \
        -p no:cacheprovider test_aggregate.py test_copies.py test_models.py test_rules.py test_run.py test_simulate.py test_federation.py \
        test_data.py test_problem.py)
}

flower_tests() {
    local required="flwr flower-deployment"
    if $folder/flower/bin/python -c 'import ray' 2>/dev/null; then
        required+=" flower-simulation"
        [ -n "$offline" ] || required+=" flower-app" # it installs everything anew
    fi
    (cd tests/python && env -u REEF_LIBRARY REEF_INSTALLED=1 REEF_REQUIRE="$required" ../../$folder/flower/bin/python -m pytest -q \
        -p no:cacheprovider -rsfE --durations=5 test_flower.py test_bench.py)
}

# The wheel is built anew each time: it is what is tested.
install_package() {
    scripts/wheel.sh && $folder/flower/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall \
        build/wheel/*.whl
}

step "build release" build scripts/build.sh release reef_shared || { finish; exit 1; }

if $python -c 'import mypy' 2>/dev/null; then
    step "python types" gate "$python" -m mypy --cache-dir=build/python/mypy
else
    echo "types: left out, there is no mypy for $python"
fi

byzfl_modules='torch pandas matplotlib tqdm'
if ! environment byzfl --system-site-packages '--ignore-installed numpy>=1.26.4,<2 scipy>=1.12' '--no-deps byzfl'; then
    skipped byzfl $folder/byzfl.log
elif ! $folder/byzfl/bin/python -c "import ${byzfl_modules// /, }, pytest" 2>$folder/byzfl.log; then
    skipped byzfl $folder/byzfl.log
else
    step "python byzfl" pytest env PYTHON=$folder/byzfl/bin/python REEF_REQUIRE="byzfl notebook $byzfl_modules" \
        scripts/python_tests.sh build/release
fi

if ! environment transformers --system-site-packages '--ignore-installed numpy>=1.26.4,<2' 'transformers>=4.38,<4.40'; then
    skipped transformers $folder/transformers.log
else
    step "build command" build scripts/build.sh release reef_tool &&
        step "python transformers" pytest env PYTHON=$folder/transformers/bin/python REEF_REQUIRE="transformers safetensors torch" \
            scripts/python_tests.sh build/release tests/python/test_folders.py
fi

if ! environment flower '' 'flwr pytest scikit-build-core numpy'; then
    skipped flower $folder/flower.log
else
    # Ray is large and not to be had for every Python: without it one test is left out.
    [ -n "$offline" ] || [ -f $folder/flower/ray-tried ] || { touch $folder/flower/ray-tried &&
        timeout 300 $folder/flower/bin/python -m pip install --quiet --retries 2 --disable-pip-version-check 'flwr[simulation]' \
            >$folder/ray.log 2>&1 || echo "Ray: left out, it cannot be installed here: $(why $folder/ray.log)"; }
    if step "python wheel" gate install_package; then
        step "wheel alone" tap tests/install/wheel.sh build/wheel/*.whl
        step "python installed" pytest installed_tests
        step "python flower" pytest flower_tests
    fi
fi
# Where nothing at all could be installed there is nothing to pass; only failures fail.
finish
! printf '%s\n' "${rows[@]}" | awk -F '\t' '{ failed += $4 } END { exit failed == 0 }'
