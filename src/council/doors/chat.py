"""A council as a chat model: messages as a question with context, and the events of its run as reasoning and content.

The HTTP API (/v1) and the plugin of `llm` share this module.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from council import events as ev
from council.doors.chat_models import ChatModel
from council.engine.degraded import find_unseen, format_missing_lines
from council.engine.layout import neutralize_html
from council.engine.minutes import Minutes
from council.engine.plan_object import PlanSeat
from council.engine.records import CostRow, DegradedRow, TrustRow
from council.engine.response_format import ResponseFormat
from council.errors import UsageError
from council.events import Entry
from council.planning.plan import Material, Plan
from council.protocols import find_protocol
from council.render.markdown import list_answer_parts, render_tail
from council.render.plain import PlainView
from council.render.report import build_report
from council.render.tail import RULE, strip_tail
from council.runs.continuation import ConversationContext, Turn, select_turns
from council.runs.service import Convener
from council.settings.catalogue import split_member
from council.settings.schema import quote_value
from council.text_cleanup import clean, is_tail_line, may_become_tail_line, next_fence, single_line
from council.types import FORMAT_PHASE, FORMAT_SEAT, Json, RecordedOutcome, Seat

# Messages

SYSTEM_FILE = "council system message"  # its name in the packet
EARLIER_ROLES = ("assistant", "tool", "function")
MESSAGE_FILE = "message.md"
NO_SEARCH = "no_search"  # option of a protocol that needs a search otherwise
COLUMN_GAP = re.compile(" {2,}")  # between the columns of a verdict


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: str
    text: str
    files: tuple[tuple[str, str | bytes], ...] = ()  # name and content of images and other attachments


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """The question of a conversation, its system messages, its earlier turns, newest first, and the files of all
    messages.
    """

    text: str
    system: str = ""
    turns: tuple[Turn, ...] = ()
    files: tuple[tuple[str, str | bytes], ...] = ()
    field: str = "messages"  # of the request

    @property
    def material(self) -> Material:
        """The context as material. Words of the question never name files."""
        context = select_turns(self.turns) if self.turns else ConversationContext((), ())
        system = ((SYSTEM_FILE, self.system),) if self.system else ()
        earlier = (*system, *context.files)
        return Material(
            match=False, names_files=False, earlier=earlier, left_out=context.skipped, attachments=self.files
        )


def read_messages(messages: Sequence[ChatMessage], field: str = "messages") -> ChatQuestion:
    """Return the last message as the question. Raise UsageError unless it is a text of the user."""
    if not messages:
        raise UsageError("there is no message, nothing was sent: write a question", field=field)
    last = messages[-1]
    if last.role != "user":
        line = f'the role of the last message is {quote_value(last.role)}: end with a message of the role "user"'
        raise UsageError(line, field=field)
    if not last.text.strip():
        raise UsageError("the last message has no text, nothing was sent: write the question in it", field=field)
    system = "\n\n".join(one.text for one in messages if one.role in ("system", "developer") and one.text.strip())
    files = tuple(file for one in messages for file in one.files)
    return ChatQuestion(last.text, system, tuple(_read_turns(messages[:-1])), files, field)


def _read_turns(messages: Sequence[ChatMessage]) -> list[Turn]:
    """Return the earlier turns, newest first: a message of the user, and what was answered to it."""
    turns: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "user":
            turns.append([message])
        elif message.role in EARLIER_ROLES and message.text.strip():
            turns[-1].append(message) if turns else turns.append([ChatMessage("user", ""), message])
    rows = [
        Turn(f"turn {n}", _name_files(said[0]), "\n\n".join(strip_tail(_name_files(one)) for one in said[1:]), "Answer")
        for n, said in enumerate(turns, 1)
    ]
    return rows[::-1]


def _name_files(message: ChatMessage) -> str:
    """Return the text of a message with the names of its files in the packet."""
    return "\n\n".join([message.text, *(f"[attached/{name}]" for name, _ in message.files)])


def name_file(kind: str, number: int, name: str | None = None) -> str:
    """Return the name of an attached file: its own, or one from its media type and its number in the conversation."""
    main, _, sub = kind.partition(";")[0].lower().partition("/")
    return name or f"{'image' if main == 'image' else 'file'}-{number}{f'.{sub}' if sub.isalnum() else ''}"


# Plans


async def plan_chat(
    convener: Convener,
    model: ChatModel,
    question: ChatQuestion,
    folder: Path,
    *,
    response_format: ResponseFormat | None = None,
    after: str | None = None,
) -> Plan:
    """Return the plan of a question to a model. `folder` is empty: nothing of the machine is read.

    `after` is the run whose conversation the question continues.
    """

    async def plan(protocol: str | None, options: Json, material: Material) -> Plan:
        return await convener.plan(
            [question.text],
            options,
            protocol=protocol,
            material=material,
            folder=folder,
            response_format=response_format,
            after=after,
        )

    material, options = question.material, model.options
    if model.is_title:  # the words are enough, and the fast model may not see
        material = replace(material, attachments=())
    made = await plan(model.protocol, options, material)
    if made.refusal and NO_SEARCH in made.options:  # the answer says that no research was made
        options = {**options, NO_SEARCH: True}
        made = await plan(made.protocol.name, options, material)
    if made.question.task != "validate":
        return made
    if "\n" in question.text.strip():  # the message itself is under review
        material = replace(material, attachments=((MESSAGE_FILE, question.text), *material.attachments))
        return await plan(made.protocol.name, options, material)
    if made.packet.refusal:
        fix = "write the text under review below the first line of the message, or attach it"
        raise UsageError(f"nothing to review, no call was made: {fix}", field=question.field)
    return made


def without_agents(plan: Plan) -> Plan:
    """Return the plan without command-line agents as fallbacks. Raise UsageError if a seat uses one."""
    roster = plan.roster
    for seat in roster.all_seats:
        if _is_agent(seat.member):
            table = "[chair]" if seat == roster.chair else f"[seats.{seat.name}]"
            raise UsageError(
                f"{seat.name} uses {quote_value(seat.member)}, and /v1 starts no command-line agents, nothing was sent: "
                f"set another member in {table} or [models]",
                field="model",
            )
    return replace(plan, roster=roster.map_seats(_drop_agents))


def _is_agent(member: str) -> bool:
    return split_member(member)[0] == "cli"


def _drop_agents(seat: Seat) -> Seat:
    kept = tuple(name for name in seat.fallbacks if not _is_agent(name))
    return seat if kept == seat.fallbacks else replace(seat, fallbacks=kept)


# Events as text


class PieceKind(Enum):
    REASONING = "reasoning"
    CONTENT = "content"
    REFUSAL = "refusal"  # why the members declined to answer
    ERROR = "error"  # the last piece: the run failed, or the answer broke off


@dataclass(frozen=True, slots=True)
class Piece:
    kind: PieceKind
    text: str
    code: str = ""  # of an error


BROKE_OFF, STOPPED_MIDWAY, FAILED = "answer_broke_off", "run_stopped_midway", "council_failed"
NOT_FORMATTED = "response_format_failed"  # the answer is there, but not in the form that the request asks for
LAST_RULE = re.compile(r"\n[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*\Z")
ENDS_OF_TEXT = (ev.Faulted, ev.WasAbsent, ev.Attempted)  # the text that their step has streamed is void
SHOWN_EVENTS = (ev.Resumed, ev.PhaseStarted, ev.Attempted, ev.Faulted, ev.WasAbsent, ev.LookedUp, ev.Noted, ev.Fetching)


class LineQuoter:
    """Quote the lines of a text that arrives in pieces as `quote_tail_lines` quotes them in the whole text."""

    def __init__(self) -> None:
        self._line = ""  # the current line so far
        self._passed = 0  # characters of it that were passed on
        self._fence = ""  # open code fence

    @property
    def is_holding(self) -> bool:
        return bool(self._line) and not self._passed

    def feed(self, text: str) -> str:
        """Return what can be shown. The start of a line is held back while it may become one of ours."""
        *lines, rest = text.split("\n")
        return "".join([*(self._take(line, "\n") for line in lines), self._take(rest, "")])

    def _take(self, part: str, end: str) -> str:
        self._line += part
        is_start = not self._passed and not self._fence
        if is_start and not end and may_become_tail_line(self._line):
            return ""
        mark = "> " if is_start and is_tail_line(self._line) else ""
        shown = f"{mark}{self._line[self._passed :]}{end}"
        self._passed = len(self._line)
        if end:
            self._fence, self._line, self._passed = next_fence(self._line, self._fence), "", 0
        return shown


class PromptTokens(TypedDict):
    cached_tokens: int


class ChatUsage(TypedDict):
    """Tokens of an answer, in the format of OpenAI."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokens


