"""Positions of the seats: one row per finding, point or topic, and the seats that dispute it.

The rows are those of the page, the report and the terminal. Before the rules of a protocol have run, they come from the
replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, TypeVar

from council.engine.minutes import Minutes
from council.engine.records import (
    AttackPoint,
    ClaimRow,
    Disagreement,
    FindingRow,
    PositionRow,
    SeatPosition,
    VerdictObject,
)
from council.events import Closed, Entry, PhaseEnded
from council.protocols import find_protocol
from council.text_cleanup import single_line
from council.wording import Wording

MAX_TOPIC_CHARS = 160
MAX_WHY_CHARS = 600
RULINGS = {True: "landed", False: "dismissed", None: "open"}
POSITIONS = ("opposes", "qualifies", "agrees")  # by precedence, if a seat has several on one topic


Seated = TypeVar("Seated", bound=Mapping[str, object])


class RowExtras(TypedDict, total=False):
    """What only the row of a finding or of a point of an attack has."""

    location: str
    fix: str
    why: str
    ref: str
    location_note: str
    landed: bool
    ruling: str
    correction: str


FINDING_EXTRAS: tuple[Literal["location", "fix", "why", "ref", "location_note"], ...]
FINDING_EXTRAS = ("location", "fix", "why", "ref", "location_note")


class PositionSnapshot(TypedDict):
    """The rows after an event, which has the number `seq`."""

    seq: int
    rows: list[PositionRow]


class StatedClaim(TypedDict, total=False):
    """A claim in the reply of a seat."""

    question: str
    text: str
    answer: str


@dataclass(slots=True)
class Row:
    """One row. `cells` maps seats to a position and its reason; other seats are silent or absent."""

    kind: Literal["finding", "point", "dispute", "claim", "note"]
    topic: str
    text: str = ""
    status: str = ""
    severity: str = ""
    cells: dict[str, tuple[str, str]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    disputed_by: list[str] = field(default_factory=list)
    answer: str | None = None  # of the first claim, before the rules have run
    extras: RowExtras = field(default_factory=RowExtras)

    def put(self, seat: str, position: str, why: Any = "") -> None:
        """Set the position of a seat, unless it has a stronger one."""
        known = self.cells.get(seat)
        if seat and (known is None or POSITIONS.index(position) < POSITIONS.index(known[0])):
            self.cells[seat] = (position, single_line(str(why or ""), MAX_WHY_CHARS))

    def seats_with(self, position: str) -> list[str]:
        return [seat for seat, (held, _) in self.cells.items() if held == position]


def build_positions(minutes: Minutes) -> list[PositionRow]:
    """Return the rows of a run, also of one that has not ended."""
    verdict = minutes.verdict
    points = find_protocol(minutes.plan.get("protocol") or "").load_report_view().points(minutes)
    rows = [
        *map(_finding_row, _select_rows(verdict.get("findings"))),
        *_merge_topics([*_list_disputes(verdict), *_list_claims(verdict), *_list_notes(verdict)]),
        *map(_point_row, points),
    ]
    if not rows and minutes.status != "complete":  # the rules have not run
        rows = _list_preliminary(minutes)
    return [_row_json(minutes, row) for row in rows]


def build_position_history(entries: Iterable[Entry]) -> list[PositionSnapshot]:
    """Return the rows after each phase and now, each with the last event that they cover, for a replay."""
    minutes, found = Minutes(), list[PositionSnapshot]()
    for entry in entries:
        minutes.on_event(entry)
        if isinstance(entry.event, PhaseEnded | Closed):
            found.append({"seq": minutes.seq, "rows": build_positions(minutes)})
    if minutes.seq > (found[-1]["seq"] if found else 0):
        found.append({"seq": minutes.seq, "rows": build_positions(minutes)})
    return found


def _row_json(minutes: Minutes, row: Row) -> PositionRow:
    seats = minutes.planned_seats
    cells = {seat.name: row.cells.get(seat.name, ("silent" if seat.statements else "absent", "")) for seat in seats}
    opponents = [name for name, (position, _) in cells.items() if position == "opposes"]
    return {
        "kind": row.kind,
        "topic": single_line(row.topic, MAX_TOPIC_CHARS),
        "text": row.text,
        "status": row.status or _count_status(row, len([seat for seat in seats if seat.statements])),
        "severity": row.severity,
        "disputed_by": opponents or row.disputed_by,
        "seats": [{"seat": name, "position": position, "why": why} for name, (position, why) in cells.items()],
        "ids": row.ids,
        **row.extras,
    }


def _count_status(row: Row, answered: int) -> str:
    """Return the status of a row that no rule has decided: disputed only if a seat opposes it."""
    if row.seats_with("opposes"):
        return "disputed"
    if row.seats_with("qualifies"):
        return "qualified"
    held = len(row.seats_with("agrees"))
    return "agreed" if held == answered > 1 else f"{held} of {answered}"


def _select_rows(rows: Sequence[Seated] | None, *required: str) -> list[Seated]:
    """Return the objects of a list that have these texts or lists: protocols of other packages may differ."""
    listed = rows if isinstance(rows, list | tuple) else ()
    return [row for row in listed if _has_fields(row, required)]


def _has_fields(row: object, required: Iterable[str]) -> bool:
    values = [row.get(name) for name in required] if isinstance(row, dict) else [None]
    return all(isinstance(value, str | list | tuple) and value for value in values)


def _normalize(text: str) -> str:
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()


def _merge_topics(rows: Iterable[Row]) -> list[Row]:
    """Return one row per topic; the first row of a topic decides its text and kind."""
    found: dict[str, Row] = {}
    for row in rows:
        first = found.setdefault(_normalize(row.topic) or str(len(found)), row)
        if first is row:
            continue
        for seat, (position, why) in row.cells.items():
            if seat not in first.cells:  # the rules decided about the others
                first.put(seat, position, why)
        first.ids += [one for one in row.ids if one not in first.ids]
    return list(found.values())


# Findings of judges


def _finding_row(one: FindingRow) -> Row:
    found_by, of = list(one.get("held_by") or one.get("found_by") or ()), one.get("of") or 0
    disputes = _select_rows(one.get("disputes"), "seat")
    row = Row(
        "finding",
        _format_place(one),
        str(one.get("description") or ""),
        severity=str(one.get("severity") or ""),
        ids=[one["id"]] if one.get("id") else [],
        disputed_by=[side["seat"] for side in disputes],
        extras=_collect_extras(one),
    )
    for said in _select_rows(one.get("by_judge"), "seat"):
        row.put(said["seat"], "agrees", "supports it" if said.get("supports") else said.get("description"))
    for seat in found_by:
        row.put(seat, "agrees", "found it")
    for side in disputes:  # a judge that holds the finding may still dispute the words of another
        row.put(side["seat"], "qualifies" if side["seat"] in found_by else "opposes", side.get("why"))
    row.status = "disputed" if disputes else "agreed" if len(found_by) == of > 1 else f"{len(found_by)} of {of}"
    return row


def _collect_extras(finding: FindingRow) -> RowExtras:
    extras: RowExtras = {}
    for name in FINDING_EXTRAS:
        if text := finding.get(name):
            extras[name] = text
    return extras


def _format_place(one: FindingRow) -> str:
    place = str(one.get("location") or "").rpartition("/")[2]
    return place or single_line(str(one.get("description") or ""), 60)


# Disputes, claims and notes


def _list_disputes(verdict: VerdictObject) -> Iterator[Row]:
    claims = _select_claims(verdict)
    for one in _select_rows(verdict.get("disagreements"), "positions"):
        sides = _select_rows(one["positions"], "seat")
        if len({side["seat"] for side in sides}) > 1:
            yield _dispute_row(one, sides, verdict.get("verdict"), claims)


def _dispute_row(
    one: Disagreement, sides: Sequence[SeatPosition], ruled: str | None, claims: Sequence[ClaimRow]
) -> Row:
    topic = str(one.get("topic") or one.get("issue") or "")
    row = Row("dispute", topic, str(one.get("issue") or topic))
    holding = [side for side in sides if side.get("round2") != "CONCEDE"] or list(sides)
    first = next((side for side in holding if ruled and side.get("verdict") == ruled), holding[0])
    for side in sides:
        row.put(side["seat"], _position_to(side, first, one.get("how")), _describe_side(side))
    for claim in claims:
        if _normalize(str(claim.get("topic") or "")) == _normalize(topic) and claim["by"][0] not in row.cells:
            row.put(claim["by"][0], _claim_position(claim, first["seat"]), claim.get("claim"))
    if one.get("how") == "possible":
        row.status = "possible"
    return row


def _position_to(side: SeatPosition, first: SeatPosition, how: str | None) -> str:
    """Return the position of a side to the first side of its dispute."""
    if side.get("round2") == "CONCEDE":
        return "qualifies"
    if side["seat"] == first["seat"] or _side_word(side) == _side_word(first):
        return "agrees"
    if how == "possible":
        return "qualifies"
    known = side.get("disputed_by")
    return "opposes" if known is None or first["seat"] in known else "qualifies"


def _side_word(side: SeatPosition) -> str:
    return _normalize(str(side.get("verdict") or side.get("position") or side.get("stance") or side.get("claim") or ""))


def _describe_side(side: SeatPosition) -> str:
    word = side.get("verdict") or side.get("position") or side.get("stance") or ""
    said, later = side.get("claim") or side.get("why") or "", side.get("round2") or ""
    return ": ".join(filter(None, [f"{word}, then {later}" if later and word else word or later, said]))


def _select_claims(verdict: VerdictObject) -> list[ClaimRow]:
    return [claim for claim in _select_rows(verdict.get("claims"), "by") if isinstance(claim["by"], list)]


def _list_claims(verdict: VerdictObject) -> Iterator[Row]:
    topics: dict[str, list[ClaimRow]] = {}
    for claim in _select_claims(verdict):
        topics.setdefault(_normalize(str(claim.get("topic") or claim.get("claim") or "")), []).append(claim)
    for claims in topics.values():
        holding = [claim for claim in claims if not claim.get("conceded")] or claims
        first = holding[0]
        row = Row("claim", str(first.get("topic") or first.get("claim") or ""), str(first.get("claim") or ""))
        row.ids = [str(claim["id"]) for claim in claims if claim.get("id")]
        for claim in claims:
            row.put(claim["by"][0], _claim_position(claim, first["by"][0]), claim.get("claim"))
        if any(claim.get("conceded") for claim in claims) and not row.seats_with("opposes"):
            row.status = "settled"
        yield row


def _claim_position(claim: ClaimRow, first: str) -> str:
    if first in (claim.get("against") or ()) and not claim.get("conceded"):
        return "opposes"
    if claim.get("conceded") or claim.get("status") == "qualified":
        return "qualifies"
    return "agrees" if claim["by"][0] == first or first in (claim.get("agrees") or ()) else "qualifies"


def _list_notes(verdict: VerdictObject) -> Iterator[Row]:
    """Return the contested points of the chair's notes, and those that only one seat made."""
    notes = verdict.get("notes")
    if not notes:
        return
    for one in _select_rows(notes.get("contested"), "point"):
        row = Row("note", one["point"], one["point"])
        sides = _select_rows(one.get("sides"), "seat", "position")
        for side in sides:
            same = _normalize(side["position"]) == _normalize(sides[0]["position"])
            assumes = f" (assumes: {side['assumes']})" if side.get("assumes") else ""
            row.put(side["seat"], "agrees" if same else "opposes", f"{side['position']}{assumes}")
        row.status = "" if row.seats_with("opposes") else "contested"
        yield row
    for noted in _select_rows(notes.get("unique"), "seat", "point"):
        cells = {noted["seat"]: ("agrees", "")}
        yield Row("note", noted["point"], noted["point"], f"only {noted['seat']}", cells=cells)


