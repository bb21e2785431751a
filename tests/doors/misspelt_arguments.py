"""Calls that the type checker must reject. An ignore comment that is not needed is an error of `mypy --strict`."""

from __future__ import annotations

import council


def call_with_misspelt_arguments() -> None:
    council.convene_sync("Tabs?", protocol="advisors", rounds=2)
    council.convene_sync("Tabs?", protocol="advisors", roundz=2)  # type: ignore[call-arg]
    council.convene_sync("Tabs?", flow="wild")  # type: ignore[arg-type]
    report = council.convene_sync("Tabs?")
    print((report.trust.level or "") + report.answer, report.cost.usd)
    print(report.anwser)  # type: ignore[attr-defined]
