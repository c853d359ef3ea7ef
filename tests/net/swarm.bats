# Agents as processes over a real nats-server. With everybody there a swarm has the bits of `reef run`.
bats_require_minimum_version 1.5.0

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# An experiment of one cell: experiment RULE MORE...
experiment() {
    rule=$1
    shift
    {
        echo "name: trial"
        echo "agents: 16"
        echo "graph: ring:k=2"
        echo "weights: metropolis"
        echo "rule: \"$rule\""
        echo "repetitions: 1"
        echo "seed: 3"
        printf '%s\n' "$@"
    } >trial.yaml
}

# Plays the experiment both ways, as a swarm with options:  same_bits SWARM-OPTION...
# Tables and all models must be the same files. Sets `refused`, the frames that were refused.
same_bits() {
    rm -rf run swarm
    "$REEF" run trial.yaml -q --no-figures --save-models -o run
    "$REEF" swarm trial.yaml --no-figures -o swarm "$@" >table
    refused=$(sed -n 's/.* alone, \([0-9]*\) frames refused.*/\1/p' table)
    cmp run/models/cell-0.safetensors swarm/models/cell-0.safetensors
    cmp run/summary.csv swarm/summary.csv
    cmp run/curves.csv swarm/curves.csv
    [ ! -e run/trust.csv ] || cmp run/trust.csv swarm/trust.csv
    [ -s swarm/report.html ]
}

lms=('problem: {kind: lms, dimension: 10, noise: 0.01}' 'strategy: {kind: diffusion, mu: 0.05}' 'rounds: 100')

@test "ref: a swarm has the bits of a run" {
    experiment ref "${lms[@]}" 'malicious: 2' 'attack: additive:delta=1000' 'trust: true'
    same_bits
}

@test "mref: a swarm has the bits of a run, its memory included" {
    experiment mref "${lms[@]}" 'malicious: 2' 'attack: sign_flip' 'trust: true'
    same_bits
}

@test "sealed: a swarm has the bits of a run, and so the bits of one that is not sealed, with models inline and in chunks" {
    experiment ref "${lms[@]}" 'malicious: 2' 'attack: additive:delta=1000' 'trust: true'
    same_bits --seal --keep kept
    [ "$refused" = 0 ]
    grep -q '^seal: true$' kept/run.yaml
    experiment mref "${lms[@]}" 'malicious: 2' 'attack: sign_flip' 'trust: true'
    same_bits --seal
    [ "$refused" = 0 ]
    for rule in ref mref; do
        experiment $rule 'problem: {kind: lms, dimension: 17000, noise: 0.01}' 'strategy: {kind: diffusion, mu: 0.00001}' 'rounds: 3' \
            'malicious: 2' 'attack: sign_flip'
        same_bits --seal
        [ "$refused" = 0 ]
    done
    experiment ref "${lms[@]}" # those who hear an agent are others than those it hears
    sed -i 's/^graph: .*/graph: "erdos_renyi:p=0.7,directed=true"/; s/^weights: .*/weights: uniform/; s/^rounds: .*/rounds: 10/' trial.yaml
    same_bits --seal
    [ "$refused" = 0 ]
}

@test "cclip and krum: a swarm has the bits of a run" {
    experiment cclip:tau=1 "${lms[@]}"
    same_bits
    experiment krum:f=1 "${lms[@]}" 'malicious: 1' 'attack: gaussian:sigma=10'
    same_bits
}

@test "digits: a swarm has the bits of a run" {
    experiment mref 'problem: {kind: softmax, data: digits, partition: iid}' \
        'strategy: {kind: diffusion, mu: 0.5, batch: 16}' 'rounds: 30' 'every: 10' 'malicious: 2' 'attack: label_flip'
    same_bits
}

@test "sparse and dense: honest neighbours are not refused, whoever compares echoes with whom" {
    experiment ref "${lms[@]}" 'graph: ring:k=1' 'rounds: 10'
    sed -i '/^graph: ring:k=2/d; /^rounds: 100$/d' trial.yaml
    same_bits
    [ "$refused" = 0 ]
    sed -i 's/^agents: .*/agents: 40/; s/^graph: .*/graph: complete/' trial.yaml # more neighbours than an agent has witnesses
    same_bits
    [ "$refused" = 0 ]
}

@test "attackers that hear first: as in a run where they hear everybody" {
    experiment ref "${lms[@]}" 'graph: complete' 'malicious: 3' 'attack: alie'
    sed -i '/^graph: ring/d' trial.yaml
    same_bits
}

