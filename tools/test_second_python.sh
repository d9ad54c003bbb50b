#!/usr/bin/env bash
# Runs the fast tests on another version of Python than the environment's: one that is on this machine,
# or one that uv or Debian can install. Where none can be had, it says so and is content.
# usage: tools/test_second_python.sh PYTHON [pytest arguments]
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
python=$1
shift
versions=(3.13 3.12 3.14)
environment=.venv-second
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_QUIET=1

own=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# an interpreter counts if it runs, is of the version, and can make environments
usable() {
    [ -n "$1" ] && [ "$("$1" -c 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$2" ]
}

find_on_machine() {
    local version candidate
    for version in "${versions[@]}"; do
        [ "$version" != "$own" ] || continue
        for candidate in "$(command -v "python$version" || true)" \
            "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
            if usable "$candidate" "$version"; then
                echo "$candidate"
                return
            fi
        done
    done
    return 1
}

install_with_uv() {
    local version candidate
    "$python" -m pip install --constraint constraints.txt uv >&2 || return 1
    for version in "${versions[@]}"; do
        [ "$version" != "$own" ] || continue
        timeout 300 "$python" -m uv python install --quiet "$version" >&2 || continue
        candidate=$("$python" -m uv python find --no-project --managed-python "$version") || continue
        if usable "$candidate" "$version"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

install_with_debian() {
    local version
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    for version in "${versions[@]}"; do
        [ "$version" != "$own" ] || continue
        DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends \
            "python$version-venv" </dev/null >/dev/null 2>&1 || continue
        if usable "/usr/bin/python$version" "$version"; then
            echo "/usr/bin/python$version"
            return
        fi
    done
    return 1
}

second=$(find_on_machine || install_with_uv || install_with_debian) || {
    echo "No second version of Python (${versions[*]}) is here or can be installed: not tested on one."
    exit 0
}
echo "The second Python is $("$second" -V)"
# the environment is kept while the interpreter and what is to be installed are the same
stamp=$("$second" -V; sha256sum pyproject.toml constraints.txt)
if [ "$(cat "$environment/.installed" 2>/dev/null)" != "$stamp" ]; then
    "$second" -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --upgrade pip
    "$environment/bin/python" -m pip install --constraint constraints.txt --editable '.[test]'
    echo "$stamp" >"$environment/.installed"
fi
"$environment/bin/python" -m pytest -n auto --maxprocesses 2 --dist worksteal -m "not slow" tests src "$@"
