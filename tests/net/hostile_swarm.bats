# Swarms in which brokers fail and agents are malicious, over real nats-servers.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    cat >trial.yaml <<END
name: trial
agents: 16
graph: complete
rule: mref
repetitions: 1
seed: 3
problem: {kind: lms, dimension: 10, noise: 0.01}
strategy: {kind: diffusion, mu: 0.4}
rounds: 60
steady: 20
END
}

# A process that a failed test has left stopped would stay so.
teardown() {
    for process in ${agent:-} ${server:-}; do
        kill -CONT "$process" 2>/dev/null || true
    done
}

msd() { python3 -c 'import csv, sys; print(next(csv.DictReader(open(sys.argv[1] + "/summary.csv")))["msd_db"])' "$1"; }
# near FOLDER OTHER DECIBELS: the first is no worse than the second by more than so many
near() { python3 -c 'import sys; a, b, c = map(float, sys.argv[1:]); print(a, b); sys.exit(a > b + c)' "$(msd "$1")" "$(msd "$2")" "$3"; }
# The honest ones of 16 agents, by the run file.
honest() { python3 - "$1/run.yaml" <<'END'
import re, sys
bad = re.search(r'^  malicious: "([^"]*)"', open(sys.argv[1]).read(), re.M).group(1).split()
print(*[k for k in range(16) if str(k) not in bad])
END
}
# No agent has combined models of less than twice F: quorum FOLDER
quorum() { python3 - "$1" <<'END'
import glob, re, sys
f = float(re.search(r'^malicious: (\S+)', open(sys.argv[1] + '/run.yaml').read(), re.M).group(1))
least = [float(x) for log in glob.glob(sys.argv[1] + '/log-*') for x in re.findall(r'least_weight=(\S+)', open(log).read())]
print(min(least), 2 * f, len(least))
sys.exit(len(least) != 16 or min(least) <= 2 * f)
END
}
# Waits until the swarm that writes to `lines` has come to round $1.
reach() {
    for _ in $(seq 1800); do
        if python3 -c 'import re, sys; r = re.findall(r"round (\d+) to", open("lines").read()); sys.exit(not r or int(r[-1]) < int(sys.argv[1]))' "$1"; then
            return 0
        fi
        kill -0 "$swarm" || return 1
        sleep 0.1
    done
    return 1
}
start_swarm() {
    "$REEF" swarm trial.yaml --no-figures --keep keep -o out "$@" 3>&- >lines 2>&1 &
    swarm=$!
}
finish_swarm() {
    code=0
    wait "$swarm" || code=$?
    cat lines
    [ "$code" = 0 ]
}

@test "a broker that is killed three times and stopped for 5 s costs time: rounds go on, never below the quorum" {
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    # with silent agents rounds do not wait for everybody, and take 50 ms at least: there is time to kill something
    start_swarm --rounds 200 --set malicious=3 --set attack=silent
    for round in 20 50 80; do
        reach "$round"
        kill -KILL "$(cat keep/store/server.pid)"
    done
    reach 110
    server=$(cat keep/store/server.pid)
    kill -STOP "$server"
    sleep 5
    kill -CONT "$server"
    finish_swarm
    quorum keep
    [ "$(grep -c 'ready' keep/broker.log)" -ge 4 ]
    near out plain 3
}

@test "two brokers, one of them killed for good: rounds go on, next to none alone" {
    start_swarm --rounds 120 --brokers 2 --set malicious=3 --set attack=silent
    reach 20
    broker=$(pgrep -P "$swarm" -f 'store-1 ')
    kill -KILL "$broker" # and with it, by its parent-death signal, the server
    finish_swarm
    quorum keep
    [[ "$(cat lines)" =~ ([0-9.]+)" % of their rounds alone" ]]
    python3 -c "import sys; sys.exit(${BASH_REMATCH[1]} >= 2)"
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    near out plain 3
}

@test "an agent that is stopped for a while catches up, and accuses nobody of what has piled up" {
    start_swarm --rounds 400 --set malicious=3 --set attack=silent
    reach 20
    read -r one other _ <<<"$(honest keep)"
    agent=$(pgrep -P "$swarm" -f "key-$one ")
    kill -STOP "$agent"
    # a record per round: the others do forty more at least, and are far from the end, since they are told of within a second
    enough=$((3 * $(stat -c %s "keep/record-$other")))
    for _ in $(seq 1800); do
        if [ "$(stat -c %s "keep/record-$other")" -ge "$enough" ]; then break; fi
        sleep 0.1
    done
    [ "$(stat -c %s "keep/record-$other")" -ge "$enough" ]
    kill -CONT "$agent"
    finish_swarm
    [[ "$(cat lines)" == *" 0 frames refused"* ]]
    [ -z "$(cat keep/state-*/audit.log 2>/dev/null)" ]
}

