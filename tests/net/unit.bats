# The systemd units, and what they count on: readiness, watchdog, a quick and clean end.
bats_require_minimum_version 1.5.0

units=$BATS_TEST_DIRNAME/../../packaging/systemd

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# Ends what a test has started, by its id.
teardown() {
    for process in $started; do
        kill -KILL "$process" 2>/dev/null || true
    done
}

# Waits until a command succeeds, at most so long: within SECONDS COMMAND...
within() {
    for _ in $(seq $((10 * $1))); do
        if "${@:2}"; then return 0; fi
        sleep 0.1
    done
    return 1
}

# A run of 4 agents without end, its keys and states in keep/; the broker is started, and its id in $broker.
network() {
    cat >trial.yaml <<END
name: trial
agents: 4
graph: complete
rule: ref
problem: {kind: lms, dimension: 10, noise: 0.01}
strategy: {kind: diffusion, mu: 0.05}
rounds: 2
repetitions: 1
END
    "$REEF" swarm trial.yaml -q --no-figures -o made --keep keep --wait
    rm -rf keep/state-* keep/record-* keep/store
    sed -e 's/^  rounds: .*/  rounds: 0/' keep/draft.yaml >draft.yaml
    "$REEF" keys sign draft.yaml --key keep/coordinator.key -o run.yaml
    "$REEF" broker run.yaml --store store 3>&- 2>broker.log &
    broker=$!
    started="$started $broker"
    within 60 grep -q '^ready' broker.log
}

# Starts agent K; its id is in ${agent[K]}.
start_agent() {
    "$REEF" agent run.yaml --key "keep/key-$1" --state "state-$1" --log logfmt --log-level debug 3>&- 2>"log-$1" &
    agent[$1]=$!
    started="$started $!"
}

# Rounds that agent K has ended: the last progress it told.
rounds_of() { sed -n 's/.*event=progress.* round=\([0-9]*\) .*/\1/p' "log-$1" | tail -n 1; }
beyond() { [ "$(rounds_of "$1")" -gt "$2" ]; }

@test "both units are hardened: systemd-analyze security is 2.0 at most" {
    command -v systemd-analyze
    for unit in reef-agent reef-broker; do
        run -0 systemd-analyze security --offline=yes --threshold=20 --no-pager "$units/$unit@.service"
        # the figure that the manual states, and a threshold that can fail
        [[ "$output" =~ "Overall exposure level for $unit@"[a-z]*".service: "([0-9.]+)" " ]]
        grep -q "are rated ${BASH_REMATCH[1]} by .systemd-analyze security" "$BATS_TEST_DIRNAME/../../docs/operating.md"
        run ! systemd-analyze security --offline=yes --threshold=1 --no-pager "$units/$unit@.service"
    done
}

@test "both units are well-formed, and their options are those of the commands" {
    for unit in reef-agent reef-broker; do
        sed -e "s,/usr/bin/reef,$REEF," -e '/^Documentation=/d' "$units/$unit@.service" >"$unit@.service"
        run -0 systemd-analyze verify --man=no "./$unit@.service"
        for option in $(sed -n 's/^ExecStart=//p' "$unit@.service" | grep -o -- '--[a-z-]*'); do
            "$REEF" "${unit#reef-}" --help | grep -q -- "$option"
        done
    done
}

@test "the agent's command line works as systemd would run it: it says that it is ready and alive" {
    network
    mkdir -m 700 credentials
    cp keep/key-0 credentials/agent.key
    chmod 440 credentials/agent.key # an access list shows as bits of the group
    sed -n 's/^ExecStart=//p' "$units/reef-agent@.service" |
        sed -e "s,/usr/bin/reef,$REEF," -e 's,/etc/reef/%i/run.yaml,run.yaml,' >line
    python3 - >heard <<'END' 3>&- &
import socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify")
s.settimeout(30)
heard = set()
while len(heard) < 3:
    heard.add(s.recv(100).decode())
print(*sorted(heard), flush=True)
END
    listener=$!
    started="$started $listener"
    within 10 test -S notify
    CREDENTIALS_DIRECTORY=credentials STATE_DIRECTORY=state NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=60000000 ARGUMENTS='' \
        sh -c "exec $(cat line)" 3>&- 2>log-0 &
    agent[0]=$!
    started="$started ${agent[0]}"
    within 30 grep -qs "event=start " log-0
    within 10 grep -q 'event=connected ' log-0
    sleep 1.5 # a sign of life comes once a second
    kill -TERM "${agent[0]}"
    wait "${agent[0]}"
    wait "$listener"
    grep -qx 'READY=1 STOPPING=1 WATCHDOG=1' heard
    # elsewhere such a key is refused
    run -5 "$REEF" agent run.yaml --key credentials/agent.key --state other
    [[ "$output" == *"may be read by others"* ]]
}

@test "SIGTERM: checkpoint, good-bye, exit 0; nobody waits for an agent that has left" {
    network
    for k in 0 1 2 3; do start_agent $k; done
    for k in 0 1 2 3; do within 60 beyond $k 3; done
    began=$(date +%s)
    kill -TERM "${agent[3]}"
    wait "${agent[3]}"
    [ $(($(date +%s) - began)) -le 10 ] # 5 s are promised; this machine may be busy
    ls state-3/checkpoint.*
    grep -q 'event=end agent=agent-3' log-3
    # the run waits for everybody until its deadline of a minute, unless they have said good-bye
    last=$(rounds_of 0)
    within 30 beyond 0 $((last + 20))
    # it goes on from where it was
    start_agent 3
    within 30 grep -q 'event=start .* round=[1-9]' log-3
    within 60 grep -q 'event=progress' log-3
    for k in 0 1 2 3; do kill -TERM "${agent[$k]}"; done
    for k in 0 1 2 3; do wait "${agent[$k]}"; done
}

@test "SIGTERM ends an agent although its broker hangs, and the broker itself" {
    network
    for k in 0 1 2 3; do start_agent $k; done
    within 60 beyond 0 3
    server=$(pgrep -P "$broker")
    started="$started $server"
    kill -STOP "$server"
    began=$(date +%s)
    kill -TERM "${agent[0]}"
    wait "${agent[0]}"
    [ $(($(date +%s) - began)) -le 10 ] # 5 s are promised; this machine may be busy
    ls state-0/checkpoint.*
    kill -CONT "$server"
    for k in 1 2 3; do
        kill -TERM "${agent[$k]}"
        wait "${agent[$k]}"
    done
    kill -TERM "$broker"
    wait "$broker"
}
