"""Rules of the adversarial protocol: rulings on issues, their contradictions, and the confidence, computed instead of taken from a model."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from council.protocols.adversarial.replies import NONE, SEVERITIES, Point, Triage
from council.types import TrustFact

SEVERE = ("FATAL", "MAJOR")
MAX_DETAIL_CHARS = 100
MAX_ID_CHARS = 40  # of an unknown id
MAX_UNKNOWN = 5  # unknown ids that are listed


# Rulings


@dataclass(frozen=True, slots=True)
class IssueRuling:
    """The ruling on one issue. An issue without one ruling is open: `landed` is None."""

    id: str
    severity: str
    landed: bool | None = None
    why: str = ""
    same_as: str | None = None


@dataclass(frozen=True, slots=True)
class Rulings:
    """The rulings on all issues of an attack."""

    rows: tuple[IssueRuling, ...] = ()
    contradictory: tuple[str, ...] = ()  # issues that were ruled both ways
    unknown: tuple[str, ...] = ()  # ids in the ruling that no attacker raised

    @property
    def distinct(self) -> list[IssueRuling]:
        """Each issue once: joined issues count as one, with the severity of the most severe."""
        joined: dict[str, list[IssueRuling]] = {}
        for row in self.rows:
            joined.setdefault(row.same_as or row.id, []).append(row)
        return [min(group, key=lambda row: SEVERITIES.index(row.severity)) for group in joined.values()]

    @property
    def landed(self) -> list[IssueRuling]:
        return [row for row in self.distinct if row.landed]

    @property
    def open(self) -> list[IssueRuling]:
        return [row for row in self.distinct if row.landed is None]

    @property
    def unruled(self) -> list[IssueRuling]:
        """The open issues that the chair left out; one that was ruled both ways is open too."""
        return [row for row in self.open if row.id not in self.contradictory]


def apply_rulings(severities: Mapping[str, str], points: Iterable[Point]) -> Rulings:
    """Return the ruling on each issue; `severities` are those of the issues by id."""
    said: dict[str, list[Point]] = {}
    unknown: dict[str, None] = {}
    for point in points:
        found = match_ids(point.issue, severities)
        for name in found:
            said.setdefault(name, []).append(point)
        if not found:
            unknown[_shorten(point.issue, MAX_ID_CHARS) or "an empty id"] = None
    contradictory = [name for name in severities if len(_decisions(said.get(name, ()))) > 1]
    roots = _join_issues(severities, said)
    landed = {root: _combine([name for name in roots if roots[name] == root], said) for root in roots.values()}
    rows = [
        IssueRuling(
            name, severity, landed[roots[name]], next((p.why for p in said.get(name, ()) if p.why), ""),
            roots[name] if roots[name] != name else None,
        )
        for name, severity in severities.items()
    ]  # fmt: skip
    return Rulings(tuple(rows), tuple(contradictory), tuple(unknown))


def format_unknown(rulings: Rulings) -> str:
    """Return the unknown ids of a ruling, the first five of many."""
    more = len(rulings.unknown) - MAX_UNKNOWN
    return f"{', '.join(rulings.unknown[:MAX_UNKNOWN])}{f' and {more} more' if more > 0 else ''}"


def match_ids(text: str, ids: Collection[str]) -> list[str]:
    """Return the issue ids in a text such as `beta-1`, `Beta #1`, `[beta-1] the first claim` or `beta-1 and gamma-2`."""
    plain = _simplify(text)
    found = [name for name in ids if f"-{_simplify(name)}-" in f"-{plain}-"]
    return found or [name for name in ids if _simplify(name).replace("-", "") == plain.replace("-", "")]


@lru_cache(maxsize=1024)
def _simplify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _decisions(points: Iterable[Point]) -> set[bool]:
    return {point.landed for point in points if point.landed is not None}


def _join_issues(ids: Iterable[str], said: Mapping[str, Sequence[Point]]) -> dict[str, str]:
    """Return for each issue the first issue of its group, following `same_as` in both directions."""
    roots = {name: name for name in ids}
    for name, points in said.items():
        for point in points:
            for other in match_ids(point.same_as, roots):
                first, second = sorted((roots[name], roots[other]), key=list(roots).index)
                roots = {one: first if root == second else root for one, root in roots.items()}
    return roots


def _combine(group: Sequence[str], said: Mapping[str, Sequence[Point]]) -> bool | None:
    """Return the ruling of joined issues: landed if one landed, dismissed if all that were ruled on were, else open."""
    decisions = [_decisions(said.get(name, ())) for name in group]
    if any(found == {True} for found in decisions):
        return True
    is_joined = [any(p.same_as.strip().lower() not in ("", NONE) for p in said.get(name, ())) for name in group]
    ruled = [found for found, joined in zip(decisions, is_joined, strict=True) if found or not joined]
    return False if ruled and all(found == {False} for found in ruled) else None


def list_contradictions(outcome: str | None, rulings: Rulings) -> list[str]:
    """Return what makes a ruling contradict itself; such a ruling is CONTESTED after its repair turn."""
    found = [f"{name} is ruled both ways" for name in rulings.contradictory]
    fatal = [row.id for row in rulings.landed if row.severity == "FATAL"]
    if outcome in ("SURVIVED", "MODIFIED") and fatal:
        found.append(f"the outcome is {outcome} although {', '.join(fatal)} is FATAL and landed")
    if outcome == "OVERTURNED" and not any(row.severity in SEVERE for row in rulings.landed):
        found.append("the outcome is OVERTURNED although no FATAL or MAJOR issue landed")
    return found


def list_defects(outcome: str | None, rulings: Rulings) -> list[str]:
    """Return everything that earns a ruling its repair turn, worded for the model."""
    found = list_contradictions(outcome, rulings)
    if outcome is None:
        found.append("the outcome is missing")
    if missing := [row.id for row in rulings.rows if row.landed is None and row.id not in rulings.contradictory]:
        found.append(f"there is no ruling on {', '.join(missing)}: rule on every listed issue by its id")
    if rulings.unknown:
        listed = ", ".join(row.id for row in rulings.rows) or "none"
        found.append(f"{format_unknown(rulings)} is not a listed issue; listed are {listed}")
    return found


# Confidence and trust


def compute_confidence(
    outcome: str | None, landed: Collection[str], stances: Collection[str], *, open_issues: Collection[str] = (),
    contradictory: bool = False, unclear: bool = False,
) -> str:  # fmt: skip
    """Return the confidence of an attacked answer by the first rule that matches.

    `landed` and `open_issues` hold severities, `stances` the attackers' verdicts. `unclear`: part of the ruling or of an
    attack could not be used.
    """
    if contradictory or outcome == "OVERTURNED" or "FATAL" in open_issues:
        return "CONTESTED"
    if "FATAL" in landed and "REJECTED" in stances:
        return "CONTESTED"
    if outcome != "SURVIVED" or not set(SEVERE).isdisjoint(landed) or open_issues or unclear:
        return "MEDIUM"
    return "HIGH"


def find_first_holders(
    triage: Triage, drafts: Iterable[str], outcome: str | None, replaced_by: str
) -> tuple[str, ...] | None:
    """Return the seats whose own draft reaches the conclusion of the answer; None if the triage does not say.

    The triage compares the drafts with the leading one only. After it was overturned, one seat alone is known to hold
    the answer if all others reach the conclusion of the leading draft.
    """
    names = tuple(drafts)
    leading = triage.holders or (names if triage.same_conclusion else ())
    if outcome == "OVERTURNED":
        return (replaced_by,) if replaced_by and {*leading, replaced_by} == set(names) else None
    return tuple(name for name in names if name in leading) or None


def is_settled(outcome: str | None, stances: Collection[str]) -> bool:
    """Return whether the attack settled the contested points: every attacker let the leading draft stand."""
    return bool(stances) and outcome == "SURVIVED" and all(stance == "STAND" for stance in stances)


def list_trust_facts(
    outcome: str | None, rulings: Rulings, stances: Mapping[str, str], contested: Sequence[str], *, contradictory: bool
) -> list[TrustFact]:
    """Return the facts of an attack for and against trust. `stances` are the attackers' by seat."""
    landed = [row for row in rulings.landed if row.severity in SEVERE]
    fatal = [row for row in rulings.rows if row.severity == "FATAL"]
    fatal_by = {row.id.rpartition("-")[0] for row in fatal if row.landed}
    rejecting = tuple(name for name, stance in stances.items() if stance == "REJECTED")
    open_fatal = [row for row in rulings.unruled if row.severity == "FATAL"]
    open_others = [row for row in rulings.unruled if row.severity != "FATAL"]
    dismissed = [row for row in rulings.distinct if row.landed is False]
    total = len(rulings.distinct)
    rejected_by_all = bool(stances) and len(rejecting) == len(stances) and outcome == "SURVIVED"
    is_all_rejected = rejected_by_all and all(row.landed is False for row in fatal)
    facts = {
        "contradictory_ruling": TrustFact("contradictory_ruling") if contradictory else None,
        "overturned": TrustFact("overturned") if outcome == "OVERTURNED" else None,
        "fatal_landed": TrustFact("fatal_landed", seats=tuple(filter(fatal_by.__contains__, stances)))
        if fatal_by
        else None,
        "open_fatal": TrustFact("open_fatal", count=len(open_fatal)) if open_fatal else None,
        "all_rejected": TrustFact("all_rejected", seats=rejecting, count=len(rejecting)) if is_all_rejected else None,
        "modified": TrustFact("modified", count=len(rulings.landed), total=total) if outcome == "MODIFIED" else None,
        "landed": TrustFact("landed", count=len(landed), total=total) if landed else None,
        "unruled": TrustFact("unruled", count=len(open_others), total=total) if open_others else None,
        "unclear_ruling": TrustFact("unclear_ruling") if rulings.unknown or outcome is None else None,
        "dismissed": TrustFact("dismissed", count=len(dismissed), total=total) if dismissed else None,
    }
    found = [fact for fact in facts.values() if fact]
    if contested and not is_settled(outcome, stances.values()):
        found.append(TrustFact("contested_points", contested[0], count=len(contested)))
    return found


def _shorten(text: str, limit: int = MAX_DETAIL_CHARS) -> str:
    line = " ".join(text[: 4 * limit].split()).rstrip(".")
    return line if len(line) <= limit else f"{line[:limit].rsplit(' ', 1)[0]} …"
