#!/usr/bin/env bash
# Lines that the unit tests execute, per room of src/:  coverage.sh [CTEST-OPTION...]
#
# Builds the preset `coverage`, runs its tests, prints a figure per room, and fails if agg, num, io or learn have less than LEAST percent
# (default 85). A line of a header counts once, executed if it was anywhere. COVERAGE_KEEP=1 adds to the counts of earlier runs.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/coverage
least=${LEAST:-85}
guarded='agg num io learn'

REEF_TESTS=ON scripts/build.sh coverage
[ -n "${COVERAGE_KEEP:-}" ] || find "$build" -name '*.gcda' -delete
# What fails is counted too, and told at the end.
failed=0
ctest --preset coverage -j "$(nproc 2>/dev/null || echo 2)" "$@" >build/log/coverage.log 2>&1 || failed=1

# gcov --stdout prints source files with a count before each line: "-" none, "#####" never executed.
find "$build/CMakeFiles" -path '*.dir/src/*' -name '*.gcno' | sed 's/gcno$/gcda/' | LC_ALL=C sort | while read -r counts; do
    [ ! -f "$counts" ] || gcov --stdout "$counts" 2>/dev/null
    # a file that no test has touched has no counts: its lines are all unexecuted
    [ -f "$counts" ] || gcov --stdout "${counts%gcda}gcno" 2>/dev/null
done | awk -v least="$least" -v guarded="$guarded" '
    /^ *-: *0:Source:/ {
        file = $0
        sub(/^.*Source:/, "", file)
        inside = sub(/^(.*\/)?src\//, "", file)
        next
    }
    !inside || $0 !~ /^ *[^:]+: *[1-9][0-9]*:/ { next }
    {
        split($0, part, ":")
        gsub(/ /, "", part[1])
        if (part[1] == "-") next
        line = file ":" part[2]
        room = file
        sub(/\/.*/, "", room)
        if (!(line in seen)) { seen[line] = 1; lines[room]++ }
        if (part[1] !~ /^[#=]/ && !(line in done)) { done[line] = 1; executed[room]++ }
    }
    END {
        count = split(guarded, names, " ")
        for (i = 1; i <= count; i++) guard[names[i]] = 1
        for (room in lines) {
            share = 100 * executed[room] / lines[room]
            low = (room in guard) && share < least
            bad = bad || low
            printf "%-12s %6.1f %%  of %5d lines%s\n", room, share, lines[room], low ? "   below " least " %" : "" | "LC_ALL=C sort"
        }
        for (room in guard) if (!(room in lines)) { print room ": no lines found" ; bad = 1 }
        close("LC_ALL=C sort")
        exit bad
    }' || failed=$((failed + 2))
[ $((failed & 1)) -eq 0 ] || { grep -E 'Failed|Timeout|\*\*\*' build/log/coverage.log; echo "tests failed: build/log/coverage.log"; }
exit "$failed"
