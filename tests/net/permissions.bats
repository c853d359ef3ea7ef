# What an agent, an observer and a stranger may say and hear on a nats-server with the configuration that `reef broker` writes.
bats_require_minimum_version 1.5.0
load run

# A ring of 8: agent 0 hears 1 and 7. Models of 20000 numbers come in chunks, so that there are streams of both kinds.
setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    hostile=${REEF%/reef}/tests/hostile
    port=$(free_port)
    "$REEF" keys new desk >/dev/null 2>&1
    make_run 8 "nats://127.0.0.1:$port" 'graph: ring:k=1' 'rule: median' 'model: {count: 20000, type: f64}' 'deadline: 2s' \
        "observers: {desk: \"$("$REEF" keys show desk.key | grep -oE 'U[A-Z2-7]{55}')\"}"
    start_broker
}

teardown() { end_all; }

# Every line of the standard input must be refused, or allowed:  all refused KEY
all() {
    sort -u >wanted.txt
    "$hostile" try "$port" "$2" <wanted.txt >got.txt
    [ "$(wc -l <got.txt)" = "$(wc -l <wanted.txt)" ]
    [ -s got.txt ]
    if grep -v "^$1 " got.txt; then
        echo "should all be $1"
        return 1
    fi
}

# Requests of JetStream, in both forms.
requests() {
    for prefix in '$JS.API' '$JS.reef.API'; do
        for stream in reef-t-s-0 reef-t-s-1 reef-t-p-0 reef-t-x reef-t-c; do
            for verb in CREATE UPDATE DELETE PURGE INFO MSG.GET MSG.DELETE SNAPSHOT RESTORE LEADER.STEPDOWN PEER.REMOVE; do
                echo "pub $prefix.STREAM.$verb.$stream"
            done
            for verb in CREATE DURABLE.CREATE INFO DELETE MSG.NEXT LEADER.STEPDOWN; do
                echo "pub $prefix.CONSUMER.$verb.$stream.mine"
            done
            echo "pub $prefix.CONSUMER.CREATE.$stream"
            echo "pub $prefix.CONSUMER.NAMES.$stream"
            echo "pub $prefix.CONSUMER.LIST.$stream"
        done
        printf "pub $prefix.%s\n" INFO STREAM.NAMES STREAM.LIST STREAM.TEMPLATE.CREATE.x META.LEADER.STEPDOWN ACCOUNT.PURGE.x \
            SERVER.REMOVE
        # what is stored of agents that are no neighbours
        printf "pub $prefix.DIRECT.GET.reef-t-%s\n" s-3 p-3 s-4 p-4 s-5 p-5
    done
    printf 'pub %s\n' '$JS.ACK.reef-t-s-0.x.1.1.1.1.1' '$SYS.REQ.SERVER.PING' '$SYS.REQ.ACCOUNT.PING.CONNZ' '$SYS.x'
}

@test "an agent may do what it needs" {
    {
        printf 'pub reef.t.%s\n' s.0.5 p.0.1.2 p.0.1.i e.0 x.0 t.0 c.0
        for prefix in '$JS.API' '$JS.reef.API'; do
            printf "pub $prefix.DIRECT.GET.reef-t-%s\n" s-0 p-0 s-1 p-1 s-7 p-7 c
        done
        printf 'sub reef.t.%s\n' 's.0.*' 's.1.*' 's.7.*' e.1 e.7 'x.*'
        echo 'sub _t.0.h8Jx2mQf0LwZr5TkVbN3sY.>'
    } | all allowed a0.key
}

@test "an agent speaks for nobody else" {
    {
        printf 'pub reef.t.%s\n' s.1.5 s.7.5 s.3.5 p.1.0.0 p.1.0.i e.1 e.4 x.1 t.1 c c.1 c.b.2 c.0.2 s.0 s.0.5.6 p.0.1 e.0.1
        printf 'pub %s\n' reef.other.s.0.1 reef.t reef foo _INBOX.x _t.1.h8Jx2mQf0LwZr5TkVbN3sY.s.1 _t.0.h8Jx2mQf0LwZr5TkVbN3sY.s.0
    } | all refused a0.key
}

@test "an agent hears its neighbours alone" {
    {
        printf 'sub %s\n' '>' '*' 'reef.>' 'reef.t.>' 'reef.*.s.1.*' 'reef.t.s.>' 'reef.t.s.*.*' 'reef.t.s.4.*' 'reef.t.e.*' \
            reef.t.e.4 'reef.t.t.*' reef.t.t.1 'reef.t.c.*' 'reef.t.c.>' 'reef.t.p.1.*.*' 'reef.other.>' '_t.>' '_t.1.>' '_t.1.*.>' '_t.*.*.>' '_INBOX.>' '$SYS.>' \
            '$JS.>' '$JS.EVENT.>' '$JS.API.>'
    } | all refused a0.key
}

@test "an agent makes, changes, looks at and removes nothing of the store" {
    requests | all refused a0.key
}

@test "an observer hears telemetry, proofs and run files, and says nothing" {
    printf 'sub reef.t.%s\n' 't.*' 'x.*' 'c.>' | all allowed desk.key
    {
        printf 'pub reef.t.%s\n' s.0.5 p.0.1.2 e.0 x.0 t.0 c c.0 c.b.2
        printf 'pub %s\n' _t.1.h8Jx2mQf0LwZr5TkVbN3sY.s.1 foo
        printf 'sub %s\n' '>' 'reef.>' 'reef.t.>' 'reef.t.s.*.*' 'reef.t.e.*' 'reef.t.p.1.*.*' '_t.>' '_t.1.*.>' '$SYS.>' '$JS.>'
        requests
    } | all refused desk.key
}

@test "who is not in the run file does not get in" {
    "$REEF" keys new mallory >/dev/null 2>&1
    run -1 "$hostile" try "$port" mallory.key <<<"sub >"
    [[ "$output" == *"Authorization Violation"* ]]
}
