"""Ranking tables of a report: places, agreement between readers, and remarks."""

from __future__ import annotations

from typing import TypedDict, cast

from council.engine.layout import describe_absence, find_wording, format_cell, format_label
from council.engine.minutes import Minutes
from council.protocols import ReportView
from council.protocols.ranking.rules import RankingDetails, RankingObject, ReaderPairRow, StandingRow
from council.wording import Wording

MAX_PAIRS = 15  # show all pairs of readers up to this number, else only the most divided
DIVIDED_PAIRS_SHOWN = 5


class RankingFields(TypedDict, total=False):
    ranking: RankingObject


class RankingParts(TypedDict, total=False):
    """The ranking in a layout: tables have a header first, and no rows if there is nothing to show."""

    table: list[list[str]]
    remarks: list[str]
    pairs: list[list[str]]


class RankingVariables(TypedDict):
    ranking: RankingParts


class RankingView(ReportView):
    def report_fields(self, minutes: Minutes) -> RankingFields:
        """Return table, agreement and ballots by seat; empty if no ranking was made."""
        details = _find_details(minutes)
        if details is None:
            return {}
        return {"ranking": cast("RankingObject", {name: of for name, of in details.items() if name != "labels"})}

    def layout_variables(self, minutes: Minutes) -> RankingVariables:
        return {"ranking": build_ranking(minutes, find_wording(minutes))}


def _find_details(minutes: Minutes) -> RankingDetails | None:
    """Return the ranking that the verdict recorded; None if none was made."""
    stored = minutes.verdict.get("details") or {}
    return cast("RankingDetails", stored) if "ballots" in stored else None


def build_ranking(minutes: Minutes, wording: Wording) -> RankingParts:
    """Return the tables and the remarks; empty if there was no ranking."""
    details = _find_details(minutes)
    if details is None:
        return {}
    compared = [pair for pair in details["agreement"] if pair["compared"]]
    return {
        "table": _build_table(details["table"], wording) if _has_comparisons(details) else [],
        "remarks": [
            *_describe_ballots(minutes, details, wording),
            *_describe_order(details, wording),
            *_describe_agreement(details, compared, wording),
        ],
        "pairs": _build_pairs(compared, wording),
    }


def _has_comparisons(details: RankingDetails) -> bool:
    return any(row["ballots"] for row in details["table"])


def _build_table(rows: list[StandingRow], wording: Wording) -> list[list[str]]:
    columns = ("place", "answer_of", "mean_rank", "borda", "ballots", "first_places")
    table = [list(map(wording.heading, columns))]
    for row in rows:
        numbers = (row["place"], row["mean_rank"], row["borda"], row["ballots"], row["firsts"])
        place, *others = (wording.heading("none") if number is None else f"{number:g}" for number in numbers)
        table.append([place, format_cell(format_label(row["seat"])), *others])
    return table


def _describe_ballots(minutes: Minutes, details: RankingDetails, wording: Wording) -> list[str]:
    rank = minutes.phases.get("rank")
    absences = rank.absent.values() if rank else ()
    absent = [f"{format_cell(missed.seat)}{wording.enclose(describe_absence(missed))}" for missed in absences]
    cast = len(details["ballots"])
    parts = [wording.heading("ballots_cast", cast=cast, total=cast + len(absent))]
    if absent:
        parts.append(wording.heading("absent_readers", seats=wording.comma.join(absent)))
    lines = [f"{wording.semicolon.join(parts)}{wording.period.rstrip()}"]
    if single := [format_cell(reader) for reader, ballot in details["ballots"].items() if len(ballot["order"]) == 1]:
        lines.append(wording.heading("ballots_not_counted", number=len(single), seats=", ".join(single)))
    return lines


def _describe_order(details: RankingDetails, wording: Wording) -> list[str]:
    if not _has_comparisons(details):
        return [wording.heading("no_comparison")]
    return [
        wording.heading("borda_note"),
        *([] if details["winner"] else [wording.heading("no_sole_first")]),
        *([wording.heading("borda_differs")] if details["differ"] else []),
    ]


def _describe_agreement(details: RankingDetails, compared: list[ReaderPairRow], wording: Wording) -> list[str]:
    if not details["agreement"]:
        return []
    if not compared:
        return [wording.heading("no_shared_pairs")]
    same, pairs = sum(pair["same"] for pair in compared), sum(pair["compared"] for pair in compared)
    parts = [wording.heading("readers_agree", share=f"{same / pairs:.0%}", pairs=wording.format_number(pairs))]
    if len(compared) > MAX_PAIRS:
        parts.append(wording.heading("divided_pairs", shown=DIVIDED_PAIRS_SHOWN, total=len(compared)))
    return [f"{wording.semicolon.join(parts)}{wording.period.rstrip()}"]


def _build_pairs(compared: list[ReaderPairRow], wording: Wording) -> list[list[str]]:
    if len(compared) > MAX_PAIRS:
        compared = sorted(compared, key=lambda pair: pair["same"] / pair["compared"])[:DIVIDED_PAIRS_SHOWN]
    rows = [[wording.heading("readers"), wording.heading("same_order")]]
    for pair in compared:
        readers = format_cell(wording.join([format_label(name) for name in pair["readers"]]))
        rows.append([readers, wording.heading("count_of", count=pair["same"], total=pair["compared"])])
    return rows if compared else []
