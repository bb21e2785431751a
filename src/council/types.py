"""Shared value types. This module imports nothing from council."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

T = TypeVar("T")
Json = dict[str, Any]
Message = dict[str, str]
VerdictWord = Literal["PASS", "WARN", "FAIL"]  # of one judge
OverallVerdict = Literal["PASS", "WARN", "FAIL", "DISAGREE"]
SEVERITIES = ("FATAL", "MAJOR", "MINOR")  # of an issue, the most severe first
VERDICT_ORDER: tuple[OverallVerdict, ...] = ("PASS", "WARN", "DISAGREE", "FAIL")  # from best to worst
_STATEMENT_CUT = "the words of "  # prefix of a cut in a statement
AnswerState = Literal["ok", "ok_repaired", "truncated", "degenerate", "refused", "in_doubt", "timed_out"]
SkippedState = Literal["skipped(budget)", "skipped(cancel)"]
ServiceFailure = Literal["failed(net)", "failed(rate)", "failed(quota)", "failed(overload)", "failed(server)"]
RequestFailure = Literal["failed(schema)", "failed(size)", "failed(model)", "failed(auth)", "failed(endpoint)"]
MemberFailure = Literal["failed(parameter)", "failed(member)", "failed(script)", "failed(flood)"]
CommandFailure = Literal[
    "failed(cli:start)",
    "failed(cli:exit)",
    "failed(cli:error)",
    "failed(cli:output)",
    "failed(cli:flood)",
    "failed(cli:silent)",
]
# How a step of a seat ended.
FinalState = Literal[AnswerState, SkippedState, ServiceFailure, RequestFailure, MemberFailure, CommandFailure]
# The state of a seat in a view.
SeatState = FinalState | Literal["waiting", "asked", "writing", "not_asked", "no_answer"]
OK_STATES: tuple[FinalState, ...] = ("ok", "ok_repaired")
STATES_OUT_FOR_RUN: tuple[FinalState, ...] = (
    "timed_out",
    "failed(auth)",
    "failed(quota)",
    "failed(model)",
    "failed(endpoint)",
    "failed(flood)",
    "failed(cli:silent)",
)


class JsonSchema(TypedDict, total=False):
    """The JSON Schema of a reply, of options or of a part of them, with the keywords that Council reads or writes.

    `also`, `each` and `main` are keywords of replies, which are not sent to members.
    """

    type: str
    title: str
    description: str
    properties: dict[str, JsonSchema]
    required: list[str]
    additionalProperties: bool
    items: JsonSchema
    anyOf: list[JsonSchema]
    enum: list[Any]
    const: Any
    default: Any
    examples: list[Any]
    minimum: float
    maximum: float
    minItems: int
    maxItems: int
    maxLength: int
    each: str  # the list needs a row for each choice of this field
    also: list[str]  # other names of the field
    main: bool  # a text beside the row's name stands for this field


class JsonBytes(bytes):
    value: Any  # what the JSON encodes


_dump_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_json(value: Any) -> bytes:
    """Return compact JSON. A lone surrogate has no UTF-8, so it is replaced."""
    text = _dump_compact(value)
    try:
        body = JsonBytes(text.encode())
    except UnicodeEncodeError:
        return text.encode(errors="replace")
    body.value = value
    return body


def repair_surrogates(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which can be neither stored nor sent."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def map_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each string in it changed, also the keys."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): map_strings(item, change) for key, item in value.items()}
    return [map_strings(item, change) for item in value] if isinstance(value, list | tuple) else value


FORMAT_PHASE, FORMAT_SEAT = "format", "formatter"  # of the call that writes the answer as JSON
DEFAULT_PACKET_TOKENS = 30_000  # of the material of a review


def estimate_tokens(text: str) -> int:
    """Return a conservative estimate: 3 bytes per token."""
    return -(-len(text.encode()) // 3)


MAX_TOKEN_COUNT = 10**9  # a reported count must be lower
INVALID_COUNT = 10**18  # value of an invalid count: sums and differences with it are invalid too


def parse_token_count(value: object) -> int:
    """Return a token count that a provider reported, or INVALID_COUNT. Only integers from 0 to 10^9 are counts."""
    return value if type(value) is int and 0 <= value < MAX_TOKEN_COUNT else INVALID_COUNT  # True is no count


UsageCounts = TypedDict(
    "UsageCounts", {"in": int, "out": int, "cached": int, "written": int, "unknown": bool}, total=False
)
UsageCounts.__doc__ = "Token counts as they are stored; what is empty is left out, and an absence may have none."


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one answer from the provider. If `known` is False, they are a lower bound."""

    input: int = 0  # all input tokens, including cache reads and writes
    output: int = 0  # all output tokens, including reasoning
    cached: int = 0  # input tokens read from a cache
    known: bool = True
    written: int = 0  # input tokens written to a cache

    def __add__(self, other: Usage) -> Usage:
        known, written = self.known and other.known, self.written + other.written
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached, known, written)

    def validated(self) -> Usage:
        """Return the usage, as unknown and with 0 for each invalid count if there is one."""
        reported = (self.input, self.output, self.cached, self.written)
        if {type(count) for count in reported} == {int} and min(reported) >= 0 and max(reported) < MAX_TOKEN_COUNT:
            return self
        read, output, cached, written = (0 if n == INVALID_COUNT else n for n in map(parse_token_count, reported))
        return Usage(read, output, cached, False, written)

    def as_json(self) -> UsageCounts:
        counts: UsageCounts = {"in": self.input, "out": self.output, "cached": self.cached}
        if self.written:
            counts["written"] = self.written
        if not self.known:
            counts["unknown"] = True
        return counts

    @classmethod
    def from_json(cls, counts: UsageCounts | Json) -> Usage:
        return cls(
            input=int(counts.get("in", 0)),
            output=int(counts.get("out", 0)),
            cached=int(counts.get("cached", 0)),
            known=not counts.get("unknown"),
            written=int(counts.get("written", 0)),
        )


