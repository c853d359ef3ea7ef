# A coordinator that signs two files for one epoch and gives one to two of seven agents, the other to the rest. With malicious: 0.3 an agent goes on
# where more than 0.56 of the weight is heard beside its own: four neighbours, as the five have.
bats_require_minimum_version 1.5.0
load run

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    make_run 7 "nats://127.0.0.1:$(free_port)" 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.3' 'deadline: 1s' \
        'test: {problem: "lms:dimension=10", sync: false}'
    cp run.yaml first.yaml
    start_broker
    for k in 0 1 2 3 4 5 6; do
        cp first.yaml "run-$k.yaml"
        start "agent-$k.log" "$REEF" agent "run-$k.yaml" --key "a$k.key" --log-level debug
        agent[$k]=$last
    done
}

teardown() { end_all; }

# The last number of that name (round, combined, alone) in the reports of an agent.
told() { sed -n "s/^progress: .* $2=\([0-9]*\).*/\1/p" "agent-$1.log" | tail -n 1; }

# Waits until an agent tells of more than that:  beyond NUMBER WORD COUNT
beyond() {
    for _ in $(seq 1200); do
        now=$(told "$1" "$2")
        if [ "${now:-0}" -gt "$3" ]; then return 0; fi
        kill -0 "${agent[$1]}"
        sleep 0.1
    done
    tail -n 5 "agent-$1.log"
    return 1
}

sign_other() { # DEADLINE FILE
    { sed "s/^deadline: .*/deadline: $1/" draft.yaml; printf 'epoch: 2\nfrom: %s\n' "$from"; } >other.draft
    "$REEF" keys sign other.draft --key boss.key --after first.yaml --round "$current" -o "$2"
}

@test "two files for one epoch: those below the quorum combine nothing, the others go on, the two do not mix, and nobody is accused" {
    for k in 0 1 2 3 4 5 6; do beyond $k combined 10; done
    current=$(sed -n 's/^progress: .* round=\([0-9]*\) .*/\1/p' agent-0.log | tail -n 1)
    from=$((current + 600))
    sign_other 2s left.yaml
    sign_other 3s right.yaml
    for k in 0 1 2 3 4 5 6; do
        if [ $k -lt 2 ]; then cp left.yaml "next-$k.yaml"; else cp right.yaml "next-$k.yaml"; fi
    done
    for k in 0 1 2 3 4 5 6; do mv "next-$k.yaml" "run-$k.yaml"; done
    for k in 0 1 2 3 4 5 6; do
        last=${agent[$k]}
        await "agent-$k.log" '^epoch_known: epoch=2 .* by=file'
        await "agent-$k.log" '^epoch: epoch=2'
    done
    for k in 0 1; do beyond $k alone $(($(told $k alone) + 3)); done
    for k in 2 3 4 5 6; do beyond $k round $((from + 20)); done
    left=$(told 0 combined)
    beyond 0 alone $(($(told 0 alone) + 3))
    [ "$(told 0 combined)" -le "$left" ] # two of seven are no quorum
    for k in 0 1 2 3 4 5 6; do kill -TERM "${agent[$k]}"; done
    for k in 0 1 2 3 4 5 6; do wait "${agent[$k]}"; done
    grep -h 'event=second_file epoch=2' a*.key.state/audit.log # the halves have heard of each other's file
    run ! grep -h two_faced a*.key.state/audit.log
    for k in 2 3 4 5 6; do
        [[ "$(grep '^end:' "agent-$k.log")" =~ " least_weight="([0-9.]+) ]]
        python3 -c "import sys; sys.exit(float('${BASH_REMATCH[1]}') <= 0.7)"
    done
    grep -h 'cause=config' a0.key.state/audit.log a1.key.state/audit.log
}
