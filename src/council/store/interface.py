"""Stored data of runs, what the rest of the program needs of a database, and the address of a store."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NotRequired, Protocol, TypedDict, TypeVar, final, get_type_hints

from council.events import Entry
from council.money import PriceObject
from council.types import (
    AbsenceRow,
    Delivery,
    Json,
    JsonSchema,
    Outcome,
    OutcomeLabel,
    RecordedOutcome,
    UsageCounts,
)

R = TypeVar("R")
Row = tuple[str, tuple[object, ...]]  # statement name, values after the run id
LimitChange = Callable[[str, float], tuple[str, R]]  # state of a limit and time → its new state, and a result


class RunStatus(StrEnum):
    """Status of a run. STOPPED is never stored: the run has started and not ended, and no process executes it."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    FAILED = "failed"
    STOPPED = "stopped"


OPEN_STATUSES = (RunStatus.QUEUED, RunStatus.RUNNING)  # stored statuses of runs that have not ended


@dataclass(frozen=True, slots=True)
class RunState:
    """State of a run now: its stored status, and whether a process executes it."""

    run: str
    stored: RunStatus
    is_detached: bool  # the worker executes it
    is_owned: bool  # a process executes it now

    @property
    def status(self) -> RunStatus:
        """Return the status to show. A detached run without a process waits for the worker, any other is stopped."""
        if self.stored is not RunStatus.RUNNING or self.is_owned:
            return self.stored
        return RunStatus.QUEUED if self.is_detached else RunStatus.STOPPED

    @property
    def is_open(self) -> bool:
        """Return whether the run has not ended; it may be stopped."""
        return self.stored in OPEN_STATUSES

    @property
    def is_active(self) -> bool:
        """Return whether the run is queued or running."""
        return self.status in OPEN_STATUSES

    @property
    def is_running(self) -> bool:
        return self.status is RunStatus.RUNNING

    @property
    def needs_worker(self) -> bool:
        """Return whether the run waits for a worker."""
        return self.is_detached and self.is_open and not self.is_owned


# Lists of runs


@dataclass(frozen=True, slots=True)
class Column:
    """How a field of a run's row is described and shown."""

    about: str = ""
    example: object = None
    heading: str = ""  # of its column in a table; "": not in tables
    drop_order: int = 0  # a narrow table leaves out column 1 first, then 2; 0: never


class StoredRun(TypedDict):
    """A run as the database lists it. This is the only declaration of its row.

    Each field is a column of `summaries` in both databases, which a migration adds, or an expression of
    `store.summaries`. Lists, the types of the Python and the HTTP API, their examples and the table of `council runs`
    are made from the fields, in their order.
    """

    run: Annotated[str, Column("The id of the run.", "r2abcd", "RUN")]  # the column `id`
    name: Annotated[str, Column(example="council-20261115-shard-or-scale-up")]
    created: Annotated[float, Column("Seconds since 1970.", 1794742800.0, "STARTED")]
    status: Annotated[RunStatus, Column(example=RunStatus.COMPLETE, heading="STATUS")]
    detached: Annotated[bool, Column("Whether the worker executes it.", False)]
    protocol: Annotated[str | None, Column(example="adversarial", heading="PROTOCOL", drop_order=1)]
    task: Annotated[str | None, Column(example="ask")]
    trust: Annotated[str | None, Column("How far to trust the answer: LOW, MEDIUM or HIGH.", "MEDIUM", "TRUST", 3)]
    cost: Annotated[float | None, Column("In dollars; null if it is unknown.", 0.29, "COST", 2)]
    estimated: Annotated[bool, Column("Whether a part of the cost is an estimate.", False)]
    folder: Annotated[str, Column(example="/srv/shop", heading="FOLDER", drop_order=4)]
    question: Annotated[str, Column(example="Shard or scale up?", heading="QUESTION")]
    title: Annotated[str | None, Column("Given by a user, shown instead of the question.")]
    verdict: Annotated[str | None, Column()]
    outcome: Annotated[str | None, Column(example="MODIFIED")]
    confidence: Annotated[str | None, Column(example="MEDIUM")]
    seconds: Annotated[float | None, Column(example=71.9)]
    owner: Annotated[str | None, Column(example="ann@laptop")]
    project: Annotated[str | None, Column(example="shop")]
    evaluation: Annotated[bool, Column("Whether `council eval` made it.", False)]
    decision_outcome: Annotated[
        OutcomeLabel | None, Column("How the decision turned out: right or wrong; null until it is recorded.")
    ]


class RunRow(StoredRun):
    """A run in a list, with its status now."""

    running: Annotated[bool, Column("Whether a process executes it.", False)]
    unfinished: Annotated[bool, Column("Whether it can be continued.", False)]


@dataclass(frozen=True, slots=True)
class RowField:
    """A field of a row: its name, its type and its column."""

    name: str
    type: Any
    column: Column


