"""Rules of the adaptive protocol: which seats answer first, whether it may stop, and who argues which points."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

from council.engine.agreement import NotedAgreement, compute_agreement, join_sides, round_voices
from council.engine.records import DifferenceRow
from council.final_answers.comparison import Comparison, compare_all, compare_conclusions
from council.protocols.adaptive.replies import Answer, ArgumentRow, Arguments, Confirmation
from council.protocols.common.check import FoundError
from council.protocols.common.conclusions import LEVELS
from council.protocols.common.issues import SEVERE
from council.types import CheckedError, Difference, Round, Seat, Side, Statement, TrustFact

Reason = Literal[
    # after the first answers
    "agreed",
    "one_answer",
    "one_vendor",
    "no_conclusion",
    "different",
    "not_sure",
    "doubts",
    # after a check
    "confirmed",
    "errors",
    "not_confirmed",
    "not_checked",
]
WHY: Mapping[Reason, str] = {
    "agreed": "{seats} reached the same conclusion with HIGH confidence and without a doubt",
    "one_answer": "only {seats} of the first seats answered",
    "one_vendor": "{seats} have one vendor, so they are one voice",
    "no_conclusion": "{seats} stated no conclusion",
    "different": "{seats} reached different conclusions",
    "not_sure": "{seats} did not answer with HIGH confidence",
    "doubts": "{seats} named a doubt, or did not say that there is none",
    "confirmed": "{seats} reached the same conclusion, and {reader} found no severe error in {author}'s answer",
    "errors": "{reader} found a severe error in {author}'s answer",
    "not_confirmed": "{reader} did not confirm that {author}'s answer reaches the same conclusion as its own",
    "not_checked": "{reader} did not check {author}'s answer",
}
SKIPPED_BY_AGREEMENT = ("draft", "points", "argue", "write")
SKIPPED_BY_POINTS = ("argue", "write")


class FirstAnswers(NamedTuple):
    """Whether the first answers allow a stop, and the seats that are the reason."""

    reason: Reason
    seats: tuple[str, ...]
    comparison: Comparison = "unclear"


class DecisionRow(TypedDict):
    """A decision to stop or to go on, and why."""

    after: str  # the phase
    reason: Reason
    why: str
    skipped: NotRequired[list[str]]  # of a stop


def describe_reason(reason: Reason, seats: Sequence[str], author: str = "", reader: str = "") -> str:
    return WHY[reason].format(seats=_join_names(seats), author=author, reader=reader)


def _join_names(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


# Seats


def order_seats(seats: Sequence[Seat], prices: Mapping[str, float], *, cheap_first: bool) -> list[Seat]:
    """Return the seats in the order in which they are asked: with `cheap_first` by price, those without one last."""
    if not cheap_first:
        return list(seats)
    return sorted(seats, key=lambda seat: prices.get(seat.member, float("inf")))


def choose_first_seats(order: Sequence[Seat]) -> list[Seat]:
    """Return the first seat and the next one of another vendor; the next of any vendor if there is no other."""
    first, *others = order
    second = next((seat for seat in others if seat.vendor != first.vendor), None) or next(iter(others), None)
    return [first, second] if second else [first]


def choose_stand_in(order: Sequence[Seat], answers: Round[Any], asked: Collection[str]) -> Seat | None:
    """Return the seat that is asked in place of an absent one: of another vendor than the seat that answered."""
    vendors = {said.vendor for said in answers.values()}
    return next((seat for seat in order if seat.name not in asked and seat.vendor not in vendors), None)


# Stops


def compare_first_answers(answers: Round[Answer], question: str) -> FirstAnswers:
    """Return whether two sealed answers allow a stop: two vendors, no different conclusions, HIGH, no doubt."""
    names = tuple(answers)
    if len(answers) < 2:
        return FirstAnswers("one_answer", names)
    voices = set(round_voices(answers).values())
    if len(voices) < 2 or len({said.vendor for said in answers.values()}) < 2:
        return FirstAnswers("one_vendor", names)
    replies = {name: said.reply for name, said in answers.items()}
    silent = tuple(name for name, reply in replies.items() if not reply.conclusion)
    if silent:
        return FirstAnswers("no_conclusion", silent)
    one, other = (reply.conclusion for reply in replies.values())
    comparison = compare_conclusions(one, other, question)
    if comparison == "different":
        return FirstAnswers("different", names, comparison)
    unsure = tuple(name for name, reply in replies.items() if reply.confidence != "HIGH")
    if unsure:
        return FirstAnswers("not_sure", unsure, comparison)
    doubting = tuple(name for name, reply in replies.items() if reply.doubts != [])
    return FirstAnswers("doubts", doubting, comparison) if doubting else FirstAnswers("agreed", names, comparison)


def choose_author(answers: Round[Answer], prices: Mapping[str, float]) -> Statement[Answer]:
    """Return the answer of the cheaper member; the first one if a price is unknown."""
    if any(said.seat.member not in prices for said in answers.values()):
        return next(iter(answers.values()))
    return min(answers.values(), key=lambda said: prices[said.seat.member])


def choose_reader(answers: Round[Answer], author: Statement[Answer]) -> Statement[Answer]:
    """Return the answer of the seat that checks another one: the first that another vendor gave, else the first."""
    others = [said for said in answers.values() if said.seat.name != author.seat.name]
    return min(others, key=lambda said: said.vendor == author.vendor)


def choose_supported(answers: Round[Answer], prices: Mapping[str, float]) -> Statement[Answer]:
    """Return the answer that its author is surest of: by confidence, then by doubts, then by price, then the first."""

    def rank(said: Statement[Answer]) -> tuple[int, int, float]:
        reply = said.reply
        level = LEVELS.index(reply.confidence) if reply.confidence in LEVELS else len(LEVELS)
        doubts = 1 if reply.doubts is None else len(reply.doubts)
        return level, doubts, prices.get(said.seat.member, float("inf"))

    return min(answers.values(), key=rank)


def judge_check(confirmation: Confirmation | None) -> Reason:
    """Return whether the check confirms an answer. What it does not say is not confirmed, whatever code can compare."""
    if confirmation is None:
        return "not_checked"
    if confirmation.is_severe:
        return "errors"
    is_confirmed = confirmation.same_conclusion is True and not confirmation.is_unread("errors")
    return "confirmed" if is_confirmed else "not_confirmed"


# Arguments


def count_room(seats: int, asked: int) -> int:
    """Return how many seats may argue: with the chair's call no more calls than collaborative, which makes 2n + 1."""
    return max(0, 2 * seats - asked)


