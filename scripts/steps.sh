# shellcheck shell=bash
# Named, timed steps that are counted:  . scripts/steps.sh; step NAME KIND COMMAND...; ...; finish
#
#   KIND   counts as
#   gate   one check, passed or failed
#   build  nothing if it succeeds, one failure if not
#   ctest  the tests of a ctest run
#   tap    the tests of a program that writes TAP (bats, our shell tests); skipped ones do not count
#   pytest the tests of one or more runs of pytest; skipped ones do not count
#
# A failing step shows its output and does not stop the others. `later` starts a step beside the next ones, `await` ends such steps.
# Tests that were left out, because something is not installed, are named at the end. Each result is also appended to the file REEF_TALLY,
# and what was left out to REEF_LEFT_OUT, when these are set, so that one script can sum up several.

rows=()
absent=()
waiting=()
log_dir=build/log
mkdir -p "$log_dir"

record() { # record NAME SECONDS PASSED FAILED
    local row
    row=$(printf '%s\t%s\t%s\t%s' "$@")
    rows+=("$row")
    [ -z "${REEF_TALLY:-}" ] || echo "$row" >>"$REEF_TALLY"
}

leave_out() { # leave_out REASON NAME
    local line
    line=$(printf 'absent\t%s\t%s' "$1" "$2")
    absent+=("$line")
    [ -z "${REEF_LEFT_OUT:-}" ] || echo "$line" >>"$REEF_LEFT_OUT"
}

# What a step left out: skipped tests of TAP, and what tests/python/conftest.py wrote to a file.
note_left_out() { # note_left_out KIND LOG TESTED
    local reason name
    [ "$1" != tap ] || while IFS=$'\t' read -r reason name; do
        leave_out "$reason" "$name"
    done < <(sed -nE 's/^ok [0-9]+ (- )?(.*) # skip ?(.*)$/\3\t\2/p' "$2")
    [ "$1" = pytest ] && [ -f "$3" ] || return 0
    while IFS=$'\t' read -r _ reason name; do
        leave_out "$reason" "$name"
    done < <(grep '^absent' "$3")
    [ -z "${REEF_LEFT_OUT:-}" ] || grep '^ran' "$3" >>"$REEF_LEFT_OUT"
}

# Sets passed and failed from the log of a step and its exit status.
count() { # count KIND LOG STATUS
    passed=0 failed=0
    local summary plan
    case $1 in
    gate) passed=1 ;;
    ctest)
        summary=$(grep -E 'tests failed out of [0-9]+$' "$2" | tail -n 1)
        if [[ $summary =~ ([0-9]+)\ tests\ failed\ out\ of\ ([0-9]+) ]]; then
            failed=${BASH_REMATCH[1]}
            passed=$((BASH_REMATCH[2] - failed))
        fi
        ;;
    pytest)
        passed=$(grep -E '^[0-9].* in [0-9.]+s' "$2" | grep -oE '[0-9]+ passed' | awk '{ n += $1 } END { print n + 0 }')
        failed=$(grep -E '^[0-9].* in [0-9.]+s' "$2" | grep -oE '[0-9]+ (failed|error)' | awk '{ n += $1 } END { print n + 0 }')
        ;;
    tap)
        passed=$(grep -E '^ok ' "$2" | grep -civE '# *skip')
        failed=$(grep -cE '^not ok ' "$2")
        # Tests that were announced and never reported have failed.
        plan=$(grep -E '^1\.\.[0-9]+$' "$2" | tail -n 1)
        [ $(($(grep -cE '^(not )?ok ' "$2"))) -eq "${plan#1..}" ] 2>/dev/null || failed=$((failed + 1))
        ;;
    esac
    if [ "$3" -ne 0 ] && [ "$failed" -eq 0 ]; then
        failed=1
        [ "$1" != gate ] || passed=0
    fi
    # A test run without tests proves nothing.
    if [[ $1 == ctest || $1 == tap || $1 == pytest ]] && [ $((passed + failed)) -eq 0 ]; then
        failed=1
    fi
}

step() { # step NAME KIND COMMAND...
    local name=$1 kind=$2 start=$SECONDS status=0 passed failed
    local log=$log_dir/${name// /-}.log
    shift 2
    printf '%-24s ' "$name"
    rm -f "$log.tested"
    REEF_TESTED=$PWD/$log.tested "$@" </dev/null >"$log" 2>&1 || status=$?
    count "$kind" "$log" "$status"
    note_left_out "$kind" "$log" "$log.tested"
    record "$name" $((SECONDS - start)) "$passed" "$failed"
    if [ "$failed" -eq 0 ]; then
        echo "ok ($((SECONDS - start)) s)"
    else
        echo "FAILED ($((SECONDS - start)) s); the end of $log:"
        tail -n "${REEF_LOG_LINES:-150}" "$log" | sed 's/^/    /'
    fi
    [ "$failed" -eq 0 ]
}

# The same beside the steps that follow; what it shows is shown by `await`, which fails if one of them did.
later() { # later NAME KIND COMMAND...
    local shown=$log_dir/${1// /-}.step
    (
        rows=() absent=()
        step "$@" >"$shown"
        printf 'row\t%s\n' "${rows[@]}" >"$shown.results"
        [ ${#absent[@]} -eq 0 ] || printf '%s\n' "${absent[@]}" >>"$shown.results"
    ) &
    waiting+=("$!:$shown")
}

await() {
    local one line shown status=0
    for one in "${waiting[@]}"; do
        shown=${one#*:}
        wait "${one%%:*}"
        cat "$shown"
        while IFS= read -r line; do
            case $line in
            row*) rows+=("${line#*$'\t'}") ;;
            *) absent+=("$line") ;;
            esac
        done <"$shown.results"
        ! awk -F '\t' '$1 == "row" && $5 > 0 { exit 1 }' "$shown.results" && status=1
    done
    waiting=()
    return $status
}

# Table and closing line; fails if anything failed. Steps may have run side by side: the total is the time since the script began.
summary() { # lines "name seconds passed failed", separated by tabs, on standard input
    awk -F '\t' -v elapsed="$SECONDS" '
        BEGIN { printf "\n%-24s %8s %8s %8s\n", "step", "seconds", "passed", "failed" }
        { printf "%-24s %8d %8d %8d\n", $1, $2, $3, $4; p += $3; f += $4 }
        END { printf "%-24s %8d\n\n%d passed, %d failed\n", "total", elapsed, p, f; exit f > 0 || p == 0 }'
}

# Tests left out by name, those with one reason on one line; a test with several parameters once, with their number.
show_left_out() { # lines "absent reason name" on standard input
    awk -F '\t' '
        $1 == "absent" && !(($2, $3) in seen) {
            seen[$2, $3]
            test = $3
            sub(/\[.*/, "", test)
            if (!($2 in reasons)) { reasons[$2]; reason[++r] = $2 }
            if (!times[$2, test]++) { name[++t] = test; of[t] = $2 }
            n++
        }
        END {
            if (n) printf "\nLeft out, %d in all:\n", n
            for (i = 1; i <= r; i++) {
                printf "  %s:", reason[i]
                for (j = 1; j <= t; j++) {
                    if (of[j] != reason[i]) continue
                    printf " %s", name[j]
                    if (times[reason[i], name[j]] > 1) printf " (%d times)", times[reason[i], name[j]]
                    printf ";"
                }
                print ""
            }
        }'
}

finish() {
    [ ${#absent[@]} -eq 0 ] || printf '%s\n' "${absent[@]}" | show_left_out
    printf '%s\n' "${rows[@]}" | summary
}
