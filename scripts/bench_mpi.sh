#!/bin/sh
# Runs over 1, 2, 4 and 8 ranks of this machine, with as many agents per rank (weak scaling) and in all (strong scaling); then a large
# aggregation:  bench_mpi.sh
# The table goes to the terminal, the same as JSON lines to build/bench/bench_ranks.jsonl; at the end the constants of docs/scaling.md.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/bench
json=build/bench/bench_ranks.jsonl
rm -f "$json"
REEF_BENCH=ON scripts/build.sh release
[ -x build/release/bench/bench_ranks ] || { echo "There is no MPI: nothing to measure." >&2; exit 1; }

echo "8 agents per rank"
for ranks in 1 2 4 8; do
    scripts/ranks.sh "$ranks" build/release/bench/bench_ranks --json "$json"
done
echo "32 agents in all"
for ranks in 1 2 4 8; do
    scripts/ranks.sh "$ranks" build/release/bench/bench_ranks --agents 32
done

# latency: an exchange of 160 bytes; bandwidth: one of 16 MB without that; work: a round of one process per agent and number
awk -F '[:,}]' '
    { for (i = 1; i < NF; i++) { gsub(/[{" ]/, "", $i); v[$i] = $(i + 1) } }
    v["ranks"] == 2 && v["M"] == 10 { latency = v["exchange_s"] }
    v["ranks"] == 2 && v["M"] == 1000000 { long = v["exchange_s"]; bytes = v["bytes"] }
    v["ranks"] == 1 && v["M"] == 1000000 { work = v["alone_s"] / (v["agents"] * v["M"]) }
    END {
        printf "\nlatency %.3g us per exchange, bandwidth %.3g GB/s per rank, work %.3g ns per agent and number\n",
               1e6 * latency, 1e-9 * bytes / (long - latency), 1e9 * work
    }' "$json"

echo
scripts/ranks.sh 4 build/release/bench/bench_shard
