"""The file of the cases of an evaluation, so that the same command continues with the same cases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from council.errors import UsageError
from council.evals.history.cases import Fix, FixedLine, HistoryCase, Mined, Reason
from council.settings.private_files import replace_named_file

CASES = "cases.json"


class CaseRequest(TypedDict):
    """What the cases were chosen by."""

    repository: str
    since: str
    limit: int
    seed: int


@dataclass(frozen=True, slots=True)
class ChosenCases:
    """The cases of an evaluation, and what they were chosen by."""

    request: CaseRequest
    mined: Mined

    @property
    def cases(self) -> Sequence[HistoryCase]:
        return self.mined.cases


class CasesObject(CaseRequest):
    """The object `council.history-cases/1`."""

    schema: Literal["council.history-cases/1"]
    commits: int
    fixes: int
    traced: int
    left_out: Mapping[str, int]
    is_shallow: bool
    cases: Sequence[Mapping[str, Any]]


def write_cases(folder: Path, chosen: ChosenCases) -> None:
    mined = chosen.mined
    stored: CasesObject = {
        "schema": "council.history-cases/1",
        **chosen.request,
        "commits": mined.commits,
        "fixes": mined.fixes,
        "traced": mined.traced,
        "left_out": {str(reason): count for reason, count in mined.left_out.items()},
        "is_shallow": mined.is_shallow,
        "cases": [asdict(case) for case in mined.cases],
    }
    text = json.dumps(stored, ensure_ascii=False, indent=2) + "\n"
    replace_named_file(folder / CASES, text.encode("utf-8", "surrogatepass"))


def read_cases(folder: Path, request: CaseRequest) -> ChosenCases | None:
    """Return the stored cases of an evaluation; None if it has none yet. Raise UsageError if it has others."""
    path = folder / CASES
    try:
        text = path.read_text(encoding="utf-8", errors="surrogatepass")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f'"{path}" cannot be read ({error.strerror}), nothing was sent: use --fresh') from None
    try:
        stored: CasesObject = json.loads(text)
        earlier: CaseRequest = {
            "repository": stored["repository"],
            "since": stored["since"],
            "limit": stored["limit"],
            "seed": stored["seed"],
        }
        mined = Mined(
            tuple(map(_read_case, stored["cases"])),
            stored["commits"],
            stored["fixes"],
            stored["traced"],
            cast("Mapping[Reason, int]", stored["left_out"]),
            stored["is_shallow"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(
            f'"{path}" has no cases that can be read, nothing was sent: use --fresh to choose them again'
        ) from None
    changed = [f"{name} {earlier[name]!r}, not {request[name]!r}" for name in NAMES if earlier[name] != request[name]]
    if changed:
        raise UsageError(
            f'the cases in "{folder}" have {changed[0]}, nothing was sent: use the same value, --fresh to start over, '
            "or -o with another folder"
        )
    return ChosenCases(earlier, mined)


NAMES: tuple[Literal["repository", "since", "limit", "seed"], ...] = ("repository", "since", "limit", "seed")


def _read_case(row: Mapping[str, Any]) -> HistoryCase:
    fixes = [Fix(**{**fix, "lines": tuple(FixedLine(**line) for line in fix["lines"])}) for fix in row["fixes"]]
    return HistoryCase(**{**row, "fixes": tuple(fixes)})
