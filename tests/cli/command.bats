# The command itself: help, version, exit codes, broken outputs.
bats_require_minimum_version 1.5.0

# Commands named by the overview, without help and version.
commands() { "$REEF" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx -e help -e version; }

@test "without arguments: the overview on stderr, exit 2" {
    run -2 --separate-stderr "$REEF"
    [ -z "$output" ]
    [[ "$stderr" == "Usage: reef [--plugin PATH]... COMMAND"* ]]
}

@test "help, --help and -h are the same, on stdout" {
    run -0 --separate-stderr "$REEF" help
    local text=$output
    [ -z "$stderr" ]
    [[ "$text" == "Usage: reef [--plugin PATH]... COMMAND"* ]]
    for way in --help -h "help help" "help --help" "help version"; do
        run -0 "$REEF" $way
        [ "$output" = "$text" ]
    done
}

@test "the overview names demo, list, help and version, and the exit codes" {
    run -0 "$REEF" help
    for name in demo list help version; do
        grep -Eq "^  $name +[^ ].+" <<<"$output"
    done
    [[ "$output" == *"Exit codes: 0 "*"1 "*"2 "* ]]
}

@test "each command has --help, -h and help COMMAND, all the same" {
    [ -n "$(commands)" ]
    for name in $(commands); do
        run -0 --separate-stderr "$REEF" "$name" --help
        local text=$output
        [[ "$text" == "Usage: reef $name"* ]]
        [ -z "$stderr" ]
        run -0 "$REEF" "$name" -h
        [ "$output" = "$text" ]
        run -0 "$REEF" help "$name"
        [ "$output" = "$text" ]
    done
}

@test "version, --version and -V print the version" {
    for way in version --version -V; do
        run -0 --separate-stderr "$REEF" "$way"
        [[ "$output" =~ ^reef\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
        [ -z "$stderr" ]
    done
}

@test "an unknown command is named, exit 2" {
    run -2 --separate-stderr "$REEF" aggregate-everything
    [ -z "$output" ]
    [[ "$stderr" == "reef: "*"aggregate-everything"*"reef help"* ]]
    run -2 --separate-stderr "$REEF" help aggregate-everything
    [[ "$stderr" == *"aggregate-everything"* ]]
    run -2 "$REEF" --no-such-option
    run -2 "$REEF" ""
}

@test "output to a full device fails with a message, exit 1" {
    [ -c /dev/full ] || skip "no /dev/full here"
    for command in "help" "version" "list" "list ref" "list --help"; do
        # shellcheck disable=SC2086 # two words
        run -1 --separate-stderr sh -c "\"\$REEF\" $command >/dev/full"
        [[ "$stderr" == "reef: writing the output: "* ]] || { echo "$command: $stderr" && return 1; }
    done
}

@test "a closed output fails, exit 1" {
    run -1 --separate-stderr sh -c '"$REEF" list >&-'
    [[ "$stderr" == "reef: writing the output: "* ]]
}

@test "wrong usage stays exit 2 even when the output is full" {
    [ -c /dev/full ] || skip "no /dev/full here"
    run -2 sh -c '"$REEF" list no-such-rule >/dev/full'
}

@test "a reader that goes away ends the command quietly" {
    run -0 --separate-stderr sh -c '"$REEF" list | head -n 1'
    [ "$output" = "Rules" ]
    [ -z "$stderr" ]
}

@test "no library is loaded from the current folder" {
    cd "$BATS_TEST_TMPDIR"
    readelf --dynamic "$REEF" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' >needed
    [ -s needed ]
    while read -r name; do
        echo "not a library" >"$name" # whoever loads it fails
    done <needed
    run -0 "$REEF" --version
}

@test "the command that was meant is named, whatever letter is wrong" {
    for typed in chekc compar rnu aggreagte lst; do
        run -2 --separate-stderr "$REEF" "$typed"
        [[ "$stderr" == *"did you mean '"* ]] || { echo "$typed: $stderr" && return 1; }
    done
    run -2 --separate-stderr "$REEF" zzzzzz
    [[ "$stderr" != *"did you mean"* ]]
    run -2 --separate-stderr "$REEF" run x.yaml --treads 4
    [[ "$stderr" == *"did you mean --threads?"* ]]
}

@test "colours on a terminal only, and not with NO_COLOR or TERM=dumb" {
    command -v script >/dev/null || skip "no script(1) here"
    on_terminal() { script -qec "$1" /dev/null </dev/null; }
    [[ "$(TERM=xterm NO_COLOR='' on_terminal "\"$REEF\" help")" == *$'\033[1m'* ]]
    [[ "$(TERM=xterm NO_COLOR=1 on_terminal "\"$REEF\" help")" != *$'\033'* ]]
    [[ "$(TERM=dumb on_terminal "\"$REEF\" help")" != *$'\033'* ]]
    [[ "$(TERM=xterm "$REEF" help)" != *$'\033'* ]]
}
