"""Setups: what is stored with a run, so that another process can resume it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict, TypeVar, cast

from council.calling.budget import NO_SPENDING_PLAN, SpendingPlan
from council.events import dump_fields
from council.planning.estimate import CachePoints
from council.settings import LastingFlags
from council.store.interface import Record
from council.types import Attachment, Json, Packet, PacketFile, Question, Roster, Seat, Skipped

if TYPE_CHECKING:
    from council.engine.response_format import ResponseFormat, StoredFormat

T = TypeVar("T")


class BatchLabel(TypedDict):
    """The row of a batch that a run belongs to."""

    batch: str
    row: str
    hash: str  # of the row
    run: str
    seed: NotRequired[str]  # of the random order of the run
    evaluation: NotRequired[bool]  # whether the batch is part of an evaluation


# The run that this one is a fork of, and the phase it starts from.
ForkOrigin = TypedDict(
    "ForkOrigin",
    {
        "run": str,
        "from": str,
        "others": dict[str, list[str]],  # seat → earlier phases in which another member had it
        "warnings": list[str],
        "earlier": list[str],  # the phases whose answers it reuses
    },
    total=False,
)


class RunFlags(LastingFlags, total=False):
    """Flags that are stored with a run."""

    user: str | None  # the name of the token that started the run
    user_cap: float | None  # of this token per day
    trusted: list[str] | None  # hashes of the project's settings that only this run trusts


# Parts of a setup that are stored in a form of their own
STORED_PARTS = ("protocol", "question", "roster", "packet", "shared_vendors", "spending", "flags")


@dataclass(frozen=True, slots=True)
class RunSetup:
    """Setup of a run. `load` gives a default to each field that an earlier version did not store."""

    protocol: str
    question: Question
    roster: Roster
    options: Json = field(default_factory=dict)  # of the protocol
    packet: Packet = field(default_factory=Packet)  # as it was sent; a resumed run does not read files again
    verbose: bool = False
    effort: str | None = None
    given: Json = field(default_factory=dict)  # the options as the user set them, for follow-up runs
    shared_vendors: tuple[str, ...] | None = None  # notices that a fork with other members replaces; None: of 0.1
    spending: SpendingPlan = NO_SPENDING_PLAN
    batch: BatchLabel | None = None
    look: Literal["redact", "refuse"] | None = None  # what look-ups do with secrets; None: there are no look-ups
    look_folder: str = ""  # of the look-ups, if it is not that of the run
    check: bool = False
    response_format: StoredFormat | None = None
    request: Json | None = None  # the request of /v1/responses that the run answers, without its input
    cache_points: CachePoints = field(default_factory=dict)
    version: str = ""  # that made the run
    rules: int | None = None  # number of the rules and prompts of that version
    owner: str | None = None
    project: str | None = None
    day: str = ""  # on which it was made: YYYY-MM-DD
    config: str | None = None  # the configuration file that was named
    flags: RunFlags = field(default_factory=RunFlags)
    fork: ForkOrigin | None = None
    queue: str = ""  # of a shared store
    priority: int = 0

    @classmethod
    def of(cls, record: Record) -> RunSetup:
        """Return the setup of a run. It is parsed once for each record."""
        if record.loaded_setup is None or record.loaded_setup[0] is not record.setup:
            record.loaded_setup = (record.setup, cls.load(record.setup))
        setup: RunSetup = record.loaded_setup[1]
        return setup

    @classmethod
    def load(cls, stored: Mapping[str, Any]) -> RunSetup:
        """Return a stored setup."""
        plain: dict[str, Any] = {name: stored[name] for name in _list_plain_fields() if stored.get(name) is not None}
        shared_vendors = stored.get("shared_vendors")
        spending = stored.get("spending")
        return cls(
            **plain,
            protocol=stored.get("protocol") or "",
            question=_load_fields(Question, stored.get("question") or {"text": ""}),
            roster=_load_roster(stored.get("roster") or {}),
            packet=_load_packet(stored.get("packet") or {}),
            shared_vendors=None if shared_vendors is None else tuple(shared_vendors),
            spending=SpendingPlan.from_json(spending) if spending else NO_SPENDING_PLAN,
            flags=RunFlags(**{name: stored[name] for name in RunFlags.__annotations__ if name in stored}),  # type: ignore[typeddict-item]
        )

    @property
    def changed_seats(self) -> Mapping[str, Sequence[str]]:
        """Return the seats that a fork gave another member, with their phases before the fork."""
        return self.fork.get("others", {}) if self.fork else {}

    def load_response_format(self) -> ResponseFormat | None:
        if not self.response_format:
            return None
        from council.engine.response_format import ResponseFormat  # only with a response format

        return ResponseFormat.load(self.response_format)

    def as_json(self) -> Json:
        """Return the form in which it is stored."""
        chair = self.roster.chair
        packet = dump_fields(self.packet)
        for name in ("files", "skipped", "attachments"):
            packet[name] = tuple(map(dump_fields, packet[name]))
        stored: Json = {
            "protocol": self.protocol,
            "question": dump_fields(self.question),
            "options": self.options,
            "roster": {
                "seats": tuple(map(dump_fields, self.roster.seats)),
                "chair": dump_fields(chair) if chair else None,
                "helpers": tuple(map(dump_fields, self.roster.helpers)),
            },
            "verbose": self.verbose,
            "packet": packet,
            "effort": self.effort,
            "given": self.given,
        }
        if self.shared_vendors is not None:
            stored["shared_vendors"] = list(self.shared_vendors)
        if self.spending != NO_SPENDING_PLAN:
            stored["spending"] = self.spending.as_json()
        filled = {name: value for name in _list_plain_fields() if (value := getattr(self, name))}
        return stored | filled | self.flags


@cache
def _list_field_names(kind: Any) -> list[str]:
    return [one.name for one in fields(kind)]


@cache
def _list_plain_fields() -> list[str]:
    return [name for name in _list_field_names(RunSetup) if name not in STORED_PARTS]


def _load_fields(kind: type[T], stored: Mapping[str, Any]) -> T:
    """Return a dataclass from its stored fields, without those of other versions."""
    values: dict[str, Any] = {}
    for name in _list_field_names(cast("Any", kind)):
        if name in stored:
            value = stored[name]
            values[name] = _make_tuple(value) if isinstance(value, list | tuple) else value
    return kind(**values)


def _make_tuple(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_make_tuple(value) if isinstance(value, list | tuple) else value for value in values)


def _load_roster(stored: Mapping[str, Any]) -> Roster:
    chair = stored.get("chair")
    return Roster(
        tuple(_load_fields(Seat, seat) for seat in stored.get("seats") or ()),
        _load_fields(Seat, chair) if chair else None,
        tuple(_load_fields(Seat, seat) for seat in stored.get("helpers") or ()),
    )


def _load_packet(stored: Mapping[str, Any]) -> Packet:
    parts = {
        "files": tuple(_load_fields(PacketFile, row) for row in stored.get("files") or ()),
        "skipped": tuple(_load_fields(Skipped, row) for row in stored.get("skipped") or ()),
        "attachments": tuple(_load_fields(Attachment, row) for row in stored.get("attachments") or ()),
    }
    return _load_fields(Packet, {**stored, **parts})
