#!/bin/sh
# Put the council command on the PATH of a pipeline. A council that is there already is used, unless a version is asked for.
#   COUNCIL_VERSION   a version of the package; empty: the sources this file came with, else the newest
#   COUNCIL_VENV      where it goes; an environment of its own, so that the system's Python stays as it is
set -eu

# shellcheck source=ci/common.sh
. "$(dirname -- "$0")/common.sh"

if [ -z "${COUNCIL_VERSION:-}" ] && command -v council >/dev/null 2>&1; then
    echo "council is there already: $(command -v council)"
    exit 0
fi

sources=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ -n "${COUNCIL_VERSION:-}" ]; then
    wanted="council==$COUNCIL_VERSION"
elif grep -qs '^name = "council"$' "$sources/pyproject.toml"; then
    wanted=$sources
else
    wanted=council
fi

python=$(command -v python3 || command -v python || echo python3)
if ! "$python" -m pip --version >/dev/null 2>&1; then
    complain "there is no Python with pip, and council needs 3.11 or newer: set one up before this step"
    exit 2
fi
"$python" -m venv --without-pip "$venv"
"$python" -m pip --python "$venv" install --quiet --disable-pip-version-check "$wanted"
if [ -n "${GITHUB_PATH:-}" ]; then
    echo "$venv/bin" >>"$GITHUB_PATH"
fi
"$venv/bin/council" --version
