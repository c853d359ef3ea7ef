# reef list: the registry as a user sees it.
bats_require_minimum_version 1.5.0

# Names of all rules and pre-aggregators, from the overview itself.
names() { "$REEF" list | awk '/^  [a-z]/ { print $1 }'; }

@test "list names rules and pre-aggregators with one line each" {
    run -0 "$REEF" list
    [ "${lines[0]}" = "Rules" ]
    [[ "$output" == *"Pre-aggregators"* ]]
    for rule in mean median trimmed meamed geomed krum multikrum bulyan mda cclip huber tukey ref vref \
        nnm bucketing clip arc; do
        grep -Eq "^  $rule +[^ ].+" <<<"$output"
    done
    [ -z "$(names | sort | uniq -d)" ]
}

@test "list RULE explains every rule that list names" {
    local count=0
    for rule in $(names); do
        run -0 "$REEF" list "$rule"
        [[ "${lines[0]}" == "$rule - "* ]]
        for part in "  kind:      " "Traits" "Parameters" "weights"; do
            [[ "$output" == *"$part"* ]] || { echo "$rule: no '$part' in: $output" && return 1; }
        done
        count=$((count + 1))
    done
    [ "$count" -ge 18 ]
}

@test "list RULE gives a default for every parameter, and rules the nan policy" {
    run -0 "$REEF" list ref
    for parameter in c=auto efficiency=0.95 scale=mad init=count tol=auto nan=drop-row; do
        grep -qx "  $parameter" <<<"$output"
    done
    [[ "$output" == *"mad|mad-exact|mad-finite|qn|s"* ]]
    [[ "$output" == *"drop-row|drop-coordinate|error"* ]]
    run -0 "$REEF" list nnm
    [[ "$output" != *"nan="* ]]
}

@test "list RULE says what it tolerates and where it is from" {
    run -0 "$REEF" list krum
    [[ "$output" == *"tolerates: f malicious of n inputs if n >= 2 f + 3"* ]]
    [[ "$output" == *"source:    Blanchard"* ]]
    [[ "$output" == *"refuses unequal weights"* ]]
}

@test "an unknown rule is refused with the nearest name" {
    run -2 --separate-stderr "$REEF" list trimed
    [ -z "$output" ]
    [[ "$stderr" == *"trimed"*"trimmed"* ]]
    run -2 --separate-stderr "$REEF" list zzzzzzzzzz
    [[ "$stderr" == *"zzzzzzzzzz"*"reef list"* ]]
}

@test "a spec is not the name of a rule" {
    for spec in "ref:c=4" "nnm | ref" ""; do
        run -2 --separate-stderr "$REEF" list "$spec"
        [ -z "$output" ]
        [ -n "$stderr" ]
    done
}

@test "list takes one rule at a time" {
    run -2 --separate-stderr "$REEF" list ref vref
    [ -z "$output" ]
    [[ "$stderr" == "reef list: "* ]]
}

@test "a name is found whatever it is, and a kind may be named in the singular" {
    run -0 "$REEF" list ipm
    [[ "$output" == ipm\ -\ * ]]
    run -0 "$REEF" list attack ipm
    [[ "$output" == ipm\ -\ * ]]
    run -0 "$REEF" list rule krum
    [[ "$output" == krum\ -\ * ]]
    run -2 "$REEF" list attack krum
}

@test "list of a rule that remembers senders names its tests" {
    run reef list mref
    [ "$status" -eq 0 ]
    [[ "$output" == *"Tests of every sender"*"long window"*"copies"* ]]
    [[ "$output" == *"Numbers about the round"*"short window: rounds"* ]]
    run reef list cclip
    [[ "$output" != *"Tests of every sender"* ]]
}
