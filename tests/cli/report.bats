# report.html in a browser: headless Chromium opens it, sorts and filters its tables, and watches the network.
bats_require_minimum_version 1.5.0

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return 1
    cat >grid.yaml <<'YAML'
name: "a <b>& 'c'"
agents: 10
graph: complete
problem: {kind: lms, dimension: 4}
strategy: diffusion:mu=0.05
rule: [mean, median, ref]
malicious: [0, 2, 5]
attack: ["additive:delta=10", sign_flip] # a line that is wider than a phone must be within reach of the keyboard: axe-core sees to it
rounds: 40
repetitions: 3
trust: true
YAML
    "$REEF" run grid.yaml -q -o r
}

@test "the report is one file with figures, tables, configuration and warnings" {
    cd "$BATS_FILE_TMPDIR"
    for part in 'id="figure-curves"' 'id="figure-heat"' 'id="figure-final"' 'id="figure-matrix"' 'id="figure-graph"' \
        'id="summary"' 'id="trust"' 'id="config"' 'id="check"' 'no honest majority at agent' 'graph: complete'; do
        grep -qF "$part" r/report.html || { echo "no $part" && return 1; }
    done
    # Words of the user are escaped, and nothing is fetched from anywhere.
    grep -qF '<h1>a &lt;b&gt;&amp; &#39;c&#39;</h1>' r/report.html
    run -1 grep -E '(src|href)="?(https?:)?//' r/report.html
    # It can be made again, and without figures.
    rm -r r/report.html r/figures/*.svg
    run -0 "$REEF" plot r
    grep -q 'id="figure-curves"' r/report.html
    "$REEF" run grid.yaml -q -o bare --no-figures --set repetitions=1
    run -1 grep '<figure' bare/report.html
    grep -q 'id="summary"' bare/report.html
}

@test "the report works in a browser: no errors, sorting, filters, light and dark, phone, no network" {
    command -v chromium >/dev/null && /usr/bin/python3 -c 'import selenium' 2>/dev/null || skip "no chromium with selenium here"
    cd "$BATS_FILE_TMPDIR"
    /usr/bin/python3 "$BATS_TEST_DIRNAME/report_browser.py" "$PWD/r/report.html"
}

@test "the report passes axe-core: light, dark, phone" {
    command -v chromium >/dev/null && /usr/bin/python3 -c 'import selenium' 2>/dev/null || skip "no chromium with selenium here"
    local axe
    axe=$(dirname "$REEF")/page/node_modules/axe-core/axe.min.js # it comes with the live page
    [ -e "$axe" ] || skip "no axe-core here: built without npm"
    cd "$BATS_FILE_TMPDIR"
    /usr/bin/python3 "$BATS_TEST_DIRNAME/report_browser.py" "$PWD/r/report.html" "$axe"
}
