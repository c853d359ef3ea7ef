#!/bin/sh
# Runs tests/cli/*.bats, or the files given, against the command of a build:  cli_tests.sh BUILD-FOLDER [FILE...]
# The tests find it as `reef` on the PATH and as $REEF.
set -eu
cd "$(dirname "$0")/.."
folder=$(cd "$1" && pwd)
REEF=$folder/reef PATH=$folder:$PATH
export REEF PATH
shift
[ $# -gt 0 ] || set -- tests/cli
exec bats --formatter tap "$@"
