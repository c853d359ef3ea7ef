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
# A failing step shows its output and does not stop the others. Each result is also appended to the file REEF_TALLY
# when that is set, so that one script can sum up several.

rows=()
log_dir=build/log
mkdir -p "$log_dir"

record() { # record NAME SECONDS PASSED FAILED
    local row
    row=$(printf '%s\t%s\t%s\t%s' "$@")
    rows+=("$row")
    [ -z "${REEF_TALLY:-}" ] || echo "$row" >>"$REEF_TALLY"
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
    "$@" </dev/null >"$log" 2>&1 || status=$?
    count "$kind" "$log" "$status"
    record "$name" $((SECONDS - start)) "$passed" "$failed"
    if [ "$failed" -eq 0 ]; then
        echo "ok ($((SECONDS - start)) s)"
    else
        echo "FAILED ($((SECONDS - start)) s); the end of $log:"
        tail -n "${REEF_LOG_LINES:-150}" "$log" | sed 's/^/    /'
    fi
    [ "$failed" -eq 0 ]
}

# Table and closing line; fails if anything failed.
summary() { # lines "name seconds passed failed", separated by tabs, on standard input
    awk -F '\t' '
        BEGIN { printf "\n%-24s %8s %8s %8s\n", "step", "seconds", "passed", "failed" }
        { printf "%-24s %8d %8d %8d\n", $1, $2, $3, $4; t += $2; p += $3; f += $4 }
        END { printf "%-24s %8d\n\n%d passed, %d failed\n", "total", t, p, f; exit f > 0 || p == 0 }'
}

finish() {
    printf '%s\n' "${rows[@]}" | summary
}
