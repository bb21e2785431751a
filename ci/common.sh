# What the scripts of a pipeline share. Sourced, never called.
# shellcheck shell=sh disable=SC2034

temp=${RUNNER_TEMP:-${TMPDIR:-/tmp}}
venv=${COUNCIL_VENV:-$temp/council-venv}
PATH=$venv/bin:$PATH
github=${GITHUB_ACTIONS:-false}

# A line for people; on GitHub an annotation. Nothing in it can become another command there.
complain() { annotate error "$1"; }
notice() { annotate notice "$1"; }
annotate() {
    if [ "$github" = true ]; then
        printf '::%s title=Council::%s\n' "$1" "$(printf '%s' "$2" | tr '\r\n' '  ' | sed 's/%/%25/g; s/::/: :/g; s/##\[/## [/g')"
    else
        printf 'council: %s\n' "$2" >&2
    fi
}
