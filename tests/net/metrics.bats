# What an agent tells: metrics that Prometheus reads, structured logs, signed telemetry that an observer reads.
bats_require_minimum_version 1.5.0

setup() { cd "$BATS_TEST_TMPDIR" || return 1; }

# Ends what a test has started, by its id.
teardown() {
    for process in $started; do
        kill -KILL "$process" 2>/dev/null || true
    done
}

# Waits until a command succeeds, at most so long: within SECONDS COMMAND...
within() {
    for _ in $(seq $((5 * $1))); do
        if "${@:2}"; then return 0; fi
        sleep 0.2
    done
    return 1
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

experiment() {
    cat >trial.yaml <<END
name: trial
agents: 5
graph: complete
rule: mref
problem: {kind: lms, dimension: 10, noise: 0.01}
strategy: {kind: diffusion, mu: 0.05}
malicious: 1
attack: additive:delta=1000
rounds: $1
repetitions: 1
seed: 3
END
}

@test "metrics: promtool finds nothing wrong, and a real Prometheus scrapes them" {
    command -v prometheus promtool
    experiment 2
    "$REEF" swarm trial.yaml -q --no-figures -o made --keep keep --wait --record lines
    rm -rf keep/state-* keep/record-*
    sed -e 's/^  rounds: .*/  rounds: 0/' keep/draft.yaml >draft.yaml
    "$REEF" keys sign draft.yaml --key keep/coordinator.key -o run.yaml
    "$REEF" broker run.yaml --store store 3>&- 2>broker.log &
    started=$!
    within 60 grep -q '^ready' broker.log
    port=$(free_port)
    for k in 0 1 2 3 4; do
        more=()
        if [ $k = 0 ]; then more=(--metrics "$port"); fi
        "$REEF" agent run.yaml --key "keep/key-$k" --state "state-$k" --log json "${more[@]}" 3>&- 2>"log-$k" &
        started="$started $!"
    done
    scrape() { curl -sf -o text "http://127.0.0.1:$port/metrics"; }
    busy() { scrape && grep -Eq '^reef_agent_rounds_total\{result="combined"\} [1-9]' text; }
    within 60 busy
    promtool check metrics <text
    for name in round rounds_total phase_seconds weight peer_trust peer_age_rounds frames_total bytes_total link_up \
        reconnects_total excluded resident_bytes user; do
        grep -q "^# TYPE reef_agent_$name " text
    done
    grep -Eq '^reef_agent_link_up\{broker="nats://127.0.0.1:[0-9]+"\} 1$' text
    grep -Eq '^reef_agent_frames_total\{peer="agent-1",result="used"\} [1-9]' text
    grep -Eq '^reef_agent_bytes_total\{direction="in"\} [1-9]' text
    # the malicious neighbour has no weight, an honest one has
    bad=$(sed -n 's/^  malicious: "\([0-9]\)"$/\1/p' draft.yaml)
    if [ "$bad" != 0 ]; then
        grep -Eq "^reef_agent_peer_trust\{peer=\"agent-$bad\"\} (0|0\.0[0-9]*|[0-9.]+e-[0-9]+)$" text
    fi
    # only GET, only this path, only on this machine's own name
    [ "$(curl -s -o /dev/null -w '%{http_code}' -X POST "http://127.0.0.1:$port/metrics")" = 405 ]
    [ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/other")" = 404 ]
    [ "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host: evil.example' "http://127.0.0.1:$port/metrics")" = 403 ]
    # the manual and the dashboard speak of metrics that there are
    for name in $(grep -oh 'reef_agent_[a-z_]*' "$BATS_TEST_DIRNAME/../../docs/operating.md" "$BATS_TEST_DIRNAME/../../docs/grafana.json" |
        grep -v '^reef_agent_note$' | sort -u); do
        grep -q "^$name[ {]\|^# TYPE $name " text
    done
    sed -n '/^```yaml/,/^```/p' "$BATS_TEST_DIRNAME/../../docs/operating.md" | sed '/^```/d' >rules.yml
    promtool check rules rules.yml
    # logs: every line an object
    python3 -c 'import json, sys; [json.loads(line)["event"] for line in open("log-0")]'
    # a real Prometheus
    cat >prometheus.yml <<END
scrape_configs:
  - job_name: reef
    scrape_interval: 1s
    static_configs: [{targets: ["127.0.0.1:$port"]}]
END
    web=$(free_port)
    prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address="127.0.0.1:$web" --log.level=error 3>&- 2>prometheus.log &
    started="$started $!"
    asked() {
        curl -sf "http://127.0.0.1:$web/api/v1/query?query=reef_agent_round" | python3 -c '
import json, sys
result = json.load(sys.stdin)["data"]["result"]
sys.exit(not result or float(result[0]["value"][1]) < 1)' 2>/dev/null
    }
    within 60 asked
    run ! "$REEF" agent run.yaml --key keep/key-1 --state other --metrics "$port"
    # an observer that comes late sees the run on its page
    "$REEF" dash run.yaml --key keep/observer.key >page 3>&- 2>page.log &
    started="$started $!"
    within 20 grep -q '^http://127' page
    url=$(sed 's/ .*//' page)
    heard() { curl -sN --max-time 3 "${url}events" >events; grep -q '"type":"run"' events && grep -q '"type":"status".*"agent":4,' events; }
    within 30 heard
}

@test "an observer hears all agents; its lines name the malicious one" {
    experiment 600
    "$REEF" swarm trial.yaml -q --no-figures -o made --record lines.jsonl
    python3 - <<'END'
import json
lines = [json.loads(line) for line in open("lines.jsonl")]
run = lines[0]
assert run["type"] == "run" and len(run["agents"]) == 5, run
status = [line for line in lines if line["type"] == "status"]
assert {line["agent"] for line in status} == set(range(5))
last = {line["agent"]: line for line in status}
assert all(line["round"] == 600 for line in last.values()), last
bad = run["malicious"]
assert len(bad) == 1, run
for k, line in last.items():
    if k in bad:
        continue
    assert line["bytes"][0] > 1000 and line["bytes"][1] > 1000, line
    trust = {peer[0]: peer[1] for peer in line["peers"]}
    assert trust[bad[0]] < 0.2 and min(t for l, t in trust.items() if l not in bad) > 0.2, trust
assert any(line["type"] == "score" for line in lines) and lines[-1]["type"] == "end"
END
    # who is no observer hears nothing
    "$REEF" swarm trial.yaml -q --no-figures -o again --rounds 3 --keep keep --record more.jsonl
    run -2 "$REEF" dash keep/run.yaml --key keep/key-0
    [[ "$output" == *"observer"* ]]
    run -5 "$REEF" swarm trial.yaml -q --no-figures -o third --rounds 3 --record more.jsonl # never written over
}
