"""The object `council.plan/1`, which `planning` makes and the first event of a run stores.

scripts/make_schemas.py generates data/schemas/plan.json from it. Needs pydantic: import it lazily.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

Count = Annotated[int, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
Task = Literal["ask", "validate", "brainstorm", "research"]


Effort = Literal["low", "medium", "high"]


class PlanSeat(TypedDict):
    """A seat and the member assigned to it."""

    name: Name
    role: str | None
    perspective: str | None
    model: Annotated[str, Field(description="The member that is asked first, provider:model.")]
    vendor: Annotated[str, Field(description="The vendor family of the member.")]
    fallbacks: list[str]
    fallback_vendors: NotRequired[
        Annotated[dict[str, str], Field(description="Fallbacks whose vendor is not their provider, and that vendor.")]
    ]
    timeout: NotRequired[
        Annotated[float, Field(gt=0, description="Seconds of the member in a phase that has no special timeout.")]
    ]
    total_timeout: NotRequired[
        Annotated[float, Field(gt=0, description="The same with the seconds of its fallbacks added.")]
    ]


class PlanPhase(TypedDict):
    """A phase of the rehearsal."""

    name: Name
    calls: Count
    parallel: bool
    timeout: NotRequired[
        Annotated[float, Field(gt=0, description="Seconds of each member, if the phase has its own timeout.")]
    ]
    skippable: NotRequired[
        Annotated[bool, Field(description="Whether it may not be needed, as when the seats agree; absent if not.")]
    ]


class PlanCalls(TypedDict):
    """The fewest and the most calls."""

    min: Count
    max: Count


class SkippedPath(TypedDict):
    """A path that was left out of the packet."""

    path: str
    why: str


class AttachmentReceipt(TypedDict):
    """An image or a PDF as it is sent; each is stored once in the run."""

    path: Annotated[str, Field(description="attached/NAME.")]
    media_type: Annotated[str, Field(description="Such as image/png; an image may have been converted.")]
    bytes: Count
    sha256: str
    width: NotRequired[Count]
    height: NotRequired[Count]
    pages: NotRequired[Annotated[Count, Field(description="Pages of a PDF that are sent.")]]


class UnseenBy(TypedDict):
    """A seat whose member cannot see an attachment."""

    seat: Name
    model: str


class PlanAttachment(AttachmentReceipt):
    """An attachment, and who cannot see it."""

    has_text: Annotated[bool, Field(description="A PDF whose text is among the files of the packet.")]
    unseen_by: list[UnseenBy]
    unseen_members: Annotated[list[str], Field(description="Members and fallbacks that cannot see it.")]


class ReceiptCore(TypedDict):
    """The fields that every receipt has."""

    files: list[str]
    bytes: Count
    tokens: Count
    skipped: list[SkippedPath]


class PacketReceipt(ReceiptCore, total=False):
    """The material that would be sent."""

    attachments: Annotated[list[AttachmentReceipt], Field(description="Images and PDFs; absent if there are none.")]
    holes: Annotated[
        list[str], Field(description="Paths that were left out although the judges should have seen them.")
    ]
    masked: Annotated[Count, Field(description="Masked secrets.")]
    matched: Annotated[list[str], Field(description="Words that mean a path: auth → src/auth/.")]
    stripped: Annotated[Count, Field(description="Removed invisible characters.")]
    remarks: Annotated[list[str], Field(description="What was chosen, changed or left out of scope.")]
    commits: Annotated[list[str], Field(description="Id and subject of each reviewed commit, the newest first.")]
    prefix: Annotated[str, Field(description="The folder of the paths in their repository; absent if it is the top.")]


class CostEstimate(TypedDict):
    """Estimated cost in dollars."""

    low: float
    expected: float
    worst: float
    seats: NotRequired[Annotated[dict[str, float], Field(description="Expected cost of each seat.")]]
    phases: NotRequired[Annotated[dict[str, float], Field(description="Expected cost of each phase.")]]


PlanFork = TypedDict("PlanFork", {"run": str, "from": str})
PlanFork.__doc__ = "The run that this one is a fork of, and the phase it starts from; absent for other runs."


class Conversation(TypedDict):
    """The earlier turns of the conversation, newest first, by the form in which they are in the packet."""

    full: list[str]
    short: Annotated[list[str], Field(description="Sent as the question and the first paragraph of the answer.")]
    left_out: list[str]
    rule: Annotated[str, Field(description="The rule that chose the form.")]


class PlanLimits(TypedDict):
    """Output limits of the requests, fitted to a cap."""

    share: Annotated[float, Field(description="0: the lowest output cap of an answer; 1: the usual one.")]
    words: Annotated[float, Field(description="Share of the words that prompts ask for.")]
    max_thinking: Annotated[int | None, Field(description="Tokens of thinking per answer; null: by the effort.")]
    low_effort: Annotated[bool, Field(description="Whether members that think are asked for low effort.")]


class PlanWarmStart(TypedDict):
    """A member that one seat of a phase asks first, and the others at its first output."""

    member: Name
    tokens: Annotated[Count, Field(description="Estimated tokens of the prefix that its vendor caches.")]


class PlanResponseFormat(TypedDict):
    """The JSON that the answer is written in by one more call; absent if a text is asked for."""

    type: Annotated[Literal["json_object", "json_schema"], Field(description="Any object, or JSON of a schema.")]
    name: Annotated[str, Field(description="Of the schema.")]


class PlanLook(TypedDict):
    """What the seats may look up in the project before their first answers; absent if they may not."""

    hops: Annotated[Count, Field(description="Requests for look-ups of each seat, at most.")]
    lookups: Annotated[Count, Field(description="Files, names and patterns of each seat, at most.")]
    seats: Annotated[list[str], Field(description="Agents, people and small models make no look-ups.")]


class PlanLine(TypedDict):
    """A line of models, and the model that it means today."""

    line: Annotated[str, Field(description="Such as opus: the newest model of it that has a price is used.")]
    model: Annotated[str, Field(description="The member, as it is stored with the run.")]
    documented: Annotated[str | None, Field(description="The name in the documented line-up.")]
    source: Annotated[
        Literal["list", "snapshot"], Field(description="The vendor's list, or the names that this version knows.")
    ]
    date: Annotated[str, Field(description="Date of the list or of the names.")]
    replaces: NotRequired[Annotated[str, Field(description="The member that this version knows; absent if equal.")]]
    change: NotRequired[Literal["newer", "unlisted"]]


class PricedProtocol(TypedDict):
    """A protocol with its options, and what a question costs with it."""

    protocol: Name
    rounds: Annotated[int, Field(ge=1)]
    options: Annotated[dict[str, Any], Field(description="The options that belong to the advice.")]
    calls: Annotated[Count, Field(description="At most.")]
    cost: Annotated[float | None, Field(description="Expected, in dollars; null if a price is unknown.")]


class PlanAdvice(PricedProtocol):
    """The protocol that is worth its price for the question, if it is not that of the plan. No model was asked."""

    why: str


class PlanCore(TypedDict):
    """The fields that every plan has."""

    schema: Literal["council.plan/1"]
    task: Task
    protocol: Name
    why: Annotated[str, Field(description="Why this protocol was chosen, as shown to people.")]
    question: str
    target: str | None
    options: dict[str, Any]
    seats: list[PlanSeat]
    chair: PlanSeat | None
    phases: list[PlanPhase]
    calls: PlanCalls
    agents: Annotated[Count, Field(description="Seats and their explorers; the chair is not counted.")]
    packet: PacketReceipt
    cost: Annotated[CostEstimate | None, Field(description="Null if a price is unknown.")]
    warnings: list[str]


class PlanObject(PlanCore, total=False):
    """What --dry-run --json prints: the seats, phases, calls and estimated cost, before anything is spent."""

    helpers: Annotated[list[PlanSeat], Field(description="Seats that serve the others: an explorer, a clerk.")]
    exclude_family: Annotated[list[str], Field(description="Vendors that no seat, chair, helper or fallback uses.")]
    notices: Annotated[list[str], Field(description="Lines that are also shown above the answer.")]
    hints: Annotated[
        list[str],
        Field(description="Those of `warnings` that a terminal shows once a day; absent if there are none."),
    ]
    remarks: Annotated[
        list[str], Field(description="Those of `warnings` that a terminal shows with -v; absent if there are none.")
    ]
    cap: Annotated[float | None, Field(ge=0, description="Maximum cost in dollars; null without a cap.")]
    unpriced: Annotated[list[str], Field(description="Members without a known price: why cost is null.")]
    prices: Annotated[
        dict[str, float],
        Field(description="Dollars for 1,000 input and 1,000 output tokens, by member; absent if none has a price."),
    ]
    effort: Annotated[Effort, Field(description="Reasoning effort; absent if it is not set.")]
    cheap: Annotated[bool, Field(description="Whether --cheap chose fast models; absent if it did not.")]
    limits: Annotated[
        PlanLimits, Field(description="Output limits that fit the cap; absent if they are the usual ones.")
    ]
    hedge: Annotated[bool, Field(description="Whether fallbacks are asked too when a member is slow; absent if not.")]
    response_format: PlanResponseFormat
    check: Annotated[bool, Field(description="Whether two other seats check the answer and its author corrects it.")]
    warm_start: Annotated[
        list[PlanWarmStart],
        Field(description="Members whose vendor caches the prefix of several seats; absent if there are none."),
    ]
    lines: Annotated[
        list[PlanLine],
        Field(description="Lines whose newest models are members of this plan; absent if there are none."),
    ]
    look: PlanLook
    trusted: Annotated[
        list[str],
        Field(
            description="What the settings of the project that needed trust send, read and write where; absent if there are none."
        ),
    ]
    attachments: Annotated[
        list[PlanAttachment],
        Field(description="Images and PDFs with the seats that cannot see them; absent if there are none."),
    ]
    fork: PlanFork
    continues: Annotated[
        str, Field(description="The run whose question and answer are in the packet; absent if there is none.")
    ]
    conversation: Conversation
    earlier_wrong: Annotated[
        list[str],
        Field(
            description="The runs that this one continues or is a fork of and whose answers turned out wrong; absent if there are none."
        ),
    ]
    advice: PlanAdvice
