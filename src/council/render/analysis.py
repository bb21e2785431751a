"""Analysis file of one judge: the reply as JSON, then its text."""

from __future__ import annotations

import json

from council.minutes import Minutes, StatementMinutes
from council.render.clean import clean_json, single_line
from council.render.layouts import render_layout
from council.render.terminal import format_count, format_ruling
from council.types import Json


def render_analysis(minutes: Minutes, said: StatementMinutes) -> str:
    """Render what a judge said in one round. The JSON comes first so that programs can read it."""
    reply = json.dumps(clean_json(said.reply or {}), ensure_ascii=False, indent=2)
    seat = minutes.seat(said.seat)
    context = {
        "reply": reply,
        "seat": seat,
        "said": said,
        "ruling": format_ruling(said.reply),
        "facts": _analysis_facts(minutes, said),
    }
    return render_layout("analysis", context)


def _analysis_facts(minutes: Minutes, said: StatementMinutes) -> list[str]:
    seat = minutes.seat(said.seat)
    helpers = minutes.helpers(said.seat)
    served_as_requested = said.served_by == seat.model or minutes.is_from_fork(said)
    facts: Json = {
        "Target": minutes.plan.get("target") or minutes.plan.get("question"),
        "Judge": said.seat,
        "Perspective": f"{seat.perspective} ({seat.role})" if seat.perspective else "",
        "Round": said.phase,
        "Member": said.served_by if served_as_requested else f"{said.served_by} in place of {seat.model}",
        "State": said.state,
        "Explorers": format_count(len(helpers), "explorer") if helpers else "",
        "Run": minutes.run,
    }
    return [f"**{name}:** {single_line(str(fact))}" for name, fact in facts.items() if fact]