# Points of an attack


def _point_row(one: AttackPoint) -> Row:
    row = Row("point", one["hits"] or one["flaw"], one["flaw"], RULINGS[one["landed"]], one["severity"].lower())
    row.ids = list(one["ids"])
    if one["landed"] is not None:
        row.extras["landed"] = one["landed"]
    if one["why"]:
        row.extras["ruling"] = one["why"]
    if one["correction"]:
        row.extras["correction"] = one["correction"]
    for seat in one["raised_by"]:
        row.put(seat, "opposes", one["flaw"])
    row.put(one["held_by"], "agrees", "its draft")
    return row


# Rows of the replies, before the rules have run


def _list_preliminary(minutes: Minutes) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    planned = {seat.name for seat in minutes.planned_seats}
    for said in minutes.statements:
        if said.seat not in planned or not isinstance(said.reply, dict):
            continue
        findings: list[FindingRow] = _select_rows(said.reply.get("findings"), "description")
        for one in findings:
            same = "finding", f"{one.get('location') or ''} {_normalize(one['description'])}"
            row = rows.setdefault(same, _finding_row({**one, "found_by": [], "of": 0, "id": ""}))
            row.put(said.seat, "agrees", "found it")
        claims: list[StatedClaim] = _select_rows(said.reply.get("claims"), "question")
        for claim in claims:
            question, text = claim["question"], str(claim.get("text") or claim.get("answer") or "")
            row = rows.setdefault(("claim", _normalize(question)), Row("claim", question, text))
            answer = _normalize(str(claim.get("answer") or ""))
            is_same = row.text == text or (bool(answer) and row.answer == answer)
            row.put(said.seat, "agrees" if is_same else "qualifies", text)
            if row.answer is None:
                row.answer = answer
    for row in rows.values():
        row.status = ""
    return list(rows.values())