NO_USAGE = Usage()


@dataclass(frozen=True, slots=True)
class Seat:
    """Seat of a council: its name, its perspective and the member assigned to it."""

    name: str
    role: str = ""  # the title shown to people: "Deep Explorer"
    perspective: str = ""  # "depth and exploration"
    focus: str = ""  # what the perspective looks for in the material; for an advisor, its stance
    style: str = ""  # writing style
    member: str = ""  # provider:model
    vendor: str = ""  # model family, for the independence of seats
    fallbacks: tuple[str, ...] = ()
    small: bool = False  # use the compact template; set by the requested member, also for its fallbacks
    fallback_vendors: tuple[tuple[str, str], ...] = ()  # fallbacks whose vendor is not their provider, and that vendor

    @property
    def label(self) -> str:
        return self.name.capitalize()

    def vendor_of(self, served_by: str) -> str:
        """Return the vendor of the member that answered for this seat: its own, or a fallback."""
        if served_by in ("", self.member):
            return self.vendor
        return dict(self.fallback_vendors).get(served_by) or served_by.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Roster:
    """The seats and the chair of a council."""

    seats: tuple[Seat, ...]
    chair: Seat | None = None
    helpers: tuple[Seat, ...] = ()  # seats that another seat may call, by kind: "explorer"

    @property
    def all_seats(self) -> tuple[Seat, ...]:
        return (*self.seats, *((self.chair,) if self.chair else ()), *self.helpers)

    @property
    def member_names(self) -> tuple[str, ...]:
        """Return every member that may be called, including fallbacks."""
        return tuple(dict.fromkeys(name for seat in self.all_seats for name in (seat.member, *seat.fallbacks)))

    def map_seats(self, change: Callable[[Seat], Seat]) -> Roster:
        """Return the roster with every seat changed."""
        chair = change(self.chair) if self.chair else None
        return Roster(tuple(map(change, self.seats)), chair, tuple(map(change, self.helpers)))


@dataclass(frozen=True, slots=True)
class Question:
    """Question of a run. `text` does not include the words that only selected the protocol."""

    text: str
    task: str = "ask"
    target: str | None = None
    domain: str = "general"

    def __str__(self) -> str:
        return self.text


LINE_BREAK = re.compile(r"\r\n|\r|\n")
PacketPart = Literal["", "rules", "definitions", "callers", "tests", "types", "rest"]  # why a file is in the packet


def format_elision(first: int, last: int) -> str:
    """Return the line that stands for lines of a file that are left out."""
    return f"… lines {first}-{last} not shown …" if last > first else f"… line {first} not shown …"


