#!/bin/sh
# Public headers as Doxygen wants them:  doxygen_filter.sh HEADER
# A comment at the beginning of a line belongs to what follows (/**), one behind code to that code (/**<), if it is a list of names to each
# of them; the first of a file to the file. A heading of several declarations, /* ---- such ---- */, belongs to nothing.
exec awk '
NR == 1 && /^\/\*/ { sub(/^\/\*/, "/** @file\n *"); print; next }
/^[ \t]*\/\* ----/ { print; next }
/^[ \t]*\/\*/ { sub(/\/\*/, "/**"); print; next }
/^    [a-z_0-9 ]+ \*?[a-z_]+, [a-z_, *]+;[ \t]*\/\*.*\*\/$/ {
    comment = $0
    sub(/^[^;]*;[ \t]*\/\*/, "/**<", comment)
    names = $0
    sub(/;.*/, "", names)
    count = split(names, name, /, */)
    type = name[1]
    sub(/ \*?[a-z_]+$/, "", type)
    line = name[1] "; " comment
    for (i = 2; i <= count; i++) line = line " " type " " name[i] "; " comment
    print line
    next
}
/[;,{}] *\/\*/ { sub(/\/\*/, "/**<"); print; next }
{ print }' "$1"
