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

@test "a liar has no say, and the table tells" {
    five
    run -0 --separate-stderr "$REEF" aggregate ?.st -o out.st
    [ -z "$stderr" ]
    [ "$(data out.st)" = "0000803f000000400700000000000000" ]
    [[ "${lines[0]}" == "file "*"weight"*"trust"*"rejected"*"fate" ]]
    [[ "${lines[1]}" == "1.st "*" 1.250 "*"0.0 %  used" ]]
    [[ "${lines[5]}" == "5.st "*" 0.000 "*"100.0 %  used" ]]
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
    run -0 "$REEF" aggregate --integers trusted --no-trust -w 1,1,1,1,2 ?.st -o out.st
    [[ "$output" == *"taken from 5.st, the most trusted file"* ]]
    [[ "${lines[1]}" == "1.st "*" - "*" - "*"used" ]]
}

@test "NaN: the file is left out, or the job fails, as --nan says" {
    five
    model 5.st nan 2 9
    run -0 "$REEF" aggregate ?.st -o out.st
    [ "$(data out.st)" = "0000803f000000400700000000000000" ]
    [[ "$output" == *"5.st "*"NaN or Inf"*"left out: 5.st: holds NaN or Inf"* ]]
    rm out.st
    run -1 --separate-stderr "$REEF" aggregate --nan error ?.st -o out.st
    [ -z "$output" ]
    [ "$stderr" = "reef aggregate: 5.st: holds NaN or Inf, and the policy is nan=error" ]
    run -1 "$REEF" aggregate --rule ref:c=5 --nan error ?.st -o out.st
    [ ! -e out.st ]
    run -0 "$REEF" aggregate --nan drop-coordinate ?.st -o out.st
    [[ "$output" == *"1 entries were NaN or Inf and left out"* ]]
}

@test "files that differ are refused with the first difference, or dropped" {
    five
    model 1.st 3 3 7 "[1, 2]"
    run -3 --separate-stderr "$REEF" aggregate ?.st -o out.st
    [ -z "$output" ]
    [ "$stderr" = "reef aggregate: 2.st: tensor 'w' has shape [2]; in 1.st it has [1, 2]" ]
    [ ! -e out.st ]
    run -0 "$REEF" aggregate --drop-bad ?.st missing.st -o out.st
    [[ "$output" == *"left out: 1.st: tensor 'w' has shape [1, 2]; in 2.st it has [2]"* ]]
    [[ "$output" == *"left out: missing.st: cannot open"* ]]
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
}

@test "the table of trust goes into a pipe as it is, and replaces a file as a whole" {
    five
    mkfifo pipe
    cat pipe >heard &
    run -0 "$REEF" aggregate ?.st -o out.st --quiet --trust pipe
    wait
    [ -p pipe ]
    [ "$(head -n 1 heard)" = "file,weight,trust,rejected,fate,why" ]
    echo old >trust.csv
    run -0 "$REEF" aggregate ?.st -o out.st --quiet --trust trust.csv
    cmp heard trust.csv
    [ -z "$(find . -name '*.tmp')" ]
}

@test "what cannot be read: exit 3; what cannot be written: exit 1; nothing left behind" {
    five
    run -3 --separate-stderr "$REEF" aggregate 1.st nothing.st -o out.st
    [[ "$stderr" == "reef aggregate: nothing.st: cannot open: No such file"* ]]
    run -3 --separate-stderr "$REEF" aggregate 1.st . -o out.st
    [[ "$stderr" == *"not a regular file" ]]
    run -1 --separate-stderr "$REEF" aggregate 1.st 2.st -o nowhere/out.st
    [[ "$stderr" == "reef aggregate: nowhere/out.st: cannot make a file beside it"* ]]
    run -1 --separate-stderr "$REEF" aggregate 1.st 2.st -o .
    run -1 --separate-stderr "$REEF" aggregate 1.st 2.st -o out.st --trust nowhere/trust.csv
    [[ "$stderr" == "reef aggregate: nowhere/trust.csv: cannot open"* ]]
    run -1 --separate-stderr "$REEF" aggregate --rule krum:f=2 ?.st -o bad.st
    [[ "$stderr" == *"at most f = 1" ]]
    [ ! -e bad.st ]
    [ -z "$(find . -name '*.tmp')" ]
}

@test "wrong usage: exit 2" {
    five
    local -a wrong=("" "1.st" "-o out.st" "--rule nonsense 1.st -o out.st" "--nan maybe 1.st -o out.st"
        "--weights 1 1.st 2.st -o out.st" "--weights 1,2,3 1.st 2.st -o out.st" "--weights a,b 1.st 2.st -o out.st"
        "--integers mean 1.st -o out.st" "--threads 0 1.st -o out.st" "--memory x 1.st -o out.st" "--what 1.st -o out.st")
    for line in "${wrong[@]}"; do
        # shellcheck disable=SC2086 # words
        run -2 --separate-stderr "$REEF" aggregate $line
        [ -z "$output" ]
        [[ "$stderr" == *"reef aggregate"* ]]
    done
    [ ! -e out.st ]
}

@test "help names every option" {
    run -0 "$REEF" aggregate --help
    for option in output rule weights whole-model per-tensor nan integers drop-bad trust no-trust threads memory quiet; do
        [[ "$output" == *"--$option"* ]]
    done
    run -0 "$REEF" aggregate 1.st --help
    [[ "$output" == "Usage: reef aggregate"* ]]
}