def join_conclusions(answers: Iterable[Statement[Answer]], missing: str = "") -> Difference:
    """Return the conclusions of answers as the point on which they differ, with equal ones joined.

    `missing`: the position of an answer without a conclusion; it is left out if this is empty.
    """
    return Difference(
        "The conclusion", join_sides((one.seat.name, one.reply.conclusion or missing, "") for one in answers)
    )


def list_objections(author: str, reader: str, errors: Iterable[FoundError]) -> list[Difference]:
    """Return the severe errors of a check as points between the author and the reader."""
    return [
        Difference(
            error.flaw,
            (Side((author,), error.hits or "the answer as it stands"), Side((reader,), error.correction or error.flaw)),
        )
        for error in errors
    ]


def choose_speakers(points: Sequence[Difference], room: int, author: str = "") -> list[str]:
    """Return the seats that argue: one of each side, the most important point first, then the others that hold a side.

    Nobody argues if there is room for one side only. `author`: the points are objections to its answer, so only it
    argues.
    """
    if author:
        return [author][:room] if points else []
    if room < 2:
        return []
    chosen: dict[str, None] = {}
    for point in points:
        for side in point.sides:
            if chosen.keys().isdisjoint(side.seats):
                chosen[side.seats[0]] = None
    chosen |= dict.fromkeys(seat for point in points for side in point.sides for seat in side.seats)
    return list(chosen)[:room]


class PointToArgue(TypedDict):
    """A point on which a seat holds a side: its position, and those of the others."""

    id: str
    point: str
    own: Side
    others: list[Side]


def select_points(seat: str, points: Mapping[str, Difference]) -> list[PointToArgue]:
    """Return the points on which a seat holds a side."""
    rows: list[PointToArgue] = []
    for name, point in points.items():
        own = next((side for side in point.sides if seat in side.seats), None)
        if own is not None:
            others = [side for side in point.sides if side is not own]
            rows.append({"id": name, "point": point.point, "own": own, "others": others})
    return rows


def describe_points(points: Mapping[str, Difference]) -> list[str]:
    """Return the points with their sides for the chair's prompt."""
    lines = []
    for name, point in points.items():
        held = [f"{_join_names([seat.capitalize() for seat in side.seats])}: {side.position}" for side in point.sides]
        lines.append(f"{name}: {point.point} ({'; '.join(held)})")
    return lines


