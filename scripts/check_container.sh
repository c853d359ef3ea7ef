#!/usr/bin/env bash
# Builds the image of packaging/container/Containerfile, and runs a broker and two agents from it:  check_container.sh
# Needs root, and no container engine: buildah builds with the isolation of a chroot, from a base system made by debootstrap, which is taken
# from wherever this machine's apt takes it, and tagged with the name that the Containerfile asks for. Writes TAP.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "check_container.sh: needs root, for debootstrap and chroot" >&2; exit 1; }

read -r site release < <(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$3 == "main" && $2 !~ /-/ { print $1, $2; exit }')
base=$(sed -n 's/^FROM \([^ ]*\)$/\1/p' packaging/container/Containerfile)
work=$PWD/build/container
log=$work/log
images=(buildah --root "$work/store" --runroot "$work/run" --storage-driver vfs)
mkdir -p "$work"

number=0 failed=0
check() { # check NAME COMMAND...
    number=$((number + 1))
    local name=$1
    shift
    if "$@" >"$log" 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failed=1
        tail -n 30 "$log" | sed 's/^/# /'
    fi
}

# The base system under the name that the Containerfile asks for, with this machine's way to packages.
base_image() {
    local box
    rm -rf "$work/base" && debootstrap --variant=minbase "$release" "$work/base" "$site" &&
        apt-config dump | grep '^Acquire::' >"$work/base/etc/apt/apt.conf.d/99host" &&
        box=$("${images[@]}" from scratch) && "${images[@]}" add -q "$box" "$work/base" / &&
        "${images[@]}" commit -q "$box" "localhost/$base" && "${images[@]}" rm "$box" && rm -rf "$work/base"
}

image() {
    "${images[@]}" bud --isolation chroot --pull-never --network host -t localhost/reef-net -f packaging/container/Containerfile .
}

# The image's settings, and its root where it can be entered.
open_image() {
    box=$("${images[@]}" from --pull-never localhost/reef-net) && root=$("${images[@]}" mount "$box") &&
        "${images[@]}" inspect --type image localhost/reef-net >"$work/settings" &&
        enter=(chroot --userspec 10001:10001 "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/var/lib/reef) &&
        grep -q '"User": "10001"' "$work/settings" && grep -q '"reef"' "$work/settings" && grep -q '"/var/lib/reef"' "$work/settings"
}

# As the image's user, with what a container has of /dev and /proc left out.
doctor() { "${enter[@]}" reef doctor && "${enter[@]}" reef --version; }

# A broker and two agents in the image's root: they combine, and end within their time when they are told to.
network() {
    local port pid pids=()
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "${enter[@]}" sh -c "cd && rm -rf trial && mkdir trial && cd trial && for name in boss a0 a1 a2; do reef keys new \$name >\$name.line; done &&
        { printf 'reef: 1\nrun: t\nid: 5f0c9a1be2d34c77a1b09c55e0d1f2a3\ngraph: complete\nrule: median\nstrategy: \"diffusion:mu=0.1\"\n'
          printf 'malicious: 0.2\ndeadline: 5s\nbrokers: [\"nats://127.0.0.1:$port\"]\ntest: {problem: \"lms:dimension=5\", rounds: 20}\n'
          echo coordinator: \$(cut -d'\"' -f2 boss.line | cut -d' ' -f1); echo agents:; sed 's/^/  /' a0.line a1.line a2.line; } >draft &&
        reef keys sign draft --key boss.key -o run.yaml"
    "${enter[@]}" sh -c 'cd && cd trial && exec reef broker run.yaml --store store' >"$work/broker.log" 2>&1 &
    broker=$!
    for k in 0 1 2; do
        "${enter[@]}" sh -c "cd && cd trial && exec reef agent run.yaml --key a$k.key" >"$work/agent-$k.log" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || { cat "$work/broker.log" "$work"/agent-*.log; kill "$broker"; return 1; }
    done
    kill -TERM "$broker" && wait "$broker" && cat "$work"/agent-*.log && [ "$(cat "$work"/agent-*.log | grep -c '^end: .* combined=20 ')" = 3 ]
}

check "a base system becomes the image $base" base_image
check "buildah builds the image" image
check "the image has the settings that the manual tells of" open_image
if [ "$failed" = 0 ]; then
    check "reef doctor in the image" doctor
    check "a broker and three agents from the image do 20 rounds together" network
    "${images[@]}" umount "$box" >"$log" 2>&1 && "${images[@]}" rm "$box" >"$log" 2>&1
    "${images[@]}" rmi -a -f >"$log" 2>&1 || true
fi
echo "1..$number"
exit "$failed"
