"""Parts of a report as text: layouts, labels, states, absences, findings, costs."""

from __future__ import annotations

import json
import re
import secrets
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast, get_origin, get_type_hints

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from council.engine.minutes import AbsenceMinutes, Minutes
from council.engine.records import AbsentSeat, CostRow, FindingRow, ReportObject, StopRow, TrustRow
from council.errors import PromptError
from council.language import detect_language
from council.money import format_usd
from council.text_cleanup import clean, quote_tail_lines, replace_labels, shorten_sentences, single_line
from council.types import OK_STATES, Json, RecordedOutcome, SeatState, TrustFact
from council.wording import Wording, load_wording

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import PacketReceipt

ENGLISH = load_wording("en")


def find_wording(minutes: Minutes) -> Wording:
    """Return the sentences in the language of the answer, or of the question if the answer is short."""
    rows = [row for row in minutes.verdict.get("findings") or () if isinstance(row, dict)]
    answer = "\n".join(map(str, [minutes.verdict.get("answer") or "", *(row.get("description") or "" for row in rows)]))
    return load_wording(detect_language(answer, str(minutes.plan.get("question") or "")))


def format_label(name: str) -> str:
    return clean(name).replace("_", " ").capitalize()


def unblind(text: str, labels: Mapping[str, str]) -> str:
    """Replace the labels in the text of a blind reader with the seat names."""
    return replace_labels(text, {letters: format_label(seat) for letters, seat in labels.items()})


STATE_DESCRIPTIONS = {
    "ok_repaired": "ok after a second try to match the schema",
    "in_doubt": "no complete answer arrived, and the request may have been billed",
    "degenerate": "the answer was empty, repetitive or a placeholder",
    "truncated": "the answer was cut off at the length limit",
    "refused": "declined to answer",
    "blind": "had files to read but cited none",
    "timed_out": "ran out of time",
    "no_answer": "no answer before the run ended",
    "not_asked": "not asked",
    "failed(net)": "could not be reached",
    "failed(rate)": "still rate-limited after all retries",
    "failed(quota)": "no credit or quota left",
    "failed(overload)": "overloaded",
    "failed(server)": "server error",
    "failed(schema)": "the answer did not match the schema",
    "failed(size)": "the prompt did not fit the context window",
    "failed(model)": "there is no such model",
    "failed(auth)": "the key or login was refused",
    "failed(endpoint)": "base_url does not look like a model API",
    "failed(parameter)": "rejected a request parameter",
    "failed(member)": "the code of the member failed",
    "failed(script)": "scripted failure",
    "failed(flood)": "the response was larger than the limit",
    "skipped(budget)": "not asked, because the budget did not cover the request",
    "skipped(cancel)": "not asked, because the run was stopped first",
}
# The run ended before a final state.
UNFINISHED_STATES: dict[SeatState, SeatState] = {"waiting": "not_asked", "asked": "no_answer", "writing": "no_answer"}
SKIPPED_STATES: dict[str, SeatState] = {
    "interrupted": "skipped(cancel)",
    "cancelled": "skipped(cancel)",
    "budget": "skipped(budget)",
}  # state of seats that were not asked, by what stopped the run


def describe_state(state: str) -> str:
    """Describe a state in words that fit one or several seats; return an unknown state unchanged."""
    default = "the command ended with an error" if state.startswith("failed(cli") else state
    return STATE_DESCRIPTIONS.get(state, default)


def label_state(state: str) -> str:
    """Return a state as one or two words, for a column of a table: `failed`, `timed out`."""
    return "ok" if state == "ok_repaired" else state.partition("(")[0].replace("_", " ")


def describe_absence(missed: AbsenceMinutes) -> str:
    """Describe state and reason: `server error: 500 Internal Server Error`."""
    reason = single_line(missed.reason).rstrip(".")
    return f"{describe_state(missed.state)}: {reason}" if reason else describe_state(missed.state)


def format_phase(phase: str) -> str:
    """Format a phase as a name in a list: `draft`, `round 2`, `look-up 1`."""
    number = re.fullmatch(r"(?:r|look-)(\d+)", phase)
    kind = "look-up" if phase.startswith("look-") else "round"
    return f"{kind} {number[1]}" if number else single_line(phase).replace("_", " ")


def format_phase_in(phase: str) -> str:
    """Format a phase after "did not answer in"; `answer` needs words around it."""
    return "the answer phase" if phase == "answer" else format_phase(phase)


def final_state(state: SeatState, stopped: str = "") -> SeatState:
    """Return the state of a seat after its run has ended."""
    if state == "waiting" and stopped in SKIPPED_STATES:
        return SKIPPED_STATES[stopped]
    return UNFINISHED_STATES.get(state, state)