def list_fields(row: type) -> list[RowField]:
    """Return the fields of a row, in order."""
    hints = get_type_hints(row, include_extras=True)
    return [RowField(name, hint.__origin__, hint.__metadata__[0]) for name, hint in hints.items()]


class RunPage(TypedDict):
    """A page of runs. `next` is its last run if there are more."""

    runs: list[RunRow]
    more: bool
    next: str | None


# Figures for operators


class Total(NamedTuple):
    """What all runs have used, also removed ones: a sum by provider and kind."""

    name: str  # requests | retries | answers | faults | tokens | cost | councils | takeovers
    provider: str
    kind: str  # of a fault, of tokens; the status of councils
    value: int  # cost: billionths of a dollar


class WaitingRun(NamedTuple):
    """Run in the queue of the workers."""

    run: str
    owner: str
    queue: str
    priority: int
    since: float  # seconds since 1970
    question: str


# Requests

# Faults of an answer, not of a connection.
ANSWER_FAULTS = ("empty", "flood", "length", "loop", "refused", "schema", "stub")


class AttemptEnd(TypedDict):
    """What the result of a request ended; a mark is absent if it is not set."""

    given_up: NotRequired[bool]  # the step
    passed_on: NotRequired[bool]  # the part of its member in the step
    hedged: NotRequired[bool]  # nothing: another member, asked at the same time, answered first


@final
class AnswerResult(AttemptEnd):
    """Stored result of a request that was answered, also if the answer was not accepted."""

    text: str
    finish: str
    usage: UsageCounts
    model: str
    id: NotRequired[str]  # that the endpoint gave the answer


@final
class FaultResult(AttemptEnd):
    """Stored result of a request that failed."""

    fault: str
    detail: str
    said: str
    retry_after: float | None


AttemptResult = AnswerResult | FaultResult


@dataclass(slots=True)
class Attempt:
    """One request that was sent or about to be sent, and its result (None if unknown)."""

    n: int
    member: str
    body: bytes
    result: AttemptResult | None = None
    received: int = 0  # bytes of the answer so far, in this process
    sent_at: float = 0.0  # time of the event loop, in this process
    delivery: Delivery = field(default_factory=Delivery)  # in this process

    @property
    def has_answer(self) -> bool:
        """Return whether the member answered, also if the answer was rejected."""
        result = self.result
        return result is not None and ("text" in result or result.get("fault") in ANSWER_FAULTS)

    @property
    def is_given_up(self) -> bool:
        """Return whether the step ended with this attempt, without a result."""
        return self.result is not None and bool(self.result.get("given_up"))

    @property
    def has_lost_race(self) -> bool:
        """Return whether another member, asked at the same time, answered first."""
        return self.result is not None and bool(self.result.get("hedged"))


HOLD_KEY = ""  # of the row with the money that a run holds for requests that are still to be sent


@dataclass(frozen=True, slots=True)
class Hold:
    """Money to reserve for one request before it is sent, in billionths of a dollar, and the caps that apply."""

    key: str
    n: int
    member: str
    at: float
    day: str
    price: str  # as JSON, for later audits
    reserved: int
    run_cap: int | None = None
    day_cap: int | None = None
    user_cap: int | None = None  # of one user and day
    user: str = ""
    rest: int = 0  # held for the requests of the run that are still to be sent

    def as_row(self) -> tuple[object, ...]:
        return (self.key, self.n, self.member, self.at, self.day, self.price, self.reserved)


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """Why a reservation failed: which cap, its amount, the amount spent or reserved, the amount requested."""

    scope: str  # run | day | user
    cap: int
    spent: int
    requested: int


class Charge(IntEnum):
    """How far the charge of a request is known: the column `estimated` of its spending row."""

    EXACT = 0  # from the usage that the endpoint reported
    ESTIMATED = 1
    IN_DOUBT = 2  # without an answer: the most that it could cost


@dataclass(frozen=True, slots=True)
class SpendingRow:
    """Stored spending of one request. `reserved` is None without a price, `charged` until there is an answer."""

    member: str
    price: PriceObject | None
    reserved: int | None
    charged: int | None = None
    certainty: Charge = Charge.EXACT

    @property
    def estimated(self) -> bool:
        return self.certainty is not Charge.EXACT

    @property
    def is_in_doubt(self) -> bool:
        """Return whether the request has no answer and may have been billed, or is still open."""
        return self.charged is None or self.certainty is Charge.IN_DOUBT

    @property
    def amount(self) -> int:
        return (self.reserved if self.charged is None else self.charged) or 0


class SpentRequest(TypedDict):
    """A request that may cost money, in the order in which it is selected. A removed run has None for its fields."""

    run: str
    key: str
    n: int
    member: str
    at: float
    day: str
    reserved: int | None  # billionths of a dollar; None if the price is unknown
    charged: int | None  # billionths of a dollar; None until there is an answer
    estimated: int  # a `Charge`
    answered: int  # 1 if there is an answer; a fault is none
    usage: UsageCounts | None
    name: str | None
    folder: str | None
    price: PriceObject | None
    protocol: str | None
    status: str | None
    cost: float | None
    stops: int | None
    saved: float | None


