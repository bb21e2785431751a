"""Library: `convene`, `convene_sync`, `stream`, and `Client` for several runs with the same settings and one store."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypedDict, TypeVar, Unpack

from council import protocols
from council.doors.task_stream import TaskStream, iterate_results
from council.engine.minutes import Minutes
from council.errors import UsageError
from council.events import Entry
from council.flags import negatable_options
from council.members.base import Member
from council.planning.intent import format_suggestion
from council.planning.plan import Material, Plan
from council.render.report import read_report
from council.render.report_object import Report
from council.runs.run_context import close_shared
from council.runs.service import Convener
from council.runs.track_record import OutcomeObject
from council.settings import SettingFlags
from council.store.interface import RunRow

if TYPE_CHECKING:
    from council.engine.plan_object import PlanObject

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class QuestionOptions(TypedDict, total=False):
    """The protocol, the members and the material."""

    protocol: Annotated[
        str | protocols.Protocol | None,
        "Name of a protocol, or a Protocol; auto: by advice. Default: the words of the question decide.",
    ]
    seats: Annotated[
        Mapping[str, str] | None, 'Members by seat, such as {"alpha": "openai:gpt-5.2", "chair": "sonnet"}.'
    ]
    models: Annotated[Sequence[str], "Members for the seats in order; a single one fills every seat and the chair."]
    cheap: Annotated[bool, "Use the fast models."]
    seat_count: Annotated[int | None, "Number of seats, 2 to 8."]
    exclude_family: Annotated[
        str | Sequence[str] | None, 'Vendors such as "anthropic" that no seat, chair, helper or fallback uses.'
    ]
    verbose: Annotated[bool, "Store that every statement is to be shown."]
    strict: Annotated[
        bool, "Fail instead of running with less than requested, such as mixed=True without a second vendor."
    ]
    material: Annotated[str | None, "Text for the packet, as if it were piped into the command."]
    attach: Annotated[
        Sequence[str | PathLike[str] | tuple[str, bytes]],
        "Images, PDFs and text files for the packet: paths, or pairs of a name and the bytes.",
    ]
    spec: Annotated[str | PathLike[str] | None, "File with the specification of the work, for the packet."]
    decisions: Annotated[Sequence[str], "Decisions that were already made, for the packet."]
    base: Annotated[str | None, "Review the changes since this git revision."]
    redact: Annotated[bool, "Mask secrets in the packet instead of refusing to send it."]
    skip_secrets: Annotated[bool, "Leave files with secrets out of the packet."]
    look: Annotated[bool, "Let each seat read files of the folder before it answers."]
    no_match: Annotated[bool, "Do not treat words of the question as names of files and folders."]
    continues: Annotated[str | None, "Earlier run whose question and answer are added to the packet."]
    tail: Annotated[bool, "False leaves out the lines after the answer: outcome, who differs, trust."]
    options: Annotated[Mapping[str, Any] | None, "Options of a protocol of another package."]


class RunSettings(TypedDict, total=False):
    """Settings of a run, which take precedence over the configuration files."""

    folder: Annotated[
        str | PathLike[str] | None, "Folder of the run: its files and its council.toml. Default: the current one."
    ]
    config: Annotated[str | PathLike[str] | None, "Configuration file to use instead of the project's council.toml."]
    env: Annotated[Mapping[str, str] | None, "Environment variables, with the API keys. Default: those of the process."]
    members: Annotated[Iterable[Member], "Custom member objects. A seat uses one by its name."]
    timeout: Annotated[float | None, "Seconds of each member in every phase, including retries."]
    max_cost: Annotated[float | None, "Hard limit in dollars: the run is fitted to it, or refused before it starts."]
    allow_unpriced: Annotated[bool, "Allow members without a known price, even with a budget."]
    effort: Annotated[Literal["low", "medium", "high"] | None, "Reasoning effort of members that support it."]
    grace: Annotated[float | None, "Drop a seat with no output this many seconds after the rest of its phase finished."]
    hedge: Annotated[
        bool, "When a member takes longer than usual, ask the seat's fallback too; the first complete answer counts."
    ]
    check: Annotated[
        bool, "Have two seats of other vendors look for errors in the answer, and its author correct what is right."
    ]
    no_warm: Annotated[
        bool, "Start all seats of a phase at once, also if one could fill the vendor's prompt cache for the others."
    ]
    no_resend: Annotated[bool, "Never repeat a request that may have been billed."]
    packet_tokens: Annotated[int | None, "Budget of the packet of a review, in tokens."]
    report_dir: Annotated[str | PathLike[str] | None, "Folder of the report files."]
    trust: Annotated[bool, "Apply the settings of the project that need trust, for this run and its resumes."]


class ProtocolOptions(TypedDict, total=False):
    """Options of the shipped protocols. Their descriptions are those of the flags."""

    flow: Literal["parallel", "sequential", "debate"] | None
    rounds: int | None
    tier: Literal["light", "medium", "heavy"] | None
    roster: str | None
    early_stop: bool
    quick: bool
    deep: bool
    mixed: bool | int
    debate: bool
    preset: str | None
    perspectives: Sequence[str] | None
    perspectives_file: str | None
    count: int | None
    explorers: int | None
    explorer_model: str | None
    technique: Literal["scamper", "six-hats", "reverse"] | None
    profile: Literal["thorough", "balanced", "fast"] | None
    rule: Literal["consensus", "corroborated"] | None
    no_clerk: bool
    search: str | None
    no_search: bool
    spec_review: bool
    no_deliberate: bool
    weights: Literal["equal", "track-record"] | None
    cheap_first: bool


class RunOptions(QuestionOptions, RunSettings, ProtocolOptions, total=False):
    """Keyword arguments of `convene`, `convene_sync`, `stream` and `Client`. None is the same as not given."""


MATERIAL = ("spec", "decisions", "base", "redact", "skip_secrets", "look")


class RunStream(TaskStream[Entry]):
    """The events of a run while it happens.

    The run is a separate task; closing the stream stops it, and it can be resumed.
    """

    def __init__(self, entries: AsyncGenerator[Entry, None], *, tail: bool = True) -> None:
        super().__init__(entries)
        self._minutes = Minutes()
        self._tail = tail

    async def __anext__(self) -> Entry:
        try:
            entry = await super().__anext__()
        except BaseException:
            self._minutes.active = ""
            raise
        self._minutes.on_event(entry)
        self._minutes.active = "running" if self._minutes.status == "running" else ""
        return entry

    async def aclose(self) -> None:
        await super().aclose()
        self._minutes.active = ""

    @property
    def run(self) -> str:
        """The id of the run; empty before its first event."""
        return self._minutes.run

    @property
    def report(self) -> Report:
        """The report so far, without a status and a trust level; after the last event it is final."""
        if not self._minutes.run:
            raise UsageError("the run has not started, so it has no report: read its events first")
        return make_report(self._minutes, tail=self._tail)


def make_report(minutes: Minutes, *, tail: bool = True) -> Report:
    report = Report.from_dict(minutes.report or read_report(minutes))
    return report if tail else report.model_copy(update={"tail": []})


# Arguments


def explicit(function: F) -> F:
    """Show the keyword arguments of RunOptions or RunSettings in the signature of a function, for `help` and
    editors.
    """
    signature = inspect.signature(function)
    *own, rest = signature.parameters.values()
    options = RunOptions if "RunOptions" in str(rest.annotation) else RunSettings
    shown = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=split_hint(hint)[0])
        for name, hint in options.__annotations__.items()
        if name not in {one.name for one in own}
    ]
    function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return function


def split_hint(hint: Any) -> tuple[str, str]:
    """Return the type of an argument as it is written, and its description: `Annotated[TYPE, "description"]`."""
    written: str = hint.__forward_arg__
    node = ast.parse(written, mode="eval").body
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple) and written.startswith("Annotated[")):
        return written, ""
    kind, description = node.slice.elts
    return ast.unparse(kind), str(ast.literal_eval(description))


def check_names(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for an unknown keyword argument, with the nearest known one."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(
                f'{function}() has no argument "{name}": {format_suggestion(name, names)}'
                "Options of a protocol of another package go into options={…}"
            )


def check_question(question: str | None, given: Mapping[str, Any]) -> None:
    """Raise for a question that is no text, or empty without material: the changes of a work tree are sent only by
    name.
    """
    if question is not None and not isinstance(question, str):
        raise TypeError(f"the question is {question!r}: it must be text")
    if not (question or "").strip() and given.get("material") is None and given.get("base") is None:
        raise UsageError(
            'the question is empty, nothing was sent: give one, or review the changes in the work tree with "validate"'
        )


def check_members(members: Iterable[Any]) -> tuple[Member, ...]:
    """Return the custom members. Raise TypeError for a name in their place."""
    listed = tuple(members)
    for member in listed:
        if isinstance(member, str):
            names = [members] if isinstance(members, str) else list(listed)
            raise TypeError(
                f'members has "{member}", which is not a Member: name models with models={json.dumps(names)}'
            )
    return listed


def make_convener(
    settings: Mapping[str, Any], records: Convener | None = None, *, keeps_open: bool = False
) -> Convener:
    given = {name: settings.get(name) for name in SettingFlags.__annotations__}
    flags = {name: as_flag(value) for name, value in given.items() if value not in (None, "", (), [], {})}
    folder, config = settings.get("folder"), settings.get("config")
    return Convener(
        Path(folder) if folder else None,
        settings.get("env"),
        flags={name: value for name, value in flags.items() if value is not False},
        config=Path(config) if config else None,
        members=check_members(settings.get("members") or ()),
        store=records.store if records else None,
        keeps_open=keeps_open,
    )


def as_flag(value: Any) -> Any:
    """Return a value of the type that the command line passes."""
    match value:
        case PathLike():
            return str(value)
        case Mapping():
            return dict(value)
        case Sequence() if not isinstance(value, str):
            return list(value)
        case _:
            return value


async def make_plan(convener: Convener, question: str, given: Mapping[str, Any], *, will_run: bool = False) -> Plan:
    check_question(question, given)
    protocol = given.get("protocol")
    if isinstance(protocol, protocols.Protocol):
        protocols.register(protocol)
        protocol = protocol.name
    kept = {name: given[name] for name in MATERIAL if given.get(name)}
    kept |= {name: convert(kept[name]) for name, convert in (("spec", str), ("decisions", tuple)) if name in kept}
    if given.get("attach"):
        from council.packet.attachments import collect_attachments  # only needed for attachments

        kept["attachments"] = collect_attachments(given["attach"])
    named = {name: given[name] for name in ProtocolOptions.__annotations__ if given.get(name) is not None}
    options = {name: value for name, value in named.items() if value is not False or name in negatable_options()}
    material = Material(**kept, stdin=given.get("material"), match=not given.get("no_match"))
    return await convener.plan(
        [question] if (question or "").strip() else [],
        options | dict(given.get("options") or {}),
        protocol=protocol,
        verbose=bool(given.get("verbose")),
        material=material,
        strict=bool(given.get("strict")),
        after=given.get("continues"),
        will_run=will_run,
    )


# Runs


async def run_question(
    question: str, given: Mapping[str, Any], records: Convener | None, on_event: Callable[[Entry], None]
) -> Minutes:
    convener = make_convener(given, records, keeps_open=True)
    try:
        return await convener.run(await make_plan(convener, question, given, will_run=True), on_event)
    finally:
        await convener.close()


def stream_run(question: str, given: Mapping[str, Any], records: Convener | None = None) -> RunStream:
    """Run a question as a separate task, and return its events."""
    return RunStream(
        iterate_results(partial(run_question, question, given, records)), tail=given.get("tail") is not False
    )


async def run_to_report(question: str, given: Mapping[str, Any], records: Convener | None = None) -> Report:
    """Run a question and return its report, which needs no events."""
    return make_report(await run_question(question, given, records, _ignore), tail=given.get("tail") is not False)


@explicit
def stream(question: str, **options: Unpack[RunOptions]) -> RunStream:
    """Start a run and return a stream of its events (`Entry`), for `async for`. `stream.report` is the report so far.

    The run starts with the first event that is read.
    """
    check_names("stream", options, RunOptions.__annotations__)
    return stream_run(question, options)


@explicit
async def convene(question: str, **options: Unpack[RunOptions]) -> Report:
    """Run a council on a question and return its report. It returns for every status: see `Report.raise_for_status`."""
    check_names("convene", options, RunOptions.__annotations__)
    return await run_to_report(question, options)


@explicit
def convene_sync(question: str, **options: Unpack[RunOptions]) -> Report:
    """Run `convene` in a program without an event loop."""
    check_names("convene_sync", options, RunOptions.__annotations__)
    with suppress(RuntimeError):
        asyncio.get_running_loop()
        raise UsageError(
            "convene_sync cannot run inside an event loop (such as a notebook): use `await council.convene(…)`"
        )
    return asyncio.run(convene(question, **options))


def close() -> None:
    """Close the store and the connections that `convene`, `convene_sync` and `stream` keep open between calls.

    Those in use are closed when their runs end. The next call opens them again. At the exit of the process this happens
    by itself, and connections are also closed at the end of their event loop.
    """
    close_shared()


class Client:
    """Several runs with the same settings and one store.

        async with council.Client(models=["sonnet"], max_cost=1.0) as client:
            first = await client.convene("Which queue should we use?")
            second = await client.convene("What does it cost?", continues=first.run)

    The keyword arguments are those of `convene`; an argument of a single call takes precedence.
    """

    @explicit
    def __init__(self, **options: Unpack[RunOptions]) -> None:
        check_names("Client", options, RunOptions.__annotations__)
        self._options: Mapping[str, Any] = dict(options)
        self._records = make_convener(self._options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store."""
        await self._records.close()

    # Start

    @explicit
    def stream(self, question: str, **options: Unpack[RunOptions]) -> RunStream:
        """Start a run and return a stream of its events."""
        check_names("stream", options, RunOptions.__annotations__)
        return stream_run(question, {**self._options, **options}, self._records)

    @explicit
    async def convene(self, question: str, **options: Unpack[RunOptions]) -> Report:
        """Run a council on a question and return its report."""
        check_names("convene", options, RunOptions.__annotations__)
        return await run_to_report(question, {**self._options, **options}, self._records)

    @explicit
    async def plan(self, question: str, **options: Unpack[RunOptions]) -> PlanObject:
        """Return the plan of a run (`council.plan/1`): protocol and reason, seats, calls and estimated cost. Nothing is
        spent.

        It raises the error that the run would raise before its first request.
        """
        check_names("plan", options, RunOptions.__annotations__)
        given = {**self._options, **options}

        async def work(convener: Convener) -> Plan:
            plan = await make_plan(convener, question, given)
            convener.check_plan(plan)
            return plan

        return (await self._use(make_convener(given), work)).as_json()

    # Continue

    @explicit
    async def resume(self, run: str | None = None, **settings: Unpack[RunSettings]) -> Report:
        """Continue an interrupted run without repeating its answers.

        Default: the newest unfinished run of the folder.
        """
        check_names("resume", settings, RunSettings.__annotations__)
        given = {**self._options, **settings}
        resend = not given.get("no_resend")
        shared = make_convener(given, self._records)
        return make_report(await self._use(shared, lambda convener: convener.resume(run, _ignore, resend=resend)))

    @explicit
    async def fork(
        self,
        run: str,
        *,
        phase: str | None = None,
        seats: Mapping[str, str] | None = None,
        **settings: Unpack[RunSettings],
    ) -> Report:
        """Start a new run that reuses the answers of a run before `phase`, with other members for some seats."""
        check_names("fork", settings, RunSettings.__annotations__)
        given = {**self._options, **settings, "seats": None}
        shared = make_convener(given, self._records)
        work = self._use(shared, lambda convener: convener.fork(run, _ignore, phase=phase, seats=seats))
        return make_report(await work)

    async def cancel(self, run: str) -> bool:
        """Cancel a run of any process; its answers are kept. Return False if it had already ended."""
        return await self._records.cancel(run)

    # Read

    async def report(self, run: str | None = None) -> Report:
        """Return the report of a stored run. Default: the newest run of the folder.

        That of a run that has not ended has no status and no trust level.
        """
        return make_report(await self._records.minutes(run or await self._records.newest_run()))

    async def record_outcome(self, run: str, label: str, *, note: str = "") -> OutcomeObject:
        """Record how the decision of a complete run turned out: "right", "wrong", or the value that was right.

        The newest outcome counts, and reports show it; the earlier ones are kept.
        """
        return (await self._records.record_outcome(run, label, note)).row

    async def runs(self, *, limit: int | None = None, all: bool = False) -> list[RunRow]:
        """Return the stored runs of all folders, at most `limit`: unfinished first, then newest first.

        Runs of evaluations are left out, except with `all`.
        """
        return await self._records.runs(limit=limit, evaluation=None if all else 0)

    def follow(self, run: str) -> AsyncIterator[Entry]:
        """Yield the stored events of a run, then new ones until it ends, whichever process executes it."""
        return self._records.follow(run)

    async def _use(self, convener: Convener, work: Callable[[Convener], Awaitable[T]]) -> T:
        try:
            return await work(convener)
        finally:
            await convener.close()


def _ignore(entry: Entry) -> None:
    pass
