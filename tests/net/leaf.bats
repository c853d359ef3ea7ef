# Leaves: servers between some of the agents and a broker. Agents behind two of them and agents at the broker itself are one run; what a leaf may
# do at its hub; TLS between the two.
bats_require_minimum_version 1.5.0
load run

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    hostile=${REEF%/reef}/tests/hostile
    server=${REEF_NATS_SERVER:-/usr/sbin/nats-server}
    port=$(free_port)
    leaf_port=$(free_port)
    east_port=$(free_port)
    west_port=$(free_port)
    scheme=nats
}

teardown() { end_all; }

# A run of nine agents: 0 to 2 behind leaf east, 3 to 5 behind leaf west, 6 to 8 at the broker. make_tree LINE...
make_tree() {
    make_run 9 "$scheme://127.0.0.1:$port" "$@"
    cp run.yaml plain.yaml
    for leaf in east west; do "$REEF" keys new $leaf >/dev/null 2>&1; done
    {
        sed -E '/^  a[012]:/s/"$/ east"/; /^  a[345]:/s/"$/ west"/' draft.yaml
        echo "leaves:"
        echo "  east: \"$(login east) $scheme://127.0.0.1:$east_port\""
        echo "  west: \"$(login west) $scheme://127.0.0.1:$west_port\""
    } >tree.draft
    "$REEF" keys sign tree.draft --key boss.key -o run.yaml
}

login() { "$REEF" keys show "$1.key" | grep -oE 'U[A-Z2-7]{55}'; }

start_hub() { # start_hub OPTION...
    start_broker --leaves "127.0.0.1:$leaf_port" "$@"
    hub=$last
}

start_leaf() { # start_leaf NAME OPTION...
    local name=$1
    shift
    start "$name.log" "$REEF" broker run.yaml --store "$name" --leaf "$scheme://127.0.0.1:$leaf_port" --key "$name.key" "$@"
    await "$name.log" '^ready'
    await "$name.log" "^connected: hub=$scheme://127.0.0.1:$leaf_port"
}

# All agents until their rounds are done:  run_all RUN-FILE NAME OPTION...
run_all() {
    local run_file=$1 name=$2 pids=()
    shift 2
    for k in $(seq 0 8); do
        start "$name-$k.log" timeout 120 "$REEF" agent "$run_file" --key "a$k.key" --state "$name-$k.state" --record "$name-$k.record" "$@"
        pids+=("$last")
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
}

# Nobody was alone, and the models are those of the run without leaves, bit for bit:  same_models TEST-LINE ROUNDS [LINE...]
same_models() {
    make_tree 'graph: complete' 'rule: mref' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 60s' "$1" "${@:3}"
    start_hub
    start_leaf east
    start_leaf west
    run_all run.yaml tree
    end_all
    mv store store.tree
    start broker.log "$REEF" broker plain.yaml --store store
    await broker.log '^ready'
    run_all plain.yaml plain
    for k in $(seq 0 8); do
        grep '^end:' "tree-$k.log"
        grep -q "^end: .*combined=$2 alone=0 " "tree-$k.log"
        at=$((k < 3 ? east_port : k < 6 ? west_port : port))
        grep -q "^connected: agent=a$k broker=nats://127.0.0.1:$at" "tree-$k.log"
        cmp "tree-$k.record" "plain-$k.record"
        run ! grep -E 'event=(refused|two_faced)' "tree-$k.state/audit.log"
    done
}

@test "agents behind two leaves and at the broker combine all together, with the bits of a run without leaves" {
    same_models 'test: {problem: "lms:dimension=10", rounds: 30, every: 1, wait: true, sync: false}' 30
}

@test "models in chunks come through leaves" {
    same_models 'test: {problem: "lms:dimension=20000", rounds: 4, every: 1, wait: true, sync: false}' 4
    "$REEF" check run.yaml | grep -q '80000 bytes' # more than what a message may have
}

@test "sealed models come through leaves" {
    same_models 'test: {problem: "lms:dimension=20000", rounds: 2, every: 1, wait: true, sync: false}' 2 'seal: true'
    "$REEF" check run.yaml | grep -q '^models are sealed: '
}

# Agents without an end, each with a copy of the run file:  start_agents
# Agent 8 is silent, so that a round takes 50 ms at least.
start_agents() {
    for k in $(seq 0 8); do
        cp run.yaml "run-$k.yaml"
        start "agent-$k.log" "$REEF" agent "run-$k.yaml" --key "a$k.key" --log-level debug
        agent[$k]=$last
    done
}

