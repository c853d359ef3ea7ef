#!/bin/sh
# Installs a build into a scratch folder and uses it from outside, as a user would:  run.sh BUILD-FOLDER
# Writes TAP.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cc=${CC:-cc}

number=0
check() { # check NAME COMMAND...
    number=$((number + 1))
    name=$1
    shift
    if ("$@") >"$scratch/log" 2>&1; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        sed 's/^/# /' "$scratch/log"
    fi
}

pkg() { PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name reef.pc)") pkg-config "$@"; }
library_dir() { dirname "$(find "$prefix" -name libreef.so)"; }

install_tree() {
    cmake --install "$build" --prefix "$prefix" && [ -f "$prefix/include/reef/reef.h" ] &&
        [ -f "$prefix/include/reef/version.h" ] && [ -n "$(find "$prefix" -name libreef.a)" ] &&
        [ -n "$(find "$prefix" -name libreef.so.0.2)" ]
}

nothing_internal() { # only public headers, and no file that is a template
    ! find "$prefix/include" -type f ! -path "$prefix/include/reef/*.h" | grep . && ! find "$prefix" -name '*.in' | grep .
}

data_is_there() { [ -f "$prefix/share/reef/digits.npy" ] && [ -f "$prefix/share/reef/README.md" ]; }

# Every command has its page, and each shell its script.
pages_are_there() {
    for name in $("$prefix/bin/reef" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx -e help -e version); do
        [ -s "$prefix/share/man/man1/reef-$name.1" ] || return 1
    done
    [ -s "$prefix/share/man/man1/reef.1" ] && [ -s "$prefix/share/bash-completion/completions/reef" ] &&
        [ -s "$prefix/share/zsh/site-functions/_reef" ] && [ -s "$prefix/share/fish/vendor_completions.d/reef.fish" ]
}

command_runs() { "$prefix/bin/reef" --version | grep -F "$(pkg --modversion reef)"; }

with_pkg_config() {
    # shellcheck disable=SC2046 # a list of flags
    "$cc" -std=c11 -Wall -Wextra -Werror "$here/use.c" -o "$scratch/use-shared" $(pkg --cflags --libs reef) &&
        LD_LIBRARY_PATH=$(library_dir) "$scratch/use-shared" "$(pkg --modversion reef)"
}

# Only libreef.a is offered, and what it needs must come from Libs.private.
with_pkg_config_static() {
    # shellcheck disable=SC2046 # a list of flags
    "$cc" -std=c11 "$here/use.c" -o "$scratch/use-static" $(pkg --cflags reef) -Wl,-Bstatic $(pkg --libs reef) \
        -Wl,-Bdynamic $(pkg --static --libs-only-l reef | sed 's/-lreef//g') &&
        "$scratch/use-static" "$(pkg --modversion reef)"
}

with_find_package() { # with_find_package TARGET
    folder=$scratch/cmake-$1
    cmake -S "$here/cmake" -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" -DREEF_TARGET="$1" \
        -DREEF_VERSION="$(pkg --modversion reef)" -G Ninja && cmake --build "$folder" && "$folder/use" "$(pkg --modversion reef)"
}

# Programs and libraries are sound, and nothing of the build folder is needed to run them.
binaries_are_sound() {
    "$here/../../scripts/check_binaries.sh" --hardened "$prefix" &&
        ! readelf --dynamic "$prefix/bin/reef" "$(library_dir)"/*.so | grep -E 'R(UN)?PATH' | grep -F "$build"
}

prefix=$scratch/first
check "installs headers and libraries" install_tree
check "installs nothing internal" nothing_internal
check "installs the shipped data" data_is_there
check "the command runs" command_runs
check "looks for libraries in sound places" binaries_are_sound
if [ -f "$build/man/reef.1" ]; then
    check "installs man pages and completion" pages_are_there
else
    number=$((number + 1))
    echo "ok $number - installs man pages and completion # skip no scdoc here"
fi
check "pkg-config, shared" with_pkg_config
check "pkg-config, static" with_pkg_config_static
check "find_package, shared" with_find_package Reef::reef
check "find_package, static" with_find_package Reef::reef_static

mv "$prefix" "$scratch/moved"
prefix=$scratch/moved
rm -rf "$scratch"/cmake-* "$scratch"/use-*
check "pkg-config after moving the tree" with_pkg_config
check "find_package after moving the tree" with_find_package Reef::reef

DESTDIR=$scratch/stage
export DESTDIR
prefix=/opt/reef
check "DESTDIR" cmake --install "$build" --prefix "$prefix"
check "DESTDIR is obeyed" test -x "$DESTDIR$prefix/bin/reef"
echo "1..$number"
