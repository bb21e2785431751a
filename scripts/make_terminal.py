"""Generate the pictures of the terminal: the real command in a pseudo-terminal, with scripted members.

`python scripts/make_terminal.py` writes docs/answer.svg, the finished run with a note beside each part, and
docs/terminal-live.svg, the same run while the seats write. The answers and the notes are in terminal.toml; a local
endpoint serves the answers, so there are no external requests and no cost.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import tomllib
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from scripted_endpoint import Reply, serve_replies

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
SCRIPT = tomllib.loads((HERE / "terminal.toml").read_text(encoding="utf-8"))
COLUMNS, LINES = 84, 60
PIECE_CHARS = 16  # characters per event
FIRST_TOKEN_DELAY_S = 0.5
LIVE_AT = ("draft", 15)  # the live picture: a phase, and the words that each of its seats has written
FRAME_END = "\x1b[J"  # ends every frame of the live view
VENDORS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
Json = dict[str, Any]


# Replies


def answer_request(body: Json) -> Reply:
    return Reply(make_reply(body), SCRIPT["speed"][body["model"]])


def make_reply(body: Json) -> str:
    """Return the scripted reply to a request: a draft, or the object of its schema."""
    model, schema = body["model"], (body.get("response_format") or {}).get("json_schema")
    if schema is None:
        return str(SCRIPT["draft"][model]).strip()
    if schema["name"] == "Triage":
        return json.dumps(SCRIPT["triage"])
    if schema["name"] == "Attack":
        return json.dumps({"issues": SCRIPT["attack"][model], "case": "", "verdict": "MODIFIED"})
    ruling = SCRIPT["ruling"]
    point = schema["schema"]["properties"]["points"]["items"]["properties"]
    whys = list(ruling["landed"].values())
    points = [{"issue": issue, "landed": True, "why": why, "same_as": "none"} for issue, why in zip(point["issue"]["enum"], whys, strict=True)]  # fmt: skip
    changes = [{"issue": point["issue"], "change": what} for point, what in zip(points, ruling["changes"], strict=True)]
    told = {name: ruling[name] for name in ("outcome", "assessment", "answer")}
    return json.dumps({"points": points, "changes": changes, **told})


# Terminal

CONTROL = re.compile(r"\x1b\[(?P<args>[0-9;?]*)(?P<kind>[A-Za-z])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>78]")


class Screen:
    """The lines of a terminal: text with its colours, after cursor movements and erasures."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.cells: list[list[tuple[str, str]]] = [[]]
        self.row = self.column = 0
        self.style = ""

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            if found := CONTROL.match(text, at):
                if found["kind"]:
                    self._control(found["kind"], found["args"])
                at = found.end()
            else:
                self._put(text[at])
                at += 1

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
        elif char >= " ":
            if self.column >= self.columns:
                self.row, self.column = self.row + 1, 0
            line = self._line()
            line += [(" ", "")] * (self.column + 1 - len(line))
            line[self.column] = (char, self.style)
            self.column += 1

    def _line(self) -> list[tuple[str, str]]:
        while len(self.cells) <= self.row:
            self.cells.append([])
        return self.cells[self.row]

    def _control(self, kind: str, args: str) -> None:
        number = int(args) if args.isdigit() else 0
        if kind == "m":
            self.style = "" if args in ("", "0") else self.style + f"\x1b[{args}m"
        elif kind == "A":
            self.row = max(0, self.row - max(1, number))
        elif kind == "B":
            self.row += max(1, number)
        elif kind == "C":
            self.column += max(1, number)
        elif kind == "D":
            self.column = max(0, self.column - max(1, number))
        elif kind == "G":
            self.column = max(1, number) - 1
        elif kind == "K":
            line = self._line()
            line[:] = [] if number == 2 else line[: self.column] if number == 0 else [(" ", "")] * self.column + line[self.column :]  # fmt: skip
        elif kind == "J":
            del self._line()[self.column :], self.cells[self.row + 1 :]

    def lines(self) -> list[Text]:
        """Return the lines with their colours, without empty lines at the end."""
        shown = ["".join(_colored(style, "".join(char for char, _ in cells)) for style, cells in groupby(line, itemgetter(1))).rstrip() for line in self.cells]  # fmt: skip
        while shown and not shown[-1]:
            shown.pop()
        return [Text.from_ansi(line) for line in shown]


def _colored(style: str, text: str) -> str:
    return f"{style}{text}\x1b[0m" if style else text


def run_command(folder: Path, base_url: str) -> tuple[list[Text], list[Text]]:
    """Run `council QUESTION` at a terminal; return the lines while the seats write and at the end."""
    lines = [f'[providers.{vendor}]\nwire = "openai"\nbase_url = "{base_url}"' for vendor in VENDORS]
    (folder / "council.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    env = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8",
        "COUNCIL_CONFIG": str(folder / "council.toml"), **dict.fromkeys(VENDORS.values(), "scripted"), "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }  # fmt: skip
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "council", "--yes", SCRIPT["question"]]
    process = subprocess.Popen(command, cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)  # fmt: skip
    os.close(slave)
    screen, live = Screen(COLUMNS), list[Text]()
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the command has ended
            break
        for part in re.split(f"(?<={re.escape(FRAME_END)})", piece.decode(errors="replace")):
            screen.feed(part)
            if not live and part.endswith(FRAME_END) and is_writing("\n".join(line.plain for line in screen.lines())):
                live = screen.lines()
    os.close(master)
    assert process.wait(60) == 0, "\n".join(line.plain for line in screen.lines())
    return live, screen.lines()


