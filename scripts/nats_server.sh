#!/usr/bin/env bash
# Builds the current nats-server from its Go module into build/nats and prints its path. Fails with a sentence where Go is absent or too old.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

command -v go >/dev/null || {
    echo "nats_server.sh: the current nats-server is built from source, and there is no Go here: install a current one" >&2
    exit 1
}
folder=$PWD/build/nats
log=$PWD/build/log/nats-server.log
mkdir -p "$folder" build/log
# GOTOOLCHAIN: the Go that is installed builds it, or nothing does
if ! (cd "$folder" && GOTOOLCHAIN=local GOFLAGS=-mod=mod GOBIN=$folder go install github.com/nats-io/nats-server/v2@latest) >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "nats_server.sh: $(go version) has not built the current nats-server: is Go too old, or the network away? All of it: $log" >&2
    exit 1
fi
echo "$folder/nats-server"
