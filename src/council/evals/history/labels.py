"""Labels: what a person says about the bugs and the hits of an evaluation. The file is written once and never again."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from council.engine.layout import format_count
from council.errors import UsageError
from council.evals.history.cases import Fix, HistoryCase
from council.settings.private_files import open_named_file
from council.text_cleanup import single_line

LABELS = "labels.toml"
BUG, NO_BUG, UNCLEAR = "bug", "no bug", "unclear"
BY_RULE, HIT, NO_HIT = "rule", "hit", "no hit"
FIX_LABELS = (BUG, NO_BUG, UNCLEAR)
HIT_LABELS = (BY_RULE, HIT, f"{HIT} NUMBER", NO_HIT)
NUMBERED_HIT = re.compile(rf"{HIT} ([1-9][0-9]{{0,3}})")
FIELDS = ("fixes", "hits", "note")
FIX_ID_CHARS = 10
HEAD = f"""\
# Labels of the reviewed commits. Correct what is wrong, and run the same command again: no model is asked again.
# fixes: "{BUG}", "{NO_BUG}" or "{UNCLEAR}" for each later fix. Without a "{BUG}" the commit counts neither as a bug nor as a control.
# hits: "{HIT} 2" (the second finding on cases.html), "{HIT}" (one of them) or "{NO_HIT}" for each arm; with "{BY_RULE}" the
# lines of the findings decide. A "{HIT}" without a number counts for findings of "1 or more" judges only.
"""


@dataclass(frozen=True, slots=True)
class CaseLabels:
    """The labels of one case."""

    fixes: Mapping[str, str] = field(default_factory=dict)  # by the start of the commit
    hits: Mapping[str, str] = field(default_factory=dict)  # by arm
    note: str = ""


Labels = Mapping[str, CaseLabels]  # by the id of the case


def fix_id(fix: Fix) -> str:
    return fix.commit[:FIX_ID_CHARS]


def list_bugs(case: HistoryCase, labels: Labels) -> list[Fix]:
    """Return the fixes of a case that are labelled as fixes of a bug."""
    own = labels.get(case.id, CaseLabels()).fixes
    return [fix for fix in case.fixes if own.get(fix_id(fix), BUG) == BUG]


@dataclass(frozen=True, slots=True)
class LabelledHits:
    """Which findings hit. `has_unnamed` is a hit of a person that does not say which finding it is."""

    findings: tuple[bool, ...]
    has_unnamed: bool = False


def apply_hit_label(labels: Labels, case: HistoryCase, arm: str, found: Sequence[bool]) -> LabelledHits:
    """Return which findings hit as a person says, else by the rule, whose hits are `found`."""
    label = labels.get(case.id, CaseLabels()).hits.get(arm, BY_RULE)
    count = len(found)
    if label == NO_HIT:
        return LabelledHits((False,) * count)
    if numbered := NUMBERED_HIT.fullmatch(label):
        number = int(numbered[1])
        if number > count:
            has = f"has {format_count(count, 'finding')}"
            raise UsageError(f'{LABELS}: {case.id}: the review by "{arm}" {has}, not {number}: correct "{label}"')
        return LabelledHits(tuple(n == number for n in range(1, count + 1)))
    if label != HIT or any(found):
        return LabelledHits(tuple(found))
    if not found:
        raise UsageError(
            f'{LABELS}: {case.id}: the review by "{arm}" has no finding that could be a hit: write "{BY_RULE}"'
        )
    return LabelledHits((True,)) if count == 1 else LabelledHits((False,) * count, has_unnamed=True)


def write_labels(path: Path, cases: Sequence[HistoryCase], arms: Sequence[str]) -> None:
    """Write the file with the labels by rule. One that exists is kept."""
    if path.exists():
        return
    parts = [HEAD]
    for case in cases:
        lines = [f"[cases.{_quote(case.id)}]", f"# {single_line(case.subject, 100)}"]
        if case.fixes:
            lines.append(f"fixes = {_format_table({fix_id(fix): BUG for fix in case.fixes})}")
            lines.append(f"hits = {_format_table(dict.fromkeys(arms, BY_RULE))}")
        parts.append("\n".join([*lines, 'note = ""', ""]))
    with open_named_file(path, encoding="utf-8", errors="replace") as file:
        file.write("\n".join(parts))


def _format_table(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{_quote(name)} = {_quote(value)}" for name, value in values.items()) + " }"


def _quote(text: str) -> str:
    return json.dumps(text)


def read_labels(path: Path, cases: Sequence[HistoryCase], arms: Sequence[str]) -> dict[str, CaseLabels]:
    """Return the labels of a file; none if it does not exist. Raise UsageError for what is not known."""
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f'"{path}" cannot be read ({error}), nothing was sent: correct it') from None
    rows = stored.get("cases", {})
    known = {case.id: case for case in cases}
    if others := [name for name in stored if name != "cases"]:
        raise _refuse(path, f'"{others[0]}" is no table of labels', "write [cases.ID]")
    if not isinstance(rows, dict):
        raise _refuse(path, '"cases" is no table', "write [cases.ID]")
    found: dict[str, CaseLabels] = {}
    for name, row in rows.items():
        if name not in known:
            raise _refuse(path, f'"{name}" is no case of this evaluation', "remove it, or correct the id")
        found[name] = _read_row(path, known[name], row, arms)
    return found


def _read_row(path: Path, case: HistoryCase, row: Any, arms: Sequence[str]) -> CaseLabels:
    if not isinstance(row, dict):
        raise _refuse(path, f'"{case.id}" is no table', f"write [cases.{case.id}]")
    if others := [name for name in row if name not in FIELDS]:
        raise _refuse(path, f'{case.id}: "{others[0]}" is no label', f"use {', '.join(FIELDS)}")
    labels = CaseLabels(note=str(row.get("note", "")))
    fixes = [fix_id(fix) for fix in case.fixes]
    fix_labels = _read_table(path, case, row.get("fixes", {}), "fix", fixes, FIX_LABELS)
    hit_labels = _read_table(path, case, row.get("hits", {}), "arm", arms, HIT_LABELS)
    return replace(labels, fixes=fix_labels, hits=hit_labels)


def _read_table(
    path: Path, case: HistoryCase, table: Any, what: str, names: Sequence[str], values: Sequence[str]
) -> dict[str, str]:
    if not isinstance(table, dict):
        raise _refuse(path, f"{case.id}: the labels by {what} are no table", f'write {{ "NAME" = "{values[0]}" }}')
    for name, value in table.items():
        if name not in names:
            has = f"it has {', '.join(names)}" if names else f"it has no {what}"
            raise _refuse(path, f'{case.id}: "{name}" is no {what} of this case', has)
        if value not in values and not (values is HIT_LABELS and NUMBERED_HIT.fullmatch(str(value))):
            raise _refuse(path, f'{case.id}: the label "{value}" of "{name}" is not known', f"use {', '.join(values)}")
    return dict(table)


def _refuse(path: Path, problem: str, fix: str) -> UsageError:
    return UsageError(f"{path}: {problem}, nothing was sent: {fix}")
