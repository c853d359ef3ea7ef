# What counts the tests (scripts/steps.sh) counts failures, also of steps that run side by side, and names what was left out.
bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    export REEF_TALLY=$PWD/tally REEF_LEFT_OUT=$PWD/left-out
    printf '. "%s/../../scripts/steps.sh"\n' "$BATS_TEST_DIRNAME" >steps
    printf '1..3\nok 1 alpha # skip no fish here\nok 2 beta\nok 3 - gamma # skip no fish here\n' >left_out.tap
    printf '1..2\nok 1 alpha\nnot ok 2 beta\n' >failing.tap
}

# Runs the lines of standard input after steps.sh.
steps() { cat steps - >script && bash script; }

@test "skipped tests are named with their reason and do not count as passed" {
    run -0 steps <<<'step "some" tap cat left_out.tap; finish'
    [[ $output == *"Left out, 2 in all:"*"no fish here: alpha; gamma;"*"1 passed, 0 failed"* ]]
    [ "$(cat left-out)" = $'absent\tno fish here\talpha\nabsent\tno fish here\tgamma' ]
}

@test "steps side by side are counted, in order, and a failure of one is a failure" {
    run -1 steps <<<'later "first" tap sh -c "sleep 1; cat left_out.tap"; later "second" tap cat failing.tap; await || echo one failed; finish'
    [[ $output == *"first "*"ok ("*"second "*"FAILED"*"one failed"*"Left out, 2 in all"*"2 passed, 1 failed"* ]]
    [ "$(cut -f 1,3,4 tally | sort)" = $'first\t1\t0\nsecond\t1\t1' ]
}

@test "announced tests that never reported, and runs without tests, have failed" {
    run -1 steps <<<'step "cut" tap head -n 2 failing.tap; finish'
    [[ $output == *"1 passed, 1 failed"* ]]
    run -1 steps <<<'step "none" tap echo 1..0; finish'
    [[ $output == *"0 passed, 1 failed"* ]]
}

@test "Python tests say what ran and what was left out" {
    mkdir tests && cp "$BATS_TEST_DIRNAME/../python/conftest.py" tests/
    printf 'import pytest\ndef test_one():\n    pass\n@pytest.mark.parametrize("x", [1, 2])\ndef test_two(x):\n    pytest.importorskip("no_such_module")\n' \
        >tests/test_some.py
    run -0 steps <<<'step "py" pytest env REEF_INSTALLED=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider tests; finish'
    [[ $output == *"could not import 'no_such_module'"*": test_some.py::test_two (2 times);"*"1 passed, 0 failed"* ]]
    grep -qx $'ran\ttest_some.py::test_one' left-out
}
