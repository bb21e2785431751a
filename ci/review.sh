#!/bin/sh
# Review the changes of a branch in CI. The exit code is that of council: 0 passed, 10 --fail-on was met, 3 a person
# has to look, 5 stopped by the budget, 4 no model available, 2 wrong usage, 1 no answer.
#   COUNCIL_BASE       the revision to compare with; empty: the target of the pull request, else the previous commit of the push
#   COUNCIL_FAIL_ON    fail | warn | critical | significant | never                                             (fail)
#   COUNCIL_RULE       corroborated: a FAIL without evidence that was found is a WARN | consensus        (corroborated)
#   COUNCIL_MAX_COST   cost limit in dollars                                  COUNCIL_PRESET   perspectives of the judges
#   COUNCIL_ROSTER     seats: NAME=MEMBER, separated by blanks                COUNCIL_ARGS     more flags, separated by blanks
#   COUNCIL_OUT        output folder for report.md, report.json, and report.sarif (GitHub) or report.xml (JUnit, elsewhere)
#   COUNCIL_TRUST      hashes of settings of the project that are trusted, beside those of the base revision
#   COUNCIL_HEAD_REPO, COUNCIL_REPO   source and target repository; COUNCIL_ACTOR the user; COUNCIL_BEFORE the previous commit
set -euf # -f: split at blanks, but do not expand globs

# shellcheck source=ci/common.sh
. "$(dirname -- "$0")/common.sh"

CI=true # council neutralizes the commands of CI systems in all text that it prints
export CI
out=${COUNCIL_OUT:-$temp/council}
mkdir -p "$out"
COUNCIL_DATA=$out/data # a separate store that contains only this run
export COUNCIL_DATA
rm -rf "$COUNCIL_DATA" "$out/report.md" "$out/report.json" "$out/report.sarif" "$out/report.xml" "$out/outputs" "$out/summary.md"

# Output

output() { # NAME VALUE
    printf '%s=%s\n' "$1" "$2" >>"${GITHUB_OUTPUT:-$out/outputs}"
}

summary() { # from standard input; CI accepts one megabyte
    head -c 900000 >>"${GITHUB_STEP_SUMMARY:-$out/summary.md}"
}

end() { # EXIT VERDICT LINE: end without a run
    output verdict "$2"
    printf '## Council: %s\n\n%s\n' "$2" "$3" | summary
    exit "$1"
}

last_line() { tail -n 1 "$out/progress" | sed 's/^council: //'; }

refuse() { # EXIT LINE
    complain "$2"
    end "$1" none "$2"
}

# Base revision

exists() { git rev-parse --quiet --verify --end-of-options "$1^{commit}" >/dev/null 2>&1; }

base=${COUNCIL_BASE:-}
if [ -z "$base" ] && [ -n "${GITHUB_BASE_REF:-}" ]; then
    base=origin/$GITHUB_BASE_REF
fi
if [ -z "$base" ] && exists "${COUNCIL_BEFORE:-none}"; then
    base=$COUNCIL_BEFORE
fi
if [ -z "$base" ]; then
    base=HEAD~1
fi
if ! exists "$base"; then
    refuse 2 "the revision \"$base\" is not in this checkout: fetch the history (fetch-depth: 0), or choose another base"
fi

command -v council >/dev/null 2>&1 || refuse 2 "command council not found: run ci/install.sh first"

# Trust the settings as they are in the base revision, never those of the change

trusted=$(mktemp -d "$temp/council-base.XXXXXX")
for name in council.toml pyproject.toml; do
    git show "$base:$name" >"$trusted/$name" 2>/dev/null || rm -f "$trusted/$name"
done
mkdir "$trusted/.git" # the project ends here
hash=$(cd "$trusted" && council trust --show 2>/dev/null | sed -n 's/^\(not \)\{0,1\}trusted: \([0-9a-f]\{64\}\)$/\2/p') || hash=""
rm -rf "$trusted"
COUNCIL_TRUST="${COUNCIL_TRUST:-} $hash"
export COUNCIL_TRUST

