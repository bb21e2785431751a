"""Run a custom protocol: the package devils_advocate beside this file has its function and its prompts."""

import sys

from devils_advocate import PROTOCOL

import council


def main(question: str = "Should we deploy on Fridays?") -> council.Report:
    report = council.convene_sync(question, protocol=PROTOCOL, options={"hard": True})
    report.raise_for_status()
    print(report.answer)
    return report


if __name__ == "__main__":
    main(*sys.argv[1:])
