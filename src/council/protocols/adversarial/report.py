"""Report of the adversarial protocol: leading draft, points of the triage, rulings, and why there was no attack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

from council.engine.layout import ENGLISH, find_wording
from council.engine.minutes import Minutes
from council.engine.records import AttackPoint, Dissent, RulingRow
from council.protocols import ReportView
from council.text_cleanup import single_line
from council.types import SEVERITIES
from council.wording import Wording

MAX_REASON_CHARS = 200
RULING_WORDS = {True: "landed", False: "dismissed", None: "open"}


class AdversarialDetails(TypedDict, total=False):
    """The details of a verdict. Without an attack there are no rulings and no stances."""

    leader: str
    reason: str  # of the choice of the leader
    agreed: list[str]
    contested: list[str]
    rulings: list[RulingRow]
    stances: dict[str, str]  # of the attackers: STAND | REJECTED


class AdversarialFields(TypedDict, total=False):
    leader: str
    leader_reason: str
    agreed: list[str]
    contested: list[str]
    rulings: list[RulingRow]


class PointVariables(AttackPoint):
    ruling: str


class AdversarialVariables(TypedDict):
    leader: str | None
    reason: str
    agreed: list[str]
    contested: list[str]
    rulings: list[PointVariables]
    counts: str
    dissent: list[Dissent]
    skipped: str


class AdversarialView(ReportView):
    def report_fields(self, minutes: Minutes) -> AdversarialFields:
        """Return leader, agreed and contested points and rulings; empty if no draft led."""
        found = _find_details(minutes)
        if not found.get("leader"):
            return {}
        return {
            "leader": found["leader"],
            "leader_reason": found.get("reason") or "",
            "agreed": list(found.get("agreed") or []),
            "contested": list(found.get("contested") or []),
            "rulings": list(found.get("rulings") or []),
        }

    def points(self, minutes: Minutes) -> list[AttackPoint]:
        """Return the points as ruled on; of a run without a ruling, those of the attack, all open."""
        found = _find_details(minutes)
        rulings = found.get("rulings")
        return join_points(_list_issues(minutes) if rulings is None else rulings, found.get("leader") or "")

    def layout_variables(self, minutes: Minutes) -> AdversarialVariables:
        found = _find_details(minutes)
        rulings = join_points(found.get("rulings") or [], "")
        wording = find_wording(minutes)
        return {
            "leader": found.get("leader") or _find_attacked_seat(minutes),
            "reason": found.get("reason") or wording.heading("none_given"),
            "agreed": found.get("agreed") or [],
            "contested": found.get("contested") or [],
            "rulings": [{**row, "ruling": wording.format_status(RULING_WORDS[row["landed"]])} for row in rulings],
            "counts": format_counts(rulings, wording) if rulings else "",
            "dissent": minutes.verdict.get("dissent") or [],
            "skipped": _describe_skipped_attack(minutes, wording),
        }


def _find_details(minutes: Minutes) -> AdversarialDetails:
    """Return what the verdict recorded; of an older or unfinished run, at least its triage."""
    stored = minutes.verdict.get("details") or {}
    if not stored.get("leader"):
        phase = minutes.phases.get("triage")
        said = phase.said.get("chair") if phase else None
        stored = (said.reply if said else None) or {}
    return cast("AdversarialDetails", stored)


def _find_attacked_seat(minutes: Minutes) -> str | None:
    """Return the only author of a draft who was not asked to attack: of a run without a triage by the chair."""
    if "attack" not in minutes.phases or "draft" not in minutes.phases:
        return None
    spared = [name for name in minutes.phases["draft"].said if name not in minutes.phases["attack"].asked]
    return spared[0] if len(spared) == 1 else None


def _describe_skipped_attack(minutes: Minutes, wording: Wording) -> str:
    """Return why there was no attack phase; empty if there was one."""
    if "attack" in minutes.phases:
        return ""
    note = next((note for note in minutes.notes if "attack" in note.skipped), None)
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    if note and len(drafts) > 1:
        return wording.heading("consensus_detected")
    why = single_line(note.why) if note else wording.heading("not_that_far")
    return f"_{wording.heading('no_attack_held', why=why)}_"


def join_points(rulings: Sequence[RulingRow], leader: str) -> list[AttackPoint]:
    """Return each point once. Issues are one if the chair joined them, or if they have the same text and ruling."""
    groups: dict[str, list[RulingRow]] = {}
    first: dict[tuple[str, bool | None], str] = {}  # text and ruling → the first issue with them
    for row in rulings:
        root = row.get("same_as") or row["id"]
        text = " ".join(f"{row['hits']} {row['flaw']}".casefold().split())
        groups.setdefault(first.setdefault((text, row["landed"]), root) if root == row["id"] else root, []).append(row)
    return [_join_group(rows, leader) for rows in groups.values()]


def _join_group(rows: Sequence[RulingRow], leader: str) -> AttackPoint:
    return {
        **rows[0],
        "severity": min((row["severity"] for row in rows), key=SEVERITIES.index),
        "why": next((row["why"] for row in rows if row.get("why")), ""),
        "correction": next((correction for row in rows if (correction := row.get("correction"))), ""),
        "ids": [row["id"] for row in rows],
        "raised_by": list(dict.fromkeys(row["id"].rpartition("-")[0] for row in rows)),
        "held_by": leader,
    }


def _list_issues(minutes: Minutes) -> list[RulingRow]:
    """Return the issues of an attack that has no ruling yet."""
    attack = minutes.phases.get("attack")
    return [
        {
            "id": f"{said.seat}-{n}",
            "severity": issue["severity"],
            "landed": None,
            "why": "",
            "same_as": issue.get("same_as"),
            "hits": issue.get("hits") or "",
            "flaw": issue["flaw"],
            "correction": issue.get("correction") or "",
        }
        for said in (attack.said.values() if attack else ())
        for n, issue in enumerate((said.reply or {}).get("issues") or (), 1)
    ]


def format_counts(rulings: Sequence[RulingRow], wording: Wording = ENGLISH) -> str:
    """Return the counts of the rulings: `5 issues: 3 landed, 1 dismissed, 1 open`. Joined issues count once."""
    distinct = [row["landed"] for row in rulings if not row.get("same_as")]
    counts = [
        wording.heading(f"count_{word}", number=distinct.count(value), count=distinct.count(value))
        for value, word in RULING_WORDS.items()
        if value in distinct
    ]
    if not counts:
        return wording.heading("no_issues")
    total = wording.heading("issues", number=len(distinct), count=len(distinct))
    return f"{total}{wording.colon}{wording.comma.join(counts)}"
