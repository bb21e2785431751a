"""How decisions turned out: which seats of a run were right, and the track records of members and perspectives."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict, get_args

from council.engine.minutes import Minutes
from council.errors import UsageError
from council.packet.secret_filter import redact_text
from council.settings.schema import quote_value
from council.store.interface import DecisionOutcome, RunStatus, SeatOutcome, StoredOutcome
from council.store.run_store import RunStore
from council.text_cleanup import single_line
from council.types import OutcomeLabel

LABELS: tuple[OutcomeLabel, ...] = get_args(OutcomeLabel)
MAX_NOTE_CHARS = 2000
MAX_VALUE_WORDS = 3  # a longer text without a line "Answer: …" is not itself a value
STATED = {"HIGH": 0.9, "MEDIUM": 0.7, "LOW": 0.5}  # probabilities behind stated confidence


class TrackRecordObject(TypedDict):
    """A track record as it is shown; of a member also by its perspectives."""

    right: int
    labelled: int
    brier: float | None
    perspectives: NotRequired[dict[str, TrackRecordObject]]


class OutcomeObject(StoredOutcome):
    """The object `council.outcome/1`. `earlier` are the outcomes that this one has replaced, oldest first."""

    schema: Literal["council.outcome/1"]
    earlier: list[DecisionOutcome]


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """How often a member or a perspective was right. `brier` is None if it never stated a confidence."""

    right: int = 0
    labelled: int = 0
    brier: float | None = None

    def as_json(self) -> TrackRecordObject:
        brier = None if self.brier is None else round(self.brier, 4)
        return {"right": self.right, "labelled": self.labelled, "brier": brier}


async def label_run(store: RunStore, run: str, label: str, note: str = "") -> OutcomeObject:
    """Store whether the answer of a run was right, or which value was right, and return what is stored of the run."""
    row = make_outcome(Minutes.fold((await store.load(run)).entries), label, note)
    await store.save_outcome(run, row)
    return {"schema": "council.outcome/1", "run": run, **row, "earlier": await _list_earlier(store, run)}


def make_outcome(minutes: Minutes, label: str, note: str = "") -> DecisionOutcome:
    """Return how a decision turned out. Raise UsageError if there is none, or if a value cannot be compared with it."""
    run = minutes.run
    if minutes.status != RunStatus.COMPLETE:
        raise UsageError(
            f"run {run} is {minutes.status}, so it has no answer to label: complete it with council resume {run}"
        )
    word = label.strip().lower()
    if not word:
        raise UsageError('the outcome is empty: say right, wrong, or the value that was right, such as "42"')
    value = "" if word in LABELS else label.strip()
    seats = judge_seats(minutes, word == "right", value)
    answer = str(minutes.verdict.get("answer") or "")
    is_right = _holds_value(answer, value, _question_of(minutes)) if value else word == "right"
    if is_right is None:
        raise UsageError(
            f"run {run} has no final answer that can be compared with {quote_value(value[:60])}: say right or wrong"
        )
    return {
        "at": time.time(),
        "label": "right" if is_right else "wrong",
        "value": redact_text(value)[:MAX_NOTE_CHARS],
        "note": redact_text(note.strip())[:MAX_NOTE_CHARS],
        "seats": seats,
    }


async def read_outcome(store: RunStore, run: str) -> OutcomeObject | None:
    """Return the outcome of a run; None if there is none."""
    found = await store.list_outcomes(run)
    return {"schema": "council.outcome/1", **found[0], "earlier": await _list_earlier(store, run)} if found else None


async def _list_earlier(store: RunStore, run: str) -> list[DecisionOutcome]:
    rows = await store.list_earlier_outcomes(run)
    return [{name: row[name] for name in DecisionOutcome.__annotations__} for row in rows]  # type: ignore[literal-required, misc]


# Which seats were right


def judge_seats(minutes: Minutes, is_right: bool, value: str = "") -> list[SeatOutcome]:
    """Return the seats that are known to have been right or wrong.

    A seat that shared the answer was right if the answer was. If the answer was wrong, a seat with another answer may
    have been wrong too, so it is left out. With the right value, each seat's last statement is compared with it.
    """
    shared = find_positions(minutes)
    rows: list[SeatOutcome] = []
    for seat in minutes.planned_seats:
        said = minutes.statements_of(seat.name)
        if not said:
            continue
        right = (
            _holds_value(said[-1].said, value, _question_of(minutes))
            if value
            else _was_right(shared.get(seat.name), is_right)
        )
        if right is not None:
            confidence = next((one.reply.get("confidence") for one in reversed(said) if one.reply), None)
            rows.append(
                {
                    "seat": seat.name,
                    "perspective": seat.perspective,
                    "member": seat.served_by or seat.model,
                    "right": right,
                    "confidence": _probability(confidence),
                }
            )
    return rows


def _question_of(minutes: Minutes) -> str:
    return str(minutes.plan.get("question") or "")


def _was_right(shares: bool | None, is_right: bool) -> bool | None:
    return shares == is_right if shares or (shares is not None and is_right) else None


def find_positions(minutes: Minutes) -> dict[str, bool]:
    """Return by seat whether it shared the answer; a seat is missing if the record does not say.

    The verdict of every protocol says it in one of four forms: the notes of the chair, the referee's list, the
    attackers' stances, or the verdicts of judges.
    """
    verdict, details = minutes.verdict, minutes.verdict.get("details") or {}
    names = [seat.name for seat in minutes.planned_seats if seat.statements]
    shared_by = verdict.get("shared_by")
    if shared_by is not None and not verdict.get("verdict"):
        holders = [*shared_by, *verdict["joined"]]
        return {name: name in holders for name in names}
    notes = verdict.get("notes")
    listed = notes.get("recommendation_shared_by") if notes else None
    if listed is None:
        listed = (details.get("referee") or {}).get("shared_by")
    if listed is not None:
        return {name: name in listed for name in names}
    if stances := details.get("stances"):
        known = {name: stance == "STAND" for name, stance in stances.items() if stance in ("STAND", "REJECTED")}
        return {**known, details["leader"]: True} if details.get("leader") else known
    replies = {name: [said.reply for said in minutes.statements_of(name) if said.reply] for name in names}
    own = {name: found[-1].get("verdict") if found else None for name, found in replies.items()}
    if verdict.get("verdict") and any(own.values()):
        return {name: word == verdict["verdict"] for name, word in own.items() if word}
    if verdict.get("agreement") == "full":
        return dict.fromkeys(names, True)
    return {}


def _holds_value(text: str, value: str, question: str) -> bool | None:
    """Return whether the final answer of a text is this value; None if the text has no final answer that tells."""
    # Not loaded for runs without a labelled value.
    from council.final_answers.finder import find_last_answer
    from council.final_answers.marks import Question, make_key, mark_reply

    if not find_last_answer(text) and len(text.split()) > MAX_VALUE_WORDS:
        return None
    mark = mark_reply(text, make_key(value, Question(question)))
    return mark == "right" if mark in ("right", "wrong") else None


def _probability(confidence: Any) -> float | None:
    if isinstance(confidence, bool) or confidence is None:
        return None
    if isinstance(confidence, int | float):
        return min(1.0, max(0.0, float(confidence)))
    return STATED.get(str(confidence).upper())


# Records

MIN_OUTCOMES = 30  # labelled outcomes before a track record changes a weight
MAX_WEIGHT = 4.0  # log-odds of about 98 % right


def weigh_record(right: int, labelled: int) -> float:
    """Return the weight of a voter with this track record: the log-odds of being right, smoothed by one of each.

    With fewer than 30 labelled outcomes the weight is 1. A voter that is wrong more often than right has weight 0.
    """
    if labelled < MIN_OUTCOMES:
        return 1.0
    share = (right + 1) / (labelled + 2)
    return min(MAX_WEIGHT, max(0.0, math.log(share / (1 - share))))


async def load_weights(store: RunStore) -> dict[str, float]:
    """Return the weight of every member with enough labelled outcomes; all others count 1."""
    found = summarize_records(list_seats(await store.list_outcomes()))
    known = {name: one for name, one in found.items() if one.labelled >= MIN_OUTCOMES}
    return {name: round(weigh_record(one.right, one.labelled), 4) for name, one in known.items()}


def summarize_records(
    seats: Iterable[SeatOutcome], by: Literal["member", "perspective"] = "member"
) -> dict[str, TrackRecord]:
    """Return the track records by `member`, or by `perspective`; seats without one are left out."""
    groups: dict[str, list[SeatOutcome]] = {}
    for seat in seats:
        if name := seat.get(by):
            groups.setdefault(name, []).append(seat)
    records = {}
    for name, group in groups.items():
        stated = [(share, row["right"]) for row in group if (share := row.get("confidence")) is not None]
        brier = sum((share - right) ** 2 for share, right in stated) / len(stated) if stated else None
        records[name] = TrackRecord(sum(row["right"] for row in group), len(group), brier)
    return records


def list_seats(outcomes: Iterable[DecisionOutcome]) -> list[SeatOutcome]:
    return [seat for outcome in outcomes for seat in outcome["seats"]]


def format_outcome(row: StoredOutcome) -> list[str]:
    """Return the stored outcome in two lines."""
    value = f" (the right value is {single_line(row['value'], 80)})" if row["value"] else ""
    right = [seat["seat"] for seat in row["seats"] if seat["right"]]
    wrong = [seat["seat"] for seat in row["seats"] if not seat["right"]]
    parts = [f"{word}: {', '.join(names)}" for word, names in (("right", right), ("wrong", wrong)) if names]
    known = "; ".join(parts) or "the record does not say which seats shared the answer"
    return [f"{row['run']}: the answer was {row['label']}{value}", f"seats: {known}"]
