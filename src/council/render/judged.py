"""Report files of judges: the context for each layout. The rules decide verdicts, findings and shifts."""

from __future__ import annotations

import json
from collections.abc import Iterable

from council.minutes import Minutes
from council.render import bench
from council.render.clean import clean, clean_json, one_line
from council.render.degraded import degraded_lines
from council.render.headers import footer, header
from council.render.layouts import cell, code, fill, text, whole
from council.render.places import doubt, where
from council.types import Json

DEFERRED = "The families disagree, and Council does not break ties: the decision is yours."


def document(minutes: Minutes) -> str:
    """Render the report file of a judges run."""
    kind = bench.kind(minutes)
    context = {
        "minutes": minutes, "subject": bench.subject(minutes), "header": header(minutes), "footer": footer(minutes),
        "degraded": degraded_lines(minutes), "incomplete": minutes.status != "complete",
        "nothing": bench.nothing_asked(minutes), "answer": _answer(minutes), "files": _files(minutes),
    }  # fmt: skip
    return fill(kind, context | PARTS[kind](minutes))


def _answer(minutes: Minutes) -> str:
    """Return the recommendation. An unfinished run has none; its digest would repeat the sections above."""
    if minutes.status != "complete":
        return "None: the run ended before the answers above were compared."
    return whole(clean(minutes.verdict.get("answer") or "")).strip() or "None."


def _files(minutes: Minutes) -> list[str]:
    """Return the analysis files by round and in seating order, so that timing does not change the report."""
    keys = [f"{phase.name}/{seat.name}" for phase in minutes.rounds for seat in minutes.planned]
    return [minutes.files[key] for key in keys if key in minutes.files]


# Validate


def _validate(minutes: Minutes) -> Json:
    rows, details = bench.findings(minutes), bench.details(minutes)
    return {
        "heading": _heading(minutes), "table": [[cell(one) for one in row] for row in bench.verdict_table(minutes)],
        "remarks": bench.remarks(minutes), "shifts": [_shift(minutes, one) for one in minutes.verdict.get("shifts") or []],
        "exchanges": list(_exchanges(minutes)), "steel_men": list(_steel_men(minutes)), "dropped": _dropped(minutes),
        "converged": details.get("converged"), "disagree": minutes.verdict.get("verdict") == "DISAGREE", "deferred": DEFERRED,
        "shared": [_shared(row) for row in rows if len(row["found_by"]) > 1],
        "single": [_single(minutes, row) for row in rows if len(row["found_by"]) == 1],
        "positions": _positions(minutes), "disputed": [text(row["description"]) for row in rows if row["disputed"]],
        "mixed": details.get("mixed") or (minutes.plan.get("options") or {}).get("mixed"), "insights": _insights(minutes),
        "ungrouped": bool(rows) and not details,
    }  # fmt: skip


def _heading(minutes: Minutes) -> str:
    if minutes.status != "complete":
        return "INCOMPLETE"
    return minutes.verdict.get("verdict") or one_line(minutes.verdict.get("answer") or "none")


def _shared(row: Json) -> list[str]:
    disputed = " (disputed)" if row["disputed"] else ""
    found_by = f"{len(row['found_by'])} of {row['of']}: {', '.join(row['found_by'])}"
    return [
        cell(row["description"], 600) + disputed, cell(row["severity"]), cell(found_by), cell(row["fix"], 600), cell(where(row)),
    ]  # fmt: skip


def _single(minutes: Minutes, row: Json) -> str:
    kind = " ".join(filter(None, [row["severity"], row["category"]]))
    place = f" at {code(row['location'])}{doubt(row)}" if row["location"] else ""
    disputed = " Disputed." if row["disputed"] else ""
    parts = [f"Fix: {text(row['fix'])}", f"Why: {text(row['why'])}" if row["why"] else ""]
    advice = " ".join(_sentence(part) for part in parts if part)
    head = f"{bench.who(minutes, row['found_by'][0])} found ({one_line(kind)}){place}"
    return f"{head}: {_sentence(text(row['description']))} {advice}{disputed}"


def _sentence(said: str) -> str:
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def _positions(minutes: Minutes) -> list[list[str]]:
    """Return a table of the disagreements: one column per family if there are several, else per judge."""
    rows = minutes.verdict.get("disagreements") or []
    heads = bench.families(minutes) if len(bench.families(minutes)) > 1 else [seat.name for seat in minutes.planned]
    by = "family" if len(bench.families(minutes)) > 1 else "seat"
    if not rows:
        return []
    return [["Issue", *map(cell, heads)], *([cell(row["issue"]), *_held(row, by, heads)] for row in rows)]


def _held(row: Json, by: str, heads: Iterable[str]) -> list[str]:
    def said(one: Json) -> str:
        name = f" ({one['seat']})" if by == "family" else ""
        return f"{one['verdict']}: {one['why']}{name}"

    return [
        "<br>".join(cell(said(one), 600) for one in row["positions"] if one[by] == head) or "–" for head in heads
    ]  # fmt: skip


