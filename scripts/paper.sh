#!/bin/sh
# Section 4 of the paper:  paper.sh REEF [RESULTS-FOLDER]        PAPER=full: also mini-batches and the worst delta
# Runs the experiments, prints the steady-state MSD beside the values of an independent float64 simulation, and draws the figure.
set -eu
reef=$1
results=${2:-results}
scripts=$(cd "$(dirname "$0")" && pwd)
experiments=$scripts/../experiments

run() { # run NAME
    echo "$1: running ..."
    "$reef" run "$experiments/$1.yaml" -o "$results/$1" --force >/dev/null # progress is on stderr
}

# table SUMMARY PARAMETER: reads lines "rule value reference ..." and puts ours beside.
table() {
    awk -F , -v title="$2" '
        FNR == NR && FNR == 1 { for (i = 1; i <= NF; i++) if ($i == "oracle_db") oracle_at = i; next }
        FNR == NR { sub(/:.*/, "", $2); ours[$2 " " $3] = $5; oracle[$3] = $oracle_at; next }
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
                printf cell[i] == "-" ? " %7.1f        " : " %7.1f (%5s)", mine, cell[i]
            }
            printf "\n"
        }' "$1" -
}

run paper_delta
run paper_rate
echo
echo "Steady-state MSD in dB: ours (reference). Above 40 dB a rule has diverged and has no steady state."
table "$results/paper_delta/summary.csv" delta <<'REFERENCE'
values 0 0.001 0.01 1 1000
mean -48.0 -39.5 -20.1 19.9 79.9
median -49.2 -38.0 -35.9 -35.9 -35.9
ref -47.7 -35.9 -47.7 -47.7 -47.7
vref - - - - -
REFERENCE
table "$results/paper_rate/summary.csv" malicious <<'REFERENCE'
values 0 1 2 4 8 15 16
mean -48.0 79.9 85.9 92.0 98.0 103.4 104.0
median -49.3 -35.8 -29.3 -20.4 59 110.9 111.7
ref -47.9 -47.9 -47.7 -47.4 -46.6 -45.3 110.3
vref - - - - - - -
oracle -48.0 -47.9 -47.8 -47.5 -46.8 -45.3 -45.0
REFERENCE
echo "Theory for the mean without malicious agents: -48.03."

if [ "${PAPER:-}" = full ]; then
    run paper_batch
    run paper_worst
    echo
    echo "Mini-batches: steady-state MSD in dB above the mean without malicious agents; in the last column the reference for batches of 16."
    awk -F , '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { value[$at["rule"] " " $at["malicious"] " " $at["strategy.batch"]] = $at["msd_db"] }
        END {
            n = split("1 4 16", batch, " ")
            rows = split("median 0 +1.7,ref 0 +0.3,median 1 -,ref 1 -", row, ",")
            printf "\n%-18s", "batch"
            for (i = 1; i <= n; i++) printf " %7s", batch[i]
            printf "\n"
            for (k = 1; k <= rows; k++) {
                split(row[k], part, " ")
                printf "%-7s %d malicious", part[1], part[2]
                for (i = 1; i <= n; i++)
                    printf " %+7.1f", value[part[1] " " part[2] " " batch[i]] - value["mean 0 " batch[i]]
                printf part[3] == "-" ? "\n" : "  (" part[3] ")\n"
            }
        }' "$results/paper_batch/summary.csv"
    echo
    echo "The worst delta for REF: ours (reference)"
    awk -F , '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["rule"] == "ref" {
            liars = $at["malicious"]
            if (!(liars in worst) || $at["msd_db"] > worst[liars]) {
                worst[liars] = $at["msd_db"]
                where[liars] = $at["attack.delta"]
            }
        }
        END {
            reference[1] = "-35.7 at 0.0015"; reference[4] = "-19.9"; reference[8] = "+10.5 at 0.025"
            n = split("1 4 8", list, " ")
            for (i = 1; i <= n; i++)
                printf "%2d malicious  %+6.1f dB at delta = %s (%s)\n", list[i], worst[list[i]], where[list[i]], reference[list[i]]
        }' "$results/paper_worst/summary.csv"
fi

echo
if command -v gnuplot >/dev/null 2>&1; then
    for kind in svg png pdf; do
        gnuplot -e "results='$results'; kind='$kind'" "$scripts/paper.gp"
    done
    echo "The figure: $results/paper.svg, .png, .pdf; more in $results/paper_delta/report.html and $results/paper_rate/report.html."
else
    echo "No figure: gnuplot not found. Tables and reports: $results/paper_delta, $results/paper_rate."
fi
