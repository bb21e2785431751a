"""Issues that one seat raises against another's text, and the rulings on them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema, model_validator

from council.engine.reply import also_named, main_field
from council.protocols.common.replies import ReplyPart, TextField, one_of
from council.types import SEVERITIES

NONE = "none"  # `same_as` of an issue that no other issue repeats, `replaced_by` of a draft that no other replaces
SEVERE = ("FATAL", "MAJOR")
MAX_ISSUES = 6  # of one seat
MAX_ID_CHARS = 40  # of an unknown id
MAX_UNKNOWN = 5  # unknown ids that are listed

# Issues

IssueSeverity = Annotated[
    Literal["FATAL", "MAJOR", "MINOR"],
    one_of(
        {
            "FATAL": "critical, blocker, blocking, showstopper, show stopper",
            "MAJOR": "high, medium, moderate, significant, important, serious",
            "MINOR": "low, trivial, nit, nitpick, cosmetic",
        }
    ),
]


def none_to_list(value: Any) -> Any:
    return [] if value is None else value


class Issue(BaseModel):
    """What is wrong with a text."""

    severity: IssueSeverity
    hits: TextField = Field(default="", description="the claim or passage of the leading draft that this hits")
    flaw: str = Field(description="the error in it, with the evidence")
    correction: TextField = Field(default="", description="the text that should replace it")


IssueT = TypeVar("IssueT", bound=Issue)


def keep_most_severe(issues: Sequence[IssueT], limit: int = MAX_ISSUES) -> dict[int, IssueT]:
    """Return the issues that count, by their number from 1: all, or the most severe."""
    by_severity = sorted(enumerate(issues, 1), key=lambda item: SEVERITIES.index(item[1].severity))
    return dict(sorted(by_severity[:limit]))


def format_issue(issue: Issue) -> str:
    """Return an issue in one paragraph: `**MAJOR** the passage: the flaw Correction: the text`."""
    where = f"{issue.hits}: " if issue.hits else ""
    correction = f" Correction: {issue.correction}" if issue.correction else ""
    return f"**{issue.severity}** {where}{issue.flaw}{correction}"


# Replies with rulings


def _read_landed(value: Any) -> Any:
    """Return whether an issue landed; None, which leaves it open, for anything but a clear yes or no."""
    return value if isinstance(value, bool) else {"true": True, "false": False}.get(str(value))


LandedField = Annotated[
    bool | None,
    BeforeValidator(_read_landed),
    one_of(
        {
            "true": "landed, lands, valid, upheld, accepted, sustained, yes, partly, partially, in part, partially landed",
            "false": "not landed, did not land, does not land, invalid, not valid, rejected, dismissed, no",
        }
    ),
    WithJsonSchema(
        {"type": "boolean", "description": "true if the criticism is right and matters"}
        | main_field()
        | also_named("ruling", "verdict", "valid", "upheld", "accepted", "decision", "status")
    ),
]


def read_points(value: Any) -> Any:
    """Accept rulings as an object with the issues as keys."""
    if not isinstance(value, dict):
        return value
    return [{"issue": name, **(of if isinstance(of, dict) else {"landed": of})} for name, of in value.items()]


_REMARK = re.compile(r"\s*[—–;(]\s*|\s-\s|[.:,]\s+")
_OTHER_RULING = re.compile(  # in a remark: it may take the ruling back
    r"\b(?:land\w*|valid\w*|invalid|upheld|accept\w*|reject\w*|dismiss\w*|part|partly|partially|"
    r"but|except|though|although|however|only|unless|if|provided)\b",
    re.IGNORECASE,
)


def _split_remark(value: Any) -> Any:
    """Read the reason that stands beside a ruling: `landed — it is right`, `landed: no. It is cheap.`"""
    if not isinstance(value, dict) or value.get("why") or not isinstance(value.get("landed"), str):
        return value
    said = re.sub(r"^\W*landed\s*[:=]\s*", "", value["landed"], flags=re.I).strip(" .")
    ruling, *rest = _REMARK.split(said, maxsplit=1)
    if not rest:
        return {**value, "landed": ruling}
    is_clear = not _OTHER_RULING.search(rest[0])
    return {**value, "landed": ruling if is_clear else value["landed"], "why": rest[0].rstrip(")")}


class Point(ReplyPart):
    """The ruling on one issue."""

    _read_remark = model_validator(mode="before")(_split_remark)

    issue: str = Field(
        description="the id of the issue, as listed", json_schema_extra=also_named("issue_id", "id", "name", "point")
    )
    same_as: TextField = Field(
        default=NONE,
        description=f'the id of an earlier issue that the same correction settles; "{NONE}" if there is none, or if they only overlap',
    )
    why: TextField = Field(
        default="",
        description="the reason for the ruling, in one sentence",
        json_schema_extra=also_named("reason", "reasoning", "rationale", "explanation", "because"),
    )
    landed: LandedField = None


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
    reasons = {name: next((point.why for point in points if point.why), "") for name, points in said.items()}
    rows = [
        IssueRuling(name, severity, landed[root], reasons.get(name, ""), root if root != name else None)
        for (name, severity), root in zip(severities.items(), roots.values(), strict=True)
    ]
    return Rulings(tuple(rows), tuple(contradictory), tuple(unknown))


def format_unknown(rulings: Rulings) -> str:
    """Return the unknown ids of a ruling, the first five of many."""
    more = len(rulings.unknown) - MAX_UNKNOWN
    return f"{', '.join(rulings.unknown[:MAX_UNKNOWN])}{f' and {more} more' if more > 0 else ''}"


def match_ids(text: str, ids: Collection[str]) -> list[str]:
    """Return the issue ids in a text such as `beta-1`, `Beta #1`, `[beta-1] the first claim` or `beta-1 and
    gamma-2`.
    """
    plain = _simplify(text)
    found = [name for name in ids if f"-{_simplify(name)}-" in f"-{plain}-"]
    return found or [name for name in ids if _simplify(name).replace("-", "") == plain.replace("-", "")]


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


def _shorten(text: str, limit: int) -> str:
    line = " ".join(text[: 4 * limit].split()).rstrip(".")
    return line if len(line) <= limit else f"{line[:limit].rsplit(' ', 1)[0]} …"