LINE_REFERENCE = re.compile(r"\w(?::L?|#L|,? lines? )\d", re.IGNORECASE)  # a file and a line, as models write it


def parse_location(finding: FindingRow) -> tuple[str, int] | None:
    """Return file and line of a finding, or None if the packet does not have the file; line 0 if it lacks the line."""
    if "path" in finding:
        return (finding["path"], finding["line"]) if finding["path"] else None
    path, _, line = str(finding["location"]).rpartition(":")
    return (path, int(line)) if finding["verified"] and path and line.isascii() and line.isdigit() else None


def choose_level(finding: FindingRow) -> Literal["error", "warning", "note"]:
    """Return the level of a finding for other tools."""
    levels: dict[str, Literal["error", "note"]] = {"critical": "error", "minor": "note"}
    return levels.get(finding["severity"], "warning")


def list_holders(finding: FindingRow) -> list[str]:
    """Return the judges that hold a finding: those that found it, and those that only support it."""
    return list(finding.get("held_by") or finding["found_by"])


def format_found_by(finding: FindingRow) -> str:
    found, held = len(finding["found_by"]), len(list_holders(finding))
    also_held = "" if found == held else f", held by {held}"
    return f"found by {found}{also_held} of {finding['of']}"


def format_fix(finding: FindingRow) -> str:
    """Format the fix of a finding; one of several lines starts on its own line."""
    fix = str(finding["fix"]).strip("\n")
    return f"Fix:\n{fix}" if "\n" in fix else f"Fix: {fix}"


def format_disputed(finding: FindingRow) -> str:
    """Return who disputes a finding: `disputed by judge-2`. Runs of older versions do not say who."""
    names = ", ".join(finding.get("disputed_by") or ())
    return single_line(f"disputed by {names}", 200) if names else "disputed"


def list_absent_seats(report: ReportObject) -> list[AbsentSeat]:
    """Return the seats without a verdict that failed, with the reason of their last absence."""
    reasons = {row["seat"]: row["reason"] for row in report["degraded"] if row["seat"]}
    lost = [seat for seat in report["seats"] if seat["state"] not in OK_STATES and not seat["verdict"]]
    return [{"name": seat["name"], "state": seat["state"], "reason": reasons.get(seat["name"], "")} for seat in lost]


def format_absent_seat(seat: AbsentSeat) -> str:
    return f"{seat['name']} gave no verdict: {seat['state']}. {seat['reason']}"


def list_location_notes(finding: FindingRow) -> list[str]:
    """Return what to add to a finding without a known line: where its judges place it, and what is known of that."""
    found, notes = parse_location(finding), []
    if not (found and found[1]) and finding["location"]:
        notes.append(f"Location as stated, not found in the packet: {finding['location']}")
    if finding.get("location_note"):
        notes.append(f"Evidence: {finding['location_note']}.")
    return notes


def format_location_caveat(finding: FindingRow) -> str:
    """Return the caveat after a location that was not verified; else empty."""
    if finding["verified"]:
        return ""
    names_line = LINE_REFERENCE.search(str(finding["location"] or finding["ref"]))
    if finding.get("unchecked"):
        return " (not checked)" if names_line else ""
    missing = "not found in the packet" if names_line and finding.get("location_state") != "located" else ""
    unquoted = "no quote" if finding.get("location_state") == "located" and not finding.get("location_note") else ""
    caveats = "; ".join(filter(None, [missing, finding.get("location_note"), unquoted]))
    return f" ({caveats})" if caveats else ""


SHARED_LAYOUTS = Path(__file__).parent / "layouts"
FENCE_LINE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
BACKTICKS = re.compile(r"`+")
PLAIN_CELL = re.compile(r"(?:[!-\\^-{}~]+ ?)*+(?<! )")  # words with nothing to clean or escape; "]" may end a sequence
MAX_LINE_CHARS = 2_000  # limit of a line that is normally shown in full


def render_layout(layout: str, context: Mapping[str, object], folder: Path | None = None) -> str:
    """Render a layout of the protocol in `folder`, or the shared layout of this name.

    A layout that replaces a shared one can extend it: `{% extends "shared/document.md" %}`.
    """
    return "".join(render_layout_parts(layout, context, folder))


def render_layout_parts(layout: str, context: Mapping[str, object], folder: Path | None = None) -> Iterator[str]:
    """Render a layout in parts of whole blocks, so that the text of a large run is never in memory as a whole."""
    held, size = list[str](), 0
    for text in _layout_environment(folder).get_template(f"{layout}.md").generate(context):
        held.append(text)
        size += len(text)
        if size > PART_CHARS and text.endswith(END_OF_DETAILS):
            yield _finish_part("".join(held))
            held, size = [], 0
    yield _finish_part("".join(held).rstrip() + "\n")


