#!/bin/sh
# Install the council command in a pipeline. An installed council is reused unless COUNCIL_VERSION is set.
#   COUNCIL_VERSION   package version; empty: the sources of this file, else the newest release
#   COUNCIL_VENV      folder of the virtual environment
set -eu

# shellcheck source=ci/common.sh
. "$(dirname -- "$0")/common.sh"

if [ -z "${COUNCIL_VERSION:-}" ] && command -v council >/dev/null 2>&1; then
    echo "council is already installed: $(command -v council)"
    exit 0
fi

sources=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
if [ -n "${COUNCIL_VERSION:-}" ]; then
    wanted="model-council==$COUNCIL_VERSION"
elif grep -qs '^name = "model-council"' "$sources/pyproject.toml"; then
    wanted=$sources
else
    wanted=model-council
fi

python=$(command -v python3 || command -v python || echo python3)
if ! "$python" -m pip --version >/dev/null 2>&1; then
    complain "Python with pip not found: install Python 3.11 or newer before this step"
    exit 2
fi
"$python" -m venv --without-pip "$venv"
"$python" -m pip --python "$venv" install --quiet --disable-pip-version-check "$wanted"
if [ -n "${GITHUB_PATH:-}" ]; then
    echo "$venv/bin" >>"$GITHUB_PATH"
fi
"$venv/bin/council" --version
