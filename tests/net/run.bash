# shellcheck shell=bash
# Runs for the tests of the network's commands:  load run
# Whatever is started is remembered in `started` and ended by `end_all`, by its number.

started=()

# A port of this machine that nobody listens on just now.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# Keys of so many agents (a0, a1, ...) and of the coordinator, and a signed run.yaml:  make_run AGENTS BROKER LINE...
make_run() {
    agents=$1
    broker=$2
    shift 2
    [ -e boss.key ] || "$REEF" keys new boss >boss.line 2>/dev/null
    {
        echo "reef: 1"
        echo "run: t"
        echo "id: 5f0c9a1be2d34c77a1b09c55e0d1f2a3"
        echo "coordinator: $("$REEF" keys show boss.key | grep -o 'R[A-Z2-7]*' | head -n 1)"
        echo "brokers: [\"$broker\"]"
        printf '%s\n' "$@"
        echo "agents:"
        for k in $(seq 0 $((agents - 1))); do
            [ -e "a$k.key" ] || "$REEF" keys new "a$k" >"a$k.line" 2>/dev/null
            echo "  a$k: \"$("$REEF" keys show "a$k.key" | grep -oE 'R[A-Z2-7]{55} U[A-Z2-7]{55}')\""
        done
    } >draft.yaml
    "$REEF" keys sign draft.yaml --key boss.key -o run.yaml >sign.txt 2>&1 || {
        cat sign.txt
        return 1
    }
}

# Waits until a file has a text, at most a minute, and no longer than the program that was started last runs:  await FILE TEXT
await() {
    for _ in $(seq 600); do
        if grep -q -- "$2" "$1" 2>/dev/null; then return 0; fi
        kill -0 "$last" 2>/dev/null || break
        sleep 0.1
    done
    if grep -q -- "$2" "$1"; then return 0; fi
    echo "no '$2' in $1:"
    cat "$1"
    return 1
}

# Starts a program in the background; its output goes to a file:  start FILE PROGRAM...
start() {
    file=$1
    shift
    "$@" >"$file" 2>&1 </dev/null 3>&- &
    last=$!
    started+=("$last")
}

start_broker() { # start_broker OPTION...
    start broker.log "$REEF" broker run.yaml --store store "$@"
    await broker.log '^ready'
}

end_all() {
    for pid in "${started[@]}"; do
        kill -TERM "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    started=()
}
