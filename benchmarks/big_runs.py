"""Runs with 10 and 100 MB of answers: CPU and memory to show, resume and export them.

A protocol with many phases asks four seats, whose answers are as long as the default limit allows; no prompt quotes
them. Every command is a separate process, as a user starts it; starting and loading Council is part of the figures.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from measure import isolated_environment, parse_arguments, peak_mb, print_result

import council
from council.members.base import OnDelta

ANSWER_BYTES = 250_000
SEATS = ("north", "east", "south", "west")
NAME = "big:member"
COMMANDS = {
    "runs show": ["runs", "show", "RUN"],
    "resume": ["resume", "RUN"],
    "report, Markdown": ["report", "RUN", "--format", "md"],
    "report, HTML": ["report", "RUN", "--format", "html"],
    "report, JSON": ["report", "RUN", "--format", "json"],
}


class LongMember(council.Member):
    """Answers with different words of the wanted length."""

    vendor = "big"
    free = True

    def __init__(self) -> None:
        self.name = NAME
        self.words = random.Random(1).choices([f"word{n}" for n in range(5_000)], k=ANSWER_BYTES // 8)

    def prepare(self, ask: council.Ask) -> bytes:
        return json.dumps({"key": ask.key}).encode()

    async def send(self, body: bytes, on_delta: OnDelta) -> council.Answer:
        random.Random(body).shuffle(self.words)
        text = " ".join(self.words)[:ANSWER_BYTES]
        return council.Answer(text, usage=council.Usage(input=100, output=len(self.words)), model=NAME)


def make_protocol(folder: Path, megabytes: int) -> council.Protocol:
    phases = max(1, megabytes * 1_000_000 // (ANSWER_BYTES * len(SEATS)))

    async def ask_parts(running: council.Council) -> council.Verdict:
        for number in range(phases):
            async with running.phase(f"part-{number}"):
                await running.poll(running.members, "part")
        return council.Verdict("All parts are written.")

    prompts = folder / "prompts"
    prompts.mkdir(exist_ok=True)
    (prompts / "part.md").write_text('+++\nrole = "You write."\nask = "Write a part."\n+++\nWrite one part.\n')
    seats = tuple(council.Seat(name, "Writer", "the whole") for name in SEATS)
    return council.Protocol("parts", ask_parts, seats=seats, summary="many parts", prompts=prompts)


async def make_run(folder: Path, megabytes: int) -> str:
    seats = dict.fromkeys((*SEATS, "chair"), NAME)
    report = await council.convene(
        "Write it.", folder=folder, protocol=make_protocol(folder, megabytes), members=[LongMember()], seats=seats
    )
    report.raise_for_status()
    return report.run


def run_side(folder: Path, megabytes: int, arguments: Sequence[str]) -> None:
    """Make the run, or do a command with it, and print what it used to standard error."""
    os.chdir(folder)
    processor = time.process_time()
    if arguments:
        from council.doors.cli import main as run_command

        council.register(make_protocol(folder, megabytes))
        try:
            run_command(list(arguments))
        except SystemExit as end:
            if end.code:
                raise SystemExit(f"council {' '.join(arguments)} ended with exit code {end.code}") from end
        run = ""
    else:
        run = asyncio.run(make_run(folder, megabytes))
    figures = {"run": run, "cpu_s": time.process_time() - processor, "peak_mb": peak_mb()}
    print(json.dumps(figures), file=sys.stderr)


def start_side(folder: Path, env: dict[str, str], megabytes: int, arguments: Sequence[str]) -> dict[str, float | str]:
    command = [sys.executable, __file__, "--side", str(folder), str(megabytes), *arguments]
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip()[-500:])
    figures: dict[str, float | str] = json.loads(done.stderr.splitlines()[-1])
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--side"]:
        run_side(Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
        return
    options = parse_arguments(__doc__ or "", small=10, large=100)
    rows, result = [], {}
    for megabytes in filter(None, (options.small, options.large)):
        with isolated_environment() as (folder, env):
            made = start_side(folder, env, megabytes, [])
            run = str(made["run"])
            sides = {"run": made} | {
                name: start_side(folder, env, megabytes, [run if word == "RUN" else word for word in command])
                for name, command in COMMANDS.items()
            }
        result[str(megabytes)] = {
            name: {"cpu_s": side["cpu_s"], "peak_mb": side["peak_mb"]} for name, side in sides.items()
        }
        rows += [
            (f"{megabytes} MB", name, f"{side['cpu_s']:.1f}", f"{side['peak_mb']:.0f}") for name, side in sides.items()
        ]
    print_result(options, result, ("answers", "command", "CPU s", "peak MB"), rows)


if __name__ == "__main__":
    main()
