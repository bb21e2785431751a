"""Stored runs: what listing, showing, resuming and searching cost with one stored run and with many.

The store of many runs is made from one council of scripted members: its rows are copied with new ids, and with
questions and answers from a list of words. Every command is a separate process, as a user starts it, and the two stores
take turns. CPU is that of the process, memory its peak. The ratio is that of CPU, which depends less than time on what
else the machine does.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Spread, isolated_environment, parse_arguments, print_result

from council.runs.service import Convener
from council.store.sqlite import SqliteStore
from council.store.texts import compress_text

STEPS = [f"{phase}/{seat}" for phase in ("draft", "improve") for seat in ("alpha", "beta", "gamma")] + [
    "synthesise/chair"
]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
RARE = "zanzibar"  # in the answers of every 10,000th run
TEXTS = 500  # different answers
MAX_RATIO, MAX_SEARCH_S = 1.5, 1.0


# Make the stores


async def make_first_run(folder: Path, env: dict[str, str]) -> str:
    """Run a council whose answers are long enough to be separate texts."""
    random_ = random.Random(1)
    answers = {step: " ".join(make_words(random_, 60)) for step in STEPS}
    (folder / "script.toml").write_text("".join(f'["{step}"]\ntext = "{text}"\n' for step, text in answers.items()))
    seats = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:script.toml")
    convener = Convener(folder, env, flags={"seats": seats})
    try:
        question = "Which way should we go? " + " ".join(make_words(random.Random(0), 40))
        plan = await convener.plan([question], protocol="collaborative")
        return (await convener.run(plan, lambda entry: None)).run
    finally:
        await convener.close()


def make_words(random_: random.Random, count: int) -> Iterator[str]:
    """Yield words: some frequent ones, and rare ones."""
    for _ in range(count):
        word = random.Random(int(random_.random() ** 4 * 50_000))
        yield "".join(word.choices(LETTERS, k=word.randint(2, 9)))


def copy_runs(database: Path, run: str, count: int) -> None:
    """Copy a run with new ids, questions and answers."""
    db = sqlite3.connect(database, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    random_ = random.Random(count)
    pool = [compress_text(" ".join(make_words(random_, 120)).encode()) for _ in range(TEXTS)]
    rare = compress_text(f"The answer is {RARE}. ".encode() * 10)
    questions = [" ".join(make_words(random_, 12)) for _ in range(TEXTS)]
    answers = find_answers(db, run)
    db.create_function("pooled", 1, lambda n: rare if n % 10_000 == 1 else pool[n * 7919 % TEXTS])
    db.create_function("asked", 1, lambda n: questions[n * 104_729 % TEXTS])
    db.execute("CREATE TEMP TABLE copies (n INTEGER PRIMARY KEY, id TEXT)")
    db.executemany("INSERT INTO copies VALUES (?, ?)", ((n, f"r{n:08d}") for n in range(1, count)))
    db.execute("BEGIN IMMEDIATE")
    for table in ("events", "steps", "results", "intents", "settled", "phases", "spending", "texts"):
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        values = ["c.id" if name == "run" else f"t.{name}" for name in columns]
        if table == "texts":
            marks = ", ".join(map(str, answers))
            values = [f"iif(t.n IN ({marks}), pooled(c.n), t.body)" if name == "t.body" else name for name in values]
        if table == "events":
            values = ["replace(t.body, ?1, c.id)" if name == "t.body" else name for name in values]
        db.execute(
            f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)} FROM copies c CROSS JOIN {table} t WHERE t.run = ?1",
            (run,),
        )
    names = [row[1] for row in db.execute("PRAGMA table_info(runs)")]
    values = {name: f"t.{name}" for name in names} | {"id": "c.id", "created": "t.created - c.n * 60"}
    values |= {
        "setup": "json_set(t.setup, '$.question.text', asked(c.n))",
        "report": "replace(t.report, ?1, c.id)",
        "folder": "t.folder || iif(c.n % 50, '-' || (c.n % 50), '')",
        "status": "iif(c.n % 1000 = 7, 'incomplete', t.status)",
    }
    db.execute(
        f"INSERT INTO runs ({', '.join(values)}) SELECT {', '.join(values.values())} FROM copies c CROSS JOIN runs t WHERE t.id = ?1",
        (run,),
    )
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


async def index_runs(env: dict[str, str]) -> None:
    store = SqliteStore(Path(env["COUNCIL_DATA"]))
    store._db.execute("PRAGMA synchronous = OFF")
    while await store.index_older_runs(5000):
        pass
    store.close()


def find_answers(db: sqlite3.Connection, run: str) -> list[int]:
    """Return the numbers of the texts that the statements of a run refer to."""
    rows = db.execute("SELECT body FROM events WHERE run = ? AND type = 'statement'", (run,)).fetchall()
    found = [json.loads(body)["said"] for (body,) in rows]
    return sorted({n for said in found if isinstance(said, dict) for n in said["$text"] if isinstance(n, int)})


# Measure


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one command."""

    seconds: float
    cpu: float
    megabytes: float