@test "a run has the name of its experiment, as far as a run can have it" {
    experiment ref "${lms[@]}" 'rounds: 3'
    sed -i '/^rounds: 100$/d' trial.yaml
    for name in 'Trial: No. 7 (μ)=trial-no-7' '(μ)=swarm' "$(printf 'ab-%.0s' $(seq 20))=$(printf 'ab-%.0s' $(seq 10))ab"; do
        sed -i "s/^name: .*/name: \"${name%=*}\"/" trial.yaml
        rm -rf swarm keep
        "$REEF" swarm trial.yaml -q --no-figures -o swarm --keep keep
        grep -q "^run: \"${name#*=}\"$" keep/run.yaml
    done
}

@test "what cannot be played is refused with a sentence" {
    experiment ref "${lms[@]}"
    run -2 "$REEF" swarm trial.yaml --set 'rule=[mean, ref]'
    [[ "$output" == *"2 configurations"* ]]
    run -2 "$REEF" swarm trial.yaml --set links=failing:p=0.1
    [[ "$output" == *"--drop"* ]]
    run -2 "$REEF" swarm trial.yaml --set strategy=federated
    run -2 "$REEF" swarm
    run -2 "$REEF" swarm trial.yaml --drop 2
    run ! "$REEF" swarm nowhere.yaml
    [ ! -e results ]
}

msd() { python3 -c 'import csv, sys; print(next(csv.DictReader(open(sys.argv[1] + "/summary.csv")))["msd_db"])' "$1"; }
# near FOLDER OTHER DECIBELS
near() { python3 -c 'import sys; a, b, c = map(float, sys.argv[1:]); print(a, b); sys.exit(abs(a - b) > c)' "$(msd "$1")" "$(msd "$2")" "$3"; }

trouble=('problem: {kind: lms, dimension: 10, noise: 0.01}' 'strategy: {kind: diffusion, mu: 0.1}' 'rounds: 300'
    'malicious: 2' 'attack: additive:delta=1000')

# Plays trial.yaml and hears at every broker what agents put into their slots:  observed SWARM_OPTION...
# On the ring of 16, four agents have everybody in their neighbourhoods. Prints how many rounds of agents were seen with one model, and with more.
observed() {
    local hearing=() ports port k
    rm -rf keep seen-*
    "$REEF" swarm trial.yaml --no-figures "$@" --keep keep 3>&- >told 2>&1 &
    swarm=$!
    for _ in $(seq 600); do
        ports=$(grep -s '^brokers:' keep/run.yaml | grep -oE '[0-9]+"' | tr -d '"')
        if [ -n "$ports" ] && [ "$(cat keep/broker.log* 2>/dev/null | grep -c '^ready')" = "$(wc -l <<<"$ports")" ]; then break; fi
        sleep 0.1
    done
    for port in $ports; do
        for k in 0 5 10 13; do
            "${REEF%/reef}/tests/hostile" hear "$port" "keep/key-$k" keep/run.yaml 3>&- >"seen-$port-$k" &
            hearing+=($!)
        done
    done
    wait "$swarm" || { cat told && return 1; }
    wait "${hearing[@]}"
    [ "$(cat seen-* | grep -c hearing)" = "${#hearing[@]}" ]
    cat seen-* | python3 -c '
import collections, sys
seen = collections.defaultdict(set)
for line in sys.stdin:
    if line.strip() != "hearing":
        agent, number, mark = line.split()
        seen[int(agent), int(number)].add(mark)
assert {agent for agent, _ in seen} == set(range(16)), sorted({agent for agent, _ in seen})
print(sum(len(marks) == 1 for marks in seen.values()), sum(len(marks) > 1 for marks in seen.values()))'
}

@test "kills: an observer of all slots sees no round signed twice, nobody is refused, and the models are as good in the end" {
    experiment ref "${trouble[@]}" 'steady: 150'
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    run -0 observed -o killed --kills 40
    read -r once more <<<"$output"
    echo "$output"
    [ "$more" = 0 ]
    [ "$once" -gt 2400 ] # of 4800: agents that are killed or late skip rounds, and the observer comes after the start
    grep -q " 0 frames refused" told
    grep -q "  killed [1-9][0-9]*$" told # progress says how often
    # shellcheck disable=SC2012 # names of our own
    [ "$(ls keep/state-*/audit.log 2>/dev/null | wc -l)" = 0 ]
    [ "$(cat keep/log-* | grep -c "^start: agent=")" -ge 50 ] # 16 starts and most of 40 restarts
    near plain killed 1
}

@test "sealed: kills change nothing of what is promised" {
    experiment ref "${trouble[@]}" 'steady: 75'
    sed -i 's/^rounds: .*/rounds: 150/' trial.yaml
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    run -0 observed -o killed --kills 15 --seal
    read -r once more <<<"$output"
    echo "$output"
    [ "$more" = 0 ]
    [ "$once" -gt 1200 ] # of 2400
    grep -q " 0 frames refused" told
    [ "$(cat keep/log-* | grep -c "^start: agent=")" -ge 20 ]
    near plain killed 1
}