def _insights(minutes: Minutes) -> list[tuple[str, list[str]]]:
    rows = minutes.verdict.get("insights") or []
    by_family = {family: [row for row in rows if row["family"] == family] for family in bench.families(minutes)}
    return [
        (one_line(family), [f"({one_line(row['severity'])}) {text(row['finding'])}" for row in found])
        for family, found in by_family.items()
    ]


# Debate


def _shift(minutes: Minutes, shift: Json) -> list[str]:
    weak = " **Weak flip: it cites nothing, possible anchoring.**" if shift["weak"] else ""
    changed = "yes" if shift["changed"] else "no"
    return [cell(shift["seat"]), shift["from"], shift["to"], changed, cell(shift["reason"] or "none given", 600) + weak]


def _exchanges(minutes: Minutes) -> Iterable[str]:
    for name, notes in (bench.details(minutes).get("notes") or {}).items():
        for one in notes["challenges"]:
            whom = bench.who(minutes, one["target_judge"])
            yield f"{bench.who(minutes, name)} challenges {whom}: {_sentence(text(one['claim']))} {text(one['response'])}"
        for one in notes["acknowledgments"]:
            whom = bench.who(minutes, one["source_judge"])
            yield f"{bench.who(minutes, name)} grants {whom}: {_sentence(text(one['point']))} {text(one['impact'])}"


def _steel_men(minutes: Minutes) -> Iterable[str]:
    for name, notes in (bench.details(minutes).get("notes") or {}).items():
        if notes["steel_man"].strip():
            yield f"{bench.who(minutes, name)}: {text(notes['steel_man'])}"


def _dropped(minutes: Minutes) -> list[str]:
    return [
        f"{bench.who(minutes, row['seat'])}: {text(row['finding'])} ({one_line(row['severity'])})"
        for row in bench.details(minutes).get("dropped") or []
    ]


# Quick


def _quick(minutes: Minutes) -> Json:
    said = next((one for seat in minutes.planned if (one := bench.last_said(minutes, seat.name))), None)
    return {
        "heading": _heading(minutes), "remarks": bench.remarks(minutes),
        "reply": json.dumps(clean_json(said.reply), ensure_ascii=False, indent=2) if said and said.reply else "",
        "analysis": whole(clean(said.said)).strip() if said else "The judge did not answer.",
    }  # fmt: skip


# Brainstorm and research


def _brainstorm(minutes: Minutes) -> Json:
    judges = bench.replies(minutes)
    return {
        "names": list(map(cell, judges)), "options": _options(judges), "trades": list(_trades(minutes, judges)),
    }  # fmt: skip


def _options(judges: dict[str, Json]) -> list[list[str]]:
    """Return one row per option name and one column per judge."""
    names: dict[str, str] = {}
    rated: dict[tuple[str, str], str] = {}
    for judge, reply in judges.items():
        for option in reply.get("options") or []:
            key = " ".join(option["name"].lower().split())
            names.setdefault(key, option["name"])
            rated[key, judge] = option["assessment"]
    return [[cell(name), *(cell(rated.get((key, judge), "–"), 600) for judge in judges)] for key, name in names.items()]


def _trades(minutes: Minutes, judges: dict[str, Json]) -> Iterable[str]:
    """Format the trade-offs of the chair, or the pros and cons of each judge if there was no chair."""
    merged = bench.details(minutes).get("consolidation")
    if merged:
        for one in merged["trade_offs"]:
            yield f"**{text(one['option'])}** brings: {_sentence(text(one['buys']))} It costs: {text(one['costs'])}"
        return
    for judge, reply in judges.items():
        for option in reply.get("options") or []:
            pros, cons = ("; ".join(map(text, option[side])) or "none given" for side in ("pros", "cons"))
            yield f"**{text(option['name'])}** ({one_line(judge)}) for: {_sentence(pros)} Against: {cons}"


def _research(minutes: Minutes) -> Json:
    judges = bench.replies(minutes)
    merged = bench.details(minutes).get("consolidation") or {}
    themes = [(text(one["name"]), list(map(text, one["findings"]))) for one in merged.get("themes") or []]
    alone = [
        (f"Findings of {one_line(name)}", list(map(text, one.get("findings") or []))) for name, one in judges.items()
    ]
    open_ = merged.get("open_questions") or [
        one for reply in judges.values() for one in reply.get("open_questions") or []
    ]
    return {
        "facets": [
            [cell(facet["name"]), cell(name), "<br>".join(cell(one, 600) for one in facet["findings"]) or "–"]
            for name, reply in judges.items() for facet in reply.get("facets") or []
        ],
        "themes": themes or [row for row in alone if row[1]], "open_questions": list(map(text, open_)),
    }  # fmt: skip


PARTS = {"validate": _validate, "quick": _quick, "brainstorm": _brainstorm, "research": _research}
