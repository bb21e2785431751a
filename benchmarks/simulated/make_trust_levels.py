"""Measure how often the answers of each trust level are right, and write the tables of docs/evidence.md.

    python benchmarks/simulated/make_trust_levels.py                       # simulated members, about three minutes
    python benchmarks/simulated/make_trust_levels.py --replay answers.csv  # recorded answers, a few seconds
    python benchmarks/simulated/make_trust_levels.py --tables              # only the tables, from the record

trust_levels.json is the record: the tables and the clause of a HIGH answer are made from it. The seed is fixed, so the
record changes only with the code. scripts/make_answer_matrix.py writes answers.csv.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TypedDict

from council.engine.trust import LEVELS
from council.evals.matrix import Matrix, read_matrix
from council.evals.statistics import error_correlation
from early_stops import list_best_models, list_options
from make_early_stops import format_range, write_part
from simulation import TRUTH, Members, draw_questions
from trust_levels import MIN_CASES, SIMULATED_PROTOCOLS, VERDICTS, LevelMeter, LevelTable, Share

RECORD = Path(__file__).with_name("trust_levels.json")
QUESTIONS, SEED, CONFORMITY = 4000, 19, 0.3
SEATS = (2, 3, 5)
COMPETENCES = (0.5, 0.6, 0.7, 0.8, 0.9)
UNEQUAL = (0.85, 0.7, 0.55)  # the same mean as the panel of the clause
STRONG_CORRELATION = 0.95
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8, STRONG_CORRELATION)
OPTIONS = (2, 4)
SHOWN_COMPETENCE, SHOWN_SEATS, SHOWN_OPTIONS = 0.7, 3, 4  # of the table by protocol
# The clause of a HIGH answer holds for members of this competence with strongly correlated errors.
CLAUSE_COMPETENCE = 0.7
RECORDED_PROTOCOL = "triad"  # its answer is the plurality of the first answers
RECORDED_OPTIONS = 10  # of a question of MMLU-Pro
MIN_ACCURACY = 0.5  # of a recorded model
MATCHING_STEPS = 12  # halvings of the range of the correlation


class Panel(TypedDict):
    """The simulated members of one protocol, and its levels: right answers and answers, by correlation."""

    protocol: str
    competence: list[float]
    options: int
    levels: dict[str, list[Share]]


class RecordedCouncil(TypedDict):
    """Recorded answers of a council, and the simulated one with the same competence and correlation of errors."""

    models: list[str]
    competence: list[float]
    error_correlation: float
    correlation: float  # of the simulated errors
    levels: dict[str, Share]
    simulated: dict[str, Share]


class TrustRecord(TypedDict):
    """What was measured."""

    command: str
    questions: int
    seed: int
    conformity: float
    correlations: list[float]
    error_correlations: list[float]  # of three members with the competence of the clause, for each correlation
    panels: list[Panel]
    recorded_questions: int
    recorded: list[RecordedCouncil]


# Measurement


async def measure_panels() -> list[Panel]:
    return [
        await measure_panel(protocol, *panel) for protocol in SIMULATED_PROTOCOLS for panel in list_panels(protocol)
    ]


def list_panels(protocol: str) -> Iterator[tuple[tuple[float, ...], int]]:
    """Yield the competences and the number of options of each panel of a protocol."""
    for options in (len(VERDICTS),) if protocol == "judges" else OPTIONS:
        for seats in SEATS:
            yield from (((competence,) * seats, options) for competence in COMPETENCES)
        yield UNEQUAL, options


async def measure_panel(protocol: str, competence: Sequence[float], options: int) -> Panel:
    meter = METERS.setdefault(protocol, LevelMeter())
    levels: dict[str, list[Share]] = {}
    for correlation in CORRELATIONS:
        members = Members(tuple(competence), correlation, options=options, conformity=CONFORMITY)
        table = await meter.measure(protocol, members, QUESTIONS, SEED)
        for level in LEVELS:
            levels.setdefault(level, []).append(table.levels.get(level, Share(0, 0)))
    found = {level: shares for level, shares in levels.items() if any(share.total for share in shares)}
    return {"protocol": protocol, "competence": list(competence), "options": options, "levels": found}


METERS: dict[str, LevelMeter] = {}  # by protocol


def correlate_errors(members: Members, questions: int = QUESTIONS) -> float:
    """Return the correlation of right and wrong first answers of simulated members, as an evaluation measures it."""
    draws = list(draw_questions(members, questions, SEED))
    seats = range(len(members.competence))
    return error_correlation({str(n): [draw.answers[n] != TRUTH for draw in draws] for n in seats}) or 0.0


async def replay(matrix: Matrix, questions: int = QUESTIONS) -> list[RecordedCouncil]:
    """Return the recorded councils of two and more of the best models, each of another vendor."""
    models = list_best_models(matrix, MIN_ACCURACY)
    meter = LevelMeter()
    return [
        await replay_council(matrix, council, meter, questions)
        for seats in range(2, len(models) + 1)
        for council in combinations(models, seats)
    ]


async def replay_council(matrix: Matrix, models: Sequence[str], meter: LevelMeter, questions: int) -> RecordedCouncil:
    competence = tuple(matrix.totals[model] / len(matrix.questions) for model in models)
    measured = error_correlation({model: [not one for one in matrix.right(model)] for model in models}) or 0.0
    members = match_members(Members(competence, options=RECORDED_OPTIONS), measured, questions)
    simulated = await meter.measure(RECORDED_PROTOCOL, members, questions, SEED)
    return {
        "models": list(models),
        "competence": [round(share, 4) for share in competence],
        "error_correlation": round(measured, 4),
        "correlation": round(members.correlation, 4),
        "levels": dict(await meter.measure_recorded(RECORDED_PROTOCOL, list_options(matrix, models))),
        "simulated": dict(simulated.levels),
    }


def match_members(members: Members, wanted: float, questions: int = QUESTIONS) -> Members:
    """Return the members with the correlation that gives this correlation of right and wrong answers."""
    low, high = 0.0, 1.0
    for _ in range(MATCHING_STEPS):
        members = replace(members, correlation=(low + high) / 2)
        low, high = (
            (members.correlation, high) if correlate_errors(members, questions) < wanted else (low, members.correlation)
        )  # fmt: skip
    return members


# Record


def read_record(path: Path = RECORD) -> TrustRecord:
    record: TrustRecord = json.loads(path.read_text(encoding="utf-8"))
    for panel in record["panels"]:
        panel["levels"] = {level: [Share(*share) for share in shares] for level, shares in panel["levels"].items()}
    for council in record["recorded"]:
        council["levels"] = {level: Share(*share) for level, share in council["levels"].items()}
        council["simulated"] = {level: Share(*share) for level, share in council["simulated"].items()}
    return record


def write_record(record: TrustRecord, path: Path = RECORD) -> None:
    """Write a record with one line for each panel and each council."""
    lists: dict[str, Sequence[object]] = {"panels": record["panels"], "recorded": record["recorded"]}
    texts = [f' "{key}": {json.dumps(value)}' for key, value in record.items() if key not in lists]
    for key, rows in lists.items():
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        texts.append(f' "{key}": [\n{lines}\n ]')
    body = ",\n".join(texts)
    path.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")


def list_tables(record: TrustRecord) -> Iterator[LevelTable]:
    """Yield the table of each panel at each correlation."""
    for panel in record["panels"]:
        for n, correlation in enumerate(record["correlations"]):
            members = Members(tuple(panel["competence"]), correlation, panel["options"], record["conformity"])
            yield LevelTable(panel["protocol"], members, {level: found[n] for level, found in panel["levels"].items()})


def find_lowest_high(record: TrustRecord, competence: float, correlation: float, seats: int = 0) -> LevelTable:
    """Return the table with the lowest share of right HIGH answers, among all protocols and numbers of options.

    `seats`: only panels of this size. Tables with few HIGH answers are left out.
    """
    tables = [
        table
        for table in list_tables(record)
        if table.members.correlation == correlation
        and set(table.members.competence) == {competence}
        and seats in (0, len(table.members.competence))
        and table.levels.get("HIGH", Share(0, 0)).total >= MIN_CASES
    ]
    return min(tables, key=lambda table: table.levels["HIGH"].mean)


def find_clause_percent(record: TrustRecord) -> int:
    """Return the percentage that a HIGH answer states: the lowest of all tables of the clause, rounded down."""
    share = find_lowest_high(record, CLAUSE_COMPETENCE, STRONG_CORRELATION).levels["HIGH"]
    return 100 * share.right // share.total


# Tables


def format_protocols(record: TrustRecord) -> list[str]:
    """Return the table of all levels by protocol, with equal protocols in one row."""
    names: dict[tuple[tuple[str, tuple[Share, ...]], ...], list[str]] = {}
    for panel in record["panels"]:
        is_shown = panel["options"] == SHOWN_OPTIONS or panel["protocol"] == "judges"
        if is_shown and panel["competence"] == [SHOWN_COMPETENCE] * SHOWN_SEATS:
            key = tuple((level, tuple(shares)) for level, shares in panel["levels"].items())
            names.setdefault(key, []).append(panel["protocol"])
    measured = [f"{share:.2f}" for share in record["error_correlations"]]
    rows = [*format_head(record, ["protocol", "level"]), f"| | measured correlation | {' | '.join(measured)} |"]
    for levels, protocols in names.items():
        for n, (level, shares) in enumerate(levels):
            cells = ["" if n else ", ".join(protocols), level, *map(format_share, shares)]
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def format_competences(record: TrustRecord) -> list[str]:
    """Return the table of HIGH by competence and seats, and sentences about its lowest figures and about inversions."""
    rows = format_head(record, ["each member alone"])
    for competence in COMPETENCES:
        cells = [" / ".join(format_lowest(record, competence, one)) for one in record["correlations"]]
        rows.append(f"| {100 * competence:.0f} % | {' | '.join(cells)} |")
    lowest = find_lowest_high(record, CLAUSE_COMPETENCE, STRONG_CORRELATION)
    share = lowest.levels["HIGH"]
    members = lowest.members
    return [
        *rows,
        "",
        f"The figure of the clause is the lowest one of members that are right {100 * CLAUSE_COMPETENCE:.0f} % of the "
        f"time with a correlation of {STRONG_CORRELATION}: {share.right:,} of {share.total:,} HIGH answers were right, "
        f"{100 * share.mean:.1f} % ({format_bounds(share, '.1f')}), with {len(members.competence)} seats and "
        f"{members.options} options. Rounded down, that is {find_clause_percent(record)} %. {format_unequal(record)}",
    ]


def format_lowest(record: TrustRecord, competence: float, correlation: float) -> Iterator[str]:
    for seats in SEATS:
        try:
            table = find_lowest_high(record, competence, correlation, seats)
        except ValueError:  # too few HIGH answers
            yield "–"
        else:
            share = table.levels["HIGH"]
            yield str(100 * share.right // share.total)


def format_unequal(record: TrustRecord) -> str:
    """Return a sentence about members of unequal competence."""
    shares = [
        table.levels["HIGH"]
        for table in list_tables(record)
        if table.members.competence == UNEQUAL
        and table.members.correlation == STRONG_CORRELATION
        and table.levels.get("HIGH", Share(0, 0)).total >= MIN_CASES
    ]
    lowest = min(shares, key=lambda share: share.mean)
    members = ", ".join(f"{100 * one:.0f}" for one in UNEQUAL)
    return f"With three members of unequal competence ({members} %) the lowest figure is {100 * lowest.mean:.1f} %."


def format_inversions(record: TrustRecord) -> list[str]:
    """Return sentences about the tables in which a lower level is right more often than a higher one."""
    tables = [table for table in list_tables(record) if table.is_comparable and not table.is_guess]
    clear: dict[tuple[str, str], list[str]] = {}
    for table in tables:
        for low, high in table.list_inversions():
            clear.setdefault((f"{low} above {high}", format_members(table.members)), []).append(f"`{table.protocol}`")
    slight = [table for table in tables if not table.list_inversions() and table.list_inversions(is_clear=False)]
    return [
        f"Of {len(tables):,} simulated councils with at least {MIN_CASES} answers on two levels and members that do better "
        f"than guessing, HIGH is below another level in {sum(map(has_inverted_high, tables))}, whatever the intervals. A "
        f"lower level is above MEDIUM or LOW beyond both intervals in {sum(map(len, clear.values()))}, and within them in "
        f"{len(slight)} others. Beyond both:",
        "",
        *(f"- {levels}: {members} ({', '.join(names)})" for (levels, members), names in clear.items()),
    ]


def has_inverted_high(table: LevelTable) -> bool:
    return any(high == "HIGH" for _, high in table.list_inversions(is_clear=False))


def format_members(members: Members) -> str:
    shares = ", ".join(f"{100 * share:.0f}" for share in dict.fromkeys(members.competence))
    return (
        f"{len(members.competence)} seats that are right {shares} % of the time, {members.options} options, "
        f"correlation {members.correlation:g}"
    )


def format_recorded(record: TrustRecord) -> list[str]:
    """Return the table of recorded answers beside simulated ones."""
    rows = [
        "| models | each alone | correlation | HIGH: all equal | HIGH in the simulation | MEDIUM | LOW |",
        "|---|---|---|---|---|---|---|",
    ]
    for council in record["recorded"]:
        levels = council["levels"]
        cells = [
            ", ".join(model.partition("/")[2] for model in council["models"]),
            ", ".join(f"{100 * share:.0f}" for share in council["competence"]),
            f"{council['error_correlation']:.2f}",
            format_share(levels["HIGH"]),
            format_share(council["simulated"]["HIGH"]),
            format_share(levels.get("MEDIUM", Share(0, 0))),
            format_share(levels.get("LOW", Share(0, 0))),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return [*rows, "", *format_recorded_ranges(record)]


def format_recorded_ranges(record: TrustRecord) -> Iterator[str]:
    """Yield a row for each number of models: how often HIGH answers were right, and how often in the simulation."""
    for seats in dict.fromkeys(len(council["models"]) for council in record["recorded"]):
        councils = [council for council in record["recorded"] if len(council["models"]) == seats]
        alone = format_range([100 * share for council in councils for share in council["competence"]])
        recorded, simulated = [
            format_range([100 * levels["HIGH"].mean for levels in found])
            for found in ([one["levels"] for one in councils], [one["simulated"] for one in councils])
        ]
        differences = [100 * (one["levels"]["HIGH"].mean - one["simulated"]["HIGH"].mean) for one in councils]
        ends = [f"{end(differences):+.1f}" for end in (min, max)]
        yield (
            f"- {seats} equal answers: right in {recorded} %, in the simulation in {simulated} %, each model alone in {alone} %. "
            f"The recorded share minus the simulated one is {' to '.join(dict.fromkeys(ends))} points."
        )


# Cells


def format_head(record: TrustRecord, columns: Sequence[str]) -> list[str]:
    head = [*columns, *(f"{correlation:g}" for correlation in record["correlations"])]
    return [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]


def format_share(share: Share) -> str:
    if not share.total:
        return "–"
    return f"{100 * share.mean:.0f} ({format_bounds(share)}) of {share.total:,}"


def format_bounds(share: Share, form: str = ".0f") -> str:
    interval = share.interval
    return f"{100 * interval.low:{form}}-{100 * interval.high:{form}}"


# Page


def format_parts(record: TrustRecord) -> dict[str, list[str]]:
    """Return the lines of each part of the page."""
    return {
        "trust levels": format_protocols(record),
        "high by competence": format_competences(record),
        "inverted trust levels": format_inversions(record),
        "recorded trust levels": format_recorded(record),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--replay", type=Path, help="CSV file of recorded answers, instead of simulated members")
    parser.add_argument("--tables", action="store_true", help="write the tables from the record, and measure nothing")
    chosen = parser.parse_args()
    record = read_record() if RECORD.exists() else None
    if chosen.replay:
        if record is None:
            parser.error(f"{RECORD.name} does not exist: run without --replay first")
        matrix = read_matrix([chosen.replay])
        record |= {"recorded_questions": len(matrix.questions), "recorded": asyncio.run(replay(matrix))}
    elif not chosen.tables or record is None:
        shown = [Members((CLAUSE_COMPETENCE,) * 3, correlation) for correlation in CORRELATIONS]
        record = {
            "command": "python benchmarks/simulated/make_trust_levels.py",
            "questions": QUESTIONS,
            "seed": SEED,
            "conformity": CONFORMITY,
            "correlations": list(CORRELATIONS),
            "error_correlations": [round(correlate_errors(members), 4) for members in shown],
            "panels": asyncio.run(measure_panels()),
            "recorded_questions": record["recorded_questions"] if record else 0,
            "recorded": record["recorded"] if record else [],
        }
    write_record(record)
    for name, lines in format_parts(record).items():
        write_part(name, lines)


if __name__ == "__main__":
    main()