def run_command(folder: Path, env: dict[str, str], arguments: Sequence[str], expected: int = 0) -> Cost:
    """Run a command in its own process."""
    started = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "council", *arguments],
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != expected:
        raise SystemExit(f"council {' '.join(arguments)} ended with exit code {process.returncode}")
    return Cost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def list_commands(run: str) -> dict[str, tuple[list[str], int]]:
    """Return the commands with their exit codes."""
    return {
        "runs list": (["runs"], 0),
        "runs show RUN": (["runs", "show", run], 0),
        "resume, without an unfinished run": (["resume"], 2),
        "runs search, a rare word": (["runs", "search", RARE], 0),
        "runs search, a frequent word": (["runs", "search", "which"], 0),
        "runs search, a part of two letters": (["runs", "search", "hi"], 0),
        "runs search, two words": (["runs", "search", "which", RARE[2:6]], 0),
    }


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=100_000, repeats=5)
    rows, result = [], {}
    with isolated_environment() as (folder, env), isolated_environment() as (other, other_env):
        few = asyncio.run(make_first_run(folder, env))
        many = asyncio.run(make_first_run(other, other_env))
        started = time.perf_counter()
        database = Path(other_env["COUNCIL_DATA"], "council.db")
        copy_runs(database, many, options.runs)
        places = ((folder, env, few), (other, other_env, many))
        for _, place_env, _ in places:
            asyncio.run(index_runs(place_env))
        made = time.perf_counter() - started
        for name in list_commands(""):
            costs: list[list[Cost]] = [[], []]
            for _ in range(options.repeats):
                for found, (place, place_env, run) in zip(costs, places, strict=True):
                    found.append(run_command(place, place_env, *list_commands(run)[name]))
            one, all_ = (measure_costs(found) for found in costs)
            ratio = all_["cpu"]["median"] / one["cpu"]["median"]
            is_ok = all_["cpu"]["median"] <= MAX_SEARCH_S if "search" in name else ratio <= MAX_RATIO
            rows.append((name, show(one), show(all_), f"{ratio:.2f}", "ok" if is_ok else "over"))
            result[name] = {"one": one, "many": all_, "ratio": round(ratio, 2), "ok": is_ok}
        size = database.stat().st_size
    result |= {"runs": options.runs, "made_s": round(made, 1), "bytes_per_run": size // options.runs}
    print_result(options, result, ("command", "1 run", f"{options.runs:,} runs", "ratio of CPU", "budget"), rows)
    if not options.json:
        print(f"s wall / s CPU / MB; store made in {made:.0f} s, {size / options.runs / 1000:.1f} KB per run")


def measure_costs(costs: Sequence[Cost]) -> dict[str, Any]:
    return {
        name: Spread.of([getattr(cost, name) for cost in costs]).as_json() for name in ("seconds", "cpu", "megabytes")
    }


def show(costs: dict[str, Any]) -> str:
    return f"{costs['seconds']['median']:.2f} / {costs['cpu']['median']:.2f} / {costs['megabytes']['median']:.0f}"


if __name__ == "__main__":
    main()
