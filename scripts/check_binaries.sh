#!/bin/sh
# Checks every program and shared library below a folder, built or installed:  check_binaries.sh [--hardened] FOLDER
#   - where it looks for libraries (RPATH, RUNPATH): $ORIGIN or absolute folders. An empty or relative entry is the current folder, from
#     where a library that lies there would be loaded instead of the system's.
#   - the stack is not executable, and code is not written to when it is loaded.
#   - with --hardened, for builds with REEF_HARDEN (cmake/ReefFlags.cmake): position-independent; relocations done at the start and read-only
#     from then on (full RELRO); what is ours and large enough to need them (the command, libreef, libreef_mpi, libreef_net) has stack guards and
#     checked copies.
# Tools that npm brings to make the live page (node_modules) are not ours and are not handed out. Needs sh, find and readelf. Fails too if there is nothing to check.
set -eu

status=0
complain() { # complain FILE WHAT
    echo "$1: $2"
    status=1
}

# Linked for this system's loader: programs and shared libraries, not objects.
is_linked() { readelf --wide --file-header "$1" 2>/dev/null | grep -Eq '^ *Type: +(EXEC|DYN) '; }

check_search_path() { # check_search_path FILE
    path=$(readelf --wide --dynamic "$1" | sed -n 's/.*(R\(UN\)\{0,1\}PATH).*\[\(.*\)\]$/\2:/p')
    while [ -n "$path" ]; do
        entry=${path%%:*} path=${path#*:}
        case $entry in
        '$ORIGIN' | '$ORIGIN/'* | /*) ;;
        *) complain "$1" "looks for libraries in '$entry'" ;;
        esac
    done
}

check_memory() { # check_memory FILE
    readelf --wide --segments "$1" >"$seen"
    grep -Eq '^ *GNU_STACK .* RW +0x' "$seen" || complain "$1" "has an executable stack"
    ! readelf --wide --dynamic "$1" | grep -q TEXTREL || complain "$1" "is written to when it is loaded (TEXTREL)"
}

check_hardened() { # check_hardened FILE; after check_memory
    grep -q '^ *GNU_RELRO ' "$seen" || complain "$1" "has no read-only relocations (RELRO)"
    readelf --wide --file-header "$1" | grep -Eq '^ *Type: +DYN ' || complain "$1" "is not position-independent (PIE)"
    readelf --wide --dynamic "$1" | grep -Eq '\(FLAGS(_1)?\).*NOW' || complain "$1" "binds functions late (BIND_NOW)"
    case ${1##*/} in reef | libreef.so* | libreef_mpi.so* | libreef_net.so*) ;; *) return 0 ;; esac
    readelf --wide --dyn-syms "$1" >"$seen"
    grep -q '__stack_chk_fail' "$seen" || complain "$1" "has no stack guards (-fstack-protector-strong)"
    grep -Eq '__[a-z]+_chk(@|$)' "$seen" || complain "$1" "has no checked copies (_FORTIFY_SOURCE)"
}

hardened=
[ "$1" != --hardened ] || { hardened=yes && shift; }
seen=$(mktemp)
list=$(mktemp)
trap 'rm -f "$list" "$seen"' EXIT
find "$1" -type f \( -perm -u+x -o -name '*.so*' \) ! -path '*/CMakeFiles/*' ! -path '*/node_modules/*' >"$list"
checked=0
while IFS= read -r file; do
    is_linked "$file" || continue
    checked=$((checked + 1))
    check_search_path "$file"
    check_memory "$file"
    [ -z "$hardened" ] || check_hardened "$file"
done <"$list"
[ "$checked" -gt 0 ] || complain "$1" "no program or library to check"
[ "$status" -ne 0 ] || echo "$checked programs and libraries checked"
exit "$status"
