"""Fault table: retries, request change and final seat state for each kind of fault, and the request changes.

money.py lists the kinds that are never billed, because reports use that list too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from council.errors import Fault
from council.events import Hedged
from council.members.base import DEFAULT_MAX_TOKENS, Member, describe_unseen, fit_attachments
from council.members.guard import prepare_request
from council.types import Ask, Cuts, FinalState, Json, Step, repair_surrogates


@dataclass(frozen=True, slots=True)
class FaultPolicy:
    """Policy for one kind of fault."""

    retries: int
    state: FinalState  # seat state when the retries are used up
    backs_off: bool = True  # whether to back off before the next attempt
    change: str = ""  # how the next request differs: a name in REQUEST_CHANGES
    is_vendor_wide: bool = False  # it concerns the vendor, not the request
    reduces_concurrency: bool = False  # it reduces the concurrency limit


FAULT_TABLE = {
    "net": FaultPolicy(4, "failed(net)", is_vendor_wide=True),
    "rate": FaultPolicy(6, "failed(rate)", is_vendor_wide=True, reduces_concurrency=True),
    "quota": FaultPolicy(0, "failed(quota)", is_vendor_wide=True),
    "overload": FaultPolicy(6, "failed(overload)", is_vendor_wide=True),
    "server": FaultPolicy(2, "failed(server)", is_vendor_wide=True),
    "cut": FaultPolicy(1, "in_doubt", backs_off=False, is_vendor_wide=True),
    "doubt": FaultPolicy(0, "in_doubt"),  # a request from before a crash, with --no-resend
    "hedge": FaultPolicy(0, "in_doubt"),  # another member answered first
    "dropped": FaultPolicy(0, "timed_out"),  # the others had finished, and the grace period was over
    "cancelled": FaultPolicy(0, "in_doubt"),  # the run was interrupted; the request is sent again on resume
    "stall": FaultPolicy(1, "timed_out", backs_off=False, is_vendor_wide=True),
    "empty": FaultPolicy(1, "degenerate", backs_off=False, change="warmer"),
    "loop": FaultPolicy(1, "degenerate", backs_off=False, change="warmer"),
    "stub": FaultPolicy(1, "degenerate", backs_off=False, change="warmer"),
    "length": FaultPolicy(1, "truncated", backs_off=False, change="doubled"),
    "refused": FaultPolicy(0, "refused"),
    "schema": FaultPolicy(1, "failed(schema)", backs_off=False, change="repaired"),
    "size": FaultPolicy(1, "failed(size)", backs_off=False, change="shrunk"),
    "model": FaultPolicy(0, "failed(model)"),
    "auth": FaultPolicy(0, "failed(auth)", is_vendor_wide=True),
    "endpoint": FaultPolicy(0, "failed(endpoint)", is_vendor_wide=True),  # a server, but not of a model
    "parameter": FaultPolicy(1, "failed(parameter)", backs_off=False, change="bare"),
    "member": FaultPolicy(0, "failed(member)"),  # its code raised an exception
    "script": FaultPolicy(0, "failed(script)"),
    "flood": FaultPolicy(0, "failed(flood)"),
    # Failures of a command-line agent. A silent one uses up its timeout, so it is not retried.
    "cli:start": FaultPolicy(1, "failed(cli:start)", backs_off=False),
    "cli:exit": FaultPolicy(1, "failed(cli:exit)", backs_off=False),
    "cli:error": FaultPolicy(1, "failed(cli:error)", backs_off=False),
    "cli:output": FaultPolicy(1, "failed(cli:output)", backs_off=False),
    "cli:flood": FaultPolicy(1, "failed(cli:flood)", backs_off=False),
    "cli:silent": FaultPolicy(0, "failed(cli:silent)"),
}
CHAIR_RETRIES = 2  # the chair cannot be replaced, so it gets at least two retries


def check_fault(fault: Fault) -> Fault:
    """Return a fault of a kind in the table, with valid fields. A member of another package may have raised any."""
    kind, detail = str(fault.kind), str(fault.detail)
    if kind not in FAULT_TABLE:
        kind, detail = "member", f'Fault: unknown kind "{kind}": {detail}'
    said = fault.said if isinstance(fault.said, str) else ""
    wait = fault.retry_after
    is_wait = isinstance(wait, (int, float)) and math.isfinite(wait) and wait >= 0
    return Fault(
        kind,
        repair_surrogates(detail),
        said=repair_surrogates(said),
        retry_after=wait if is_wait else None,
        has_status=bool(fault.has_status),
    )


def max_retries(kind: str, *, chair: bool = False) -> int:
    """Return the number of retries. A stall uses up the timeout, so the chair gets no extra retry for it."""
    count = FAULT_TABLE[kind].retries
    return max(count, CHAIR_RETRIES) if chair and count and kind != "stall" else count


# Request changes

RETRY_TEMPERATURE, SECOND_RETRY_TEMPERATURE = 0.7, 1.0
DEFAULT_SHARE = 0.5
SIZE_MARGIN = 0.8  # of the limit a vendor reports, because its tokenizer differs from our estimate
# How endpoints say that a model takes no images or files.
ATTACHMENT_REFUSED = re.compile(
    r"image|vision|multi-?modal|\bpdf\b|document|\bfile|must be a string|expected a string|unknown variant|content part",
    re.IGNORECASE,
)
TOKEN_COUNT = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?![\w.])|(?<![\w.-])\d{4,}(?!\w)")


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """Failed attempt: the request, the member and the fault."""

    step: Step
    member: Member
    ask: Ask
    fault: Fault
    output_tokens: int = 0  # output tokens received before the failure


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """Next attempt: the request, the reason, and the parts cut or dropped from it."""

    ask: Ask
    why: str
    fallback_for: str = ""  # the requested member, for the first attempt on a fallback
    fallback_state: str = ""  # the state in which it failed
    cut: Cuts = field(default_factory=Cuts)
    dropped: tuple[str, ...] = ()
    hedge: Hedged | None = None  # the hedge that it is the first attempt of


def next_attempt(failed: FailedAttempt) -> NextAttempt | None:
    """Return the next attempt after a fault, or None if the required change is impossible."""
    change = FAULT_TABLE[failed.fault.kind].change
    return REQUEST_CHANGES[change](failed) if change else NextAttempt(failed.ask, f"retry: {failed.fault.kind}")


def _raise_temperature(failed: FailedAttempt) -> NextAttempt:
    is_raised = (failed.ask.temperature or 0.0) >= RETRY_TEMPERATURE
    temperature = SECOND_RETRY_TEMPERATURE if is_raised else RETRY_TEMPERATURE
    return NextAttempt(replace(failed.ask, temperature=temperature), f"retry: {failed.fault.detail}")


def _double_max_tokens(failed: FailedAttempt) -> NextAttempt:
    limit = failed.ask.max_tokens or max(DEFAULT_MAX_TOKENS, failed.output_tokens)
    return NextAttempt(replace(failed.ask, max_tokens=2 * limit), "retry: the answer was cut at its length limit")


def _append_repair_turn(failed: FailedAttempt) -> NextAttempt:
    """Append a repair turn to the last request, which may already be truncated or without parameters."""
    step, ask = failed.step, failed.ask
    turn = step.repair(failed.fault.said, failed.fault.detail).messages[len(step.ask.messages) :]
    return NextAttempt(replace(ask, messages=(*ask.messages, *turn)), "repair: the reply did not match its schema")


def _truncate_request(failed: FailedAttempt) -> NextAttempt | None:
    """Leave out the pages of PDFs whose text is sent too, else truncate the material."""
    share, ask = parse_share(failed.fault.detail), failed.ask
    takes_pages = "pdf" in getattr(failed.member, "accepts", ())
    if pages := [one for one in ask.attachments if one.kind == "pdf" and one.has_text and takes_pages]:
        cut = Cuts(tuple(f"the pages of {one.path}" for one in pages))
        rest = tuple(one for one in ask.attachments if one not in pages)
        return NextAttempt(replace(ask, attachments=rest), f"retry: without {', '.join(cut.material)}", cut=cut)
    shrunk = failed.step.shrink(failed.ask, share)
    if shrunk is None:
        return None
    smaller, cut = shrunk
    return NextAttempt(smaller, f"retry: truncated to {share:.0%} to fit: {', '.join(cut.descriptions)}", cut=cut)


def _drop_parameters(failed: FailedAttempt) -> NextAttempt | None:
    """Drop the attachments if the message is about them, else the optional parameters."""
    seen = fit_attachments(failed.ask, failed.member).attachments
    if seen and ATTACHMENT_REFUSED.search(failed.fault.detail):
        paths = tuple(one.path for one in seen)
        return NextAttempt(describe_unseen(failed.ask), f"retry: without {', '.join(paths)}", dropped=paths)
    bare = replace(failed.ask, temperature=None, max_tokens=None, effort=None, bare=True)
    try:
        bodies = prepare_request(failed.member, failed.ask), prepare_request(failed.member, bare)
    except Fault:  # the member's own code failed
        return None
    dropped = tuple(find_missing_parameters(*bodies))
    named = f" ({', '.join(dropped)})" if dropped else ""
    return NextAttempt(bare, f"retry: without optional parameters{named}", dropped=dropped)


REQUEST_CHANGES: dict[str, Callable[[FailedAttempt], NextAttempt | None]] = {
    "warmer": _raise_temperature,
    "doubled": _double_max_tokens,
    "repaired": _append_repair_turn,
    "shrunk": _truncate_request,
    "bare": _drop_parameters,
}


def parse_share(detail: str) -> float:
    """Return the share of a request to keep: half, or less if the vendor's message states the limit and the size."""
    numbers = sorted({int(number.replace(",", "")) for number in TOKEN_COUNT.findall(detail)})
    if len(numbers) < 2:
        return DEFAULT_SHARE
    limit, size = numbers[-2:]
    return round(min(DEFAULT_SHARE, SIZE_MARGIN * limit / size), 2)


def find_missing_parameters(before: bytes, after: bytes) -> Iterator[str]:
    """Yield the dotted names of parameters in `before` that are not in `after`."""
    try:
        yield from _iter_missing(json.loads(before), json.loads(after), "")
    except (ValueError, AttributeError):
        return


def _iter_missing(before: Json, after: Json, prefix: str) -> Iterator[str]:
    for name, value in before.items():
        if name not in after:
            yield prefix + name
        elif isinstance(value, dict) and isinstance(after[name], dict):
            yield from _iter_missing(value, after[name], f"{prefix}{name}.")
