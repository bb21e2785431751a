"""Report files: safe names, reserved paths and atomic writes, with secrets masked in everything that is shown."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from council import events as ev
from council.engine.ledger import Ledger
from council.engine.minutes import Minutes
from council.engine.records import ReportObject
from council.errors import StoreError
from council.events import Entry
from council.packet.secret_filter import PromptRedactor, redact_value
from council.planning.setup import RunSetup
from council.protocols import Protocol, find_protocol
from council.render.markdown import render_document_parts
from council.render.report import encode_report
from council.settings.private_files import make_named_folder, make_private_folder, open_private_handle
from council.store.interface import LedgerStore, Record
from council.text_cleanup import to_latin
from council.types import Json, Verdict

StrPath = str | os.PathLike[str]
MAX_SLUG_CHARS = 60
PROJECT_REPORTS = ".agents/council"  # of protocols that keep their reports in the folder of the run
DATA_REPORTS = "reports"  # in the data folder


@lru_cache(maxsize=64)
def slugify(text: str) -> str:
    """Return lower-case Latin letters, digits and hyphens, at most 60 characters, cut at a word."""
    text = "stdin" if text.strip() == "-" else text
    words = [word for word in re.split(r"[^a-z0-9]+", to_latin(text)) if word]
    slug = ""
    for word in words:
        if len(slug) + len(word) + 1 > MAX_SLUG_CHARS:
            break
        slug = f"{slug}-{word}" if slug else word
    return slug or (words[0][:MAX_SLUG_CHARS] if words else "question")


def choose_report_dir(protocol: Protocol, task: str, report_dir: str | None, data: Path) -> str:
    """Return the report folder: as configured, relative to the run's, else by the protocol and the task."""
    if report_dir:
        return str(Path(report_dir).expanduser())
    if protocol.reports_in_project and task != "ask":
        return PROJECT_REPORTS
    return f"{data if data.is_absolute() else data.absolute()}/{DATA_REPORTS}"


def open_report_folder(root: Path, name: str) -> Path:
    """Create the report folder if it is missing, and check that files can be written there."""
    folder = create_report_folder(root, name)
    try:
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise _folder_error(folder, error) from error


def create_report_folder(root: Path, name: str) -> Path:
    """Create the report folder, for this user only. `.agents/council` gets a .gitignore: findings are private."""
    folder = root / name
    try:
        if link := _find_link(root, folder):
            raise StoreError(f'"{link}" is a link, and reports are not written through links: make it a real folder')
        if not os.path.isdir(folder):  # noqa: PTH112
            make_named_folder(folder.parent)
            make_private_folder(folder)
        if name == PROJECT_REPORTS and not (ignore := folder / ".gitignore").exists():
            write_atomically(ignore, "*\n")
    except OSError as error:
        raise _folder_error(folder, error) from error
    return folder


def _find_link(root: Path, folder: Path) -> Path | None:
    """Return the first link between a run's folder and its report folder. Links outside of it are allowed."""
    if not str(folder).startswith(f"{root}{os.sep}"):
        return None
    inside = [part for part in (folder, *folder.parents) if part.is_relative_to(root) and part != root]
    return next((part for part in inside if part.is_symlink()), None)


def _folder_error(folder: Path, error: OSError) -> StoreError:
    return StoreError(
        f'the report folder "{folder}" cannot be written ({error.strerror}): make it writable, or choose another one with --report-dir'
    )


def reserve_report_path(
    folder: Path, kind: str, subject: str, at: float, run: str, *, may_have_one: bool = True
) -> Path:
    """Reserve an unused path: <date>-<kind>-<slug>.md, then -2, -3. A resumed run finds the one it reserved.

    `may_have_one` is False for a run that no earlier process has worked on: no reserved path is searched for.
    """
    stem = f"{time.strftime('%Y-%m-%d', time.localtime(at))}-{slugify(kind)}-{slugify(subject)}"
    if may_have_one and (found := _find_reserved(folder, stem, run)):
        _delete_draft(_draft_path(folder, run))  # a crash may have left it
        return found
    while True:
        path = folder / _numbered_name(stem, _first_free_number(folder, stem))
        with _explain_failure(path, run):
            if _create_placeholder(path, run):
                return path


