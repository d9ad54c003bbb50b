#!/usr/bin/env bash
# Writes constraints.txt and constraints-dowhy.txt: the newest versions that install together today;
# and constraints-hashes.txt: what the core and all extras are in these versions, byte for byte, on every
# platform that they are published for.
# usage: tools/pin_constraints.sh PYTHON
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
python=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_QUIET=1

pin() { # FILE REQUIREMENT…
    local file=$1
    shift
    echo "Installing $* to write $file"
    "$python" -m venv --clear "$work/venv"
    "$work/venv/bin/python" -m pip install --upgrade pip
    "$work/venv/bin/python" -m pip install "$@"
    {
        echo "# The versions that CI and make install with Python $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'), written by \`make constraints\`."
        # a local build ("+cpu") is the same release
        "$work/venv/bin/python" -m pip freeze --exclude mutandis | grep == | sed 's/+[^ ]*$//'
    } >"$work/pinned"
    cp -- "$work/pinned" "$file"
}

# beside the extras: what builds the wheel, what installs a second Python
pin constraints.txt --editable '.[bench,dev,docs]' hatchling uv
echo "Looking up the hashes for constraints-hashes.txt"
{
    echo "# What CI installs of the core and all extras, written by \`make constraints\`."
    "$work/venv/bin/uv" pip compile --quiet --python "$work/venv/bin/python" --generate-hashes \
        --no-annotate --no-header --constraint constraints.txt --extra all pyproject.toml
} >"$work/hashes"
cp -- "$work/hashes" constraints-hashes.txt
pin constraints-dowhy.txt --editable '.[arrow,dowhy]' hypothesis polars pytest
