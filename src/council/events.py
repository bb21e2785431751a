"""Everything that can be seen of a run, one tagged class each. Every view is a fold over these."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, get_args

from council.types import Json, Message


@dataclass(frozen=True, slots=True)
class Convened:
    """A council was called; `plan` is the plan object as `--dry-run --json` prints it."""

    type: ClassVar[str] = "convened"
    run: str
    name: str
    plan: Json
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Another process took the run up again after it had stopped; `cap` is what the run may cost from now on."""

    type: ClassVar[str] = "resumed"
    run: str
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase began."""

    type: ClassVar[str] = "phase"
    phase: str


@dataclass(frozen=True, slots=True)
class PhaseEnded:
    """Everyone asked in the phase has spoken or is absent; it will never be asked again."""

    type: ClassVar[str] = "phase_ended"
    phase: str
    absent: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Asked:
    """A seat was asked; `messages` are the exact words."""

    type: ClassVar[str] = "asked"
    key: str
    phase: str
    seat: str
    member: str
    messages: list[Message] = field(default_factory=list)
    schema_name: str = ""


@dataclass(frozen=True, slots=True)
class Attempted:
    """A request left for a member; `why` is empty for the first one, `most` is what it can cost, null if nobody knows."""

    type: ClassVar[str] = "attempt"
    key: str
    seat: str
    n: int
    member: str
    why: str = ""
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Faulted:
    """An attempt failed; `wait` is how long until the next one, if there is one."""

    type: ClassVar[str] = "fault"
    key: str
    seat: str
    n: int
    member: str
    kind: str
    detail: str
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Billed:
    """What a request cost in dollars; `estimated` where the provider did not say what was used."""

    type: ClassVar[str] = "bill"
    key: str
    seat: str
    n: int
    member: str
    usd: float
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of an answer as it streams in. Not kept: replay makes them anew."""

    type: ClassVar[str] = "delta"
    key: str
    seat: str
    text: str


@dataclass(frozen=True, slots=True)
class Stated:
    """A seat's statement is complete; `said` is what a person reads, `reply` the typed part."""

    type: ClassVar[str] = "statement"
    key: str
    phase: str
    seat: str
    state: str
    said: str
    reply: Json | None
    served_by: str
    usage: Json
    attempts: int
    seconds: float
    cut: list[str] = field(default_factory=list)  # what it was not shown, because it did not fit
    dropped: list[str] = field(default_factory=list)  # parameters it refused and was asked without


@dataclass(frozen=True, slots=True)
class WasAbsent:
    """A seat did not speak in a phase, and why."""

    type: ClassVar[str] = "absence"
    key: str
    phase: str
    seat: str
    state: str
    reason: str
    attempts: int = 0
    usage: Json = field(default_factory=dict)  # what its rejected answers cost


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A look-up or a search, done through the gate."""

    type: ClassVar[str] = "lookup"
    key: str
    phase: str
    what: str
    found: int


@dataclass(frozen=True, slots=True)
class Noted:
    """The protocol decided something worth knowing."""

    type: ClassVar[str] = "note"
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """A reader is shown statements under labels; `labels` says whose each one is."""

    type: ClassVar[str] = "labels"
    phase: str
    reader: str
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Voted:
    """A judge's verdict, in short; the whole analysis is in `file`, as seen from the run's folder."""

    type: ClassVar[str] = "verdict"
    seat: str
    phase: str
    verdict: str
    confidence: str
    file: str


@dataclass(frozen=True, slots=True)
class Fetching:
    """Something large is being fetched before the council can sit. Not kept."""

    type: ClassVar[str] = "fetch"
    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The process put its pen down: the run is over, or stopped and resumable (`stopped` says by what)."""

    type: ClassVar[str] = "closed"
    status: str  # complete | incomplete | failed
    verdict: Json  # the fields of types.Verdict
    calls: Json  # {"made", "replayed", "in_doubt"}
    stopped: str = ""  # "" | interrupted | cancelled | chair | quorum | budget
    report_path: str = ""
    reason: str = ""


Event = (
    Convened
    | Resumed
    | PhaseStarted
    | PhaseEnded
    | Asked
    | Attempted
    | Faulted
    | Billed
    | Delta
    | Stated
    | WasAbsent
    | LookedUp
    | Noted
    | Labelled
    | Voted
    | Fetching
    | Closed
)
PASSING = (Delta, Fetching)  # shown, never kept
BY_TAG: dict[str, type[Any]] = {kind.type: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class Entry:
    """An event in its place: its number in the run and its time (seconds since the epoch). Passing events have seq 0."""

    seq: int
    at: float
    event: Event

    def as_json(self) -> Json:
        return {"seq": self.seq, "at": self.at, "type": self.event.type, **asdict(self.event)}


def payload(event: Event) -> Json:
    """Its fields as they are; unlike `asdict` this copies nothing, for whoever writes them down at once."""
    return {name: getattr(event, name) for name in event.__slots__}


def from_payload(tag: str, body: Json) -> Event:
    event: Event = BY_TAG[tag](**body)
    return event
