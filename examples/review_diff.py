"""Review a diff in CI: annotate the findings for GitHub and fail the job on FAIL.

python examples/review_diff.py origin/main
"""

import sys

import council


def main(base: str = "HEAD~1") -> int:
    report = council.convene_sync("validate", base=base, deep=True)
    report.raise_for_status()
    for finding in report.findings:
        level = "error" if finding.severity == "critical" else "warning"
        place = f" file={finding.path},line={finding.line}" if finding.path and finding.line else ""
        print(f"::{level}{place}::{finding.description} (found by {', '.join(finding.found_by)})")
    print(report.verdict, "- trust", report.trust.level)
    return 1 if report.verdict == "FAIL" else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