@test "the observer sees it where there are two models for a round" {
    experiment ref "${trouble[@]}"
    sed -i 's/^rounds: .*/rounds: 100/; /^attack:/d' trial.yaml
    run -0 observed -o faces --brokers 2 --two-faced 5
    read -r once more <<<"$output"
    [ "$more" -gt 20 ] # of 200, of two agents; the observer comes after the start
    [ "$more" -le 200 ]
    [ "$once" -gt 280 ] # of 1400
}

@test "loss: with 30 % of the messages lost next to no round is alone, and accuracy stays" {
    experiment ref "${trouble[@]}" 'steady: 150'
    "$REEF" swarm trial.yaml -q --no-figures -o plain
    run -0 "$REEF" swarm trial.yaml --no-figures -o lossy --drop 0.3
    [[ "$output" =~ ([0-9.]+)" % of their rounds alone" ]]
    python3 -c "import sys; sys.exit(${BASH_REMATCH[1]} >= 2)"
    near plain lossy 1
}

@test "silent agents cost time, not the result" {
    experiment ref "${trouble[@]}" 'steady: 75'
    sed -i 's/^attack: .*/attack: silent/; s/^rounds: .*/rounds: 150/' trial.yaml
    run -0 "$REEF" swarm trial.yaml --no-figures -o silent
    [[ "$output" == *" 0.0 % of their rounds alone"* ]]
}

