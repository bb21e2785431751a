"""A run as Markdown: the answer, the verbose layouts and the report file."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from council.minutes import Minutes, PhaseMinutes
from council.render import bench, judged
from council.render.ballots import ranked
from council.render.clean import clean, one_line
from council.render.degraded import degraded_lines
from council.render.labels import label, spoken_as, unblind
from council.render.layouts import fenced, fill, whole
from council.render.mermaid import mermaid
from council.render.report import answer_text, report
from council.render.states import why
from council.render.terminal import cost_words, forked
from council.render.verdict import verdict_text
from council.types import Json

__all__ = ["answer", "document", "mermaid", "verbose"]

OWN_LAYOUT = ("collaborative", "adversarial", "triad", "advisors", "general", "ranking")
CONSENSUS = "Consensus detected — no adversarial round needed"


def answer(minutes: Minutes) -> str:
    """Render the text for standard output: the degradation lines, then the answer or the verdict."""
    if bench.nothing_asked(minutes):
        return f"{clean(answer_text(minutes)).strip()}\n"
    if bench.kind(minutes) in ("validate", "quick"):
        return verdict_text(minutes)
    above = "".join(f"! {line}\n" for line in degraded_lines(minutes))
    text = clean(_weighed(minutes) or answer_text(minutes)).strip()
    return "\n".join(part for part in (above, text and f"{text}\n") if part)


def _weighed(minutes: Minutes) -> str:
    """Return the full consolidation of the chair for a brainstorm or research run; empty for others."""
    phase = minutes.phases.get("consolidate")
    said = phase.said.get("chair") if phase and bench.kind(minutes) and minutes.status == "complete" else None
    return said.said if said else ""


def verbose(minutes: Minutes, show: str = "") -> str:
    """Render the deliberation in the layout of its protocol; `show="transcript"` adds prompts, retries and absences."""
    if bench.nothing_asked(minutes):
        return answer(minutes)
    protocol = minutes.plan.get("protocol", "")
    text = fill(protocol if protocol in OWN_LAYOUT else "any", _context(minutes))
    return text + ("\n" + fill("transcript", _context(minutes)) if show == "transcript" else "")


def document(minutes: Minutes) -> str:
    """Render the report file: question, facts, degradation, the answer and every statement; judges have their own layouts."""
    return judged.document(minutes) if bench.kind(minutes) else fill("document", _context(minutes))


def _context(minutes: Minutes) -> Json:
    triage = _triage(minutes)
    return {
        "minutes": minutes,
        "plan": minutes.plan,
        "seats": minutes.planned,
        "helpers": list(minutes.seats.values())[len(minutes.planned) :],
        "degraded": degraded_lines(minutes),
        "statement": partial(_spoken, minutes),
        "speaker": partial(spoken_as, minutes),
        "other_seats": partial(_others, minutes),
        "asked_seats": partial(_polled, minutes),
        "explorer_reports": partial(_explored, minutes),
        "leader": triage.get("leader"),
        "reason": triage.get("reason") or "none given",
        "skipped": _skipped_attack(minutes),
        "outcome": minutes.verdict.get("outcome"),
        "confidence": minutes.verdict.get("confidence"),
        "final": _final(minutes),
        "rounds": _rounds(minutes),
        "ranking": ranked(minutes),
        "facts": _facts(minutes),
    }


def _triage(minutes: Minutes) -> Json:
    phase = minutes.phases.get("triage")
    said = phase.said.get("chair") if phase else None
    return (said.reply if said else None) or {}


def _skipped_attack(minutes: Minutes) -> str:
    """Return why there was no attack phase; empty if there was one."""
    if "attack" in minutes.phases:
        return ""
    note = next((note for note in minutes.notes if note.what == "attack skipped"), None)
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    if note and len(drafts) > 1:
        return CONSENSUS
    return f"_No attack was held: {one_line(note.why if note else 'the run did not get that far')}._"


def _final(minutes: Minutes) -> str:
    if bench.kind(minutes) in ("validate", "quick") and minutes.status == "complete":
        return fenced(verdict_text(minutes))
    text = whole(clean(_weighed(minutes) or answer_text(minutes))).strip()
    return text or "_There is no answer._"


def _spoken(minutes: Minutes, phase: str, name: str) -> str:
    """Return the statement of a seat in a phase, or why there is none."""
    record = minutes.phases.get(phase)
    if record and name in record.said:
        return whole(clean(unblind(record.said[name].said, record.labels.get(name, {})))).strip()
    if record and name in record.absent:
        return f"_Absent: {why(record.absent[name])}._"
    if record and name in record.asked:
        return "_No answer: the run stopped first._"
    return _silence(minutes, name, bool(record))


def _silence(minutes: Minutes, name: str, held: bool) -> str:
    earlier = [missed for missed in minutes.absences if missed.seat == name]
    if earlier:
        return f"_Absent since {earlier[-1].phase}: {why(earlier[-1])}._"
    return "_Not asked._" if held else "_Not held._"


def _others(minutes: Minutes, name: str) -> str:
    """Format the seats whose drafts this seat read before it improved its own."""
    drafts = minutes.phases["draft"].said if "draft" in minutes.phases else {}
    return " & ".join(label(seat.name) for seat in minutes.planned if seat.name in drafts and seat.name != name)


def _polled(minutes: Minutes, phase: PhaseMinutes) -> list[str]:
    """Return the asked seats in speaking order; judges, who are asked at once, in seating order."""
    place = {seat.name: n for n, seat in enumerate(minutes.everyone)}
    return sorted(phase.asked, key=lambda name: place[name]) if bench.kind(minutes) else phase.asked


def _explored(minutes: Minutes, phase: str, name: str) -> list[tuple[str, str]]:
    """Return the reports of a judge's explorers, for its first round."""
    first = bench.first_round(minutes)
    if not bench.kind(minutes) or first is None or first.name != phase:
        return []
    last = {said.seat: said.said for said in minutes.statements}
    return [(seat.name, whole(clean(last.get(seat.name) or "_No report._")).strip()) for seat in minutes.helpers(name)]


def _rounds(minutes: Minutes) -> list[PhaseMinutes]:
    """Return the phases to show; without the last phase if it is the chair's, because its statement is the answer."""
    phases = minutes.rounds
    chair = minutes.chair.name if minutes.chair else None
    if phases and minutes.status == "complete" and phases[-1].asked == [chair]:
        phases.pop()
    return phases


def _facts(minutes: Minutes) -> list[tuple[str, str]]:
    """Return the rows of the table at the top of the report file."""
    value = report(minutes)
    calls, tokens = value["calls"], value["tokens"]
    convened = datetime.fromtimestamp(minutes.started, UTC)
    facts = [
        ("Protocol", f"{value['protocol']}: {minutes.plan.get('why') or 'as asked'}"),
        ("Fork", forked(minutes)),
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
