"""Measure one contestant in this process and print the figures as JSON.

    python -m peers.worker MODULE MEASURE BASE_URL --model sim-0ms-300w-varied --councils 30

`alone` runs the councils one after another and reports seconds and CPU seconds per council. `calls` counts function
calls by cProfile in the thread of the event loop. `together` starts all councils at once and also reports memory and
stored bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import importlib
import json
import os
import pstats
import statistics
import sys
import time
from collections import Counter
from typing import Any

from measure import peak_mb, resident_mb

from peers.workload import Council

Json = dict[str, Any]


async def run_alone(council: Council, count: int, limit: float) -> Json:
    seconds = []
    processor = time.process_time()
    for _ in range(count):
        start = time.perf_counter()
        await asyncio.wait_for(council.council(), limit)
        seconds.append(time.perf_counter() - start)
    return {"seconds": statistics.median(seconds), "cpu_seconds": (time.process_time() - processor) / count}


async def count_calls(council: Council, count: int, limit: float) -> Json:
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(count):
        await asyncio.wait_for(council.council(), limit)
    profile.disable()
    return {"calls": pstats.Stats(profile).total_calls / count}  # type: ignore[attr-defined]


async def run_together(council: Council, count: int, limit: float) -> Json:
    """Start all councils at once. Those that do not end within the limit or fail are counted."""
    gc.collect()
    before = resident_mb()
    start = time.perf_counter()
    tasks = [asyncio.ensure_future(council.council()) for _ in range(count)]
    done, waiting = await asyncio.wait(tasks, timeout=limit)
    seconds = time.perf_counter() - start
    errors = Counter(_describe(error) for task in done if (error := task.exception()))
    peak = peak_mb()
    for task in waiting:
        task.cancel()
    return {
        "seconds": seconds,
        "completed": len(done) - errors.total(),
        "unfinished": len(waiting),
        "errors": dict(errors),
        "peak_mb": peak,
        "kb_per_council": (peak - before) * 1000 / count,
    }


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:200]


MEASURES = {"alone": run_alone, "calls": count_calls, "together": run_together}


async def measure(options: argparse.Namespace) -> Json:
    module = importlib.import_module(f"peers.{options.module}")
    council: Council = module.Contestant(options.base_url, options.model, options.stream)
    for _ in range(options.warm_up):
        await council.council()
    start = time.monotonic()
    result = await MEASURES[options.measure](council, options.councils, options.limit)
    end = time.monotonic()
    if not result.get("unfinished"):
        await council.close()
        if stored := getattr(council, "stored_bytes", None):
            result["stored_bytes"] = stored() / (options.councils + options.warm_up)
        if cleanup := getattr(council, "cleanup", None):
            cleanup.close()
    return {**result, "start": start, "end": end}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("module")
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("base_url")
    parser.add_argument("--model", default="sim-0ms-300w-varied")
    parser.add_argument("--councils", type=int, default=10)
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds")
    parser.add_argument("--core", type=int, help="run only on this core")
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    print(json.dumps(asyncio.run(measure(options))), flush=True)
    sys.stdout.flush()
    os._exit(0)  # unfinished councils would delay the end


if __name__ == "__main__":
    main()
