"""Events of a run, one tagged class each. Every view is a fold over them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, get_args

from council.types import FinalState, Json, Message, Usage, material_of_old_cuts


@dataclass(frozen=True, slots=True)
class Convened:
    """A run started; `plan` is the plan object as `--dry-run --json` prints it."""

    type: ClassVar[str] = "convened"
    run: str
    name: str
    plan: Json
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Resumed:
    """Another process continued the run after it stopped; `cap` is the new cost limit in dollars."""

    type: ClassVar[str] = "resumed"
    run: str
    cap: float | None = None


@dataclass(frozen=True, slots=True)
class PhaseStarted:
    """A phase started."""

    type: ClassVar[str] = "phase"
    phase: str


@dataclass(frozen=True, slots=True)
class PhaseEnded:
    """Every seat asked in the phase has answered or is absent; the phase is never asked again."""

    type: ClassVar[str] = "phase_ended"
    phase: str
    absent: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Asked:
    """A seat was asked; `messages` is the prompt, with secrets masked."""

    type: ClassVar[str] = "asked"
    key: str
    phase: str
    seat: str
    member: str
    messages: list[Message] = field(default_factory=list)
    schema_name: str = ""


@dataclass(frozen=True, slots=True)
class Attempted:
    """A request was sent to a member; `why` is empty for the first attempt, `most` is its maximum cost in dollars, null
    if the price is unknown.

    The first attempt on a fallback has the requested member in `fallback_for` and the state in which it failed in
    `fallback_state`. `seconds` is the time that the member has left for its answer, null if it was not recorded.
    """

    type: ClassVar[str] = "attempt"
    key: str
    seat: str
    n: int
    member: str
    why: str = ""
    most: float | None = None
    fallback_for: str = ""
    fallback_state: str = ""
    seconds: float | None = None


HEDGED = "hedged"  # state of a slow member for the attempt of the member that is asked too


@dataclass(frozen=True, slots=True)
class Hedged:
    """With `--hedge`, the member had not answered after `after` seconds, so the member `by` is asked too.

    The first complete answer counts.
    """

    type: ClassVar[str] = "hedge"
    key: str
    seat: str
    member: str
    by: str
    after: float


@dataclass(frozen=True, slots=True)
class Faulted:
    """An attempt failed; `wait` is the seconds until the next attempt, null if there is none."""

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
    """The cost of a request in dollars; `estimated` if the provider did not report its usage.

    `in_doubt`: there was no answer and it is unknown whether the request was billed; `usd` is the most that it could
    be.
    """

    type: ClassVar[str] = "bill"
    key: str
    seat: str
    n: int
    member: str
    usd: float
    estimated: bool = False
    in_doubt: bool = False
    saved: float | None = None  # by the vendor's cache, negative if writing cost more; null without known use of it


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer. Not stored: replay rebuilds it from the statement."""

    type: ClassVar[str] = "delta"
    key: str
    seat: str
    text: str


@dataclass(frozen=True, slots=True)
class Stated:
    """A seat's statement is complete; `said` is the readable text, `reply` the typed part."""

    type: ClassVar[str] = "statement"
    key: str
    phase: str
    seat: str
    state: FinalState
    said: str
    reply: Json | None
    served_by: str
    usage: Json
    attempts: int
    seconds: float
    cut: list[str] = field(default_factory=list)  # parts that were left out to fit the context window
    dropped: list[str] = field(default_factory=list)  # parameters the member rejected and were left out
    cut_material: list[str] = field(default_factory=list)  # the names in `cut` that are material
    missing: list[str] = field(default_factory=list)  # parts of the typed reply that an answer in prose lacks
    first_text: float | None = None  # time of its first text in seconds since the epoch, null if it was not streamed
    unread: list[str] = field(default_factory=list)  # places of values in the typed reply that could not be read
    unanswered: list[str] = field(default_factory=list)  # parts of the material that a joined statement lacks

    @property
    def tokens(self) -> Usage:
        return Usage.from_json(self.usage)

    @property
    def words(self) -> int:
        return len(self.said.split())