@test "an agent that is away until the others have ended, and the store has forgotten them, does not keep the swarm" {
    start_swarm --rounds 60 --deadline 1 --set malicious=3 --set attack=silent
    reach 10
    read -r one _ <<<"$(honest keep)"
    agent=$(pgrep -P "$swarm" -f "key-$one ")
    kill -STOP "$agent"
    alone() { [ "$(pgrep -P "$swarm" -f ' agent ' | wc -l)" = 1 ]; }
    for _ in $(seq 1200); do
        if alone; then break; fi
        sleep 0.1
    done
    alone
    sleep 12 # models are stored for 10 s
    kill -CONT "$agent"
    for _ in $(seq 1800); do
        kill -0 "$swarm" 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 "$swarm" 2>/dev/null; then
        cat lines
        kill -TERM "$swarm"
        return 1
    fi
    finish_swarm
    quorum keep
    [[ "$(grep '^end:' "keep/log-$one")" =~ " round="([0-9]+)" " ]]
    [ "${BASH_REMATCH[1]}" -lt 60 ]
}

@test "5 of 16 malicious, and 7 with malicious: 0.45: less than 3 dB worse than nobody malicious" {
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    for attack in additive:delta=1000 sign_flip alie silent; do
        "$REEF" swarm trial.yaml -q --no-figures -o "${attack%%:*}" --set malicious=5 --set "attack=$attack"
        near "${attack%%:*}" plain 3
    done
    "$REEF" swarm trial.yaml -q --no-figures -o late --set malicious=5 --late 0.9 --deadline 1
    near late plain 3
    "$REEF" swarm trial.yaml -q --no-figures -o seven --set malicious=7 --set attack=additive:delta=1000 --malicious 0.45
    near seven plain 3
}

@test "two-faced agents whose exclusion leaves no quorum keep nobody from starting" {
    timeout 120 "$REEF" swarm trial.yaml --no-figures -o halves --set agents=20 --set malicious=9 --set attack=zero --set rounds=40 \
        --set graph=complete --brokers 2 --two-faced 5 --deadline 0.5 --keep halves-kept
    for k in $(honest halves-kept); do [ "$(grep -c 'event=two_faced' "halves-kept/state-$k/audit.log")" = 9 ]; done
}

# Five of them are excluded, and nobody else:  faces_found SWARM-OPTION...
faces_found() {
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    "$REEF" swarm trial.yaml --no-figures -o faces --set malicious=5 --brokers 2 --two-faced 5 --keep keep "$@"
    near faces plain 3
    for k in $(honest keep); do
        # shellcheck disable=SC2012 # names of our own
        [ "$(ls keep/state-"$k"/proof-* | wc -l)" = 5 ]
        [ "$(grep -c 'event=two_faced' "keep/state-$k/audit.log")" = 5 ]
        for l in $(honest keep); do [ ! -e "keep/state-$k/proof-$l" ]; done
    done
    # the round in which an honest agent got the last proof
    for k in $(honest keep); do
        last=$(grep -o 'event=two_faced at=[0-9]*' "keep/state-$k/audit.log" | sed 's/.*=//' | sort -n | tail -1)
        echo "agent $k: $last"
        [ "$last" -le 3 ]
    done
}

@test "sealed models of two-faced agents are as two-faced as others" {
    faces_found --seal
    grep -q '^seal: true$' keep/run.yaml
}

@test "two-faced agents over two brokers are excluded by all honest ones within 3 rounds, for good, with proofs" {
    faces_found
    proof=$(ls keep/state-"$(honest keep | cut -d' ' -f1)"/proof-* | head -1)
    run -0 "$REEF" proof "$proof" --run keep/run.yaml
    [[ "$output" == *"agent-${proof##*-} of run trial"* ]]
    [[ "$output" == *"valid proof"* ]]
    # a second manifest that is the first, a damaged one, and no proof at all
    { head -c 320 "$proof"; head -c 320 "$proof"; } >twice
    run -1 "$REEF" proof twice
    [[ "$output" == *"NOT a proof"* ]]
    python3 -c 'import sys; b = bytearray(open(sys.argv[1], "rb").read()); b[600] ^= 1; open("damaged", "wb").write(b)' "$proof"
    run -1 "$REEF" proof damaged
    head -c 600 "$proof" >short
    run -3 "$REEF" proof short
    # proofs are taken up again by the next process
    k=$(honest keep | cut -d' ' -f1)
    run -0 "$REEF" agent keep/run.yaml --key "keep/key-$k" --state "keep/state-$k"
    [[ "$output" == *"excluded=5"* ]]
}
