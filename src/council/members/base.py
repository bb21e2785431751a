"""Member interface: prepare a request as bytes, send it, stream the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypedDict

from council.errors import Fault
from council.settings import Settings
from council.types import Answer, Ask, Attachment, JsonSchema, Message

OnDelta = Callable[[str], None]  # called with each piece of streamed content, and with "" for thinking
Progress = Callable[[str, int, int], None]  # name of the download, bytes done, bytes total
MAX_CACHE_POINTS = 4  # of one request, at Anthropic and OpenAI
DEFAULT_MAX_TOKENS = 8192  # output tokens where no cap is set and the vendor requires one


class StepRequest(TypedDict):
    """A request of a member that answers here and not at an endpoint."""

    key: str
    messages: Sequence[Message]
    schema: JsonSchema | None


@dataclass(frozen=True, slots=True)
class CacheRules:
    """How the vendor of a member caches the beginning of a prompt that several requests have in common."""

    min_tokens: int  # a shorter beginning is not cached
    # It caches up to marked points, and writing may have a price; else by itself and without a promise.
    has_points: bool = False
    # The schema of a typed reply comes before the prompt, so another schema is another beginning.
    schema_first: bool = True


class Member(Protocol):
    """Interface of one model. `prepare` is pure, so that a stored request can be resent byte for byte.

    A subclass needs `name`, `vendor`, `prepare` and `send`. It may also have `price`, a mapping with the keys of
    [prices] in the configuration, in dollars per million tokens. A member that takes attachments has `accepts`, the
    kinds that it takes ("image", "pdf"): they are in `ask.attachments`, and belong to the first user message. A member
    whose vendor caches prompts may have `cache_rules`; if these have points, it marks its requests at
    `ask.cache_points`.
    """

    name: str  # provider:model, as in the plan
    vendor: str  # vendor, for diversity of seats
    small: bool = False  # uses the compact template
    free: bool = False  # costs nothing per call
    backoff: float = 0.5  # seconds before the first retry of a fault that waits

    def prepare(self, ask: Ask) -> bytes: ...

    async def ready(self, progress: Progress) -> None:
        """Download or start what the first call needs. May raise LocalModelError."""
        return  # a body, so that a subclass need not have it

    async def send(self, body: bytes, on_delta: OnDelta) -> Answer:
        """Send the bytes and return the answer. Raise Fault(kind, detail) if it is not complete."""
        ...

    async def probe(self) -> str:
        """Check the endpoint without a billed call and return one line about it. Raise Fault if it fails."""
        return "installed"

    async def close(self) -> None:
        """Close connections and processes."""
        return


@dataclass(frozen=True, slots=True)
class MemberContext:
    """What a member is made from, besides its name."""

    settings: Settings
    env: Mapping[str, str]  # read keys from here, not from os.environ
    cache: Path  # folder for downloads
    folder: Path = Path()  # folder of the run: relative paths of members belong to it


class MemberFactory(Protocol):
    """A row of the member table: a class or function that makes a member from its name.

    It may also have these attributes:
    `vendor`: vendor of all its members; without it, the prefix.
    `models`: model names that `council list models` lists.
    `api_key_env`: variable that must be set.
    """

    def __call__(self, name: str, context: MemberContext, /) -> Member: ...


def cache_rules(member: Member) -> CacheRules | None:
    """Return how the member's vendor caches prompts; None if that is not known."""
    rules: CacheRules | None = getattr(member, "cache_rules", None)
    return rules


def fit_attachments(ask: Ask, member: Member) -> Ask:
    """Return the ask with the attachments that the member accepts. Its first user message says which it cannot see."""
    unseen = list_unseen(ask.attachments, member)
    return describe_unseen(ask, unseen) if unseen else ask


def describe_unseen(ask: Ask, unseen: Sequence[Attachment] | None = None) -> Ask:
    """Return the ask without these attachments, by default without any. Its first user message says what is missing."""
    unseen = ask.attachments if unseen is None else unseen
    messages, first = list(ask.messages), next(n for n, one in enumerate(ask.messages) if one["role"] == "user")
    messages[first] = {**messages[first], "content": f"{messages[first]['content']}\n\n{_format_unseen(unseen)}"}
    seen = tuple(one for one in ask.attachments if one not in unseen)
    return replace(ask, messages=tuple(messages), attachments=seen)


def list_unseen(attachments: Sequence[Attachment], member: Member) -> list[Attachment]:
    accepts = getattr(member, "accepts", ())
    return [one for one in attachments if one.kind not in accepts]


def _format_unseen(unseen: Sequence[Attachment]) -> str:
    lines = ["You cannot see these attachments:"]
    for one in unseen:
        text = "you have its text" if one.has_text else "it has no text that can be extracted"
        size = f"an image of {one.width} x {one.height} pixels"
        lines.append(f"- {one.path}: {size if one.kind == 'image' else f'the pages of a PDF; {text}'}")
    rules = "Do not guess what they show. Say where your answer depends on them. Other seats may see them."
    return "\n".join([*lines, rules])


def check_key(key: str) -> str:
    """Return the key, or raise Fault if it cannot be sent in a header."""
    if not (key.isascii() and key.isprintable()):
        raise Fault("auth", "the API key contains a line break or another invalid character: set it again")
    return key