# Waits until an agent has combined so many rounds more, the last of them with the models of all that send any:  goes_on NUMBER ROUNDS [WEIGHT]
goes_on() {
    combined=$(sed -n 's/^progress: .* combined=\([0-9]*\) .*/\1/p' "agent-$1.log" | tail -n 1)
    wanted=$((${combined:-0} + $2))
    for _ in $(seq 600); do
        line=$(grep '^progress: ' "agent-$1.log" | tail -n 1)
        if [[ "$line" =~ " combined="([0-9]+)" alone="[0-9]+" weight=${3:-0.8}" ]] && [ "${BASH_REMATCH[1]}" -ge "$wanted" ]; then return 0; fi
        kill -0 "${agent[$1]}"
        sleep 0.1
    done
    echo "agent $1: $line"
    return 1
}

@test "when the hub is killed and comes back, leaves find it and all combine again" {
    make_tree 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 1s' \
        'test: {problem: "lms:dimension=10", attack: silent, malicious: "8", sync: false}' \
        "observers: {desk: \"$("$REEF" keys new desk 2>/dev/null | grep -oE 'U[A-Z2-7]{55}')\"}"
    start_hub
    start_leaf east
    start_leaf west
    start_agents
    start told.txt "$hostile" listen "$port" desk.key 'reef.t.t.*'
    for k in 0 4 7; do goes_on $k 20; done
    for k in 0 4 7; do await told.txt "^reef.t.t.$k"; done # observers are told of agents behind leaves, too
    kill -9 "$hub"
    last=${agent[0]}
    await east.log '^disconnected: hub='
    await agent-0.log '^no_quorum' # three of nine are left behind each leaf
    start_hub
    for k in 0 4 7; do goes_on $k 20; done
    [ "$(grep -c '^connected: hub=' east.log)" = 2 ]
    for k in $(seq 0 8); do run ! grep -E 'event=(refused|two_faced)' "a$k.key.state/audit.log"; done
}

@test "the next run file reaches leaves and agents from one agent, and an agent moves to another leaf" {
    make_tree 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 1s' \
        'test: {problem: "lms:dimension=10", attack: silent, malicious: "8"}'
    start_hub
    for leaf in east west; do start_leaf $leaf; done
    last_leaf=$last
    start_agents
    for k in 0 4 7; do goes_on $k 20; done
    now=$(sed -n 's/^progress: .* round=\([0-9]*\) .*/\1/p' agent-0.log | tail -n 1)
    {
        sed -E 's/^  a2: .*/  a2: removed/; /^  a5:/s/ west"/ east"/' tree.draft
        echo "epoch: 2"
        echo "from: $((now + 200))"
    } >second.draft
    "$REEF" keys sign second.draft --key boss.key --after run.yaml --round "$now" -o next.yaml
    mv next.yaml run-1.yaml
    last=${agent[0]}
    for log in broker east west; do await $log.log '^epoch: epoch=2'; done
    for k in 0 1 3 4 5 6 7 8; do await "agent-$k.log" '^epoch: epoch=2 '; done
    wait "${agent[2]}"
    for k in 0 5 7; do goes_on $k 20; done
    kill -TERM "$last_leaf" # west, with 3 and 4 behind it; 5 is not there any more
    wait "$last_leaf"
    goes_on 5 20 0.625
}

# Every line of the standard input must be refused, or allowed, at the port for leaves:  all refused KEY
all() {
    sort -u >wanted.txt
    "$hostile" leaf "$leaf_port" "$2" <wanted.txt >got.txt
    [ "$(wc -l <got.txt)" = "$(wc -l <wanted.txt)" ]
    [ -s got.txt ]
    if grep -v "^$1 " got.txt; then
        echo "should all be $1"
        return 1
    fi
}

