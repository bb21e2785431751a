"""Startup time of `council --help` and `import council`, compared with bare Python."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from measure import Spread, check_budget, isolated_environment, parse_arguments, print_result

COMMAND = str(Path(sys.executable).parent / "council")
RUNS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import council": [sys.executable, "-c", "import council"],
    "council --help": [COMMAND, "--help"],
}
BUDGETS = {"import council": 100.0, "council --help": 150.0}  # milliseconds over bare Python


def milliseconds(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=21)
    times: dict[str, list[float]] = {name: [] for name in RUNS}
    with isolated_environment() as (_, env):
        for n in range(options.runs + 1):
            for name, command in RUNS.items():
                taken = milliseconds(command, env)
                if n:  # the first round warms the caches
                    times[name].append(taken)
    spreads = {name: Spread.of(taken) for name, taken in times.items()}
    bare = spreads["python -c pass"].median
    over = {name: spreads[name].median - bare for name in BUDGETS}
    rows = [
        (name, spread.show(0), *_format_budget(name, over, bare, spread.median)) for name, spread in spreads.items()
    ]
    result = {name: {**spread.as_json(), "over": round(over.get(name, 0.0), 1)} for name, spread in spreads.items()}
    print_result(options, result, ("median of " + str(options.runs), "ms", "over bare Python", "ratio", "budget"), rows)


def _format_budget(name: str, over: dict[str, float], bare: float, median: float) -> tuple[str, str, str]:
    if name not in BUDGETS:
        return "", "1.0", ""
    budget = BUDGETS[name]
    return f"{over[name]:.0f} ms", f"{median / bare:.1f}", f"{budget:.0f} ms: {check_budget(over[name], budget)}"


if __name__ == "__main__":
    main()