@dataclass(frozen=True, slots=True)
class PacketFile:
    """File in the packet with its included content."""

    path: str
    content: str  # the included lines, without marks for what is left out
    ranges: tuple[tuple[int, int], ...] = ()  # first and last line of each part, in order; empty: the whole file
    part: PacketPart = ""  # empty: named by the user, or a changed file as a whole
    reason: str = ""  # worded for the reader: "calls price_of"
    lines: int = 0  # of the whole file, if only a part is included

    def number_lines(self) -> list[tuple[int, str]]:
        """Return the included lines with their numbers in the file. Lines end as in an editor: CRLF, CR or LF."""
        texts = LINE_BREAK.split(self.content)
        texts = texts[:-1] if texts[-1] == "" else texts
        if not self.ranges:
            return list(enumerate(texts, 1))
        numbers = [number for first, last in self.ranges for number in range(first, last + 1)]
        return list(zip(numbers, texts, strict=False))

    def list_blocks(self) -> list[list[tuple[int, str]] | tuple[int, int]]:
        """Return the included lines in blocks, and between them the first and last line of what is left out."""
        blocks: list[list[tuple[int, str]] | tuple[int, int]] = []
        block: list[tuple[int, str]] = []
        expected = 1
        for number, text in self.number_lines():
            if number > expected:
                blocks.append((expected, number - 1))
            if number != expected or not block:
                block = []
                blocks.append(block)
            block.append((number, text))
            expected = number + 1
        if self.ranges and expected <= self.lines:
            blocks.append((expected, self.lines))
        return blocks


@dataclass(frozen=True, slots=True)
class Skipped:
    """Path left out of the packet. A hole is one that the judges should have seen."""

    path: str
    why: str
    hole: bool = False


@dataclass(frozen=True, slots=True)
class Attachment:
    """Image or PDF, as it is sent to members that accept it. The text of a PDF is a file of the packet."""

    path: str  # attached/NAME
    media_type: str
    sha256: str  # of its bytes
    bytes: int
    data: str  # base64
    width: int = 0
    height: int = 0
    pages: int = 0
    has_text: bool = False  # a PDF whose text is a file of the packet

    @property
    def kind(self) -> Literal["image", "pdf"]:
        return "pdf" if self.media_type == "application/pdf" else "image"


DIFF_SCOPE = "The diff is the object of this review: what it changes, and the new files that it lists. The other content is context."
NO_MATCH = "no file here matches"  # start of the remark that other material is reviewed


class DossierFile(TypedDict):
    """A file of the packet; its lines are numbered."""

    path: str
    content: str


class DossierSpec(TypedDict):
    """The specification to judge against; the source is "none" without one."""

    source: str
    content: str


class DossierAttachment(TypedDict):
    """An image or a PDF that is sent beside the packet."""

    path: str
    media_type: str


class DossierContext(TypedDict):
    """The material of a packet."""

    files: list[DossierFile]
    diff: str
    spec: DossierSpec
    prior_decisions: list[str]
    environment: NotRequired[str]
    commits: NotRequired[list[str]]
    attachments: NotRequired[list[DossierAttachment]]
    scope: NotRequired[str]  # of a review of changes


class CouncilPacket(TypedDict):
    """A packet as a seat reads it."""

    version: str
    mode: str  # the task
    target: str
    context: DossierContext
    perspective: NotRequired[str]
    perspective_description: NotRequired[str]
    output_schema: NotRequired[Json]


class Dossier(TypedDict):
    """The packet of a seat, under its name."""

    council_packet: CouncilPacket