def list_open_points(
    points: Mapping[str, Difference], arguments: Mapping[str, Sequence[ArgumentRow]]
) -> list[Difference]:
    """Return the points of which not exactly one side is left after the arguments. A silent side holds its position."""
    found = []
    for name, point in points.items():
        stances = [
            {row.stance for seat in side.seats for row in arguments.get(seat, ()) if row.point == name}
            for side in point.sides
        ]
        if len(stances) - stances.count({"concedes"}) != 1:
            found.append(point)
    return found


def settle_errors(errors: Sequence[CheckedError], rows: Sequence[ArgumentRow]) -> tuple[CheckedError, ...]:
    """Return the errors of a check with what the author says: one that it concedes is corrected, one that it holds
    against is dismissed.

    The points that it argues are the severe errors in their order. The others stay open.
    """
    severe = [error.id for error in errors if error.severity in SEVERE]
    said = {row.point: row for row in rows}
    settled = {error.id: error for error in errors}
    for number, name in enumerate(severe, 1):
        if row := said.get(f"p{number}"):
            is_right = row.stance == "concedes"
            settled[name] = replace(
                settled[name], landed=is_right, why=row.argument, state="corrected" if is_right else "dismissed"
            )
    return tuple(settled.values())


def limit_agreement(
    noted: NotedAgreement,
    voices: Mapping[str, str],
    conclusions: Mapping[str, str],
    base: str | None,
    open_points: Sequence[Difference],
    apart: Collection[str],
    question: str,
) -> NotedAgreement:
    """Return the agreement of the chair's notes without what the seats' own conclusions and arguments contradict.

    `apart`: seats that did not recommend the answer at first.
    """
    shared_by = keep_agreeing(noted.shared_by, conclusions, base, question)
    shared_by = shared_by and tuple(name for name in shared_by if name not in apart)
    is_different = compare_all(list(conclusions.values()), question) == "different"
    is_contested = bool(noted.differences or open_points or is_different)
    facts = noted.trust_facts
    if open_points and not noted.differences:
        facts = (TrustFact("contested_points", open_points[0].point, count=len(open_points)), *facts)
    return noted._replace(
        agreement=compute_agreement(shared_by, is_contested, voices),
        shared_by=shared_by,
        differences=noted.differences or tuple(open_points),
        trust_facts=facts,
    )


def keep_agreeing(
    shared_by: tuple[str, ...] | None, conclusions: Mapping[str, str], base: str | None, question: str
) -> tuple[str, ...] | None:
    """Return the seats that share the answer, without those whose conclusion differs by value from the answer's.

    That is the conclusion of the draft on which the answer is built, or of most seats. None if two of the seats that
    are left differ, because then the answer's conclusion is unknown.
    """
    if shared_by is None:
        return None
    reference = conclusions.get(base or "") or _find_majority(conclusions, question)
    kept = tuple(
        name for name in shared_by if compare_conclusions(conclusions[name], reference, question) != "different"
    )
    return None if compare_all([conclusions[name] for name in kept], question) == "different" else kept


def _find_majority(conclusions: Mapping[str, str], question: str) -> str:
    """Return a conclusion that more than half of the seats reach; empty if there is none."""
    texts = list(conclusions.values())
    for text in texts:
        if 2 * sum(compare_conclusions(text, other, question) == "same" for other in texts) > len(texts):
            return text
    return ""


class SeatArgument(TypedDict):
    """What a seat said on a disputed point."""

    seat: str
    stance: Literal["holds", "concedes"]
    argument: str


class ArguedPoint(DifferenceRow):
    """A disputed point with the arguments, as it is stored."""

    id: str
    arguments: list[SeatArgument]


class Decisions(TypedDict):
    """The decisions of a run, as they are stored."""

    stopped: DecisionRow | None
    continued: list[DecisionRow]


class AdaptiveDetails(Decisions):
    """The details of a verdict; a run that stopped early argued nothing."""

    argued: NotRequired[list[ArguedPoint]]


def list_argued_points(points: Mapping[str, Difference], arguments: Round[Arguments]) -> list[ArguedPoint]:
    """Return the points with their sides and what was argued, for the report."""
    return [
        {
            "id": name,
            "point": point.point,
            "sides": [
                {"seats": list(side.seats), "position": side.position, "assumes": side.assumes} for side in point.sides
            ],
            "arguments": [
                {"seat": seat, "stance": row.stance, "argument": row.argument}
                for seat, said in arguments.items()
                for row in said.reply.points
                if row.point == name
            ],
        }
        for name, point in points.items()
    ]
