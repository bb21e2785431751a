"""Whether a council costs more time than its critical path: the real command against an endpoint with 300 ms a call.

From the first request's arrival to the last answer's end, both in the endpoint's log, over the waves the protocol needs.
"""

from __future__ import annotations

import subprocess
import sys
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


def run(endpoint: Endpoint, model: str, protocol: str) -> list[dict[str, float]]:
    """One council by the real command; what the endpoint saw of it."""
    endpoint.reset()
    with room() as (folder, env):
        provider(folder, endpoint.base_url, model)
        command = [COMMAND, "--protocol", protocol, "--quiet", "Which way should we go?"]
        subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    return sorted(endpoint.log(), key=lambda seen: seen["arrived"])


def waves(log: list[dict[str, float]]) -> int:
    """A request that arrives after the end of all earlier ones begins a new wave."""
    count, end = 0, -1.0
    for seen in log:
        count += seen["arrived"] > end
        end = max(end, seen["ended"])
    return count


def measure(endpoint: Endpoint, model: str, protocol: str, wanted: tuple[int, int], runs: int) -> Spread:
    ratios = []
    for _ in range(runs):
        log = run(endpoint, model, protocol)
        if (len(log), waves(log)) != wanted:
            raise SystemExit(f"{protocol}: {len(log)} requests in {waves(log)} waves, not {wanted[0]} in {wanted[1]}")
        ratios.append((max(seen["ended"] for seen in log) - log[0]["arrived"]) / (wanted[1] * DELAY))
    return Spread.of(ratios)


def main() -> None:
    given = arguments(__doc__ or "", runs=5)
    rows, result = [], {}
    with endpoint() as running:
        for name, (model, protocol, requests, count) in CASES.items():
            spread = measure(running, model, protocol, (requests, count), given.runs)
            path = f"{count * DELAY:.1f} s"
            rows.append((name, str(requests), str(count), path, spread.show(3), verdict(spread.median, BUDGET)))
            result[name] = {"requests": requests, "waves": count, "ratio": spread.as_json()}
    put(given, result, ("protocol", "requests", "waves", "critical path", "time over it", "1.10"), rows)


if __name__ == "__main__":
    main()
