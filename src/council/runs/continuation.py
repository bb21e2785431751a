"""Continuations: runs that continue an earlier one, and which earlier turns of the conversation are in the packet."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from council.engine.minutes import Minutes
from council.engine.plan_object import Conversation
from council.errors import UnknownRun, UsageError, wording
from council.planning.intent import ChosenBy, Intent, prefer_protocol
from council.planning.setup import RunSetup
from council.render.report import answer_text
from council.store.interface import Record
from council.store.run_store import RunStore
from council.text_cleanup import single_line
from council.types import RecordedOutcome, RunOutcomes, Skipped

LAST_ANSWER_CHARS = 100_000  # a longer last answer is cut here
FULL_CHARS = 24_000  # of all earlier turns that are sent in full
SHORT_CHARS = 6_000  # of all turns that are sent shortened
SHORT_QUESTION_CHARS, SHORT_ANSWER_CHARS = 300, 600  # of one shortened turn
OUTCOME_CHARS = 400  # of the right value, and of the note on how an answer turned out
RULE = (
    f"the last turn in full; earlier turns in full, newest first, up to {FULL_CHARS:,} characters; then turns as question "
    f"and first paragraph, up to {SHORT_CHARS:,} characters; older turns are left out"
)
LEFT_OUT = f"older turn of the conversation, beyond {FULL_CHARS:,} and {SHORT_CHARS:,} characters"
DEFAULT_TITLE = "Answer of the council"


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of a conversation: its question and answer."""

    run: str
    question: str
    answer: str
    title: str = DEFAULT_TITLE
    outcome: str = ""  # how it turned out, in one sentence or more


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """The earlier turns as files of the packet, newest first, and the runs by form."""

    files: tuple[tuple[str, str], ...]  # name and text
    full: tuple[str, ...]
    short: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(Skipped(_file_name(run), LEFT_OUT) for run in self.left_out)

    def as_json(self) -> Conversation:
        """Return the object `conversation` of the plan."""
        return {"full": list(self.full), "short": list(self.short), "left_out": list(self.left_out), "rule": RULE}


def select_turns(turns: Sequence[Turn]) -> ConversationContext:
    """Apply RULE to the turns of a conversation, newest first. The same turns always give the same bytes."""
    full = [_format_turn(turns, 0), *_fit_turns(turns, 1, FULL_CHARS)]
    shown = [*full, *_fit_turns(turns, len(full), SHORT_CHARS, shorten=True)]
    runs = [turn.run for turn in turns]
    if missing := len(turns) - len(shown):
        before = "The turn before this one is" if missing == 1 else f"The {missing} turns before this one are"
        shown[-1] += f"\n[{before} left out.]\n"
    return ConversationContext(
        tuple((_file_name(run), text) for run, text in zip(runs, shown, strict=False)),
        tuple(runs[: len(full)]),
        tuple(runs[len(full) : len(shown)]),
        tuple(runs[len(shown) :]),
    )


def _file_name(run: str) -> str:
    return f"council {run}"


def _fit_turns(turns: Sequence[Turn], first: int, room: int, *, shorten: bool = False) -> Iterator[str]:
    """Yield the next turns as long as there is room."""
    for place in range(first, len(turns)):
        text = _format_turn(turns, place, shorten=shorten)
        if (room := room - len(text)) < 0:
            return
        yield text


def _format_turn(turns: Sequence[Turn], place: int, *, shorten: bool = False) -> str:
    turn = turns[place]
    question, answer = turn.question, _cut_end(turn.answer, LAST_ANSWER_CHARS)
    if shorten:
        question, answer = single_line(question, SHORT_QUESTION_CHARS), first_paragraph(turn.answer)
    outcome = f"[{turn.outcome}]\n\n" if turn.outcome else ""
    head = f"{_format_position(turns, place, shorten)}# Question\n\n{question}\n\n# {turn.title}\n\n"
    return f"{head}{outcome}{answer}\n"


def _format_position(turns: Sequence[Turn], place: int, shorten: bool) -> str:
    """Return a line with the place of a turn in the conversation; nothing if there is only one turn."""
    if len(turns) == 1:
        return ""
    latest = ", the latest" if place == 0 else ""
    short = ", shortened to the question and the first paragraph of the answer" if shorten else ""
    return f"Turn {len(turns) - place} of {len(turns)} of this conversation{latest}{short}.\n\n"


