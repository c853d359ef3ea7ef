# Brokers behind TLS: an agent speaks to one with the right certificate, and to no other. Each refusal has a sentence.
bats_require_minimum_version 1.5.0
load run

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    port=$(free_port)
    make_run 3 "tls://127.0.0.1:$port" 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 5s' \
        'test: {problem: "lms:dimension=3", rounds: 5, sync: false}'
    authority ca
}

teardown() { end_all; }

# A server with a certificate. `reef broker` would refuse to begin with a wrong one, as it logs in itself.
start_server() { # start_server LINE...
    mkdir js
    "$REEF" broker run.yaml --store js --print >server.conf
    sed -i '/^logfile/d; /^tls/d' server.conf
    printf '%s\n' "$@" >>server.conf
    start server.log "${REEF_NATS_SERVER:-/usr/sbin/nats-server}" -c server.conf
    await server.log 'Server is ready'
}

# The agent must say a sentence with this in it, and not begin:  refused WORDS [OPTION...]
refused() {
    words=$1
    shift
    start agent.log "$REEF" agent run.yaml --key a0.key "$@"
    agent=$last
    await agent.log '^waiting: .*no connection'
    kill -TERM "$agent"
    wait "$agent"
    cat agent.log
    grep -qiE "no connection to tls://127.0.0.1:$port: .*($words)" agent.log
    grep -q '^end: .*round=0 combined=0 ' agent.log
}

@test "with the right certificate agents and broker work" {
    certificate good IP:127.0.0.1 ca
    start_broker --cert good.pem --private-key good.key --authority ca.pem
    pids=()
    for k in 0 1 2; do
        start "agent-$k.log" "$REEF" agent run.yaml --key "a$k.key" --authority ca.pem
        pids+=("$last")
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    grep -q '^end: .*round=5 ' agent-0.log
}

@test "programs without --authority take authorities from SSL_CERT_FILE" {
    certificate good IP:127.0.0.1 ca
    start_broker --cert good.pem --private-key good.key --authority ca.pem
    pids=()
    for k in 0 1 2; do
        start "agent-$k.log" env SSL_CERT_FILE="$PWD/ca.pem" "$REEF" agent run.yaml --key "a$k.key"
        pids+=("$last")
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    grep -q '^end: .*round=5 ' agent-0.log
}

@test "a certificate for another name is refused" {
    certificate other IP:127.0.0.2,DNS:broker.example ca
    start_server 'tls { cert_file: other.pem, key_file: other.key }'
    refused 'certificate|verif|mismatch' --authority ca.pem
}

@test "a certificate of another authority is refused" {
    authority stranger
    certificate theirs IP:127.0.0.1 stranger
    start_server 'tls { cert_file: theirs.pem, key_file: theirs.key }'
    refused 'certificate|verif' --authority ca.pem
}

@test "a certificate that nobody has signed is refused" {
    openssl req -x509 -newkey ed25519 -nodes -keyout self.key -out self.pem -days 2 -subj /CN=broker -addext subjectAltName=IP:127.0.0.1 2>/dev/null
    start_server 'tls { cert_file: self.pem, key_file: self.key }'
    refused 'certificate|verif' --authority ca.pem
}

@test "a certificate of ours is not trusted where the system's are asked" {
    certificate good IP:127.0.0.1 ca
    start_server 'tls { cert_file: good.pem, key_file: good.key }'
    refused 'certificate|verif'
}

@test "an expired certificate is refused" {
    certificate late IP:127.0.0.1 ca 20200101000000Z 20200201000000Z
    start_server 'tls { cert_file: late.pem, key_file: late.key }'
    refused 'certificate|expired|verif' --authority ca.pem
}

@test "a server without TLS is refused" {
    start_server
    refused 'secure|TLS' --authority ca.pem
}

@test "TLS cannot be stripped by somebody in between" {
    certificate good IP:127.0.0.1 ca
    behind=$(free_port)
    outside=$port
    port=$behind
    start_server 'tls { cert_file: good.pem, key_file: good.key }' "listen: \"127.0.0.1:$behind\""
    port=$outside
    write_strip
    start strip.log python3 strip.py "$outside" "$behind"
    await strip.log ready
    refused 'secure|TLS' --authority ca.pem
}

@test "a broker without a certificate, where the run file says TLS, does not start" {
    run -2 timeout 60 "$REEF" broker run.yaml --store plain
    [[ "$output" == *"agents expect TLS at tls://127.0.0.1:$port: --cert and --private-key are missing"* ]]
    [ ! -e plain ]
}
