#!/usr/bin/env bash
# The documentation as a site in build/site:  site.sh [--check]        --check: also the schema against the experiments, and a browser
# A warning (a dead link, an anchor that is not there, a page that is missing) is an error. What mkdocs needs is installed once, in a virtual
# environment in build/site-venv, in the versions of docs/requirements.txt.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

# shellcheck disable=SC2034 # read by venv.sh
folder=build/site-venv offline='' python=/usr/bin/python3
. scripts/venv.sh
wanted=$(cksum <docs/requirements.txt | cut -d ' ' -f 1)
bin=$PWD/$folder/$wanted/bin

install_tools() {
    mkdir -p "$folder"
    environment "$wanted" '' '-r docs/requirements.txt' || { why "$folder/$wanted.log" && return 1; }
}

build_site() {
    mkdir -p build && rm -rf build/doxygen && doxygen docs/Doxyfile &&
        "$python" scripts/make_site.py build/release/libreef.so && NO_MKDOCS_2_WARNING=1 "$bin/mkdocs" build --quiet --strict -f docs/mkdocs.yml
}

check_schema() { REEF_LIBRARY=$PWD/build/release/libreef.so "$python" scripts/make_schema.py json | "$bin/python" tests/site/schema.py; }

step "tools of the site" build install_tools || { finish; exit 1; }
step "build release" build env REEF_TESTS="${REEF_TESTS:-OFF}" scripts/build.sh release reef_shared || { finish; exit 1; }
step "site" gate build_site
if [ "${1:-}" = --check ]; then
    step "schema" gate check_schema
    step "site in a browser" gate "$python" tests/site/browser.py build/site
fi
finish
