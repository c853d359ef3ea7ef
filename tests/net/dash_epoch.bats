# The live page of a run whose members change: it goes over to the next epoch by itself.
bats_require_minimum_version 1.5.0
load run

# Agent 4 is silent, so that rounds take 50 ms at least. The page's run file is a copy that nobody touches.
setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    port=$(free_port)
    "$REEF" keys new desk >/dev/null 2>&1
    make_run 8 "nats://127.0.0.1:$port" 'graph: complete' 'rule: mref' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 2s' \
        'test: {problem: "lms:dimension=10", attack: silent, malicious: "4"}' \
        "observers: {desk: \"$("$REEF" keys show desk.key | grep -oE 'U[A-Z2-7]{55}')\"}"
    cp run.yaml first.yaml
    cp run.yaml watch.yaml
    cp draft.yaml first.draft
    start_broker
}

teardown() { end_all; }

@test "dash: agents that join and leave with the next epoch, whose file comes through the network" {
    for k in $(seq 0 7); do start "agent-$k.log" "$REEF" agent run.yaml --key "a$k.key"; done
    PYTHONDONTWRITEBYTECODE=1 start browser.log timeout 300 /usr/bin/python3 "$BATS_TEST_DIRNAME/dash_browser.py" "$REEF" epoch
    browser=$last
    await browser.log '^watching round [0-9]'
    current=$(sed -n 's/^watching round //p' browser.log)
    "$REEF" keys new a8 >/dev/null 2>&1
    {
        sed 's/^  a3: .*/  a3: removed/' first.draft
        echo "  a8: \"$("$REEF" keys show a8.key | grep -oE 'R[A-Z2-7]{55} U[A-Z2-7]{55}')\""
        echo "epoch: 2"
        echo "from: $((current + 100))"
    } >second.draft
    "$REEF" keys sign second.draft --key boss.key --after first.yaml --round "$current" -o next.yaml
    mv next.yaml run.yaml
    await broker.log '^epoch: epoch=2'
    start agent-8.log "$REEF" agent run.yaml --key a8.key
    wait "$browser" || {
        cat browser.log
        return 1
    }
    cmp first.yaml watch.yaml
    grep -q '"type":"run","time":0,"version":1,"epoch":1,' record.jsonl
    grep -q '"type":"run",.*"epoch":2,.*"removed":\[3\]' record.jsonl
}

# Observers hear run files and cannot ask for them, so brokers say them again.
@test "dash: an observer that comes after an epoch has begun, with the file of the one before" {
    for k in $(seq 0 7); do start "agent-$k.log" "$REEF" agent run.yaml --key "a$k.key"; done
    await agent-0.log '^start'
    {
        cat first.draft
        echo "epoch: 2"
        echo "from: 20"
    } >second.draft
    "$REEF" keys sign second.draft --key boss.key --after first.yaml --round 1 -o next.yaml
    mv next.yaml run.yaml
    await broker.log '^epoch: epoch=2'
    await agent-0.log '^epoch: epoch=2'
    sleep 2 # what agents and broker said once is over
    start dash.log "$REEF" dash watch.yaml --key desk.key --record late.jsonl
    await late.jsonl '"type":"run",.*"epoch":2,'
    cmp first.yaml watch.yaml
}
