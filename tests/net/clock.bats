# The time of a machine is set while an agent runs and its broker is away. clock_step.so (tests/net/preload) sets it for one program alone.
bats_require_minimum_version 1.5.0
load run

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    shim=${REEF%/reef}/tests/clock_step.so
    make_run 4 "nats://127.0.0.1:$(free_port)" 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.25' \
        'deadline: 1s' 'test: {problem: "lms:dimension=10", sync: false}'
    start_broker
}

teardown() {
    kill -CONT "${started[0]}" || true
    end_all
}

# Sets the wall clock of an agent so many seconds ahead of what it is.
set_clock() { # AGENT SECONDS
    python3 -c 'import struct, sys; open(sys.argv[1], "r+b").write(struct.pack("d", float(sys.argv[2])))' "clock-$1" "$2"
}

combined() { # AGENT
    curl -s "http://127.0.0.1:${ports[$1]}/metrics" | sed -n 's/^reef_agent_rounds_total{result="combined"} //p'
}

# Every agent combines three times more, with all others, within a minute.
together() {
    for k in 0 1 2 3; do
        before=$(combined $k)
        for _ in $(seq 300); do
            now=$(combined $k)
            weight=$(curl -s "http://127.0.0.1:${ports[$k]}/metrics" | sed -n 's/^reef_agent_weight //p')
            if [ "${now:-0}" -ge $((${before:-0} + 3)) ] && [[ $weight = 1 || $weight = 0.99999* ]]; then continue 2; fi
            sleep 0.2
        done
        echo "agent $k: $before, $now, weight $weight"
        cat "agent-$k.log" | tail -5
        return 1
    done
}

@test "agents whose wall clocks are set, forwards and back, while the broker is away, find it again" {
    [ -e "$shim" ]
    ports=()
    for k in 0 1 2 3; do
        python3 -c 'import struct; import sys; open(sys.argv[1], "wb").write(struct.pack("d", 0))' "clock-$k"
        ports+=("$(free_port)")
        start "agent-$k.log" env LD_PRELOAD="$shim" REEF_CLOCK="$PWD/clock-$k" "$REEF" agent run.yaml --key "a$k.key" --metrics "${ports[$k]}"
    done
    together
    for step in -86400 86400 -315360000; do
        kill -STOP "${started[0]}" # so that the server is not started again at once
        kill -KILL "$(cat store/server.pid)"
        sleep 1.5 # agents have seen it, and wait to try again
        set_clock 0 "$step"
        set_clock 1 $((step / 2))
        sleep 0.5
        kill -CONT "${started[0]}"
        together
    done
    for k in 0 1 2 3; do run ! grep -E 'two_faced|refused' "a$k.key.state/audit.log"; done
}
