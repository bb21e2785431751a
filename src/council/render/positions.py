"""Positions of the seats: one row per finding, point or topic, and the seats that dispute it.

The rows are those of the page, the report and the terminal. Before the rules of a protocol have run, they come from the replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from council.engine.minutes import Minutes
from council.events import Closed, Entry, PhaseEnded
from council.protocols import find_protocol
from council.text_cleanup import single_line
from council.types import Json
from council.wording import Wording

MAX_TOPIC_CHARS = 160
MAX_WHY_CHARS = 600
RULINGS = {True: "landed", False: "dismissed", None: "open"}
POSITIONS = ("opposes", "qualifies", "agrees")  # by precedence, if a seat has several on one topic


@dataclass(slots=True)
class Row:
    """One row. `cells` maps seats to a position and its reason; other seats are silent or absent."""

    kind: str  # finding | point | dispute | claim | note
    topic: str
    text: str = ""
    status: str = ""
    severity: str = ""
    cells: dict[str, tuple[str, str]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    more: Json = field(default_factory=dict)

    def put(self, seat: str, position: str, why: Any = "") -> None:
        """Set the position of a seat, unless it has a stronger one."""
        known = self.cells.get(seat)
        if seat and (known is None or POSITIONS.index(position) < POSITIONS.index(known[0])):
            self.cells[seat] = (position, single_line(str(why or ""), MAX_WHY_CHARS))

    def seats_with(self, position: str) -> list[str]:
        return [seat for seat, (held, _) in self.cells.items() if held == position]


def build_positions(minutes: Minutes) -> list[Json]:
    """Return the rows of a run, also of one that has not ended."""
    verdict = minutes.verdict
    points = find_protocol(minutes.plan.get("protocol") or "").load_report_view().points(minutes)
    rows = [
        *map(_finding_row, _dicts(verdict.get("findings"))),
        *_merge_topics([*_list_disputes(verdict), *_list_claims(verdict), *_list_notes(verdict)]),
        *map(_point_row, points),
    ]
    if not rows and minutes.status != "complete":  # the rules have not run
        rows = _list_preliminary(minutes)
    return [_row_json(minutes, row) for row in rows]


def build_position_history(entries: Iterable[Entry]) -> list[Json]:
    """Return the rows after each phase and now, each with the last event that they cover, for a replay."""
    minutes, found = Minutes(), list[Json]()
    for entry in entries:
        minutes.on_event(entry)
        if isinstance(entry.event, PhaseEnded | Closed):
            found.append({"seq": minutes.seq, "rows": build_positions(minutes)})
    if minutes.seq > (found[-1]["seq"] if found else 0):
        found.append({"seq": minutes.seq, "rows": build_positions(minutes)})
    return found


def _row_json(minutes: Minutes, row: Row) -> Json:
    seats = minutes.planned_seats
    cells = {seat.name: row.cells.get(seat.name, ("silent" if seat.statements else "absent", "")) for seat in seats}
    opponents = [name for name, (position, _) in cells.items() if position == "opposes"]
    return {
        "kind": row.kind,
        "topic": single_line(row.topic, MAX_TOPIC_CHARS),
        "text": row.text,
        "status": row.status or _count_status(row, len([seat for seat in seats if seat.statements])),
        "severity": row.severity,
        "disputed_by": opponents or list(row.more.get("disputed_by", ())),
        "seats": [{"seat": name, "position": position, "why": why} for name, (position, why) in cells.items()],
        "ids": row.ids,
        **{key: value for key, value in row.more.items() if key != "disputed_by" and value not in ("", None)},
    }


def _count_status(row: Row, answered: int) -> str:
    """Return the status of a row that no rule has decided: disputed only if a seat opposes it."""
    if row.seats_with("opposes"):
        return "disputed"
    if row.seats_with("qualifies"):
        return "qualified"
    held = len(row.seats_with("agrees"))
    return "agreed" if held == answered > 1 else f"{held} of {answered}"


def _dicts(value: Any, *required: str) -> list[Json]:
    """Return the objects of a list that have these texts or lists; a protocol of another package may use other shapes."""
    rows = value if isinstance(value, list | tuple) else ()
    return [one for one in rows if isinstance(one, dict) and all(_is_filled(one.get(name)) for name in required)]


def _is_filled(value: Any) -> bool:
    return isinstance(value, str | list | tuple) and bool(value)


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


def _finding_row(one: Json) -> Row:
    found_by, of = list(one.get("held_by") or one.get("found_by") or ()), one.get("of") or 0
    disputes = _dicts(one.get("disputes"), "seat")
    more = {key: one.get(key) or "" for key in ("location", "fix", "why", "ref", "location_note")}
    row = Row(
        "finding",
        _format_place(one),
        str(one.get("description") or ""),
        severity=str(one.get("severity") or ""),
        ids=[one["id"]] if one.get("id") else [],
        more=more,
    )
    for said in _dicts(one.get("by_judge"), "seat"):
        row.put(said["seat"], "agrees", "supports it" if said.get("supports") else said.get("description"))
    for seat in found_by:
        row.put(seat, "agrees", "found it")
    for side in disputes:  # a judge that holds the finding may still dispute the words of another
        row.put(side["seat"], "qualifies" if side["seat"] in found_by else "opposes", side.get("why"))
    row.more["disputed_by"] = [side["seat"] for side in disputes]
    row.status = "disputed" if disputes else "agreed" if len(found_by) == of > 1 else f"{len(found_by)} of {of}"
    return row


def _format_place(one: Json) -> str:
    place = str(one.get("location") or "").rpartition("/")[2]
    return place or single_line(str(one.get("description") or ""), 60)


# Disputes, claims and notes


def _list_disputes(verdict: Json) -> Iterator[Row]:
    claims = [claim for claim in _dicts(verdict.get("claims"), "by") if isinstance(claim["by"], list)]
    for one in _dicts(verdict.get("disagreements"), "positions"):
        sides = _dicts(one["positions"], "seat")
        if len({side["seat"] for side in sides}) > 1:
            yield _dispute_row(one, sides, verdict.get("verdict"), claims)


def _dispute_row(one: Json, sides: Sequence[Json], ruled: str | None, claims: Sequence[Json]) -> Row:
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


def _position_to(side: Json, first: Json, how: str | None) -> str:
    """Return the position of a side to the first side of its dispute."""
    if side.get("round2") == "CONCEDE":
        return "qualifies"
    if side["seat"] == first["seat"] or _side_word(side) == _side_word(first):
        return "agrees"
    if how == "possible":
        return "qualifies"
    known = side.get("disputed_by")
    return "opposes" if known is None or first["seat"] in known else "qualifies"


def _side_word(side: Json) -> str:
    return _normalize(str(side.get("verdict") or side.get("position") or side.get("stance") or side.get("claim") or ""))


def _describe_side(side: Json) -> str:
    word = side.get("verdict") or side.get("position") or side.get("stance") or ""
    said, later = side.get("claim") or side.get("why") or "", side.get("round2") or ""
    return ": ".join(filter(None, [f"{word}, then {later}" if later and word else word or later, said]))


def _list_claims(verdict: Json) -> Iterator[Row]:
    topics: dict[str, list[Json]] = {}
    for claim in _dicts(verdict.get("claims"), "by"):
        if isinstance(claim["by"], list):
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


def _claim_position(claim: Json, first: str) -> str:
    if first in (claim.get("against") or ()) and not claim.get("conceded"):
        return "opposes"
    if claim.get("conceded") or claim.get("status") == "qualified":
        return "qualifies"
    return "agrees" if claim["by"][0] == first or first in (claim.get("agrees") or ()) else "qualifies"


def _list_notes(verdict: Json) -> Iterator[Row]:
    """Return the contested points of the chair's notes, and those that only one seat made."""
    notes = verdict.get("notes") or {}
    for one in _dicts(notes.get("contested"), "point"):
        row = Row("note", one["point"], one["point"])
        sides = _dicts(one.get("sides"), "seat", "position")
        for side in sides:
            same = _normalize(side["position"]) == _normalize(sides[0]["position"])
            assumes = f" (assumes: {side['assumes']})" if side.get("assumes") else ""
            row.put(side["seat"], "agrees" if same else "opposes", f"{side['position']}{assumes}")
        row.status = "" if row.seats_with("opposes") else "contested"
        yield row
    for one in _dicts(notes.get("unique"), "seat", "point"):
        yield Row("note", one["point"], one["point"], f"only {one['seat']}", cells={one["seat"]: ("agrees", "")})


