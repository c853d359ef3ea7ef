# The harness of `make bench-peers`, on a small array with numpy alone: it runs, and numpy computes what Reef computes.
bats_require_minimum_version 1.5.0

setup() {
    python=/usr/bin/python3
    library=$(dirname "$REEF")/libreef.so
    peers=bench/peers/peers.py
    jsonl=$BATS_TEST_TMPDIR/peers.jsonl
    export PYTHONDONTWRITEBYTECODE=1
    "$python" -c 'import numpy' 2>/dev/null || skip "python3-numpy is absent"
    [ -f "$library" ] || skip "no shared library in the build"
    "$python" "$peers" data "$BATS_TEST_TMPDIR/rows.npy" --k 9 --megabytes 0.2
}

measure() { # measure PEER...
    "$python" "$peers" run "$BATS_TEST_TMPDIR/rows.npy" "$@" --library "$library" --jsonl "$jsonl" \
        --environment here --repeats 1 --simulation 0.03
}

@test "numpy's rules agree with Reef's, and the simulation runs" {
    measure numpy
    run -0 "$python" "$peers" table "$jsonl"
    for rule in krum mean median ref trimmed; do
        grep -Eq "^$rule +here .* same \(" <<<"$output"
    done
    [[ "$output" != *MISMATCH* ]]
    grep -Eq "^simulation here .* M agent-updates/s" <<<"$output"
}

@test "a peer that is not there is named as absent, with the reason" {
    measure nobody
    run -0 "$python" "$peers" table "$jsonl"
    [[ "$output" == *"absent: nobody (here): No module named 'peer_nobody'"* ]]
}

@test "a result that is not Reef's is called a mismatch" {
    cat >"$BATS_TEST_TMPDIR/peer_wrong.py" <<-'EOF'
	import numpy as np
	from case import Case, Peer
	def load(k, f, threads):
	    return Peer("wrong", "1", [Case("mean", "mean", "not the mean", lambda x: np.median(x, axis=0)),
	                               Case("mean", "mean", "not a number", lambda x: np.mean(x, axis=0) * np.nan)])
	EOF
    PYTHONPATH=$BATS_TEST_TMPDIR measure wrong
    run -1 "$python" "$peers" table "$jsonl"
    [[ "$output" == *"2 results are not those of Reef"* ]]
}
