# Sealed runs: what somebody sees who records every byte between the agents and their broker, and the broker's store. What is refused is in
# test_seal.c; that results stay the same under kills and malicious agents in swarm.bats, hostile_swarm.bats and leaf.bats.
bats_require_minimum_version 1.5.0
load run

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    port=$(free_port)
    behind=$(free_port)
}

teardown() { end_all; }

# A broker whose agents come through somebody who writes down what they say and hear:  recorded FOLDER
recorded() {
    start "$1.log" python3 "$BATS_TEST_DIRNAME/capture.py" record "$port" "$behind" "$1"
    await "$1.log" ready
    start broker.log "$REEF" broker run.yaml --store "$1.store" --listen "127.0.0.1:$behind"
    await broker.log '^ready'
}

# Four agents until their rounds are done, the models of all rounds in NAME-K.record:  play NAME LINE...
play() {
    local name=$1 pids=()
    shift
    make_run 4 "nats://127.0.0.1:$port" 'graph: complete' 'rule: ref' 'strategy: "diffusion:mu=0.00001"' 'malicious: 0.2' 'deadline: 60s' "$@"
    recorded "$name"
    for k in 0 1 2 3; do
        start "$name-$k.log" timeout 120 "$REEF" agent run.yaml --key "a$k.key" --state "$name-$k.state" --record "$name-$k.record"
        pids+=("$last")
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    end_all
}

# Plays the same models openly and sealed. In the one run all of them are on the wire, in the other no 16 bytes of any.
nothing_is_seen() { # nothing_is_seen TEST-LINE ROUNDS STORE...
    play open "$1"
    play sealed 'seal: true' "$1"
    for k in 0 1 2 3; do
        grep -q "^end: .*combined=$2 alone=0 " "sealed-$k.log"
        cmp "open-$k.record" "sealed-$k.record" # the same models, so what is looked for would be there
    done
    run -0 python3 "$BATS_TEST_DIRNAME/capture.py" search open open sealed "${@:3}"
    echo "$output"
    [[ "${lines[0]}" =~ ^([0-9]+)" windows"$ ]]
    windows=${BASH_REMATCH[1]}
    [[ "${lines[1]}" == "open "*" $windows found" ]]
    [[ "${lines[2]}" =~ ^"sealed "([0-9]+)" bytes 0 found"$ ]]
    [ "${BASH_REMATCH[1]}" -gt "$windows" ]
}

@test "models inline: nothing of them is on the wire or in the store, and all of it is if they are not sealed" {
    nothing_is_seen 'test: {problem: "lms:dimension=1000", rounds: 5, every: 1, wait: true, sync: false}' 5 open.store sealed.store
    [ "$windows" -gt 50000 ] # of 5 models of 4 agents
    [[ "${lines[3]}" == "open.store "*" $windows found" ]]
    [[ "${lines[4]}" =~ ^"sealed.store "([0-9]+)" bytes 0 found"$ ]]
    [ "${BASH_REMATCH[1]}" -gt "$windows" ]
    run -0 "$REEF" check run.yaml
    [[ "$output" == *"models are sealed: "* ]]
    # each sealed for the three others, and nobody else
    run -0 python3 "$BATS_TEST_DIRNAME/capture.py" boxes sealed
    [ "${#lines[@]}" -ge 20 ]
    for line in "${lines[@]}"; do
        case $line in
        "1 0 "*": 1 2 3" | "1 1 "*": 0 2 3" | "1 2 "*": 0 1 3" | "1 3 "*": 0 1 2") ;;
        *) echo "$line" && return 1 ;;
        esac
    done
}

@test "models in chunks: nothing of them is on the wire" {
    nothing_is_seen 'test: {problem: "lms:dimension=17000", rounds: 2, every: 1, wait: true, sync: false}' 2
    [ "$windows" -gt 400000 ]
}

# Agent 4 is silent, so that rounds take 50 ms at least.
@test "an agent that leaves gets no more keys, one that joins gets them, and nobody is blamed" {
    make_run 6 "nats://127.0.0.1:$port" 'graph: complete' 'rule: mref' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 700ms' \
        'seal: true' 'test: {problem: "lms:dimension=10", attack: silent, malicious: "4"}'
    cp run.yaml first.yaml
    cp draft.yaml first.draft
    recorded seen
    for k in 0 1 2 3 4 5; do
        start "agent-$k.log" "$REEF" agent run.yaml --key "a$k.key" --log-level debug
        agent[$k]=$last
    done
    last=${agent[0]}
    await agent-0.log '^progress: .* round=[1-9][0-9]'
    current=$(sed -n 's/^progress: .* round=\([0-9]*\) .*/\1/p' agent-0.log | tail -n 1)
    "$REEF" keys new a6 >/dev/null 2>&1
    {
        sed 's/^  a3: .*/  a3: removed/' first.draft
        echo "  a6: \"$("$REEF" keys show a6.key | grep -oE 'R[A-Z2-7]{55} U[A-Z2-7]{55}')\""
        echo "epoch: 2"
        echo "from: $((current + 40))"
    } >second.draft
    "$REEF" keys sign second.draft --key boss.key --after first.yaml --round "$current" -o next.yaml
    mv next.yaml run.yaml
    await broker.log '^epoch: epoch=2'
    start agent-6.log "$REEF" agent run.yaml --key a6.key --log-level debug
    agent[6]=$last
    wait "${agent[3]}"
    last=${agent[6]}
    await agent-6.log '^progress: .* combined=[1-9][0-9]'
    last=${agent[0]}
    await agent-0.log '^epoch: epoch=2'
    for k in 0 1 2 5 6; do kill -TERM "${agent[$k]}"; done
    for k in 0 1 2 5 6; do wait "${agent[$k]}"; done
    run ! grep -hE 'event=refused|two_faced' a*.key.state/audit.log
    python3 "$BATS_TEST_DIRNAME/capture.py" boxes seen >boxes
    [ "$(grep -c '^1 0 .*: 1 2 3 4 5$' boxes)" -gt 20 ]
    [ "$(grep -c '^2 0 .*: 1 2 4 5 6$' boxes)" -gt 10 ]
    [ "$(grep -c '^2 6 .*: 0 1 2 4 5$' boxes)" -gt 10 ]
    run ! grep -E '^2 .*: .*\b3\b' boxes
    # a run cannot stop being sealed
    sed 's/^seal: .*/seal: false/; s/^epoch: .*/epoch: 3/; s/^from: .*/from: 100000/' second.draft >third.draft
    run -2 "$REEF" keys sign third.draft --key boss.key --after run.yaml --round 1000 -o third.yaml
    [[ "$output" == *"seal cannot change from one epoch of run t to the next"* ]]
}
