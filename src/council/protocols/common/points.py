"""The clerk's points: one short call that says where sealed answers agree and differ. Code checks what it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from council.engine.agreement import NotedAgreement, assess_notes, join_sides, round_voices
from council.engine.council import Council
from council.engine.reply import Reply, also_named
from council.errors import SeatAbsent
from council.protocols.common.clerk import find_clerk
from council.protocols.common.issues import none_to_list
from council.protocols.common.replies import ReplyPart, TextField
from council.text_cleanup import replace_labels, single_line
from council.types import ChairNotes, Difference, Json, Packet, Round, Side

MAX_AGREED, MAX_DISPUTED, MAX_UNIQUE = 8, 6, 16
MAX_POINT_CHARS = 400
CLERK_TOKENS, CLERK_TOKENS_PER_ANSWER = 1_200, 200
# Why there are points, or none.
ClerkState = Literal["answered", "unneeded", "unavailable", "absent", "stopped"]
REASONS: Mapping[ClerkState, str] = {
    "answered": "compared by the clerk, and checked by code",
    "unneeded": "there are fewer than two answers to compare",
    "unavailable": "not compared: there is no member for the clerk",
    "absent": "not compared: the clerk did not answer",
    "stopped": "not compared: the run stopped first",
}

Labels = Annotated[list[str], BeforeValidator(none_to_list)]
_ANSWERS = also_named("responses", "response", "labels", "label", "held_by", "by", "members", "seats", "seat", "who")
_POINT = also_named("text", "claim", "statement", "issue", "topic", "question", "summary", "description")


# Reply


class AgreedRow(ReplyPart):
    point: TextField = Field(description="the point in one plain sentence", json_schema_extra=_POINT)
    answers: Labels = Field(
        default=[], description="the labels of the answers that say it, at least two", json_schema_extra=_ANSWERS
    )


class SideRow(ReplyPart):
    answers: Labels = Field(
        default=[], description="the labels of the answers that hold this position", json_schema_extra=_ANSWERS
    )
    position: TextField = Field(
        description="the position in one plain sentence",
        json_schema_extra=also_named("view", "says", "stance", "claim"),
    )
    assumes: TextField = Field(
        default="",
        description="what it takes for granted and the other side does not; empty if there is nothing",
        json_schema_extra=also_named("assumption", "assuming", "assumptions"),
    )


class DisputedRow(ReplyPart):
    point: TextField = Field(description="the point in a few words, without a position", json_schema_extra=_POINT)
    sides: Annotated[list[SideRow], BeforeValidator(none_to_list)] = Field(
        default=[],
        description="at least two, held by different answers",
        json_schema_extra=also_named("positions", "views"),
    )


class UniqueRow(ReplyPart):
    answer: TextField = Field(
        description="the label of the only answer that says it", json_schema_extra=also_named("response", "label", "by")
    )
    point: TextField = Field(description="the point in one plain sentence", json_schema_extra=_POINT)


class Points(Reply):
    """Where the answers agree and differ. The clerk can only name answers that exist."""

    takes_a_position: ClassVar[bool] = False
    open_choices: ClassVar[frozenset[str]] = frozenset({"answers", "answer", "shared_conclusion"})
    defaults: ClassVar[Mapping[str, Any]] = {"agreed": [], "disputed": [], "unique": [], "shared_conclusion": []}
    decoration: ClassVar[frozenset[str]] = frozenset({"agreed", "unique"})

    agreed: list[AgreedRow] = Field(
        description="the points that at least two answers share, most important first; empty if there is none",
        json_schema_extra=also_named("agreement", "agreements", "consensus", "shared_points", "common"),
    )
    disputed: list[DisputedRow] = Field(
        description="the points on which answers contradict each other, most important first; empty if there is none",
        json_schema_extra=also_named("contested", "disputes", "disagreements", "differences", "contradictions"),
    )
    unique: list[UniqueRow] = Field(
        description="what only one answer says and a reader would miss; empty if there is nothing",
        json_schema_extra=also_named("only_one", "unique_points"),
    )
    shared_conclusion: Labels = Field(
        description="the labels of the largest group of answers with the same conclusion; empty if no two share one",
        json_schema_extra=also_named(
            "same_conclusion", "shared_by", "conclusion_shared_by", "recommendation_shared_by"
        ),
    )

    def prose(self) -> str:
        agreed = [f"- {row.point} ({_format_labels(row.answers)})" for row in self.agreed]
        disputed = [
            f"- {row.point}: {'; '.join(f'{_format_labels(one.answers)}: {one.position}' for one in row.sides)}"
            for row in self.disputed
        ]
        unique = [f"- {_format_labels([row.answer])}: {row.point}" for row in self.unique]
        parts = [("Agreed", agreed), ("Disputed", disputed), ("Only one", unique)]
        lists = [f"{title}:\n" + "\n".join(rows) for title, rows in parts if rows]
        return "\n\n".join([*lists, f"The same conclusion: {_format_labels(self.shared_conclusion)}"])

    @classmethod
    def convert_older(cls, value: Json) -> Json:
        """Read sides and points that are written under their labels or as texts such as `A: May`."""
        given = dict(value)
        shared = given.get("shared_conclusion")
        if isinstance(shared, dict):
            given["shared_conclusion"] = next(
                (shared[key] for key in LABEL_KEYS if isinstance(shared.get(key), list)), shared
            )
        elif shared is None:  # null does not say that no two share a conclusion
            given.pop("shared_conclusion", None)
        if isinstance(given.get("disputed"), list):
            given["disputed"] = [_convert_dispute(row) for row in given["disputed"]]
        if "unique" in given:
            given["unique"] = _convert_rows(given["unique"], "answer", "point")
        return given

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        """Return points of which all answers share one, or on which two of them differ."""
        # Labels that do not exist are dropped, so that each answer stands on its own side.
        sides = [{"answers": [label], "position": f"position {label}", "assumes": ""} for label in "ABCDEFGH"]
        return {
            "agreed": [{"point": "…", "answers": ["all"]}],
            "disputed": [] if agree else [{"point": "…", "sides": sides}],
            "unique": [],
            "shared_conclusion": ["all"] if agree else [],
        }


LABEL_KEYS = ("answers", "labels", "responses", "seats", "members", "by")
_LABEL_AND_TEXT = re.compile(r"\s*(?P<labels>[^:–—]{1,60}?)\s*(?::|[–—]|\s-\s)\s*(?P<text>\S.*)", re.DOTALL)


def _convert_dispute(row: Any) -> Any:
    has_sides = isinstance(row, dict) and isinstance(row.get("sides"), dict | list)
    return {**row, "sides": _convert_rows(row["sides"], "answers", "position")} if has_sides else row


def _convert_rows(rows: Any, label: str, text: str) -> Any:
    """Return rows of objects for an object with the labels as keys, and for texts that begin with a label."""
    if isinstance(rows, dict) and not {label, text} & rows.keys():
        rows = [{label: key, **(one if isinstance(one, dict) else {text: one})} for key, one in rows.items()]
    if not isinstance(rows, list):
        return rows
    found = [_LABEL_AND_TEXT.fullmatch(row) if isinstance(row, str) else None for row in rows]
    pairs = zip(rows, found, strict=True)
    return [{label: one["labels"], text: one["text"]} if one else row for row, one in pairs]


def _format_labels(labels: Sequence[str]) -> str:
    """Return labels in the form that reports replace with the names of seats: "Responses A and C"."""
    if len(labels) < 2:
        return f"Response {labels[0]}" if labels else "none"
    return f"Responses {', '.join(labels[:-1])} and {labels[-1]}"


# Points of seats


@dataclass(frozen=True, slots=True)
class AgreedPoint:
    """A point that several seats make."""

    point: str
    seats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UniquePoint:
    """A point that only one seat makes."""

    seat: str
    point: str


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """Where the answers of seats agree and differ, and whether the clerk answered. Without a clerk nothing is known."""

    state: ClerkState = "unneeded"
    agreed: tuple[AgreedPoint, ...] = ()
    disputed: tuple[Difference, ...] = ()  # the most important first
    unique: tuple[UniquePoint, ...] = ()
    shared_by: tuple[str, ...] | None = None  # the seats that reach the same conclusion; None: not assessed
    unknown: tuple[str, ...] = ()  # labels that it named and that are no answers
    dropped: int = 0  # disputed points that code dropped
    why: str = ""  # why it did not answer

    @property
    def reason(self) -> str:
        return REASONS[self.state]

    def as_notes(self) -> ChairNotes | None:
        """Return the points in the form of a chair's notes; None if nothing was compared."""
        if self.state != "answered":
            return None
        return {
            "agreed": [one.point for one in self.agreed],
            "contested": [
                {
                    "point": one.point,
                    "sides": [
                        {"seat": seat, "position": side.position, "assumes": side.assumes}
                        for side in one.sides
                        for seat in side.seats
                    ],
                }
                for one in self.disputed
            ],
            "unique": [{"seat": one.seat, "point": one.point} for one in self.unique],
            "taken_from": [],
            "closest_draft": None,
            "recommendation_shared_by": None if self.shared_by is None else list(self.shared_by),
            "joined": [],
        }


