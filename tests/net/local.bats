# Agents whose models come through a Unix socket, from clients in C and in Python, over a real nats-server; and clients that do it wrong.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    examples=$BATS_TEST_DIRNAME/../../examples/network
    started=()
}

# Whatever was started here ends here.
teardown() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || true; done
}

# begin LOG COMMAND...: in the background
begin() {
    log=$1
    shift
    "$@" >"$log" 2>&1 3>&- &
    started+=($!)
}

# has FILE TEXT: waits for the text
has() {
    for _ in $(seq 600); do
        if grep -qs "$2" "$1"; then return 0; fi
        sleep 0.1
    done
    cat "$1"
    return 1
}

# A run of agents a, b, ...: network AGENTS MORE...
network() {
    agents=$1
    shift
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$REEF" keys new boss >/dev/null 2>&1
    {
        echo "reef: 1"
        echo "run: trial"
        echo "id: 00112233445566778899aabbccddeeff"
        echo "coordinator: $("$REEF" keys show boss.key | cut -d' ' -f1)"
        echo "agents:"
        for name in $agents; do echo "  $("$REEF" keys new "$name" 2>/dev/null)"; done
        echo "graph: complete"
        echo "rule: mref"
        echo "strategy: diffusion:mu=0.1"
        echo "model: {count: ${count:-10}}"
        echo "brokers: [\"nats://127.0.0.1:$port\"]"
        printf '%s\n' "$@"
    } >draft.yaml
    "$REEF" keys sign draft.yaml --key boss.key -o run.yaml
    begin broker.log "$REEF" broker run.yaml --store store
    has broker.log "ready: "
    for name in $agents; do
        begin "$name.log" "$REEF" agent run.yaml --key "$name.key" --socket "$name.sock"
        echo "$name ${started[-1]}" >>pids
    done
    for name in $agents; do has "$name.log" "listening: "; done
}

