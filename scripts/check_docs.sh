#!/bin/sh
# Checks the documentation against the command and the tree:  check_docs.sh [REEF-COMMAND]
#   - every rule that `reef list` names has a page docs/rules/RULE.md, and no page is about a rule that is gone;
#   - every parameter that `reef list RULE` prints, and its default, stand in that page;
#   - the comment of every handle in the public headers says from which threads it may be used and what must outlive what;
#   - every relative link in a .md file leads to a file or folder of the tree;
#   - every name `reef_...` or `REEF_...` of a page is one of the tree (old names are on the upgrade page, those of metrics on another).
# Needs sh, awk and grep. Default command: build/release/reef.
set -eu
cd "$(dirname "$0")/.."

reef=${1:-build/release/reef}
status=0
complain() {
    echo "check_docs: $*" >&2
    status=1
}

if ! "$reef" --version >/dev/null 2>&1; then
    echo "check_docs: cannot run $reef; build it with scripts/build.sh release reef_tool, or name it" >&2
    exit 2
fi

# Rules are the lines that begin with two blanks and a name.
rules=$("$reef" list | awk '/^  [a-z]/ { print $1 }')
[ -n "$rules" ] || complain "\`reef list\` names no rule"

for rule in $rules; do
    page=docs/rules/$rule.md
    if [ ! -f "$page" ]; then
        complain "rule $rule has no page $page"
        continue
    fi
    grep -q "($rule\.md)" docs/rules/README.md || complain "docs/rules/README.md does not link to $rule.md"
    # Parameters are printed as "  name=default" after the line "Parameters ...". The page has a table row for each.
    for pair in $("$reef" list "$rule" | awk '/^Parameters/ { on = 1 } on && /^  [A-Za-z_]+=/ { print $1 }'); do
        name=${pair%%=*}
        default=${pair#*=}
        grep -qF "| \`$name\` | \`$default\` |" "$page" ||
            complain "$page has no row \"| \`$name\` | \`$default\` | ...\" for the parameter $pair"
    done
done

for page in docs/rules/*.md; do
    name=$(basename "$page" .md)
    [ "$name" = README ] || echo "$rules" | grep -qx "$name" || complain "$page is about a rule that \`reef list\` does not name"
done

# A handle is a struct whose inside is not shown: "typedef struct NAME NAME;". Its comment stands directly above.
handles=$(awk '
    /^\/\*/ { comment = "" }
    /^(\/\*| \*)/ { comment = comment $0; next }
    /^typedef struct reef_[a-z_]+ reef_[a-z_]+;/ {
        count++
        if (comment !~ /thread/) print FILENAME ": " $3 ": from which threads may it be used?"
        if (comment !~ /outlive/) print FILENAME ": " $3 ": what must it outlive, or what must outlive it?"
    }
    { comment = "" }
    END { if (!count) print "no handles found in include/reef" }' include/reef/*.h)
[ -z "$handles" ] || complain "$handles"

# Prints the targets of links [text](target) outside code blocks and `code`, one per line.
links() {
    awk '
    /^ *```/ { code = !code; next }
    code || /^    / { next }
    {
        gsub(/`[^`]*`/, "")
        while (match($0, /\]\([^() ]+\)/)) {
            print substr($0, RSTART + 2, RLENGTH - 3)
            $0 = substr($0, RSTART + RLENGTH)
        }
    }' "$1"
}

files=$(find . -name build -prune -o -name .git -prune -o -name '*.md' -print | LC_ALL=C sort)
for file in $files; do
    for target in $(links "$file"); do
        case $target in
        http://* | https://* | mailto:* | '#'*) continue ;;
        esac
        path=$(dirname "$file")/${target%%#*}
        [ -e "$path" ] || complain "$file links to $target, which is not there"
    done
done

known=$(grep -rohE '\b(reef|REEF)_[A-Za-z0-9_]+' include src tools python scripts cmake tests CMakeLists.txt Makefile | LC_ALL=C sort -u)
for file in $files; do
    case $file in
    ./CHANGELOG.md | ./docs/upgrade.md | ./docs/operating.md) continue ;;
    esac
    for name in $(grep -ohE '`(reef|REEF)_[A-Za-z0-9_]+' "$file" | tr -d '`' | LC_ALL=C sort -u); do
        echo "$known" | grep -q "^$name" || complain "$file names $name, which is not in the tree"
    done
done

[ $status -ne 0 ] || echo "check_docs: $(echo "$rules" | grep -c .) rules, $(echo "$files" | grep -c .) pages, all in order"
exit $status
