"""The packets of real changes: tokens, CPU time and what they consist of.

    python benchmarks/change_packets.py REPOSITORY A..B            one row for each part of the packet of a range
    python benchmarks/change_packets.py REPOSITORY --changes 6     the newest commits that change 5 to 400 lines of code

Each packet is built in a separate process. Its CPU time has that of git, and not that of imports. Every changed line of
a text file must be in the packet, and none may have more tokens than the budget: the last column counts the missing
lines.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

MIN_LINES, MAX_LINES = 5, 400
CODE = re.compile(r"\.(?:py|pyi|[cm]?[jt]sx?|go|rs|java|c|h|cc|cpp|hpp|cs|rb|php|kt|swift|scala)$")


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its ended children."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def git(repository: Path, *args: str) -> str:
    """Return the output of git, also if an object that a partial clone lacks ends it early."""
    command = ["git", "-C", str(repository), *args]
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False).stdout


def list_changes(repository: Path, count: int, skip: int) -> list[str]:
    """Return the newest ranges of one commit that change code, within the limits of lines."""
    listed = git(
        repository,
        "log",
        "--no-merges",
        "--first-parent",
        "--format=%x00%H",
        "--numstat",
        f"--skip={skip}",
        "-n",
        "3000",
    )
    found = []
    for entry in listed.split("\0")[1:]:
        commit, *rows = entry.split("\n")
        changes = [row.split("\t") for row in rows if row.count("\t") == 2]
        lines = sum(int(added) + int(removed) for added, removed, _ in changes if added != "-")
        if MIN_LINES <= lines <= MAX_LINES and any(CODE.search(path) for *_, path in changes):
            found.append(f"{commit}~1..{commit}")
    step = max(1, min(5, len(found) // max(1, count)))  # not only one week of work
    return found[::step][:count]


def measure_packet(repository: Path, span: str, tokens: int) -> dict[str, Any]:
    import council.packet.context
    from council.packet import build
    from council.packet.definitions import has_grammars
    from council.types import estimate_tokens

    assert council.packet.context and has_grammars(), "install the extra: pip install 'model-council[review]'"
    before = cpu_seconds()
    packet = build(span, repository, task="validate", tokens=tokens, redact=True)
    cpu = cpu_seconds() - before
    parts: Counter[str] = Counter({"diff": estimate_tokens(packet.diff)})
    parts["commits"] = sum(map(estimate_tokens, packet.commits))
    for file in packet.files:
        part = file.part or "added"
        parts[part] += estimate_tokens(file.path) + estimate_tokens(file.content)
    return {
        "tokens": packet.tokens,
        "cpu": cpu,
        "parts": dict(parts),
        "holes": list(packet.holes),
        "missing": count_missing_lines(repository, span, packet),
    }


def count_missing_lines(repository: Path, span: str, packet: Any) -> int:
    """Return how many changed lines of text files are neither in the diff nor in a file of the packet."""
    shown = Counter(line for line in packet.diff.split("\n") if line[:1] in "+-")
    for file in packet.files:
        if not file.part:
            shown.update(f"+{line}" for line in file.content.split("\n"))
    skipped = {item.path for item in packet.skipped}
    patch = git(
        repository,
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--diff-algorithm=histogram",
        "--find-renames",
        *span.split(".."),
    )
    missing, path, is_hunk = 0, "", False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            path, is_hunk = line.rpartition(" b/")[2], False
        elif line.startswith("@@ "):
            is_hunk = True
        elif (
            is_hunk
            and line[:1] in ("+", "-")
            and path not in skipped
            and not shown[line.replace("\r", "")]
            and not shown[line]
        ):
            missing += "redacted" not in packet.diff  # a masked line is there, with other characters
    return missing


def run_side(repository: Path, span: str, tokens: int) -> dict[str, Any]:
    command = [sys.executable, __file__, str(repository), span, "--side", "--tokens", str(tokens)]
    result: dict[str, Any] = json.loads(subprocess.check_output(command, text=True))
    return result


def print_range(result: dict[str, Any]) -> None:
    for part, tokens in sorted(result["parts"].items(), key=lambda row: -row[1]):
        print(f"{part:12} {tokens:8,}")
    print(f"{'total':12} {result['tokens']:8,}   CPU {result['cpu']:.2f} s, {result['missing']} changed lines missing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("range", nargs="?")
    parser.add_argument("--changes", type=int, default=6)
    parser.add_argument("--skip", type=int, default=0, help="newest commits to leave out")
    parser.add_argument("--tokens", type=int, default=30_000)
    parser.add_argument("--side", action="store_true", help="measure one range and print it as JSON")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.side:
        print(json.dumps(measure_packet(options.repository, options.range, options.tokens)))
        return
    if options.range:
        print_range(run_side(options.repository, options.range, options.tokens))
        return
    files = git(options.repository, "ls-files").count("\n")
    spans = list_changes(options.repository, options.changes, options.skip)
    results = [run_side(options.repository, span, options.tokens) for span in spans]
    if options.json:
        print(json.dumps({"files": files, "results": results}))
        return
    print(f"{options.repository.name}: {files:,} files")
    print(f"{'commit':12} {'tokens':>8} {'diff':>7} {'context':>8} {'CPU s':>6} {'missing':>7} {'holes':>5}")
    for span, result in zip(spans, results, strict=True):
        diff = result["parts"].get("diff", 0) + result["parts"].get("added", 0)
        context = result["tokens"] - diff
        print(
            f"{span[:10]:12} {result['tokens']:8,} {diff:7,} {context:8,} {result['cpu']:6.2f} {result['missing']:7} {len(result['holes']):5}"
        )
    counts = [result["tokens"] for result in results]
    cpu = [result["cpu"] for result in results]
    if counts:
        print(
            f"median {median(counts):,.0f} tokens, maximum {max(counts):,}; CPU median {median(cpu):.2f} s, maximum {max(cpu):.2f} s"
        )


if __name__ == "__main__":
    main()
