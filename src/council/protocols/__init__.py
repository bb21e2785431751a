"""Protocols: their definition, and the table of them.

A definition says what the engine, the planner, the reports and the doors need to know. Shipped protocols are rows of
the table, others come by entry point or by `register`; each is loaded when it is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from council.errors import CouncilError, UsageError
from council.extensions import Added, installed, load_attribute
from council.types import Json, Packet, Seat, Verdict

if TYPE_CHECKING:
    from council.engine.minutes import Minutes, StatementMinutes
    from council.engine.records import AttackPoint, ReportObject, SeatFields
    from council.engine.response_format import ResponseFormat

# Definition

ProtocolFunction = Callable[..., Awaitable[Verdict]]  # async def protocol(council, **options) -> Verdict
TASKS = ("ask", "validate", "brainstorm", "research")
CHAIR = Seat("chair", "Orchestrator")
PLAIN_SEATS = (Seat("alpha"), Seat("beta"), Seat("gamma"))  # without roles
NO_OPTIONS = "council.protocols.options:NoOptions"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol. A reference is an object or its "module:attr", which is imported when it is needed.

    Files beside the module of `function` belong to the protocol: `prompts/*.md` and, for its reports, `layout.md` and
    `layouts/*.md`.
    """

    name: str
    function: ProtocolFunction | str
    seats: tuple[Seat, ...] = ()
    chair: Seat | None = CHAIR
    summary: str = ""
    # The tasks it accepts, the default first: a verb of the question chooses among them.
    tasks: tuple[str, ...] = ("ask",)
    prompts: Path | None = None  # folder of the prompts; None: `prompts/` beside the function
    options: type[Any] | str | None = None  # pydantic model; None: no options
    spread: bool = True  # spread the seats over vendor families
    # The chair judges what the seats wrote about each other, so it has no seat where there is a choice.
    chair_apart: bool = False
    resizable: bool = False  # with 2 to 8 members by `-m` it has as many seats; a panel resizes its own seats
    panel: Callable[..., Any] | str = ""  # builds the seats from the options; empty if the seats are fixed
    quorum: int = 1  # seats that must answer
    reads_question: bool = True  # whether its flow depends on the question's text; if not, plans are cached without it
    keeps_conversations: bool = True  # whether it passes `after=`; if not, prompts leave memory when they are answered
    allows_check: bool = False  # whether --check applies to its answer
    checks_answer: bool = False  # whether its own flow ends with a check
    allows_look: bool = True  # whether its seats may read the project before they answer, with --look
    output_schema: Callable[[str], Json | None] | str = ""  # returns the description of a reply in the packet, by task
    # Returns a line for the plan on how a packet is sent, by task.
    packet_notice: Callable[[Packet, str], str] | str = ""
    report_view: type[Any] | str = ""  # subclass of ReportView; empty for the default report
    # Keep reports of reviews in .agents/council of the run's folder, not in the data folder.
    reports_in_project: bool = False
    purpose: str = ""  # what it is for, for `council list protocols`
    example: str = ""  # a command that chooses it; empty for `council --protocol NAME "…"`
    use: str = ""  # one word for its main use, such as "Decide": the page shows these protocols first

    def __post_init__(self) -> None:
        if unknown := [task for task in self.tasks or ("",) if task not in TASKS]:
            raise ValueError(f'protocol "{self.name}": unknown task "{unknown[0]}", use {", ".join(TASKS)}')

    def load(self) -> ProtocolFunction:
        return cast(ProtocolFunction, load_reference(self.function))

    def load_options(self) -> type[Any]:
        return cast(type[Any], load_reference(self.options or NO_OPTIONS))

    def load_output_schema(self, task: str) -> Json | None:
        """Return the description of a reply that the packet of this task contains; None if it contains none."""
        return cast("Json | None", load_reference(self.output_schema)(task)) if self.output_schema else None

    def describe_packet(self, packet: Packet, task: str) -> str:
        """Return a line on how the packet is sent; empty if it is sent as one with every request."""
        return str(load_reference(self.packet_notice)(packet, task)) if self.packet_notice and packet.budget else ""

    def load_report_view(self) -> ReportView:
        return cast(ReportView, load_reference(self.report_view or ReportView)())

    @property
    def folder(self) -> Path | None:
        """The folder of the module that defines the function; None if it has no file."""
        function = self.function
        return _find_folder(function.partition(":")[0] if isinstance(function, str) else function.__module__)

    @property
    def prompt_folders(self) -> tuple[Path, ...]:
        if self.prompts:
            return (self.prompts,)
        return (self.folder / "prompts",) if self.folder else ()


