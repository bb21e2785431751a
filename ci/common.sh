# Shared by the CI scripts. Source this file; do not run it.
# shellcheck shell=sh disable=SC2034

temp=${RUNNER_TEMP:-${TMPDIR:-/tmp}}
venv=${COUNCIL_VENV:-$temp/council-venv}
PATH=$venv/bin:$PATH
github=${GITHUB_ACTIONS:-false}

# Print one line; on GitHub as an annotation, escaped so that it cannot inject workflow commands.
complain() { annotate error "$1"; }
notice() { annotate notice "$1"; }
annotate() {
    if [ "$github" = true ]; then
        printf '::%s title=Council::%s\n' "$1" "$(printf '%s' "$2" | tr '\r\n' '  ' | sed 's/%/%25/g; s/::/: :/g; s/##\[/## [/g')"
    else
        printf 'council: %s\n' "$2" >&2
    fi
}
