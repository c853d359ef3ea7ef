#!/usr/bin/env bash
# Installs the packages of build/deb into a new, minimal Debian, uses them, and purges them:  check_packages.sh
# Needs root (debootstrap, chroot). The base system is taken from wherever this machine's apt takes it. Writes TAP.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || { echo "check_packages.sh: needs root, for debootstrap and chroot" >&2; exit 1; }

# The first site that has the main part of a Debian release.
read -r site release < <(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$3 == "main" && $2 !~ /-/ { print $1, $2; exit }')
root=build/root
mkdir -p build/log

number=0 failed=0
check() { # check NAME COMMAND...
    number=$((number + 1))
    local name=$1
    shift
    if "$@" >build/log/packages.log 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        failed=1
        tail -n 30 build/log/packages.log | sed 's/^/# /'
    fi
}

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

new_root() {
    rm -rf "$root" && debootstrap --variant=minbase "$release" "$root" "$site" && cp /etc/resolv.conf "$root/etc/" &&
        mkdir "$root/packages" && cp build/deb/*.deb "$root/packages/" &&
        apt-config dump | grep '^Acquire::' >"$root/etc/apt/apt.conf.d/99host" && inside apt-get -q update
}

files_of() { # everything of the system but caches, logs and what apt itself keeps
    (cd "$root" && find . -xdev -path ./proc -prune -o -path ./var/cache -prune -o -path ./var/lib/apt -prune -o -path ./var/log -prune \
        -o -path ./var/lib/dpkg -prune -o -path ./root -prune -o -path ./tmp -prune -o -path ./packages -prune -o -print | LC_ALL=C sort)
}

installs() { inside sh -c 'apt-get -q -y --no-install-recommends install /packages/*.deb'; }

command_works() {
    inside sh -c 'cd /root && reef run /usr/share/reef/experiments/digits.yaml --set rounds=5 --set repetitions=1 --no-figures -o out &&
        test -s out/summary.csv && test -s /usr/share/man/man1/reef.1.gz && test -s /lib/systemd/system/reef-agent@.service && reef doctor'
}

# libreef_net is loaded when it is first needed, so that only its use shows whether all it is linked with came along.
network_works() {
    inside sh -c 'cd /root && reef keys new alice && test -s alice.key && reef doctor | grep "^live page" | grep -q "can show"'
}

python_works() {
    inside python3 -c '
import numpy as np, reef
models = np.vstack([np.ones((4, 3)), [[99, -99, 99]]])
assert np.allclose(reef.aggregate(models, "median"), 1)
assert "mref" in reef.rules()
reef.Agent("/dev/null", key="/dev/null").close()  # loads libreef_net'
}

compiles() {
    cp tests/install/use.c "$root/root/use.c"
    inside sh -c 'apt-get -q -y --no-install-recommends install gcc libc6-dev pkg-config && cd /root &&
        cc use.c -o use $(pkg-config --cflags --libs reef) && ./use "$(pkg-config --modversion reef)"'
}

# What apt brought along is taken away too, so that the system must look as before.
purges() {
    inside sh -c 'apt-get -q -y purge "*reef*" gcc libc6-dev pkg-config && apt-get -q -y autoremove --purge'
    files_of >build/log/after.txt
    ! diff build/log/before.txt build/log/after.txt | grep -i reef
}

echo 1..7
check "a minimal system ($release)" new_root
files_of >build/log/before.txt
check "packages install" installs
check "the command, its data and its manual" command_works
check "the network, with its live page" network_works
check "the Python module" python_works
check "a C program is compiled and run" compiles
check "purged, nothing is left" purges
rm -rf "$root"
exit $failed