class ChatSummary(TypedDict):
    """The council behind an answer: fields of its report."""

    run: str
    status: str
    trust: TrustRow
    cost: CostRow
    degraded: list[DegradedRow]
    tail: list[str]  # the lines after an answer: outcome, who differs, trust
    decision_outcome: NotRequired[RecordedOutcome]  # of a repeated request


class ChatFold:
    """Turn the events of a run into reasoning, then content.

    The text of a chair, or of the only seat, that writes freely is content while it is written. Any other answer is
    content when the run has ended. With a response format the content is JSON that fits it, and nothing else.
    """

    def __init__(
        self,
        *,
        has_reasoning: bool = True,
        is_streamed: bool = True,
        has_tail: bool = True,
        response_format: ResponseFormat | None = None,
    ) -> None:
        self._lines = io.StringIO()
        self._view = PlainView(self._lines, every_event=True)
        self._has_reasoning, self._is_streamed = has_reasoning, is_streamed and response_format is None
        self._has_tail = has_tail
        self._response_format = response_format
        self._answer_key = ""  # of the step in which the answer is written freely
        self._early: dict[str, str] = {}  # streamed text by step, from before its events were read
        self._has_attempt = False  # the request was read whose answer is streamed
        self._member = ""  # that writes the answer
        self._quoter = LineQuoter()
        self._sent = ""  # streamed text of the answer
        self._above: list[str] = []  # lines above the answer that were sent
        self.is_over = False

    @property
    def minutes(self) -> Minutes:
        return self._view.minutes

    def read(self, entry: Entry) -> Iterator[Piece]:
        """Yield the pieces of an event."""
        if self.is_over:
            return
        event = entry.event
        self._view.on_event(entry)
        line = self._take_line()
        if isinstance(event, ev.Closed):
            self.is_over = True
            yield from self._end()
        elif self._sent:
            yield from self._continue_answer(event)
        elif isinstance(event, ev.Delta):
            if event.key == self._answer_key:
                yield from self._start_answer(event.text)
            elif event.key not in self.minutes.prompts:
                self._early[event.key] = self._early.get(event.key, "") + event.text
        elif self._has_reasoning:
            if text := self._format_reasoning(event, line):
                yield Piece(PieceKind.REASONING, text)
            if isinstance(event, ev.Asked) and self._writes_answer(event):
                self._answer_key = event.key
                yield from self._start_answer(self._early.get(event.key, ""))
            if self._is_void(event):
                self._quoter = LineQuoter()
            if isinstance(event, ev.Attempted) and event.key == self._answer_key:
                self._has_attempt, self._member = True, event.member

    def _is_void(self, event: ev.Event) -> bool:
        """Return whether an event ends the text of the answer that was held back; the first request only begins it."""
        if not isinstance(event, ENDS_OF_TEXT) or event.key != self._answer_key:
            return False
        return self._has_attempt or not isinstance(event, ev.Attempted)

    def _take_line(self) -> str:
        """Return the line of the plain view for the last event, without the name of the run."""
        line = self._lines.getvalue().strip()
        self._lines.seek(0)
        self._lines.truncate()
        return line.removeprefix("council").strip().removeprefix(self.minutes.run).strip()

    def _format_reasoning(self, event: ev.Event, line: str) -> str:
        if isinstance(event, ev.Convened):
            seats = [f"{seat['name']} {seat['model']}" for seat in event.plan["seats"]]
            chair = [f"chair {event.plan['chair']['model']}"] if event.plan["chair"] else []
            why = f"{event.plan['protocol']} ({event.plan['why']})"
            return f"Council {event.run}: {why}. {', '.join([*seats, *chair])}.\n\n"
        if isinstance(event, ev.Stated):
            if event.seat == FORMAT_SEAT or self._is_answer(event.phase, event.seat):
                return ""
            text = clean(event.said).strip()
            return f"**{event.seat}** ({event.phase}, {event.served_by}):\n\n{text}\n\n"
        return f"{clean(line)}\n\n" if line and isinstance(event, SHOWN_EVENTS) else ""

    # The answer

    def _is_answer(self, phase: str, seat: str) -> bool:
        """Return whether a statement is that of the last phase of the plan from which the answer is made."""
        writer, phases = self._writer, self.minutes.plan.get("phases") or []
        last = str(phases[-1]["name"]).partition("/")[0] if phases else ""
        return writer is not None and seat == writer["name"] and phase.partition("/")[0] == last

    @property
    def _writer(self) -> PlanSeat | None:
        """The seat that writes the answer: the chair, or the only seat; None if no single seat does."""
        plan = self.minutes.plan
        seats = plan.get("seats") or []
        return plan.get("chair") or (seats[0] if len(seats) == 1 else None)

    def _writes_answer(self, event: ev.Asked) -> bool:
        is_free = not event.schema_name and not self.minutes.plan.get("hedge")  # of two members one is discarded
        return self._is_streamed and is_free and self._is_answer(event.phase, event.seat)

    def _start_answer(self, text: str) -> Iterator[Piece]:
        text = text if self._quoter.is_holding else text.lstrip()
        if not (shown := self._quoter.feed(clean(text))):
            return
        self._sent = shown
        self._above = self._list_missing()
        yield Piece(PieceKind.CONTENT, _quote_lines(self._above) + self._sent)

    def _list_missing(self) -> list[str]:
        """Return the lines above an answer that is being written, also about the attachments that its writer cannot
        see.
        """
        plan = self.minutes.plan
        writer = self._writer
        assert writer, "only an answer of one seat is streamed"
        member = self._member or writer["model"]
        blind = find_unseen(writer["name"], "", member, plan.get("attachments") or [])
        lines = format_missing_lines(replace(self.minutes, status="complete"))
        return [*lines, *([single_line(blind.line, 400)] if blind else [])]

    def _continue_answer(self, event: ev.Event) -> Iterator[Piece]:
        if isinstance(event, ev.Delta) and event.key == self._answer_key:
            if text := self._quoter.feed(clean(event.text)):
                self._sent += text
                yield Piece(PieceKind.CONTENT, text)
        elif isinstance(event, ev.Attempted) and not self._has_attempt:
            self._has_attempt = True
        elif isinstance(event, ENDS_OF_TEXT) and event.key == self._answer_key:
            self.is_over = True
            why = f"{event.kind}: {event.detail}" if isinstance(event, ev.Faulted) else "it is asked again"
            writer = "the chair" if self.minutes.chair else "the member"
            line = f"{writer} broke off ({single_line(why, 300)}), so the text above is not the answer"
            yield Piece(PieceKind.ERROR, line, BROKE_OFF)

    def _end(self) -> Iterator[Piece]:
        if self._response_format:
            yield self._end_json(self._response_format)
            return
        if self.minutes.status == "failed":
            lines = format_missing_lines(self.minutes)
            yield Piece(PieceKind.ERROR, clean(" ".join(lines)), FAILED)
            return
        if self._sent and self.minutes.status != "complete":
            why = single_line(format_missing_lines(self.minutes)[0], 300)
            yield Piece(PieceKind.ERROR, f"{why} The text above is not the answer", STOPPED_MIDWAY)
            return
        above, text = self._build_answer()
        tail = f"\n\n{render_tail(self.minutes)}" if self._has_tail and not self.minutes.is_empty_run else ""
        if not self._sent:
            yield Piece(PieceKind.CONTENT, _quote_lines(above) + text + tail)
            return
        rest = self._find_rest(text) + _quote_new(above, self._above)
        if not rest and LAST_RULE.search(self._sent.rstrip()):  # a rule above the notes of the chair was sent
            tail = tail.replace(f"{RULE}\n\n", "", 1).lstrip("\n")
        if rest + tail:
            yield Piece(PieceKind.CONTENT, rest + tail)

    def _end_json(self, response_format: ResponseFormat) -> Piece:
        """Return the JSON of the answer. It is checked again: a secret in it may have been masked."""
        minutes = self.minutes
        if minutes.status == "failed":
            line = clean(" ".join(format_missing_lines(minutes)))
            is_refused = bool(minutes.absences) and all(one.state == "refused" for one in minutes.absences)
            return Piece(PieceKind.REFUSAL, line) if is_refused else Piece(PieceKind.ERROR, line, FAILED)
        phase = minutes.phases.get(FORMAT_PHASE)
        missed = phase and phase.absent.get(FORMAT_SEAT)
        if missed and missed.state == "refused":
            return Piece(PieceKind.REFUSAL, clean(missed.reason))
        written = phase and phase.said.get(FORMAT_SEAT)
        text = written.said if written else str(minutes.verdict.get("answer") or "")
        if found := response_format.find_answer(text):
            return Piece(PieceKind.CONTENT, found)
        if minutes.status != "complete":
            why = single_line(format_missing_lines(minutes)[0], 300).rstrip(".")
            return Piece(PieceKind.ERROR, f"{why}, so there is no JSON; its statements are kept", STOPPED_MIDWAY)
        if missed:
            why = f"{missed.state}: {single_line(missed.reason, 300)}"
        else:
            why = "a secret in it was masked" if written else "there is no answer to write"
        line = f"the answer is not in the requested response format ({why.rstrip('.')}); its text is kept"
        return Piece(PieceKind.ERROR, line, NOT_FORMATTED)

    def _build_answer(self) -> tuple[list[str], str]:
        """Return the lines above the answer, and the answer as Markdown."""
        parts = list_answer_parts(self.minutes, with_tail=False)
        view = find_protocol(self.minutes.plan.get("protocol") or "").load_report_view()
        if len(parts) == 1 and not parts[0].is_markdown and view.verdict_text(self.minutes):
            above, text = _split_verdict(parts[0].text)
            return above, neutralize_html(view.verdict_markdown(self.minutes)) or text
        return format_missing_lines(self.minutes), "\n\n".join(one.text.strip("\n") for one in parts if one.is_markdown)

    def _find_rest(self, answer: str) -> str:
        """Return what the streamed text lacks of the answer; the whole answer if they differ."""
        sent = self._sent.strip()
        if answer.startswith(sent):
            shown = self._sent[len(self._sent.rstrip()) :]  # white space that was sent already
            return answer[len(sent) :].removeprefix(shown)
        kept = LAST_RULE.sub("", sent).rstrip()  # the line above the notes of the chair, which are removed
        return answer[len(kept) :] if answer.startswith(kept) else f"\n\n---\n\n{answer}"

    # The end

    @property
    def finish_reason(self) -> str:
        said = [one for one in self.minutes.statements if self._is_answer(one.phase, one.seat)]
        return "length" if said and said[-1].state == "truncated" else "stop"

    @property
    def usage(self) -> ChatUsage:
        """The tokens of all members, as the ledger has them."""
        used = self.minutes.usage
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cached},
        }

    @property
    def summary(self) -> ChatSummary:
        """The object `council` of the last chunk."""
        report = build_report(self.minutes)
        return cast(
            "ChatSummary", {name: value for name, value in report.items() if name in ChatSummary.__annotations__}
        )


def _split_verdict(text: str) -> tuple[list[str], str]:
    """Return the remarks of a verdict in columns, and the rest as Markdown, where columns would not stay in line."""
    above = [line[2:] for line in text.splitlines() if line.startswith("! ")]
    head, *rest = [COLUMN_GAP.sub(" · ", line) for line in text.splitlines() if line and not line.startswith("! ")]
    return above, "\n".join([f"**{head}**", "", *(f"- {line}" for line in rest)])


def _quote_lines(lines: Sequence[str]) -> str:
    """Return lines as a quotation in Markdown, with a blank line after it."""
    return "\n>\n".join(f"> {clean(line)}" for line in lines) + "\n\n" if lines else ""


def _quote_new(lines: Sequence[str], known: Sequence[str]) -> str:
    new = [line for line in lines if line not in known]
    return f"\n\n{_quote_lines(new).rstrip()}" if new else ""
