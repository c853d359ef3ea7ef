# The documentation: every command and program in it runs and prints what the page says (scripts/run_docs.py), and that script finds mistakes.
bats_require_minimum_version 1.5.0
load parts

root=$BATS_TEST_DIRNAME/../..

run_docs() { /usr/bin/python3 "$root/scripts/run_docs.py" "$(dirname "$REEF")" "$@"; }

@test "the README is short and says in its first lines what Reef is" {
    [ "$(wc -l <"$root/README.md")" -le 132 ]
    [ "$(head -n 3 "$root/README.md" | grep -c Byzantine)" -eq 1 ]
}

@test "all pages" {
    run_docs --needs nothing
}

@test "pages that need the network" {
    { has_part network && has_part nats-server; } || skip "no libnats or nats-server here"
    run run_docs --needs network
    [ "$status" -eq 0 ]
    [[ "$output" != *"run_docs: 0 pages"* ]]
}

@test "wrong output, broken code, indented code and missing reasons are found" {
    cd "$BATS_TEST_TMPDIR"
    fails() { # fails TEXT-OF-THE-COMPLAINT, the page on standard input
        cat >page.md
        run -1 run_docs page.md
        [[ $output == *"$1"* ]] || { echo "$output" && return 1; }
    }
    printf '```console\n$ echo one\ntwo\n```\n' | fails 'prints'
    printf '```python\nprint(1)\n```\n\n```text\n2\n```\n' | fails 'prints'
    printf '```python\n1 / 0\n```\n' | fails 'ZeroDivisionError'
    printf '```c\nint main(void) { return x; }\n```\n' | fails 'undeclared'
    printf '```pycon\n>>> 1 + 1\n3\n```\n' | fails 'Expected'
    printf '```yaml\nrule: no_such_rule\n```\n' | fails 'no_such_rule'
    printf 'Text:\n\n    reef run x.yaml\n' | fails 'indented code'
    printf '<!-- run: skip -->\n```sh\nmake all\n```\n' | fails 'needs a reason'
    printf '<!-- run: skip a good reason -->\n```sh\nmake nonsense\n```\n' | fails 'no `make nonsense`'
    printf '```text\n$ reef list\n```\n' | fails 'console block'
    printf '```perl\n1\n```\n' | fails "language 'perl'"
}

@test "dots stand for anything, set-up is run, outputs can be written into the page" {
    cd "$BATS_TEST_TMPDIR"
    printf '<!-- run: setup\necho a >f; echo b >>f; echo c >>f\n-->\n```console\n$ cat f\na\n...\n$ echo 1.234 s\n1... s\n```\n' >page.md
    run_docs page.md
    printf '```console\n$ echo new\nold\n```\n' >page.md
    run -1 run_docs --update page.md
    run_docs page.md
    grep -qx new page.md
}