def is_writing(shown: str) -> bool:
    """Return whether the seats write in the phase of the live picture."""
    phase, words = LIVE_AT
    written = [int(number) for number in re.findall(r"writing +(\d+) words", shown)]
    return f"▸ {phase}" in shown and len(written) == len(VENDORS) and min(written) >= words


# Picture


def draw(lines: list[Text], target: Path) -> None:
    """Write the command and the lines as an SVG that loads nothing from elsewhere."""
    write_picture(export_svg([make_prompt(), *lines], target.stem), target)


def make_prompt() -> Text:
    return Text.assemble(("$ ", "bold green"), ("council ", "bold"), f'"{SCRIPT["question"]}"')


def write_picture(svg: str, target: Path) -> None:
    target.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    print(f"{target}: {target.stat().st_size:,} bytes")


def export_svg(lines: list[Text], name: str) -> str:
    from rich._export_format import CONSOLE_SVG_FORMAT

    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(line, soft_wrap=True)
    return console.export_svg(title="council", code_format=form, unique_id=name)


# Notes beside the finished run

FIRST_LINE_Y, LINE_HEIGHT = 65.0, 24.4  # of the first line of text, in the format of rich
NOTE_WIDTH, NOTE_CHARS, NOTE_LINE_HEIGHT, NOTE_GAP = 440, 42, 25.0, 16.0
NOTE_STYLE = """<style>
.note { font: 20px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.mark { stroke: #0969da; stroke-width: 2.5; fill: none }
@media (prefers-color-scheme: dark) { .note { fill: #e6edf3 } .mark { stroke: #58a6ff } }
</style>"""


@dataclass(frozen=True)
class Note:
    """A note and the lines of the picture that it explains, the last one included."""

    text: str
    first: int
    last: int


def find_notes(lines: list[Text]) -> list[Note]:
    """Return the notes of the script with their lines: each explains the lines up to the next one."""
    plain = [line.plain for line in lines]
    starts, after = [], -1
    for note in SCRIPT["note"]:
        after = next(n for n in range(after + 1, len(plain)) if plain[n].startswith(note["at"]))
        starts.append(after)
    notes = []
    for note, (first, end) in zip(SCRIPT["note"], pairwise([*starts, len(plain)]), strict=True):
        last = max(n for n in range(first, end) if plain[n].strip(" ─"))
        notes.append(Note(note["text"], first, last))
    return notes


def draw_with_notes(lines: list[Text], target: Path) -> None:
    """Write the command, its plan and the finished run as an SVG, with a note beside each part."""
    shown = [make_prompt(), *lines]
    svg = export_svg(shown, target.stem)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert size, "the format of rich has changed"
    edge, parts, free = float(size[1]), [NOTE_STYLE], 0.0
    for note in find_notes(shown):
        top, bottom = (FIRST_LINE_Y + LINE_HEIGHT * n for n in (note.first, note.last))
        wrapped = textwrap.wrap(note.text, NOTE_CHARS)
        y = max(top, free)
        free = y + NOTE_LINE_HEIGHT * len(wrapped) + NOTE_GAP
        parts.append(
            f'<path class="mark" d="M{edge + 8:.0f} {top - 16:.1f} V{bottom + 3:.1f} M{edge + 8:.0f} {top - 5:.1f} L{edge + 26:.0f} {y - 5:.1f}"/>'
        )
        spans = "".join(
            f'<tspan x="{edge + 34:.0f}" y="{y + NOTE_LINE_HEIGHT * n:.1f}">{escape(line)}</tspan>'
            for n, line in enumerate(wrapped)
        )
        parts.append(f'<text class="note">{spans}</text>')
    height = max(float(size[2]), free)
    svg = svg.replace(size[0], f'viewBox="0 0 {edge + NOTE_WIDTH:.0f} {height:.0f}"', 1)
    write_picture(svg.replace("</svg>", "\n".join([*parts, "</svg>"])), target)


async def make_pictures(folder: Path) -> None:
    replies = serve_replies(answer_request, first_token_delay=FIRST_TOKEN_DELAY_S, piece_chars=PIECE_CHARS)
    async with replies as base_url:
        with tempfile.TemporaryDirectory() as place:
            live, finished = await asyncio.to_thread(run_command, Path(place), base_url)
    draw(live, folder / "terminal-live.svg")
    plan = live[: next(n for n, line in enumerate(live) if line.plain.startswith("▸"))]
    draw_with_notes([*plan, Text(), *finished], folder / "answer.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=DOCS, help="folder for the pictures")
    asyncio.run(make_pictures(parser.parse_args().output))


if __name__ == "__main__":
    main()