def first_paragraph(answer: str) -> str:
    """Return the first paragraph that is not a heading, cut at a word."""
    blocks = [block.strip() for block in re.split(r"\n[ \t]*\n", answer.strip())]
    texts = [text for block in blocks if (text := re.sub(r"(?m)^#{1,6} .*\n?", "", block).strip())]
    text = texts[0] if texts else answer.strip()
    if len(text) <= SHORT_ANSWER_CHARS:
        return text
    head = text[: SHORT_ANSWER_CHARS - 2]
    return f"{head[: head.rfind(' ')] if ' ' in head else head} …"


def _cut_end(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n\n[cut here: {len(text) - limit:,} more characters]"


# Stored runs


async def load_conversation(store: RunStore, run: str) -> list[Minutes]:
    """Return the runs of the conversation that ends with this run, newest first. A removed run ends it."""
    found = [await _load_turn(store, run)]
    while (before := str(found[-1].plan.get("continues") or "")) and before not in {one.run for one in found}:
        try:
            found.append(await _load_turn(store, before))
        except UnknownRun:
            break
    return found


async def _load_turn(store: RunStore, run: str) -> Minutes:
    minutes = Minutes.fold((await store.load_since(run, 0))[0])
    minutes.outcomes = await store.load_outcomes(run)
    return minutes


def has_answer(minutes: Minutes) -> bool:
    return minutes.status != "running" and bool(answer_text(minutes).strip())


def read_turns(conversation: Sequence[Minutes]) -> list[Turn]:
    """Return the turns with an answer, newest first. Raise UsageError if the newest run has none."""
    if not has_answer(conversation[0]):
        run = conversation[0].run
        finish = f"finish it with `council resume {run}`"
        fix = wording(python=finish, cli=finish, http="resume it first")
        raise UsageError(f"run {run} has no answer to continue from yet: {fix}", field="continues")
    return [_read_turn(minutes) for minutes in takewhile(has_answer, conversation)]


def _read_turn(minutes: Minutes) -> Turn:
    ruled = [str(minutes.verdict[name]) for name in ("verdict", "outcome", "confidence") if minutes.verdict.get(name)]
    state = "" if minutes.status == "complete" else f"{minutes.status}, "
    title = f"{DEFAULT_TITLE} ({state}{', '.join([str(minutes.plan.get('protocol')), *ruled])})"
    question, outcome = str(minutes.plan.get("question")), _describe_outcome(minutes.outcomes.own)
    return Turn(minutes.run, question, answer_text(minutes).strip(), title, outcome)


def _describe_outcome(outcome: RecordedOutcome | None) -> str:
    """Say to the members how an answer turned out, with the note of the person who recorded it."""
    if outcome is None:
        return ""
    value = f" The right value is {single_line(outcome['value'], OUTCOME_CHARS)}." if outcome["value"] else ""
    note = f" Note of the user: {single_line(outcome['note'], OUTCOME_CHARS)}" if outcome["note"] else ""
    return f"This answer later turned out {outcome['label']}.{value}{note}"


def list_wrong_runs(run: str, outcomes: RunOutcomes) -> list[str]:
    """Return those of a run and the runs that it builds on whose answers turned out wrong."""
    own = {run: outcomes.own["label"]} if outcomes.own else {}
    return [name for name, label in {**own, **outcomes.earlier}.items() if label == "wrong"]


def continue_protocol(intent: Intent, record: Record, known: Collection[str]) -> Intent:
    """Use the protocol and options of the earlier run, unless words or flags chose another. Flags given now count."""
    setup = RunSetup.of(record)
    if intent.chosen_by != ChosenBy.DEFAULT or setup.protocol not in known:
        return intent
    preferred = prefer_protocol(intent, setup.protocol, f"the protocol of {record.run}")
    if preferred.chosen_by is ChosenBy.FLAG:
        return preferred
    return replace(
        preferred,
        task=setup.question.task,
        options=setup.given | intent.options,
        why=f"same as {record.run}, which it continues",
    )
