"""Files and events at the end of a run: the report, each judge's analysis, and the vote events that name them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from council import events as ev
from council import filing
from council.convene.washing import redact_event
from council.events import Entry
from council.ledger import Ledger
from council.minutes import Minutes
from council.planning import question_from
from council.record import Record, Store
from council.render.analysis import render_analysis
from council.render.markdown import render_document
from council.render.report import build_report, dump_report
from council.types import Verdict


async def close_failed_run(store: Store, record: Record, reason: str, stopped: str = "") -> None:
    """Close a run that cannot be executed, without a report file: its folder may be missing."""
    ledger = Ledger(store, record, redact=redact_event)
    ending = ev.Closed(
        "incomplete" if stopped else "failed", asdict(Verdict("")), dict(ledger.calls), stopped, "", reason
    )
    await ledger.close(ending, lambda entries: dump_report(build_report(Minutes.fold(entries))).decode())


def write_report_files(record: Record, minutes: Minutes) -> None:
    """Write the report, and each judge's analysis beside it."""
    folder = Path(record.folder)
    by_key = {f"{said.phase}/{said.seat}": said for said in minutes.statements}
    for key, path in minutes.files.items():
        filing.write_atomically(folder / path, render_analysis(minutes, by_key[key]))
    filing.write_atomically(folder / minutes.report_path, render_document(minutes))


def emit_votes(ledger: Ledger, report_dir: str) -> None:
    """Emit an event with the verdict and the analysis path of each judge that has no file yet."""
    record, minutes = ledger.record, Minutes.fold(ledger.record.entries)
    question = question_from(record.setup)
    folder = filing.open_report_folder(Path(record.folder), report_dir)
    for said in minutes.statements:
        reply = said.reply or {}
        if question.task != "validate" or "verdict" not in reply or f"{said.phase}/{said.seat}" in minutes.files:
            continue
        seat = f"{said.seat}-r2" if said.phase == "r2" else said.seat
        path = filing.reserve_report_path(folder, question.target or question.text, seat, record.created, record.run)
        shown = os.path.relpath(path, record.folder)
        ledger.emit(ev.Voted(said.seat, said.phase, reply["verdict"], reply.get("confidence", ""), shown))


def choose_report_path(record: Record, report_dir: str) -> str:
    """Return the report path relative to the run's folder: the earlier one of a resumed run, or a new one."""
    folder = filing.open_report_folder(Path(record.folder), report_dir)
    if known := _last_report_path(record.entries):
        return known
    question = question_from(record.setup)
    kind = record.setup["protocol"] if question.task == "ask" else question.task
    if record.setup["options"].get("quick") or record.setup["protocol"] == "quick":
        kind = "quick"
    path = filing.reserve_report_path(folder, kind, question.target or question.text, record.created, record.run)
    return os.path.relpath(path, record.folder)


def _last_report_path(entries: Sequence[Entry]) -> str:
    paths = [entry.event.report_path for entry in entries if isinstance(entry.event, ev.Closed)]
    return paths[-1] if paths else ""
