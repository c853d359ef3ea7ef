# reef demo: 32 models, 8 of them malicious, every rule. It runs a few times at the beginning; the tests read what it printed.
bats_require_minimum_version 1.5.0

setup_file() {
    local runs=$BATS_FILE_TMPDIR
    local utf8
    utf8=$(locale -a 2>/dev/null | grep -i -m 1 -E '^(C|en_US)\.utf-?8$' || true)
    (
        unset LC_ALL LC_CTYPE
        LANG=C "$REEF" demo >"$runs/ascii" 2>"$runs/ascii.err" 3>&- &
        LANG=C "$REEF" demo >"$runs/ascii2" 2>"$runs/ascii2.err"
        wait $!
    )
    if [ -n "$utf8" ]; then
        LC_ALL=$utf8 "$REEF" demo >"$runs/utf8" 2>"$runs/utf8.err"
    fi
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# The table of rules: from its head to the next empty line.
table() { sed -n '/^rule .*far/,/^$/p' "$1" | sed '1d;$d'; }

# The table of agents.
agents() { grep -E '^ *[0-9]+ (honest|MALICIOUS) ' "$1"; }

@test "demo ends well and says nothing on stderr" {
    [ -s ascii ]
    [ ! -s ascii.err ]
    grep -q '^[0-9]* aggregations in [0-9.]* s\.' ascii
}

@test "every rule and pre-aggregator of reef list is in the table" {
    table ascii >rules
    for rule in $("$REEF" list | awk '/^  [a-z]/ { print $1 }'); do
        grep -Eq "(^|\| )$rule([: ]|$)" rules || { echo "no row for $rule" && return 1; }
    done
}

@test "every row has four finite errors and 32 marks of trust" {
    [ "$(table ascii | wc -l)" -ge 18 ]
    table ascii | while IFS= read -r row; do
        [[ "$row" =~ ^.{18}(\ +[0-9.]+(e\+[0-9]+)?){4}\ \ [.1-8]{24}\ [.1-8]{8}$ ]] || { echo "$row" && exit 1; }
    done
}

@test "the mean is carried away and ref is not" {
    awk '/^rule .*far/ { on = 1 } on && $1 == "mean" { mean = $2 } on && $1 == "ref" { ref = $2 }
         END { exit !(mean > 100 && ref < 1) }' ascii
}

@test "32 agents, the last 8 of them malicious" {
    [ "$(agents ascii | wc -l)" -eq 32 ]
    [ "$(agents ascii | head -n 24 | grep -c honest)" -eq 24 ]
    [ "$(agents ascii | tail -n 8 | grep -c MALICIOUS)" -eq 8 ]
    [ "$(agents ascii | awk '{ print $1 }' | tr '\n' ' ')" = "$(seq -s ' ' 0 31) " ]
}

@test "vref ignores malicious agents under far and near, and trusts honest ones" {
    # agent, kind, then far near hidden broken of ref, then of vref
    agents ascii | awk '$2 == "MALICIOUS" && ($7 != "0.00" || $8 != "0.00") { print; bad = 1 }
                        $2 == "honest" && ($7 < 0.5 || $8 < 0.5) { print; bad = 1 }
                        END { exit bad }'
}

@test "rows with NaN or Inf are marked as left out" {
    grep -qF '*: left out for NaN or Inf' ascii
    [ "$(agents ascii | grep -c '0\.00\*$')" -eq 4 ]
    [ -z "$(agents ascii | grep honest | grep '\*')" ]
}

@test "no line is wider than a terminal of 80 columns" {
    [ -z "$(awk 'length > 80' ascii)" ]
}

@test "with LANG=C the output is ASCII" {
    LC_ALL=C run -1 grep -n '[^ -~]' ascii
}

@test "in a UTF-8 locale it has the same numbers, and blocks for trust" {
    [ -e utf8 ] || skip "no UTF-8 locale here"
    [ ! -s utf8.err ]
    grep -q '█' utf8
    diff <(agents ascii) <(agents utf8)
    diff <(table ascii | cut -c 1-45) <(table utf8 | cut -c 1-45)
}

@test "the output is the same twice, but for the time" {
    diff <(grep -v ' aggregations in ' ascii) <(grep -v ' aggregations in ' ascii2)
}

@test "output to a full device fails with a message, exit 1" {
    [ -c /dev/full ] || skip "no /dev/full here"
    run -1 --separate-stderr sh -c '"$REEF" demo >/dev/full'
    [[ "$stderr" == *"reef: writing the output: "* ]]
}

@test "demo takes no arguments" {
    run -2 --separate-stderr "$REEF" demo now
    [ -z "$output" ]
    [[ "$stderr" == *"now"* ]]
}