def _finish_part(text: str) -> str:
    return neutralize_html(text).replace(OWN_TAG, "<").replace(OWN_IMAGE, "!")


class PlainEnvironment(Environment):
    """Environment whose templates have their globals in a plain dictionary: jinja2 chains mappings, which is slow."""

    def make_globals(self, d: MutableMapping[str, Any] | None) -> MutableMapping[str, Any]:
        return {**self.globals, **(d or {})}


class LayoutLoader(FileSystemLoader):
    """Loads layouts, and marks their HTML and images as ours, so that they differ from those of models."""

    def get_source(self, environment: Environment, template: str) -> tuple[str, str, Callable[[], bool]]:
        source, path, is_current = super().get_source(environment, template)
        parts = JINJA_BLOCK.split(source)
        parts[::2] = [part.replace("![", f"{OWN_IMAGE}[").replace("<", OWN_TAG) for part in parts[::2]]
        return "".join(parts), path, is_current


@cache
def _layout_environment(folder: Path | None) -> PlainEnvironment:
    own = [folder, folder / "layouts"] if folder else []
    layouts = PlainEnvironment(
        loader=ChoiceLoader(
            [LayoutLoader([*own, SHARED_LAYOUTS]), PrefixLoader({"shared": LayoutLoader(SHARED_LAYOUTS)})]
        ),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
        auto_reload=False,
    )
    layouts.filters |= {
        "label": format_label,
        "clean": clean,
        "line": single_line,
        "cell": format_cell,
        "blockquote": blockquote,
        "fence": fence_code,
        "html": partial(escape, quote=False),
        "round": _format_round_name,
        "phase_in": format_phase_in,
        "count": format_count,
        "absence": describe_absence,
        "close_fence": close_code_fence,
        "text": format_text,
        "code": format_code,
        "breaks": "  \n".join,
        "lookup": format_lookup,
        "quote_tail": quote_tail_lines,
    }
    layouts.globals |= ENGLISH.layout_variables()
    return layouts


@pass_context
def _format_round_name(context: Context, phase: str) -> str:
    wording: Wording = context["wording"]
    return format_round_name(phase, wording)


def format_round_name(phase: str, wording: Wording = ENGLISH) -> str:
    """Format a phase name: `r2` as `Round 2`, others capitalised."""
    return " · ".join(
        wording.heading("round", n=part[1:]) if re.fullmatch(r"r\d+", part) else _capitalize_phase(part, wording)
        for part in clean(phase).split("/")
    )


def _capitalize_phase(phase: str, wording: Wording) -> str:
    name = wording.format_phase(phase)
    return name.replace("_", " ").capitalize() if name == phase else name[:1].upper() + name[1:]


def format_text(value: Any, limit: int = MAX_LINE_CHARS) -> str:
    """Format untrusted text as one line that ends after a sentence if it is too long."""
    return shorten_sentences(single_line(str(value), 20 * limit), limit)


def format_cell(value: Any, limit: int = 300) -> str:
    text = str(value)
    if len(text) <= limit and PLAIN_CELL.fullmatch(text):
        return text
    return single_line(text, limit).replace("|", "\\|")


def format_table_rows(rows: Iterable[Sequence[Any]]) -> str:
    """Format the rows of a Markdown table, each on a line."""
    return "".join([f"| {' | '.join(map(format_cell, row))} |\n" for row in rows])


def format_code(value: Any) -> str:
    """Format untrusted text as inline code that it cannot close."""
    return f"`{format_cell(BACKTICKS.sub('', str(value)))}`"


def blockquote(value: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in clean(value).strip().split("\n"))


def fence_code(value: str, kind: str = "text") -> str:
    """Format text as a code block whose fence it cannot close."""
    value = clean(value).rstrip()
    fence = "`" * max(3, 1 + max((len(run) for run in BACKTICKS.findall(value)), default=0))
    return f"{fence}{kind}\n{value}\n{fence}"


# Markdown that a program may render: a report on GitHub or in an editor

JINJA_BLOCK = re.compile(r"(\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\})", re.DOTALL)
OWN_TAG, OWN_IMAGE = (f"\x02{secrets.token_hex(8)}\x03" for _ in range(2))  # a model cannot write them
END_OF_DETAILS = f"{OWN_TAG}/details>\n\n"
PART_CHARS = 1_000_000  # a document is divided after a statement that makes a part longer
CELL_BREAK = f"{OWN_TAG}br>"  # a line break inside a table cell
HTML_OR_IMAGE = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")


