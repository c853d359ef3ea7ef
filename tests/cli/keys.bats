# Keys and run files: what is written, who may read it, what is refused.
bats_require_minimum_version 1.5.0
load parts

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    has_part network || skip "built without libnats"
}

# A draft for five agents; more lines are its arguments.
draft() {
    "$REEF" keys new boss >boss.line 2>/dev/null
    {
        echo "reef: 1"
        echo "run: trial"
        echo "id: 00112233445566778899aabbccddeeff"
        echo "coordinator: $("$REEF" keys show boss.key | cut -d' ' -f1)"
        echo "agents:"
        for name in ann bob cid dee eve; do
            echo "  $("$REEF" keys new "$name" 2>/dev/null)"
        done
        echo "graph: complete"
        echo "rule: mref"
        echo "model: {count: 1000}"
        echo 'brokers: ["tls://broker.example:4222"]'
        printf '%s\n' "$@"
    } >draft.yaml
}

@test "a key file is for its owner alone, and is never overwritten" {
    run -0 --separate-stderr "$REEF" keys new alice
    [[ "$output" =~ ^alice:\ \"R[A-Z2-7]{55}\ U[A-Z2-7]{55}\"$ ]]
    [ "$(stat -c %a alice.key)" = 600 ]
    cp alice.key before
    run -5 "$REEF" keys new alice
    [[ "$output" == *"exists"* ]]
    cmp before alice.key
    for name in "" Alice a.b ../alice $'a\e[2J' "$(printf 'a%.0s' {1..33})"; do
        run -2 --separate-stderr "$REEF" keys new "$name"
        [[ "$stderr" == *"a name has 1 to 32 letters"* ]]
        [[ "$stderr" != *$'\e'* ]]
    done
    run -0 "$REEF" keys show alice.key
    [ "${#output}" = 113 ]
    chmod 644 alice.key
    run -5 "$REEF" keys show alice.key
    [[ "$output" == *"chmod 600"* ]]
    echo "reef-secret-1 SAAA" >bad.key && chmod 600 bad.key
    run -3 "$REEF" keys show bad.key
    echo "reef: 1" >run.yaml # the wrong file, which everybody may read: that is not what is wrong with it
    run -3 "$REEF" keys show run.yaml
    [[ "$output" == *"run.yaml is not a Reef key file"* ]]
    run -2 "$REEF" keys
    run -2 "$REEF" keys forget alice
}

@test "a signed run file is checked; a changed one, and one of another coordinator, is refused" {
    draft
    run -0 "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    run -0 "$REEF" keys verify run.yaml --coordinator "$("$REEF" keys show boss.key | cut -d' ' -f1)"
    run -0 "$REEF" check run.yaml
    [[ "$output" == *"5 agents, complete, rule mref; models of 1000 numbers, 4000 bytes"* ]]
    [[ "$output" == *"ann            4 neighbours, own weight 0.200; tolerates 1 malicious, 1 absent;"* ]]
    [[ "$output" == *"valid run file, 0 warnings"* ]]
    run -3 "$REEF" keys verify run.yaml --coordinator "$("$REEF" keys show ann.key | cut -d' ' -f1)"
    [[ "$output" == *"another coordinator"* ]]
    sed 's/complete/ring:k=2/' run.yaml >changed.yaml
    run -3 "$REEF" check changed.yaml
    [[ "$output" == *"changed after it was signed"* ]]
    run -2 "$REEF" check run.yaml --set rule=mean
    for command in run swarm; do
        run -2 "$REEF" $command run.yaml
        [[ "$output" == *"this is no experiment, but a run file of agents on a network"* ]]
    done
    run -3 "$REEF" check draft.yaml
    [[ "$output" == *"not a signed run file"*"\`reef keys sign\` signs a draft"* ]]
    { cat run.yaml; printf '%0.s# padding\n' {1..30000}; } >long.yaml
    run -3 "$REEF" check long.yaml
    [[ "$output" == *"larger than 256 KiB"* ]]
}

@test "a draft that is no run file is not signed; what nobody tolerates is a warning" {
    draft "malicious: 0.7"
    run -3 "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    [[ "$output" == *"malicious"* ]]
    [ ! -e run.yaml ]
    rm -f -- *.key
    draft "malicious: 0.1"
    "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    run -0 "$REEF" check run.yaml
    [[ "$output" == *"WARNING ann tolerates no malicious neighbour"* ]]
    run -1 "$REEF" check run.yaml --strict
    rm -f -- *.key
    draft
    run -3 "$REEF" keys sign draft.yaml --key ann.key -o run2.yaml
    [[ "$output" == *"another key than that of its coordinator"* ]]
}

@test "a draft whose last line has no end is signed, an empty one is not" {
    draft "malicious: 0.25"
    head -c -1 draft.yaml >short.yaml
    run -0 "$REEF" keys sign short.yaml --key boss.key -o run.yaml
    "$REEF" keys sign draft.yaml --key boss.key -o same.yaml
    cmp run.yaml same.yaml
    run -0 "$REEF" check run.yaml
    : >empty.yaml
    run -3 "$REEF" keys sign empty.yaml --key boss.key -o no.yaml
    [ "$output" = "reef keys: empty.yaml is empty" ]
    [ ! -e no.yaml ]
}

@test "what agents would refuse is not signed, and the message names the draft" {
    draft
    mistake() { # mistake STATUS SED-COMMAND WORDS
        sed "$2" draft.yaml >wrong.yaml
        run "-$1" "$REEF" keys sign wrong.yaml --key boss.key -o run.yaml
        [[ "$output" == *"$3"* ]]
        [ ! -e run.yaml ]
    }
    mistake 2 's/mref/mreff/' "there is no rule 'mreff'; did you mean 'mref'?"
    mistake 2 's/complete/ring:k=9/' "k = 9 is too much for 5 agents"
    mistake 2 '$a strategy: difusion:mu=0.1' "there is no strategy 'difusion'; did you mean 'diffusion'?"
    mistake 2 '$a strategy: diffusion:mu=fast' "mu = 'fast' is not allowed"
    mistake 3 's/^brokers/broker/' "wrong.yaml:14:1: a run file has no key 'broker'; did you mean 'brokers'?"
    mistake 3 's/^agents/agent/' "wrong.yaml:5:1: a run file has no key 'agent'; did you mean 'agents'?"
    mistake 3 's/:4222//' "wrong.yaml:14:11: a broker is tls://HOST:PORT"
    mistake 3 '/^id/d' "wrong.yaml: the key id is missing"
    mistake 3 '$a malicious: 0.5' "malicious is the share of the weight that may be malicious, at least 0 and below 0.5"
}

# next EPOCH FROM SED-COMMAND: a draft that follows draft.yaml
next() {
    { echo "epoch: $1"; echo "from: $2"; sed -E "$3" draft.yaml; } >next.yaml
}

@test "a later epoch changes members and graph, and nothing that was agreed on before" {
    draft
    "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    frank=$("$REEF" keys new frank 2>/dev/null)
    next 2 50 "s/^  cid: .*/  cid: removed/; s/^(  eve: .*)/\\1\\n  $frank/; s/^graph: .*/graph: ring:k=2/"
    run -0 "$REEF" keys sign next.yaml --key boss.key -o second.yaml --after run.yaml --round 40
    run -0 "$REEF" check second.yaml
    [[ "$output" == *"cid          removed"* ]]
    [[ "$output" == *"frank          4 neighbours"* ]]
    run -2 "$REEF" keys sign next.yaml --key boss.key -o no.yaml --after run.yaml --round 41
    [[ "$output" == *"at least 51"* ]]
    run -2 "$REEF" keys sign next.yaml --key boss.key -o no.yaml
    [[ "$output" == *"--after"* ]]
    run -2 "$REEF" keys sign next.yaml --key boss.key -o no.yaml --after second.yaml
    [[ "$output" == *"epoch 2 of run trial is followed by 3, not by 2"* ]]
    refused() { # refused SED-COMMAND WORDS
        next 2 50 "$1"
        run -2 "$REEF" keys sign next.yaml --key boss.key -o no.yaml --after run.yaml
        [[ "$output" == *"$2"* ]]
    }
    refused 's/^rule: .*/rule: mean/' "rule cannot change"
    refused 's/^id: 0/id: 1/' "id cannot change"
    refused 's/count: 1000/count: 1001/' "model, chunk or largest"
    refused '/^  eve: /d' "eve is missing"
    refused 's/^  bob:/  rob:/' "place 1 is bob's"
    refused "s/^  bob: .*/  bob: ${frank#*: }/" "bob has other keys"
    refused "s/^(  ann: .*)/\\1\\n  $frank/" "new agents come at the end"
    [ ! -e no.yaml ]
    # who was removed does not come back, and has no links
    { echo "epoch: 3"; echo "from: 90"; cat draft.yaml; } >third.yaml
    sed -i "/^  eve: /a\\  $frank" third.yaml
    run -2 "$REEF" keys sign third.yaml --key boss.key -o no.yaml --after second.yaml
    [[ "$output" == *"cid was removed"* ]]
    next 2 50 's/^  cid: .*/  cid: removed/; s/^graph: .*/links: "ann~bob bob~cid cid~dee dee~eve eve~ann"/'
    run -2 "$REEF" keys sign next.yaml --key boss.key -o no.yaml --after run.yaml
    [[ "$output" == *"cid was removed"* ]]
    [ ! -e no.yaml ]
}
