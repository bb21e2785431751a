"""The packet: the exact material sent with a question. Select it, check it for secrets, truncate it to fit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from council.errors import UsageError, option
from council.packet import git
from council.packet.accepted_secrets import Baseline
from council.packet.changes import Selection
from council.packet.context import add_changes, cut_file
from council.packet.files import format_path, relative_to_root
from council.packet.gate import Gate, join_first
from council.packet.secret_filter import redact_text
from council.packet.targets import select
from council.packet_size import truncate_packet
from council.settings.workspace_trust import TrustSource
from council.types import DEFAULT_PACKET_TOKENS, Packet, PacketFile, Skipped, estimate_tokens

MAX_LEFT_OUT_LISTED = 5
MAX_ATTACHED_FILES = 50
ENVIRONMENT_FILE = ".agents/ao/environment.json"


def build(
    target: str | Sequence[str] | Selection,
    root: Path,
    *,
    task: str,
    spec: str | None = None,
    decisions: Sequence[str] = (),
    base: str | None = None,
    full_text: str = "",
    stdin: str | None = None,
    match: bool = True,
    redact: bool = False,
    skip_secrets: bool = False,
    fit: int | None = None,
    tokens: int = DEFAULT_PACKET_TOKENS,
    earlier: Sequence[tuple[str, str]] = (),
    left_out: Sequence[Skipped] = (),
    attachments: Sequence[tuple[str, str | bytes]] = (),
    trust: TrustSource | None = None,
) -> Packet:
    """Return the packet for a target, or raise UsageError, or PacketRefused if it contains a secret.

    `full_text` is the user's text if the target is only a part of it; words in it that look like missing paths are
    reported. `earlier` has the name and the text of each earlier turn that this run continues; `left_out` names the
    turns not sent. `attachments` has the name of each attached file, and its text or its bytes. `tokens` is the budget
    of a review: what does not fit is left out and listed. Only a larger diff exceeds it. Without `trust`, no secret of
    the project's file of accepted secrets is accepted.
    """
    if redact and skip_secrets:
        raise UsageError(
            f"{option('redact', True)} masks secrets and {option('skip_secrets', True)} leaves their files out: choose one"
        )
    chosen = target
    if not isinstance(chosen, Selection):
        chosen = select(
            chosen,
            root,
            task=task,
            base=base,
            full_text=full_text,
            stdin=stdin,
            match=match,
            has_other_material=bool(spec or earlier or attachments),
        )
    gate = Gate(root, redact, skip_secrets, baseline=Baseline(root, trust=trust, base=base))
    for name, turn in earlier:
        if text := gate.check_text(name, turn):
            gate.files.append(PacketFile(name, text))
    if len(attachments) > MAX_ATTACHED_FILES:
        raise UsageError(f"{len(attachments)} files are attached: attach at most {MAX_ATTACHED_FILES}")
    for name, attached in attachments:
        gate.add_attachment(name, attached)
    packet = _build_packet(gate, chosen, spec, decisions, tokens, is_review=task != "ask")
    if task == "validate" and packet.empty and not packet.note:
        _reject_unreadable(chosen, packet)
        packet = replace(packet, refusal=chosen.refusal or _explain_left_out(packet))
    if chosen.stdin is None:  # the paths of a diff from standard input are as its writer made them
        packet = replace(packet, prefix=git.find_prefix(root))
    if left_out:
        packet = replace(packet, skipped=(*packet.skipped, *left_out))
    return packet if fit is None else truncate_packet(packet, fit)


def _reject_unreadable(chosen: Selection, packet: Packet) -> None:
    """Raise UsageError if files were named but none of them is readable text."""
    if chosen.files and all(file.named for file in chosen.files) and packet.skipped and not packet.holes:
        first = packet.skipped[0]
        raise UsageError(f'"{first.path}" cannot be shown ({first.why}), and nothing else was named: name a text file')


def _explain_left_out(packet: Packet) -> str:
    left_out = [f"{item.path} ({item.why})" for item in packet.skipped]
    listed = join_first(left_out, MAX_LEFT_OUT_LISTED) or f'"{format_path(packet.target)[:80]}" has no text'
    return f"nothing to review: everything was left out, {listed}; name a text file within the limits"


def _build_packet(
    gate: Gate, chosen: Selection, spec: str | None, decisions: Sequence[str], tokens: int, *, is_review: bool
) -> Packet:
    checked = [gate.check_text(f"decision {n}", decision) for n, decision in enumerate(decisions, 1)]
    spec_text = _read_spec(gate, spec) if spec is not None else ""
    if chosen.stdin is not None:
        gate.add_stdin(chosen.stdin)
    used = sum(map(estimate_tokens, (spec_text, *checked, *(file.content for file in gate.files))))
    commits: tuple[str, ...] = ()
    if chosen.repo:
        commits = add_changes(gate, chosen, tokens, used)
    else:
        _add_named_files(gate, chosen, tokens - used if is_review else None, tokens)
    has_environment = is_review and (gate.root / ENVIRONMENT_FILE).is_file()
    environment_text = (gate.read_file(ENVIRONMENT_FILE, allow_agents=True) or "") if has_environment else ""
    target = gate.check_text("the words", chosen.target)
    gate.finish()
    texts = (*(file.content for file in gate.files), *gate.sections.values(), spec_text, environment_text)
    return Packet(
        files=tuple(gate.files),
        diff="".join(gate.sections.values()),
        spec_source=redact_text(spec or ""),
        spec=spec_text,
        prior_decisions=tuple(decision for decision in checked if decision),
        environment=environment_text,
        skipped=(*chosen.skipped, *gate.skipped.values()),
        masked=gate.masked,
        target=target,
        matched=chosen.matched,
        stripped=gate.stripped,
        note=chosen.note,
        remarks=(*chosen.remarks, *gate.list_accepted(texts), *gate.remarks),
        commits=commits,
        attachments=tuple(gate.attachments),
        budget=tokens if is_review else 0,
    )


def _add_named_files(gate: Gate, chosen: Selection, room: int | None, tokens: int) -> None:
    """Add named files and the files of named folders while they fit; None is no limit. What does not fit is a hole."""
    over = 0
    for file in chosen.files:
        if room is not None and room <= 0:
            over += 1
            continue
        if not gate.add_file(file.path, named=file.named, old_path=file.old_path) or room is None:
            continue
        added = gate.files[-1]
        cost = estimate_tokens(added.path) + estimate_tokens(added.content)
        if cost <= room:
            room -= cost
            continue
        gate.files.pop()
        why = f"over the budget of {tokens:,} tokens: raise {option('packet_tokens')}, or name less"
        if file.named and (part := cut_file(added, room)):
            gate.files.append(part)
            gate.skip(file.path, f"only lines 1-{part.ranges[-1][1]:,} of {part.lines:,} are shown: {why}", hole=True)
            room = 0
        else:
            gate.skip(file.path, why, hole=True)
    if over:
        gate.skip(f"{over:,} more files", f"over the budget of {tokens:,} tokens", hole=True)


def _read_spec(gate: Gate, spec: str) -> str:
    path = relative_to_root(gate.root, spec)
    if not os.path.lexists(gate.root / path):
        raise UsageError(f'{option("spec")} "{format_path(spec)}" does not exist: check the name')
    if (gate.root / path).is_dir():
        raise UsageError(f'{option("spec")} "{format_path(spec)}" is a folder: name a file')
    return gate.read_file(path, named=True, allow_agents=True) or ""
