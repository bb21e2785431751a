"""One table: what a council costs, compared with other libraries, the floors and the limits of the project.

    benchmarks/run                                # everything, about 35 minutes; installs the other libraries once
    benchmarks/run --quick --no-peers             # once, and only the floors and Council
    benchmarks/run --rows cpu,calls               # some rows
    benchmarks/run --record                       # also writes results.json, the source of docs/performance.md

Repeats are outermost and the contestants have a new random order in each, so that a slow minute affects all of them.
Figures are medians. Where there are two cores, the endpoint runs on one and the contestant on the other. Other
libraries store nothing; Council stores every run and event on disk with `synchronous = FULL` and writes its report
files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from endpoint import Endpoint, endpoint
from measure import Spread, print_table
from peers.catalogue import (
    CONTESTANTS,
    VENVS,
    Contestant,
    MeasurementFailed,
    NotInstalled,
    find_python,
    find_version,
    run_worker,
)
from peers.workload import CALLS, WAVES

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
WORDS = 300
EVENTS = CALLS * (WORDS + 3)  # with the finish, the usage and the end mark of each answer
ALONE_MODEL, TOGETHER_MODEL, COUNT_MODEL = (f"sim-{delay}ms-{WORDS}w-varied" for delay in (200, 50, 0))
CRITICAL_PATH_S = WAVES * 0.2
MAX_SECONDS = 120.0  # of councils that start together
HISTORY, QUICK_HISTORY = 100_000, 2_000  # stored runs
BIG_RUNS = (10, 100)  # MB
BIG_RUN_COMMANDS = {"run": "run", "show": "runs show", "resume": "resume", "html": "report, HTML"}
Json = dict[str, Any]
Figures = dict[tuple[str, str], list[float]]  # the row and the column → repeated measurements


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. `must` and `goal` are limits: upper ones, or lower ones with `at_least`."""

    name: str
    title: str
    group: str  # rows of one group are measured together
    digits: int = 0
    must: float | None = None
    goal: float | None = None
    at_least: bool = False

    def holds(self, value: float, limit: float) -> bool:
        shown = round(value, self.digits)
        return shown >= limit if self.at_least else shown <= limit


ROWS = (
    Row("wall", "wall ÷ critical path, 200 ms model", "alone", 3, 1.03, 1.015),
    Row("cpu", "CPU ms per council", "alone", 1, 11, 6),
    Row("calls", "Python calls per council", "calls", 0, 15_000, 10_000),
    Row("events", "Python calls per streamed event, one per packet", "calls", 1, 83, 6),
    Row("events8", "Python calls per streamed event, eight per packet", "calls", 1),
    Row("throughput", "councils/s, 200 at once, one core, 50 ms model", "together", 1, 80, 120, at_least=True),
    Row("memory", "KB of memory per council, 200 at once", "together", 0, 150, 120),
    Row("stored", "KB stored per council", "together", 0, 110, 70),
    Row("many", "2,000 at once: seconds", "many", 1, 35, 20),
    Row("many-memory", "2,000 at once: peak MB", "many", 0, 400, 400),
    Row("list", f"CPU of runs list at {HISTORY:,} runs ÷ at 1 run", "history", 2, 1.5, 1.2),
    Row("show", f"CPU of runs show at {HISTORY:,} runs ÷ at 1 run", "history", 2, 1.5, 1.2),
    Row("resume", f"CPU of resume at {HISTORY:,} runs ÷ at 1 run", "history", 2, 1.5, 1.2),
    Row("search", f"runs search at {HISTORY:,} runs: seconds", "history", 2, 1.0, 0.3),
    Row("embedded", "council on the embedded model ÷ raw llama.cpp", "embedded", 2, 1.15, 0.8),
    Row("packet", "packet of a folder with 10,000 files ÷ os.walk and read", "packets", 1),
    Row("packet-memory", "packet of a folder with 10,000 files: MB", "packets", 1),
    Row("processes", "councils/s, 50 processes × 4 councils, one store", "processes", 1),
    *(
        Row(f"{size}mb-{name}", f"run with {size} MB of answers, {command}: CPU s", "big", 1)
        for size in BIG_RUNS
        for name, command in BIG_RUN_COMMANDS.items()
    ),
    *(Row(f"{size}mb-memory", f"run with {size} MB of answers: highest peak MB", "big") for size in BIG_RUNS),
)
GROUPS = tuple(dict.fromkeys(row.group for row in ROWS))
PEER_GROUPS = ("alone", "calls", "together", "many")  # with figures of the other libraries
PLAIN_COLUMN = "convene"  # of rows in which both ways to use Council are the same


