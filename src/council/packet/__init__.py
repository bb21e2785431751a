"""The packet: the exact material sent with a question. Select it, check it for secrets, truncate it to fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from council.errors import UsageError
from council.packet import gate as _gate
from council.packet.changes import Selection, work_tree
from council.packet.gate import Gate
from council.packet.looking import look
from council.packet.names import shown
from council.packet.reading import inside
from council.packet.secrets import scrub
from council.packet.targets import changed, select
from council.rules.fitting import fitted
from council.types import Packet, PacketFile

__all__ = ["Selection", "build", "changed", "fitted", "look", "scrub", "select", "work_tree"]

ENVIRONMENT = ".agents/ao/environment.json"


def build(
    target: str | Sequence[str] | Selection,
    root: Path,
    *,
    task: str,
    spec: str | None = None,
    decisions: Sequence[str] = (),
    base: str | None = None,
    said: str = "",
    stdin: str | None = None,
    match: bool = True,
    redact: bool = False,
    skip_secrets: bool = False,
    fit: int | None = None,
    earlier: tuple[str, str] | None = None,
) -> Packet:
    """Return the packet for a target, or raise UsageError, or PacketRefused if it contains a secret.

    `full_text` is the user's text if the target is only a part of it; words in it that look like missing paths are reported.
    `earlier` is the name and the text of the run that this one continues.
    """
    if redact and skip_secrets:
        raise UsageError("--redact masks secrets and --skip-secrets leaves their files out: choose one")
    chosen = target
    if not isinstance(chosen, Selection):
        chosen = select(chosen, root, task=task, base=base, said=said, stdin=stdin, match=match)
    gate = Gate(root, redact, skip_secrets)
    if earlier and (text := gate.text(*earlier)):
        gate.files.append(PacketFile(earlier[0], text))
    packet = _packed(gate, chosen, spec, decisions, environment=task != "ask")
    if task == "validate" and packet.empty and not packet.holes:
        _refuse_nothing(chosen, packet)
    return packet if fit is None else fitted(packet, fit)


def _refuse_nothing(chosen: Selection, packet: Packet) -> None:
    """Raise UsageError if files were named but none of them is readable text."""
    if chosen.files and all(wanted.named for wanted in chosen.files) and packet.skipped:
        first = packet.skipped[0]
        raise UsageError(f'"{first.path}" cannot be shown ({first.why}), and nothing else was named: name a text file')


def _packed(gate: Gate, chosen: Selection, spec: str | None, decisions: Sequence[str], *, environment: bool) -> Packet:
    told = [gate.text(f"decision {n}", decision) for n, decision in enumerate(decisions, 1)]
    specified = _spec(gate, spec) if spec is not None else ""
    _let_in(gate, chosen)
    around = _environment(gate) if environment else ""
    target = gate.text("the words", chosen.target)
    gate.settle()
    return Packet(
        files=tuple(gate.files), diff="".join(gate.sections.values()), spec_source=scrub(spec or ""), spec=specified,
        prior_decisions=tuple(decision for decision in told if decision), environment=around,
        skipped=(*chosen.skipped, *gate.skipped.values()), masked=gate.masked, target=target,
        matched=chosen.matched, stripped=gate.stripped, note=chosen.note or _no_text(chosen, gate),
        remarks=gate.remarks,
    )  # fmt: skip


def _no_text(chosen: Selection, gate: Gate) -> str:
    alone = chosen.stdin is not None and not (chosen.files or chosen.changes)
    return "standard input is binary" if alone and ("stdin", _gate.BINARY) in gate.skipped else ""


def _let_in(gate: Gate, chosen: Selection) -> None:
    """Add the selected material to the gate; changes come before files because they matter most if space runs out."""
    if chosen.stdin is not None:
        gate.stdin(chosen.stdin)
    if chosen.repo and chosen.changes:
        within = chosen.changes[: _gate.FILES_LIMIT]
        for change, section in zip(within, chosen.repo.diff(chosen.sides, within), strict=True):
            gate.change(change, section)
        gate.over += sum(change.gone for change in chosen.changes[len(within) :])  # the rest are counted as files
    contents = _contents(chosen)
    for wanted in chosen.files:
        content = contents.get(wanted.oid, b"") if wanted.oid else None
        gate.file(wanted.path, content, named=wanted.named, old=wanted.old)


def _contents(chosen: Selection) -> dict[str, bytes]:
    oids = list(dict.fromkeys(wanted.oid for wanted in chosen.files[: _gate.FILES_LIMIT] if wanted.oid))
    return chosen.repo.blobs(oids, _gate.FILE_LIMIT) if chosen.repo and oids else {}


def _spec(gate: Gate, spec: str) -> str:
    path = inside(gate.root, spec)
    if not os.path.lexists(gate.root / path):
        raise UsageError(f'--spec "{shown(spec)}" does not exist: check the name')
    if (gate.root / path).is_dir():
        raise UsageError(f'--spec "{shown(spec)}" is a folder: name a file')
    return gate.read(path, named=True, ours=True) or ""


def _environment(gate: Gate) -> str:
    there = (gate.root / ENVIRONMENT).is_file()
    return (gate.read(ENVIRONMENT, ours=True) or "") if there else ""
