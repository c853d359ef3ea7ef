#!/bin/sh
# Reef against numpy, scipy, PyTorch, ByzFL and Flower on the same arrays; docs/peers.md explains the table.
#
#   bench_peers.sh [--k K] [--megabytes N] [--repeats N] [--quick] [--offline]
#
# Debian's numpy, scipy and torch come with the system (scripts/bootstrap.sh peers). The newest numpy and scipy, ByzFL
# and Flower go with pip to virtual environments of their own in build/peers, because they want different versions of
# numpy. What cannot be installed is named as absent. --offline installs nothing; --quick takes small arrays and few
# repeats. The measurements are kept as JSON lines in build/peers/peers.jsonl.
set -eu
cd "$(dirname "$0")/.."

k=32 megabytes=64 repeats=5 simulation=2 offline=
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
    case $1 in
    --k | --megabytes | --repeats)
        [ $# -ge 2 ] || { echo "bench_peers.sh: $1 needs a number" >&2; exit 2; }
        case $1 in --k) k=$2 ;; --megabytes) megabytes=$2 ;; --repeats) repeats=$2 ;; esac
        shift
        ;;
    --quick) megabytes=4 repeats=3 simulation=0.3 ;;
    --offline) offline=yes ;;
    --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done

folder=build/peers
rows=$folder/rows.npy
jsonl=$folder/peers.jsonl
# Debian's packages belong to Debian's interpreter, whatever else is on the PATH.
python=/usr/bin/python3
[ -x $python ] || python=python3
export PYTHONDONTWRITEBYTECODE=1
mkdir -p $folder
rm -f $jsonl
. scripts/venv.sh

peers() { # peers PYTHON ARGUMENTS...
    interpreter=$1
    shift
    "$interpreter" bench/peers/peers.py "$@"
}

absent() { # absent ENVIRONMENT PEER REASON
    peers "$python" absent "$2" "$3" --environment "$1" --jsonl $jsonl
}

measure() { # measure ENVIRONMENT PYTHON SIMULATION-SECONDS PEER...
    name=$1 interpreter=$2 seconds=$3
    shift 3
    for threads in 1 all; do
        echo "Measuring $name, threads: $threads ..."
        peers "$interpreter" run $rows "$@" --environment "$name" --library build/release/libreef.so --jsonl $jsonl \
            --threads $threads --repeats "$repeats" --simulation "$seconds" 2>$folder/"$name"-run.log || {
            for peer in "$@"; do
                absent "$name" "$peer" "failed with threads = $threads: $(why $folder/"$name"-run.log)"
            done
        }
        seconds=0
    done
}

scripts/build.sh release reef_shared
if ! "$python" -c 'import numpy' 2>/dev/null; then
    echo "bench_peers.sh: python3-numpy is needed for the least: scripts/bootstrap.sh peers" >&2
    exit 1
fi
peers "$python" data $rows --k "$k" --megabytes "$megabytes"

measure debian "$python" "$simulation" numpy scipy torch
if environment newest '' 'numpy scipy'; then
    measure newest $folder/newest/bin/python "$simulation" numpy scipy
else
    for peer in numpy scipy; do absent newest $peer "$(why $folder/newest.log)"; done
fi
# ByzFL asks for a newer torch, of gigabytes; its aggregators run on Debian's, which was built for numpy 1.
if environment byzfl --system-site-packages '--ignore-installed numpy>=1.26.4,<2 scipy>=1.12' '--no-deps byzfl'; then
    measure byzfl $folder/byzfl/bin/python 0 byzfl
else
    absent byzfl byzfl "$(why $folder/byzfl.log)"
fi
if environment flower '' 'flwr'; then
    measure flower $folder/flower/bin/python 0 flower
else
    absent flower flower "$(why $folder/flower.log)"
fi
echo
peers "$python" table $jsonl