@contextmanager
def _explain_failure(path: StrPath, run: str) -> Iterator[None]:
    """Raise StoreError, with the path and the fix, for a file that cannot be written inside the block."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f'the report "{path}" cannot be written ({error.strerror}): free some space or make the folder writable, '
            f"then continue with `council resume {run}`"
        ) from error


def _numbered_name(stem: str, n: int) -> str:
    return f"{stem}.md" if n == 1 else f"{stem}-{n}.md"


def _find_reserved(folder: Path, stem: str, run: str) -> Path | None:
    names = re.compile(rf"{re.escape(stem)}(?:-\d+)?\.md")
    with os.scandir(folder) as files:
        paths = [folder / file.name for file in files if names.fullmatch(file.name)]
    return next((path for path in paths if _has_content(path, _placeholder_text(run))), None)


def _first_free_number(folder: Path, stem: str) -> int:
    """Return an unused number after a used one. Doubling and halving take few looks, however many reports there are."""

    def is_free(n: int) -> bool:
        return not os.path.lexists(f"{folder}/{_numbered_name(stem, n)}")

    used, free = 0, 1
    while not is_free(free):
        used, free = free, free * 2
    while free - used > 1:
        middle = (used + free) // 2
        used, free = (used, middle) if is_free(middle) else (middle, free)
    return free


def _create_placeholder(path: Path, run: str) -> bool:
    """Create the file with its placeholder in one step. Return False if another process has taken the name."""
    draft = _draft_path(path.parent, run)
    try:
        _create_file(draft, [_placeholder_text(run)])
        try:
            os.link(draft, path, follow_symlinks=False)
        except FileExistsError:
            return False
        except OSError:  # a file system without links
            try:
                handle = open_private_handle(path, os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY)
            except FileExistsError:
                return False
            try:
                with os.fdopen(handle, "wb") as out:
                    out.write(_placeholder_text(run))
            except OSError:
                _delete_draft(path)
                raise
        return True
    finally:
        _delete_draft(draft)


def _draft_path(folder: Path, run: str) -> str:
    return f"{folder}/.{run}.tmp"


def _create_file(draft: str, content: Iterable[bytes]) -> None:
    """Write a file under the name of a draft, replacing one that a crash has left."""
    with suppress(FileNotFoundError):
        os.unlink(draft)  # noqa: PTH108
    handle = open_private_handle(draft, os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY)
    with os.fdopen(handle, "wb") as out:
        out.writelines(content)


def _delete_draft(draft: StrPath) -> None:
    """Delete a draft. One that cannot be deleted is replaced by the next one."""
    with suppress(OSError):
        os.unlink(draft)  # noqa: PTH108


def is_unwritten(path: Path, run: str) -> bool:
    """Return whether the report of a run is missing, empty, only reserved, or older than a draft beside it."""
    if not path.exists() or os.path.lexists(_draft_of(path)):
        return True
    return _has_content(path, b"") or _has_content(path, _placeholder_text(run))


def _placeholder_text(run: str) -> bytes:
    return f"The report of run {run} will be written here.\n".encode()


def _has_content(path: Path, content: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
        return False
    return path.read_bytes() == content


def _draft_of(path: StrPath) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.tmp")  # noqa: PTH118


def write_atomically(path: StrPath, text: str) -> None:
    """Write a file in one step. A draft that a crash leaves is replaced by the next one."""
    write_draft(path, [text])
    os.replace(_draft_of(path), path)  # noqa: PTH105


def write_draft(path: StrPath, parts: Iterable[str]) -> None:
    """Write the draft of a file beside it."""
    draft = _draft_of(path)
    try:
        _create_file(draft, (part.encode("utf-8") for part in parts))
    except BaseException:
        _delete_draft(draft)
        raise


# Redaction

# The fields of an event with text from models, the web or the question. The others are names and numbers of this
# program.
FOREIGN_FIELDS: dict[type[ev.Event], tuple[str, ...]] = {
    ev.Asked: ("messages",),
    ev.Stated: ("said", "reply", "cut", "dropped", "cut_material", "missing"),
    ev.WasAbsent: ("reason",),
    ev.Faulted: ("detail",),
    ev.Noted: ("what", "why", "skipped"),
    ev.LookedUp: ("what", "why"),
    ev.Closed: ("verdict", "report_path", "reason"),
}
REDACTORS: dict[str, Callable[[Any], Any]] = {"messages": PromptRedactor().redact_messages}


def redact_event(event: ev.Event) -> ev.Event:
    """Return the event with secrets masked. Views and reports are built from these events only."""
    masked: Json = {}
    for name in FOREIGN_FIELDS.get(type(event), ()):
        value = getattr(event, name)
        if value and (clean := REDACTORS.get(name, redact_value)(value)) != value:
            masked[name] = clean
    return replace(event, **masked) if masked else event


async def close_failed_run(store: LedgerStore, record: Record, reason: str, stopped: str = "") -> None:
    """Close a run that cannot be executed, without a report file: its folder may be missing."""
    ledger = Ledger(store, record, redact=redact_event)
    status = "incomplete" if stopped else "failed"
    ending = ev.Closed(status, asdict(Verdict("")), dict(ledger.calls), stopped, "", reason)
    await ledger.close(ending, lambda entries: encode_report(Minutes.fold(entries)))


def write_missing_files(record: Record, minutes: Minutes) -> bool:
    """Write the report files of a finished run if they are missing. Return whether they were."""
    path = Path(record.folder) / minutes.report_path
    is_missing = bool(minutes.report_path) and path.parent.is_dir() and is_unwritten(path, record.run)
    if is_missing:
        publish_drafts(record, draft_report_files(record, minutes))
    return is_missing


def rewrite_report(record: Record, before: Minutes, now: Minutes) -> Path | None:
    """Write the report file of a run again after something was recorded about the run.

    Return the path of a file that stays as it was: it cannot be written, or someone has changed it since `before`.
    """
    path = Path(record.folder) / now.report_path
    if not now.report_path or not path.is_file() or is_unwritten(path, record.run):
        return None
    text = "".join(render_document_parts(now))
    try:
        present = path.read_bytes()
        if present == text.encode():
            return None
        if path.is_symlink() or present != "".join(render_document_parts(before)).encode():
            return path
        write_atomically(path, text)
    except OSError:
        return path
    return None


def draft_report_files(record: Record, minutes: Minutes, report: ReportObject | None = None) -> list[str]:
    """Write the report files as drafts beside their paths, which are returned. This takes all the space they need."""
    if not minutes.report_path:
        return []
    view = find_protocol(RunSetup.of(record).protocol).load_report_view()
    said = {f"{statement.phase}/{statement.seat}": statement for statement in minutes.statements}
    texts: dict[str, Iterable[str]] = {path: [view.analysis(minutes, said[key])] for key, path in minutes.files.items()}
    texts |= {minutes.report_path: render_document_parts(minutes, report)}
    paths = []
    for name, parts in texts.items():
        paths.append(os.path.join(record.folder, name))  # noqa: PTH118
        with _explain_failure(paths[-1], record.run):
            write_draft(paths[-1], parts)
    return paths


def publish_drafts(record: Record, paths: Sequence[str]) -> None:
    """Replace the files by their drafts, each in one step."""
    for path in paths:
        with _explain_failure(path, record.run):
            os.replace(_draft_of(path), path)  # noqa: PTH105


def discard_drafts(record: Record, paths: Sequence[str], stored: Sequence[Path]) -> None:
    """Remove the drafts and the reserved files of a process whose run another one has ended, with the paths in
    `stored`.

    A reserved file that is one of these is about to be written by the other process, from a draft of the same name.
    """
    for path in paths if stored else ():
        is_reserved = _has_content(Path(path), _placeholder_text(record.run))
        if is_reserved and Path(path) in stored:
            continue
        _delete_draft(_draft_of(path))
        if is_reserved:
            _delete_draft(path)


def emit_votes(ledger: Ledger, minutes: Minutes, folder: Path) -> None:
    """Emit an event with the verdict and the analysis path of each judge that has no file yet."""
    record = ledger.record
    setup = RunSetup.of(record)
    question = setup.question
    view = find_protocol(setup.protocol).load_report_view()
    for statement in minutes.statements:
        name, reply = view.analysis_name(minutes, statement), statement.reply or {}
        if not name or f"{statement.phase}/{statement.seat}" in minutes.files:
            continue
        path = _reserve_path(record, folder, question.target or question.text, name)
        verdict, confidence = reply.get("verdict", ""), reply.get("confidence", "")
        ledger.emit(ev.Voted(statement.seat, statement.phase, verdict, confidence, path))


def choose_report_path(record: Record, folder: Path) -> str:
    """Return a new report path. It is relative inside the run's folder."""
    setup = RunSetup.of(record)
    question = setup.question
    protocol = find_protocol(setup.protocol)
    kind = protocol.load_report_view().file_kind(question.task, protocol.name, setup.options)
    return _reserve_path(record, folder, kind, question.target or question.text)


def _reserve_path(record: Record, folder: Path, kind: str, subject: str) -> str:
    is_new = record.is_new
    path = str(reserve_report_path(folder, kind, subject, record.created, record.run, may_have_one=not is_new))
    return os.path.relpath(path, record.folder) if path.startswith(f"{record.folder}{os.sep}") else path


def last_report_path(entries: Sequence[Entry]) -> str:
    paths = [entry.event.report_path for entry in entries if isinstance(entry.event, ev.Closed)]
    return paths[-1] if paths else ""
