#!/bin/sh
# Searches the model of the round protocol whole:  model.sh
# round.pml must hold, and each of its five mutations must break the very assertion it is made to break: a model that cannot fail
# shows nothing.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$here/round.pml" .
compiler=$(command -v cc || command -v gcc || command -v clang)

search() { # search SPIN-OPTION...: leaves the verdict in pan.log
    spin "$@" -a round.pml >spin.log 2>&1 && "$compiler" -O2 -w -DSAFETY -DMEMLIM=1500 -o pan pan.c ||
        { cat spin.log && exit 1; }
    ./pan -m100000 >pan.log 2>&1 || { cat pan.log && exit 1; }
    if grep -q 'max search depth too small\|memory limit\|out of memory' pan.log; then
        echo "the search was not complete" && cat pan.log && exit 1
    fi
}

status=0
search
if grep -q 'errors: 0' pan.log && ! grep -q 'state [0-9]*, "' pan.log; then
    echo "the protocol holds: $(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' pan.log) states"
else
    echo "the protocol does not hold, or some of the model is never reached:" && cat pan.log && status=1
fi
while read -r mutation assertion; do
    search "-D$mutation"
    if grep -qF "assertion violated ($assertion" pan.log; then
        echo "$mutation is caught"
    else
        echo "$mutation is NOT caught: expected the violation of ($assertion" && cat pan.log && status=1
    fi
done <<'MUTATIONS'
LATE_JOURNAL (ghost&
FORGET_JOURNAL (ghost&
WEAK_QUORUM (n-liars)>liars
COUNT_FRAMES (n-liars)>liars
EAGER_JUMP r<top
MUTATIONS
exit $status