# In a ring agents 0 to 2 hear each other, 3 and 8; witnesses hear what they hear.
@test "a leaf may do what the agents behind it may, and no more" {
    make_tree 'graph: ring:k=1' 'rule: median' 'malicious: 0.2' 'model: {count: 20000, type: f64}' 'deadline: 2s'
    start_hub
    {
        printf 'pub reef.t.%s\n' s.0.5 s.2.7 p.1.1.2 p.2.1.i e.0 x.1 t.2 c.0
        for prefix in '$JS.API' '$JS.reef.API'; do
            printf "pub $prefix.DIRECT.GET.reef-t-%s\n" s-0 p-1 s-2 s-3 p-3 s-8 p-8 c
        done
        printf 'sub reef.t.%s\n' 's.0.*' 's.1.*' 's.3.*' 's.8.*' e.3 e.8 'x.*' 'c.>' 'c.*'
        printf 'sub %s\n' _t.0.h8Jx2mQf0LwZr5TkVbN3sY.\> _t.2.h8Jx2mQf0LwZr5TkVbN3sY.\> _t.l-east.\>
    } | all allowed east.key
    # Wildcards are let pass, and what the leaf may not hear is held back: the next test.
    printf 'sub %s\n' reef.t.s.4.1 reef.t.s.5.1 reef.t.e.5 reef.t.t.1 reef.t.t.4 reef.t.p.1.0.0 reef.other.x foo _t.3.h8Jx2mQf0LwZr5TkVbN3sY.s.1 \
        _t.l-west.x.y _INBOX.x | all refused east.key
    {
        printf 'pub reef.t.%s\n' s.3.5 s.4.5 s.8.5 p.3.0.0 p.5.0.i e.3 e.8 x.3 x.8 t.3 c c.3 c.8 c.b.2 s.0 s.0.5.6
        printf 'pub %s\n' reef.other.s.0.1 foo _INBOX.x _t.3.h8Jx2mQf0LwZr5TkVbN3sY.s.1 _t.0.h8Jx2mQf0LwZr5TkVbN3sY.s.0 _t.l-west.x.y
        for prefix in '$JS.API' '$JS.reef.API'; do
            for stream in reef-t-s-0 reef-t-p-0 reef-t-s-4 reef-t-c; do
                for verb in CREATE UPDATE DELETE PURGE INFO MSG.GET MSG.DELETE SNAPSHOT; do echo "pub $prefix.STREAM.$verb.$stream"; done
                for verb in CREATE DURABLE.CREATE INFO DELETE MSG.NEXT; do echo "pub $prefix.CONSUMER.$verb.$stream.mine"; done
            done
            printf "pub $prefix.%s\n" INFO STREAM.NAMES STREAM.LIST DIRECT.GET.reef-t-s-4 DIRECT.GET.reef-t-s-5 DIRECT.GET.reef-t-p-6
        done
        echo 'pub $SYS.REQ.SERVER.PING'
    } >others.txt
    minor=$("$server" -v | sed 's/.*v2\.\([0-9]*\)\..*/\1/')
    if [ "$minor" -ge 14 ]; then
        all refused east.key <others.txt
        run ! grep leaves_unchecked broker.log
    else # a server that looks at what leaves subscribe to alone; the broker says so
        grep -q '^leaves_unchecked: version=2\.'"$minor"' ' broker.log
    fi
}

@test "a leaf hears what the agents behind it may hear, whatever it asks for" {
    make_tree 'graph: ring:k=1' 'rule: median' 'malicious: 0.2' 'model: {count: 20000, type: f64}' 'deadline: 2s' \
        "observers: {desk: \"$("$REEF" keys new desk 2>/dev/null | grep -oE 'U[A-Z2-7]{55}')\"}"
    start_hub
    start heard.txt "$hostile" ear "$leaf_port" east.key
    await heard.txt '^hearing'
    say() { "$hostile" put "$port" "a$1.key" "reef.t.$2" 1 <<<"x"; }
    for k in 3 4 5 8; do
        for what in "s.$k.1" "p.$k.1.0" "e.$k" "t.$k" "x.$k" "c.$k"; do say $k "$what"; done
    done
    say 3 s.3.2 # the last one
    await heard.txt 's\.3\.2'
    # telemetry and chunks of nobody; models of neighbours; of witnesses (4 is one, 5 is not) what they say
    printf 'reef.t.%s\n' s.3.1 s.3.2 s.8.1 e.3 e.4 e.8 x.3 x.4 x.5 x.8 c.3 c.4 c.5 c.8 | sort >wanted.txt
    grep -v -e hearing -e 'c\.b\.1' heard.txt | sort >got.txt
    diff wanted.txt got.txt
}

@test "each login is good at its own port alone" {
    make_tree 'graph: complete' 'rule: median' 'malicious: 0.2' 'model: {count: 10}'
    "$REEF" keys new mallory >/dev/null 2>&1
    start_hub
    for key in a0 a7 mallory; do
        run -1 "$hostile" leaf "$leaf_port" $key.key <<<"sub reef.t.s.0.*"
        echo "$key: $output"
        [[ "$output" == *"Authorization Violation"* ]]
    done
    for key in east mallory; do
        run -1 "$hostile" try "$port" $key.key <<<"sub reef.t.s.0.*"
        echo "$key: $output"
        [[ "$output" == *"Authorization Violation"* ]]
    done
    # at a leaf: those who are behind it
    start_leaf east
    run -0 "$hostile" try "$east_port" a0.key <<<"sub reef.t.s.0.*"
    run -1 "$hostile" try "$east_port" a4.key <<<"sub reef.t.s.4.*"
    [ "$(stat -c %a east/leaf.key)" = 600 ]
    kill -TERM "$last"
    wait "$last"
    [ ! -e east/leaf.key ]
}

