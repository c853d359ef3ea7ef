# Limits of the machine: a message or the right result, in bounded time; never a hang, a crash or a torn file.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >lms.yaml <<'YAML'
agents: 4
graph: ring
problem: {kind: lms, dimension: 4}
strategy: diffusion:mu=0.05
rule: [median, mref]
rounds: 20
repetitions: 4
YAML
    sed 's/^problem:.*/problem: {kind: mlp, data: digits, hidden: "8"}/' lms.yaml >mlp.yaml
}

# within MEGABYTES FILE COMMAND...: under a limit of address space the command leaves FILE as in good/, or says what is wrong. What it has
# come to is in `code`; 60 s are a hang on any machine.
within() {
    local kilobytes=$(($1 * 1024)) file=$2
    code=0
    shift 2
    rm -rf out && mkdir out
    (ulimit -v "$kilobytes" && exec timeout -s KILL 60 "$@") >said 2>&1 || code=$?
    echo "$kilobytes kB: exit $code: $(head -n 1 said)" # shown by a test that fails
    if [ "$code" -eq 0 ]; then
        cmp "out/$file" "good/$file"
    else
        [ "$code" -lt 128 ]
        [ -s said ]
        [ ! -e "out/$file" ]
    fi
    [ -z "$(find out -name '*.tmp')" ]
}

@test "reef run within little memory" {
    local megabytes threads
    "$REEF" run lms.yaml -q --no-figures -o good
    for threads in 1 3; do
        for megabytes in 12 20 30 45 60 90 120 160 200 300; do
            within "$megabytes" summary.csv "$REEF" run lms.yaml -q --no-figures --force --threads "$threads" -o out
        done
        [ "$code" -eq 0 ]
    done
}

@test "BLAS within little memory: what cannot be is said before it is loaded" {
    local megabytes refused=0
    "$REEF" run mlp.yaml -q --no-figures -o good
    for megabytes in 20 60 120 180 220 230 240 250 280 340 420; do
        within "$megabytes" summary.csv "$REEF" run mlp.yaml -q --no-figures --force --threads 3 -o out
        if grep -q 'MB of address space, more than the limit leaves; raise ulimit -v' said; then refused=$((refused + 1)); fi
    done
    [ "$code" -eq 0 ]
    case $("$REEF" doctor) in *OpenBLAS*) [ "$refused" -gt 0 ] ;; esac
}

@test "reef aggregate within little memory" {
    local megabytes i
    mkdir good
    for i in 1 2 3 4 5; do
        printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (65536,), }" >"$i.npy"
        head -c 262144 /dev/zero | tr '\0' "\\10$i" >>"$i.npy"
    done
    "$REEF" aggregate --rule mref ?.npy -q -o good/merged.npy
    for megabytes in 12 20 30 45 60 90 120 160 200 300; do
        within "$megabytes" merged.npy "$REEF" aggregate --rule mref --threads 3 ?.npy -q -o out/merged.npy
    done
    [ "$code" -eq 0 ]
}

@test "reef run within a limit of file sizes: a message, and --resume goes on" {
    "$REEF" run lms.yaml -q --no-figures -o good
    run -1 --separate-stderr bash -c 'ulimit -f 1 && "$REEF" run lms.yaml -q --no-figures -o out'
    [[ "$stderr" == *"File too large"* ]]
    [ ! -e out/manifest.json ]
    [ -z "$(find out -name '*.tmp')" ]
    "$REEF" run lms.yaml -q --no-figures -o out --resume
    cmp good/summary.csv out/summary.csv
}

@test "reef run with closed standard streams writes the same files" {
    "$REEF" run lms.yaml --no-figures -o good 2>/dev/null
    "$REEF" run lms.yaml --no-figures -o a >&- 2>&- || true
    "$REEF" run lms.yaml --no-figures -o b <&- >&- || true
    "$REEF" run lms.yaml --no-figures -o c -q <&- 2>&-
    local folder file
    for folder in a b c; do
        for file in summary.csv curves.csv config.yaml check.txt; do
            cmp "good/$file" "$folder/$file"
        done
        [ "$(find "$folder" -type f | wc -l)" -eq "$(find good -type f | wc -l)" ]
    done
    "$REEF" run missing.yaml -o d <&- >&- 2>&- && return 1
    [ ! -e d ]
}
