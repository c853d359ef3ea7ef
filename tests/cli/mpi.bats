# reef run on several ranks: the same bytes as in one process, whatever is spread, killed or resumed.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    command -v mpirun >/dev/null && [ -e "$(dirname "$REEF")/libreef_mpi.so" ] || skip "built without MPI"
    ranks=$BATS_TEST_DIRNAME/../../scripts/ranks.sh
    cat >small.yaml <<'YAML'
agents: 12
graph: ring:k=3
problem: {kind: lms, dimension: 6}
strategy: diffusion:mu=0.05
rule: [median, ref]
malicious: 2
attack: alie
rounds: 60
repetitions: 20
YAML
}

on() { # on RANKS ARGUMENTS...: reef run, with a limit, since what is tested for is also that nothing hangs
    local count=$1
    shift
    timeout 100 "$ranks" "$count" "$REEF" run --no-figures "$@"
}

same() { cmp "$1/summary.csv" "$2/summary.csv" && cmp "$1/curves.csv" "$2/curves.csv"; }

# A rank of the job with this folder dies; the others are ended by the launcher.
kill_one() { # kill_one FOLDER
    local pids pid
    mapfile -t pids < <(pgrep -f "reef run .*-o $1( |\$)" | while read -r pid; do
        # those that are ranks, not the launcher
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -q '^\(OMPI_COMM_WORLD_RANK\|PMI_RANK\)=' && echo "$pid"
    done)
    [ ${#pids[@]} -eq 0 ] || kill -9 "${pids[RANDOM % ${#pids[@]}]}" 2>/dev/null || true
}

@test "cells or agents over 1, 2 and 3 ranks: the same bytes as in one process" {
    "$REEF" run small.yaml -q -o one --no-figures
    for count in 1 2 3; do
        on "$count" small.yaml -q -o "cells$count" --distribute cells
        same one "cells$count"
        on "$count" small.yaml -q -o "agents$count" --distribute agents
        same one "agents$count"
        [ -z "$(find "cells$count/cells" "agents$count/cells" -type f | xargs grep -l '^block' || true)" ]
    done
    run -0 --separate-stderr on 2 small.yaml -o auto
    same one auto
    [ "$(grep -c 'results in auto' <<<"$output")" -eq 1 ]
}

@test "federated and other runs with a server, agents over 1, 2, 3, 4 and 8 ranks: the same bytes, trust and models too" {
    cat >served.yaml <<'YAML'
agents: 12
problem: {kind: lms, dimension: 6}
strategy: [federated:mu=0.05, "federated:fraction=0.6,mean_delay=1,server_momentum=0.5"]
rule: [median, mref, krum:f=2]
malicious: 2
attack: alie
trust: true
rounds: 40
repetitions: 2
YAML
    cat >rsa.yaml <<'YAML'
agents: 12
graph: ring:k=3
problem: {kind: lms, dimension: 6}
strategy: [rsa, rsa_tv]
malicious: 2
attack: alie
rounds: 40
repetitions: 20
YAML
    "$REEF" run served.yaml -q -o one --no-figures --save-models
    "$REEF" run rsa.yaml -q -o rsa --no-figures --save-models
    for count in 1 2 3 4 8; do
        on "$count" served.yaml -q -o "agents$count" --distribute agents --save-models
        same one "agents$count"
        cmp one/trust.csv "agents$count/trust.csv"
        diff -r one/models "agents$count/models"
        on "$count" rsa.yaml -q -o "rsa$count" --distribute agents --save-models
        same rsa "rsa$count"
        diff -r rsa/models "rsa$count/models"
    done
}

@test "trust.csv and models of agents over ranks: the same bytes, after a stop as well" {
    local small=(--set trust=true --set repetitions=2 --set "attack=[alie, two_faced]" --set "rule=[ref, mref]")
    "$REEF" run small.yaml -q -o one --no-figures --save-models "${small[@]}"
    for count in 1 2 3; do
        on "$count" small.yaml -q -o "agents$count" --distribute agents --save-models "${small[@]}"
        same one "agents$count"
        cmp one/trust.csv "agents$count/trust.csv"
        diff -r one/models "agents$count/models"
    done
    local long=("${small[@]}" --set rounds=10000 --set "rule=[mref]" --set attack=alie --set repetitions=1)
    "$REEF" run small.yaml -q -o whole --no-figures "${long[@]}"
    on 2 small.yaml -q -o stopped --distribute agents --checkpoint 100 "${long[@]}" &
    job=$!
    while kill -0 "$job" 2>/dev/null && [ -z "$(find stopped/checkpoints -type f 2>/dev/null)" ]; do sleep 0.02; done
    kill_one stopped
    run ! wait "$job"
    [ -n "$(find stopped/checkpoints -type f)" ]
    # without any file of the checkpoints but their lists it begins anew, and says so
    cp -r stopped lost
    rm lost/checkpoints/*.safetensors
    on 2 small.yaml -o lost --distribute agents --resume "${long[@]}" 2>said
    grep -q 'damaged file' said
    same whole lost
    on 3 small.yaml -q -o stopped --distribute agents --resume "${long[@]}"
    same whole stopped
    cmp whole/trust.csv stopped/trust.csv
}

@test "a mistake is told once, by all ranks together, and nothing hangs" {
    run -2 --separate-stderr on 3 small.yaml -q --set rule=nonsense
    [ "$(grep -c 'nonsense' <<<"$stderr")" -eq 1 ]
    run -2 --separate-stderr on 3 small.yaml -q --distribute everything
    run -3 --separate-stderr on 2 nowhere.yaml -q
    [ "$(grep -c 'nowhere.yaml' <<<"$stderr")" -eq 1 ]
}

@test "a data file that one rank cannot read ends all of them with its message" {
    mkdir good bad
    cat >good/data.csv <<'CSV'
x,y
1,0
2,1
3,0
4,1
CSV
    echo "not numbers" >bad/data.csv
    cat >each.sh <<'SH'
#!/bin/sh
# the last rank sees another folder
if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 2 ]; then cd bad; else cd good; fi
exec "$REEF" run ../data.yaml -q -o ../out --no-figures
SH
    chmod +x each.sh
    cat >data.yaml <<'YAML'
agents: 2
graph: complete
problem: "logistic:data=(csv:path=data.csv,label=y)"
strategy: diffusion
rule: mean
rounds: 4
repetitions: 1
YAML
    (cd good && "$REEF" check ../data.yaml)
    run ! --separate-stderr timeout 60 "$ranks" 3 ./each.sh
    [ "$(grep -c 'rank 2: ' <<<"$stderr")" -eq 1 ]
    [ "$(grep -c 'data.csv' <<<"$stderr")" -eq 1 ]
}

@test "20 random kills, resumed on other numbers of ranks: the bytes of an undisturbed run" {
    local folder=$BATS_TEST_TMPDIR/killed kills=0 count=2 long=(--set rounds=60000 --set rule=[ref] --set repetitions=1)
    "$REEF" run small.yaml -q -o whole --no-figures "${long[@]}"
    for _ in $(seq 60); do
        on "$count" small.yaml -q -o "$folder" --distribute agents --checkpoint 100 --resume "${long[@]}" 2>/dev/null &
        job=$!
        [ $kills -ge 20 ] || { sleep "0.$((RANDOM % 4 + 2))" && kill_one "$folder"; }
        if wait "$job"; then
            [ $kills -lt 20 ] || break
            rm -rf "$folder" # it was faster than the kill: again
        else
            kills=$((kills + 1))
        fi
        count=$((count % 3 + 1))
    done
    [ $kills -ge 20 ]
    same whole "$folder"
    [ -z "$(find "$folder/checkpoints" -type f)" ] # not even of those that died while they wrote
}