@cache
def _find_folder(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # for example, __main__ of an interactive session
        return None
    return Path(spec.origin).parent if spec and spec.origin else None


def load_reference(reference: Any) -> Any:
    """Return the object of a "module:attr"; any other object is returned as it is."""
    return load_attribute(reference) if isinstance(reference, str) else reference


async def run_flow(
    protocol: Protocol,
    council: Any,
    options: Json,
    *,
    check: bool = False,
    response_format: ResponseFormat | None = None,
) -> Verdict:
    """Run a protocol, then the check of its answer and the call that writes it as JSON if they are asked for."""
    verdict = await protocol.load()(council, **options)
    if not isinstance(verdict, Verdict):
        return verdict
    if check:
        from council.protocols.common.check import check_verdict  # only with --check

        verdict = await check_verdict(council, verdict)
    if response_format:
        from council.protocols.common.answer_format import format_answer  # only with a response format

        await format_answer(council, verdict, response_format)
    return verdict


class ReportView:
    """The parts of a report that depend on the protocol; by default the answer, then the statements of every phase."""

    def speaker_label(self, minutes: Minutes, phase: str, seat: str) -> str:
        """Return the name of a seat in a phase."""
        from council.engine.layout import format_label  # not imported by a command without a report

        return format_label(seat)

    def last_speaker_label(self, minutes: Minutes, seat: str) -> str:
        """Return the name of a seat in the last phase in which it was asked, or in the first round if there is none."""
        asked = [phase.name for phase in minutes.phases.values() if seat in phase.asked]
        return self.speaker_label(minutes, asked[-1] if asked else "r1", seat)

    def report_fields(self, minutes: Minutes) -> Mapping[str, object]:
        """Return extra fields of the report object."""
        return {}

    def seat_fields(self, minutes: Minutes, seat: str) -> SeatFields:
        """Return extra fields of a seat in the report object."""
        return {}

    def layout_variables(self, minutes: Minutes) -> Mapping[str, object]:
        """Return extra variables of the protocol's layouts."""
        return {}

    def full_answer(self, minutes: Minutes) -> str:
        """Return a text to show instead of the answer; empty to show the answer."""
        return ""

    def answer_sections(self, minutes: Minutes) -> list[tuple[str, str, str]]:
        """Return the answer as (name, title, text), the decision first; empty if the whole answer is the decision."""
        return []

    def points(self, minutes: Minutes) -> list[AttackPoint]:
        """Return the points of an attack, each once."""
        return []

    def verdict_text(self, minutes: Minutes) -> str:
        """Return the whole text for standard output; empty to show the answer under its caveats."""
        return ""

    def verdict_markdown(self, minutes: Minutes) -> str:
        """Return the verdict text as Markdown, without remarks above it; empty if there is none."""
        return ""

    def repeats_answer(self, minutes: Minutes, said: StatementMinutes) -> bool:
        """Return whether a statement is the answer, which the report shows once."""
        return minutes.status == "complete" and said.said.strip() == str(minutes.verdict.get("answer") or "").strip()

    def document(self, minutes: Minutes, report: ReportObject) -> str:
        """Return the whole report file; empty to use the layout `document.md`."""
        return ""

    def file_kind(self, task: str, protocol: str, options: Json) -> str:
        """Return the word for the kind of run in the name of its report file."""
        return protocol if task == "ask" else task

    def analysis_name(self, minutes: Minutes, said: StatementMinutes) -> str:
        """Return the seat's part of the file name of a statement that gets its own file; empty for any other."""
        return ""

    def analysis(self, minutes: Minutes, said: StatementMinutes) -> str:
        """Return the content of that file."""
        return said.said


# Table

ENTRY_POINT_GROUP = "council.protocols"
SHIPPED_PROTOCOLS = {
    "collaborative": "council.protocols.collaborative:PROTOCOL",
    "adversarial": "council.protocols.adversarial:PROTOCOL",
    "triad": "council.protocols.triad:PROTOCOL",
    "advisors": "council.protocols.advisors:PROTOCOL",
    "judges": "council.protocols.judges:PROTOCOL",
    "general": "council.protocols.general:PROTOCOL",
    "ranking": "council.protocols.ranking:PROTOCOL",
    "refine": "council.protocols.refine:PROTOCOL",
    "solo": "council.protocols.solo:PROTOCOL",
    "adaptive": "council.protocols.adaptive:PROTOCOL",
    "panel": "council.protocols.panel:PROTOCOL",
    "quick": "council.protocols.judges:QUICK",
}
# Found by name, so that their runs can be resumed and shown, but not offered: `council eval` and /v1 use them.
UNLISTED_PROTOCOLS = {
    "vote": "council.evals.sampling:PROTOCOL",
    "blind": "council.evals.blind:PROTOCOL",
    "title": "council.protocols.title:PROTOCOL",
}
_registered: dict[str, Protocol] = {}


def register(protocol: Protocol) -> None:
    """Register a third-party protocol for this process. A known name cannot be used for another protocol."""
    name = protocol.name
    if name in SHIPPED_PROTOCOLS or _registered.get(name, protocol) != protocol:
        raise UsageError(f'protocol "{name}" is already registered: choose another name')
    _registered[name] = protocol


@contextmanager
def register_for(protocol: Protocol) -> Iterator[None]:
    """Register a protocol while a block runs, so that it is not offered afterwards."""
    was_known = protocol.name in _registered
    register(protocol)
    try:
        yield
    finally:
        if not was_known:
            del _registered[protocol.name]


def is_registered(name: str) -> bool:
    return name in _registered


def protocol_names(wanted: str | None = None) -> tuple[str, ...]:
    """Return the names of all shipped, registered and installed protocols, and an unlisted one if it is wanted."""
    unlisted = [wanted] if wanted in UNLISTED_PROTOCOLS else []
    return tuple(dict.fromkeys([*SHIPPED_PROTOCOLS, *_registered, *installed(ENTRY_POINT_GROUP), *unlisted]))


def fixed_seat_names() -> tuple[str, ...]:
    """Return the names of the seats that do not depend on options."""
    known = [*map(get_protocol, SHIPPED_PROTOCOLS), *_registered.values()]
    return tuple(dict.fromkeys(seat.name for protocol in known for seat in protocol.seats))


def get_protocol(name: str) -> Protocol:
    """Return the protocol, or raise UsageError with the known names."""
    if name in _registered:
        return _registered[name]
    if name in SHIPPED_PROTOCOLS or name in UNLISTED_PROTOCOLS:
        return _load_shipped(name)
    if added := installed(ENTRY_POINT_GROUP).get(name):
        return _load_entry_point(added)
    raise UsageError(f'unknown protocol "{name}": known are {", ".join(protocol_names())}')


@cache
def _load_shipped(name: str) -> Protocol:
    return cast(Protocol, load_reference((SHIPPED_PROTOCOLS | UNLISTED_PROTOCOLS)[name]))


def find_protocol(name: str) -> Protocol:
    """Return the protocol of a stored run; a plain one if its package is missing or broken."""
    try:
        return get_protocol(name)
    except CouncilError:
        return Protocol(name, "")


def package_of(name: str) -> str:
    """Return the package that adds a protocol; "" for a shipped or registered one."""
    added = None if name in SHIPPED_PROTOCOLS or name in _registered else installed(ENTRY_POINT_GROUP).get(name)
    return added.package if added else ""


def _load_entry_point(added: Added) -> Protocol:
    loaded = added.load("protocol")
    try:
        protocol: Protocol = replace(loaded, name=added.name)
        protocol.load_options()
    except Exception as error:
        raise added.error("protocol", error) from error
    return protocol
