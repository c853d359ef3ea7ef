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
    [ -e a8.key ] || "$REEF" keys new a8 >/dev/null 2>&1
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
    run ! grep -hE 'event=refused|two_faced' a*.key.state/audit.log
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
    # who comes with the file that is over works by the one in force
    cmp run.yaml a0.key.state/run.yaml
    cmp first.yaml a0.key.state/run.before.yaml
    start again.log "$REEF" agent first.yaml --key a0.key
    await again.log '^run_file_kept: epoch=2 given=1'
    await again.log '^start: .* neighbours=7 '
    cmp run.yaml a0.key.state/run.yaml
}

# What somebody has refused, by cause:  audit_of NUMBER
audit_of() { sed -n 's/.*event=run_file_refused cause=\([a-z]*\) .*/\1/p' "a$1.key.state/audit.log" | sort -u | tr '\n' ' '; }

# Everybody has a file of their own, and agent 4 is malicious: nobody runs it, and its key sends whatever it likes.
@test "the next file is given to one agent and reaches broker and agents through the network, past files of no use" {
    hostile=${REEF%/reef}/tests/hostile
    end_all
    port=$(free_port)
    sed -i "s|^brokers: .*|brokers: [\"nats://127.0.0.1:$port\"]|" first.draft
    "$REEF" keys sign first.draft --key boss.key -o first.yaml
    cp first.yaml run.yaml
    start_broker
    for k in 0 1 2 3 5 6 7; do
        cp first.yaml "run-$k.yaml"
        start "agent-$k.log" "$REEF" agent "run-$k.yaml" --key "a$k.key" --log-level debug
        agent[$k]=$last
    done
    for k in 0 1 2 3; do reach $k 20; done
    sign_next 100
    # not signed; changed after signing; of somebody else; of another run; a second file of this one; too large for the store
    "$REEF" keys new mallory >/dev/null 2>&1
    echo "no run file" >garbage
    sed 's/^malicious: .*/malicious: 0.01/' next.yaml >changed
    sed "s/^coordinator: .*/coordinator: $("$REEF" keys show mallory.key | grep -o 'R[A-Z2-7]*' | head -n 1)/" first.draft >theirs.draft
    "$REEF" keys sign theirs.draft --key mallory.key -o theirs
    sed 's/^id: 5f/id: 6f/' first.draft >other.draft
    "$REEF" keys sign other.draft --key boss.key -o other
    sed 's/^deadline: .*/deadline: 3s/' first.draft >twin.draft
    "$REEF" keys sign twin.draft --key boss.key -o twin
    head -c 300000 /dev/zero >huge
    for file in garbage changed theirs other twin huge; do
        "$hostile" put "$port" a4.key reef.t.c.4 1 <$file
        sleep 1.2 # the broker looks at one file of an agent a second
        for _ in $(seq 150); do # until agent 0 has asked for it; the store takes no huge one
            [ $file = huge ] || grep -q "$(case $file in other) echo cause=refused ;; twin) echo second_file ;; *) echo cause=signature ;; esac)" \
                a0.key.state/audit.log 2>/dev/null && break
            sleep 0.3
        done
    done
    [ "$(audit_of 0)" = "refused signature " ]
    grep -q 'event=second_file epoch=1' a0.key.state/audit.log
    last=${agent[0]}
    await agent-0.log '^run_file_ignored: .* from=network'
    await broker.log '^run_file_ignored: .* from=network'
    run ! grep -hE '^epoch' broker.log agent-*.log
    run -1 "$hostile" put "$port" a4.key reef.t.c.5 1 <next.yaml # its own place alone
    run -1 "$hostile" put "$port" a4.key reef.t.c.b.2 1 <garbage
    # the right one, to one agent alone, while another floods
    sign_next 300
    start flood.log "$hostile" put "$port" a4.key reef.t.c.4 2000 <twin
    mv next.yaml run-1.yaml
    last=${agent[1]}
    await agent-1.log "^epoch_known: epoch=2 from=$from .* by=file"
    await broker.log "^epoch: epoch=2 from=$from"
    for k in 0 2 3 5; do
        last=${agent[$k]}
        await "agent-$k.log" "^epoch_known: epoch=2 from=$from .* by=network"
    done
    start agent-8.log "$REEF" agent run-1.yaml --key a8.key --log-level debug
    agent[8]=$last
    wait "${agent[3]}" # with code 0
    for k in 0 1 2; do reach $k $((from + 20)); done
    for k in 0 1 2; do grep -q '^epoch: epoch=2 .* neighbours=7' "agent-$k.log"; done
    await agent-8.log '^progress: .* combined=[1-9]'
    # the old file is of no use any more: not to agents, and not to broker and agents that are started with it
    "$hostile" put "$port" a4.key reef.t.c.4 1 <first.yaml
    kill -TERM "${agent[0]}" "${started[0]}"
    wait "${agent[0]}" "${started[0]}" || true
    cmp first.yaml run-0.yaml
    mv broker.log broker.before
    mv agent-0.log agent-0.before
    start_broker
    grep -q '^run_file_kept: epoch=2 given=1' broker.log
    start agent-0.log "$REEF" agent run-0.yaml --key a0.key --log-level debug
    agent[0]=$last
    await agent-0.log '^run_file_kept: epoch=2 given=1'
    await agent-0.log '^progress: .* combined=[1-9]'
    sleep 6 # it asks everybody
    run ! grep -hE '^epoch: epoch=1|^epoch_known: epoch=1' agent-*.log
    [ "$(grep -c '^epoch: ' agent-2.log)" = 1 ]
    kill -0 "${agent[1]}"
    no_blame
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

@test "an agent that was killed while it put the files of an epoch in place does not go back to the one before" {
    start_agent 0
    await agent-0.log '^start: '
    kill -TERM "${agent[0]}"
    wait "${agent[0]}"
    current=0
    { cat first.draft; printf '%s\n' 'epoch: 2' 'from: 20'; } >second.draft
    { cat first.draft; printf '%s\n' 'epoch: 3' 'from: 100000'; } >third.draft
    "$REEF" keys sign second.draft --key boss.key --after first.yaml --round 0 -o second.yaml
    "$REEF" keys sign third.draft --key boss.key --after second.yaml --round 30 -o third.yaml
    # between the two renames: the file in force has the name of the one before, and the next one its own still
    mv second.yaml a0.key.state/run.before.yaml
    mv third.yaml a0.key.state/run.next.yaml
    rm a0.key.state/run.yaml
    mv agent-0.log agent-0.before
    start_agent 0
    await agent-0.log '^start: '
    grep -q '^run_file_kept: epoch=2 given=1' agent-0.log
    grep -q '^epoch_known: epoch=3 from=100000' agent-0.log
}
