#!/usr/bin/env bash
# Debian packages of the last commit, in build/deb:  deb.sh
# Who builds them is named in DEBFULLNAME and DEBEMAIL, as for every Debian package; by default nobody who could be written to.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(reef VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
maintainer="${DEBFULLNAME:-The Reef authors} <${DEBEMAIL:-reef@reef.invalid}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
tree=build/deb/reef-$version

rm -rf build/deb
mkdir -p "$tree" build/log
git archive HEAD | tar -x -C "$tree"
mv "$tree/packaging/debian" "$tree/debian"
sed "s/@MAINTAINER@/$maintainer/" "$tree/debian/control.in" >"$tree/debian/control"
# The licence as one paragraph of the file: each line begins with a blank, empty ones with a dot.
sed -e 's/^/ /' -e 's/^ $/ ./' LICENSE >"$tree/debian/licence"
sed -e "/@LICENSE@/{
r $tree/debian/licence
d
}" "$tree/debian/copyright.in" >"$tree/debian/copyright"
rm "$tree/debian/"*.in "$tree/debian/licence"
cat >"$tree/debian/changelog" <<EOF
reef ($version) unstable; urgency=medium

  * Changes are listed in CHANGELOG.md.

 -- $maintainer  $(date -Ru -d "@$SOURCE_DATE_EPOCH")
EOF

# Debhelper hides the home folder from the build; npm, which gets the libraries of the live page, has its settings and its cache there.
export NPM_CONFIG_USERCONFIG=${NPM_CONFIG_USERCONFIG:-$HOME/.npmrc} NPM_CONFIG_CACHE=${NPM_CONFIG_CACHE:-$HOME/.npm}

echo "Building $tree ..."
(cd "$tree" && DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage --build=binary --no-sign) >build/log/deb.log 2>&1 ||
    { tail -n 40 build/log/deb.log >&2; exit 1; }
lintian --fail-on error build/deb/*.changes >build/log/lintian.log 2>&1 || { cat build/log/lintian.log >&2; exit 1; }
ls -l build/deb/*.deb | awk '{ printf "%s (%.1f MB)\n", $NF, $5 / 1e6 }'
