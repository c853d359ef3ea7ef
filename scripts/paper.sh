#!/bin/sh
# Section 4 of the paper:  paper.sh REEF [RESULTS-FOLDER]
# Runs both experiments and prints the steady-state MSD beside the values of an independent float64 simulation.
set -eu
reef=$1
results=${2:-results}
experiments=$(dirname "$0")/../experiments

for name in paper_delta paper_rate; do
    echo "$name: running ..."
    "$reef" run "$experiments/$name.yaml" -o "$results/$name" >/dev/null # progress is on stderr
done

# table SUMMARY PARAMETER: reads lines "rule value reference ..." and puts ours beside.
table() {
    awk -F , -v title="$2" '
        FNR == NR { if (FNR > 1) { ours[$2 " " $3] = $5; oracle[$3] = $NF }; next }
        {
            n = split($0, cell, " ")
            if (cell[1] == "values") {
                for (i = 2; i <= n; i++) value[i] = cell[i]
                printf "\n%-8s", title
                for (i = 2; i <= n; i++) printf " %15s", value[i]
                printf "\n"
                next
            }
            printf "%-8s", cell[1]
            for (i = 2; i <= n; i++) {
                mine = cell[1] == "oracle" ? oracle[value[i]] : ours[cell[1] " " value[i]]
                printf " %7.1f (%5s)", mine, cell[i]
            }
            printf "\n"
        }' "$1" -
}

echo
echo "Steady-state MSD in dB: ours (reference). Above 40 dB a rule has diverged and has no stationary value."
table "$results/paper_delta/summary.csv" delta <<'REFERENCE'
values 0 0.001 0.01 1 1000
mean -48.0 -39.5 -20.1 19.9 79.9
median -49.2 -38.0 -35.9 -35.9 -35.9
ref -47.7 -35.9 -47.7 -47.7 -47.7
REFERENCE
table "$results/paper_rate/summary.csv" liars <<'REFERENCE'
values 0 1 2 4 8 15 16
mean -48.0 79.9 85.9 92.0 98.0 103.4 104.0
median -49.3 -35.8 -29.3 -20.4 59 110.9 111.7
ref -47.9 -47.9 -47.7 -47.4 -46.6 -45.3 110.3
oracle -48.0 -47.9 -47.8 -47.5 -46.8 -45.3 -45.0
REFERENCE
echo
echo "Figures: $results/paper_delta/figures, $results/paper_rate/figures (svg, png, scripts and data)."