@dataclass(slots=True)
class Session:
    """The options of a run of this table, its figures, and the reasons for missing ones."""

    repeats: int
    quick: bool
    pythons: dict[str, Path] = field(default_factory=dict)
    figures: Figures = field(default_factory=dict)
    notes: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def contestants(self) -> list[Contestant]:
        return [contestant for contestant in CONTESTANTS if contestant.name in self.pythons]

    def add(self, row: str, column: str, value: float) -> None:
        self.figures.setdefault((row, column), []).append(value)

    def add_spread(self, row: str, column: str, spread: dict[str, float]) -> None:
        """Add the median and the range that another benchmark measured."""
        self.figures[row, column] = [spread["low"], spread["median"], spread["high"]]

    def note(self, group: str, column: str, reason: str) -> None:
        """Keep the reason why the rows of a group have no figure in this column."""
        for row in ROWS:
            if row.group == group:
                self.notes[row.name, column] = reason

    def work(self, running: Endpoint, core: int | None, contestant: Contestant, measure: str, **options: Any) -> Json:
        """Measure a contestant, and check that it sent the requests of its councils."""
        result = run_worker(contestant, self.pythons[contestant.name], measure, running.base_url, core=core, **options)
        wanted = CALLS * result.get("completed", options["councils"])
        sent = sum(result["start"] <= seen["arrived"] <= result["end"] for seen in running.log())
        running.reset()
        if sent < wanted:
            raise MeasurementFailed(f"it sent {sent} requests instead of {wanted}")
        return result


