"""One judge's analysis as a file beside the report: the reply as JSON first, then what it says in words."""

from __future__ import annotations

import json

from council.minutes import Minutes, Said
from council.render.clean import clean_json, one_line
from council.render.layouts import fill
from council.render.terminal import count, ruling
from council.types import Json


def analysis(minutes: Minutes, said: Said) -> str:
    """The whole of what a judge said in one round; whoever reads files by machine finds the JSON at the top."""
    reply = json.dumps(clean_json(said.reply or {}), ensure_ascii=False, indent=2)
    seat = minutes.seat(said.seat)
    given = {"reply": reply, "seat": seat, "said": said, "ruling": ruling(said.reply), "facts": _facts(minutes, said)}
    return fill("analysis", given)


def _facts(minutes: Minutes, said: Said) -> list[str]:
    seat = minutes.seat(said.seat)
    helpers = minutes.helpers(said.seat)
    in_person = said.served_by == seat.model or minutes.is_taken_over(said)
    facts: Json = {
        "Target": minutes.plan.get("target") or minutes.plan.get("question"),
        "Judge": said.seat,
        "Perspective": f"{seat.perspective} ({seat.role})" if seat.perspective else "",
        "Round": said.phase,
        "Member": said.served_by if in_person else f"{said.served_by} in place of {seat.model}",
        "State": said.state,
        "Explorers": count(len(helpers), "explorer") if helpers else "",
        "Run": minutes.run,
    }
    return [f"**{name}:** {one_line(str(fact))}" for name, fact in facts.items() if fact]
