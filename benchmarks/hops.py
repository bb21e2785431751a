"""Module-to-module hops of one collaborative council with scripted members, run by the real command in this process.

The profiler sees every Python call in every thread, from the start of the command to its end, imports included. Ours is
every module inside the package `council`; a frame belongs to the module in its globals, also if it is generated code such
as the `__init__` of a dataclass.

- loaded: modules of ours that are imported at the end
- called: modules of ours with a function in their source file that was called
- hops: calls whose caller and callee are both ours, in different modules; the caller is the frame directly below, and
  the resumption of a coroutine or a generator counts as a call
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from collections import Counter
from inspect import CO_NEWLOCALS
from pathlib import Path
from types import FrameType
from typing import Any

from measure import check_budget, isolated_environment, parse_arguments, print_result

PACKAGE = "council"
MEMBER = "scripted:"
MAX_CALLED, MAX_HOPS = 60, 2_000
QUESTION = "Should the archive move to cold storage?"
SEATS = ("alpha", "beta", "gamma", "chair")


class Profile:
    """Counts of one run; `count` is the profiler function."""

    def __init__(self) -> None:
        self.called: set[str] = set()
        self.hops: Counter[tuple[str, str]] = Counter()

    def count(self, frame: FrameType, event: str, argument: Any) -> None:
        callee = _module(frame)
        if event != "call" or not _is_ours(callee):
            return
        code = frame.f_code
        if code.co_flags & CO_NEWLOCALS and not code.co_filename.startswith("<"):  # neither class body nor generated
            self.called.add(callee)
        caller = _module(frame.f_back) if frame.f_back else ""
        if caller != callee and _is_ours(caller):
            self.hops[caller, callee] += 1


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_ours(module: str) -> bool:
    return module.startswith(f"{PACKAGE}.")


def run_command(folder: Path) -> Profile:
    """Run one council in the folder and return its counts."""
    from council.doors.cli import run

    seats = [word for seat in SEATS for word in ("--seat", f"{seat}={MEMBER}")]
    profile = Profile()
    os.chdir(folder)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        threading.setprofile(profile.count)
        sys.setprofile(profile.count)
        try:
            code = run(["--protocol", "collaborative", *seats, QUESTION])
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    if code:
        raise SystemExit(f"the council failed with exit code {code}: {said.getvalue()}")
    return profile


def main() -> None:
    options = parse_arguments((__doc__ or "").partition("\n")[0], pairs=0)
    before = Path.cwd()
    with isolated_environment() as (folder, env):
        os.environ.clear()
        os.environ.update(env)
        profile = run_command(folder)
        os.chdir(before)
    loaded = sum(_is_ours(name) for name in sys.modules)
    called, hops = len(profile.called), sum(profile.hops.values())
    result = {"loaded": loaded, "called": called, "hops": hops}
    rows = [
        ("modules loaded", str(loaded), ""),
        ("modules called", str(called), f"{MAX_CALLED}: {check_budget(called, MAX_CALLED)}"),
        ("module-to-module hops", str(hops), f"{MAX_HOPS}: {check_budget(hops, MAX_HOPS)}"),
        *((f"{caller} → {callee}", str(n), "") for (caller, callee), n in profile.hops.most_common(options.pairs)),
    ]
    print_result(options, result, ("one collaborative council", "", "budget"), rows)


if __name__ == "__main__":
    main()
