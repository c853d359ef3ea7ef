# What is read: regular files, and messages that repeat nothing of files that were never meant for us.
bats_require_minimum_version 1.5.0

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# experiment GRAPH PROBLEM
experiment() {
    printf 'agents: 4\ngraph: "%s"\nproblem: "%s"\nstrategy: diffusion:mu=0.05\nrule: mean\nrounds: 5\nrepetitions: 1\n' "$1" "$2"
}

@test "a folder in the place of a file is called one, and one without results too" {
    mkdir folder
    run -3 --separate-stderr "$REEF" check folder
    [ "$stderr" = "reef check: folder: is a folder, not a file" ]
    run -3 --separate-stderr "$REEF" plot folder
    [ "$stderr" = "reef plot: folder has no manifest.json: it is not the results folder of a finished run" ]
    run -3 --separate-stderr "$REEF" plot nowhere
    [ "$stderr" = "reef plot: nowhere has no manifest.json: it is not the results folder of a finished run" ]
}

@test "no reader waits for a pipe or reads a device without end" {
    mkfifo pipe
    for path in pipe /dev/zero; do
        for problem in "softmax:data=(csv:path=$path)" "softmax:data=(libsvm:path=$path)" "softmax:data=(npy:features=$path,labels=$path)" \
            "softmax:data=(idx:images=$path,labels=$path)"; do
            experiment complete "$problem" >e.yaml
            run --separate-stderr timeout 10 "$REEF" check e.yaml
            [ "$status" -ne 0 ] && [ "$status" -ne 124 ]
            [[ "$stderr" == *"$path: is not a regular file"* ]]
        done
        experiment "file:path=$path" lms:dimension=2 >e.yaml
        run -3 --separate-stderr timeout 10 "$REEF" check e.yaml
        [[ "$stderr" == *"$path: is not a regular file"* ]]
        run -3 timeout 10 "$REEF" run "$path"
        run -3 --separate-stderr timeout 10 "$REEF" check "$path"
        [[ "$stderr" == *"$path: is not a regular file"* ]]
        run -3 --separate-stderr timeout 10 "$REEF" --plugin "$path" list
        [[ "$stderr" == *"cannot be loaded as a plug-in: it is not a regular file"* ]]
        mkdir -p a
        rm -f a/summary.csv
        ln -s "$(realpath "$path")" a/summary.csv
        run -3 timeout 10 "$REEF" compare a a
    done
}

@test "messages repeat nothing of data, graph and other files" {
    printf 'root:secret42:19000:0:99999:7:::\nuser:secret43:1::::::\n' >shadow
    local tried=0
    for problem in "softmax:data=(csv:path=shadow)" "softmax:data=(csv:path=shadow,header=no,separator=space)" \
        "softmax:data=(libsvm:path=shadow)" "softmax:data=(npy:features=shadow,labels=shadow)" "softmax:data=(idx:images=shadow,labels=shadow)"; do
        experiment complete "$problem" >e.yaml
        run --separate-stderr "$REEF" check e.yaml
        [ "$status" -ne 0 ]
        [[ "$stderr" == *"shadow:"* ]] && [[ "$output$stderr" != *secret* ]]
        tried=$((tried + 1))
    done
    [ "$tried" -eq 5 ]
    for format in edges matrix; do
        experiment "file:path=shadow,format=$format" lms:dimension=2 >e.yaml
        run -2 --separate-stderr "$REEF" check e.yaml
        [[ "$stderr" == *"shadow:1: "* ]] && [[ "$stderr" != *secret* ]]
    done
    run -2 --separate-stderr "$REEF" run shadow
    [[ "$stderr" != *secret* ]]
    printf 'root:secret42:19000:0:99999:7:::\nuser: x\n' >shadow
    run -2 --separate-stderr "$REEF" run shadow
    [[ "$stderr" != *secret* ]]
    # 8 bytes of it, read as a number
    run -3 --separate-stderr "$REEF" aggregate shadow shadow -o out
    [ "$stderr" = "reef aggregate: shadow: byte 0: this is not a safetensors file: it does not begin with the length of a header" ]
}

@test "a ring of a million agents and a hundred thousand cells are checked in seconds of processor time" {
    experiment ring lms:dimension=2 | sed 's/^agents: .*/agents: 1000000/' >ring.yaml
    run -0 bash -c 'ulimit -t 12 && "$REEF" check ring.yaml'
    [[ "$output" == *"gap at most "* ]]
    local numbers
    numbers=$(seq -s ', ' 316)
    experiment complete lms:dimension=4 | sed "s/^strategy: .*/strategy: {kind: diffusion, mu: [${numbers//, /e-4, }e-4]}/" >cells.yaml
    printf 'malicious: 0\nattack: {kind: additive, delta: [%s]}\n' "$numbers" >>cells.yaml
    run -0 bash -c 'ulimit -t 12 && "$REEF" check cells.yaml | tail -n 2 | head -n 1'
    [ "$output" = "cells: 99856 configurations can be run, 0 warnings" ]
}
