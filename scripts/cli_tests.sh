#!/bin/sh
# Runs tests/cli/*.bats against the command of a build:  cli_tests.sh BUILD-FOLDER
# The tests find it as `reef` on the PATH and as $REEF.
set -eu
cd "$(dirname "$0")/.."
folder=$(cd "$1" && pwd)
REEF=$folder/reef PATH=$folder:$PATH
export REEF PATH
exec bats --formatter tap tests/cli
