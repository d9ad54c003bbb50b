#!/usr/bin/env bash
# Builds the wheel twice, from two copies of the sources that differ in times and permissions, and
# compares the bytes. Then installs it into a clean environment and goes from `demo` to `verify` in an
# empty folder, where neither the checkout nor any extra can be found.
# usage: tools/check_wheel.sh PYTHON
set -euo pipefail

python=$(realpath --no-symlinks -- "${1:-python3}")
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_QUIET=1
unset PYTHONPATH

echo "Building the wheel twice"
for copy in first second; do
    mkdir "$work/$copy"
    cp -R -- "$root"/{pyproject.toml,README.md,LICENSE,src} "$work/$copy/"
    find "$work/$copy" -name __pycache__ -type d -prune -exec rm -rf {} +
done
find "$work/second" -type f -exec touch -d 2001-01-01 {} + -exec chmod 600 {} +
for copy in first second; do
    # the versions of the build tools are pinned too
    PIP_CONSTRAINT="$root/constraints.txt" PIP_BUILD_CONSTRAINT="$root/constraints.txt" \
        "$python" -m pip wheel --no-deps --wheel-dir "$work/dist-$copy" "$work/$copy"
done
cmp "$work"/dist-first/mutandis-*.whl "$work"/dist-second/mutandis-*.whl
(cd "$work/dist-first" && sha256sum -- *.whl)

echo "Installing it into a clean environment"
"$python" -m venv "$work/venv"
# nothing but the bytes that constraints-hashes.txt names
wheel=$(echo "$work"/dist-first/*.whl)
echo "mutandis @ file://$wheel --hash=sha256:$(sha256sum -- "$wheel" | cut -d' ' -f1)" >"$work/wheel.txt"
"$work/venv/bin/python" -m pip install --upgrade pip
"$work/venv/bin/python" -m pip install --require-hashes --constraint "$root/constraints-hashes.txt" \
    --requirement "$work/wheel.txt"

mkdir "$work/empty" "$work/home"
cd -- "$work/empty"
run() {
    echo "\$ mutandis $*"
    env -i PATH="$work/venv/bin:/usr/bin:/bin" HOME="$work/home" LC_ALL=C.UTF-8 COLUMNS=80 \
        mutandis "$@" >"$work/output" 2>&1 || { cat -- "$work/output"; echo "mutandis $1 failed"; exit 1; }
}
run --version
run demo
run init mutandis-demo/decisions.csv
run check audit.yaml
run audit audit.yaml --out results
# the first complainant of the demonstration is in row 1, counted from 0
run case results 1
run verify results
run verify results --rerun
for file in results/report.html results/cases/1.html results/cases/1.json; do
    [ -s "$file" ] || { echo "$file is missing or empty"; exit 1; }
done
echo "The wheel is reproducible and works on its own."
