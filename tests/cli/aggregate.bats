# reef aggregate: model files into one.
bats_require_minimum_version 1.5.0

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# Little-endian bytes of a whole number: le NUMBER BYTES
le() {
    local n=$1 i
    for ((i = 0; i < $2; i++)); do
        # shellcheck disable=SC2059 # an octal escape is made
        printf "\\$(printf %o $((n & 255)))"
        n=$((n >> 8))
    done
}

# float32 of whole numbers below 4: f32 NUMBER...
f32() {
    local n
    for n in "$@"; do
        case $n in
        0) le 0 4 ;;
        1) le $((0x3f800000)) 4 ;;
        2) le $((0x40000000)) 4 ;;
        3) le $((0x40400000)) 4 ;;
        nan) le $((0x7fc00000)) 4 ;;
        1000000) le $((0x49742400)) 4 ;;
        esac
    done
}

# A model: two numbers `w` and a counter: model FILE W0 W1 COUNTER [SHAPE]
model() {
    local header
    header="{\"w\":{\"dtype\":\"F32\",\"shape\":${5:-[2]},\"data_offsets\":[0,8]},"
    header+="\"steps\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[8,16]}}"
    { le ${#header} 8 && printf %s "$header" && f32 "$2" "$3" && le "$4" 8; } >"$1"
}

# The last 16 bytes in hex.
data() { tail -c 16 "$1" | od -An -tx1 | tr -d ' \n'; }

five() {
    local i
    for i in 1 2 3 4; do model "$i.st" 1 2 7; done
    model 5.st 1000000 3 9
}

@test "a malicious file is excluded, and the table says so" {
    five
    run -0 --separate-stderr "$REEF" aggregate ?.st -o out.st
    [ "$stderr" = "reef aggregate: warning: 1.st, 2.st, 3.st, 4.st have the same content: one model with 4 votes" ]
    [ "$(data out.st)" = "0000803f000000400700000000000000" ]
    [[ "${lines[0]}" == "file "*"weight"*"trust"*"rejected"*"fate" ]]
    [[ "${lines[1]}" == "1.st "*" 1.250 "*"0.0 %  used" ]]
    [[ "${lines[5]}" == "5.st "*" 0.000 "*"100.0 %  excluded" ]]
    [[ "$output" == *"1 integer or boolean tensor with 1 element, not averaged: by majority; the files differ at 1" ]]
    cmp <(head -c 100 out.st) <(head -c 100 1.st)
}

@test "weights, rules, and trust as csv" {
    model a.st 1 1 1
    model b.st 3 3 2
    run -0 "$REEF" aggregate --rule mean --weights 1,1 a.st b.st -o out.st --trust trust.csv --quiet
    [ -z "$output" ]
    [ "$(data out.st)" = "00000040000000400100000000000000" ]
    [ "$(cat trust.csv)" = 'file,weight,trust,rejected,fate,why
"a.st",1,1,0,used,""
"b.st",1,1,0,used,""' ]
    run -0 "$REEF" aggregate -r mean -w 0,2.5 a.st b.st -o out.st
    [ "$(data out.st)" = "00004040000040400200000000000000" ]
    [[ "$output" == *"a.st "*"weight 0"* ]]
}

@test "--per-tensor and --whole-model, --integers trusted, --no-trust" {
    five
    run -0 "$REEF" aggregate --rule vref --per-tensor ?.st -o out.st
    [[ "$output" == *"by vref, each tensor by itself"* ]]
    run -0 "$REEF" aggregate --rule vref --per-tensor --whole-model ?.st -o out.st --threads 2 --memory 1
    [[ "$output" == *"by vref, the model as a whole"* ]]
    run -0 --separate-stderr "$REEF" aggregate --integers trusted --no-trust -w 1,1,1,1,2 ?.st -o out.st
    [[ "$output" == *"taken from 5.st, the first file of the highest weight (trust was not measured); the files differ at 1"* ]]
    [[ "${lines[1]}" == "1.st "*" - "*" - "*"used" ]]
}

@test "NaN: the file is left out, or the job fails, as --nan says" {
    five
    model 5.st nan 2 9
    run -0 "$REEF" aggregate ?.st -o out.st
    [ "$(data out.st)" = "0000803f000000400700000000000000" ]
    [[ "$output" == *"5.st "*"NaN or Inf"*"left out: 5.st: holds NaN or Inf in 'w'"* ]]
    rm out.st
    run -1 --separate-stderr "$REEF" aggregate --nan error ?.st -o out.st
    [ -z "$output" ]
    [ "$stderr" = "reef aggregate: 5.st: holds NaN or Inf in 'w', and the policy is nan=error" ]
    run -1 "$REEF" aggregate --rule ref:c=5 --nan error ?.st -o out.st
    [ ! -e out.st ]
    run -1 --separate-stderr "$REEF" aggregate 5.st 5.st -o out.st
    [ "$stderr" = "reef aggregate: no file can be used: every one holds NaN or Inf; the first: 5.st: holds NaN or Inf in 'w'" ]
    run -0 "$REEF" aggregate --nan drop-coordinate ?.st -o out.st
    [[ "$output" == *"1 entry was NaN or Inf and left out"* ]]
}

@test "files that differ are refused with the first difference, or dropped" {
    five
    model 1.st 3 3 7 "[1, 2]"
    run -3 --separate-stderr "$REEF" aggregate ?.st -o out.st
    [ -z "$output" ]
    [ "$stderr" = "reef aggregate: 2.st: tensor 'w' has shape [2]; in 1.st it has [1, 2]" ]
    [ ! -e out.st ]
    run -3 --separate-stderr "$REEF" aggregate --drop-bad ?.st missing.st -o out.st
    [ "$stderr" = "reef aggregate: missing.st: cannot open: No such file or directory" ]
    run -0 "$REEF" aggregate --drop-bad ?.st -o out.st
    [[ "$output" == *"left out: 1.st: tensor 'w' has shape [1, 2]; in 2.st it has [2]"* ]]
    [ "$(data out.st)" = "0000803f000000400700000000000000" ]
}

@test "malformed files: one sentence, exit 3, nothing written" {
    five
    head -c 100 1.st >short.st
    { cat 1.st && printf x; } >long.st
    printf 'PK\003\004zip' >torch.pt
    : >empty.st
    for file in short.st long.st torch.pt empty.st; do
        run -3 --separate-stderr "$REEF" aggregate 1.st "$file" -o out.st
        [ -z "$output" ]
        [[ "$stderr" == "reef aggregate: $file: "* ]]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
    done
    [ ! -e out.st ]
    run -0 "$REEF" aggregate --drop-bad 1.st short.st 2.st -o out.st
    rm out.st
    run -3 --separate-stderr "$REEF" aggregate --drop-bad short.st long.st -o out.st
    [[ "$stderr" == "reef aggregate: none of the 2 files can be used; the first: short.st: "* ]]
    [ ! -e out.st ]
}

@test "files that are something else are named as what they are" {
    model 1.st 1 2 7
    printf 'GGUF\003\000\000\000\001' >a.gguf
    printf '\010\007\022\007pytorch' >b.onnx
    printf '\200\002\212\012l\374\234F\371' >c.bin
    printf 'version https://git-lfs.github.com/spec/v1\n' >d.safetensors
    printf '<!DOCTYPE html>\n' >e.safetensors
    printf 'PK\003\004zip' >f.pt
    : >g.safetensors
    head -c 500 /dev/zero >h.safetensors
    local -A says=([g.safetensors]="is empty" [h.safetensors]="begins with zeros"
        [a.gguf]="is a GGUF file" [b.onnx]="is an ONNX file" [c.bin]="is a pickled file"
        [d.safetensors]="is a Git LFS pointer, not the model itself; get that with \`git lfs pull\`"
        [e.safetensors]="is an HTML page" [f.pt]="is a zip archive")
    for file in "${!says[@]}"; do
        run -3 --separate-stderr "$REEF" aggregate 1.st "$file" -o out.st
        [[ "$stderr" == "reef aggregate: $file: ${says[$file]}"* ]]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
    done
    [ ! -e out.st ]
}

@test "the same model twice is a warning, by name or by content, also when quiet" {
    model a.st 1 2 7
    model b.st 2 2 7
    model c.st 1 2 7
    ln b.st d.st
    run -0 --separate-stderr "$REEF" aggregate -q ?.st -o out.bin
    [ -z "$output" ]
    [ "$stderr" = "reef aggregate: warning: a.st, c.st have the same content: one model with 2 votes
reef aggregate: warning: b.st, d.st have the same content: one model with 2 votes" ]
}

@test "the table of trust goes into a pipe as it is, and replaces a file as a whole" {
    five
    mkfifo pipe
    timeout 20 cat pipe >heard 3>&- &
    run -0 "$REEF" aggregate ?.st -o out.st --quiet --trust pipe
    wait
    [ -p pipe ]
    [ "$(head -n 1 heard)" = "file,weight,trust,rejected,fate,why" ]
    echo "file,weight,trust,rejected,fate,why" >trust.csv
    run -0 "$REEF" aggregate ?.st -o out.st --quiet --trust trust.csv
    cmp heard trust.csv
    [ -z "$(find . -name '*.tmp')" ]
}

@test "what cannot be read: exit 3; what cannot be written: exit 1; nothing left behind" {
    five
    run -3 --separate-stderr "$REEF" aggregate 1.st nothing.st -o out.st
    [[ "$stderr" == "reef aggregate: nothing.st: cannot open: No such file"* ]]
    run -3 --separate-stderr "$REEF" aggregate 1.st . -o out.st
    [[ "$stderr" == "reef aggregate: .: is a folder without a .safetensors file" ]]
    run -1 --separate-stderr "$REEF" aggregate 1.st 2.st -o nowhere/out.st
    [[ "$stderr" == "reef aggregate: nowhere/out.st: cannot make a file beside it"* ]]
    run -1 --separate-stderr "$REEF" aggregate 1.st 2.st -o .
    run -1 --separate-stderr "$REEF" aggregate 1.st 2.st -o nowhere/
    [[ "$stderr" == "reef aggregate: nowhere/: is a folder, and single files are merged into one file; name a file, or give --shard-size" ]]
    run -1 --separate-stderr "$REEF" aggregate --rule krum:f=2 ?.st -o bad.st
    [[ "$stderr" == *"at most f = 1" ]]
    [ ! -e bad.st ]
    [ -z "$(find . -name '*.tmp')" ]
}

@test "a table or memory that has no place is told before anything is merged; one that fails later, with what is done" {
    five
    : >file
    for place in nowhere/t file/t; do
        for option in trust trust-tensors state; do
            run -1 --separate-stderr "$REEF" aggregate --rule mref ?.st -o out.st "--$option" "$place"
            [ -z "$output" ]
            [[ "$stderr" == "reef aggregate: $place: cannot write: No"* ]]
            [ ! -e out.st ]
        done
    done
    ln -s loop loop
    for option in trust trust-tensors state; do
        run -1 --separate-stderr "$REEF" aggregate --rule mref ?.st -o out.st "--$option" ""
        [[ "$stderr" == "reef aggregate: : cannot write: No such file or directory" ]]
        run -1 --separate-stderr "$REEF" aggregate --rule mref ?.st -o out.st "--$option" loop
        [[ "$stderr" == "reef aggregate: loop: cannot write: Too many levels of symbolic links" ]]
    done
    [ ! -e out.st ]
    run -1 --separate-stderr "$REEF" aggregate -q --rule mref ?.st -o out.st --state m.bin --trust /dev/full
    [[ "$stderr" == *"reef aggregate: the result and the memory are in place; only this table is missing" ]]
    run -1 --separate-stderr "$REEF" aggregate -q ?.st -o out.st --trust-tensors /dev/full
    [[ "$stderr" == *"reef aggregate: the result is in place; only this table is missing" ]]
}

@test "wrong usage: exit 2" {
    five
    local -a wrong=("" "1.st" "-o out.st" "--rule nonsense 1.st -o out.st" "--nan maybe 1.st -o out.st"
        "--weights 1 1.st 2.st -o out.st" "--weights 1,2,3 1.st 2.st -o out.st" "--weights a,b 1.st 2.st -o out.st"
        "--weights 1,-1 1.st 2.st -o out.st" "--weights 1,nan 1.st 2.st -o out.st" "--weights 0,0 1.st 2.st -o out.st"
        "--rule ref --state m.bin 1.st 2.st -o out.st" "--rule mref --state m.bin 1.st 2.st -o -" "--rule mref --state m.bin 1.st 2.st -o /dev/null"
        "--integers mean 1.st -o out.st" "--threads 0 1.st -o out.st" "--memory x 1.st -o out.st" "--what 1.st -o out.st")
    for line in "${wrong[@]}"; do
        # shellcheck disable=SC2086 # words
        run -2 --separate-stderr "$REEF" aggregate $line
        [ -z "$output" ]
        [[ "$stderr" == *"reef aggregate"* ]]
    done
    [ ! -e out.st ]
    [ ! -e m.bin ]
}

@test "--json has everything that is printed, and standard output to itself" {
    model a.st 1 2 7
    model b.st 2 2 8
    model c.st 1 2 7
    model d.st nan 2 7
    run -0 --separate-stderr "$REEF" aggregate --json --trust-tensors t.csv ?.st -o out.bin
    /usr/bin/python3 - "$output" <<'PY'
import json, sys
told = json.loads(sys.argv[1])
files = {entry["path"]: entry for entry in told["files"]}
assert list(files) == ["a.st", "b.st", "c.st", "d.st"]
assert files["c.st"]["copy_of"] == "a.st" and "copy_of" not in files["b.st"]
assert files["d.st"]["fate"] == "NaN or Inf" and files["d.st"]["why"].endswith("holds NaN or Inf in 'w'")
assert told["rule"] == "ref" and told["numbers"] == 2 and told["output"] == "out.bin" and told["notes"] == []
assert told["integers"] == {"by": "majority", "tensors": 1, "elements": 1, "disputed": 1, "undecided": 0, "most_trusted": "a.st"}, told
assert [tensor["name"] for tensor in told["tensors"]] == ["w"] and len(told["tensors"][0]["trust"]) == 4
assert told["tensors"][0]["trust"][3] is None
PY
    run -2 "$REEF" aggregate --json ?.st -o -
    run -2 "$REEF" aggregate --json ?.st -o out.bin --trust -
}

@test "help names every option" {
    run -0 "$REEF" aggregate --help
    for option in output rule weights whole-model per-tensor nan integers drop-bad cast common ignore-missing factors base trust trust-tensors no-trust state ids shard-size json threads memory quiet; do
        [[ "$output" == *"--$option"* ]]
    done
    run -0 "$REEF" aggregate 1.st --help
    [[ "$output" == "Usage: reef aggregate"* ]]
}

@test "no output takes the place of an input or of the other output, and nothing is read" {
    five
    mkdir sub
    ln -s ../1.st sub/link.st
    ln 2.st hard.st
    cat ./*.st | sha256sum >before
    local -a wrong=("?.st -o 1.st" "?.st -o ./1.st" "?.st -o sub/link.st" "?.st -o hard.st" "?.st none.st -o 5.st"
        "?.st -o out.st --trust 1.st" "?.st -o out.st --trust sub/link.st" "?.st -o out.st --trust out.st"
        "?.st -o out.st --trust sub/../out.st" "?.st -o - --trust -" "--trust ?.st -o out.st"
        "?.st -o out.st --trust-tensors out.st" "?.st -o out.st --trust-tensors sub/../out.st" "?.st -o - --trust-tensors -"
        "?.st -o out.st --trust t.csv --trust-tensors ./t.csv" "?.st -o out.st --trust - --trust-tensors -"
        "--rule mref ?.st -o out.st --state m.bin --trust m.bin" "--rule mref ?.st -o out.st --state m.bin --trust-tensors m.bin"
        "--rule mref ?.st -o out.st --state out.st" "--rule mref ?.st -o out.st --state hard.st")
    for line in "${wrong[@]}"; do
        # shellcheck disable=SC2086 # words
        run -2 --separate-stderr "$REEF" aggregate $line
        [ -z "$output" ]
        [ "$(wc -l <<<"$stderr")" -eq 1 ]
    done
    for option in trust trust-tensors; do
        run -2 --separate-stderr "$REEF" aggregate ?.st -o out.st "--$option" hard.st
        [[ "$stderr" == *"would replace an input: hard.st;"* ]]
    done
    [ "$(cat ./*.st | sha256sum)" = "$(cat before)" ]
    [ ! -e out.st ]
}

@test "the table of trust replaces no file that is not one" {
    five
    echo precious >notes.txt
    : >empty
    run -2 --separate-stderr "$REEF" aggregate ?.st -o out.st --trust notes.txt
    [[ "$stderr" == *"not a trust table: notes.txt"* ]]
    [ "$(cat notes.txt)" = precious ]
    run -2 "$REEF" aggregate 1.st 2.st -o out.st --trust 3.st
    [ ! -e out.st ]
    run -0 "$REEF" aggregate ?.st -o out.st --trust empty
    run -0 "$REEF" aggregate ?.st -o out.st --trust empty
    [ "$(wc -l <empty)" -eq 6 ]
    # nor that of trust by tensor, which is no trust table either
    for file in notes.txt empty; do
        cp "$file" before
        run -2 --separate-stderr "$REEF" aggregate ?.st -o new.st --trust-tensors "$file"
        [[ "$stderr" == *"--trust-tensors would replace a file that is not such a table: $file"* ]]
        cmp "$file" before
        [ ! -e new.st ]
    done
}

@test "a memory in the folder of the result would be in its way" {
    five
    mkdir out
    for place in out/m.bin ./out/m.bin out/../out/m.bin; do
        run -2 --separate-stderr "$REEF" aggregate --rule mref ?.st -o out/ --shard-size 1KB --state "$place"
        [[ "$stderr" == *"--state needs a place outside of the result's folder, not $place"* ]]
        [ -z "$(ls out)" ]
    done
    run -0 "$REEF" aggregate -q --rule mref ?.st -o out/ --shard-size 1KB --state m.bin --trust out/trust.csv
    [ "$(ls out)" = $'model.safetensors\ntrust.csv' ]
}

@test "links stay, their targets are written, and modes are kept" {
    five
    mkdir store
    ln -s store/model.st out.st
    ln -s store/trust.csv trust.csv
    for i in 1 2; do
        run -0 "$REEF" aggregate ?.st -o out.st --trust trust.csv -q
        [ "$(readlink out.st)" = store/model.st ]
        [ "$(readlink trust.csv)" = store/trust.csv ]
        [ "$(data store/model.st)" = "0000803f000000400700000000000000" ]
        [ "$(wc -l <store/trust.csv)" -eq 6 ]
        chmod 600 store/*
    done
    [ "$(stat -c %a store/model.st store/trust.csv)" = $'600\n600' ]
    [ -z "$(find . -name '*.tmp')" ]
}

@test "- is standard output, and so is every other name of it" {
    five
    "$REEF" aggregate ?.st -o out.st --trust trust.csv -q
    "$REEF" aggregate ?.st -o - 2>said | cmp - out.st
    grep -q '^file .*fate$' said
    "$REEF" aggregate ?.st -o - -q >file.st
    cmp file.st out.st
    "$REEF" aggregate ?.st -o again.st --trust - 2>said >heard
    cmp heard trust.csv
    grep -q '^file .*fate$' said
    # a link such as /dev/stdout, when standard output is a file: not replaced, and no line lost
    ln -s /proc/self/fd/1 stdout
    "$REEF" aggregate ?.st -o again.st --trust stdout >heard 2>said
    [ -L stdout ]
    cmp heard trust.csv
    "$REEF" aggregate ?.st -o stdout -q >heard
    [ -L stdout ]
    cmp heard out.st
    [ -z "$(find "${TMPDIR:-/tmp}" -maxdepth 1 -name 'reef-??????' -newer said)" ]
}

@test "a reader that goes away leaves no model behind in the folder for temporary files" {
    mkdir temporary
    large 1.st 4
    large 2.st 4
    TMPDIR=$PWD/temporary run -141 bash -o pipefail -c '"$REEF" aggregate -q --rule mean [12].st -o - 2>/dev/null | true'
    [ -z "$(ls temporary)" ]
    TMPDIR=$PWD/temporary "$REEF" aggregate -q --rule mean 1.st 2.st -o - 2>/dev/null | cmp - 1.st
    [ -z "$(ls temporary)" ]
}

@test "the result goes into a pipe or device as it is" {
    five
    "$REEF" aggregate ?.st -o out.st -q
    mkfifo pipe
    timeout 20 cat pipe >heard 3>&- &
    run -0 "$REEF" aggregate ?.st -o pipe -q
    wait
    [ -p pipe ]
    cmp heard out.st
    run -0 "$REEF" aggregate ?.st -o /dev/null
    [ -c /dev/null ]
    run -1 --separate-stderr "$REEF" aggregate ?.st -o /dev/full
    [[ "$stderr" == *"/dev/full: cannot write: No space left"* ]]
}

@test "as many files as the hard limit allows; our own limits are not held against files" {
    local i
    for i in {10..49}; do model "$i.st" 1 2 7; done
    run -0 bash -c 'ulimit -S -n 20 && "$REEF" aggregate --drop-bad ??.st -o out.st'
    [[ "$output" == *"2 numbers in 1 tensor of 40 files"* ]]
    rm out.st
    run -1 --separate-stderr bash -c 'ulimit -n 20 && "$REEF" aggregate --drop-bad ??.st -o out.st'
    [[ "$stderr" == *": cannot open: Too many open files for one process; allow more (ulimit -n)" ]]
    [ ! -e out.st ]
}

@test "--drop-bad keeps a majority or fails: shards are not half a model" {
    model a1.st 1 2 7
    model b1.st 1 2 7
    model a2.st 1 2 7 "[1, 2]"
    model b2.st 1 2 7 "[1, 2]"
    run -3 --separate-stderr "$REEF" aggregate --drop-bad ??.st -o out.st
    [[ "$stderr" == "reef aggregate: only 2 of 4 files belong together; the first that does not: a2.st: tensor 'w'"* ]]
    [ ! -e out.st ]
}

# npy_files: 2.npy and 3.npy, named by their lengths, of zeros; nan.npy, of 3 NaN.
npy_files() {
    python3 - <<'END'
for name, n, byte in ("2", 2, 0), ("3", 3, 0), ("nan", 3, 255):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({n},), }}"
    open(f"{name}.npy", "wb").write(b"\x93NUMPY\1\0\x76\0" + head.ljust(117).encode() + b"\n" + bytes([byte] * 4 * n))
END
}

@test "npy files that differ, or hold NaN, are refused without the name of a tensor" {
    npy_files
    run -1 --separate-stderr "$REEF" aggregate --nan error 3.npy 3.npy nan.npy -o out.npy
    [ "$stderr" = "reef aggregate: nan.npy: holds NaN or Inf, and the policy is nan=error" ]
    run -3 --separate-stderr "$REEF" aggregate 3.npy 2.npy -o out.npy
    [ "$stderr" = "reef aggregate: 2.npy: its array has shape [2]; in 3.npy it has [3]" ]
}

@test "a name that says another format than the result has is a warning" {
    five
    python3 -c 'import sys; [open(f"{n}.npy", "wb").write(b"\x93NUMPY\1\0\x76\0" + b"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1,), }".ljust(117) + b"\n" + bytes([0, 0, 128, 63 + n])) for n in (0, 1)]'
    for pair in "1.st out.npy a.safetensors" "1.st out.npz a.safetensors" "0.npy out.safetensors an.npy"; do
        read -r model out what <<<"$pair"
        run -0 --separate-stderr "$REEF" aggregate --json "$model" -o "$out"
        [ "$stderr" = "reef aggregate: warning: the result is ${what/./ } file, but its name ends with .${out#*.}" ]
        [[ "$output" == *'"notes": ['*"warning: the result is ${what/./ } file"* ]]
    done
    run -0 --separate-stderr "$REEF" aggregate -q 0.npy 1.npy -o fine.npy
    [ -z "$stderr" ]
    run -0 --separate-stderr "$REEF" aggregate -q 1.st 5.st -o fine.st
    [ -z "$stderr" ]
    run -0 --separate-stderr bash -c '"$REEF" aggregate -q 0.npy 1.npy -o - | wc -c'
    [ -z "$stderr" ]
}

@test "pipes and devices are no models, and are not waited for" {
    five
    mkfifo pipe
    for file in pipe /dev/zero; do
        run -3 --separate-stderr timeout 10 "$REEF" aggregate 1.st "$file" -o out.st
        [[ "$stderr" == *"$file: is not a regular file" ]]
    done
}

# large FILE MEGABYTES: a model of zeros with holes for them
large() {
    local bytes=$(($2 << 20)) header
    header="{\"w\":{\"dtype\":\"F32\",\"shape\":[$((bytes / 4))],\"data_offsets\":[0,$bytes]}}"
    { le ${#header} 8 && printf %s "$header"; } >"$1"
    truncate -s $((8 + ${#header} + bytes)) "$1"
}

@test "SIGTERM, SIGHUP and SIGINT stop cleanly; under nohup SIGHUP does not" {
    local i signal
    for i in 1 2 3 4 5 6; do large "$i.st" 128; done
    for signal in TERM HUP INT; do
        env --default-signal=INT,HUP,TERM "$REEF" aggregate -q --threads 1 ?.st -o out.bin 2>said 3>&- &
        local pid=$!
        until compgen -G 'out.bin.*.tmp' >/dev/null; do sleep 0.01; done
        kill "-$signal" "$pid"
        local code=0
        wait "$pid" || code=$?
        [ "$code" -eq 1 ]
        [ "$(cat said)" = "reef aggregate: stopped before it was done; nothing was written" ]
        [ -z "$(find . -name 'out*')" ]
    done
    env --ignore-signal=HUP "$REEF" aggregate -q --threads 1 ?.st -o out.bin 3>&- &
    local pid=$!
    until compgen -G 'out.bin.*.tmp' >/dev/null; do sleep 0.01; done
    kill -HUP "$pid"
    wait "$pid"
    [ -s out.bin ]
}

@test "a limit of file sizes is a message, and nothing is left" {
    five
    large 6.st 4
    run -1 --separate-stderr bash -c 'ulimit -f 1024 && "$REEF" aggregate 6.st -o out.bin'
    [[ "$stderr" == *"out.bin: cannot write: File too large" ]]
    [ -z "$(find . -name 'out*')" ]
}

@test "what is printed never ends up in a file when standard streams are closed" {
    five
    "$REEF" aggregate ?.st -o good.st -q
    "$REEF" aggregate ?.st -o a.st >&- 2>&- || true
    "$REEF" aggregate ?.st -o b.st >&- || true
    "$REEF" aggregate ?.st none.st -o c.st <&- >&- 2>&- && return 1
    "$REEF" aggregate ?.st -o d.st -q 2>&- <&-
    cmp good.st a.st && cmp good.st b.st && cmp good.st d.st
    [ ! -e c.st ]
}
