"""Ranking tables of a report: places, agreement between readers, and remarks."""

from __future__ import annotations

from council.engine.layout import ENGLISH, describe_absence, find_wording, format_cell, format_label
from council.engine.minutes import Minutes
from council.protocols import ReportView
from council.types import Json
from council.wording import Wording

MAX_PAIRS = 15  # show all pairs of readers up to this number, else only the most divided
DIVIDED_PAIRS_SHOWN = 5


class RankingView(ReportView):
    def report_fields(self, minutes: Minutes) -> Json:
        """Return table, agreement and ballots by seat; empty if no ranking was made."""
        details = minutes.verdict.get("details") or {}
        if "ballots" not in details:
            return {}
        return {"ranking": {key: details[key] for key in ("table", "winner", "differ", "agreement", "ballots")}}

    def layout_variables(self, minutes: Minutes) -> Json:
        return {"ranking": build_ranking(minutes, find_wording(minutes))}


def build_ranking(minutes: Minutes, wording: Wording = ENGLISH) -> Json:
    """Return the table, the pairs (header first, [] for none) and the remarks; {} if there was no ranking."""
    details = minutes.verdict.get("details") or {}
    if "ballots" not in details:
        return {}
    compared = [pair for pair in details["agreement"] if pair["compared"]]
    return {
        "table": _build_table(details["table"], wording) if _has_comparisons(details) else [],
        "remarks": [
            *_describe_ballots(minutes, details),
            *_describe_order(details),
            *_describe_agreement(details, compared),
        ],
        "pairs": _build_pairs(compared, wording),
    }


def _has_comparisons(details: Json) -> bool:
    return any(row["ballots"] for row in details["table"])


def _build_table(rows: list[Json], wording: Wording) -> list[list[str]]:
    columns = ("place", "answer_of", "mean_rank", "borda", "ballots", "first_places")
    return [list(map(wording.heading, columns)), *(_build_row(row, wording) for row in rows)]


def _build_row(row: Json, wording: Wording) -> list[str]:
    return [
        _format_number(row["place"], wording),
        format_cell(format_label(row["seat"])),
        _format_number(row["mean_rank"], wording),
        _format_number(row["borda"], wording),
        str(row["ballots"]),
        str(row["firsts"]),
    ]


def _format_number(value: float | None, wording: Wording) -> str:
    return wording.heading("none") if value is None else f"{value:g}"


def _describe_ballots(minutes: Minutes, details: Json) -> list[str]:
    rank = minutes.phases.get("rank")
    absent = (
        [f"{format_cell(missed.seat)} ({describe_absence(missed)})" for missed in rank.absent.values()] if rank else []
    )
    cast = len(details["ballots"])
    lines = [f"Ballots: {cast} of {cast + len(absent)}" + (f"; absent: {', '.join(absent)}." if absent else ".")]
    single = [reader for reader, ballot in details["ballots"].items() if len(ballot["order"]) == 1]
    if single:
        ballots = "ballot" if len(single) == 1 else "ballots"
        lines.append(
            f"Not counted, because one answer cannot be ranked: the {ballots} of {', '.join(map(format_cell, single))}."
        )
    return lines


def _describe_order(details: Json) -> list[str]:
    if not _has_comparisons(details):
        return ["No ballot compares two answers, so there is no table."]
    lines = ["No seat ranked its own answer. Borda is the share of comparisons with other answers that an answer won."]
    lines += [] if details["winner"] else ["No answer is first alone."]
    by_borda = "Mean rank decides the order; by Borda some answers would have another place, because the ballots differ in length."
    return [*lines, *([by_borda] if details["differ"] else [])]


def _describe_agreement(details: Json, compared: list[Json]) -> list[str]:
    if not details["agreement"]:
        return []
    if not compared:
        return ["No two readers ranked the same two answers, so their agreement cannot be computed."]
    same, pairs = (sum(pair[key] for pair in compared) for key in ("same", "compared"))
    more = (
        f"; shown are the {DIVIDED_PAIRS_SHOWN} most divided pairs of {len(compared)}"
        if len(compared) > MAX_PAIRS
        else ""
    )
    return [
        f"Readers put two answers that both ranked in the same order in {same / pairs:.0%} of {pairs:,} cases{more}."
    ]


def _build_pairs(compared: list[Json], wording: Wording) -> list[list[str]]:
    shown = compared
    if len(compared) > MAX_PAIRS:
        shown = sorted(compared, key=lambda pair: pair["same"] / pair["compared"])[:DIVIDED_PAIRS_SHOWN]
    rows = [
        [
            format_cell(wording.join([format_label(name) for name in pair["readers"]])),
            wording.heading("count_of", count=pair["same"], total=pair["compared"]),
        ]
        for pair in shown
    ]
    return [[wording.heading("readers"), wording.heading("same_order")], *rows] if rows else []
