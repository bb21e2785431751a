"""Look-ups: what explorers and seats ask for, the turns of requests and results, and the council of `--look`.

With `--look`, a seat may read files of the project before it answers its first request. Explorers of judges use the
same turns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Self, cast

from pydantic import Field, model_validator

from council.engine.council import Council, Request
from council.engine.layout import format_count
from council.engine.prompting import Quoter, load_part
from council.engine.reply import Reply, is_json_reply, parse_reply
from council.errors import BudgetSpent, Fault, SeatAbsent
from council.json_text import clean_text, find_json
from council.protocols.common.replies import ReplyPart, TextField
from council.settings.catalogue import split_member
from council.types import (
    Absence,
    FileRange,
    Json,
    LookupQuery,
    LookupRow,
    Seat,
    SeatWatch,
    Statement,
    Step,
    estimate_tokens,
)

MAX_HOPS = 3  # requests for look-ups of one seat or explorer
MAX_LOOKUPS = 12  # of one seat
MAX_FOUND_TOKENS = 20_000  # of all results of one seat
MAX_REQUEST_CHARS = 1000  # of a path, a name or a pattern
FOUND_LABEL = "Files"
LINE_RANGE = re.compile(r"(\S.*?)(?::(\d+)(?:-(\d+))?)?")
RANGE_WORDS = {"first": ("from", "start", "start_line"), "last": ("to", "end", "end_line")}
MEMBERS_WITHOUT_LOOKUPS = ("cli", "human")  # agents have their own tools, and a person has the project


# Requests


class LineRange(ReplyPart):
    """A file or a line range of it; 0 to 0 is the whole file."""

    path: str
    first: int = Field(default=0, description="the first line wanted; 0 for the whole file")
    last: int = Field(default=0, description="the last line wanted; 0 for the whole file")

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, value: Any) -> Any:
        """Read a file that was written as text ("a.py" or "a.py:3-9"), and other words for its first and last line."""
        if isinstance(value, dict):
            words = {name: next(filter(None, map(value.get, words)), 0) for name, words in RANGE_WORDS.items()}
            return {**value, **{name: value.get(name) or other for name, other in words.items()}}
        match = LINE_RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
        return {"path": match[1], "first": match[2] or 0, "last": match[3] or match[2] or 0} if match else value

    @model_validator(mode="after")
    def _check_order(self) -> LineRange:
        if self.first < 0 or self.last < 0 or (self.last and self.last < self.first):
            raise ValueError(
                f"lines {self.first} to {self.last} of {self.path} are not a valid range: give the first line, then the last"
            )
        return self


class LookupRequest(Reply):
    """Files, names and patterns to look up next."""

    takes_a_position = False

    files: list[LineRange] = Field(default_factory=list, description="files to read")
    names: list[TextField] = Field(default_factory=list, description="names or globs of files to find")
    patterns: list[TextField] = Field(default_factory=list, description="texts to search for in the files")

    @property
    def is_done(self) -> bool:
        """Whether nothing more is wanted."""
        return not self.list_requests()

    def list_requests(self) -> list[LookupQuery]:
        """Return each look-up, in the form of `packet.lookups.look`, once."""
        most = MAX_REQUEST_CHARS
        wanted = [_build_request([{"path": one.path[:most], "from": one.first, "to": one.last}]) for one in self.files]
        wanted += [_build_request(names=[name[:most]]) for name in self.names if name.strip()]
        wanted += [_build_request(patterns=[pattern[:most]]) for pattern in self.patterns if pattern.strip()]
        return list({json.dumps(one): one for one in wanted}.values())

    def prose(self) -> str:
        wanted = [f"read {one.path}" + (f":{one.first}-{one.last}" if one.last else "") for one in self.files]
        wanted += [f"find {name}" for name in self.names] + [f"search {pattern}" for pattern in self.patterns]
        return "\n".join(f"- {want}" for want in wanted) or "nothing more to look up"


def _build_request(
    files: Sequence[FileRange] = (), names: Sequence[str] = (), patterns: Sequence[str] = ()
) -> LookupQuery:
    return {"files": list(files), "names": list(names), "patterns": list(patterns)}


class SeatLookups(LookupRequest):
    """What to look up before you answer; three empty lists if you need nothing more."""

    @classmethod
    def rehearse(cls, plain: Json, options: Json, *, agree: bool, n: int) -> Json:
        files = [] if agree else [{"path": f"… {n + 1}", "first": 0, "last": 0}]
        return {"files": files, "names": [], "patterns": []}


def read_request(text: str) -> SeatLookups:
    """Read what a seat wants to look up.

    Prose without a request means that it wants nothing; several requests are one.
    """
    values = find_json(clean_text(text))[0]
    try:
        read = parse_reply(SeatLookups, text, {})
        if not read.is_done:
            return read
        values = [inner for one in values if isinstance(one, dict) for inner in one.values()]  # of a wrapper
    except Fault:
        if not any(map(_read_object, values)) and is_json_reply(SeatLookups, text):
            raise
    parts = [one.model_dump() for value in values if isinstance(value, dict) and (one := _read_object(value))]
    return SeatLookups(**{kind: [item for part in parts for item in part[kind]] for kind in SeatLookups.model_fields})


def _read_object(value: Any) -> SeatLookups | None:
    try:
        return parse_reply(SeatLookups, json.dumps(value), {})
    except Fault:
        return None


# Results


def format_results(rows: Sequence[LookupRow]) -> str:
    """Return the results as text, with numbered lines of files."""
    return "\n\n".join(map(_format_row, rows))


def _format_row(row: LookupRow) -> str:
    heading, *lines = _iter_lines(row)
    return f"{heading}: not shown: {row['why']}" if "why" in row else "\n".join([f"{heading}:", *lines])


def _iter_lines(row: LookupRow) -> Iterator[str]:
    """Yield the heading of a result, then its lines."""
    match row.get("look"):
        case "file" if "content" in row:
            rest = " (the rest was left out)" if row.get("is_cut") else ""
            lines, first = row["content"].splitlines(), row.get("from", 1)
            yield f"File {row['path']}, lines {first} to {first + len(lines) - 1} of {row.get('lines', len(lines))}{rest}"
            yield from (f"{n}| {line}" for n, line in enumerate(lines, first))
        case "name":
            yield f'Files whose name matches "{row["name"]}"'
            yield from row.get("paths") or ["none"]
            if more := row.get("more"):
                yield f"and {more:,} more"
        case "pattern":
            yield f'Lines that match "{row["pattern"]}"'
            yield from [f"{hit['path']}:{hit['line']}: {hit['text']}" for hit in row.get("hits", [])] or ["none"]
            yield from (f"{hit['path']}: not shown: {hit['why']}" for hit in row.get("left_out", []))
            if unread := row.get("unread"):
                yield f"{format_count(unread, 'file')} not searched: the limit is reached"
        case _:
            yield f"File {row.get('path', '')}".strip()


@dataclass(slots=True)
class LookupLimit:
    """The look-ups that a seat has made, and how many it has left; without `lookups` there is no limit."""

    lookups: int | None = None
    tokens: int = MAX_FOUND_TOKENS
    rows: list[LookupRow] = field(default_factory=list)  # all results so far
    asked: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        return MAX_LOOKUPS if self.lookups is None else self.lookups - len(self.asked)

    def select(self, wanted: LookupRequest) -> tuple[list[LookupQuery], list[str]]:
        """Return the requests to look up, and a line for each kind of request that is not."""
        requests = wanted.list_requests()
        if self.lookups is None:
            return requests, []
        new = [one for one in requests if json.dumps(one) not in self.asked]
        chosen = new[: self.left]
        self.asked.update(map(json.dumps, chosen))
        over, again = len(new) - len(chosen), len(requests) - len(new)
        lines = [f"{format_count(again, 'request')} not repeated: the results are above."] if again else []
        if over:
            lines.append(f"{format_count(over, 'request')} not looked up: {self.lookups} look-ups in all are allowed.")
        return chosen, lines

    def add(self, rows: Sequence[LookupRow]) -> list[LookupRow]:
        """Return the results as far as they fit."""
        shown = list(rows) if self.lookups is None else [self._fit(row) for row in rows]
        self.rows += shown
        return shown

    def _fit(self, row: LookupRow) -> LookupRow:
        size = estimate_tokens(_format_row(row))
        if size > self.tokens and "content" in row:
            row = self._cut_file(row)
            size = estimate_tokens(_format_row(row))
        if size > self.tokens and "why" not in row:
            subject = {key: value for key, value in row.items() if key in ("look", "path", "name", "pattern")}
            why = f"the results are limited to {MAX_FOUND_TOKENS:,} tokens in all"
            row = cast("LookupRow", {**subject, "why": why})
        self.tokens -= min(self.tokens, size)
        return row

    def _cut_file(self, row: LookupRow) -> LookupRow:
        """Return a file with as many of its first lines as fit, without the content if not even one does."""
        lines = row["content"].splitlines(keepends=True)
        sizes = accumulate(estimate_tokens(f"{row['lines']}| {line}") for line in lines)
        room = self.tokens - estimate_tokens(f"File {row['path']}") - 30
        count = sum(size <= room for size in sizes)
        if not count:
            return row
        return {**row, "content": "".join(lines[:count]), "to": row["from"] + count - 1, "is_cut": True}


# Turns


async def run_hops(
    council: Council,
    seat: Seat,
    prompts: tuple[str, str],
    reply: type[LookupRequest],
    limit: LookupLimit,
    last_reply: type[Reply] | None = None,
    **variables: Any,
) -> Statement[Any]:
    """Ask a seat what it wants to look up and send it the results, at most MAX_HOPS times. Return its last statement.

    After the last results it is asked for `last_reply`; without one it is not asked again.
    """
    async with council.phase("look-1"):
        said: Statement[Any] = await council.ask(seat, prompts[0], reply=reply, found="", **variables)
    for hop in range(1, MAX_HOPS + 1):
        if said.reply.is_done:
            break
        async with council.phase(f"look-{hop + 1}"):
            requests, lines = limit.select(said.reply)
            rows = limit.add(await council.look(seat, requests))
            for row in rows:
                if removed := row.get("invisible_characters_removed"):
                    council.note(f"{row['path']}: {removed:,} invisible characters removed", why=f"read by {seat.name}")
            is_last = hop == MAX_HOPS or limit.left == 0
            if is_last and last_reply is None:
                break
            found = "\n\n".join(filter(None, [format_results(rows), *lines]))
            said = await council.ask(
                seat,
                prompts[1],
                reply=last_reply if is_last and last_reply else reply,
                after=said,
                left=MAX_HOPS - hop,
                lookups=limit.left,
                found=found,
                **variables,
            )
    return said


def can_look(seat: Seat) -> bool:
    """Return whether a seat may look first: its member is neither an agent, nor a person, nor a small model."""
    return not seat.small and split_member(seat.member)[0] not in MEMBERS_WITHOUT_LOOKUPS


class LookingCouncil(Council):
    """Council whose seats may look up parts of the project before they answer their first request."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._started: set[str] = set()  # seats that were asked, in all councils of the run
        self._watch: SeatWatch | None = None  # of the seat whose look-ups this council makes

    def with_context(self, **variables: Any) -> Self:
        council = super().with_context(**variables)
        council._started, council._watch = set(), None
        return council

    def _council_for_seat(self, seat: Seat) -> Self:
        council = super()._council_for_seat(seat)
        council._watch = None
        return council

    async def _ask_seat(
        self, seat: Seat, request: Request, after: Statement[Any] | None, watch: SeatWatch | None = None
    ) -> Statement[Any] | Absence:
        watch = watch or self._watch
        if seat.name in self._seat_names - self._started and can_look(seat):
            self._started.add(seat.name)
            try:
                seen = await self._look_first(seat, request, watch)
            except BudgetSpent as spent:
                return Absence(seat, "skipped(budget)", str(spent))
            if seen:
                request = replace(request, variables={**request.variables, "seen": seen})
        said = await super()._ask_seat(seat, request, after, watch)
        if watch:  # until the next request is sent there is nothing to stop
            watch.has_output, watch.drop = False, lambda why: None
        return said

    async def _look_first(self, seat: Seat, request: Request, watch: SeatWatch | None) -> str:
        """Let the seat look up what it wants. Return the results for its prompt; it answers also without any."""
        apart, limit = self._council_for_seat(seat), LookupLimit(MAX_LOOKUPS)
        apart._watch = watch
        question = request.variables.get("question", self.question)
        try:
            await run_hops(
                apart,
                seat,
                ("common/look", "common/looked"),
                SeatLookups,
                limit,
                question=question,
                hops=MAX_HOPS,
                most=MAX_LOOKUPS,
                timeout=request.timeout,
            )
        except SeatAbsent as lost:
            self.note(f"{seat.name} could not look up anything more", why=lost.absence.state)
        if not limit.rows:
            return ""
        key = "/".join((*self._key_path, seat.name))
        quote = Quoter(self.prompts, f"{key} look-ups")
        fenced = quote(format_results(limit.rows), FOUND_LABEL)
        for source, changes in quote.cleaned.items():
            self.note(f"{source}: {changes}", why="it can pass for text of the council")
        return load_part("seen.md").render(found=fenced).strip()

    def _make_step(
        self, key: str, seat: Seat, request: Request, after: Statement[Any] | None, watch: SeatWatch | None
    ) -> Step:
        step = super()._make_step(key, seat, request, after, watch)
        return replace(step, read=read_request) if request.reply is SeatLookups else step
