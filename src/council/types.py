"""The values everyone speaks of. Imports nothing of ours."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Json = dict[str, Any]
Message = dict[str, str]


def sound(text: str) -> str:
    """Halves of a character that came apart are joined, one that stays alone is replaced: it could be neither kept nor sent."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def tokens_of(text: str) -> int:
    """An estimate that rather says too much: three bytes a token, as in code."""
    return -(-len(text.encode()) // 3)


_RESPONSES = re.compile(
    r"\b[Rr]esponses ([A-Z]{1,2}\b(?:(?:, | and | or |, and |, or )[A-Z]{1,2}\b)+)|\b[Rr]esponses? ([A-Z]{1,2})\b"
)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """What was written under labels ("Response B", "Responses A and C") with names in their place; unknown labels stay."""

    def name(found: re.Match[str]) -> str:
        said = found[1] or found[2]
        known = set(re.findall(r"[A-Z]{1,2}", said)) <= names.keys()
        return re.sub(r"[A-Z]{1,2}", lambda label: names[label[0]], said) if known else found[0]

    return _RESPONSES.sub(name, text)


WORDS_OF = "the words of "  # how a cut in another's statement is named; every other cut is one in the material
OK_STATES = ("ok", "ok_repaired")
OUT_FOR_THE_RUN = (
    "timed_out",
    "failed(auth)",
    "failed(quota)",
    "failed(model)",
    "failed(endpoint)",
    "failed(cli:silent)",
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, as the provider counted them. Where it did not, they are unknown: at least these."""

    input: int = 0  # all that was read, also from a cache or into one
    output: int = 0  # all that was written, thoughts included
    cached: int = 0  # the part of the input that was read from a cache
    known: bool = True
    written: int = 0  # the part of the input that was written to a cache

    def __add__(self, other: Usage) -> Usage:
        known, written = self.known and other.known, self.written + other.written
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached, known, written)

    def as_json(self) -> Json:
        counted = {"in": self.input, "out": self.output, "cached": self.cached}
        written = {"written": self.written} if self.written else {}
        return counted | written | ({} if self.known else {"unknown": True})

    @classmethod
    def from_json(cls, value: Json) -> Usage:
        read, out, cached, written = (int(value.get(name, 0)) for name in ("in", "out", "cached", "written"))
        return cls(read, out, cached, not value.get("unknown"), written)


@dataclass(frozen=True, slots=True)
class Seat:
    """A place at the table: who sits there, under which name, looking through which lens."""

    name: str
    role: str = ""  # the title shown to people: "Deep Explorer"
    perspective: str = ""  # the lens or strength: "depth and exploration"
    focus: str = ""  # what that lens asks of the material; of an advisor, its stance
    style: str = ""  # how it speaks
    member: str = ""  # provider:model
    vendor: str = ""  # the family it counts as
    fallbacks: tuple[str, ...] = ()
    small: bool = False  # the compact template is used; decided by the requested member, kept by fallbacks

    @property
    def label(self) -> str:
        return self.name.capitalize()


@dataclass(frozen=True, slots=True)
class Roster:
    seats: tuple[Seat, ...]
    chair: Seat | None = None
    helpers: tuple[Seat, ...] = ()  # who a seat may send out, by kind: "explorer"

    @property
    def everybody(self) -> tuple[str, ...]:
        """Every member that may be called, fallbacks too."""
        seats = (*self.seats, *((self.chair,) if self.chair else ()), *self.helpers)
        return tuple(dict.fromkeys(name for seat in seats for name in (seat.member, *seat.fallbacks)))


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `text` is the question without the words that only chose the protocol."""

    text: str
    task: str = "ask"
    target: str | None = None
    domain: str = "general"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PacketFile:
    """A file in the packet, with all that is shown of it."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out, and why. A hole is something that should have been seen."""

    path: str
    why: str
    hole: bool = False


@dataclass(frozen=True, slots=True)
class Packet:
    """The material that leaves the machine with the question."""

    files: tuple[PacketFile, ...] = ()
    diff: str = ""
    spec_source: str = ""
    spec: str = ""
    prior_decisions: tuple[str, ...] = ()
    environment: str = ""
    skipped: tuple[Skipped, ...] = ()
    masked: int = 0  # secrets that were replaced by a mask
    target: str = ""
    matched: tuple[str, ...] = ()  # what words were taken for: `auth → src/auth/`
    stripped: int = 0  # invisible characters that were taken out
    note: str = ""  # why there is nothing to show
    remarks: tuple[str, ...] = ()  # what was done to a text on its way in, a line each

    @property
    def bytes(self) -> int:
        return sum(len(text.encode()) for text in self._texts())

    @property
    def tokens(self) -> int:
        return sum(tokens_of(text) for text in self._texts())

    @property
    def holes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.path for item in self.skipped if item.hole))

    @property
    def empty(self) -> bool:
        """Nothing to judge: decisions and the environment are no material of their own."""
        return not (self.files or self.diff or self.spec)

    def as_json(self) -> Json:
        """The receipt: what leaves and what does not, without the contents."""
        return {
            "files": [file.path for file in self.files], "bytes": self.bytes, "tokens": self.tokens,
            "skipped": [{"path": item.path, "why": item.why} for item in self.skipped],
            "holes": list(self.holes), "masked": self.masked, "matched": list(self.matched), "stripped": self.stripped,
            "remarks": list(self.remarks),
        }  # fmt: skip

    def dossier(
        self,
        mode: str,
        perspective: str | None = None,
        perspective_description: str | None = None,
        output_schema: Json | None = None,
    ) -> Json:
        """The council_packet of seed 002, keys in its order; what nobody gave is left out where the seed allows it."""
        told: Json = {
            "perspective": perspective,
            "perspective_description": perspective_description,
            "output_schema": output_schema,
        }
        return {
            "council_packet": {
                "version": "1.0", "mode": mode, "target": self.target, "context": self._context(),
                **{name: value for name, value in told.items() if value is not None},
            }
        }  # fmt: skip

    def _context(self) -> Json:
        return {
            "files": [{"path": file.path, "content": file.content} for file in self.files],
            "diff": self.diff,
            "spec": {"source": self.spec_source or "none", "content": self.spec},
            "prior_decisions": list(self.prior_decisions),
            **({"environment": self.environment} if self.environment else {}),
        }

    def _texts(self) -> Iterator[str]:
        yield from (text for file in self.files for text in (file.path, file.content))
        yield from (self.diff, self.spec, *self.prior_decisions, self.environment)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request before any provider's wire has dressed it."""

    key: str
    messages: tuple[Message, ...]
    schema: Json | None = None
    schema_name: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    words: int | None = None  # about how long the answer is meant to be; told in the prompt, not on the wire
    bare: bool = False  # sent without whatever an endpoint may refuse to know
    effort: str | None = None  # how hard a reasoning member should think: low | medium | high
    shared: int = 0  # characters at the start of the first user message that every seat is shown alike


