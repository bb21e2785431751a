"""Evaluation of the ballots: the chair's context, under the chair's labels, and the verdict. No model call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from council.replies import Ballot
from council.rules import ranking as rule
from council.rules.ranking import Table
from council.types import Json, Round, Statement, Verdict, renamed

Names = Mapping[str, str]  # seat → its name in this context
LETTERS = re.compile(r"(?<![\w'’])[A-Z]{1,2}(?![\w'’])")
BEST = 5  # answers in a small chair's prompt
UNRANKED = "No reader compared two answers: only the chair weighed the answers below."


@dataclass(frozen=True, slots=True)
class Slip:
    """One reader's ballot, and the seat behind each of its labels."""

    reader: str
    labels: Mapping[str, str]
    ballot: Ballot

    @property
    def order(self) -> list[str]:
        return [self.labels[label] for label in self.ballot.order]

    def why(self, seat: str, names: Names) -> str:
        return next(self.told(self.ballot.why(label), names) for label, whose in self.labels.items() if whose == seat)

    def told(self, text: str, names: Names) -> str:
        """Replace the ballot's labels in a text; a single letter may be a word, so add what it means as a label."""
        mine = {label: names[seat] for label, seat in self.labels.items()}
        alone = [
            label for label in dict.fromkeys(LETTERS.findall(renamed(text, dict.fromkeys(mine, "")))) if label in mine
        ]
        told = renamed(text, mine)
        return f"{told} (on this ballot {', '.join(f'{label} is {mine[label]}' for label in alone)})" if alone else told


@dataclass(frozen=True)
class Review:
    """The answers of a council and the ballots on them, by reader."""

    answers: Round[None]
    slips: Mapping[str, Slip]

    @cached_property
    def ballots(self) -> dict[str, list[str]]:
        return {reader: slip.order for reader, slip in self.slips.items()}

    @cached_property
    def table(self) -> Table:
        return rule.tally(self.ballots, list(self.answers))

    @cached_property
    def opposed(self) -> dict[str, tuple[list[str], list[str]]]:
        return rule.opposed(self.ballots, list(self.answers))

    def why(self, readers: list[str], seat: str, names: Names) -> list[str]:
        return [self.slips[reader].why(seat, names) for reader in readers]


def whose(responses: Mapping[str, Statement[Any]]) -> dict[str, str]:
    return {label: said.seat.name for label, said in responses.items()}


def for_the_chair(review: Review, responses: Mapping[str, Statement[Any]]) -> Json:
    """Return the disputes, the table and the ballots under the labels that only the chair gets."""
    label_of = {seat: label for label, seat in whose(responses).items()}
    names = {seat: f"Response {label}" for seat, label in label_of.items()}
    rows = [{**row.as_json(), "label": label_of[row.seat]} for row in review.table.standings]
    place = {seat: n for n, seat in enumerate(label_of)}  # by label: seating order would reveal the authors
    slips = sorted(review.slips.values(), key=lambda slip: place.get(slip.reader, len(place)))
    return {
        "table": rows if rule.counted(review.ballots) else [],
        "winner": review.table.winner,
        "differ": review.table.differ,
        "best": {row["label"]: responses[row["label"]] for row in rows[:BEST]},
        "disputes": [slip.told(slip.ballot.dispute, names) for slip in slips if slip.ballot.dispute],
        "opposed": [
            {"label": label_of[seat], "firsts": review.why(firsts, seat, names), "lasts": review.why(lasts, seat, names)}
            for seat, (firsts, lasts) in review.opposed.items()
        ],
        "ballots": [_shown(slip, names, label_of) for slip in slips],
    }  # fmt: skip


def _shown(slip: Slip, names: Names, label_of: Mapping[str, str]) -> Json:
    there = {seat: label for label, seat in slip.labels.items()}
    rows = [{"label": label_of[seat], "there": there[seat], "why": slip.why(seat, names)} for seat in slip.order]
    return {"author": label_of.get(slip.reader), "rows": rows}


def verdict_from(review: Review, answer: str, labels: Mapping[str, dict[str, str]]) -> Verdict:
    """Build the verdict from the chair's answer and the ballots. `labels` are the chair's; the readers' are added."""
    table, cast = review.table, rule.counted(review.ballots)
    names = {name: said.seat.label for name, said in review.answers.items()}
    return Verdict(
        answer,
        confidence=rule.confidence(table),
        caveats=() if cast else (UNRANKED,),
        disagreements=(*_opposed(review, names), *_undecided(review, names)),
        dissent=tuple(_dissent(review, names)),
        details={
            "table": [row.as_json() for row in table.standings], "winner": table.winner, "differ": table.differ,
            "agreement": [pair.as_json() for pair in rule.agreement(cast)],
            "labels": {**{reader: dict(slip.labels) for reader, slip in review.slips.items()}, **labels},
            "ballots": {reader: _ballot(slip, names) for reader, slip in review.slips.items()},
        },
    )  # fmt: skip


def _ballot(slip: Slip, names: Names) -> Json:
    order = [{"seat": seat, "why": slip.why(seat, names)} for seat in slip.order]
    return {"dispute": slip.told(slip.ballot.dispute, names), "order": order}


def _opposed(review: Review, names: Names) -> list[Json]:
    """Return the answers that one reader put first and another last."""
    return [
        {"issue": f"the answer of {seat}", "positions": [*_positions(review, firsts, seat, "first", names), *_positions(review, lasts, seat, "last", names)]}
        for seat, (firsts, lasts) in review.opposed.items()
    ]  # fmt: skip


def _undecided(review: Review, names: Names) -> list[Json]:
    """Return the first choices, if no single answer won."""
    cast = rule.counted(review.ballots)
    if not cast or review.table.winner:
        return []
    held = [one for reader, order in cast.items() for one in _positions(review, [reader], order[0], f"{order[0]} first", names)]  # fmt: skip
    return [{"issue": "which answer is best: no answer is alone in first place", "positions": held}]


def _positions(review: Review, readers: list[str], seat: str, position: str, names: Names) -> list[Json]:
    whys = review.why(readers, seat, names)
    return [{"seat": one, "position": position, "why": why} for one, why in zip(readers, whys, strict=True)]


def _dissent(review: Review, names: Names) -> list[Json]:
    """Return the readers who put the winner last."""
    winner = review.table.winner
    return [
        {"seat": reader, "position": f"{winner} last", "text": review.slips[reader].why(str(winner), names)}
        for reader in rule.against(review.ballots, winner)
    ]