@test "clients in C and Python learn together, and distrust the malicious one" {
    cc -std=c11 -Wall -Wextra -Werror -o loop "$examples/loop.c" -lm
    network "a b c d e" "malicious: 0.3"
    [ "$(stat -c %a a.sock)" = 600 ]
    seed=0
    for name in a b; do
        timeout -k 5 100 ./loop "$name.sock" 60 "$((seed += 1))" >"$name.out" 2>&1 3>&- &
        pids+=($!)
    done
    for name in c d; do
        timeout -k 5 100 python3 "$examples/loop.py" "$name.sock" 60 "$((seed += 1))" >"$name.out" 2>&1 3>&- &
        pids+=($!)
    done
    timeout -k 5 100 python3 "$examples/loop.py" e.sock 60 9 malicious >e.out 2>&1 3>&- &
    pids+=($!)
    for pid in "${pids[@]}"; do wait "$pid"; done
    cat ./*.out
    for name in c d; do
        grep -Eq '^round [0-9]+: error 0\.0[0-9]+, suspects (. )*e$' "$name.out"
    done
    for name in a b; do
        grep -Eq '^error 0\.0' "$name.out"
        # the report of a C client is JSON with what Python's has
        head -1 "$name.out" | python3 -c 'import json, sys
r = json.load(sys.stdin)
assert r["round"] >= 59 and r["combined"] and r["trust"]["e"] < 0.1, r
assert sorted(r["present"] + r["stale"] + r["missing"]) == sorted(set("abcde") - {sys.argv[1]}), r
assert "e" in r["why"] and r["refused"] == {} and 0.6 < r["weight"] < 1.01, r' "$name"
    done
    has a.log "note: round=[0-9]* error=0.0"
    has a.log "client: state=leaves"
    for name in a b c d e; do [ ! -e "$name.sock" ]; done
}

# What an agent holds besides its libraries must stay within what it has stated at the start, and 8 MB; a model is 4 MB. The clients, in one
# process, hand over what they got.
@test "models of a million numbers: no agent takes more memory in 50 rounds than it has stated" {
    count=1000000
    network "a b c d" "malicious: 0.2" "deadline: 120s" "test: {wait: true}"
    python3 - "$examples" a b c d <<'PROGRAM'
import re, sys, threading
sys.path.insert(0, sys.argv[1])
from loop import Agent

names, rounds = sys.argv[2:], 50
pids = {}
for line in open("pids"):
    name, pid = line.split()
    pids[name] = int(pid)
trouble, most = [], dict.fromkeys(names, 0)

def held(name):
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", open(f"/proc/{pids[name]}/status").read())[1])

def learn(name):
    agent = Agent(f"{name}.sock")
    model = agent.model
    for number in range(rounds):
        model, report = agent.exchange(model)
        if not report["combined"] or report["missing"]:
            trouble.append((name, number, report))
        most[name] = max(most[name], held(name))

threads = [threading.Thread(target=learn, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name in names:
    stated = int(float(re.search(r"memory=(\S+)", open(f"{name}.log").read())[1]))
    print(f"{name}: {most[name] / 1e6:.1f} MB of {stated / 1e6:.1f} MB")
    assert 40e6 < most[name] < stated + 8e6, name
assert not trouble, trouble[:3]
PROGRAM
}

@test "what a client does wrong is told to it, and the agent goes on with the next" {
    network "a b c" "malicious: 0.2" "deadline: 2s"
    timeout -k 5 60 python3 - "$examples" <<'PROGRAM'
import socket, struct, sys, threading
sys.path.insert(0, sys.argv[1])
from loop import EXCHANGE, HELLO, LEAVE, NOTE, Agent

def keep_going(name):  # neighbours that exchange until they are told to stop
    agent = Agent(name + ".sock")
    model = agent.model
    while not over.is_set():
        model, _ = agent.exchange(model)
    agent.ask(LEAVE)
over = threading.Event()
threads = [threading.Thread(target=keep_going, args=(name,), daemon=True) for name in "bc"]
for thread in threads: thread.start()

def refused(what, words):
    """The connection is closed after a sentence."""
    agent = Agent("a.sock")
    try:
        what(agent)
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError("taken: " + words)
    assert agent.socket.recv(1) == b""

refused(lambda a: a.ask(EXCHANGE, bytes(39)), "has 40 bytes here, not 39")
refused(lambda a: a.ask(EXCHANGE, bytes(4000000)), "not 4000000")
refused(lambda a: a.ask(HELLO, bytes(32)), "only the first")
refused(lambda a: a.ask(9), "requests are")
refused(lambda a: a.ask(NOTE, bytes(24)), "a note has a name")
refused(lambda a: a.exchange([float("nan")] * 10), "not finite")
refused(lambda a: a.exchange([1e30] * 10), "largest")

def raw(data):
    one = socket.socket(socket.AF_UNIX)
    one.connect("a.sock")
    one.sendall(data)
    return one

one = raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
assert b"begins with RLOC" in one.makefile("rb").read()
one = raw(struct.pack("<4sIQQII", b"RLOC", HELLO, 0, 32, 0, 0) + b"\x01" * 32)
assert b"another layout" in one.makefile("rb").read()
for half in (0, 7, 31, 40):  # half requests, then gone
    raw((struct.pack("<4sIQQII", b"RLOC", HELLO, 0, 32, 0, 0) + bytes(32))[:half]).close()

first = Agent("a.sock")
for _ in range(3):  # one client at a time; the first is not disturbed
    try:
        Agent("a.sock")
    except RuntimeError as error:
        assert "another client" in str(error)
    else:
        raise AssertionError("two clients")
model, report = first.exchange([1.0] * 10)
assert report["combined"], report
first.socket.close()  # vanishes without a word: the next one goes on with the model
half = Agent("a.sock")  # so does one that vanishes while it sends a model, or sends one that is refused
half.socket.sendall(struct.pack("<4sIQQII", b"RLOC", EXCHANGE, 0, 40, 0, 0) + bytes(20))
half.socket.close()
assert list(Agent("a.sock").model) == list(model)
refused(lambda a: a.exchange([float("nan")] * 10), "not finite")
again = Agent("a.sock")
assert again.joined and again.round == report["round"] + 1 and list(again.model) == list(model)
# vanishes in the middle of an exchange
again.socket.sendall(struct.pack("<4sIQQII", b"RLOC", EXCHANGE, 0, 40, 0, 0) + bytes(40))
again.socket.close()
last = Agent("a.sock")
assert last.round >= report["round"] + 2
over.set()
last.ask(LEAVE)
for thread in threads: thread.join()
PROGRAM
    for pid in "${started[@]:1}"; do wait "$pid"; done # all agents end with 0
}

@test "files that are wrong are found before a client comes; SIGTERM ends an agent that waits" {
    network "a b c" "malicious: 0.2"
    run -4 "$REEF" agent run.yaml --key a.key --socket other.sock # the folder is in use
    [[ "$output" == *"another process"* ]]
    run -2 "$REEF" agent run.yaml --key boss.key --socket other.sock
    run -2 "$REEF" agent run.yaml --key a.key --state s --socket "$(printf 'x%.0s' {1..200})"
    [[ "$output" == *"at most 107 bytes"* ]]
    echo precious >taken
    run -2 "$REEF" agent run.yaml --key a.key --state s --socket taken
    [[ "$output" == *"exists already"* ]]
    [ "$(cat taken)" = precious ]
    run -1 "$REEF" agent run.yaml --key a.key --state s --socket other.sock --memory 0.001
    [[ "$output" == *"--memory"* ]]
    kill -9 "${started[1]}" # leaves its socket behind
    wait "${started[1]}" || true
    [ -S a.sock ]
    begin again.log "$REEF" agent run.yaml --key a.key --socket a.sock
    has again.log "listening: "
    kill -TERM "${started[4]}"
    wait "${started[4]}"
    [ ! -e a.sock ]
}

# As a service with a watchdog, which would end an agent that is silent: before any client, while one waits for neighbours, at the end.
@test "a service manager hears that an agent with a socket is ready and alive, whatever it waits for" {
    network "a b c" "malicious: 0.2"
    kill "${started[1]}"
    wait "${started[1]}"
    cat >listener.py <<'PROGRAM'
import socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify")
while True:
    print(s.recv(100).decode(), flush=True)
PROGRAM
    begin heard python3 listener.py
    for _ in $(seq 100); do [ -S notify ] || sleep 0.1; done
    NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=60000000 begin again.log "$REEF" agent run.yaml --key a.key --socket a.sock
    agent=${started[-1]}
    alive() { grep -c WATCHDOG=1 heard || true; }
    more_signs() { # than so many, within 20 s
        for _ in $(seq 200); do
            if [ "$(alive)" -gt "$1" ]; then return 0; fi
            sleep 0.1
        done
        cat heard
        return 1
    }
    has heard READY=1
    more_signs 1 # nobody has come yet
    begin client.log python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); from loop import Agent; Agent("a.sock")' "$examples"
    has again.log "client: state=connected"
    more_signs $(($(alive) + 2)) # its neighbours have no clients, so it waits
    kill -TERM "$agent"
    wait "$agent"
    has heard STOPPING=1
}

@test "ports that others use are found at the start, and said" {
    network "a b c d" "malicious: 0.2"
    # of metrics, not only when the first client comes
    kill "$(grep '^b ' pids | cut -d' ' -f2)"
    for _ in $(seq 100); do [ -e b.sock ] || break; sleep 0.1; done
    run -1 timeout 60 "$REEF" agent run.yaml --key b.key --socket b.sock --metrics "$port"
    [[ "$output" == *"cannot listen on 127.0.0.1:$port: the port is in use; choose another"* ]]
    [[ "$output" != *"listening: "* ]]
    # of a broker
    run -1 timeout 120 "$REEF" broker run.yaml --store second
    [[ "$output" == *"nats-server ends again and again: "*"address already in use"*"its log is second/server.log"* ]]
}

@test "what a broker cannot do is said at once, and what its server said at an earlier start is not taken for the reason" {
    network "a b c d" "malicious: 0.2"
    for address in here 127.0.0.1 127.0.0.1:0 127.0.0.1:65536 :4222; do
        run -2 timeout 60 "$REEF" broker run.yaml --store second --listen "$address"
        [[ "$output" == *"'$address' is no address to listen on: HOST:PORT"* ]]
        run -2 timeout 60 "$REEF" broker run.yaml --store second --leaves "$address"
    done
    for option in --cert --private-key --authority; do
        touch empty.pem
        run -5 timeout 60 "$REEF" broker run.yaml --store second --cert empty.pem --private-key empty.pem "$option" none.pem
        [ "$output" = "reef broker: none.pem: No such file or directory" ]
    done
    [ ! -e second/server.log ]
    mkdir -p second
    echo '[1] 2026/01/01 00:00:00.0 [FTL] Error of an earlier start' >second/server.log
    run -1 timeout 60 "$REEF" broker run.yaml --store second --cert empty.pem --private-key empty.pem # its server opens no log
    [[ "$output" == *"nats-server ends again and again without an error in its log, second/server.log; what it has printed is above"* ]]
    [[ "$output" != *"earlier start"* ]]
    run -1 timeout 120 "$REEF" broker run.yaml --store second
    [[ "$output" == *"nats-server ends again and again: "*"address already in use"* ]]
}

@test "an agent whose client waits says for what" {
    network "a b c d" "malicious: 0.2"
    begin a.out python3 "$examples/loop.py" a.sock 5 1
    has a.log "waiting: agent=a .*too few neighbours are heard from.* weight=0.25 above=0.4"
    kill "${started[0]}"
    has a.log "waiting: agent=a .*no connection to nats:"
}