# Texts

CELL_WORDS = ("agrees", "opposes", "qualifies", "absent")  # a cell of a silent seat is empty
SHARE = re.compile(r"(\d+) of (\d+)")


def build_position_table(minutes: Minutes, wording: Wording) -> list[list[str]]:
    """Return a header and the rows as text, for the report; empty if there are none."""
    t, rows = wording.heading, build_positions(minutes)
    head = [t("topic"), *(seat.name for seat in minutes.planned_seats), t("status")]
    lines = [
        [
            row["topic"],
            *(t(one["position"]) if one["position"] in CELL_WORDS else "" for one in row["seats"]),
            _format_status(row["status"], wording),
        ]
        for row in rows
    ]
    return [head, *lines] if lines else []


def _format_status(status: str, wording: Wording) -> str:
    """Return the status of a row: a word, or how many seats hold it."""
    if share := SHARE.fullmatch(status):
        return wording.heading("count_of", count=share[1], total=share[2])
    return wording.format_status(status)


def format_positions(row: PositionRow) -> str:
    """Return the positions of a row in one line: `alpha, beta against gamma`."""
    held = {name: [one["seat"] for one in row["seats"] if one["position"] == name] for name in POSITIONS}
    against = f" against {', '.join(held['opposes'])}" if held["opposes"] else ""
    qualified = f"; {', '.join(held['qualifies'])} with a qualification" if held["qualifies"] else ""
    return f"{', '.join(held['agrees']) or 'no seat'}{against}{qualified}"
