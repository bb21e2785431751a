"""Ranking: answer, rank the other answers blind, and synthesise from the answers and ballots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict

from council.engine.agreement import assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, response_names
from council.engine.records import Disagreement, Dissent, SeatPosition
from council.protocols.ranking import PROTOCOL
from council.protocols.ranking import rules as rule
from council.protocols.ranking.replies import Ballot
from council.protocols.ranking.rules import LabelledStanding, RankingDetails, RankingTable
from council.text_cleanup import replace_labels
from council.types import Round, Seat, Statement, Verdict

SeatNames = Mapping[str, str]  # seat → its name in this context
LABEL_LETTERS = re.compile(r"(?<![\w'’])[A-Z]{1,2}(?![\w'’])")
MAX_SMALL_CHAIR_ANSWERS = 5  # answers in a small chair's prompt
UNRANKED_CAVEAT = "No reader compared two answers: only the chair weighed the answers below."


@dataclass(frozen=True, slots=True)
class ReaderBallot:
    """One reader's ballot, and the seat behind each of its labels."""

    reader: str
    labels: Mapping[str, str]
    ballot: Ballot

    @property
    def order(self) -> list[str]:
        return [self.labels[label] for label in self.ballot.order]

    def reason_for(self, seat: str, names: SeatNames) -> str:
        return next(
            self.relabel(self.ballot.reason_for(label), names) for label, whose in self.labels.items() if whose == seat
        )

    def relabel(self, text: str, names: SeatNames) -> str:
        """Replace the ballot's labels in a text; a single letter may be a word, so add what it means as a label."""
        mine = {label: names[seat] for label, seat in self.labels.items()}
        letters = LABEL_LETTERS.findall(replace_labels(text, dict.fromkeys(mine, "")))
        alone = ", ".join(f"{label} is {mine[label]}" for label in dict.fromkeys(letters) if label in mine)
        return replace_labels(text, mine) + (f" (on this ballot {alone})" if alone else "")


@dataclass(frozen=True)
class Review:
    """The answers of a council and the ballots on them, by reader."""

    answers: Round[None]
    reader_ballots: Mapping[str, ReaderBallot]
    weights: Mapping[str, float] | None = None  # of the readers; None: all count the same

    @cached_property
    def ballots(self) -> dict[str, list[str]]:
        return {reader: slip.order for reader, slip in self.reader_ballots.items()}

    @cached_property
    def table(self) -> RankingTable:
        return rule.tally(self.ballots, list(self.answers), self.weights)

    @cached_property
    def split_answers(self) -> dict[str, tuple[list[str], list[str]]]:
        return rule.find_split_answers(self.ballots, list(self.answers))

    def reasons(self, readers: list[str], seat: str, names: SeatNames) -> list[str]:
        return [self.reader_ballots[reader].reason_for(seat, names) for reader in readers]


def seats_by_label(responses: Mapping[str, Statement[Any]]) -> dict[str, str]:
    return {label: said.seat.name for label, said in responses.items()}


class SplitAnswer(TypedDict):
    """An answer that some readers put first and others last, with their reasons."""

    label: str
    firsts: list[str]
    lasts: list[str]


class ChairBallotRow(TypedDict):
    """An answer on a ballot: its labels for the chair and for the reader, and the reason."""

    label: str
    there: str
    why: str


class ChairBallot(TypedDict):
    """A ballot as the chair sees it; the author is unknown if the reader gave no answer."""

    author: str | None
    rows: list[ChairBallotRow]


class ChairContext(TypedDict):
    """The ranking in the chair's prompt, under the labels that only the chair gets."""

    table: list[LabelledStanding]
    winner: str | None
    differ: bool
    best: dict[str, Statement[Any]]
    disputes: list[str]
    opposed: list[SplitAnswer]
    ballots: list[ChairBallot]


def chair_context(review: Review, responses: Mapping[str, Statement[Any]]) -> ChairContext:
    """Return the disputes, the table and the ballots under the labels that only the chair gets."""
    label_of = {seat: label for label, seat in seats_by_label(responses).items()}
    names = {seat: f"Response {label}" for seat, label in label_of.items()}
    rows: list[LabelledStanding] = [{**row.as_json(), "label": label_of[row.seat]} for row in review.table.standings]
    place = {seat: n for n, seat in enumerate(label_of)}  # by label: seating order would reveal the authors
    slips = sorted(review.reader_ballots.values(), key=lambda slip: place.get(slip.reader, len(place)))
    reasons = review.reasons
    return {
        "table": rows if rule.filter_ballots(review.ballots) else [],
        "winner": review.table.winner,
        "differ": review.table.differ,
        "best": {row["label"]: responses[row["label"]] for row in rows[:MAX_SMALL_CHAIR_ANSWERS]},
        "disputes": [slip.relabel(slip.ballot.dispute, names) for slip in slips if slip.ballot.dispute],
        "opposed": [
            {"label": label_of[seat], "firsts": reasons(firsts, seat, names), "lasts": reasons(lasts, seat, names)}
            for seat, (firsts, lasts) in review.split_answers.items()
        ],
        "ballots": [_chair_ballot(slip, names, label_of) for slip in slips],
    }


def _chair_ballot(ballot: ReaderBallot, names: SeatNames, label_of: Mapping[str, str]) -> ChairBallot:
    there = {seat: label for label, seat in ballot.labels.items()}
    rows: list[ChairBallotRow] = [
        {"label": label_of[seat], "there": there[seat], "why": ballot.reason_for(seat, names)} for seat in ballot.order
    ]
    return {"author": label_of.get(ballot.reader), "rows": rows}


