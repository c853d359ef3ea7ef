# Agents as processes while one who is enrolled floods them. What is counted frame by frame is in test_hostile.c.
bats_require_minimum_version 1.5.0
load run

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    hostile=${REEF%/reef}/tests/hostile
    port=$(free_port)
    make_run 5 "nats://127.0.0.1:$port" 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.25' 'deadline: 2s' \
        'test: {problem: "lms:dimension=10", sync: false, rounds: 100}'
    start_broker
}

teardown() { end_all; }

# Kilobytes that the agents have together.
memory() {
    for pid in "${pids[@]}"; do grep VmRSS "/proc/$pid/status" 2>/dev/null; done | awk '{ sum += $2 } END { print sum }'
}

@test "agents go on while another floods them, and do not grow" {
    pids=()
    for k in 0 1 2 3; do
        start "agent-$k.log" "$REEF" agent run.yaml --key "a$k.key"
        pids+=("$last")
    done
    sizes=()
    while kill -0 "${pids[0]}" 2>/dev/null; do
        "$hostile" flood "$port" a4.key run.yaml 20000
        sizes+=("$(memory)")
    done
    for pid in "${pids[@]}"; do wait "$pid"; done # each with code 0
    echo "${sizes[*]} kB"
    last=$((${#sizes[@]} - 3)) # some may have ended at the last two
    [ "$last" -ge 1 ]
    [ $((sizes[last] * 10)) -lt $((sizes[1] * 11)) ]
    for k in 0 1 2 3; do
        cat "agent-$k.log" "a$k.key.state/audit.log"
        [[ "$(grep '^end:' "agent-$k.log")" =~ " combined="([0-9]+)" alone="([0-9]+) ]]
        [ "${BASH_REMATCH[1]}" -ge 90 ]
        grep -q 'neighbour=a4 cause=length' "a$k.key.state/audit.log"
        grep -qE 'neighbour=a4 cause=(signature|rate)' "a$k.key.state/audit.log"
        # nobody else is blamed, but for being fast where the machine is slow
        run ! grep -E 'neighbour=a[0-3] cause=(length|format|sender|config|subject|shape|signature|two_faced|chunk|value)' \
            "a$k.key.state/audit.log"
    done
}
