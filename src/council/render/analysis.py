"""Analysis file of one judge: the reply as JSON, then its text."""

from __future__ import annotations

import json

from council.minutes import Minutes, Said
from council.render.clean import clean_json, one_line
from council.render.layouts import fill
from council.render.terminal import count, ruling
from council.types import Json


def analysis(minutes: Minutes, said: Said) -> str:
    """Render what a judge said in one round. The JSON comes first so that programs can read it."""
    reply = json.dumps(clean_json(said.reply or {}), ensure_ascii=False, indent=2)
    seat = minutes.seat(said.seat)
    context = {"reply": reply, "seat": seat, "said": said, "ruling": ruling(said.reply), "facts": _facts(minutes, said)}
    return fill("analysis", context)


def _facts(minutes: Minutes, said: Said) -> list[str]:
    seat = minutes.seat(said.seat)
    helpers = minutes.helpers(said.seat)
    served_as_requested = said.served_by == seat.model or minutes.is_taken_over(said)
    facts: Json = {
        "Target": minutes.plan.get("target") or minutes.plan.get("question"),
        "Judge": said.seat,
        "Perspective": f"{seat.perspective} ({seat.role})" if seat.perspective else "",
        "Round": said.phase,
        "Member": said.served_by if served_as_requested else f"{said.served_by} in place of {seat.model}",
        "State": said.state,
        "Explorers": count(len(helpers), "explorer") if helpers else "",
        "Run": minutes.run,
    }
    return [f"**{name}:** {one_line(str(fact))}" for name, fact in facts.items() if fact]
