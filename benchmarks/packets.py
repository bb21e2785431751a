"""The packet of a folder with 10,000 files, compared with listing the folder by os.walk and reading the same files.

Each side is a separate process. Council checks names and contents for secrets on the way; the baseline checks nothing.
A packet has at most 400 files; the others are counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Spread, parse_arguments, peak_mb, print_result, resident_mb

LINES = 40
FILES_PER_FOLDER = 100


def make_files(folder: Path, files: int) -> None:
    text = "".join(f"def function_{n}(value: int) -> int:\n    return value + {n}\n\n" for n in range(LINES // 3))
    for number in range(files):
        place = folder / f"package_{number // FILES_PER_FOLDER:03}"
        place.mkdir(exist_ok=True)
        (place / f"module_{number:05}.py").write_text(f"# {number}\n{text}", encoding="utf-8")


def build_packet(folder: Path) -> int:
    from council.packet import build

    return len(build(["."], folder, task="validate", tokens=1_000_000).files)


def read_plainly(folder: Path) -> int:
    from council.packet.gate import MAX_FILES

    paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names]  # noqa: PTH118
    return len([Path(path).read_text(encoding="utf-8") for path in sorted(paths)[:MAX_FILES]])


SIDES = {"council": build_packet, "plain": read_plainly}


def run_side(name: str, folder: Path) -> None:
    """Do the work of one side once and print the figures. Imports do not count."""
    import council.packet.targets

    assert council.packet.targets
    before, clock, processor = resident_mb(), time.perf_counter(), time.process_time()
    files = SIDES[name](folder)
    seconds, cpu = time.perf_counter() - clock, time.process_time() - processor
    print(json.dumps({"files": files, "seconds": seconds, "cpu": cpu, "megabytes": peak_mb() - before}))


def main() -> None:
    if sys.argv[1:2] == ["--side"]:
        run_side(sys.argv[2], Path(sys.argv[3]))
        return
    options = parse_arguments(__doc__ or "", runs=5, files=10_000)
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in SIDES}
    with tempfile.TemporaryDirectory() as place:
        make_files(Path(place), options.files)
        for _ in range(options.runs):
            for name in SIDES:
                command = [sys.executable, __file__, "--side", name, place]
                taken[name].append(json.loads(subprocess.check_output(command, text=True)))
    rows, result = [], {}
    for name, sides in taken.items():
        spreads = {key: Spread.of([side[key] for side in sides]) for key in ("seconds", "cpu", "megabytes")}
        rows.append((name, str(sides[0]["files"]), *(spread.show(3) for spread in spreads.values())))
        result[name] = {"files": sides[0]["files"], **{key: spread.as_json() for key, spread in spreads.items()}}
    ratio = Spread.of([ours["seconds"] / plain["seconds"] for ours, plain in zip(*taken.values(), strict=True)])
    rows.append(("ratio", "", ratio.show(1), "", ""))
    print_result(options, {**result, "ratio": ratio.as_json()}, ("", "files", "seconds", "CPU s", "MB"), rows)


if __name__ == "__main__":
    main()
