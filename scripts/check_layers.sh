#!/bin/sh
# Checks from the #include lines that dependencies point down only:  check_layers.sh [ROOT] | --self-test
#
#   base < num io < agg graph problem attack engine system < learn merge < experiment < catalogue
#        < ffi net < tools examples bench (public headers only; bench_gram.c times a kernel by itself)
#
# Modules of one layer never include each other. Beyond that: plans and aggregators are closed, from outside src/agg only
# agg/driver.h is included; intrinsics only in src/num/kernels; each third-party header in at most one file of src/, a .c file or
# a header X_inner.h, which only files X*.c beside it include;
# public headers include only <reef/...> and the C library.
set -eu

check() { # check ROOT
    cd "$1"
    find include src tools examples bench -name '*.[ch]' 2>/dev/null | LC_ALL=C sort >"$list"
    [ -s "$list" ] || { echo "no sources in $1"; return 1; }
    # shellcheck disable=SC2046 # our own file names have no blanks
    awk '
    function rank(modules, value,    i, n, list) {
        n = split(modules, list, " ")
        for (i = 1; i <= n; i++) layer[list[i]] = value
    }
    function complain(why) { printf "%s:%d: %s: %s\n", FILENAME, FNR, name, why; bad = 1 }

    BEGIN {
        rank("base", 1); rank("num io", 2); rank("agg graph problem attack engine system", 3)
        rank("learn merge", 4); rank("experiment", 5); rank("catalogue", 6); rank("ffi net", 7)
        third_party = "^(mpi|metis|yaml|cblas|jansson|sodium|nats|microhttpd)(/.*)?\\.h$"
        intrinsics = "(intrin|^arm_neon|^arm_sve)\\.h$"
        libc = "^(assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|" \
               "stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|threads|time|uchar|" \
               "wchar|wctype)\\.h$"
    }
    FNR == 1 {
        split(FILENAME, path, "/")
        top = path[1]
        mine = top == "src" ? path[2] : ""
        name = "src/" mine
        if (top == "src" && !(mine in layer)) complain("unknown module; give it a layer in scripts/check_layers.sh")
    }
    !/^[ \t]*#[ \t]*include[ \t]*[<"]/ { next }
    {
        quoted = $0 ~ /include[ \t]*"/
        name = $0
        sub(/^[^<"]*[<"]/, "", name)
        sub(/[>"].*$/, "", name)
        first = index(name, "/") ? substr(name, 1, index(name, "/") - 1) : ""

        if (name ~ /(^|\/)\.\.?\//) complain("write the path from src/, without dots")
        else if (top == "include") {
            if (quoted || (first != "reef" && name !~ libc))
                complain("public headers include only <reef/...> and the C library")
        } else if (top != "src") {
            timed = FILENAME == "bench/bench_gram.c" && name == "num/kernels/kernels.h"
            if ((first in layer || first == "src") && !timed) complain("only public headers <reef/...> may be used here")
        } else if (first in layer) {
            if (!quoted) complain("internal headers are included with quotes")
            if (first != mine && layer[first] == layer[mine])
                complain(mine " and " first " are sisters and must not know each other")
            if (layer[first] > layer[mine]) complain(mine " lies below " first " and must not include it")
            else if (first == "agg" && mine != "agg" && name != "agg/driver.h")
                complain("only agg/driver.h may be included from outside src/agg")
        } else if (quoted && first != "") complain("unknown module " first)

        if (quoted && name ~ /_inner\.h$/) {
            stem = "src/" name
            sub(/_inner\.h$/, "", stem)
            if (index(FILENAME, stem) != 1 || FILENAME !~ /\.c$/) complain("only " stem "*.c may include it")
        }
        if (name ~ intrinsics && FILENAME !~ /^src\/num\/kernels\//) complain("intrinsics belong in src/num/kernels")
        if (top == "src" && name ~ third_party) {
            if (FILENAME !~ /(\.c|_inner\.h)$/) complain("third-party headers are included from a .c file or from X_inner.h")
            else if ((name in owner) && owner[name] != FILENAME)
                complain("already included by " owner[name] "; one file owns each third-party header")
            owner[name] = FILENAME
        }
    }
    END { exit bad }' $(cat "$list")
}

# Each line of cases is a file, an include and whether it must be caught; the check must agree with all of them.
self_test() {
    tree=$scratch/tree
    status=0
    while read -r verdict file include; do
        rm -rf "$tree"
        mkdir -p "$tree/$(dirname "$file")" "$tree/src/io"
        echo '#include <jansson.h>' >"$tree/src/io/a_json.c"
        echo "  # include $include // why" >"$tree/$file"
        if (check "$tree") >/dev/null; then found=good; else found=bad; fi
        [ "$found" = "$verdict" ] || { echo "self-test: $file with $include should be $verdict"; status=1; }
    done <<'CASES'
good src/base/x.c <stdio.h>
good src/base/x.c <reef/status.h>
good src/num/x.c "base/error.h"
good src/agg/x.c "num/order.h"
good src/agg/x.c "agg/rules/rule_list.h"
good src/agg/x.c "agg/plan.h"
good src/agg/rules/x.c "agg/pipeline.h"
good src/merge/x.c "agg/driver.h"
good src/ffi/x.c "agg/driver.h"
good src/learn/x.c "engine/engine.h"
good src/experiment/x.c "learn/round.h"
good src/catalogue/x.c "experiment/config/placement.h"
bad src/experiment/x.c "catalogue/x.h"
good src/num/kernels/x.c <immintrin.h>
good src/engine/mpi.c <mpi.h>
good src/engine/metis.c <metis.h>
good src/net/crypto.c <sodium.h>
good src/net/link_nats_inner.h <nats/nats.h>
good src/net/link_nats.c "net/link_nats_inner.h"
good src/net/link_nats_open.c "net/link_nats_inner.h"
good src/net/x.c "learn/round.h"
good include/reef/x.h <reef/status.h>
good include/reef/x.h <stdint.h>
good tools/x.c <reef/reef.h>
good tools/x.c "tool.h"
bad src/base/x.c "num/order.h"
bad src/num/x.h "agg/agg.h"
bad src/num/x.c "io/npy.h"
bad src/agg/x.c "graph/graph.h"
bad src/attack/x.c "agg/agg.h"
bad src/merge/x.c "learn/round.h"
bad src/agg/x.c "experiment/config.h"
bad src/agg/x.c "../num/order.h"
bad src/agg/x.c <num/order.h>
bad src/agg/x.c "nowhere/x.h"
bad src/nowhere/x.c <stdio.h>
bad src/agg/x.c <immintrin.h>
bad src/num/x.c <arm_neon.h>
bad src/merge/x.c <jansson.h>
bad src/engine/mpi.h <mpi.h>
bad src/net/x.h <sodium.h>
bad src/net/x_inner.h <jansson.h>
bad src/net/agent.c "net/link_nats_inner.h"
bad src/net/link_nats.h "net/link_nats_inner.h"
bad src/net/x.c "ffi/x.h"
bad src/learn/x.c "net/frame.h"
bad include/reef/mpi.h <mpi.h>
bad src/engine/x.c "agg/plan.h"
bad src/learn/x.c "agg/plan.h"
bad src/merge/x.c "agg/pipeline.h"
bad src/ffi/x.h "agg/across.h"
bad include/reef/x.h "base/error.h"
bad include/reef/x.h <yaml.h>
bad include/reef/x.h <pthread.h>
bad tools/x.c "num/order.h"
bad examples/x.c "base/error.h"
bad examples/x.c "../src/base/error.h"
CASES
    return $status
}

scratch=$(mktemp -d)
list=$scratch/list
trap 'rm -rf "$scratch"' EXIT
if [ "${1:-}" = --self-test ]; then
    self_test
else
    check "${1:-$(dirname "$0")/..}"
fi
