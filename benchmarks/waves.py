"""Whether a council costs more time than its critical path: the real command against an endpoint with 300 ms a call.

From the first request's arrival to the last answer's end, both in the endpoint's log, over the waves the protocol needs.
And how long after the command's start the first request came in: planning, rehearsing and opening the store are in that.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from endpoint import Endpoint, endpoint
from measure import Spread, arguments, provider, put, room, verdict

COMMAND = str(Path(sys.executable).parent / "council")
DELAY = 0.3
BUDGET = 1.10
CASES = {  # what is run: the model that answers, the flags, requests and waves that the protocol needs
    "collaborative": ("sim-300ms", "collaborative", 7, 3),
    "adversarial": ("sim-300ms", "adversarial", 7, 4),
    "adversarial, consensus": ("sim-300ms-agree", "adversarial", 5, 3),
    "triad": ("sim-300ms", "triad", 4, 2),
}


def run(endpoint: Endpoint, model: str, protocol: str) -> tuple[float, list[dict[str, float]]]:
    """One council by the real command; when it was started, and what the endpoint saw of it."""
    endpoint.reset()
    with room() as (folder, env):
        provider(folder, endpoint.base_url, model)
        command = [COMMAND, "--protocol", protocol, "--quiet", "Which way should we go?"]
        start = time.monotonic()  # one clock for all processes
        subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    return start, sorted(endpoint.log(), key=lambda seen: seen["arrived"])


def waves(log: list[dict[str, float]]) -> int:
    """A request that arrives after the end of all earlier ones begins a new wave."""
    count, end = 0, -1.0
    for seen in log:
        count += seen["arrived"] > end
        end = max(end, seen["ended"])
    return count


def measure(endpoint: Endpoint, model: str, protocol: str, wanted: tuple[int, int], runs: int) -> tuple[Spread, Spread]:
    """The time over the critical path, and the milliseconds before the first request."""
    ratios, starts = [], []
    for _ in range(runs):
        start, log = run(endpoint, model, protocol)
        if (len(log), waves(log)) != wanted:
            raise SystemExit(f"{protocol}: {len(log)} requests in {waves(log)} waves, not {wanted[0]} in {wanted[1]}")
        starts.append((log[0]["arrived"] - start) * 1000)
        ratios.append((max(seen["ended"] for seen in log) - log[0]["arrived"]) / (wanted[1] * DELAY))
    return Spread.of(ratios), Spread.of(starts)


def main() -> None:
    given = arguments(__doc__ or "", runs=5)
    rows, result = [], {}
    with endpoint() as running:
        for name, (model, protocol, requests, count) in CASES.items():
            ratio, start = measure(running, model, protocol, (requests, count), given.runs)
            path = f"{count * DELAY:.1f} s"
            rows.append(
                (name, str(requests), str(count), path, ratio.show(3), verdict(ratio.median, BUDGET), start.show(0))
            )
            result[name] = {"requests": requests, "waves": count, "ratio": ratio.as_json(), "first_ms": start.as_json()}
    head = ("protocol", "requests", "waves", "critical path", "time over it", "1.10", "first request, ms")
    put(given, result, head, rows)


if __name__ == "__main__":
    main()
