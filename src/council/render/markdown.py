"""A run as Markdown: the answer alone, the verbose layouts, the report file. The layouts are files."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from council.minutes import Minutes
from council.render.clean import clean, one_line
from council.render.degraded import degraded_lines, why
from council.render.mermaid import mermaid
from council.render.report import planned, report
from council.render.terminal import cost_words, count
from council.types import Json

__all__ = ["answer", "document", "mermaid", "verbose"]

OWN_LAYOUT = ("collaborative", "adversarial", "triad")
CONSENSUS = "Consensus detected — no adversarial round needed"
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")


def answer(minutes: Minutes) -> str:
    """What goes to standard output: what is missing, then the answer alone."""
    above = "".join(f"! {line}\n" for line in degraded_lines(minutes))
    text = clean(minutes.verdict.get("answer") or "").strip()
    return "\n".join(part for part in (above, text and f"{text}\n") if part)


def verbose(minutes: Minutes, show: str = "") -> str:
    """The whole deliberation in the protocol's layout; `show="transcript"` adds prompts, retries and absences."""
    protocol = minutes.plan.get("protocol", "")
    text = _filled(protocol if protocol in OWN_LAYOUT else "any", minutes)
    return text + ("\n" + _filled("transcript", minutes) if show == "transcript" else "")


def document(minutes: Minutes) -> str:
    """The report file: question, facts, what is missing, the answer, and every statement in full."""
    return _filled("document", minutes)


def _filled(layout: str, minutes: Minutes) -> str:
    return _layouts().get_template(f"{layout}.md").render(_context(minutes)).rstrip() + "\n"


@cache
def _layouts() -> Environment:
    layouts = Environment(
        loader=PackageLoader("council", "data/layouts"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
    )
    layouts.filters |= {
        "label": _label, "clean": clean, "line": one_line, "cell": _cell, "quoted": _quoted,
        "fenced": _fenced, "folded": _folded, "round": _round_name, "count": count, "why": why,
    }  # fmt: skip
    return layouts


def _context(minutes: Minutes) -> Json:
    triage = _triage(minutes)
    return {
        "minutes": minutes,
        "plan": minutes.plan,
        "seats": planned(minutes),
        "helpers": list(minutes.seats.values())[len(planned(minutes)) :],
        "degraded": degraded_lines(minutes),
        "spoken": partial(_spoken, minutes),
        "others": partial(_others, minutes),
        "leader": triage.get("leader"),
        "reason": triage.get("reason") or "none given",
        "skipped": _skipped_attack(minutes),
        "outcome": minutes.verdict.get("outcome"),
        "confidence": minutes.verdict.get("confidence"),
        "final": _final(minutes),
        "rounds": _rounds(minutes),
        "facts": _facts(minutes),
    }


def _triage(minutes: Minutes) -> Json:
    phase = minutes.phases.get("triage")
    said = phase.said.get("chair") if phase else None
    return (said.reply if said else None) or {}


def _skipped_attack(minutes: Minutes) -> str:
    """Why no attack was held, if none was."""
    if "attack" in minutes.phases:
        return ""
    note = next((note for note in minutes.notes if note.what == "attack skipped"), None)
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    if note and len(drafts) > 1:
        return CONSENSUS
    return f"_No attack was held: {one_line(note.why if note else 'the run did not get that far')}._"


def _final(minutes: Minutes) -> str:
    text = _whole(clean(minutes.verdict.get("answer") or "")).strip()
    return text or "_There is no answer._"


def _spoken(minutes: Minutes, phase: str, name: str) -> str:
    """What the seat said in the phase, or in its place why it did not."""
    held = minutes.phases.get(phase)
    if held and name in held.said:
        return _whole(clean(held.said[name].said)).strip()
    if held and name in held.absent:
        return f"_Absent: {why(held.absent[name])}._"
    if held and name in held.asked:
        return "_No answer: the run stopped first._"
    return _silence(minutes, name, bool(held))


def _silence(minutes: Minutes, name: str, held: bool) -> str:
    earlier = [missed for missed in minutes.absences if missed.seat == name]
    if earlier:
        return f"_Absent since {earlier[-1].phase}: {why(earlier[-1])}._"
    return "_Not asked._" if held else "_Not held._"


def _others(minutes: Minutes, name: str) -> str:
    """Whose drafts the seat had read when it improved its own."""
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    return " & ".join(_label(seat.name) for seat in planned(minutes) if seat.name in drafts and seat.name != name)


def _rounds(minutes: Minutes) -> list[Any]:
    """The phases to show one by one; the last one is not, where it is the chair's and its words are the answer."""
    phases = list(minutes.phases.values())
    chair = minutes.chair.name if minutes.chair else None
    if phases and minutes.status == "complete" and phases[-1].asked == [chair]:
        phases.pop()
    return phases


def _facts(minutes: Minutes) -> list[tuple[str, str]]:
    """The table at the head of the report file."""
    value = report(minutes)
    calls, tokens = value["calls"], value["tokens"]
    convened = datetime.fromtimestamp(minutes.started, UTC)
    facts = [
        ("Protocol", f"{value['protocol']}: {minutes.plan.get('why') or 'as asked'}"),
        ("Status", value["status"]),
        ("Verdict", value["verdict"]),
        ("Outcome", value["outcome"]),
        ("Confidence", value["confidence"]),
        ("Target", value["target"]),
        ("Seats heard", f"{value['quorum']['ok']} of {value['quorum']['asked']}"),
        ("Calls", f"{calls['made']} made, {calls['replayed']} replayed, {calls['in_doubt']} in doubt"),
        ("Tokens", f"{tokens['in']:,} in ({tokens['cached']:,} cached), {tokens['out']:,} out"),
        ("Cost", cost_words(value["cost"])),
        ("Seconds", f"{value['seconds']:.1f}"),
        ("Convened", f"{convened:%Y-%m-%d %H:%M} UTC"),
        ("Run", minutes.run),
    ]
    return [(name, str(fact)) for name, fact in facts if fact]


def _label(name: str) -> str:
    return clean(name).capitalize()


def _round_name(phase: str) -> str:
    """`r2` as people say it; other phases by their own name."""
    return " · ".join(
        f"Round {part[1:]}" if re.fullmatch(r"r\d+", part) else part.replace("_", " ").capitalize()
        for part in clean(phase).split("/")
    )


def _cell(text: Any) -> str:
    return one_line(str(text), 300).replace("|", "\\|")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in clean(text).strip().split("\n"))


def _fenced(text: str) -> str:
    """The text as a code block whose fence it cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{clean(text).rstrip()}\n{fence}"


def _folded(text: str) -> str:
    """Text that cannot close the block it is folded into."""
    return re.sub(r"<(/?(?:details|summary))", r"&lt;\1", text, flags=re.IGNORECASE)


def _whole(text: str) -> str:
    """The text with its last code block closed: a statement cut short must not swallow the ones after it."""
    fence = ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return f"{text.rstrip()}\n{fence}" if fence else text
