"""Run the full reliability suites and record their figures.

    python benchmarks/reliability.py              # all suites, about an hour on two cores
    python benchmarks/reliability.py crash disk   # some of them

Each suite of reliability.toml is a command. Its lines `sweep NAME: key=value …` are recorded in reliability.json with
the date, the duration and the exit code, and `scripts/make_docs.py` writes them into docs/reliability.md. A short part
of every suite is in the default set of tests.
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
Json = dict[str, Any]


def main() -> int:
    suites: list[Json] = tomllib.loads((HERE / "reliability.toml").read_text(encoding="utf-8"))["suite"]
    names = [suite["name"] for suite in suites]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"one of {', '.join(names)} (default: all)")
    chosen: list[str] = parser.parse_args().suites or names
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f'unknown suite "{unknown[0]}": use one of {", ".join(names)}')
    failed = [suite["name"] for suite in suites if suite["name"] in chosen and not _run(suite)]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(suite: Json) -> bool:
    """Run one suite, record its figures and return whether it passed."""
    start = time.monotonic()
    command = [sys.executable if word == "python" else word for word in shlex.split(suite["command"])]
    done = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="", flush=True)
    figures = {name: dict(one.split("=", 1) for one in pairs.split()) for name, pairs in FIGURES.findall(done.stdout)}
    _record(suite["name"], {
        "passed": done.returncode == 0,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "seconds": round(time.monotonic() - start),
        "figures": figures,
    })  # fmt: skip
    return done.returncode == 0


def _record(name: str, result: Json) -> None:
    results: Json = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    results[name] = result
    RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