def neutralize_html(text: str) -> str:
    """Return Markdown without HTML elements and images: `<b>` becomes `&lt;b>`, `![x](y)` becomes `\\![x](y)`, a link.

    Fenced code and code spans keep their content. Indented code does not: some programs read it as other text.
    """
    if not HTML_OR_IMAGE.search(text):
        return text
    from markdown_it import MarkdownIt

    lines = text.split("\n")
    blocks, is_fenced = [[n] for n in range(len(lines))], [False] * len(lines)
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    for token in parser.parse(text):
        start, end = token.map or (0, 0)
        if token.type == "fence":
            is_fenced[start:end] = [True] * (end - start)
        elif token.type == "inline" and end - start > 1:
            blocks[start:end] = [list(range(start, end)), *([[]] * (end - start - 1))]
    for block in blocks:
        if block and not is_fenced[block[0]]:
            lines[block[0] : block[-1] + 1] = _neutralize_block("\n".join(lines[n] for n in block)).split("\n")
    return "\n".join(lines)


def _neutralize_block(text: str) -> str:
    """Neutralize a paragraph, heading or row. Code in a table has to be inside one cell: cells are split first."""
    code = set(_list_code_places(text))
    if "|" in text:
        cells = [0, *(found.end() for found in re.finditer(r"\n|(?<!\\)\|", text)), len(text)]
        code &= {start + at for start, end in pairwise(cells) for at in _list_code_places(text[start:end])}

    def replace(found: re.Match[str]) -> str:
        at = found.start()
        if at in code or _is_escaped(text, at):
            return found[0]
        return "&lt;" if found[0] == "<" else "\\!"

    return HTML_OR_IMAGE.sub(replace, text)


def _is_escaped(text: str, at: int) -> bool:
    """Return whether an odd number of backslashes precedes a character."""
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return bool((at - start) % 2)


def _list_code_places(text: str) -> Iterator[int]:
    """Yield the places inside code spans: between two runs of backticks of the same length."""
    runs = [found.span() for found in BACKTICKS.finditer(text)]
    closers: dict[int, list[int]] = {}  # the later runs of each length, the next one last
    for start, end in reversed(runs):
        closers.setdefault(end - start, []).append(start)
    inside = 0  # the end of the last code span
    for start, end in runs:
        if start < inside:
            continue
        length = end - start - _is_escaped(text, start)  # an escaped backtick opens nothing
        later = closers.get(length, [])
        while later and later[-1] < end:
            later.pop()
        if length and later:
            yield from range(end, later[-1])
            inside = later[-1] + length


def close_code_fence(value: str) -> str:
    """Close the last code block, so that a truncated statement does not include the text after it."""
    fence = ""
    for line in value.split("\n"):
        mark = FENCE_LINE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return f"{value.rstrip()}\n{fence}" if fence else value


