"""Run the full reliability suites and record their figures.

    python benchmarks/reliability.py                  # all suites, about an hour on two cores
    python benchmarks/reliability.py crash disk       # some of them
    python benchmarks/reliability.py --missing crash  # what the recorded run did not cover, added to it

Each suite of reliability.toml is a command. Its lines `sweep NAME: key=value …` are recorded in reliability.json with
the date, the duration and the exit code, and `scripts/make_docs.py` writes them into docs/reliability.md. The line
`covered: NAME …` says what of the code the tests have tried; it is recorded with the date. A note in reliability.json
is written by hand. The default set of tests has a short part of every suite, except `mutants` and the earlier revisions
of `versions`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "reliability.json"
FIGURES = re.compile(r"^sweep ([a-z -]+): (.+)$", re.MULTILINE)
COVERED = re.compile(r"^covered: (.+)$", re.MULTILINE)
Json = dict[str, Any]


def main() -> int:
    suites: list[Json] = tomllib.loads((HERE / "reliability.toml").read_text(encoding="utf-8"))["suite"]
    names = [suite["name"] for suite in suites]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(names)} (default: all)")
    parser.add_argument("--missing", action="store_true", help="run what the recorded run did not cover, and add it")
    arguments = parser.parse_args()
    chosen: list[str] = arguments.suites or names
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f'unknown suite "{unknown[0]}": use one of {", ".join(names)}')
    failed = []
    for suite in (suite for suite in suites if suite["name"] in chosen):
        earlier = _read_results().get(suite["name"]) if arguments.missing else None
        if arguments.missing and not (suite.get("in_parts") and earlier):
            parser.error(f'"{suite["name"]}" cannot be run in parts: run it without --missing')
        missing = [name for name in suite["covers"] if name not in earlier["covered"]] if earlier else []
        if earlier and not missing:
            print(f"{suite['name']}: nothing is missing")
        elif not _run(suite, earlier, missing):
            failed.append(suite["name"])
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(suite: Json, earlier: Json | None, missing: list[str]) -> bool:
    """Run one suite, or what is missing of it, record its figures and return whether it passed."""
    start, date = time.monotonic(), datetime.datetime.now(datetime.UTC).date().isoformat()
    command = [sys.executable if word == "python" else word for word in shlex.split(suite["command"])]
    env = {**os.environ, "SWEEP_ONLY": " ".join(missing)}
    done = subprocess.run(command, cwd=HERE.parent, env=env, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    covered = dict.fromkeys((name for names in COVERED.findall(done.stdout) for name in names.split()), date)
    result = {
        "passed": done.returncode == 0,
        "date": date,
        "machine": f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seconds": round(time.monotonic() - start),
        "figures": parse_figures(done.stdout, covered),
        **({"covered": covered} if covered else {}),
    }
    if earlier is None:
        _record(suite["name"], result)
    elif result["passed"]:
        _record(suite["name"], merge_results(earlier, result))
    else:
        print(f"{suite['name']}: the missing part has failed, so the recorded run stays as it is", file=sys.stderr)
    return done.returncode == 0


def parse_figures(text: str, covered: Json) -> Json:
    """Return the figures of each sweep, without those of single shapes, which `covered` lists."""
    figures = {name: dict(one.split("=", 1) for one in pairs.split()) for name, pairs in FIGURES.findall(text)}
    return {name: {key: one for key, one in of.items() if key not in covered} for name, of in figures.items()}


def merge_results(earlier: Json, later: Json) -> Json:
    """Return a recorded run with a part that was run later: sums, and the maximum of figures that start with `worst_`.

    The note is left out, because it describes the earlier run. So is the duration, if that of a part is not known, and
    figures that the earlier run did not have.
    """
    figures = {name: dict(values) for name, values in earlier["figures"].items()}
    for name, values in later["figures"].items():
        into = figures.setdefault(name, dict.fromkeys(values, "0"))
        for key in into.keys() & values.keys():
            numbers = float(into[key]), float(values[key])
            into[key] = f"{max(numbers) if key.startswith('worst_') else sum(numbers):g}"
    merged = {
        "passed": earlier["passed"] and later["passed"],
        "date": later["date"],
        "machine": later["machine"],
        "figures": figures,
        "covered": {**earlier["covered"], **later["covered"]},
    }
    return merged | ({"seconds": earlier["seconds"] + later["seconds"]} if "seconds" in earlier else {})


def _read_results() -> Json:
    results: Json = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    return results


def _record(name: str, result: Json) -> None:
    results = _read_results()
    results[name] = result
    RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
