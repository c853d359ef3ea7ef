# Epochs: agents join and leave while a run goes on. The next run file takes the place of the old one, and everybody goes over in the same round.
bats_require_minimum_version 1.5.0
load run

# Agent 4 is silent, so that rounds take 50 ms at least, and there is time to change something.
setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    port=$(free_port)
    make_run 8 "nats://127.0.0.1:$port" 'graph: complete' 'rule: mref' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 2s' \
        'test: {problem: "lms:dimension=10", attack: silent, malicious: "4"}'
    cp run.yaml first.yaml
    cp draft.yaml first.draft
    start_broker
}

teardown() { end_all; }

start_agent() { # start_agent NUMBER; its process is in agent[NUMBER]
    start "agent-$1.log" "$REEF" agent run.yaml --key "a$1.key" --log-level debug
    agent[$1]=$last
}

# The last round that an agent has told of.
round_of() { sed -n 's/^progress: .* round=\([0-9]*\) .*/\1/p' "agent-$1.log" | tail -n 1; }

# Waits until an agent is beyond a round:  reach NUMBER ROUND
reach() {
    for _ in $(seq 1800); do
        now=$(round_of "$1")
        if [ "${now:-0}" -gt "$2" ]; then return 0; fi
        kill -0 "${agent[$1]}"
        sleep 0.1
    done
    tail -n 5 "agent-$1.log"
    return 1
}

# The second epoch, in next.yaml: agent 3 leaves, agent 8 joins, from a round that is so much later:  sign_next ROUNDS
sign_next() {
    "$REEF" keys new a8 >/dev/null 2>&1
    current=$(round_of 0)
    from=$((current + $1))
    {
        sed 's/^  a3: .*/  a3: removed/' first.draft
        echo "  a8: \"$("$REEF" keys show a8.key | grep -oE 'R[A-Z2-7]{55} U[A-Z2-7]{55}')\""
        echo "epoch: 2"
        echo "from: $from"
    } >second.draft
    "$REEF" keys sign second.draft --key boss.key --after first.yaml --round "$current" -o next.yaml
}

# Nobody has blamed anybody.
no_blame() {
    run ! grep -hE 'refused|two_faced' a*.key.state/audit.log
}

@test "one agent leaves and another joins while the run goes on, and nobody is blamed" {
    for k in $(seq 0 7); do start_agent "$k"; done
    for k in 0 1 2 3; do reach $k 20; done
    sign_next 150
    mv next.yaml run.yaml
    await broker.log '^epoch: epoch=2'
    start_agent 8 # before its time: it waits
    for k in 0 1 2 3; do await "agent-$k.log" "^epoch_known: epoch=2 from=$from"; done
    wait "${agent[3]}" # with code 0
    grep -q '^removed: agent=a3 epoch=2' agent-3.log
    for k in 0 1 2; do reach $k $((from + 60)); done
    last=${agent[8]}
    await agent-8.log '^progress: .* combined=[1-9][0-9]' # its first four rounds wait for the silent one until the deadline
    for k in 0 1 2; do
        # not before the round that the file names, and hardly after it
        [[ "$(grep '^epoch: epoch=2' "agent-$k.log")" =~ " round="([0-9]+)" neighbours=7" ]]
        echo "agent $k: ${BASH_REMATCH[1]}, $from"
        [ "${BASH_REMATCH[1]}" -le $((from + 2)) ]
    done
    no_blame
    for k in 0 1 2 4 5 6 7 8; do kill -TERM "${agent[$k]}"; done
    for k in 0 1 2 4 5 6 7 8; do wait "${agent[$k]}"; done
    [[ "$(grep '^end:' agent-3.log)" =~ " round="([0-9]+)" " ]]
    [ "${BASH_REMATCH[1]}" -ge $((from - 2)) ]
    for k in 0 1 2 8; do # together until the end, but for the moment of the change
        [[ "$(grep '^end:' "agent-$k.log")" =~ " round="([0-9]+)" combined="([0-9]+)" alone="([0-9]+)" " ]]
        echo "agent $k: ${BASH_REMATCH[*]}"
        [ "${BASH_REMATCH[3]}" -le 10 ]
    done
    # who comes with the file that is over is told so; the new one is in force
    cmp run.yaml a0.key.state/run.yaml
    run -2 "$REEF" agent first.yaml --key a0.key
    [[ "$output" == *"epoch 1, but this agent is in epoch 2 already"* ]]
}

@test "an agent that is started again before the next epoch begins goes on in the present one; one that slept through it catches up" {
    for k in $(seq 0 7); do start_agent "$k"; done
    for k in 0 1 2 3; do reach $k 20; done
    sign_next 300
    mv next.yaml run.yaml
    for k in 0 1 2; do await "agent-$k.log" '^epoch_known'; done
    kill -KILL "${agent[0]}"
    wait "${agent[0]}" || true
    mv agent-0.log agent-0.before
    start_agent 0
    await agent-0.log "^epoch_known: epoch=2 from=$from"
    reach 0 $((current + 1))
    [ "$(round_of 0)" -lt "$from" ]
    kill -KILL "${agent[1]}" # and this one is away when the others go over
    wait "${agent[1]}" || true
    mv agent-1.log agent-1.before
    start_agent 8
    for k in 0 2 8; do reach $k $((from + 20)); done
    start_agent 1
    last=${agent[1]}
    await agent-1.log '^epoch: epoch=2'
    reach 1 $((from + 40))
    no_blame
}

@test "files that may not follow are ignored, and the run goes on" {
    for k in $(seq 0 7); do start_agent "$k"; done
    for k in 0 1 2 3; do reach $k 10; done
    echo "no run file" >run.yaml
    last=${agent[0]}
    await agent-0.log '^run_file_ignored: '
    # another file for the same epoch
    sed 's/^deadline: .*/deadline: 3s/' first.draft >other.draft
    "$REEF" keys sign other.draft --key boss.key -o other.yaml
    mv other.yaml run.yaml
    await agent-0.log '^run_file_ignored: .*two files for epoch 1'
    grep -q 'event=second_file epoch=1' a0.key.state/audit.log
    # of another coordinator
    sign_next 100
    "$REEF" keys new mallory >/dev/null 2>&1
    { sed "s/^coordinator: .*/coordinator: $("$REEF" keys show mallory.key | grep -o 'R[A-Z2-7]*' | head -n 1)/; s/^epoch: .*/epoch: 1/; s/^from: .*/from: 0/" second.draft; } >theirs.draft
    "$REEF" keys sign theirs.draft --key mallory.key -o theirs.yaml
    mv theirs.yaml run.yaml
    await broker.log '^run_file_ignored: .*coordinator'
    reach 0 $(($(round_of 0) + 40))
    run ! grep -q '^epoch: ' agent-0.log
    kill -0 "${agent[1]}"
    no_blame
}
