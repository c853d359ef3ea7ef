# reef run, check, init: from a YAML file to results, and every way to get it wrong.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >small.yaml <<'YAML'
agents: 8
graph: complete
problem: {kind: lms, dimension: 4}
strategy: diffusion:mu=0.05
rule: [mean, ref]
liars: [0, 2]
attack: additive:delta=10
iterations: 60
runs: 20
YAML
}

@test "run writes summary, curves, manifest and the configuration" {
    run -0 --separate-stderr "$REEF" run small.yaml
    [[ "$output" == *"results in results/small, "* ]]
    for file in summary.csv curves.csv manifest.json config.yaml check.txt report.html; do
        [ -s "results/small/$file" ]
    done
    cmp small.yaml results/small/config.yaml
    [ "$(wc -l <results/small/summary.csv)" -eq 5 ]
    [[ "$(head -n 1 results/small/summary.csv)" == "cell,rule,liars,runs,msd_db,msd,msd_se,theory_db,oracle_db,oracle,oracle_se,config.agents,"* ]]
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

@test "the number of threads and a resume change no byte" {
    "$REEF" run small.yaml -q -o one --threads 1
    "$REEF" run small.yaml -q -o two --threads 2
    cmp one/summary.csv two/summary.csv
    cmp one/curves.csv two/curves.csv
    rm two/summary.csv "two/cells/$(find two/cells -type f -printf '%f\n' | head -n 1)"
    run -0 "$REEF" run small.yaml -o two --resume
    [[ "$output" == *"(3 taken from before)"* ]]
    cmp one/summary.csv two/summary.csv
}

@test "killed and resumed gives the same bytes" {
    "$REEF" run small.yaml -q -o whole --set iterations=4000 --set runs=200
    "$REEF" run small.yaml -q -o parts --set iterations=4000 --set runs=200 --threads 1 &
    local job=$!
    for _ in $(seq 100); do
        [ -z "$(find parts/cells -name '*.txt' 2>/dev/null)" ] || break
        sleep 0.05
    done
    kill -9 "$job" 2>/dev/null || true
    wait "$job" || true
    run -0 "$REEF" run small.yaml -q -o parts --set iterations=4000 --set runs=200 --resume
    cmp whole/summary.csv parts/summary.csv
    cmp whole/curves.csv parts/curves.csv
}

@test "an interrupt stops cleanly and says how to go on, exit 1" {
    # Jobs in the background of a shell ignore SIGINT; SIGTERM is handled alike.
    "$REEF" run small.yaml -o parts --set iterations=1000000 --set runs=64 2>message &
    local job=$! status=0
    sleep 0.5
    kill -TERM "$job"
    wait "$job" || status=$?
    [ "$status" -eq 1 ]
    grep -q -e "--resume" message
    [ ! -e parts/summary.csv ]
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
    [[ "$output" == *"theory     MSD -"*"4 cells can be run, 0 warnings"* ]]
    run -0 "$REEF" check small.yaml --set liars=4
    [[ "$output" == *"WARNING    4 benign agents hear no majority"* ]]
}

@test "init writes an experiment that checks, and never over a file" {
    run -0 "$REEF" init mine.yaml
    run -0 "$REEF" check mine.yaml
    [[ "$output" == *"9 cells can be run, 0 warnings"* ]]
    run -1 "$REEF" init mine.yaml
    run -2 "$REEF" init a b
}

@test "the published experiments run, in a short form, and stand in their README" {
    local folder=$BATS_TEST_DIRNAME/../../experiments
    for file in "$folder"/*.yaml; do
        local name
        name=$(basename "$file" .yaml)
        run -0 "$REEF" check "$file"
        "$REEF" run "$file" -q --no-figures --set iterations=12 --set steady=4 --set every=4 --set runs=1
        [ "$(wc -l <"results/$name/summary.csv")" -gt 1 ]
        ! cut -d , -f 1-12 "results/$name/summary.csv" | grep -q -- '-inf'
        grep -qF "[$name]($name.yaml)" "$folder/README.md"
    done
}

@test "the paper's figure is drawn from what a run leaves" {
    command -v gnuplot >/dev/null || skip "no gnuplot here"
    local tree=$BATS_TEST_DIRNAME/../..
    for name in paper_delta paper_rate; do
        "$REEF" run "$tree/experiments/$name.yaml" -q --no-figures --set iterations=60 --set steady=20 --set runs=1
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
    "$REEF" run small.yaml -q --no-figures -o r --set 'liars=[0, 1, 2]'
    [ -z "$(find r -name '*.svg')" ]
    run -0 "$REEF" plot r
    for name in curves final heat; do
        grep -q '</svg>' "r/figures/$name.svg"
        [ -s "r/figures/$name.png" ] && [ -s "r/figures/$name.pdf" ]
    done
    # Figures of another run in the same folder do not stay.
    "$REEF" run small.yaml -q --no-figures -o r
    [ ! -e r/figures/heat.svg ] && [ ! -e r/figures/heat.gp ] && [ -e r/figures/curves.gp ]
    run -3 "$REEF" plot nowhere
    run -2 "$REEF" plot
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
    [[ "$stderr" == *"gnuplot is not there"* ]]
    [ -s r/summary.csv ]
}

@test "models are files that can be merged, arrays can be read, trust is a table" {
    "$REEF" run small.yaml -q -o r --no-figures --npy --save-models --set trust=true
    [ "$(wc -l <r/trust.csv)" -eq $((1 + 4 * 8)) ]
    [ "$(head -n 1 r/trust.csv)" = "cell,rule,liars,agent,liar,trust,trust_se,why" ]
    run -0 "$REEF" aggregate r/models/cell-*.safetensors -o merged.safetensors
    [[ "$output" == *"in 2 tensors of 4 files"* ]]
    run -0 "$REEF" aggregate --rule mean r/arrays/msd.npy -o copy.npy
    cmp r/arrays/msd.npy copy.npy
    "$REEF" run small.yaml -q -o r --no-figures
    [ ! -e r/trust.csv ]
    run -0 "$REEF" run small.yaml -o r --no-figures --resume --save-models
    [[ "$output" == *"(0 taken from before)"* ]]
}

@test "a classifier's model has its layers" {
    "$REEF" run small.yaml -q -o r --no-figures --save-models --set 'problem={kind: mlp, data: digits}' --set iterations=2 --set runs=1
    for name in layer0.weight layer0.bias layer1.weight agents; do
        head -c 500 r/models/cell-0.safetensors | grep -aq "\"$name\""
    done
}

@test "trust needs a rule" {
    run -2 --separate-stderr "$REEF" run small.yaml --set strategy=local --set trust=true
    [[ "$stderr" == *"trust cannot be measured: local combines without a rule"* ]]
}

@test "compare finds what differs beyond noise, and nothing else" {
    "$REEF" run small.yaml -q -o a --no-figures
    "$REEF" run small.yaml -q -o b --no-figures --set seed=2
    "$REEF" run small.yaml -q -o c --no-figures --set problem.noise=4
    run -0 "$REEF" compare a a
    [[ "$output" == *"4 of 4 and 4 cells belong together; 0 differences"* ]]
    run -0 "$REEF" compare a b
    run -1 "$REEF" compare a c
    [[ "$output" == *"rule=ref liars=0  msd: "*" dB, difference "*"standard errors)"* ]]
    "$REEF" run small.yaml -q -o d --no-figures --set 'rule=[mean]'
    run -0 "$REEF" compare d a
    [[ "$output" == *"2 of 2 and 4 cells"* ]]
    run -0 "$REEF" compare a d --all
    [[ "$output" == *"rule=mean liars=2  msd: "* ]]
    run -3 --separate-stderr "$REEF" compare a nowhere
    [[ "$stderr" == *"cannot be read"* ]]
    run -2 "$REEF" compare a
    run -2 "$REEF" compare a b --sigma none
}

@test "doctor and bench tell of this machine" {
    run -0 "$REEF" doctor
    [[ "$output" == *MPI* ]]
    REEF_MPI=/nowhere/libreef_mpi.so run -0 "$REEF" doctor
    [[ "$output" == *"MPI  "*nowhere*"optional parts are missing"* ]]
    run -0 "$REEF" doctor
    [[ "$output" == *"instructions "*"threads "*"self-test      passed"* ]]
    REEF_ISA=scalar run -0 "$REEF" doctor
    [[ "$output" == *"instructions   scalar, capped by REEF_ISA=scalar"* ]]
    PATH=/nowhere run -0 "$REEF" doctor
    [[ "$output" == *"gnuplot        missing"* ]]
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
iterations: 1
YAML
    "$REEF" run net.yaml -q --no-figures
    [ "$(cut -d , -f 1-2 results/net/summary.csv)" = "$(printf 'cell,problem.hidden\n0,8 4\n1,6')" ]
    grep -q 'hidden=(8,4)' results/net/manifest.json
    "$REEF" run net.yaml -q --no-figures --set 'problem.hidden=[8, 4]' -o one
    [ "$(wc -l <one/summary.csv)" -eq 2 ]
    run -2 "$REEF" run net.yaml --set 'problem.hidden=[[8, x]]'
}