class OpenAsk(TypedDict):
    """A question to a person that has no answer."""

    run: str
    key: str
    seat: str
    prompt: str
    schema: JsonSchema | None  # JSON schema of the answer; None for text
    at: float


class SeatOutcome(TypedDict):
    """Whether a seat was right, and the probability behind its stated confidence."""

    seat: str
    perspective: str
    member: str
    right: bool
    confidence: float | None


class DecisionOutcome(RecordedOutcome):
    """How the decision of a run turned out, and which seats were right."""

    seats: list[SeatOutcome]


class StoredOutcome(DecisionOutcome):
    """How the decision of a stored run turned out."""

    run: str


class OpenDecision(TypedDict):
    """A complete run without an outcome."""

    run: str
    created: float
    question: str
    answer: str
    trust: str | None
    skipped: float | None  # when a person last skipped it, in seconds since 1970


@dataclass(slots=True)
class Record:
    """All stored data of one run."""

    run: str
    name: str
    folder: str
    created: float
    seed: str
    setup: Json
    status: str = RunStatus.RUNNING
    report: str = ""
    entries: list[Entry] = field(default_factory=list)
    steps: dict[str, str] = field(default_factory=dict)
    results: dict[str, Outcome] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    phases: dict[str, dict[str, AbsenceRow]] = field(default_factory=dict)  # ended phases: absences by key
    spending: dict[tuple[str, int], SpendingRow] = field(default_factory=dict)  # by key and attempt number
    is_new: bool = False  # this process has made the run
    loaded_setup: tuple[Json, Any] | None = field(default=None, repr=False, compare=False)  # as parsed by `RunSetup.of`


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Token of a user: a keyed hash of its secret part, and what it allows."""

    name: str
    id: str
    salt: str
    digest: str
    scope: str
    cap: int | None  # per day, in billionths of a dollar
    created: float
    revoked: float | None = None


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Key of a request that a client may repeat, and the digest of its content. The server itself has the owner ""."""

    owner: str
    key: str
    digest: str

    def as_row(self) -> Row:
        return "request", (self.owner, self.key, self.digest, time.time())


@dataclass(frozen=True, slots=True)
class EarlierRequest:
    """A request that was sent with a key: the digest of its content, and its run."""

    digest: str
    run: str


# Databases


class Cursor(Protocol):
    """Rows of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What the queries use of a connection: `sqlite3.Connection` has it. Placeholders are `?` and `?1`."""

    @property
    def OperationalError(self) -> type[Exception]: ...
    @property
    def DatabaseError(self) -> type[Exception]: ...
    @property
    def in_transaction(self) -> bool: ...
    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> Cursor: ...


# Stores


class LedgerStore(Protocol):
    """Destination of rows: `post` queues them, `write` returns once they are on disk.

    Rows of one run that are posted or written in one turn of the event loop are one transaction: the rows of a step's
    result are stored together or not at all, and the requests of a phase share one. Rows are stored in their order.
    After a failure, later rows of the run are refused.
    """

    def post(self, run: str, rows: Sequence[Row], *, may_wait: bool = False) -> None: ...

    async def write(self, run: str, rows: Sequence[Row]) -> None: ...


RUN_ID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # no characters that look alike
RUN_ID_CHARS = 8


def format_run_id(number: int) -> str:
    """Return the id of a run that follows from a large number."""
    run = "r"
    for _ in range(RUN_ID_CHARS):
        number, at = divmod(number, len(RUN_ID_ALPHABET))
        run += RUN_ID_ALPHABET[at]
    return run


class RunOwner(Protocol):
    """Process that executes a run. Only one of this machine can be alive, be suspended or get a signal."""

    @property
    def is_alive(self) -> bool: ...
    @property
    def is_suspended(self) -> bool: ...
    def send(self, number: signal.Signals) -> bool: ...


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """Worker process that is alive."""

    name: str
    host: str
    pid: int
    queues: tuple[str, ...]
    version: str = ""
    started: float = 0.0  # seconds since 1970
    running: int = 0  # councils that it executes


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """What a worker can take from the queue."""

    queues: Sequence[str]
    count: int
    seconds: float  # until a claim ends
    excluded: Sequence[str] = ()  # runs that it cannot execute
    ended: Sequence[str] = ()  # runs whose claims it needs no more
    of_owner: int = 0  # limit of councils of one owner at once; 0: no limit
    of_providers: Mapping[str, int] = field(default_factory=dict)  # limits of councils that use a provider


class ClaimedRun(NamedTuple):
    """Run that a worker has claimed."""

    run: str
    was_started: bool  # by a process that is gone


LEASE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where runs are stored: in a folder, or in a database with an address; other files stay in the folder."""

    folder: Path
    url: str = field(default="", repr=False)  # it may have a password
    lease_seconds: float = LEASE_SECONDS
