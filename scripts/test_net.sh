#!/usr/bin/env bash
# The tests that start a real nats-server, optimised and under ASan + UBSan. What needs none is in test.sh. NATS=new: on the current
# nats-server, built from source, instead of the installed one.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

if [ "${NATS:-}" = new ]; then
    REEF_NATS_SERVER=$(scripts/nats_server.sh) || exit 1
    export REEF_NATS_SERVER
    "$REEF_NATS_SERVER" -v
fi

export REEF_TESTS=ON
for preset in release asan; do
    step "build $preset" build scripts/build.sh "$preset" &&
        step "network $preset" ctest ctest --test-dir "build/$preset" -C server -L server --no-tests=error --output-on-failure
done
for file in swarm hostile_swarm seal epoch epoch_hostile local hostile permissions tls leaf netns clock damaged unit metrics; do
    step "network $file" tap env PATH="$PWD/build/release:$PATH" REEF="$PWD/build/release/reef" bats "tests/net/$file.bats"
done
step "network Python" pytest scripts/python_tests.sh build/release tests/python/test_agent.py
step "live page" tap env PATH="$PWD/build/release:$PATH" REEF="$PWD/build/release/reef" bats tests/net/dash.bats tests/net/dash_epoch.bats
finish