def split_cores() -> tuple[int | None, int | None]:
    """Return the core of the contestant and that of the endpoint, or nothing where a process cannot be bound to a
    core.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (cores[0], cores[-1]) if len(cores) > 1 else (None, None)


def repeat(
    session: Session, repeats: int, group: str, contestants: Sequence[Contestant], work: Callable[..., None]
) -> None:
    """Do the work for each contestant, in a new random order in each repeat. One that fails is not measured again."""
    contestant_core, endpoint_core = split_cores()
    order = random.Random(1)
    failed: set[str] = set()
    with endpoint(endpoint_core) as running:
        for number in range(repeats):
            for contestant in order.sample(contestants, len(contestants)):
                if contestant.name in failed:
                    continue
                tell(f"{group} {number + 1}/{repeats}: {contestant.title}")
                try:
                    work(session, running, contestant_core, contestant)
                except MeasurementFailed as error:
                    failed.add(contestant.name)
                    session.note(group, contestant.name, f"failed: {error}")


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# Councils


def measure_alone(session: Session) -> None:
    councils = 5 if session.quick else 20

    def work(session: Session, running: Endpoint, core: int | None, contestant: Contestant) -> None:
        waiting = session.work(running, core, contestant, "alone", model=ALONE_MODEL, councils=2)
        session.add("wall", contestant.name, waiting["seconds"] / CRITICAL_PATH_S)
        busy = session.work(running, core, contestant, "alone", model=COUNT_MODEL, councils=councils, warm_up=3)
        session.add("cpu", contestant.name, busy["cpu_seconds"] * 1000)

    repeat(session, session.repeats, "alone", session.contestants, work)


def measure_calls(session: Session) -> None:
    """Count once: counts do not change from run to run.

    Those of Council are from calls.py, those of others from the worker.
    """

    def work(session: Session, running: Endpoint, core: int | None, contestant: Contestant) -> None:
        whole = session.work(running, core, contestant, "calls", model=COUNT_MODEL, councils=2, warm_up=3)["calls"]
        session.add("calls", contestant.name, whole)
        if not contestant.streams:
            return
        for row, model in (("events", f"{COUNT_MODEL}-1pp"), ("events8", COUNT_MODEL)):
            streamed = session.work(running, core, contestant, "calls", model=model, councils=1, stream=True)["calls"]
            session.add(row, contestant.name, (streamed - whole) / EVENTS)

    repeat(session, 1, "calls", [one for one in session.contestants if not one.ours], work)
    tell("calls: Council")
    counted = run_benchmark("calls.py", "--runs", "2")
    session.add("calls", "shared", counted["council"])
    session.add("calls", "convene", counted["convene"])
    session.add("events", "shared", counted["event"])
    session.add("events8", "shared", counted["event_of_eight"])


def measure_together(session: Session) -> None:
    def work(session: Session, running: Endpoint, core: int | None, contestant: Contestant) -> None:
        result = run_together(session, running, core, contestant, 200)
        session.add("throughput", contestant.name, result["completed"] / result["seconds"])
        session.add("memory", contestant.name, result["kb_per_council"])
        if "stored_bytes" in result:
            session.add("stored", contestant.name, result["stored_bytes"] / 1000)

    repeat(session, session.repeats, "together", session.contestants, work)


def measure_many(session: Session) -> None:
    """Repeat only the floors and Council: the others take minutes."""

    def work(session: Session, running: Endpoint, core: int | None, contestant: Contestant) -> None:
        result = run_together(session, running, core, contestant, 2000)
        session.add("many", contestant.name, result["seconds"])
        session.add("many-memory", contestant.name, result["peak_mb"])

    fast = [contestant for contestant in session.contestants if not contestant.packages]
    repeat(session, session.repeats, "many", fast, work)
    slow = [contestant for contestant in session.contestants if contestant.packages]
    if session.quick:
        for contestant in slow:
            session.note("many", contestant.name, "not measured with --quick")
    else:
        repeat(session, 1, "many", slow, work)


def run_together(session: Session, running: Endpoint, core: int | None, contestant: Contestant, councils: int) -> Json:
    result = session.work(
        running, core, contestant, "together", model=TOGETHER_MODEL, councils=councils, limit=MAX_SECONDS
    )
    if result["unfinished"]:
        raise MeasurementFailed(f"{result['completed']:,} of {councils:,} in {MAX_SECONDS:.0f} s")
    if result["errors"]:
        raise MeasurementFailed(
            f"{councils - result['completed']:,} of {councils:,} ended with an error: {next(iter(result['errors']))}"
        )
    return result


# Rows that other benchmarks measure


def run_benchmark(script: str, *arguments: str) -> Json:
    """Run another benchmark of this folder with `--json` and return its result."""
    if not (HERE / script).exists():
        raise MeasurementFailed(f"there is no benchmarks/{script}")
    done = subprocess.run([sys.executable, str(HERE / script), "--json", *arguments], stdout=subprocess.PIPE, text=True, check=False)  # fmt: skip
    if done.returncode:
        raise MeasurementFailed(f"{script} ended with exit code {done.returncode}")
    result: Json = json.loads(done.stdout.splitlines()[-1])
    return result


def measure_history(session: Session) -> None:
    """Take the slowest search: a rare word, a frequent one, a part of a word, or two words."""
    tell("history")
    runs = QUICK_HISTORY if session.quick else HISTORY
    result = run_benchmark("history.py", "--runs", str(runs), "--repeats", str(session.repeats))
    for row, command in (
        ("list", "runs list"),
        ("show", "runs show RUN"),
        ("resume", "resume, without an unfinished run"),
    ):
        session.add(row, "floor", 1.0)
        session.add(row, PLAIN_COLUMN, result[command]["ratio"])
    searches = [value for command, value in result.items() if command.startswith("runs search")]
    slowest = max(searches, key=lambda found: found["many"]["seconds"]["median"])
    session.add_spread("search", PLAIN_COLUMN, slowest["many"]["seconds"])


def measure_embedded(session: Session) -> None:
    tell("embedded model")
    result = run_benchmark("embedded.py", "--runs", "1" if session.quick else "3")
    session.add("embedded", "floor", 1.0)
    session.add_spread("embedded", PLAIN_COLUMN, result["ratio"])


def measure_packets(session: Session) -> None:
    tell("packets")
    result = run_benchmark("packets.py", "--runs", str(session.repeats))
    session.add("packet", "floor", 1.0)
    session.add_spread("packet", PLAIN_COLUMN, result["ratio"])
    session.add_spread("packet-memory", "floor", result["plain"]["megabytes"])
    session.add_spread("packet-memory", PLAIN_COLUMN, result["council"]["megabytes"])


def measure_big_runs(session: Session) -> None:
    """Measure once, and only the smaller run with --quick."""
    tell("big runs")
    small, large = BIG_RUNS
    result = run_benchmark("big_runs.py", "--small", str(small), "--large", "0" if session.quick else str(large))
    for size, sides in result.items():
        for name, command in BIG_RUN_COMMANDS.items():
            session.add(f"{size}mb-{name}", PLAIN_COLUMN, sides[command]["cpu_s"])
        session.add(f"{size}mb-memory", PLAIN_COLUMN, max(side["peak_mb"] for side in sides.values()))


def measure_processes(session: Session) -> None:
    tell("processes")
    result = run_benchmark("processes.py", "--runs", "1" if session.quick else "3")
    session.add_spread("processes", PLAIN_COLUMN, result["per_second"])


MEASURES: dict[str, Callable[[Session], None]] = {
    "alone": measure_alone,
    "calls": measure_calls,
    "together": measure_together,
    "many": measure_many,
    "history": measure_history,
    "embedded": measure_embedded,
    "packets": measure_packets,
    "big": measure_big_runs,
    "processes": measure_processes,
}


# The table


def find_contestants(session: Session, options: argparse.Namespace) -> Json:
    """Find the interpreters of the contestants, and return their versions or the reason why one is missing."""
    versions: Json = {}
    for contestant in CONTESTANTS:
        if contestant.packages and not options.peers:
            continue
        try:
            python = find_python(contestant, options.venvs)
        except NotInstalled as error:
            versions[contestant.name] = f"not installed: {error}"
            for group in PEER_GROUPS:
                session.note(group, contestant.name, versions[contestant.name])
            continue
        session.pythons[contestant.name] = python
        versions[contestant.name] = find_version(contestant, python)
    return versions


def build_result(session: Session, rows: Sequence[Row], versions: Json) -> Json:
    when = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    columns = [{"name": one.name, "title": one.title, "version": versions.get(one.name, "")} for one in CONTESTANTS]
    table = []
    for row in rows:
        spreads = {
            column: Spread.of(values).as_json()
            for (name, column), values in session.figures.items()
            if name == row.name
        }
        notes = {column: reason for (name, column), reason in session.notes.items() if name == row.name}
        how = {"date": when, "machine": machine, "repeats": session.repeats}
        title = row.title.replace(f"{HISTORY:,}", f"{QUICK_HISTORY:,}") if session.quick else row.title
        table.append(
            {
                **asdict(row),
                **how,
                "title": title,
                "figures": spreads,
                "notes": notes,
                "holds": judge(row, spreads, notes),
            }
        )
    return {"columns": columns, "rows": table}


def judge(row: Row, spreads: dict[str, dict[str, float]], notes: dict[str, str]) -> str:
    """Say whether the row holds for each way to use Council: the goal, the limit, or neither."""
    if row.must is None or row.goal is None:
        return ""
    said: dict[str, str] = {}
    for contestant in CONTESTANTS:
        if contestant.ours and contestant.name in notes:
            said[contestant.title] = "no figure"
        elif contestant.ours and contestant.name in spreads:
            value = spreads[contestant.name]["median"]
            said[contestant.title] = (
                "goal" if row.holds(value, row.goal) else "yes" if row.holds(value, row.must) else "no"
            )
    if len(set(said.values())) > 1:
        return "; ".join(f"{title.removeprefix('ours, ')}: {word}" for title, word in said.items())
    return next(iter(said.values()), "no figure")


def show_figure(row: Json, column: str) -> str:
    if column in row["notes"]:
        return str(row["notes"][column])
    figure = row["figures"].get(column)
    return f"{figure['median']:,.{row['digits']}f}" if figure else ""


def show_limit(row: Json, name: str) -> str:
    sign = "≥" if row["at_least"] else "≤"
    return "" if row[name] is None else f"{sign} {row[name]:,}"


def show_rows(result: Json) -> tuple[list[str], list[list[str]]]:
    """Return the head and the cells of the table. A note is a number in its cell and a line below."""
    columns = result["columns"]
    head = ["", *(column["title"] for column in columns), "must", "goal", "holds"]
    cells = [
        [
            row["title"],
            *(show_figure(row, column["name"]) for column in columns),
            show_limit(row, "must"),
            show_limit(row, "goal"),
            row["holds"],
        ]
        for row in result["rows"]
    ]
    return head, cells


def print_result(result: Json) -> None:
    """Print the table, with long cells as numbers that refer to lines below it."""
    head, cells = show_rows(result)
    remarks: list[str] = []
    for cell_row in cells:
        for number, cell in enumerate(cell_row[1:-1], 1):
            if len(cell) > 12:
                if cell not in remarks:
                    remarks.append(cell)
                cell_row[number] = f"[{remarks.index(cell) + 1}]"
    print_table(head, cells)
    for number, remark in enumerate(remarks, 1):
        print(f"[{number}] {remark}")
    for column in result["columns"]:
        if column["version"]:
            print(f"{column['title']}: {column['version']}")


def record(result: Json) -> None:
    """Merge the rows into results.json, so that some rows can be measured again."""
    old: Json = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {"rows": [], "columns": []}
    rows = {row["name"]: row for row in (*old["rows"], *result["rows"])}
    versions = {
        column["name"]: column["version"] for column in (*old["columns"], *result["columns"]) if column["version"]
    }
    columns = [{**column, "version": versions.get(column["name"], "")} for column in result["columns"]]
    ordered = [rows[row.name] for row in ROWS if row.name in rows]
    missing = [row.title for row in ROWS if row.name not in rows]
    RESULTS.write_text(
        json.dumps({"columns": columns, "rows": ordered, "missing": missing}, indent=2, ensure_ascii=False) + "\n",
        encoding="utf-8",
    )


def parse_options() -> argparse.Namespace:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="run", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--rows",
        default="",
        metavar="NAME,…",
        help=f"only these rows or groups of rows: {', '.join(dict.fromkeys((*names, *GROUPS)))}",
    )
    parser.add_argument("--repeats", type=int, default=5, help="(default: 5)")
    parser.add_argument("--quick", action="store_true", help="one repeat, fewer councils")
    parser.add_argument(
        "--no-peers", dest="peers", action="store_false", help="only the floors and Council; installs nothing"
    )
    parser.add_argument(
        "--venvs",
        type=Path,
        default=VENVS,
        metavar="FOLDER",
        help=f"virtual environments of the other libraries (default: {VENVS})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--record", action="store_true", help="write the rows to results.json")
    options = parser.parse_args()
    wanted = [name for name in options.rows.split(",") if name]
    if unknown := [name for name in wanted if name not in (*names, *GROUPS)]:
        parser.error(f'unknown row "{unknown[0]}": use one of {", ".join(names)}')
    options.chosen = [row for row in ROWS if not wanted or row.name in wanted or row.group in wanted]
    return options


def main() -> int:
    options = parse_options()
    session = Session(1 if options.quick else options.repeats, options.quick)
    versions = find_contestants(session, options)
    for group in dict.fromkeys(row.group for row in options.chosen):
        try:
            MEASURES[group](session)
        except MeasurementFailed as error:
            for contestant in CONTESTANTS:
                if contestant.ours:
                    session.note(group, contestant.name, str(error))
    result = build_result(session, options.chosen, versions)
    if options.record:
        record(result)
    if options.json:
        print(json.dumps(result))
    else:
        print_result(result)
    return 0
