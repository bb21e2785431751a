"""Startup time of `council --help`, `import council` and `council mcp`, compared with bare Python."""

from __future__ import annotations

import json
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
INITIALIZE, TOOLS, CALL = "council mcp: initialize", "council mcp: list of tools", "council mcp: SDK loaded"
BUDGETS = {"import council": 100.0, "council --help": 150.0, INITIALIZE: 400.0}  # milliseconds over bare Python
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "startup", "version": "1"}}
MESSAGES = {
    INITIALIZE: [{"id": 1, "method": "initialize", "params": HELLO}],
    TOOLS: [{"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}],
    CALL: [{"id": 3, "method": "ping"}],
}


def answer_times(folder: Path, env: dict[str, str]) -> dict[str, float]:
    """Return the milliseconds from the start of `council mcp` to each of its first answers."""
    start, taken = time.perf_counter(), {}
    pipe = subprocess.PIPE
    with subprocess.Popen([COMMAND, "mcp"], env=env, stdin=pipe, stdout=pipe, cwd=folder) as server:
        assert server.stdin and server.stdout
        for name, messages in MESSAGES.items():
            lines = [json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages]
            server.stdin.write("".join(lines).encode())
            server.stdin.flush()
            server.stdout.readline()
            taken[name] = (time.perf_counter() - start) * 1000
        server.stdin.close()
    return taken


def milliseconds(command: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=21)
    times: dict[str, list[float]] = {name: [] for name in (*RUNS, *MESSAGES)}
    with isolated_environment() as (folder, env):
        for n in range(options.runs + 1):
            for name, command in RUNS.items():
                taken = milliseconds(command, env)
                if n:  # the first round warms the caches
                    times[name].append(taken)
            for name, taken in answer_times(folder, env).items():
                if n:
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
        return "", f"{median / bare:.1f}", ""
    budget = BUDGETS[name]
    return f"{over[name]:.0f} ms", f"{median / bare:.1f}", f"{budget:.0f} ms: {check_budget(over[name], budget)}"


if __name__ == "__main__":
    main()
