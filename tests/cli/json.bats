# --json: what every command prints is JSON as its man page describes it, whatever names and numbers it has to carry.
bats_require_minimum_version 1.5.0
load parts

# json EXPRESSION: stdin is parsed as strict JSON into `d`; the expression must be true.
json() {
    python3 -c '
import json, sys
def refuse(name): raise ValueError(name + " is no JSON")
d = json.loads(sys.stdin.buffer.read().decode("utf-8", "strict"), parse_constant=refuse)
assert eval(sys.argv[1]), d' "$1"
}

# keys PAGE: the names that section JSON of a man page documents, sorted.
keys() {
    sed -n '/^# JSON/,/^# EXIT/p' "$BATS_TEST_DIRNAME/../../docs/man/reef-$1.1.scd" | grep -oE '\*[a-z_\\]+\*' |
        tr -d '*\\' | sort -u
}

# documented PAGE: the keys on stdin, at any depth, are exactly those of the page.
documented() {
    python3 -c '
import json, sys
names = set()
def walk(v):
    if isinstance(v, dict):
        names.update(v)
    for w in v.values() if isinstance(v, dict) else v if isinstance(v, list) else []:
        walk(w)
walk(json.load(sys.stdin))
print("\n".join(sorted(names)))' >"$BATS_TEST_TMPDIR/found"
    keys "$1" >"$BATS_TEST_TMPDIR/page"
    diff "$BATS_TEST_TMPDIR/page" "$BATS_TEST_TMPDIR/found"
}

@test "doctor --json" {
    "$REEF" doctor --json | json 'd["self_test"] and d["threads"] >= 1 and [p["name"] for p in d["parts"]][:4] == ["YAML", "gnuplot", "digits", "MPI"]'
    "$REEF" doctor --json | documented doctor
    "$REEF" doctor --json >"$BATS_TEST_TMPDIR/text"
    json 'all((p["get"] is None) == p["found"] for p in d["parts"])' <"$BATS_TEST_TMPDIR/text"
    PATH=/nowhere "$REEF" doctor --json >"$BATS_TEST_TMPDIR/text"
    json 'd["parts"][1]["found"] is False and "gnuplot" in d["parts"][1]["get"]' <"$BATS_TEST_TMPDIR/text"
}

@test "texts that are not UTF-8, quotes and control characters are still JSON" {
    has_part MPI || skip "built without MPI"
    REEF_MPI=$'/nowhere/\xff\xc3(\xed\xa0\x80"\\\x01\x7f é' "$REEF" doctor --json |
        json '"\ufffd\ufffd(\ufffd\ufffd\ufffd\"\\\x01\x7f é" in d["parts"][3]["text"]'
}

@test "doctor --json tells what caps the instructions" {
    REEF_ISA=scalar "$REEF" doctor --json | json 'd["instructions_cap"] == "scalar" and d["instructions"] == "scalar"'
}

@test "check --json" {
    cd "$BATS_TEST_TMPDIR"
    printf 'agents: 8\ngraph: complete\nproblem: lms:dimension=4\nstrategy: diffusion:mu=0.05\nrule: [mean, "trimmed:f=1"]\nmalicious: [0, 4]\nattack: zero\nrounds: 9\n' >e.yaml
    "$REEF" check e.yaml --json >text
    json 'd["name"] == "e" and len(d["configurations"]) == 4 and d["warning_count"] == sum(len(c["warnings"]) for c in d["configurations"])' <text
    json 'd["configurations"][3]["tolerates"] == 1 and d["configurations"][0]["tolerates"] is None' <text
    json 'd["configurations"][1]["parameters"] == [{"name": "rule", "value": "mean"}, {"name": "malicious", "value": "4"}]' <text
    json 'd["configurations"][1]["graph"]["honest_majority"]["holds"] is False and d["configurations"][0]["graph"]["margin"] == 3' <text
    documented check <text
}

@test "list --json" {
    cd "$BATS_TEST_TMPDIR"
    "$REEF" list --json >text
    json 'len({k["family"] for k in d}) == 10 and len(d) > 60' <text
    json '[k["tolerates"] for k in d if k["name"] == "krum"] == ["n >= 2 f + 3 (dialect=byzfl and flower: n >= 2 f + 1)"]' <text
    documented list <text
    "$REEF" list attacks --json | json '{k["family"] for k in d} == {"attacks"} and "alie" in [k["name"] for k in d]'
    "$REEF" list ref --json | json 'len(d) == 1 and {"name": "efficiency", "default": "0.95"}.items() <= [p for p in d[0]["parameters"] if p["name"] == "efficiency"][0].items()'
    run -2 --separate-stderr "$REEF" list attacks alei --json
    [ -z "$output" ]
    [[ "$stderr" == *"did you mean 'alie'"* ]]
}

@test "bench --json" {
    "$REEF" bench --json -k 8 -m 500 --repeats 1 >"$BATS_TEST_TMPDIR/text"
    json 'd["vectors"] == 8 and d["length"] == 500 and all((r["seconds"] is None) == (r["error"] is not None) for r in d["rules"])' <"$BATS_TEST_TMPDIR/text"
    json '[r["times_mean"] > 0 for r in d["rules"] if r["rule"] == "median"] == [True]' <"$BATS_TEST_TMPDIR/text"
    documented bench <"$BATS_TEST_TMPDIR/text"
}

@test "compare --json" {
    cd "$BATS_TEST_TMPDIR"
    printf 'agents: 6\ngraph: complete\nproblem: lms:dimension=3\nstrategy: diffusion:mu=0.05\nrule: [mean, ref]\nrounds: 40\nrepetitions: 9\n' >e.yaml
    "$REEF" run e.yaml -q --no-figures -o a
    "$REEF" run e.yaml -q --no-figures -o b --set strategy.mu=0.01
    "$REEF" compare a a --json | json 'd["matched"] == 2 and d["beyond_noise"] == 0 and d["differences"] == []'
    "$REEF" compare a a --json --all | json 'len(d["differences"]) >= 2 and d["differences"][0]["standard_errors"] == 0'
    run -1 --separate-stderr "$REEF" compare a b --json
    json 'd["beyond_noise"] == len(d["differences"]) > 0 and d["differences"][0]["parameters"][0]["name"] == "rule"' <<<"$output"
    documented compare <<<"$output"
}
