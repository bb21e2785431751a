"""Ranking tables of a report: places, agreement between readers, and remarks."""

from __future__ import annotations

from council.minutes import Minutes
from council.render.labels import label
from council.render.layouts import cell
from council.render.states import told
from council.types import Json

FEW = 15  # show all pairs of readers up to this number, else only the most divided
MOST_DIVIDED = 5


def ranked(minutes: Minutes) -> Json:
    """Return the table, the pairs (header first, [] for none) and the remarks; {} if there was no ranking."""
    details = minutes.verdict.get("details") or {}
    if minutes.plan.get("protocol") != "ranking" or "ballots" not in details:
        return {}
    compared = [pair for pair in details["agreement"] if pair["compared"]]
    return {
        "table": _table(details["table"]) if _any(details) else [],
        "remarks": [*_ballots(minutes, details), *_order(details), *_agreement(details, compared)],
        "pairs": _pairs(compared),
    }


def _any(details: Json) -> bool:
    return any(row["ballots"] for row in details["table"])


def _table(rows: list[Json]) -> list[list[str]]:
    head = ["Place", "Answer of", "Mean rank", "Borda", "Ballots", "First places"]
    return [head, *([_said(row["place"]), cell(label(row["seat"])), _said(row["mean_rank"]), _said(row["borda"]), str(row["ballots"]), str(row["firsts"])] for row in rows)]  # fmt: skip


def _said(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _ballots(minutes: Minutes, details: Json) -> list[str]:
    rank = minutes.phases.get("rank")
    absent = [f"{cell(missed.seat)} ({told(missed)})" for missed in rank.absent.values()] if rank else []
    cast = len(details["ballots"])
    lines = [f"Ballots: {cast} of {cast + len(absent)}" + (f"; absent: {', '.join(absent)}." if absent else ".")]
    single = [reader for reader, ballot in details["ballots"].items() if len(ballot["order"]) == 1]
    if single:
        ballots = "ballot" if len(single) == 1 else "ballots"
        lines.append(
            f"Not counted, because one answer cannot be ranked: the {ballots} of {', '.join(map(cell, single))}."
        )
    return lines


def _order(details: Json) -> list[str]:
    if not _any(details):
        return ["No ballot compares two answers, so there is no table."]
    lines = ["No seat ranked its own answer. Borda is the share of comparisons with other answers that an answer won."]
    lines += [] if details["winner"] else ["No answer is first alone."]
    by_borda = "Mean rank decides the order; by Borda some answers would have another place, because the ballots differ in length."
    return [*lines, *([by_borda] if details["differ"] else [])]


def _agreement(details: Json, compared: list[Json]) -> list[str]:
    if not details["agreement"]:
        return []
    if not compared:
        return ["No two readers ranked the same two answers, so their agreement cannot be computed."]
    same, pairs = (sum(pair[key] for pair in compared) for key in ("same", "compared"))
    more = f"; shown are the {MOST_DIVIDED} most divided pairs of {len(compared)}" if len(compared) > FEW else ""
    return [
        f"Readers put two answers that both ranked in the same order in {same / pairs:.0%} of {pairs:,} cases{more}."
    ]


def _pairs(compared: list[Json]) -> list[list[str]]:
    shown = compared
    if len(compared) > FEW:
        shown = sorted(compared, key=lambda pair: pair["same"] / pair["compared"])[:MOST_DIVIDED]
    rows = [
        [cell(" and ".join(map(label, pair["readers"]))), f"{pair['same']} of {pair['compared']}"] for pair in shown
    ]
    return [["Readers", "In the same order"], *rows] if rows else []
