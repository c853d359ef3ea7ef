#!/bin/sh
# Checks the names a build gives to the world:  check_symbols.sh BUILD-FOLDER
# The shared library exports reef_ and nothing else; in the static one, internal names across files begin with rfi_.
set -eu

status=0
check() { # check FILE PATTERN NM-OPTION...
    file=$1 pattern=$2
    shift 2
    names=$(nm "$@" --defined-only --format=posix "$file" | awk 'NF > 1 { print $1 }')
    if ! echo "$names" | grep -q '^reef_version$'; then
        echo "$file does not define reef_version"
        status=1
    fi
    # Sanitizers and coverage add names that begin with two underscores.
    wrong=$(echo "$names" | grep -vE "$pattern|^__" || true)
    if [ -n "$wrong" ]; then
        echo "$file defines names outside $pattern:"
        echo "$wrong" | sed 's/^/    /'
        status=1
    fi
}
check "$1/libreef.so" '^reef_' -D
check "$1/libreef.a" '^(reef|rfi)_' -g
exit $status