# Plays trial.yaml as a swarm and prints the most private memory that its processes but the server had together, in bytes per agent.
memory_per_agent() {
    "$REEF" swarm trial.yaml --no-figures -o large --keep kept 3>&- 2>lines >table &
    swarm=$!
    python3 - "$swarm" "$1" <<'PROGRAM'
import os, sys, time
swarm, agents = int(sys.argv[1]), int(sys.argv[2])

def private(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"\0agent\0" not in file.read():
                return 0
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
    except (FileNotFoundError, ProcessLookupError):
        return 0

most = 0
while os.path.exists(f"/proc/{swarm}/task/{swarm}/children") and open(f"/proc/{swarm}/stat").read().split()[2] != "Z":
    children = open(f"/proc/{swarm}/task/{swarm}/children").read().split()
    most = max(most, sum(map(private, children)))
    time.sleep(0.5)
print(most // agents)
PROGRAM
    wait "$swarm"
}

# A minute and a half on two busy cores; REEF_LARGE=200 in the environment for fewer. Models that were lost would show in the bits: agents
# go on with older ones.
@test "large: a thousand agents all combine in every round with the bits of a run, with less than 2 MB of memory each" {
    agents=${REEF_LARGE:-1000}
    experiment ref 'problem: {kind: lms, dimension: 1000, noise: 0.01}' 'strategy: {kind: diffusion, mu: 0.001}' 'rounds: 10'
    sed -i "s/^agents: 16/agents: $agents/" trial.yaml
    bytes=$(memory_per_agent "$agents")
    cat lines table
    grep -q "^$agents agents in .* 0.0 % of their rounds alone, 0 frames refused" table lines
    "$REEF" run trial.yaml -q --no-figures --save-models -o run
    cmp run/models/cell-0.safetensors large/models/cell-0.safetensors
    echo "$bytes bytes per agent"
    [ "$bytes" -gt 0 ]
    [ "$bytes" -lt 2000000 ]
}

@test "an interrupted swarm leaves nothing behind" {
    experiment ref "${lms[@]}" 'rounds: 100000' 'every: 100000'
    sed -i '/^rounds: 100$/d' trial.yaml
    export TMPDIR=$BATS_TEST_TMPDIR/tmp
    mkdir "$TMPDIR"
    "$REEF" swarm trial.yaml -o stopped 3>&- 2>lines &
    swarm=$!
    for _ in $(seq 100); do
        if grep -q 'round' lines; then break; fi
        sleep 0.2
    done
    grep -q 'round' lines
    kill -TERM "$swarm"
    code=0
    wait "$swarm" || code=$?
    [ "$code" = 1 ]
    grep -q 'stopped' lines
    grep -qE 's  round [0-9]+ to [0-9]+ of 100000  alone ' lines # before anything is measured there is no number without a name
    [ -z "$(ls "$TMPDIR")" ]
    [ ! -e stopped/summary.csv ]
    run -1 pgrep -P "$swarm"
}

@test "a swarm is interrupted while its broker starts" {
    experiment ref "${lms[@]}"
    printf '#!/bin/sh\nexec sleep 300\n' >mute-server
    chmod +x mute-server
    REEF_NATS_SERVER=$PWD/mute-server "$REEF" swarm trial.yaml -o stopped 3>&- 2>lines &
    swarm=$!
    for _ in $(seq 100); do
        if pgrep -P "$swarm" >/dev/null; then break; fi
        sleep 0.1
    done
    kill -TERM "$swarm"
    code=0
    wait "$swarm" || code=$?
    [ "$code" = 1 ]
    grep -q 'stopped before' lines
}

@test "an agent goes on where it was; its key and folder are for one process" {
    experiment ref "${lms[@]}"
    "$REEF" swarm trial.yaml -q --no-figures -o done --keep keep
    "$REEF" broker keep/run.yaml --print | grep -q 'nkey'
    run -0 "$REEF" check keep/run.yaml
    # the lock of a running agent
    exec 8>>keep/state-3/lock
    flock 8
    run -4 "$REEF" agent keep/run.yaml --key keep/key-3 --state keep/state-3
    [[ "$output" == *"another process"* ]]
    exec 8>&-
    # all rounds are done: it reads its checkpoint and ends
    run -0 "$REEF" agent keep/run.yaml --key keep/key-3 --state keep/state-3
    [[ "$output" == *"round=100 "* ]]
    run -2 "$REEF" agent keep/run.yaml --key keep/coordinator.key --state keep/other
    [[ "$output" == *"enrolled"* ]]
    run -3 "$REEF" agent keep/draft.yaml --key keep/key-3 --state keep/state-3
    "$REEF" keys new mallory 2>/dev/null
    run -3 "$REEF" agent keep/run.yaml --key keep/key-3 --state keep/state-3 \
        --coordinator "$("$REEF" keys show mallory.key | cut -d' ' -f1)"
    [[ "$output" == *"another coordinator"* ]]
}

@test "options that make no sense are refused, not rounded" {
    experiment ref "${lms[@]}"
    for option in '--brokers 2.5' '--brokers 0' '--brokers 9' '--stale 1.5' '--kills 0.5' '--kills -1' '--port 80.5' '--port 0' '--malicious 0' \
        '--malicious 0.5' '--malicious nan' '--deadline 0' '--deadline -1' '--drop 1' '--late 2'; do
        # shellcheck disable=SC2086
        run -2 "$REEF" swarm trial.yaml $option
        [[ "$output" == *"${option%% *} takes"* ]]
    done
    run -2 "$REEF" swarm trial.yaml --two-faced 5 # to whom would it show its other face?
    [[ "$output" == *"--brokers 2"* ]]
    run -2 "$REEF" swarm trial.yaml --port 8000
    [[ "$output" == *"--dash"* ]]
}

@test "a broker that ends is told of with its last words" {
    experiment ref "${lms[@]}"
    sed -i 's/^rounds: .*/rounds: 1000000/' trial.yaml
    mkdir place
    TMPDIR=$PWD/place "$REEF" swarm trial.yaml --no-figures -o out 2>told 3>&- &
    swarm=$!
    for _ in $(seq 600); do
        if grep -q 'round' told; then break; fi
        sleep 0.1
    done
    kill -KILL "$(pgrep -P "$swarm" -f ' broker ')"
    code=0
    wait "$swarm" || code=$?
    [ "$code" = 1 ]
    tail -n 1 told
    grep -q '^reef swarm: the broker has ended: ready: ' told
    [ -z "$(ls place)" ]
}

@test "what no swarm can be is told before anything is started" {
    experiment ref "${lms[@]}"
    sed -i '/^graph: /d' trial.yaml
    echo 'graph: complete' >>trial.yaml
    run -2 "$REEF" swarm trial.yaml -q --set agents=2
    [[ "$output" == "reef swarm: run trial: agent-0 has half of the weight"* ]]
    run ! "$REEF" swarm trial.yaml -q --set agents=300
    [[ "$output" == "reef swarm: run trial: an agent has 299 neighbours; at most 256"* ]]
    run -2 "$REEF" swarm trial.yaml -q --set agents=3000 --set graph=ring:k=1
    [[ "$output" == "reef swarm: 3000 agents do not fit into a run file, which has 256 KiB at most"* ]]
    REEF_NATS_SERVER=/bin/false run -1 "$REEF" swarm trial.yaml -q --set agents=4
    [[ "$output" == "reef swarm: the broker does not start: "*"(--keep FOLDER keeps the logs)" ]]
}

@test "an agent that a signal ends is told of" {
    experiment ref "${lms[@]}"
    sed -i 's/^rounds: .*/rounds: 1000000/' trial.yaml
    "$REEF" swarm trial.yaml --no-figures -o out 2>told 3>&- &
    swarm=$!
    for _ in $(seq 600); do
        if grep -q 'round' told; then break; fi
        sleep 0.1
    done
    kill -USR1 "$(pgrep -P "$swarm" -f 'key-3 ')"
    code=0
    wait "$swarm" || code=$?
    [ "$code" = 1 ]
    tail -n 1 told
    grep -q '^reef swarm: agent 3 was ended by signal 10 (User defined signal 1): ' told
}
