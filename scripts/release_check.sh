#!/usr/bin/env bash
# What must hold before a version is given out:  [RELEASE=1] release_check.sh
# Until the changelog dates the version it is a rehearsal, which says so; with RELEASE=1 the date must be there.
# The version is one everywhere, exported symbols are those of the kept list, the source builds without git, builds are reproducible.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. scripts/steps.sh

version=$(sed -n 's/^project(reef VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
epoch=$(git log -1 --format=%ct)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

committed() { [ -z "$(git status --porcelain)" ] || { git status --short; return 1; }; }

is_dated() { grep -qE "^## $version \([0-9]{4}-[0-9]{2}-[0-9]{2}\)" CHANGELOG.md; }

# A version that is given out has its date in the changelog; before, the changes are those of the version to come.
one_version() {
    is_dated || { [ -z "${RELEASE:-}" ] && grep -qxF "## Unreleased ($version)" CHANGELOG.md; } ||
        { echo "CHANGELOG.md: no heading '## $version (YYYY-MM-DD)'"; return 1; }
    grep -qx "version: $version" CITATION.cff || { echo "CITATION.cff: no 'version: $version'"; return 1; }
    scripts/build.sh release reef_tool && build/release/reef --version | grep -qF "$version"
}

symbols() { scripts/build.sh release reef_shared reef_static && scripts/check_symbols.sh build/release; }

# As from a tarball: no git, another folder.
builds_without_git() {
    git archive --prefix="reef-$version/" HEAD | gzip -n >"build/reef-$version.tar.gz" && tar -xzf "build/reef-$version.tar.gz" -C "$scratch" &&
        (cd "$scratch/reef-$version" && env GIT_DIR=/nonexistent scripts/build.sh release reef_tool && build/release/reef demo)
}

# Python's source distribution builds without a network, given the tools of the wheel.
sdist_builds_offline() {
    local tools=build/python/wheel/bin/python
    $tools -c 'import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))' "$scratch/sdist" &&
        $tools -m pip wheel --quiet --no-index --no-deps --no-build-isolation -w "$scratch/sdist" "$scratch"/sdist/*.tar.gz \
            --config-settings=cmake.define.REEF_BLAS=OFF --config-settings=cmake.define.REEF_YAML=STATIC &&
        tests/install/wheel.sh "$scratch"/sdist/*.whl >"$scratch/sdist.tap" && cat "$scratch/sdist.tap" &&
        ! grep '^not ok' "$scratch/sdist.tap"
}

# Two builds of one commit in folders of different names are the same bytes.
reproducible() {
    local name
    for name in one second; do
        mkdir "$scratch/$name" && git archive HEAD | tar -x -C "$scratch/$name" &&
            (cd "$scratch/$name" && mkdir -p build/log build/python && ln -s "$OLDPWD/build/python/wheel" build/python/wheel &&
                SOURCE_DATE_EPOCH=$epoch scripts/wheel.sh) || return 1
    done
    (cd "$scratch" && sha256sum one/build/wheel/*.whl second/build/wheel/*.whl) && cmp "$scratch"/one/build/wheel/*.whl "$scratch"/second/build/wheel/*.whl
}

step "everything committed" gate committed
step "one version" gate one_version
step "symbols" gate symbols
step "source without git" gate builds_without_git
step "wheel" gate scripts/wheel.sh
step "sdist offline" gate sdist_builds_offline
step "reproducible" gate reproducible
is_dated || echo "A rehearsal: CHANGELOG.md does not date $version yet (RELEASE=1 insists on it)."
finish
