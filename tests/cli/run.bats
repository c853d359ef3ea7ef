# reef run, check, init: from a YAML file to results, and every way to get it wrong.
bats_require_minimum_version 1.5.0
load parts

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >small.yaml <<'YAML'
agents: 8
graph: complete
problem: {kind: lms, dimension: 4}
strategy: diffusion:mu=0.05
rule: [mean, ref]
malicious: [0, 2]
attack: additive:delta=10
rounds: 60
repetitions: 20
YAML
}

@test "run writes summary, curves, manifest and the configuration" {
    run -0 --separate-stderr "$REEF" run small.yaml
    [[ "$output" == *"results in results/small. Report: results/small/report.html"* ]]
    for file in summary.csv curves.csv manifest.json config.yaml check.txt report.html; do
        [ -s "results/small/$file" ]
    done
    cmp small.yaml results/small/config.yaml
    [ "$(wc -l <results/small/summary.csv)" -eq 5 ]
    [[ "$(head -n 1 results/small/summary.csv)" == "cell,rule,malicious,repetitions,msd_db,msd,msd_se,theory_db,oracle_db,oracle,oracle_se,note,config.agents,"* ]]
    [ "$(wc -l <results/small/curves.csv)" -eq $((1 + 4 * 61)) ]
    grep -q '"rule": "mean' results/small/manifest.json
    [ -z "$(find results -name '*.tmp')" ]
}

@test "run -o, --set and --quiet" {
    run -0 --separate-stderr "$REEF" run small.yaml --quiet -o elsewhere --set 'rule=[median]' --set strategy.mu=0.1
    [ -z "$output" ] && [ -z "$stderr" ]
    [ "$(wc -l <elsewhere/summary.csv)" -eq 3 ]
    grep -q 'strategy.mu=0.1' elsewhere/manifest.json
    [ ! -e results ]
}

@test "results go through symbolic links, which stay, and files keep their modes" {
    mkdir store elsewhere
    ln -s store linked
    run -0 "$REEF" run small.yaml --quiet --no-figures -o linked
    [ -L linked ]
    mv store/summary.csv elsewhere
    ln -s ../elsewhere/summary.csv store/summary.csv
    chmod 600 elsewhere/summary.csv store/curves.csv
    echo old >elsewhere/summary.csv
    run -0 "$REEF" run small.yaml --quiet --no-figures -o linked
    [ -L linked ] && [ "$(readlink store/summary.csv)" = ../elsewhere/summary.csv ]
    [ "$(wc -l <elsewhere/summary.csv)" -eq 5 ]
    [ "$(stat -c %a elsewhere/summary.csv store/curves.csv)" = $'600\n600' ]
    run -2 --separate-stderr "$REEF" run small.yaml -o -
    [ ! -e ./- ]
}

@test "the number of threads and a resume change no byte" {
    "$REEF" run small.yaml -q -o one --threads 1
    "$REEF" run small.yaml -q -o two --threads 2
    cmp one/summary.csv two/summary.csv
    cmp one/curves.csv two/curves.csv
    rm two/summary.csv "two/cells/$(find two/cells -type f -printf '%f\n' | head -n 1)"
    run -0 "$REEF" run small.yaml -o two --resume
    [[ "$output" == *"(3 reused from the previous run)"* ]]
    cmp one/summary.csv two/summary.csv
}

@test "killed and resumed gives the same bytes" {
    local more=(--set rounds=4000 --set repetitions=200 --set 'rule=[mean, ref, median, huber]') status=0 left
    "$REEF" run small.yaml -q -o whole "${more[@]}"
    "$REEF" run small.yaml -q -o parts "${more[@]}" --threads 1 &
    local job=$!
    for _ in $(seq 1000); do
        [ -z "$(find parts/cells -name '*.txt' 2>/dev/null)" ] || break
        sleep 0.02
    done
    kill -9 "$job"
    wait "$job" || status=$?
    [ "$status" -eq 137 ]
    # the kill came in the middle: some of the 8 cells are there, not all, and no table
    left=$(find parts/cells -name '*.txt' | wc -l)
    [ "$left" -ge 1 ] && [ "$left" -lt 8 ]
    [ ! -e parts/summary.csv ]
    run -0 "$REEF" run small.yaml -o parts "${more[@]}" --resume
    [[ "$output" == *"($left reused from the previous run)"* ]]
    cmp whole/summary.csv parts/summary.csv
    cmp whole/curves.csv parts/curves.csv
}

