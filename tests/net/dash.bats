# The live page in a real Chromium; lines come from a file, on standard input, or from a swarm over a real nats-server.
bats_require_minimum_version 1.5.0

setup_file() {
    REEF_PAGE=$(dirname "$REEF")/page
    export REEF_PAGE
}

browse() { PYTHONDONTWRITEBYTECODE=1 timeout 300 /usr/bin/python3 "$BATS_TEST_DIRNAME/dash_browser.py" "$REEF" "$1" 2>&3; }

@test "dash: this build has the page" {
    "$REEF" doctor | grep -q '^live page .*can show'
}

@test "dash: the graph is drawn, colours follow an attack, a late page has it all" { browse attack; }
@test "dash: click, keyboard, list, filter" { browse click; }
@test "dash: names of 200 agents can be read" { browse names; }
@test "dash: long names and long numbers, on a phone, too" { browse long; }
@test "dash: malicious agents unknown, empty page, lost connection" { browse unknown; }
@test "dash: another run at the port of the one before" { browse restart; }
@test "dash: replay" { browse replay; }
@test "dash: 1000 agents" { browse thousand; }
@test "dash: 1e5 events without growing" { browse memory; }
@test "dash: what one agent claims moves nothing but its own card" { browse liar; }
@test "dash: markup and malformed members are harmless" { browse markup; }
@test "dash: loopback, GET, own host, headers" { browse server; }
@test "dash: accessibility, light, dark, phone, colour blindness" { browse sight; }

@test "dash: the recorded run of the documentation" { browse example; }
@test "dash: a swarm, live and from its record" { browse swarm; }

@test "dash: files that are none are refused" {
    cd "$BATS_TEST_TMPDIR"
    run -2 "$REEF" dash
    run -5 "$REEF" dash --replay none.jsonl
    echo "no line" >bad.jsonl
    mkfifo pipe
    run -5 timeout 10 "$REEF" dash --replay pipe
    [[ "$output" == *"pipe: is not a regular file"* ]]
    run -3 "$REEF" dash --replay bad.jsonl
    [[ "$output" == *"bad.jsonl: not a recorded run"* ]]
    run -2 "$REEF" dash --replay bad.jsonl --port 99999
}

@test "dash: who is no observer is told what to do" {
    cd "$BATS_TEST_TMPDIR"
    {
        "$REEF" keys new boss >/dev/null
        printf '%s\n' "reef: 1" "run: trial" "id: 00112233445566778899aabbccddeeff" "coordinator: $("$REEF" keys show boss.key | cut -d' ' -f1)" "agents:"
        for name in ann bob cid; do echo "  $("$REEF" keys new $name)"; done
        printf '%s\n' "graph: complete" "rule: ref" "model: {count: 3}" 'brokers: ["nats://127.0.0.1:1"]'
    } >draft.yaml 2>/dev/null
    "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    run -2 "$REEF" dash run.yaml
    [[ "$output" == *"--key FILE is missing"*"--replay"* ]]
    run -2 "$REEF" dash run.yaml --key bob.key
    [ "$output" = "reef dash: bob.key is the key of agent bob; an observer needs one of its own: \`reef keys new watcher\`" ]
    run -2 "$REEF" dash run.yaml --key boss.key
    [[ "$output" == *"its coordinator must add \`observers: {NAME: \"$("$REEF" keys show boss.key | cut -d' ' -f2)\"}\`"* ]]
}

@test "dash: an observer that hears nobody says why, on its page, too" {
    cd "$BATS_TEST_TMPDIR"
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    {
        for name in boss watcher; do "$REEF" keys new $name >/dev/null; done
        printf '%s\n' "reef: 1" "run: trial" "id: 00112233445566778899aabbccddeeff" "coordinator: $("$REEF" keys show boss.key | cut -d' ' -f1)" "agents:"
        for name in ann bob cid; do echo "  $("$REEF" keys new $name)"; done
        printf '%s\n' "observers: {watcher: \"$("$REEF" keys show watcher.key | cut -d' ' -f2)\"}" "graph: complete" "rule: ref" "model: {count: 3}" "brokers: [\"nats://127.0.0.1:$port\"]"
    } >draft.yaml 2>/dev/null
    "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    silent() { # silent WORDS: the command and its page say them
        "$REEF" dash run.yaml --key watcher.key >said 2>&1 3>&- &
        dash=$!
        for _ in $(seq 200); do if grep -q "^waiting: " said; then break; fi; sleep 0.1; done
        curl -sN --max-time 2 "$(grep -o 'http://[^ ]*' said)events" >events || true
        kill "$dash"
        wait "$dash"
        cat said
        grep -q "^waiting: .*$1" said
        grep -q "\"what\":\"waiting\".*$1" events
    }
    silent "no connection to nats://127.0.0.1:$port"
    "$REEF" broker run.yaml --store store 2>broker.log 3>&- &
    broker=$!
    for _ in $(seq 200); do if grep -q "^ready: " broker.log; then break; fi; sleep 0.1; done
    code=0
    (silent "no agent reports") || code=$?
    kill "$broker"
    wait "$broker"
    [ "$code" = 0 ]
}