@dataclass(frozen=True, slots=True)
class Packet:
    """Material that is sent with the question."""

    files: tuple[PacketFile, ...] = ()
    diff: str = ""
    spec_source: str = ""
    spec: str = ""
    prior_decisions: tuple[str, ...] = ()
    environment: str = ""
    skipped: tuple[Skipped, ...] = ()
    masked: int = 0  # number of masked secrets
    target: str = ""
    matched: tuple[str, ...] = ()  # words resolved to paths: `auth → src/auth/`
    stripped: int = 0  # number of removed invisible characters
    prefix: str = ""  # the folder of the packet in its repository: `services/api/`; empty at the top or outside of one
    note: str = ""  # why the packet is empty
    remarks: tuple[str, ...] = ()  # what was chosen, changed or left out of scope, one line each
    refusal: str = ""  # why a review of this packet cannot start
    commits: tuple[str, ...] = ()  # id and subject of each reviewed commit, newest first
    attachments: tuple[Attachment, ...] = ()
    budget: int = 0  # tokens of one request; a larger diff is sent in several; 0: no limit

    @property
    def substitution(self) -> str:
        """Return the remark that the words matched no file and which material was taken instead, or an empty string."""
        return next((one for one in self.remarks if one.startswith(NO_MATCH)), "")

    @property
    def bytes(self) -> int:
        return sum(len(text.encode()) for text in self._iter_texts())

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(text) for text in self._iter_texts())

    @property
    def holes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.path for item in self.skipped if item.hole))

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to judge; decisions and the environment do not count as material."""
        return not (self.files or self.diff or self.spec or self.attachments)

    def _iter_texts(self) -> Iterator[str]:
        yield from (text for file in self.files for text in (file.path, file.content))
        yield from (self.diff, self.spec, *self.prior_decisions, self.environment, *self.commits)


@dataclass(frozen=True, slots=True)
class Ask:
    """Request to a member, independent of the provider's wire format."""

    key: str
    messages: tuple[Message, ...]
    schema: JsonSchema | None = None
    schema_name: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    words: int | None = None  # approximate answer length; stated in the prompt, not a request parameter
    bare: bool = False  # sent without optional parameters, which an endpoint may reject
    effort: str | None = None  # reasoning effort: low | medium | high
    shared: int = 0  # leading characters of the first user message that are the same for every seat
    attachments: tuple[Attachment, ...] = ()  # sent with the first user message
    max_thinking: int | None = None  # limit of the allowance for thinking, in tokens; None: that of the effort
    cache_points: tuple[int, ...] = ()  # to cache up to: 0 the end of the shared part, n that of user message n
    cache_key: str = ""  # the same for all requests of a run, for vendors that route requests by it


@dataclass(frozen=True, slots=True)
class Answer:
    """Unchecked answer of a member."""

    text: str
    finish: str = "stop"  # stop | length | refused | spoken (by a person)
    usage: Usage = Usage()
    model: str = ""
    id: str = ""  # the vendor's id of this answer


@dataclass(frozen=True, slots=True)
class Cuts:
    """Parts of a request that were cut to fit the context window.

    `material` has the names of what is to be judged, `context` those of other material, `statements` the seats.
    """

    material: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    context: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.material or self.statements or self.context)

    @property
    def descriptions(self) -> tuple[str, ...]:
        return (*self.material, *self.context, *(f"{_STATEMENT_CUT}{name}" for name in self.statements))


def material_of_old_cuts(descriptions: Sequence[str]) -> tuple[str, ...]:
    """Return the material in cuts that an earlier version stored as descriptions alone."""
    return tuple(cut for cut in descriptions if not cut.startswith(_STATEMENT_CUT))


class FixedSeconds(float):
    """Seconds that the user set: they are not extended for a member that thinks."""


Shrink = Callable[[Ask, float], tuple[Ask, Cuts] | None]  # (ask, share) → the shorter ask, its cuts


@dataclass(slots=True, eq=False)
class SeatWatch:
    """Shared state between a phase and the call of one seat, for the grace period."""

    has_output: bool = False  # part of the answer has arrived
    drop: Callable[[str], None] = lambda why: None  # drops the seat; set by the caller that executes the step


class StatedLimit(NamedTuple):
    """A limit of a vendor that an answer states."""

    kind: str  # requests, input, output, or tokens (input and output together)
    most: int
    left: int
    reset: float  # seconds


@dataclass(slots=True)
class Delivery:
    """How far a request has got, as far as its member tells. It decides whether a request that fails may be billed."""

    is_connecting: bool = False  # no byte of the request was sent
    is_sent: bool = False  # the request went out on an open connection
    has_output: bool = False  # text or thinking has arrived
    on_limits: Callable[[Sequence[StatedLimit]], object] | None = (
        None  # called with what the headers of an answer state
    )


current_delivery: ContextVar[Delivery | None] = ContextVar("current_delivery", default=None)


@dataclass(frozen=True, slots=True)
class PartialReply:
    """What can be used of a text that is no complete typed reply, if its repair turn does not give one."""

    reply: Any
    fields: int  # that it has; of two texts the one with more fields is used


