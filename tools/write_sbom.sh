#!/usr/bin/env bash
# Writes dist/sbom.json, a CycloneDX list of what the core and all extras bring along, with versions and
# licences. Packages are installed for it into an environment of their own, and only with the hashes
# that constraints-hashes.txt has; what makes the list is in another one.
# usage: tools/write_sbom.sh PYTHON
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
python=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_QUIET=1

for name in product tool; do
    "$python" -m venv "$work/$name"
    "$work/$name/bin/python" -m pip install --upgrade pip
done
"$work/product/bin/python" -m pip install --require-hashes --requirement constraints-hashes.txt
"$work/product/bin/python" -m pip install --no-deps .
"$work/product/bin/python" -m pip uninstall --yes pip setuptools 2>/dev/null
"$work/tool/bin/python" -m pip install 'cyclonedx-bom>=7'
mkdir -p dist
"$work/tool/bin/cyclonedx-py" environment "$work/product/bin/python" --pyproject pyproject.toml \
    --mc-type library --output-reproducible --output-file dist/sbom.json
echo "dist/sbom.json lists $("$python" -c 'import json; print(len(json.load(open("dist/sbom.json"))["components"]))') packages."
