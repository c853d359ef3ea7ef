# scripts/bootstrap.sh: what it installs, and whom it asks first. Everything that could change the system is a stand-in that takes notes.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    script=$BATS_TEST_DIRNAME/../../scripts/bootstrap.sh
    mkdir bin
    for name in sh env mktemp rm tail grep cat; do
        ln -s "$(command -v "$name")" bin/
    done
    stand_in id 'echo ${FAKE_UID:-1000}'
    stand_in sudo '[ "$1" != -n ] || exit 0; echo "sudo $*" >>notes; exec "$@"'
    stand_in apt-get 'echo "apt-get $*" >>notes; case "$*" in *install*) exit ${FAKE_FAIL:-0} ;; esac'
    stand_in dpkg '[ "$1" = --print-foreign-architectures ] || echo "dpkg $*" >>notes'
    unset CI REEF_YES
    : >notes
}

stand_in() { # stand_in NAME TEXT
    printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"
    chmod +x "bin/$1"
}

bootstrap() { PATH=$PWD/bin "$script" "$@" </dev/null; }
# The same on a terminal, where somebody answers: answer TEXT GROUP
answer() { echo "$1" | script -qec "env PATH=$PWD/bin $script $2" /dev/null; }

@test "with sudo and no terminal it prints the command and does nothing" {
    run -1 bootstrap man
    [[ "$output" == *"    sudo apt-get install --no-install-recommends scdoc"* ]]
    [[ "$output" == *"REEF_YES=1"* ]]
    [ ! -s notes ]
}

@test "REEF_YES=1, CI and root need not be asked" {
    REEF_YES=1 run -0 bootstrap man
    [[ "$output" == *"Installing: scdoc"* ]]
    CI=true run -0 bootstrap man
    [ "$(grep -c '^apt-get .*install --no-install-recommends scdoc$' notes)" -eq 2 ]
    : >notes
    FAKE_UID=0 run -0 bootstrap man
    [ "$(grep -c sudo notes)" -eq 0 ]
    grep -q '^apt-get .*install' notes
}

@test "on a terminal it says what and asks; only yes is yes" {
    command -v script >/dev/null || skip "no script(1) here"
    for word in n "" maybe; do
        run -1 answer "$word" man
        [[ "$output" == *"Install with sudo: scdoc? [y/N]"* ]]
        [ ! -s notes ]
    done
    run -0 answer y man
    grep -q '^apt-get .*install' notes
}

@test "an architecture that was added for nothing is removed again" {
    export FAKE_FAIL=1
    REEF_YES=1 run -1 bootstrap aarch64
    grep -q '^dpkg --add-architecture arm64' notes
    grep -q '^dpkg --remove-architecture arm64' notes
    unset FAKE_FAIL
    : >notes
    REEF_YES=1 run -0 bootstrap aarch64
    grep -q '^dpkg --add-architecture arm64' notes
    [ "$(grep -c remove-architecture notes)" -eq 0 ]
}