@dataclass(frozen=True, slots=True)
class WasAbsent:
    """A seat did not answer in a phase; `state` and `reason` say why.

    `since` is the phase of an earlier absence that this one repeats.
    """

    type: ClassVar[str] = "absence"
    key: str
    phase: str
    seat: str
    state: FinalState
    reason: str
    attempts: int = 0
    usage: Json = field(default_factory=dict)  # tokens of its rejected answers
    since: str = ""


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A file look-up of a seat, or a web search. `why` is the reason if a part of it is not shown."""

    type: ClassVar[str] = "lookup"
    key: str
    phase: str
    what: str
    found: int
    seat: str = ""  # empty for a search, and in runs of earlier versions
    why: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """The protocol made a decision worth recording; `skipped` are the phases that are not held because of it.

    `by_absence`: they could not be held, because seats are absent. Otherwise they were not needed, and the run has
    saved them.
    """

    type: ClassVar[str] = "note"
    what: str
    why: str
    skipped: list[str] = field(default_factory=list)
    by_absence: bool = False


@dataclass(frozen=True, slots=True)
class Labelled:
    """A reader is shown statements or issues under labels; `labels` maps each label to its seat or to the id of the
    issue.
    """

    type: ClassVar[str] = "labels"
    phase: str
    reader: str
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class Voted:
    """A judge's verdict; `file` is the path of the full analysis, relative if it is inside the run's folder."""

    type: ClassVar[str] = "verdict"
    seat: str
    phase: str
    verdict: str
    confidence: str
    file: str


@dataclass(frozen=True, slots=True)
class Fetching:
    """A large download is in progress before the run can start. Not stored."""

    type: ClassVar[str] = "fetch"
    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The run ended, or stopped and can be resumed (`stopped` is the cause)."""

    type: ClassVar[str] = "closed"
    status: str  # complete | incomplete | failed
    verdict: Json  # the fields of types.Verdict
    calls: Json  # {"made", "replayed", "in_doubt"}
    stopped: str = ""  # "" | interrupted | cancelled | chair | quorum | budget
    report_path: str = ""  # relative if it is inside the run's folder; "" if there is no report file
    reason: str = ""

    @property
    def lacks_answers(self) -> bool:
        """Return whether the run ended by itself because answers were missing, and was not stopped."""
        return self.stopped in ("chair", "quorum") or (self.status == "incomplete" and not self.stopped)


StepEvent = Asked | Attempted | Hedged | Faulted | Billed | Delta | Stated | WasAbsent | LookedUp
Event = Convened | Resumed | PhaseStarted | PhaseEnded | StepEvent | Noted | Labelled | Voted | Fetching | Closed
TRANSIENT_EVENTS = (Delta, Fetching)  # streamed, never stored
EVENT_BY_TAG: dict[str, type[Any]] = {kind.type: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class Entry:
    """An event with its number in the run, 0 if it is not stored, and its time in seconds since the epoch."""

    seq: int
    at: float
    event: Event

    def as_json(self) -> Json:
        return {"seq": self.seq, "at": self.at, "type": self.event.type, **asdict(self.event)}


def dump_fields(value: Any) -> Json:
    """Return the fields of an event or another dataclass with slots without copying them, unlike `asdict`."""
    names, read = _field_reader(value.__class__)
    return dict(zip(names, read(value), strict=True))


def dump_deeply(value: Any) -> Any:
    """Return a value with each dataclass inside it as a dictionary."""
    if isinstance(value, dict):
        return {name: dump_deeply(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [dump_deeply(item) for item in value]
    return dump_deeply(dump_fields(value)) if is_dataclass(value) else value


@cache
def _field_reader(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = kind.__slots__
    return names, attrgetter(*names) if len(names) > 1 else lambda value: (getattr(value, names[0]),)


def parse_event(tag: str, body: Json) -> Event:
    """Build an event from its tag and its stored fields."""
    event: Event = EVENT_BY_TAG[tag](**upgrade_fields(tag, body))
    return event


# Fields that earlier versions did not store: they are read from the texts that these versions wrote.
_OLD_FALLBACK = re.compile(r"fallback: (?P<fallback_for>\S+) (?P<fallback_state>\S+)")
_OLD_REPEATED_ABSENCE = re.compile(r"out since it was \S+ in (?P<since>\S+)")
_OLD_SKIPPED_PHASES = re.compile(r"(?P<phases>.+) skipped")
_OLD_PHASE_NAMES = {"second round": "r2"}


def upgrade_fields(tag: str, body: Json) -> Json:
    """Return the fields of an event with those that an earlier version did not store."""
    if tag == "attempt" and "fallback_for" not in body and (old := _OLD_FALLBACK.fullmatch(body.get("why", ""))):
        return body | old.groupdict()
    if tag == "absence" and "since" not in body and (old := _OLD_REPEATED_ABSENCE.fullmatch(body["reason"])):
        return body | old.groupdict()
    if tag == "note" and "skipped" not in body and (old := _OLD_SKIPPED_PHASES.fullmatch(body["what"])):
        return body | {"skipped": [_OLD_PHASE_NAMES.get(name, name) for name in old["phases"].split(", ")]}
    if tag == "statement" and "cut_material" not in body and body.get("cut"):
        return body | {"cut_material": list(material_of_old_cuts(body["cut"]))}
    return body
