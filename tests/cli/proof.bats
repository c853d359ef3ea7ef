# What is no proof; valid ones are in tests/net/hostile_swarm.bats.
bats_require_minimum_version 1.5.0
load parts

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    has_part network || skip "built without libnats"
}

@test "files that are not proofs are refused with a message" {
    run -5 "$REEF" proof nowhere
    : >empty
    run -3 "$REEF" proof empty
    [[ "$output" == *"is not a proof"* ]]
    head -c 640 /dev/zero >zeros
    run -3 "$REEF" proof zeros
    head -c 5000 /dev/zero >long
    run -3 "$REEF" proof long
    run -2 "$REEF" proof
    run -2 "$REEF" proof a b
    run -0 "$REEF" proof --help
    [[ "$output" == *"--run"* ]]
}
