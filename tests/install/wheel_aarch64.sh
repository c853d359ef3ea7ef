#!/bin/sh
# Uses a wheel for 64-bit Arm under qemu:  wheel_aarch64.sh WHEEL     Writes TAP.
# Python, numpy and what they need for that processor are Debian's, unpacked into build/aarch64-python and not installed; pytest is this
# machine's, which is the same for all processors.
set -eu
cd "$(dirname "$0")/../.."

wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$PWD/build/aarch64-python
python=python$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
libraries=$root/usr/lib/aarch64-linux-gnu
mkdir -p build/log

number=0
check() { # check NAME COMMAND...
    number=$((number + 1))
    name=$1
    shift
    if "$@" >build/log/wheel-aarch64.log 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        tail -n 40 build/log/wheel-aarch64.log | sed 's/^/# /'
    fi
}

unpack_python() {
    [ ! -f "$root/complete" ] || return 0
    rm -rf "$root" && mkdir -p "$root/packages" "$root/pure"
    names=$(for name in "$python-minimal" "lib$python-minimal" "lib$python-stdlib" python3-numpy libblas3 liblapack3 libgfortran5 libgcc-s1 \
        libstdc++6 libexpat1 zlib1g libffi8 libbz2-1.0 liblzma5; do echo "$name:arm64"; done)
    # shellcheck disable=SC2086 # a list of packages
    (cd "$root/packages" && apt-get -q download $names) || return 1
    for package in "$root"/packages/*.deb; do
        dpkg-deb -x "$package" "$root" || return 1
    done
    for module in pytest _pytest py pluggy iniconfig packaging attr; do # a folder or a single file
        cp -rL "$(/usr/bin/python3 -c "import $module; print($module.__file__.replace('/__init__.py', ''))")" "$root/pure/" || return 1
    done
    touch "$root/complete"
}

arm() {
    env -i HOME="$root" PYTHONHOME="$root/usr" PYTHONPATH="$root/wheel:$root/pure:$root/usr/lib/python3/dist-packages" \
        LD_LIBRARY_PATH="$libraries:$libraries/blas:$libraries/lapack:$root/lib/aarch64-linux-gnu" PYTHONDONTWRITEBYTECODE=1 \
        REEF_INSTALLED=1 OMP_NUM_THREADS=1 qemu-aarch64 "$@"
}

unpack_wheel() { rm -rf "$root/wheel" && /usr/bin/python3 -m zipfile -e "$wheel" "$root/wheel"; }

python_is_arm() { [ "$(arm "$root/usr/bin/$python" -c 'import platform; print(platform.machine())')" = aarch64 ]; }

uses_neon() { chmod +x "$root/wheel/reef/bin/reef" && arm "$root/wheel/reef/bin/reef" doctor | grep -E '^instructions +neon'; }

# What a call costs is no question for an emulator.
numeric_tests() {
    (cd tests/python && arm "$root/usr/bin/$python" -m pytest -q -p no:cacheprovider -k 'not little_is_added' test_aggregate.py test_memory.py \
        test_models.py)
}

command_runs() { arm "$root/wheel/reef/bin/reef" demo; }

echo 1..6
check "Python and numpy for 64-bit Arm" unpack_python
check "the wheel can be unpacked" unpack_wheel
check "Python runs under qemu" python_is_arm
check "the vector code of the processor is used" uses_neon
check "the numeric tests" numeric_tests
check "the command" command_runs