@test "damaged cells and models are run again, and it is said" {
    "$REEF" run small.yaml -q -o a --no-figures --save-models
    for file in "$(ls a/cells/*.txt | head -1)" "$(ls a/cells/*.safetensors | tail -1)"; do
        cp -r a b
        file=b/${file#a/}
        size=$(stat -c %s "$file")
        cp "$file" whole # what lies in models/ is the same file by another name
        rm "$file"
        { head -c $((size / 2)) whole && printf X && tail -c +$((size / 2 + 2)) whole; } >"$file"
        run -0 --separate-stderr "$REEF" run small.yaml -q -o b --no-figures --save-models --resume
        [ "$stderr" = "reef run: 1 damaged file in b; the results were computed again" ]
        diff -r --exclude=manifest.json --exclude=report.html a b
        rm -r b
    done
    run -0 --separate-stderr "$REEF" run small.yaml -q -o a --no-figures --save-models --resume
    [ -z "$stderr" ]
}

@test "a folder of another configuration is left alone without --force" {
    "$REEF" run small.yaml -q -o r --no-figures --npy --save-models
    cp -r r before
    run -1 --separate-stderr "$REEF" run small.yaml -q -o r --no-figures --set seed=5
    [[ "$stderr" == *"another configuration"*"--force"* ]]
    sed 's/^name.*//; 1i # changed' small.yaml >other.yaml
    run -1 --separate-stderr "$REEF" run other.yaml -q -o r --no-figures --resume
    diff -r before r
    "$REEF" run small.yaml -q -o r --no-figures # the same once more: without what is not asked for
    [ ! -e r/arrays ] && [ ! -e r/models ] && [ -e r/manifest.json ]
    "$REEF" run small.yaml -q -o r --no-figures --set seed=5 --force
    "$REEF" run small.yaml -q -o fresh --no-figures --set seed=5
    diff r/summary.csv fresh/summary.csv && diff r/overrides.txt fresh/overrides.txt
    run -1 "$REEF" run small.yaml -q -o r --no-figures
}

@test "only what runs have written is removed from a folder" {
    mkdir -p r/models r/arrays r/checkpoints
    touch r/models/mine.pt r/arrays/mine.npy r/checkpoints/epoch-3.pt r/checkpoints/0123456789abcdef-0.40.1.safetensors
    "$REEF" run small.yaml -q -o r --no-figures --npy --save-models
    "$REEF" run small.yaml -q -o r --no-figures
    [ "$(ls r/models r/arrays r/checkpoints | tr '\n' ' ')" = "r/arrays: mine.npy  r/checkpoints: epoch-3.pt  r/models: mine.pt " ]
}

@test "files of the same names that are of no run are left alone without --force" {
    for name in manifest.json report.html summary.csv curves.csv trust.csv check.txt; do
        rm -rf r && mkdir r && echo precious >"r/$name"
        run -1 --separate-stderr "$REEF" run small.yaml -q -o r --no-figures
        [[ "$stderr" == *"r has a $name but no config.yaml"*"--force"* ]]
        [ "$(cat "r/$name")" = precious ]
        run -1 "$REEF" run small.yaml -q -o r --no-figures --resume
        [ "$(cat "r/$name")" = precious ]
    done
    "$REEF" run small.yaml -q -o r --no-figures --force
    [ -s r/manifest.json ]
    "$REEF" run small.yaml -q -o r --no-figures
}

@test "a results folder that somebody sent writes nowhere else when it is drawn" {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    "$REEF" run small.yaml -q -o r --no-figures
    rm r/report.html
    for name in report.html figures/curves.svg figures/curves.gp figures/curves.dat; do
        echo precious >"file-${name##*/}"
        rm -f "r/$name"
        ln -s "$PWD/file-${name##*/}" "r/$name"
    done
    run -0 "$REEF" plot r
    [ "$(cat file-* | sort -u)" = precious ]
    [ -s r/report.html ] && [ -s r/figures/curves.svg ]
    mkdir mine
    echo precious >mine/curves.pdf
    rm -r r/figures
    ln -s ../mine r/figures
    run -3 "$REEF" plot r
    [[ "$output" == *"r/figures: is a symbolic link"* ]]
    [ "$(ls mine)" = curves.pdf ] && [ "$(cat mine/curves.pdf)" = precious ]
}

@test "one run at a time in a folder, and the manifest only when it is complete" {
    "$REEF" run small.yaml -q -o r --no-figures
    "$REEF" run small.yaml -q -o r --no-figures --force --set rounds=2000000 &
    first=$!
    while [ -e r/manifest.json ]; do sleep 0.05; done
    run -1 "$REEF" run small.yaml -q -o r --no-figures --force
    run -1 --separate-stderr "$REEF" run small.yaml -q -o r --no-figures --force
    kill -9 "$first"
    wait "$first" || true
    [[ "$stderr" == *"r is in use: process $first on "*" is running in it" ]]
    [ ! -e r/manifest.json ] && [ ! -e r/report.html ]
    "$REEF" run small.yaml -q -o r --no-figures --force
    [ -e r/manifest.json ]
}

@test "an interrupt stops cleanly and says how to go on, exit 1" {
    # Jobs in the background of a shell ignore SIGINT; SIGTERM is handled alike.
    "$REEF" run small.yaml -o parts --set rounds=1000000 --set repetitions=64 2>message &
    local job=$! status=0
    sleep 0.5
    kill -TERM "$job"
    wait "$job" || status=$?
    [ "$status" -eq 1 ]
    grep -q -e "--resume" message
    [ ! -e parts/summary.csv ]
}

@test "SIGHUP and SIGTERM stop cleanly too, and --resume sweeps what a kill left" {
    for signal in HUP TERM; do
        # under nohup, what starts ignores SIGHUP unless it is told otherwise
        env --default-signal=HUP "$REEF" run small.yaml -q -o r --set repetitions=100000 2>said 3>&- &
        local pid=$!
        until [ -d r/cells ]; do sleep 0.01; done
        sleep 0.3
        kill "-$signal" "$pid"
        local code=0
        wait "$pid" || code=$?
        [ "$code" -eq 1 ]
        grep -q "interrupted" said
        rm -r r
    done
    "$REEF" run small.yaml -q --no-figures -o r
    sleep 0 &
    local dead=$!
    wait "$dead"
    touch "r/summary.csv.$dead-0.tmp" "r/cells/x.txt.$dead-1.tmp" "r/cells/x.txt.$$-0.tmp" r/notes.tmp
    "$REEF" run small.yaml -q --no-figures -o r --resume
    [ "$(find r -name '*.tmp' | LC_ALL=C sort)" = "r/cells/x.txt.$$-0.tmp
r/notes.tmp" ]
}

@test "a typo is placed and explained, exit 2, and nothing is written" {
    sed 's/problem: {kind: lms, dimension: 4}/problem: {kind: lms, dimention: 4}/' small.yaml >typo.yaml
    run -2 --separate-stderr "$REEF" run typo.yaml
    [ -z "$output" ]
    [[ "$stderr" == "reef run: typo.yaml:3:22: "*"did you mean 'dimension'"* ]]
    [ ! -e results ]
    run -2 --separate-stderr "$REEF" check typo.yaml
    [[ "$stderr" == "reef check: typo.yaml:3:22: "* ]]
}

@test "wrong usage is exit 2, a file that is not there exit 3" {
    run -2 --separate-stderr "$REEF" run
    [[ "$stderr" == *"the experiment is missing"* ]]
    run -2 "$REEF" run small.yaml other.yaml
    run -2 "$REEF" run small.yaml --nonsense
    run -2 "$REEF" run small.yaml --threads many
    run -2 "$REEF" run small.yaml --set
    run -2 "$REEF" run small.yaml --set rule
    run -3 --separate-stderr "$REEF" run nowhere.yaml
    [[ "$stderr" == "reef run: nowhere.yaml: "* ]]
    run -2 "$REEF" check
    run -3 "$REEF" check nowhere.yaml
}

@test "a folder that cannot be made is exit 1" {
    touch file
    run -1 --separate-stderr "$REEF" run small.yaml -q -o file/sub
    [[ "$stderr" == "reef run: "* ]]
}

@test "check says what to expect, and warns" {
    run -0 "$REEF" check small.yaml
    [[ "$output" == *"theory     MSD -"*"4 configurations can be run, 0 warnings"* ]]
    run -0 "$REEF" check small.yaml --set malicious=4
    [[ "$output" == *"WARNING    no honest majority at agent "*"(50 % honest) and 3 more agents"* ]]
}

@test "init writes an experiment that checks, and never over a file" {
    run -0 "$REEF" init mine.yaml
    run -0 "$REEF" check mine.yaml
    [[ "$output" == *"9 configurations can be run, 0 warnings"* ]]
    run -1 "$REEF" init mine.yaml
    [ "$output" = "reef init: mine.yaml: exists already; give another name" ]
    run -0 --separate-stderr "$REEF" init -
    [ "$output" = "$(cat mine.yaml)" ]
    run -2 "$REEF" init a b
}

@test "the published experiments run, in a short form, and stand in their README" {
    local folder=$BATS_TEST_DIRNAME/../../experiments
    for file in "$folder"/*.yaml; do
        local name
        name=$(basename "$file" .yaml)
        run -0 "$REEF" check "$file"
        "$REEF" run "$file" -q --no-figures --set rounds=12 --set steady=4 --set every=4 --set repetitions=1
        [ "$(wc -l <"results/$name/summary.csv")" -gt 1 ]
        [ -z "$(cut -d , -f 1-12 "results/$name/summary.csv" | grep -- '-inf')" ]
        grep -qF "[$name]($name.yaml)" "$folder/README.md"
    done
}

@test "the paper's figure is drawn from what a run leaves" {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    local tree=$BATS_TEST_DIRNAME/../..
    for name in paper_delta paper_rate; do
        "$REEF" run "$tree/experiments/$name.yaml" -q --no-figures --set rounds=60 --set steady=20 --set repetitions=1
    done
    gnuplot -e "results='results'; kind='svg'" "$tree/scripts/paper.gp"
    grep -q '</svg>' results/paper.svg
    for word in "VREF, one malicious agent" "oracle, delta = 1000" "contamination rate" "theory"; do
        grep -qF "$word" results/paper.svg
    done
}

@test "list names graphs, weights, links, problems, strategies and attacks" {
    for kind in graphs:complete weights:metropolis links:failing problems:lms strategies:diffusion attacks:additive; do
        run -0 "$REEF" list "${kind%:*}"
        grep -Eq "^  ${kind#*:} +[^ ].+" <<<"$output"
        run -0 "$REEF" list "${kind%:*}" "${kind#*:}"
        [[ "${lines[0]}" == "${kind#*:} - "* ]]
        [[ "$output" == *"Parameters"* ]]
        run -2 "$REEF" list "${kind%:*}" no-such-thing
    done
    run -0 "$REEF" list rules ref
    [[ "${lines[0]}" == "ref - "* ]]
}

@test "plot draws what run has prepared" {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    "$REEF" run small.yaml -q --no-figures -o r --set 'malicious=[0, 1, 2]'
    [ -z "$(find r -name '*.svg')" ]
    run -0 "$REEF" plot r
    for name in curves final heat; do
        grep -q '</svg>' "r/figures/$name.svg"
        [ -s "r/figures/$name.png" ] && [ -s "r/figures/$name.pdf" ]
    done
    # Figures of another run in the same folder do not stay.
    "$REEF" run small.yaml -q --no-figures -o r --force
    [ ! -e r/figures/heat.svg ] && [ ! -e r/figures/heat.gp ] && [ -e r/figures/curves.gp ]
    run -3 "$REEF" plot nowhere
    run -2 "$REEF" plot
}

@test "plot runs no script that the folder brought" {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    "$REEF" run small.yaml -q --no-figures -o r --set "name='it''s'" --set 'malicious=[0, 2]'
    for name in curves final heat matrix graph; do
        echo "system 'touch $PWD/pwned-$name'" >"r/figures/$name.gp"
    done
    echo "system 'touch $PWD/pwned-start'" | tee r/figures/.gnuplot >r/.gnuplot
    cp r/figures/curves.dat before.dat
    run -0 "$REEF" plot r
    [ -z "$(find . -name 'pwned*')" ]
    cmp r/figures/curves.dat before.dat
    grep -q "^set title 'it_s: " r/figures/curves.gp
    grep -q '</svg>' r/figures/curves.svg
    # nor a program that it brought, where the current folder is in the PATH
    printf '#!/bin/sh\ntouch %q\n' "$PWD/pwned-program" >r/figures/gnuplot
    chmod +x r/figures/gnuplot
    PATH=:$PATH:. run -0 "$REEF" plot r
    PATH=. run -1 "$REEF" plot r
    [[ "$output" == *"gnuplot not found"* ]]
    [ ! -e pwned-program ]
    # what cannot be replaced is not run either
    rm -f r/figures/graph.gp
    mkdir r/figures/graph.gp
    run -3 --separate-stderr "$REEF" plot r
    [[ "$stderr" == *"graph.gp: cannot remove"* ]]
    rmdir r/figures/graph.gp
    # damaged or missing results are not drawn
    rm "$(find r/cells -name '*.txt' | head -n 1)"
    run -3 --separate-stderr "$REEF" plot r
    [[ "$stderr" == *"reef run --resume"* ]]
    echo junk >r/manifest.json
    run -3 "$REEF" plot r
}

@test "control characters: refused in the file, harmless in names and messages" {
    local escape=$'\e'
    for line in 'name: "a\e[2Jb"' 'name: "a\nb"' 'graph: "file:path=\e[2J"' 'rule: "\e]0;x\a"'; do
        { grep -v "^${line%%:*}:" small.yaml && echo "$line"; } >hostile.yaml
        run -2 --separate-stderr "$REEF" run hostile.yaml
        [[ "$stderr" != *"$escape"* ]]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
    done
    [ ! -e results ]
    cp small.yaml $'h\e[2J.yaml'
    run -0 --separate-stderr "$REEF" run $'h\e[2J.yaml' --no-figures
    [[ "$output$stderr" != *"$escape"* ]]
    [ -d 'results/h?[2J' ]
    run --separate-stderr "$REEF" run $'no\e[2J.yaml'
    [[ "$output$stderr" != *"$escape"* ]]
    run --separate-stderr "$REEF" aggregate $'no\e[2J.st' -o out
    [[ "$output$stderr" != *"$escape"* ]]
    for name in a $'b\e[2J' c; do
        # a header of 64 bytes, then one number
        printf '\x40\0\0\0\0\0\0\0%-64s\0\0\x80\x3f' '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' >"$name.st"
    done
    run -0 --separate-stderr "$REEF" aggregate a.st $'b\e[2J.st' c.st -o out.st --trust - --trust-tensors tensors.csv
    [[ "$output" == *'"b?[2J.st",1,'* ]]
    [[ "$output$stderr$(cat tensors.csv)" != *"$escape"* ]]
    cp a.st $'d\302\233.st' # as two bytes
    run -0 --separate-stderr "$REEF" aggregate a.st c.st $'d\302\233.st' -o out.st --trust trust.csv
    [[ "$output" == *'d??.st '* ]]
    [[ "$(cat trust.csv)" == *'"d?.st",1,'* ]]
    for words in "run small.yaml --no-figures -o r" "init f" "init no/f" "plot r"; do
        # shellcheck disable=SC2086 # words
        run --separate-stderr "$REEF" $words$'\e[2J'
        [ -n "$output$stderr" ]
        [[ "$output$stderr" != *"$escape"* ]]
    done
    REEF_ISA=$'\e[2J' run -0 --separate-stderr "$REEF" doctor
    [[ "$output$stderr" != *"$escape"* ]]
    mkdir a
    sed $'s/mean/\e[2J/' 'results/h?[2J/summary.csv' >a/summary.csv
    run --separate-stderr "$REEF" compare a a --all
    [ "$status" -eq 0 ]
    [[ "$output$stderr" != *"$escape"* ]]
}

# Right-to-left override, isolate, left-to-right mark, byte order mark: what stands behind them is read as something else.
@test "characters that turn text round or show nothing: refused in the file, hidden in messages and tables, exact in JSON" {
    local marks=$'\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8e\xef\xbb\xbf' hidden='????????????'
    { grep -v "^name:" small.yaml && echo 'name: "a\u202Eb"'; } >hostile.yaml
    run -2 --separate-stderr "$REEF" run hostile.yaml
    [[ "$stderr" == *"control character"* ]]
    run ! --separate-stderr "$REEF" run "no${marks}.yaml"
    [[ "$stderr" == *"no$hidden.yaml"* ]]
    for name in a "b$marks" c; do
        printf '\x40\0\0\0\0\0\0\0%-64s\0\0\x80\x3f' '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' >"$name.st"
    done
    run -0 --separate-stderr "$REEF" aggregate a.st "b$marks.st" c.st -o out.st --trust trust.csv
    [[ "$output$stderr" == *"b$hidden.st"* ]]
    [[ "$(cat trust.csv)" == *'"b????.st",1,'* ]]
    for mark in $'\xe2\x80\xae' $'\xe2\x81\xa6' $'\xe2\x80\x8e' $'\xef\xbb\xbf'; do [[ "$output$stderr$(cat trust.csv)" != *"$mark"* ]]; done
    "$REEF" aggregate a.st "b$marks.st" c.st -o out.json.st --json >text.json
    python3 - text.json <<'PROGRAM'
import json, sys
text = open(sys.argv[1], encoding="utf-8").read()
assert text.isascii(), text
assert any("b\u202e\u2066\u200e\ufeff.st" in file.values() for file in json.loads(text)["files"]), text
PROGRAM
}

@test "texts of the file cannot run commands in gnuplot" {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    run -0 "$REEF" run small.yaml -q -o r --set "name='a\`touch pwned\` b'"
    [ -s r/figures/curves.svg ]
    [ ! -e pwned ] && [ ! -e r/figures/pwned ]
}

@test "without gnuplot the results are there, and a note" {
    mkdir bin
    run -0 --separate-stderr env PATH="$PWD/bin" "$REEF" run small.yaml -q -o r
    [[ "$stderr" == *"gnuplot not found"* ]]
    [ -s r/summary.csv ]
}

@test "models are files that can be merged, arrays can be read, trust is a table" {
    "$REEF" run small.yaml -q -o r --no-figures --npy --save-models --set trust=true
    [ "$(wc -l <r/trust.csv)" -eq $((1 + 4 * 8)) ]
    [ "$(head -n 1 r/trust.csv)" = "cell,rule,malicious,agent,malicious,trust,trust_se,why" ]
    run -0 "$REEF" aggregate r/models/cell-*.safetensors -o merged.safetensors
    [[ "$output" == *"in 2 tensors of 4 files"* ]]
    run -0 "$REEF" aggregate --rule mean r/arrays/msd.npy -o copy.npy
    cmp r/arrays/msd.npy copy.npy
    "$REEF" run small.yaml -q -o r --no-figures --force
    [ ! -e r/trust.csv ]
    run -0 "$REEF" run small.yaml -o r --no-figures --resume --save-models
    [[ "$output" != *"reused from the previous run"* ]]
}

@test "a classifier's model has its layers" {
    "$REEF" run small.yaml -q -o r --no-figures --save-models --set 'problem={kind: mlp, data: digits}' --set rounds=2 --set repetitions=1
    for name in layer0.weight layer0.bias layer1.weight agents; do
        head -c 500 r/models/cell-0.safetensors | grep -aq "\"$name\""
    done
}

@test "trust needs a rule" {
    run -2 --separate-stderr "$REEF" run small.yaml --set strategy=local --set trust=true
    [[ "$stderr" == *"trust cannot be measured: local does not use an aggregation rule"* ]]
}

@test "compare finds what differs beyond noise, and nothing else" {
    "$REEF" run small.yaml -q -o a --no-figures
    "$REEF" run small.yaml -q -o b --no-figures --set seed=2
    "$REEF" run small.yaml -q -o c --no-figures --set problem.noise=4
    run -0 "$REEF" compare a a
    [[ "$output" == *"4 configurations matched (A: 4, B: 4); 0 differences"* ]]
    run -0 "$REEF" compare a b
    run -1 "$REEF" compare a c
    [[ "$output" == *"rule=ref malicious=0  msd: "*" dB, difference "*"standard errors)"* ]]
    "$REEF" run small.yaml -q -o d --no-figures --set 'rule=[mean]'
    run -0 "$REEF" compare d a
    [[ "$output" == *"2 configurations matched (A: 2, B: 4)"* ]]
    run -0 "$REEF" compare a d --all
    [[ "$output" == *"rule=mean malicious=2  msd: "* ]]
    run -3 --separate-stderr "$REEF" compare a nowhere
    [[ "$stderr" == *"nowhere/summary.csv"* ]]
    run -2 "$REEF" compare a
    run -2 "$REEF" compare a b --sigma none
}

@test "doctor says what is missing and how to get it" {
    has_part MPI || skip "built without MPI"
    run -0 "$REEF" doctor
    [[ "$output" == *MPI* ]]
    REEF_MPI=/nowhere/libreef_mpi.so run -0 "$REEF" doctor
    [[ "$output" == *"MPI  "*nowhere*"to get it: install libopenmpi-dev"*" optional part"*" missing"* ]]
}

@test "doctor and bench tell of this machine" {
    run -0 "$REEF" doctor
    [[ "$output" == *"instructions "*"threads "*"self-test      passed"* ]]
    REEF_ISA=scalar run -0 "$REEF" doctor
    [[ "$output" == *"instructions   scalar, capped by REEF_ISA=scalar"* ]]
    PATH=/nowhere run -0 "$REEF" doctor
    [[ "$output" == *"gnuplot        missing"*"to get it: install gnuplot-nox"* ]]
    run -0 "$REEF" bench --rows 8 --length 2000 --repeats 1
    for rule in mean median ref vref; do
        grep -Eq "^$rule +[0-9.]+ +[0-9.]+ +[0-9.]+$" <<<"$output"
    done
    run -2 "$REEF" bench --rows 2
    run -2 "$REEF" doctor now
}

@test "a field that is a list takes one, and a list of lists is swept" {
    cat >net.yaml <<'YAML'
agents: 4
problem: {kind: mlp, data: digits, partition: "dirichlet:alpha=1,min=2", hidden: [[8, 4], [6]]}
strategy: federated
rule: mean
rounds: 1
YAML
    "$REEF" run net.yaml -q --no-figures
    [ "$(cut -d , -f 1-2 results/net/summary.csv)" = "$(printf 'cell,problem.hidden\n0,8 4\n1,6')" ]
    grep -q 'hidden=(8,4)' results/net/manifest.json
    "$REEF" run net.yaml -q --no-figures --set 'problem.hidden=[8, 4]' -o one
    [ "$(wc -l <one/summary.csv)" -eq 2 ]
    run -2 "$REEF" run net.yaml --set 'problem.hidden=[[8, x]]'
}

@test "the table has standard errors, and no column that is empty" {
    run -0 --separate-stderr env LC_ALL=C "$REEF" run small.yaml --no-figures
    [[ "${lines[0]}" == *"rule"*"malicious"*"repetitions"*"msd [dB]"*"theory [dB]"* ]]
    [[ "${lines[0]}" != *"oracle"* ]]
    grep -Eq 'ref +2 +20 +-[0-9.]+ \+- [0-9.]+ ' <<<"${lines[4]}"
    [ "${#lines[@]}" -eq 6 ]
}

@test "run shows the warnings of check before it starts, and --quiet does not" {
    run -0 --separate-stderr "$REEF" run small.yaml --no-figures --set 'malicious=[0, 4]' -o a
    [[ "$stderr" == "WARNING  no honest majority at agent "*"(in 2 of 4 configurations, first: rule=mean malicious=4)"* ]]
    run -0 --separate-stderr "$REEF" run small.yaml --quiet --no-figures --set malicious=4 -o b
    [ -z "$stderr" ]
}

@test "an experiment from standard input" {
    "$REEF" run small.yaml -q --no-figures -o file
    "$REEF" run - -q --no-figures -o input <small.yaml
    cmp file/summary.csv input/summary.csv
    cmp small.yaml input/config.yaml
    run -0 "$REEF" check - <small.yaml
    [[ "$output" == *"standard_input: 4 configurations can be run"* ]]
    run -2 --separate-stderr "$REEF" check - <<<"agents: [1"
    [[ "$stderr" == *"standard_input:"* ]]
}

@test "many configurations are summed up by check" {
    run -0 "$REEF" check small.yaml --set 'malicious=[0, 1, 2, 3, 4, 5]' --set 'attack.delta=[1, 10]'
    [ "${#lines[@]}" -lt 10 ]
    [[ "$output" == *"WARNING  no honest majority at agent "*"(in 4 of 24 configurations, first: rule=mean malicious=4 "* ]]
    [[ "$output" == *"24 configurations can be run, "*" warnings"* ]]
    run -0 "$REEF" check small.yaml --set 'malicious=[0, 1, 2, 3, 4, 5]' --set 'attack.delta=[1, 10]' --all
    [ "$(grep -c '^configuration ' <<<"$output")" -eq 24 ]
    run -0 "$REEF" check small.yaml --set malicious=0 --set rule=ref
    [[ "$output" == *": 1 configuration can be run, 0 warnings"* ]]
}

@test "what has diverged or still falls is marked in the table, the summary and the page, and nothing else" {
    run -0 --separate-stderr "$REEF" run small.yaml --no-figures --set rounds=60 --set strategy.mu=0.02 --set malicious=0 -o slow
    [[ "$output" == *"note"*"not steady: still falling "*" dB per 100 rounds"* ]]
    grep -q "not steady: still falling" slow/summary.csv slow/report.html
    run -0 --separate-stderr "$REEF" run small.yaml --no-figures --set rounds=800 --set attack.delta=1000 -o long
    [ "$(grep -c diverged long/summary.csv)" -eq 1 ]
    [ -z "$(grep "not steady" long/summary.csv)" ]
    [[ "$output" == *diverged* ]]
}