def format_count(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def format_lookup(what: str) -> str:
    """Format the look-up of a seat or an explorer; return any other text unchanged."""
    try:
        wanted = json.loads(what)
        files = [f"{one['path']}:{one['from']}-{one['to']}" if one["to"] else one["path"] for one in wanted["files"]]
        parts = [*files, *wanted["names"], *(f'"{pattern}"' for pattern in wanted["patterns"])]
    except (ValueError, TypeError, LookupError):
        return single_line(what, 160)
    return single_line(", ".join(map(str, parts)), 160)


def format_ruling(reply: Json | None) -> str:
    """Format the reply of a judge as `WARN MEDIUM 2 findings`; empty for any other reply."""
    if not reply or not {"verdict", "findings"} <= reply.keys():
        return ""
    kind = "new finding" if "withdrawn" in reply else "finding"  # a second round gives changes only
    parts = [reply["verdict"], reply.get("confidence") or "", format_count(len(reply["findings"]), kind)]
    return " ".join(filter(None, parts))


def format_cost(cost: CostRow, wording: Wording = ENGLISH) -> str:
    """Format the cost of a run; an unknown price is never shown as no cost."""
    t = wording.heading
    if cost["usd"] is None:
        return t("cost_unknown") + wording.enclose(t("unpriced", members=", ".join(cost["unpriced"])))
    remarks = [
        *([t("of_cap", usd=format_usd(cost["cap"]))] if cost.get("cap") is not None else []),
        *([t("partly_estimated")] if cost["estimated"] else []),
        *([t("doubtful_cost", usd=format_usd(cost["in_doubt"]))] if cost.get("in_doubt") else []),
    ]
    more = wording.enclose(wording.comma.join(remarks)) if remarks else ""
    return f"{t('cost_usd', usd=format_usd(cost['usd']))}{more}" if cost["usd"] or remarks else t("no_cost")


def format_savings(stops: Sequence[StopRow], wording: Wording = ENGLISH) -> str:
    """Format the calls that stops saved, and their expected cost if it is known; empty without stops."""
    if not stops:
        return ""
    calls = sum(stop["calls"] for stop in stops)
    amounts = [stop["saved"] for stop in stops if stop["saved"] is not None]
    counted = wording.heading("calls_counted", number=calls, count=wording.format_number(calls))
    usd = sum(amounts) if len(amounts) == len(stops) else 0
    return f"{counted}{wording.comma}{wording.heading('about_usd', usd=format_usd(usd))}" if usd else counted


def format_fork(minutes: Minutes) -> str:
    """Format the run this one is a fork of and the number of copied statements; empty if it is no fork."""
    fork = minutes.plan.get("fork")
    if not fork:
        return ""
    taken = sum(map(minutes.is_from_fork, minutes.statements))
    return f"of {fork['run']} from {fork['from']} on, {format_count(taken, 'statement')} taken from it"


def format_packet_line(packet: PacketReceipt) -> str:
    """Format the size of the packet that is sent, in one line; empty if it has no content."""
    skipped = packet.get("skipped") or []
    if not packet.get("files") and not skipped and not packet.get("bytes"):
        return ""
    reasons = ", ".join(dict.fromkeys(item["why"] for item in skipped))
    left_out = f" · left out {len(skipped)} ({reasons})" if skipped else ""
    masked = f" · {format_count(packet['masked'], 'secret')} masked" if packet.get("masked") else ""
    files = packet["files"] if isinstance(packet["files"], int) else len(packet["files"])
    return (
        f"{format_count(files, 'file')}, {format_size(packet['bytes'])}, ~{packet['tokens']:,} tokens{left_out}{masked}"
    )


def format_size(size: int) -> str:
    return f"{size / 1000:.0f} KB" if size >= 1000 else f"{size} bytes"


# Front matter of prompt files

FRONT_MATTER_FENCE = "+++\n"


class FrontMatter(TypedDict, total=False):
    """The front matter of a prompt file."""

    role: str
    ask: str
    words: int
    tokens: int
    material: list[str]


FRONT_MATTER_TYPES: dict[type, str] = {str: "a text", int: "a whole number", list: "a list of expressions"}


def _check_front_matter(front: dict[str, Any], name: str) -> FrontMatter:
    kinds = get_type_hints(FrontMatter)
    for key, value in front.items():
        if key not in kinds:
            raise PromptError(f'the prompt "{name}" has the unknown front matter key "{key}"')
        kind = get_origin(kinds[key]) or kinds[key]
        if not isinstance(value, kind):
            raise PromptError(
                f'the prompt "{name}" has {key} = {value!r} in its front matter, but "{key}" must be {FRONT_MATTER_TYPES[kind]}'
            )
    return cast("FrontMatter", front)


def split_front_matter(text: str, name: str) -> tuple[FrontMatter, str]:
    """Return the checked front matter of a prompt file and its body."""
    if not text.startswith(FRONT_MATTER_FENCE):
        return {}, text
    front, _, body = text[len(FRONT_MATTER_FENCE) :].partition(f"\n{FRONT_MATTER_FENCE}")
    return _check_front_matter(tomllib.loads(front), name), body


def format_decision_outcome(outcome: RecordedOutcome | None, wording: Wording = ENGLISH) -> str:
    """Return `wrong (recorded on 2026-11-20); the right value is 43; it moved in March`; empty without an outcome."""
    if outcome is None:
        return ""
    date = f"{datetime.fromtimestamp(outcome['at'], UTC):%Y-%m-%d}"
    value = wording.heading("right_value", value=single_line(outcome["value"])) if outcome["value"] else ""
    parts = [wording.heading(f"turned_out_{outcome['label']}", date=date), value, single_line(outcome["note"])]
    return wording.semicolon.join(filter(None, parts))


def format_trust_fact(trust: TrustRow, wording: Wording = ENGLISH) -> str:
    """Return a trust level with all its reasons: `MEDIUM — beta did not answer; agreement was not assessed`.

    A run that has not ended has none.
    """
    if trust["level"] is None:
        return ""
    limits = [TrustFact.load(row) for row in trust.get("facts") or () if row["kind"] in wording.table["reasons"]]
    reasons = wording.list_reasons(limits) or trust["because"]
    level = wording.format_level(trust["level"])
    return single_line(wording.dash.join(filter(None, (level, wording.semicolon.join(reasons)))), 1000)