# Points of an attack


def _point_row(one: Json) -> Row:
    row = Row("point", one["hits"] or one["flaw"], one["flaw"], RULINGS[one["landed"]], one["severity"].lower())
    row.ids = list(one["ids"])
    row.more = {"landed": one["landed"], "ruling": one["why"], "correction": one["correction"]}
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
        for one in _dicts(said.reply.get("findings"), "description"):
            same = "finding", f"{one.get('location') or ''} {_normalize(one['description'])}"
            rows.setdefault(same, _finding_row({**one, "found_by": [], "of": 0, "id": ""})).put(
                said.seat, "agrees", "found it"
            )
        for one in _dicts(said.reply.get("claims"), "question"):
            row = rows.setdefault(("claim", _normalize(one["question"])), Row("claim", one["question"], _text(one)))
            row.put(
                said.seat, "agrees" if row.text == _text(one) or _same_answer(row, one) else "qualifies", _text(one)
            )
            row.more.setdefault("answer", _normalize(str(one.get("answer") or "")))
    for row in rows.values():
        row.status = ""
        row.more.pop("answer", None)
    return list(rows.values())


def _text(one: Json) -> str:
    return str(one.get("text") or one.get("answer") or "")


def _same_answer(row: Row, one: Json) -> bool:
    return bool(one.get("answer")) and row.more.get("answer", "") == _normalize(str(one["answer"]))


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


def format_positions(row: Json) -> str:
    """Return the positions of a row in one line: `alpha, beta against gamma`."""
    held = {name: [one["seat"] for one in row["seats"] if one["position"] == name] for name in POSITIONS}
    against = f" against {', '.join(held['opposes'])}" if held["opposes"] else ""
    qualified = f"; {', '.join(held['qualifies'])} with a qualification" if held["qualifies"] else ""
    return f"{', '.join(held['agrees']) or 'no seat'}{against}{qualified}"