@dataclass(frozen=True, slots=True)
class Answer:
    """What a member sent back, before anyone has judged it."""

    text: str
    finish: str = "stop"  # stop | length | refused | spoken: by a person
    usage: Usage = Usage()
    model: str = ""
    id: str = ""  # what the vendor calls this answer


Shrink = Callable[[Ask, float], tuple[Ask, tuple[str, ...]] | None]  # (ask, share) → the shorter one, what was cut


@dataclass(slots=True, eq=False)
class Watch:
    """How a phase keeps an eye on a seat that others wait for."""

    spoke: bool = False  # something of its answer has come in
    leave: Callable[[str], None] = lambda why: None  # leaves it behind; set by whoever carries the step out


@dataclass(frozen=True, slots=True)
class Step:
    """An ask with all that the calling loop needs to carry it out."""

    ask: Ask
    seat: str
    chain: tuple[str, ...]  # the requested member, then its fallbacks
    read: Callable[[str], Any]  # raises Fault("schema") with the validator's words
    mend: Callable[[str, str], Ask]  # (what was said, the validator's words) → the repair turn
    timeout: float | None = None  # seconds for all attempts together; None: the seat's usual time
    shrink: Shrink = lambda ask, share: None  # None: there is nothing in it that could be cut
    chair: bool = False  # nobody speaks in its place
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended: an accepted answer, or an absence with its reason."""

    state: str
    text: str = ""
    reason: str = ""
    served_by: str = ""
    usage: Usage = Usage()
    attempts: int = 0
    seconds: float = 0.0
    cut: tuple[str, ...] = ()  # what it was not shown, because it did not fit
    dropped: tuple[str, ...] = ()  # parameters it refused and was asked without

    @property
    def ok(self) -> bool:
        """Whether it counts. A truncated answer does where its typed reply is whole; else it has no text."""
        return self.state in OK_STATES or (self.state == "truncated" and bool(self.text))

    def as_json(self) -> Json:
        told = {name: list(getattr(self, name)) for name in ("cut", "dropped") if getattr(self, name)}
        return {
            "state": self.state,
            "text": self.text,
            "reason": self.reason,
            "served_by": self.served_by,
            "usage": self.usage.as_json(),
            "attempts": self.attempts,
            "seconds": self.seconds,
            **told,
        }

    @classmethod
    def from_json(cls, value: Json) -> Outcome:
        told = {name: tuple(value.get(name, ())) for name in ("cut", "dropped")}
        return cls(**{**value, **told, "usage": Usage.from_json(value["usage"])})


CarryOut = Callable[[Step], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Statement(Generic[T]):
    """What a seat said in a phase. `reply` is its typed part, where one was asked for."""

    seat: Seat
    key: str
    text: str
    reply: T
    outcome: Outcome = field(default_factory=lambda: Outcome("ok"))
    conversation: tuple[Message, ...] = ()

    @property
    def said(self) -> str:
        """The statement as a person would read it."""
        prose = getattr(self.reply, "prose", None)
        return str(prose()) if prose else self.text


@dataclass(frozen=True, slots=True)
class Absence:
    """A seat that did not speak, and why."""

    seat: Seat
    state: str
    reason: str


class Round(Mapping[str, Statement[T]]):
    """The statements of one phase by seat name, in seating order, and who was absent."""

    def __init__(self, statements: Sequence[Statement[T]] = (), absent: Sequence[Absence] = ()) -> None:
        self._said = {statement.seat.name: statement for statement in statements}
        self.absent = {absence.seat.name: absence for absence in absent}

    def __getitem__(self, name: str) -> Statement[T]:
        return self._said[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)

    @property
    def seats(self) -> tuple[Seat, ...]:
        return tuple(statement.seat for statement in self._said.values())

    def own(self, seat: Seat) -> Statement[T]:
        return self._said[seat.name]

    def others(self, seat: Seat) -> list[Statement[T]]:
        return [statement for name, statement in self._said.items() if name != seat.name]

    def seats_but(self, name: str) -> tuple[Seat, ...]:
        return tuple(seat for seat in self.seats if seat.name != name)

    def revised(self, later: Round[T]) -> Round[T]:
        """This round with each later statement in place of the earlier one; the silent keep theirs."""
        return Round(
            [later.get(name, statement) for name, statement in self._said.items()], list(later.absent.values())
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a protocol returns: the answer, and what its rules computed about it."""

    answer: str
    verdict: str | None = None  # PASS | WARN | FAIL | DISAGREE
    outcome: str | None = None  # SURVIVED | MODIFIED | OVERTURNED
    confidence: str | None = None  # HIGH | MEDIUM | LOW | CONTESTED
    incomplete: str = ""  # why the last step could not be all that it should be
    consensus: tuple[Any, ...] = ()
    disagreements: tuple[Any, ...] = ()
    insights: tuple[Any, ...] = ()
    blind_spots: tuple[Any, ...] = ()
    findings: tuple[Any, ...] = ()
    dissent: tuple[Any, ...] = ()
    shifts: tuple[Any, ...] = ()
    sources: tuple[Any, ...] = ()
    claims: tuple[Any, ...] = ()  # each with who holds it and what became of it
    caveats: tuple[str, ...] = ()  # what a reader must know before the answer
    details: Json = field(default_factory=dict)  # what this protocol's own layouts show besides