@dataclass(frozen=True, slots=True)
class Step:
    """Ask with everything that the retry loop needs to execute it."""

    ask: Ask
    seat: str
    chain: tuple[str, ...]  # the requested member, then its fallbacks
    read: Callable[[str], Any]  # raises Fault("schema") with the validator's message
    repair: Callable[[str, str], Ask]  # (answer text, validator's message) → the repair turn
    timeout: float | None = None  # seconds of each member for all its attempts; None: the member's default
    shrink: Shrink = lambda ask, share: None  # returns None if nothing can be cut
    is_chair: bool = False  # a chair may not be replaced by another seat
    watch: SeatWatch = field(default_factory=SeatWatch)
    reply: type[Any] | None = None  # type of the reply; None for free text
    read_partial: Callable[[str], PartialReply | None] = lambda text: None
    review: Callable[[str], str] = lambda text: ""  # contradictions in a readable reply: repaired once, then it is used
    is_final: bool = False  # free text that is the answer of the run: wrappers and openings are removed
    is_json: bool = False  # JSON for a program, of which `read` returns the compact form


class StepResult(TypedDict):
    """The result of a step as it is stored. Earlier versions have no `cut_material`."""

    state: FinalState
    text: str
    reason: str
    served_by: str
    usage: UsageCounts
    attempts: int
    seconds: float
    cut: NotRequired[list[str]]
    dropped: NotRequired[list[str]]
    cut_material: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a step: an accepted answer, or an absence with its reason."""

    state: FinalState
    text: str = ""
    reason: str = ""
    served_by: str = ""
    usage: Usage = Usage()
    attempts: int = 0
    seconds: float = 0.0
    cut: tuple[str, ...] = ()  # parts left out because they did not fit
    dropped: tuple[str, ...] = ()  # parameters that the member rejected
    cut_material: tuple[str, ...] = ()  # the names in `cut` that are material, not statements of seats

    @property
    def ok(self) -> bool:
        """Return whether the answer counts. A truncated one has text only if its typed reply is complete."""
        return self.state in OK_STATES or (self.state == "truncated" and bool(self.text))

    def as_json(self) -> StepResult:
        result: StepResult = {
            "state": self.state,
            "text": self.text,
            "reason": self.reason,
            "served_by": self.served_by,
            "usage": self.usage.as_json(),
            "attempts": self.attempts,
            "seconds": self.seconds,
        }
        if self.cut:
            result |= {"cut": list(self.cut), "cut_material": list(self.cut_material)}
        if self.dropped:
            result["dropped"] = list(self.dropped)
        return result

    @classmethod
    def from_json(cls, result: StepResult) -> Outcome:
        cut = tuple(result.get("cut", ()))
        known = result.get("cut_material")
        material = material_of_old_cuts(cut) if known is None else tuple(known)
        return cls(
            state=result["state"],
            text=result.get("text", ""),
            reason=result.get("reason", ""),
            served_by=result.get("served_by", ""),
            usage=Usage.from_json(result["usage"]),
            attempts=result.get("attempts", 0),
            seconds=result.get("seconds", 0.0),
            cut=cut,
            dropped=tuple(result.get("dropped", ())),
            cut_material=material,
        )


# Look-ups and searches

FileRange = TypedDict("FileRange", {"path": str, "from": int, "to": int})
FileRange.__doc__ = "Lines of a file to look up; 0 to 0 is the whole file."


class LookupQuery(TypedDict):
    """What a seat or an explorer wants to look up in the project."""

    files: list[FileRange]
    names: list[str]
    patterns: list[str]


class SearchQuery(TypedDict):
    """What is to be searched in the web, and how new the results have to be."""

    queries: list[str]
    freshness: str


class LookupHit(TypedDict):
    """A line that matches a pattern, or why it is not shown."""

    path: str
    line: NotRequired[int]
    text: NotRequired[str]
    why: NotRequired[str]


LookupRow = TypedDict(
    "LookupRow",
    {
        "look": Literal["file", "name", "pattern"],
        "why": NotRequired[str],  # why it is not shown
        "path": NotRequired[str],  # of a file
        "from": NotRequired[int],
        "to": NotRequired[int],
        "lines": NotRequired[int],  # of the whole file
        "content": NotRequired[str],
        "invisible_characters_removed": NotRequired[int],
        "is_cut": NotRequired[bool],  # to fit the limit of the seat
        "name": NotRequired[str],
        "paths": NotRequired[list[str]],  # that have the name
        "more": NotRequired[int],  # paths that are not listed
        "pattern": NotRequired[str],
        "hits": NotRequired[list[LookupHit]],
        "left_out": NotRequired[list[LookupHit]],
        "unread": NotRequired[int],  # files that were not searched
    },
)
LookupRow.__doc__ = "The result of one look-up."


class SearchRow(TypedDict):
    """A result of a web search, or why a query has none."""

    query: str
    title: NotRequired[str]
    url: NotRequired[str]
    snippet: NotRequired[str]
    marked: NotRequired[list[str]]  # why its text may be an injection
    invisible: NotRequired[int]  # invisible characters that were removed
    why: NotRequired[str]
    remark: NotRequired[bool]  # `why` is a limit of the provider, not of a query


class Effects(TypedDict, total=False):
    """What a council does besides requests to members; it has no other access to files and to the network."""

    look: Callable[[LookupQuery], Awaitable[Sequence[LookupRow]]]
    search: Callable[[SearchQuery], Awaitable[Sequence[SearchRow]]]


CarryOut = Callable[[Step], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Statement(Generic[T]):
    """Answer of a seat in a phase. `reply` is the typed reply, if one was requested."""

    seat: Seat
    key: str
    text: str
    reply: T
    outcome: Outcome = field(default_factory=lambda: Outcome("ok"))
    conversation: tuple[Message, ...] = ()

    @property
    def said(self) -> str:
        """Return the statement as readable prose."""
        prose = getattr(self.reply, "prose", None)
        return str(prose()) if prose else self.text

    @property
    def vendor(self) -> str:
        """Return the vendor of the member that answered."""
        return self.seat.vendor_of(self.outcome.served_by)


@dataclass(frozen=True, slots=True)
class Absence:
    """Seat that did not answer, and why."""

    seat: Seat
    state: FinalState
    reason: str
    since: str = ""  # the phase of an earlier absence that this one repeats


class AbsenceRow(TypedDict):
    """An absence as the end of its phase stores it."""

    seat: str
    state: FinalState
    reason: str
    since: NotRequired[str]


class Round(Mapping[str, Statement[T]]):
    """Statements of one phase by seat name, in seating order, and the absent seats."""

    def __init__(self, statements: Sequence[Statement[T]] = (), absent: Sequence[Absence] = ()) -> None:
        self._statements = {statement.seat.name: statement for statement in statements}
        self.absent = {absence.seat.name: absence for absence in absent}

    def __getitem__(self, name: str) -> Statement[T]:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)

    @property
    def seats(self) -> tuple[Seat, ...]:
        return tuple(statement.seat for statement in self._statements.values())

    def own(self, seat: Seat) -> Statement[T]:
        return self._statements[seat.name]

    def others(self, seat: Seat) -> list[Statement[T]]:
        return [statement for name, statement in self._statements.items() if name != seat.name]

    def seats_but(self, name: str) -> tuple[Seat, ...]:
        return tuple(seat for seat in self.seats if seat.name != name)

    def revised(self, later: Round[T]) -> Round[T]:
        """Return this round with later statements replacing earlier ones; seats without a later one keep theirs."""
        return Round(
            [later.get(name, statement) for name, statement in self._statements.items()], list(later.absent.values())
        )


Agreement = Literal["", "full", "partial", "none"]
CONCLUSIONS = "conclusions"  # detail of a fact: the statements agree with each other, and there is no other answer
# Facts that limit trust to a level. The order is that of the reasons: the most telling first of its level.
OpenFactKind = Literal["fatal_landed", "open_fatal", "open_dispute", "error_open_fatal"]
ContestedFactKind = Literal["disagree", "overturned", "contradictory_ruling", OpenFactKind, "contested"]
SingleFactKind = Literal["no_seat", "one_seat", "one_asked", "one_voice", "not_complete", "embedded", "no_material"]
NoAgreementFactKind = Literal["all_rejected", "not_shared", "ballots_split", "no_common_point"]
LowFactKind = Literal[SingleFactKind, NoAgreementFactKind, "error_dismissed_fatal", "low_confidence"]
AgreementFactKind = Literal["one_vendor", "partial_agreement", "not_assessed", "in_turn"]
RulingFactKind = Literal["modified", "landed", "unruled", "unclear_ruling", "unsupported_rejection"]
CheckFactKind = Literal["error_open", "error_dismissed", "error_corrected", "not_checked", "confirmed_by_reader"]
DoubtFactKind = Literal[
    "not_argued", "doubts", "self_attacked", "unsettled_flag", "low_marks", "unsure", "no_confidence"
]
EvidenceFactKind = Literal["contested_points", "no_evidence", "no_sources", "no_quote"]
VoiceFactKind = Literal["shared_member", "own_attack", "inconsistent", "substituted", "weak_flip"]
BallotFactKind = Literal["ballots_differ", "few_ballots"]
DegradedFactKind = Literal["missed_phase", "fallback", "cut", "unseen", "truncated", "prose", "partly_read", "dropped"]
MediumFactKind = Literal[
    "strongest_absent",
    "absent",
    AgreementFactKind,
    RulingFactKind,
    CheckFactKind,
    DoubtFactKind,
    EvidenceFactKind,
    VoiceFactKind,
    BallotFactKind,
    DegradedFactKind,
    "coverage_hole",
    "degraded",
    "medium_confidence",
]
# In favour of the answer, in the order in which they are told.
ConsentFactKind = Literal["all_agree", "all_hold", "same_verdict", "all_answered"]
EvidentFactKind = Literal["verified_findings", "dismissed", "agreed_points", "cited_sources", "checked"]
SupportingFactKind = Literal["turned_out_right", ConsentFactKind, EvidentFactKind]
# How decisions turned out after their runs. They are told first, and the level of the run stays.
OutcomeFactKind = Literal["turned_out_wrong", "earlier_wrong", "forked_wrong"]
TrustFactKind = Literal[OutcomeFactKind, ContestedFactKind, LowFactKind, MediumFactKind, SupportingFactKind]


class TrustFactRow(TypedDict):
    """A trust fact as it is stored. Earlier versions leave out what is empty."""

    kind: TrustFactKind
    detail: NotRequired[str]
    seats: NotRequired[Sequence[str]]
    count: NotRequired[int]
    total: NotRequired[int]


@dataclass(frozen=True, slots=True)
class TrustFact:
    """A fact for or against trust. `engine.trust` gives its level, `wording` its sentence."""

    kind: TrustFactKind
    detail: str = ""  # words of a seat or of the chair, for example the point, or a word such as a state
    seats: tuple[str, ...] = ()
    count: int = 0
    total: int = 0

    def as_row(self) -> TrustFactRow:
        return {"kind": self.kind, "detail": self.detail, "seats": self.seats, "count": self.count, "total": self.total}

    @classmethod
    def load(cls, row: TrustFactRow) -> TrustFact:
        """Return the fact of a stored row."""
        seats = tuple(row.get("seats") or ())
        return cls(row["kind"], row.get("detail") or "", seats, row.get("count") or 0, row.get("total") or 0)


@dataclass(frozen=True, slots=True)
class Side:
    """One position on a point, who holds it, and what it assumes."""

    seats: tuple[str, ...]
    position: str
    assumes: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """A point on which seats differ. Without sides only the point is known."""

    point: str
    sides: tuple[Side, ...] = ()


OutcomeLabel = Literal["right", "wrong"]


class RecordedOutcome(TypedDict):
    """How the decision of a run turned out, as a person recorded it."""

    at: float  # when it was recorded, in seconds since 1970
    label: OutcomeLabel
    value: str  # the value that was right, if it was named
    note: str


@dataclass(frozen=True, slots=True)
class RunOutcomes:
    """How the decision of a run turned out, and those of the runs that it continues or is a fork of, by run."""

    own: RecordedOutcome | None = None
    earlier: Mapping[str, OutcomeLabel] = field(default_factory=dict)


NO_OUTCOMES = RunOutcomes()

DraftOutcome = Literal["survived", "unopposed", "consensus", "modified", "corrected", "overturned", "untested"]
VoteOutcome = Literal["votes", "capped", "split", "first", "no_first"]
OutcomeKind = Literal[DraftOutcome, VoteOutcome, "built_on", "settled", "stopped"]


@dataclass(frozen=True, slots=True)
class OutcomeFacts:
    """What the outcome line says: what became of the leading draft, how judges voted, or which answer came first."""

    kind: OutcomeKind
    seat: str = ""  # whose draft led, or whose answer came first
    replaced_by: str = ""  # whose draft replaced it, or who confirmed it
    word: str = ""  # a verdict
    count: int = 0  # criticisms that landed, votes, or calls until a stop
    total: int = 0  # criticisms, or voters
    changes: int = 0  # changes of the leading draft


class CheckedErrorRow(TypedDict):
    """A checked error as it is stored."""

    id: str
    severity: str
    hits: str
    flaw: str
    harm: str
    correction: str
    landed: bool | None
    why: str
    state: Literal["corrected", "dismissed", "open"]
    same_as: str | None
    check: int


@dataclass(frozen=True, slots=True)
class CheckedError:
    """An error that a reader found in a finished text, and what its author did about it."""

    id: str  # the reader and a number: beta-1
    severity: str
    hits: str  # the words that are wrong
    flaw: str
    harm: str
    correction: str
    landed: bool | None  # whether the author ruled that it is right; None without a clear ruling
    why: str
    state: Literal["corrected", "dismissed", "open"]
    same_as: str | None = None  # the id of an error that the same correction settles; both count once
    check: int = 1  # 2 for the second check


@dataclass(frozen=True, slots=True)
class CheckFacts:
    """The check of a finished text: who read it, what they found, and who corrected it."""

    readers: tuple[str, ...]  # of any check
    author: str  # who corrected the text, or wrote it
    errors: tuple[CheckedError, ...] = ()
    checks: int = 1  # 2 if the corrected text was read again
    last_readers: tuple[str, ...] = ()  # of the last check


class NotedPoint(TypedDict):
    """A point, and the seat that made it."""

    seat: str
    point: str


class NotedSide(TypedDict):
    """The position of a seat on a contested point."""

    seat: str
    position: str
    assumes: str


class ContestedPoint(TypedDict):
    """A point on which the seats differ."""

    point: str
    sides: list[NotedSide]


class ChairNotes(TypedDict):
    """The chair's notes on a free-text answer."""

    agreed: list[str]
    contested: list[ContestedPoint]
    unique: list[NotedPoint]
    taken_from: list[NotedPoint]
    closest_draft: str | None
    recommendation_shared_by: list[str] | None  # None: the notes do not say
    joined: list[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a protocol: the answer, and the fields its rules computed."""

    answer: str
    verdict: str | None = None  # PASS | WARN | FAIL | DISAGREE
    outcome: str | None = None  # SURVIVED | MODIFIED | OVERTURNED
    confidence: str | None = None  # HIGH | MEDIUM | LOW | CONTESTED
    incomplete: str = ""  # why the last step is incomplete
    consensus: tuple[Any, ...] = ()
    disagreements: tuple[Any, ...] = ()
    insights: tuple[Any, ...] = ()
    blind_spots: tuple[Any, ...] = ()
    findings: tuple[Any, ...] = ()
    dissent: tuple[Any, ...] = ()
    shifts: tuple[Any, ...] = ()
    sources: tuple[Any, ...] = ()
    claims: tuple[Any, ...] = ()  # each with its supporters and its outcome
    caveats: tuple[str, ...] = ()  # shown before the answer
    details: Json = field(default_factory=dict)  # extra data for the layouts of this protocol
    assessment: str = ""  # the chair's reasons for its confidence, shown after the answer with the trust level
    agreement: Agreement = ""  # whether the first statements agree with the answer; empty: not assessed
    agreement_on: Literal["answer", "conclusions"] = "answer"  # conclusions: the statements agree with each other
    shared_by: tuple[str, ...] | None = None  # seats whose own first statement recommends the answer; None: unknown
    joined: tuple[str, ...] = ()  # seats that came to it after reading others
    common: tuple[str, ...] = ()  # points that all seats share, the most important first
    differences: tuple[Difference, ...] = ()  # points on which seats differ, the most important first
    result: OutcomeFacts | None = None  # facts of the outcome line; None: the protocol has none
    check: CheckFacts | None = None  # the check of the finished text; None without one
    trust_facts: tuple[TrustFact, ...] = ()  # what the rules of this protocol found for and against trust
    notes: ChairNotes | None = None  # the chair's notes on a free-text answer; None if there are none
