#!/bin/sh
# Installs a wheel into an empty virtual environment and uses it with nothing else on the PATH than the basic commands:
# wheel.sh WHEEL     Writes TAP.
set -eu

wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
python=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
for name in sh cat grep rm mkdir; do
    ln -s "$(command -v $name)" "$scratch/bin/$name"
done

number=0
check() { # check NAME COMMAND...
    number=$((number + 1))
    name=$1
    shift
    if (cd "$scratch" && "$@") >"$scratch/log" 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        sed 's/^/# /' "$scratch/log"
    fi
}

# Neither a compiler nor a library of the tree can be found from here.
alone() { env -i HOME="$scratch" PATH="$scratch/venv/bin:$scratch/bin" "$@"; }

installs() {
    "$python" -m venv "$scratch/venv" && "$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
}

is_small() { [ "$(wc -c <"$wheel")" -lt 6000000 ]; }

quick_start() {
    alone python -c '
import numpy as np, reef
rng = np.random.default_rng(1)
models = [1 + 0.1 * rng.normal(size=1000) for _ in range(10)]
models[7] = -5 * models[7]
result, report = reef.aggregate(models, "vref", report=True)
assert np.abs(result - 1).max() < 0.2 and list(report.suspects()) == [7]
'
}

memory() {
    alone python -c '
import numpy as np, reef
rng = np.random.default_rng(2)
state = reef.State()
for round in range(200):
    models = rng.normal(size=(12, 10))
    models[:4] = 0.5 + 0.3 * rng.normal(size=(4, 10))
    result, report = reef.aggregate(models, "mref", ids=[f"site {i}" for i in range(12)], state=state, report=True)
assert report.trust[:4].max() < 0.3 < 0.7 < report.trust[4:].min(), report.trust
state.save("memory.state")
reef.State.load("memory.state")
'
}

experiment() {
    cat >quick.yaml <<'EOF'
name: quick
agents: 10
problem: {kind: softmax, data: digits}
strategy: {kind: federated, mu: 0.5, batch: 16}
malicious: 2
attack: sign_flip
rule: [mean, mref]
rounds: 50
repetitions: 2
seed: 1
EOF
    alone reef run quick.yaml --no-figures -o results && alone grep -q mref results/summary.csv &&
        alone python -c 'import reef; print(reef.run("quick.yaml", folder="again"))'
}

merge() {
    alone python -c '
import numpy as np
for i in range(5):
    np.save(f"site{i}.npy", np.arange(6.0) + (100 if i == 4 else i / 10))
' && alone reef aggregate site0.npy site1.npy site2.npy site3.npy site4.npy --rule median -o merged.npy &&
        alone python -c 'import numpy as np; assert np.allclose(np.load("merged.npy"), np.arange(6.0) + 0.2)'
}

# What comes with Python is all it may need: no library beside those of the C library.
needs_only_libc() {
    for file in "$scratch"/venv/lib/python*/site-packages/reef/libreef.so "$scratch"/venv/lib/python*/site-packages/reef/bin/reef; do
        ! readelf -d "$file" | grep NEEDED | grep -vE 'lib(c|m|pthread|dl)\.so|ld-linux' || return 1
    done
}

# The folder that a wheel is put together in has a random name; with it in the library no two builds are the same.
names_no_build_folder() { ! grep -aq /platlib "$scratch"/venv/lib/python3*/site-packages/reef/{libreef.so,bin/reef}; }

echo 1..8
check "installs into an empty virtual environment" installs
check "is smaller than 6 MB" is_small
check "needs nothing but the C library" needs_only_libc
check "does not name the folder it was built in" names_no_build_folder
check "the quick start: an outlier is found" quick_start
check "mref remembers its senders, and its state is saved" memory
check "an experiment, by the command and by reef.run" experiment
check "merging files by the command" merge
