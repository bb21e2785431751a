"""Header and footer lines of a judges' report."""

from __future__ import annotations

from datetime import UTC, datetime

from council.minutes import Minutes
from council.render import bench
from council.render.clean import single_line
from council.render.degraded import count_asked_seats
from council.render.report import build_report
from council.render.terminal import format_cost, format_count, format_fork, format_packet_line
from council.types import Json

MODE_FLAGS = ("deep", "mixed", "debate", "quick")
TWO_ROUNDS = "2 (independent assessment + adversarial debate)"
FIDELITY = {
    "full": "full (the same judges, each in its own conversation)",
    "degraded": "degraded (a judge that cannot continue a conversation was asked in a new one, with its R1 in the prompt)",
}


def build_header(minutes: Minutes) -> list[str]:
    """Return one line per fact, `**Name:** value`, without empty facts."""
    facts = _quick_facts(minutes) if bench.report_kind(minutes) == "quick" else _full_facts(minutes)
    return [f"**{name}:** {single_line(str(fact), 600)}" for name, fact in facts.items() if fact]


def _quick_facts(minutes: Minutes) -> Json:
    return {
        "Date": f"{datetime.fromtimestamp(minutes.started, UTC):%Y-%m-%d}",
        "Mode": "quick (single-agent)",
        "Target": bench.format_subject(minutes),
        "Confidence": f"{minutes.verdict.get('confidence') or 'none'} (at most MEDIUM for a single judge)",
        **_common_facts(minutes),
    }


def _full_facts(minutes: Minutes) -> Json:
    options, details = minutes.plan.get("options") or {}, bench.verdict_details(minutes)
    debate = options.get("debate")
    return {
        "Target": bench.format_subject(minutes),
        "Mode": ", ".join([str(minutes.plan.get("task")), *(f"--{name}" for name in MODE_FLAGS if options.get(name))]),
        "Rounds": _format_rounds(minutes) if debate else "",
        "Fidelity": FIDELITY.get(details.get("fidelity") or "", details.get("fidelity")) if debate else "",
        "Judges": f"{count_asked_seats(minutes)} asked, {minutes.answered_count} answered{_format_explorers(minutes)}",
        "Preset": options.get("preset"),
        "Technique": options.get("technique"),
        "Profile": options.get("profile"),
        "Confidence": minutes.verdict.get("confidence"),
        "Rule": "corroborated (a FAIL needs evidence)" if options.get("rule") == "corroborated" else "",
        "Effective votes": _format_effective_votes(minutes, details),
        **_common_facts(minutes),
    }


def _common_facts(minutes: Minutes) -> Json:
    notices = minutes.plan.get("notices") or []
    warnings = [single_line(line) for line in minutes.plan.get("warnings") or [] if line not in notices]
    return {
        "Fork": format_fork(minutes),
        "Packet": format_packet_line(minutes.plan.get("packet") or {}),
        "Note": "; ".join(warnings),
    }


def _format_rounds(minutes: Minutes) -> str:
    if bench.second_round(minutes):
        return TWO_ROUNDS
    skipped = next((note.why for note in minutes.notes if note.what == "second round skipped"), "")
    return f"1 (no debate: {skipped or 'the run did not get that far'})"


def _format_explorers(minutes: Minutes) -> str:
    sent = sum(len(minutes.helpers(seat.name)) for seat in minutes.planned_seats)
    return f", {format_count(sent, 'explorer')} sent out" if sent else ""


def _format_effective_votes(minutes: Minutes, details: Json) -> str:
    if not details.get("n_eff") or minutes.answered_count < 2:
        return ""
    return f"at most about {details['n_eff']:g} of {minutes.answered_count} (judges of one family tend to make the same errors)"


def build_footer(minutes: Minutes) -> list[str]:
    """Return the lines with duration, responses, cost and the next command."""
    value = build_report(minutes)
    verb = "completed in" if value["status"] == "complete" else "stopped after"
    seconds = f"{minutes.seconds:.0f}s" if minutes.seconds >= 10 else f"{minutes.seconds:.1f}s"
    calls, tokens = value["calls"], value["tokens"]
    then = "replay" if value["status"] == "complete" else "resume"
    return [
        f"Council {verb} {seconds}. {bench.format_response_counts(minutes)}",
        f"{format_cost(value['cost']).capitalize()} · {format_count(calls['made'], 'call')} · {tokens['in']:,} tokens in, "
        f"{tokens['out']:,} out · `council {then} {minutes.run}`",
    ]