def build_verdict(review: Review, answer: str, labels: Mapping[str, dict[str, str]]) -> Verdict:
    """Build the verdict from the chair's answer and the ballots. `labels` are the chair's; the readers' are added."""
    table, cast = review.table, rule.filter_ballots(review.ballots)
    names = {name: said.seat.label for name, said in review.answers.items()}
    details: RankingDetails = {
        "table": [row.as_json() for row in table.standings],
        "winner": table.winner,
        "differ": table.differ,
        "agreement": rule.reader_agreement(cast),
        "labels": {**{reader: dict(slip.labels) for reader, slip in review.reader_ballots.items()}, **labels},
        "ballots": {
            reader: {
                "dispute": slip.relabel(slip.ballot.dispute, names),
                "order": [{"seat": seat, "why": slip.reason_for(seat, names)} for seat in slip.order],
            }
            for reader, slip in review.reader_ballots.items()
        },
    }
    return Verdict(
        answer,
        result=rule.describe_outcome(table),
        caveats=() if cast else (UNRANKED_CAVEAT,),
        disagreements=(*_split_answers_json(review, names), *_tie_json(review, names)),
        dissent=tuple(_dissent_json(review, names)),
        details=dict(details),
    )


def _split_answers_json(review: Review, names: SeatNames) -> list[Disagreement]:
    """Return the answers that one reader put first and another last."""
    return [
        {
            "issue": f"the answer of {seat}",
            "positions": [
                *_positions_json(review, firsts, seat, "first", names),
                *_positions_json(review, lasts, seat, "last", names),
            ],
        }
        for seat, (firsts, lasts) in review.split_answers.items()
    ]


def _tie_json(review: Review, names: SeatNames) -> list[Disagreement]:
    """Return the first choices, if no single answer won."""
    held: list[SeatPosition] = []
    for reader, order in rule.filter_ballots(review.ballots).items():
        held += _positions_json(review, [reader], order[0], f"{order[0]} first", names)
    if not held or review.table.winner:
        return []
    return [{"issue": "which answer is best: no answer is alone in first place", "positions": held}]


def _positions_json(
    review: Review, readers: list[str], seat: str, position: str, names: SeatNames
) -> list[SeatPosition]:
    whys = review.reasons(readers, seat, names)
    return [{"seat": one, "position": position, "why": why} for one, why in zip(readers, whys, strict=True)]


def _dissent_json(review: Review, names: SeatNames) -> list[Dissent]:
    """Return the readers who put the winner last."""
    winner = review.table.winner
    return [
        {
            "seat": reader,
            "position": f"{winner} last",
            "text": review.reader_ballots[reader].reason_for(str(winner), names),
        }
        for reader in rule.readers_who_put(review.ballots, winner, -1)
    ]


async def ranking(
    council: Council,
    roster: str | None = None,
    weights: str = "equal",
    record_weights: Mapping[str, float] | None = None,
) -> Verdict:
    """Collect answers, have each seat rank the others blind, and synthesise."""
    async with council.phase("answer"):
        answers = await council.poll(council.members, "ranking/answer", quorum=PROTOCOL.quorum)
    async with council.phase("rank"):
        ballots = await collect_ballots(council, answers)
        review = Review(answers, ballots, _weigh_readers(council, record_weights or {}) if weights != "equal" else None)
    cast = rule.filter_ballots(review.ballots)
    council.state.stances.update({reader: f"{order[0]} first" for reader, order in cast.items()})
    async with council.phase("synthesise"):
        responses = council.assign_labels(list(answers.values()), council.chair)
        shown = {council.chair.name: seats_by_label(responses)}
        council.so_far(replace(build_verdict(review, "", shown), caveats=()))  # needs no chair
        synthesis = await council.ask(
            council.chair, "ranking/synthesise", responses=responses, **chair_context(review, responses)
        )
    labels = shown[council.chair.name]
    notes = parse_notes(
        synthesis.outcome.text, response_names(labels), {key: one.seat.label for key, one in responses.items()}
    )
    noted = assess_notes(notes, round_voices(answers))
    verdict = build_verdict(review, synthesis.text, shown)
    is_unanimous = noted.agreement == "full"
    facts = (*noted.trust_facts, *rule.list_trust_facts(review.table, is_unanimous=is_unanimous))
    confidence = rule.ranking_confidence(review.table, is_unanimous=is_unanimous)
    return replace(verdict, confidence=confidence, notes=notes, **(noted._asdict() | {"trust_facts": facts}))


def _weigh_readers(council: Council, by_member: Mapping[str, float]) -> dict[str, float] | None:
    """Return the weight of each reader by its member's track record, and note it. None if no member has one."""
    known = {seat.name: by_member[seat.member] for seat in council.members if seat.member in by_member}
    if not known:
        council.note("all ballots count the same", why="no member has 30 labelled outcomes: see council outcome")
        return None
    told = ", ".join(f"{name} {weight:.2f}" for name, weight in known.items())
    council.note("ballots are weighted by track record", why=f"{told}; others 1")
    return known


async def collect_ballots(council: Council, answers: Round[None]) -> dict[str, ReaderBallot]:
    """Ask every seat to rank the others' answers, even if it gave none itself; an unreadable ballot is absent."""
    labels: dict[str, dict[str, str]] = {}

    async def rank_others(apart: Council, reader: Seat) -> Statement[Ballot]:
        responses = apart.assign_labels(answers.others(reader), reader)
        labels[reader.name] = seats_by_label(responses)
        return await apart.ask(
            reader, "ranking/rank", reply=Ballot, choices={"label": list(responses)}, responses=responses
        )

    heard = await council.gather(council.members, rank_others, quorum=0)
    return {name: ReaderBallot(name, labels[name], said.reply) for name, said in heard.items()}
