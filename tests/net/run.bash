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

# A certificate authority, NAME.pem and NAME.key.
authority() { openssl req -x509 -newkey ed25519 -nodes -keyout "$1.key" -out "$1.pem" -days 2 -subj "/CN=$1" 2>/dev/null; }

# A certificate signed by it:  certificate NAME SUBJECT-ALT-NAME AUTHORITY [START END]
certificate() {
    openssl req -newkey ed25519 -nodes -keyout "$1.key" -out "$1.csr" -subj /CN=broker 2>/dev/null
    echo "subjectAltName=$2" >"$1.ext"
    if [ $# -gt 3 ]; then
        mkdir -p "db-$1"
        : >"db-$1/index.txt"
        echo 01 >"db-$1/serial"
        printf '[ca]\ndefault_ca=d\n[d]\ndatabase=db-%s/index.txt\nserial=db-%s/serial\nnew_certs_dir=db-%s\npolicy=p\n[p]\ncommonName=supplied\n' \
            "$1" "$1" "$1" >"$1.conf"
        openssl ca -batch -config "$1.conf" -cert "$3.pem" -keyfile "$3.key" -md default -startdate "$4" -enddate "$5" -extfile "$1.ext" \
            -in "$1.csr" -out "$1.pem" -notext 2>/dev/null
    else
        openssl x509 -req -in "$1.csr" -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -days 2 -extfile "$1.ext" -out "$1.pem" 2>/dev/null
    fi
    [ -s "$1.pem" ]
}

# Somebody between who takes TLS out of what servers say of themselves:  python3 strip.py PORT SERVERS-PORT; all that passes is in `seen`.
write_strip() {
    cat >strip.py <<'PY'
import socket, sys, threading
def copy(a, b):
    try:
        while data := a.recv(65536):
            seen.write(data)
            b.sendall(data.replace(b'"tls_required":true', b'"tls_required":false').replace(b'"tls_available":true', b'"tls_available":false'))
    except OSError:
        pass
    for s in (a, b):
        s.close()
seen = open("seen", "wb", buffering=0)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
PY
}
