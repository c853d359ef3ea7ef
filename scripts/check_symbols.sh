#!/bin/sh
# Checks the names a build gives to the world:  check_symbols.sh BUILD-FOLDER [--update]
# The shared library exports reef_ and nothing else, and exactly the names listed in cmake/symbols.txt; in the static one, internal names
# across files begin with rfi_. --update writes the list anew, for a change of the interface that is meant.
set -eu

list=$(dirname "$0")/../cmake/symbols.txt
status=0
names_of() { # names_of FILE NM-OPTION...
    file=$1
    shift
    nm "$@" --defined-only --format=posix "$file" | awk 'NF > 1 { print $1 }' | LC_ALL=C sort -u
}
check() { # check FILE PATTERN NM-OPTION...
    file=$1 pattern=$2
    shift 2
    names=$(names_of "$file" "$@")
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

exported=$(mktemp)
trap 'rm -f "$exported"' EXIT
names_of "$1/libreef.so" -D | grep -v '^__' >"$exported"
if [ "${2:-}" = --update ]; then
    cp "$exported" "$list"
elif ! diff -u "$list" "$exported"; then
    echo "The exported names are not those of cmake/symbols.txt. If the change of the interface is meant:"
    echo "    scripts/check_symbols.sh $1 --update     and a line in docs/upgrade.md"
    status=1
fi
exit $status
