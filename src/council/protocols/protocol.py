"""Definition of a protocol: what the engine, the planner, the reports and the doors need to know about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from council.extensions import load_attribute
from council.types import Json, Seat, Verdict

if TYPE_CHECKING:
    from council.protocols.report_view import ReportView


ProtocolFunction = Callable[..., Awaitable[Verdict]]  # async def protocol(council, **options) -> Verdict
TASKS = ("ask", "validate", "brainstorm", "research")
CHAIR = Seat("chair", "Orchestrator")
NO_OPTIONS = "council.protocols.options:NoOptions"
DEFAULT_REPORT_VIEW = "council.protocols.report_view:ReportView"


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol. A reference is an object or its "module:attr", which is imported when it is needed.

    Files beside the module of `function` belong to the protocol: `prompts/*.md` and, for its reports, `layout.md` and `layouts/*.md`.
    """

    name: str
    function: ProtocolFunction | str
    seats: tuple[Seat, ...] = ()
    chair: Seat | None = CHAIR
    summary: str = ""
    tasks: tuple[str, ...] = (
        "ask",
    )  # the tasks it accepts, the default first: a verb of the question chooses among them
    prompts: Path | None = None  # folder of the prompts; None: `prompts/` beside the function
    options: type[Any] | str | None = None  # pydantic model; None: no options
    spread: bool = True  # spread the seats over vendor families
    resizable: bool = False  # with 2 to 8 members by `-m` it has as many seats; a panel resizes its own seats
    panel: Callable[..., Any] | str = ""  # builds the seats from the options; empty if the seats are fixed
    quorum: int = 1  # seats that must answer
    reads_question: bool = True  # whether its flow depends on the question's text; if not, plans are cached without it
    output_schema: Callable[[str], Json | None] | str = ""  # returns the description of a reply in the packet, by task
    report_view: type[Any] | str = ""  # subclass of ReportView; empty for the default report
    reports_in_project: bool = False  # keep reports in .agents/council of the run's folder, not in the data folder
    purpose: str = ""  # what it is for, for `council protocols`
    example: str = ""  # a command that chooses it; empty for `council --protocol NAME "…"`

    def __post_init__(self) -> None:
        if unknown := [task for task in self.tasks or ("",) if task not in TASKS]:
            raise ValueError(f'protocol "{self.name}": unknown task "{unknown[0]}", use {", ".join(TASKS)}')

    def load(self) -> ProtocolFunction:
        function: ProtocolFunction = load_reference(self.function)
        return function

    def load_options(self) -> type[Any]:
        """Return the pydantic model of the options."""
        model: type[Any] = load_reference(self.options or NO_OPTIONS)
        return model

    def load_output_schema(self, task: str) -> Json | None:
        """Return the description of a reply that the packet of this task contains; None if it contains none."""
        schema: Json | None = load_reference(self.output_schema)(task) if self.output_schema else None
        return schema

    def load_report_view(self) -> ReportView:
        view: ReportView = load_reference(self.report_view or DEFAULT_REPORT_VIEW)()
        return view

    @property
    def folder(self) -> Path | None:
        """The folder of the module that defines the function; None if it has no file."""
        return _find_folder(
            self.function.partition(":")[0] if isinstance(self.function, str) else self.function.__module__
        )

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