async def compare_answers(council: Council, answers: Round[Any], phase: str) -> ComparedAnswers:
    """Ask the clerk where sealed answers agree and differ, without their authors.

    A clerk that does not answer is no failure of the run: nothing is then counted as agreed.
    """
    if len(answers) < 2:
        return ComparedAnswers()
    clerk = find_clerk(council.roster.helpers)
    if clerk is None:
        council.note("the answers were not compared", why=REASONS["unavailable"], skipped=[phase], by_absence=True)
        return ComparedAnswers("unavailable")
    async with council.phase(phase):
        responses = council.assign_labels(list(answers.values()), clerk)
        labels = {label: said.seat.name for label, said in responses.items()}
        try:
            said = await council.ask(
                clerk,
                "common/points",
                reply=Points,
                choices={field: list(labels) for field in sorted(Points.open_choices)},
                responses=responses,
                packet=Packet(),  # the answers are enough, and the material may be long
                tokens=CLERK_TOKENS + CLERK_TOKENS_PER_ANSWER * len(labels),
            )
        except SeatAbsent as gone:
            council.note("the answers were not compared", why=str(gone))
            return ComparedAnswers("absent", why=str(gone))
    return read_points(said.reply, labels, list(answers))


# Rules


def read_points(reply: Points, labels: Mapping[str, str], seats: Sequence[str]) -> ComparedAnswers:
    """Return the points with seats instead of labels. What the reply does not support is dropped.

    `seats` are in seating order.
    """
    unknown: dict[str, None] = {}
    names = {label: seat.capitalize() for label, seat in labels.items()}

    def list_seats(named: Iterable[str]) -> tuple[str, ...]:
        found = {labels[label] for label in named if label in labels}
        unknown.update(dict.fromkeys(label for label in named if label not in labels))
        return tuple(seat for seat in seats if seat in found)

    def read_text(text: str) -> str:
        return single_line(replace_labels(text, names), MAX_POINT_CHARS)

    def read_sides(row: DisputedRow) -> Iterator[tuple[str, str, str]]:
        for side in row.sides:
            for seat in list_seats(side.answers):
                yield seat, read_text(side.position), read_text(side.assumes)

    differences = [Difference(read_text(row.point), join_sides(read_sides(row))) for row in reply.disputed]
    disputed = list(filter(is_dispute, differences))
    opposed = {"", *(_normalize(one.point) for one in disputed)}
    agreed = [AgreedPoint(read_text(row.point), list_seats(row.answers)) for row in reply.agreed]
    unique = [UniquePoint(seat, read_text(row.point)) for row in reply.unique for seat in list_seats([row.answer])]
    shared = list_seats(reply.shared_conclusion)
    is_unread = reply.is_unread("shared_conclusion") or reply.is_unread("disputed")
    names_others = len(shared) < 2 and not labels.keys() >= set(reply.shared_conclusion)  # a group that does not exist
    return ComparedAnswers(
        "answered",
        tuple(one for one in agreed if len(one.seats) > 1 and _normalize(one.point) not in opposed)[:MAX_AGREED],
        tuple(disputed[:MAX_DISPUTED]),
        tuple(one for one in unique if one.point)[:MAX_UNIQUE],
        None if is_unread or names_others else shared if len(shared) > 1 else (),
        tuple(unknown),
        len(differences) - len(disputed),
    )


def is_dispute(difference: Difference) -> bool:
    """Return whether a point has two positions that different seats hold."""
    positions = {_normalize(side.position) for side in difference.sides}
    return bool(difference.point) and len(positions) > 1


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!")


def assess_points(points: ComparedAnswers, answers: Round[Any]) -> NotedAgreement:
    """Return the agreement of the answers as fields of a verdict; not assessed if the clerk did not compare them."""
    noted = assess_notes(points.as_notes(), round_voices(answers))
    if noted.agreement == "full" and points.dropped:  # the clerk saw a dispute that it did not name well
        noted = noted._replace(agreement="")
    common = tuple(one.point for one in points.agreed if len(one.seats) == len(answers))
    return noted._replace(common=common)


def list_differences(points: Sequence[str], sides: tuple[Side, ...]) -> tuple[Difference, ...]:
    """Return the points on which seats differ; the sides are known for the first."""
    return tuple(Difference(point, sides if n == 0 and len(sides) > 1 else ()) for n, point in enumerate(points))
