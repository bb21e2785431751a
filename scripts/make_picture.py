"""Generate the README picture: a real run of four scripted judges, shown by a real browser.

`python scripts/make_picture.py` writes docs/council.png. The judges' answers are in picture.toml and served by a local
endpoint, so there are no external requests and no cost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import tempfile
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from council.engine.minutes import Minutes
from council.events import Entry
from council.render.formats import render_as
from council.runs.service import Convener
from scripted_endpoint import Reply, serve_replies

HERE = Path(__file__).parent
TARGET = HERE.parent / "docs" / "council.png"
CAST = tomllib.loads((HERE / "picture.toml").read_text(encoding="utf-8"))
ROUNDS = {"Opinion": "r1", "SecondOpinion": "r2"}
FINDING = re.compile(r"<<<(F\d+) (\S+)\n(?P<text>.*?)\n\2>>>", re.DOTALL)  # as the clerk is shown it
SIZE = (1220, 2000)
FIRST_TOKEN_DELAY_S = 0.8  # seconds before the first token
BACKOFF = 0.2
PIECE_CHARS = 24  # characters per event
NOTES: dict[str, Any] = {"revised_from": None, "steel_man": "", "challenges": [], "acknowledgments": []}
Json = dict[str, Any]


# Replies


class Judges:
    """The judges' replies to requests; a judge with troubles only gets their statuses, one after another."""

    def __init__(self) -> None:
        self._asked: Counter[str] = Counter()

    def answer(self, body: Json) -> Reply:
        schema = body["response_format"]["json_schema"]["name"]
        if schema == "DefectGroups":
            return Reply(make_groups(body["messages"][-1]["content"]))
        seat, judge = next(row for row in CAST["judges"].items() if row[1]["model"].partition(":")[2] == body["model"])
        if troubles := judge.get("troubles"):
            self._asked[seat] += 1
            return Reply(status=troubles[min(self._asked[seat], len(troubles)) - 1])
        phase = ROUNDS[schema]
        return Reply(make_reply(seat, phase), judge["speed"])


def make_reply(seat: str, phase: str) -> str:
    """Return a judge's reply. The second round keeps the findings of the first unless it has new ones."""
    line = {**CAST[phase][seat], "schema_version": 2}
    findings = line.get("findings") or CAST["r1"][seat]["findings"]
    line["findings"] = [{"recommendation": one["fix"], **one} for one in findings]
    if phase == "r2":
        line["debate_notes"] = NOTES | line["debate_notes"]
    return json.dumps(line)


def make_groups(prompt: str) -> str:
    """Return the clerk's reply: the findings that contain all words of a group report the same defect."""
    findings = [(found[1], found["text"]) for found in FINDING.finditer(prompt)]
    groups = []
    for group in CAST["groups"]:
        ids = [label for label, text in findings if all(word in text for word in group["words"])]
        groups.append({"findings": ids, "defect": group["defect"]})
    return json.dumps({"groups": groups})


# Run


def write_project(folder: Path, base_url: str) -> None:
    """Write the reviewed project and its configuration."""
    for name, text in CAST["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    lines = ["[budget]", "max_cost = 0.60"]
    for family in dict.fromkeys(judge["model"].partition(":")[0] for judge in CAST["judges"].values()):
        lines += [f"[providers.{family}]", f'base_url = "{base_url}"', f"backoff = {BACKOFF}"]
        lines += [
            f'[prices."{family}:*"]',
            *(f"{name} = {rate}" for name, rate in CAST["prices"][f"{family}:*"].items()),
        ]
    for seat, judge in CAST["judges"].items():
        lines += [f"[seats.{seat}]", f'model = "{judge["model"]}"', "fallback = []"]
    (folder / "council.toml").write_text("\n".join(lines), encoding="utf-8")


async def run_council(folder: Path) -> list[Entry]:
    """Run the council and return all events."""
    entries: list[Entry] = []
    judges = Judges()
    async with serve_replies(judges.answer, first_token_delay=FIRST_TOKEN_DELAY_S, piece_chars=PIECE_CHARS) as base_url:
        write_project(folder, base_url)
        convener = Convener(folder, {"COUNCIL_DATA": str(folder / "data")}, config=folder / "council.toml")
        lenses = [seat.removeprefix("judge-") for seat in CAST["judges"]]
        options = {"debate": True, "count": len(lenses), "perspectives": lenses}
        try:
            plan = await convener.plan(["validate", CAST["target"]], options)
            await convener.run(plan, entries.append)
        finally:
            await convener.close()
    return entries


# Picture


def take_picture(run: Path, target: Path, width: int, height: int) -> None:
    """Take a screenshot of the exported run in a browser."""
    from playwright.sync_api import sync_playwright

    path = next(
        found
        for name in ("chromium", "chromium-headless-shell", "chromium-browser", "google-chrome")
        if (found := shutil.which(name))
    )
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
        page.goto(run.as_uri())
        page.wait_for_selector(".answer .finding")
        page.evaluate(  # closed, so that the map is visible
            "() => document.querySelectorAll('details[open]').forEach((one) => { if (one.querySelector('summary')?.textContent.startsWith('Judges')) one.open = false })"
        )
        page.evaluate("() => window.scrollTo(0, 0)")
        page.screenshot(path=target)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=TARGET)
    parser.add_argument("--html", type=Path, help="also write the exported run to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        entries = asyncio.run(run_council(Path(place)))
        run = (options.html or Path(place) / "run.html").resolve()
        run.write_text(render_as(Minutes.fold(entries), "html", entries), encoding="utf-8")
        take_picture(run, options.output, *SIZE)
    print(f"{options.output}: {options.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
