# Agents and their broker in two network namespaces with a link between them that fails or loses packets. Needs root, ip and nft; without
# them the tests are left out, and say so. All addresses exist inside the namespaces only.
bats_require_minimum_version 1.5.0
load run

setup() {
    one=reef-$$-a two=reef-$$-b
    if ! ip netns add "$one" 2>/dev/null; then
        skip "network namespaces need root and iproute2"
    fi
    cd "$BATS_TEST_TMPDIR" || return 1
    ip netns add "$two"
    ip -n "$one" link add here type veth peer name there netns "$two"
    ip -n "$one" addr add 10.99.0.1/24 dev here
    ip -n "$two" addr add 10.99.0.2/24 dev there
    for side in "$one lo" "$one here" "$two lo" "$two there"; do
        ip -n "${side% *}" link set "${side#* }" up
    done
    openssl req -x509 -newkey ed25519 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca 2>/dev/null
    openssl req -newkey ed25519 -nodes -keyout broker.key -out broker.csr -subj /CN=broker 2>/dev/null
    echo subjectAltName=IP:10.99.0.1 >ext
    openssl x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out broker.pem 2>/dev/null
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export SSL_CERT_FILE=$PWD/ca.pem REEF_LIBRARY=${REEF%/reef}/libreef.so REEF_NET=${REEF%/reef}/libreef_net.so
    export PYTHONPATH=$root/python PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
}

teardown() {
    touch "$BATS_TEST_TMPDIR/stop"
    end_all
    ip netns del "$one" 2>/dev/null || true
    ip netns del "$two" 2>/dev/null || true
}

start_run() { # start_run AGENTS COUNT LINE...
    export REEF_COUNT=$2
    agents=$1
    shift 2
    make_run "$agents" tls://10.99.0.1:4222 'graph: complete' 'rule: median' "model: {count: $REEF_COUNT, type: f32}" "$@"
    "$REEF" keys show boss.key | grep -o 'R[A-Z2-7]*' | head -n 1 >coordinator
    start broker.log ip netns exec "$one" "$REEF" broker run.yaml --store store --cert broker.pem --private-key broker.key --authority ca.pem
    await broker.log '^ready'
}

start_agents() { # start_agents NAMESPACE ROUNDS NUMBER...
    space=$1
    shift
    start "agents-$space.log" ip netns exec "$space" /usr/bin/python3 "$BATS_TEST_DIRNAME/netns_agents.py" "$PWD" "$@"
}

# Lines that an agent has written so far.
lines() { wc -l <"rounds-$1"; }

# Waits until each of these agents has a round after line `since[N]` that is like this:  await_round PATTERN NUMBER...
await_round() {
    pattern=$1
    shift
    for n in "$@"; do
        found=
        for _ in $(seq 900); do
            if tail -n "+$((${since[n]:-0} + 1))" "rounds-$n" 2>/dev/null | grep -qE "$pattern"; then
                found=yes
                break
            fi
            sleep 0.1
        done
        if [ -z "$found" ]; then
            echo "agent $n has no round like '$pattern' after line ${since[n]:-0}:"
            tail -n 20 "rounds-$n" agents-*.log
            return 1
        fi
    done
}

mark() { # from here on
    since=()
    for n in $(seq 0 "$1"); do since[n]=$(lines "$n"); done
}

@test "a partition: the larger side goes on, the smaller one alone, and together again when it is over" {
    start_run 12 10 'malicious: 0.3' 'deadline: 1s'
    start_agents "$one" 1000000 0 1 2 3 4 5 6 7
    start_agents "$two" 1000000 8 9 10 11
    await_round '^[0-9]+ 1 11$' $(seq 0 11)
    ip -n "$one" link set here down
    mark 11
    await_round '^[0-9]+ 1 7$' $(seq 0 7)
    await_round '^[0-9]+ 0 ' 8 9 10 11
    # the smaller side does not run away: without a quorum at most two rounds are signed beyond what others have reached
    for n in 8 9 10 11; do
        for _ in $(seq 600); do
            [ "$(tail -n "+$((since[n] + 1))" "rounds-$n" | grep -c '^[0-9]* 0 ')" -ge 8 ] && break
            sleep 0.1
        done
        tail -n "+$((since[n] + 1))" "rounds-$n" | awk '$2 == 0 { count++; last = $1 } $2 == 0 && count == 1 { first = $1 }
            END { print count, first, last; exit !(count >= 8 && last - first <= 4) }'
    done
    ip -n "$one" link set here up
    mark 11
    await_round '^[0-9]+ 1 11$' $(seq 0 11)
    touch stop
    await_round '^done' $(seq 0 11)
    # no agent of the smaller side has combined with less than a quorum: more than 0.6 of 12
    for n in $(seq 0 11); do
        run ! awk '$2 == 1 && $3 + 1 <= 7.2 { bad = 1 } END { exit !bad }' "rounds-$n"
    done
}

@test "models of 4 MB come through where 2 % of the packets are lost" {
    ip netns exec "$two" nft add table ip loss 2>/dev/null || skip "there is no nft here, or the kernel has no nftables"
    start_run 4 1000000 'malicious: 0.2' 'deadline: 30s'
    for hook in input output; do
        ip netns exec "$two" nft "add chain ip loss $hook { type filter hook $hook priority 0; }"
        ip netns exec "$two" nft add rule ip loss "$hook" numgen random mod 100 '<' 2 counter drop
    done
    start_agents "$one" 5 0 1
    start_agents "$two" 5 2 3
    await_round '^done' 0 1 2 3
    for n in 0 1 2 3; do
        [ "$(grep -cE '^[0-9]+ 1 [23]$' "rounds-$n")" = 5 ]
    done
    run -0 ip netns exec "$two" nft list table ip loss
    [[ "$output" =~ "counter packets "[1-9] ]] # packets were really lost
}
