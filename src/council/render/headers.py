"""Header and footer lines of a judges' report."""

from __future__ import annotations

from datetime import UTC, datetime

from council.minutes import Minutes
from council.render import bench
from council.render.clean import one_line
from council.render.degraded import asked
from council.render.report import report
from council.render.terminal import cost_words, count, forked, packet_line
from council.types import Json

MODES = ("deep", "mixed", "debate", "quick")
TWO_ROUNDS = "2 (independent assessment + adversarial debate)"
FIDELITY = {
    "full": "full (the same judges, each in its own conversation)",
    "degraded": "degraded (a judge that cannot continue a conversation was asked in a new one, with its R1 in the prompt)",
}


def header(minutes: Minutes) -> list[str]:
    """Return one line per fact, `**Name:** value`, without empty facts."""
    facts = _quick(minutes) if bench.kind(minutes) == "quick" else _full(minutes)
    return [f"**{name}:** {one_line(str(fact), 600)}" for name, fact in facts.items() if fact]


def _quick(minutes: Minutes) -> Json:
    return {
        "Date": f"{datetime.fromtimestamp(minutes.started, UTC):%Y-%m-%d}",
        "Mode": "quick (single-agent)",
        "Target": bench.subject(minutes),
        "Confidence": f"{minutes.verdict.get('confidence') or 'none'} (at most MEDIUM for a single judge)",
        **_shared(minutes),
    }


def _full(minutes: Minutes) -> Json:
    options, details = minutes.plan.get("options") or {}, bench.details(minutes)
    debate = options.get("debate")
    return {
        "Target": bench.subject(minutes),
        "Mode": ", ".join([str(minutes.plan.get("task")), *(f"--{name}" for name in MODES if options.get(name))]),
        "Rounds": _rounds(minutes) if debate else "",
        "Fidelity": FIDELITY.get(details.get("fidelity") or "", details.get("fidelity")) if debate else "",
        "Judges": f"{asked(minutes)} asked, {minutes.heard} answered{_explorers(minutes)}",
        "Preset": options.get("preset"),
        "Technique": options.get("technique"),
        "Profile": options.get("profile"),
        "Confidence": minutes.verdict.get("confidence"),
        "Rule": "corroborated (a FAIL needs evidence)" if options.get("rule") == "corroborated" else "",
        "Effective votes": _votes(minutes, details),
        **_shared(minutes),
    }


def _shared(minutes: Minutes) -> Json:
    notices = minutes.plan.get("notices") or []
    warnings = [one_line(line) for line in minutes.plan.get("warnings") or [] if line not in notices]
    return {
        "Fork": forked(minutes),
        "Packet": packet_line(minutes.plan.get("packet") or {}),
        "Note": "; ".join(warnings),
    }


def _rounds(minutes: Minutes) -> str:
    if bench.second_round(minutes):
        return TWO_ROUNDS
    skipped = next((note.why for note in minutes.notes if note.what == "second round skipped"), "")
    return f"1 (no debate: {skipped or 'the run did not get that far'})"


def _explorers(minutes: Minutes) -> str:
    sent = sum(len(minutes.helpers(seat.name)) for seat in minutes.planned)
    return f", {count(sent, 'explorer')} sent out" if sent else ""


def _votes(minutes: Minutes, told: Json) -> str:
    if not told.get("n_eff") or minutes.heard < 2:
        return ""
    return f"at most about {told['n_eff']:g} of {minutes.heard} (judges of one family tend to make the same errors)"


def footer(minutes: Minutes) -> list[str]:
    """Return the lines with duration, responses, cost and the next command."""
    value = report(minutes)
    verb = "completed in" if value["status"] == "complete" else "stopped after"
    seconds = f"{minutes.seconds:.0f}s" if minutes.seconds >= 10 else f"{minutes.seconds:.1f}s"
    calls, tokens = value["calls"], value["tokens"]
    then = "replay" if value["status"] == "complete" else "resume"
    return [
        f"Council {verb} {seconds}. {bench.responded(minutes)}",
        f"{cost_words(value['cost']).capitalize()} · {count(calls['made'], 'call')} · {tokens['in']:,} tokens in, "
        f"{tokens['out']:,} out · `council {then} {minutes.run}`",
    ]
