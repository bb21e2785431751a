"""Run time of the real command compared with its critical path, against an endpoint with 300 ms per call.

The ratio is the time from the first request to the end of the last answer, from the endpoint's log, divided by the
waves of the protocol. The time from command start to the first request includes planning, rehearsal and opening the
store.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from endpoint import Endpoint, endpoint
from measure import Spread, check_budget, isolated_environment, parse_arguments, print_result, write_config

COMMAND = str(Path(sys.executable).parent / "council")
DELAY = 0.3
BUDGET = 1.10
CASES = {  # model, protocol, expected requests and waves
    "collaborative": ("sim-300ms", "collaborative", 7, 3),
    "adversarial": ("sim-300ms", "adversarial", 7, 4),
    "adversarial, consensus": ("sim-300ms-agree", "adversarial", 5, 3),
    "triad": ("sim-300ms", "triad", 4, 2),
}


def run(endpoint: Endpoint, model: str, protocol: str) -> tuple[float, list[dict[str, float]]]:
    """Run one council with the real command; return its start time and the endpoint's log."""
    endpoint.reset()
    with isolated_environment() as (folder, env):
        write_config(folder, endpoint.base_url, model)
        command = [COMMAND, "--protocol", protocol, "--quiet", "Which way should we go?"]
        start = time.monotonic()  # comparable between processes
        subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    return start, sorted(endpoint.log(), key=lambda seen: seen["arrived"])


def waves(log: list[dict[str, float]]) -> int:
    """Count waves: a request that arrives after all earlier ones ended starts a new wave."""
    count, end = 0, -1.0
    for seen in log:
        count += seen["arrived"] > end
        end = max(end, seen["ended"])
    return count


def measure(endpoint: Endpoint, model: str, protocol: str, wanted: tuple[int, int], runs: int) -> tuple[Spread, Spread]:
    """Return the ratio to the critical path and the milliseconds before the first request."""
    ratios, starts = [], []
    for _ in range(runs):
        start, log = run(endpoint, model, protocol)
        if (len(log), waves(log)) != wanted:
            raise SystemExit(
                f"{protocol}: {len(log)} requests in {waves(log)} waves, expected {wanted[0]} in {wanted[1]}"
            )
        starts.append((log[0]["arrived"] - start) * 1000)
        ratios.append((max(seen["ended"] for seen in log) - log[0]["arrived"]) / (wanted[1] * DELAY))
    return Spread.of(ratios), Spread.of(starts)


def main() -> None:
    options = parse_arguments(__doc__ or "", runs=5)
    rows, result = [], {}
    with endpoint() as running:
        for name, (model, protocol, requests, count) in CASES.items():
            ratio, start = measure(running, model, protocol, (requests, count), options.runs)
            path = f"{count * DELAY:.1f} s"
            rows.append(
                (
                    name,
                    str(requests),
                    str(count),
                    path,
                    ratio.show(3),
                    check_budget(ratio.median, BUDGET),
                    start.show(0),
                )
            )
            result[name] = {"requests": requests, "waves": count, "ratio": ratio.as_json(), "first_ms": start.as_json()}
    head = ("protocol", "requests", "waves", "critical path", "ratio to it", "1.10", "first request, ms")
    print_result(options, result, head, rows)


if __name__ == "__main__":
    main()
