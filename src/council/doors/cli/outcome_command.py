"""The command `outcome`: record how decisions turned out, of one run or of those without an outcome."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import click

from council.doors.cli.params import AGE, make_flag, print_json, print_result
from council.doors.cli.runner import has_terminal, make_command, with_convener
from council.doors.cli.tables import fit_table, format_table
from council.doors.cli.terminal_input import TerminalReader
from council.doors.cli.views import write_lines, write_status
from council.engine.layout import format_count
from council.errors import UnknownRun, UsageError, message_for
from council.render.text_layout import cut, terminal_size
from council.runs.continuation import first_paragraph
from council.runs.history import LabelledRun
from council.runs.service import Convener
from council.runs.track_record import LABELS, format_outcome, make_outcome, read_outcome
from council.store.interface import OpenDecision
from council.text_cleanup import clean, single_line

DEFAULT_AGE = timedelta(days=7)  # a decision needs time to turn out
ANSWER_LINES = 2
MAX_CELL_CHARS = 60
PROMPT = "right, wrong, the right value, skip or quit [skip]: "
NOTE_PROMPT = "note, empty for none: "
WORDS = {"r": "right", "w": "wrong", "s": "skip", "q": "quit", "": "skip"}


def outcome_command() -> click.Command:
    older = "Without RUN: ask about decisions older than this, such as 30d or 0d; decisions need time to turn out. Default: 7d."
    params = [
        click.Argument(["run"], required=False, metavar="[RUN]"),
        click.Argument(["label"], required=False, metavar="[right|wrong|VALUE]"),
        click.Option(["--note"], default="", metavar="TEXT", help="Keep this text with the outcome, and show it."),
        click.Option(["--older-than"], type=AGE, metavar="AGE", help=older),
        make_flag("--here", help="Without RUN: the decisions of this folder only."),
        click.Option(["--limit"], type=click.IntRange(min=1), metavar="N", help="Without RUN: at most N decisions."),
    ]
    return make_command("outcome", record_outcome, *params)


@with_convener
async def record_outcome(
    convener: Convener, run: str | None, label: str | None, note: str, json: bool, **params: Any
) -> int:
    if run is None:
        if note:
            raise UsageError(
                f'--note "{note}" needs a run and its outcome: use council outcome RUN wrong --note "{note}"'
            )
        return await _record_open_decisions(convener, as_json=json, **params)
    if any(params[name] for name in ("older_than", "here", "limit")):
        raise UsageError(f"--older-than, --here and --limit choose among all decisions: leave them out with {run}")
    if label is None:
        row = await read_outcome(convener.store, (await convener.run_state(run)).run)
        if row is None:
            raise UsageError(f"run {run} has no outcome: record one with council outcome {run} right, wrong or VALUE")
    else:
        recorded = await convener.record_outcome(run, label, note)
        row = recorded.row
        _warn_outdated(recorded)
    return print_result(json, row, map(clean, format_outcome(row)), write_lines)


def _warn_outdated(recorded: LabelledRun) -> None:
    if path := recorded.outdated_report:
        again = f"council report {recorded.row['run']}"
        write_status(f"! {path} was changed or cannot be written, so it does not say this: {again} prints it anew")


# Decisions without an outcome


async def _record_open_decisions(
    convener: Convener, *, older_than: timedelta | None, here: bool, limit: int | None, as_json: bool, **params: Any
) -> int:
    """Ask at a terminal how the oldest decisions turned out. Elsewhere print them."""
    age = DEFAULT_AGE if older_than is None else older_than
    before = time.time() - age.total_seconds()
    rows = await convener.list_open_decisions(before, here=here, limit=limit)
    if as_json:
        print_json(rows)
        return 0
    newer = await convener.count_open_decisions(here=here) - await convener.count_open_decisions(before, here=here)
    if rows and has_terminal():
        await DecisionPrompter(convener, rows).run()
    elif rows:
        click.echo("\n".join(_format_list(rows)))
        write_status("record one with council outcome RUN right, wrong or VALUE")
    else:
        click.echo("no decisions without an outcome")
    if newer:
        days = format_count(age.days, "day")
        write_status(f"{format_count(newer, 'decision')} of the last {days} not asked about: use --older-than 0d")
    return 0


def _format_list(rows: Sequence[OpenDecision]) -> list[str]:
    cells = [
        [
            row["run"],
            _format_date(row["created"]),
            row["trust"] or "",
            cut(single_line(clean(row["question"])), MAX_CELL_CHARS),
            cut(summarize_answer(row["answer"]), MAX_CELL_CHARS),
        ]
        for row in rows
    ]
    return fit_table(format_table(["RUN", "STARTED", "TRUST", "QUESTION", "ANSWER"], cells), sys.stdout)


def _format_date(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at))


def summarize_answer(answer: str) -> str:
    """Return the final answer of a text if it names one in a line of its own, else its first paragraph, in one line."""
    from council.final_answers.finder import find_last_answer  # not loaded for other commands

    return single_line(clean(find_last_answer(answer) or first_paragraph(answer)))


@dataclass(slots=True)
class DecisionPrompter:
    """Ask how decisions turned out, one after another. Each outcome is stored at once, so Ctrl-C keeps it."""

    convener: Convener
    rows: Sequence[OpenDecision]
    reader: TerminalReader = field(default_factory=TerminalReader)
    recorded: int = 0
    skipped: int = 0

    async def run(self) -> None:
        try:
            with contextlib.closing(self.reader):
                for place, row in enumerate(self.rows, 1):
                    write_status("\n".join(self._format_decision(place, row)))
                    if not await self._ask(row):
                        break
        except asyncio.CancelledError:
            write_status("")  # Ctrl-C leaves the cursor behind the prompt
            raise
        finally:
            left = len(self.rows) - self.recorded - self.skipped
            write_status(f"{self.recorded} recorded, {self.skipped} skipped, {left} left")

    def _format_decision(self, place: int, row: OpenDecision) -> list[str]:
        width = terminal_size(sys.stderr)[0]
        trust = [f"trust {row['trust']}"] if row["trust"] else []
        head = [f"{place} of {len(self.rows)}", row["run"], _format_date(row["created"]), *trust]
        texts = (f"question: {single_line(clean(row['question']))}", f"answer: {summarize_answer(row['answer'])}")
        return [" · ".join(head), *(cut(text, ANSWER_LINES * width - 1) for text in texts)]

    async def _ask(self, row: OpenDecision) -> bool:
        """Ask until one decision has an outcome or is skipped. Return False to stop."""
        run = row["run"]
        while True:
            typed = await self._read_line(PROMPT)
            word = "quit" if typed is None else WORDS.get(typed.casefold(), typed)
            if word.casefold() == "quit":
                return False
            try:
                if word.casefold() == "skip":
                    await self.convener.store.skip_outcome(run)
                    self.skipped += 1
                    return True
                make_outcome(await self.convener.minutes(run), word)  # refuses a value before a note is typed
                note = "" if word.casefold() == LABELS[0] else await self._read_line(NOTE_PROMPT)
                _warn_outdated(await self.convener.record_outcome(run, word, note or ""))
            except UnknownRun:
                write_status(f"run {run} was removed since")
                return True
            except UsageError as error:  # the value cannot be compared with the answer
                write_status(message_for(error, "cli"))
                continue
            self.recorded += 1
            return True

    async def _read_line(self, prompt: str) -> str | None:
        """Return the typed line; None at the end of the input."""
        click.echo(prompt, err=True, nl=False)
        line = await self.reader.read_line()
        return None if line is None else line.strip()
