#!/usr/bin/env bash
# Installs what some tests need beside Python: a database server, what draws and reads the text of
# PDF files, a browser with the fonts that pages name. Root on Debian may; elsewhere, and offline, those tests are skipped and say why.
set -euo pipefail

packages=(chromium fonts-liberation postgresql libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 poppler-utils)

if ! command -v dpkg >/dev/null || ! command -v apt-get >/dev/null; then
    echo "Not Debian: tests that need ${packages[*]} may be skipped."
    exit 0
fi
missing=()
for package in "${packages[@]}"; do
    dpkg --status "$package" 2>/dev/null | grep -q '^Status: .* installed$' || missing+=("$package")
done
if [ "${#missing[@]}" = 0 ]; then
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "Not root: the tests that need ${missing[*]} may be skipped."
    exit 0
fi
echo "Installing ${missing[*]}, which some tests need"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
# a broken or unreachable mirror must not hold up the tests
limits=(-o Acquire::http::Timeout=30 -o Acquire::Retries=1 -o DPkg::Lock::Timeout=60)
install() {
    timeout 300 apt-get "${limits[@]}" install -y -qq --no-install-recommends "$@" </dev/null >"$log" 2>&1
}
timeout 120 apt-get "${limits[@]}" update -qq </dev/null >"$log" 2>&1 || true
if install "${missing[@]}"; then
    exit 0
fi
# one that is not to be had does not keep out the others
for package in "${missing[@]}"; do
    install "$package" || echo "$package could not be installed ($(tail -n 1 "$log")): tests will be skipped."
done
