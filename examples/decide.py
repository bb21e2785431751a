"""Decide between two alternatives: three models draft, attack the leading draft, and a chair rules."""

import sys

import council


def main(question: str = "Should a team of six use one repository or one per service?") -> council.Report:
    report = council.convene_sync(question, protocol="adversarial")
    report.raise_for_status()  # no answer: an exception that says why
    print(report.outcome, "with confidence", report.confidence)
    print(f"Trust: {report.trust.level}", *report.trust.because, sep="\n  ")
    print(report.answer)
    return report


if __name__ == "__main__":
    main(*sys.argv[1:])