# Available models

models=$(council models 2>"$out/progress") || refuse "$?" "$(last_line)"
if ! printf '%s\n' "$models" | grep -v '^local:smollm2 ' | grep -q '  available$'; then
    unavailable="no model is available: no key and no endpoint is configured"
    if [ -n "${COUNCIL_HEAD_REPO:-}" ] && [ "${COUNCIL_HEAD_REPO:-}" != "${COUNCIL_REPO:-}" ] || [ "${COUNCIL_ACTOR:-}" = 'dependabot[bot]' ]; then
        notice "skipped, nothing was reviewed: changes from a fork get no secrets, and $unavailable"
        end 0 skipped "Nothing was reviewed: changes from a fork get no secrets, and $unavailable. This is not a PASS."
    fi
    case $(council trust --show 2>/dev/null | tail -n 1) in
    "not trusted: "*) refuse 2 "the change has settings that need trust and are not in the base revision: see council trust --show, or add its hash to COUNCIL_TRUST" ;;
    esac
    refuse 4 "$unavailable; set a key such as ANTHROPIC_API_KEY, or an endpoint in council.toml"
fi

# Review

rule=${COUNCIL_RULE:-corroborated}
set -- validate --base "$base" --fail-on "${COUNCIL_FAIL_ON:-fail}" --rule "$rule" --no-input --no-color
if [ -n "${COUNCIL_MAX_COST:-}" ]; then set -- "$@" --max-cost "$COUNCIL_MAX_COST"; fi
if [ -n "${COUNCIL_PRESET:-}" ]; then set -- "$@" --preset "$COUNCIL_PRESET"; fi
for seat in ${COUNCIL_ROSTER:-}; do set -- "$@" --seat "$seat"; done
for flag in ${COUNCIL_ARGS:-}; do set -- "$@" "$flag"; done
form=md
if [ "$github" = true ]; then form=github; fi

# Progress contains untrusted text, which must not be parsed as workflow commands.
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
if [ "$github" = true ]; then echo "::stop-commands::$token"; fi
{
    council "$@" </dev/null --format "$form" 2>&1 >"$out/printed" && echo 0 >"$out/code" || echo $? >"$out/code"
} | tee "$out/progress"
code=$(cat "$out/code")
if [ "$github" = true ]; then echo "::$token::"; fi
cat "$out/printed"

if ! council report --json >"$out/report.json" 2>/dev/null; then
    rm -f "$out/report.json"
    refuse "$code" "$(last_line)"
fi
python=$(command -v python3 || command -v python)
facts=$("$python" -c '
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
usd = report["cost"]["usd"]
print(report["verdict"] or "none", report["run"], "unknown" if usd is None else f"{usd:.6f}")' "$out/report.json")
council report >"$out/report.md"
verdict=${facts%% *} cost=${facts##* } run=${facts#* }
run=${run% *}
if [ "$github" = true ]; then
    council report --format sarif >"$out/report.sarif"
    output sarif "$out/report.sarif"
else
    council report --format junit >"$out/report.xml"
fi
gated=0
if council report --help | grep -q -e --fail-on; then
    gate=$(council report --fail-on "${COUNCIL_FAIL_ON:-fail}" --rule "$rule" 2>&1 >/dev/null) || gated=$?
else # an older version of council, which the input `version` may choose
    gate=$(council gate --fail-on "${COUNCIL_FAIL_ON:-fail}" --rule "$rule") || gated=$?
fi
if [ "$code" = 0 ]; then code=$gated; fi # the gate is stricter than the run: it needs answers from two judges

output verdict "$verdict"
output run "$run"
output cost "$cost"
output report "$out/report.md"
{
    printf '**Council: %s** · exit %s · cost in dollars: %s · run %s\n\n%s\n\n' "$verdict" "$code" "$cost" "$run" "$gate"
    cat "$out/report.md"
} | summary
exit "$code"