# A run behind TLS, and the hub's configuration, with another line of TLS for its leaves in it if one is given:  make_tls [LINE]
make_tls() {
    scheme=tls
    make_tree 'graph: complete' 'rule: median' 'strategy: "diffusion:mu=0.1"' 'malicious: 0.2' 'deadline: 5s' \
        'test: {problem: "lms:dimension=3", rounds: 5, sync: false}'
    authority ca
    certificate good IP:127.0.0.1 ca
}

start_tls_hub() { # start_tls_hub LINE: of TLS for its leaves
    mkdir js
    "$REEF" broker run.yaml --store js --leaves "127.0.0.1:$leaf_port" --cert good.pem --private-key good.key --print |
        sed "/^logfile/d; s|^  tls .*|  $1|" >server.conf
    start server.log "$server" -c server.conf
    await server.log 'Server is ready'
}

# The leaf must not find its hub, and its server must say a sentence with this in it:  refused WORDS
refused() {
    start east.log "$REEF" broker run.yaml --store east --leaf "tls://127.0.0.1:$leaf_port" --key east.key --authority ca.pem \
        --cert good.pem --private-key good.key
    await east.log '^disconnected: hub='
    cat east/server.log
    run ! grep '^connected' east.log
    grep -qiE "$1" east/server.log
}

@test "with the right certificates leaf and hub work" {
    make_tls
    start_hub --cert good.pem --private-key good.key --authority ca.pem
    for leaf in east west; do start_leaf $leaf --cert good.pem --private-key good.key --authority ca.pem; done
    run_all run.yaml tree --authority ca.pem
    for k in $(seq 0 8); do grep '^end: .*round=5 ' "tree-$k.log"; done
}

@test "a hub with a certificate for another name is refused" {
    make_tls
    certificate other IP:127.0.0.2,DNS:broker.example ca
    start_tls_hub 'tls { cert_file: other.pem, key_file: other.key }'
    refused 'certificate is valid for 127.0.0.2'
}

@test "a hub with a certificate of another authority is refused" {
    make_tls
    authority stranger
    certificate theirs IP:127.0.0.1 stranger
    start_tls_hub 'tls { cert_file: theirs.pem, key_file: theirs.key }'
    refused 'certificate signed by unknown authority'
}

@test "a hub without TLS is refused" {
    make_tls
    start_tls_hub ''
    refused 'TLS'
}

@test "TLS between leaf and hub cannot be stripped by somebody in between" {
    make_tls
    outside=$leaf_port
    leaf_port=$(free_port)
    start_tls_hub 'tls { cert_file: good.pem, key_file: good.key }'
    write_strip
    start strip.log python3 strip.py "$outside" "$leaf_port"
    await strip.log ready
    leaf_port=$outside
    refused 'TLS|EOF|closed'
    run ! grep -a nkey seen # nor has the leaf said who it is
}

@test "what cannot work is refused with a sentence" {
    make_tree 'graph: complete' 'rule: median' 'malicious: 0.2' 'model: {count: 10}'
    "$REEF" check run.yaml >check.txt
    grep -q "^leaf east at nats://127.0.0.1:$east_port, with 3 agents behind it" check.txt
    says() { # says CODE WORDS COMMAND...
        code=$1
        words=$2
        shift 2
        run "-$code" "$REEF" "$@"
        echo "$output"
        [[ "$output" == *"$words"* ]]
    }
    draft() { sed -E "$1" tree.draft >wrong.draft; }
    draft 's/ west"/ north"/'
    says 3 "'north' is not one" keys sign wrong.draft --key boss.key -o wrong.yaml
    draft 's/ west"/ west west"/'
    says 3 "each once" keys sign wrong.draft --key boss.key -o wrong.yaml
    draft "s/^  west: \"U[A-Z2-7]*/  west: \"$(login east)/"
    says 3 "the key of somebody else" keys sign wrong.draft --key boss.key -o wrong.yaml
    draft "s/^  west: \"U[A-Z2-7]*/  west: \"$(login a0)/"
    says 3 "the key of somebody else" keys sign wrong.draft --key boss.key -o wrong.yaml
    draft "s|nats://127.0.0.1:$west_port|nats://broker.example:1|"
    says 3 'a leaf is "U...' keys sign wrong.draft --key boss.key -o wrong.yaml
    "$REEF" keys new mallory >/dev/null 2>&1
    says 2 "belongs to no leaf" broker run.yaml --leaf "nats://127.0.0.1:$leaf_port" --key mallory.key
    says 2 "a hub is tls://HOST:PORT" broker run.yaml --leaf nats://broker.example:7422 --key east.key
    says 2 "--leaf and --key go together" broker run.yaml --leaf tls://broker.example:7422
    says 2 "a leaf has no leaves" broker run.yaml --leaf tls://broker.example:7422 --key east.key --leaves 127.0.0.1:1
    says 2 "needs --cert" broker run.yaml --leaves 0.0.0.0:7422
}
