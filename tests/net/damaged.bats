# State folders in which something is damaged, by accident or by somebody who can write there but has no key: an agent goes on with what is whole,
# or ends with a sentence; it never signs a round again.
bats_require_minimum_version 1.5.0

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cat >trial.yaml <<'END'
name: trial
agents: 5
graph: complete
rule: mref
repetitions: 1
problem: {kind: lms, dimension: 10, noise: 0.01}
strategy: {kind: diffusion, mu: 0.05}
rounds: 40
END
    "$REEF" swarm trial.yaml -q --no-figures -o done --keep keep
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return 1
    rm -rf state
    cp -r keep/state-3 state
}

# The agent of the folder `state`, which has done all its rounds: says at what round it is, and ends.
go_on() {
    run timeout 60 "$REEF" agent keep/run.yaml --key keep/key-3 --state state
    echo "exit $status: $output"
    [ "$status" -lt 124 ] # neither a hang nor a crash
    [ "$status" = 0 ] || [[ "$output" == *"reef agent: "* ]]
}

# Changes a file by a Python expression of its bytes b:  change FILE EXPRESSION
change() { python3 -c 'import sys; f = sys.argv[1]; b = bytearray(open(f, "rb").read()); b = eval(sys.argv[2]); open(f, "wb").write(b)' "$1" "$2"; }

flip='[b.__setitem__(i, b[i] ^ 1) for i in range(100, len(b), 64)] and b'

@test "a journal of which one place is damaged is whole; one that is damaged altogether, or another agent's, ends the agent" {
    for where in 0 512; do
        cp keep/state-3/journal state/journal
        change state/journal "b[:$where] + bytes(512) + b[$where + 512:]"
        go_on
        [ "$status" = 0 ]
    done
    for damage in 'b"x" * len(b)' "$flip" 'b[:700][::-1]' 'b * 3'; do
        cp keep/state-3/journal state/journal
        change state/journal "$damage"
        go_on
    done
    change state/journal 'b"x" * 1024'
    go_on
    [ "$status" = 3 ] || [ "$status" = 5 ]
    cp keep/state-2/journal state/journal
    go_on
    [ "$status" != 0 ]
}

@test "damaged checkpoints are as good as none: the journal still says which rounds were signed" {
    ls state/checkpoint.*
    for damage in "$flip" 'b[:-1]' 'b[:50]' 'b""' 'b + b"x"' 'bytes(len(b))'; do
        for file in keep/state-3/checkpoint.*; do
            cp "$file" state/
            change "state/${file##*/}" "$damage"
        done
        go_on
        [ "$status" = 0 ]
        [[ "$output" == *" round=40 "* ]]
    done
    cp keep/state-2/checkpoint.* state/ # another agent's
    go_on
    [ "$status" = 0 ]
    [[ "$output" == *" round=40 "* ]]
}

@test "proofs, run files to come and logs that are none are ignored" {
    echo garbage >state/proof-1
    head -c 640 /dev/urandom >state/proof-2
    head -c 640 /dev/zero >state/proof-99999999999999999999
    head -c 300000 /dev/urandom >state/run.next.yaml
    echo "reef: 1" >state/run.before.yaml
    mkdir state/proof-3
    head -c 100000 /dev/urandom >state/audit.log
    go_on
    [ "$status" = 0 ]
    [[ "$output" == *" excluded=0 "* ]]
    [[ "$output" == *" round=40 "* ]]
}

@test "a run file in the state folder that is damaged, or signed by somebody else, is not worked by" {
    for damage in "$flip" 'b""' 'b[: len(b) // 2]' 'b.replace(b"malicious:", b"#alicious:")'; do
        cp keep/run.yaml state/run.yaml
        change state/run.yaml "$damage"
        go_on
        [ "$status" = 0 ]
        [[ "$output" == *" round=40 "* ]]
    done
    echo garbage >state/coordinator
    go_on
    [ "$status" = 2 ]
}

@test "a state folder that everybody may write to is refused: who puts an old journal there has rounds signed twice" {
    for mode in 777 1777 702; do
        chmod $mode state
        go_on
        [ "$status" = 5 ]
        [[ "$output" == *"everybody may write to the state folder state"* ]]
    done
    chmod 775 state # a group is somebody's choice
    go_on
    [ "$status" = 0 ]
}
