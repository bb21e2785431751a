"""The page stays responsive with ten seats of 50,000 tokens each."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from council.members.scripted import example_value
from council.runs.service import Convener
from council.types import Answer, Ask, Usage
from tests.acceptance.helpers import wait_until
from tests.doors.web.conftest import write_project
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import run_in_thread
from tests.doors.web.server import WebServer, environment
from tests.trusted_project import trust_project

SEATS = [f"seat-{n}" for n in range(1, 11)]
TOKENS = 50_000
PIECE_CHARS = 4_000  # characters per piece: a thousand tokens
PAUSE_S = 0.05
MAX_TASK_S = 0.2  # seconds
SENTENCE = "the archive moves slowly but it holds and **every** reader knows where to look when `it` breaks again"


class LongTextMember:
    """Member that streams a long text."""

    vendor, small, free, backoff = "flood", False, True, 0.0

    def __init__(self, seat: str) -> None:
        self.name = f"flood:{seat}"
        self.book = book(random.Random(seat))

    def prepare(self, ask: Ask) -> bytes:
        return json.dumps({"key": ask.key, "schema": ask.schema}).encode()

    async def ready(self, progress: Any) -> None: ...

    async def send(self, body: bytes, hear: Callable[[str], None]) -> Answer:
        asked = json.loads(body)
        text = json.dumps(example_value(asked["schema"], False)) if asked["schema"] else self.book
        for at in range(0, len(text), PIECE_CHARS):
            hear(text[at : at + PIECE_CHARS])
            await asyncio.sleep(PAUSE_S)
        return Answer(text, usage=Usage(1, TOKENS), model=self.name)

    async def probe(self) -> str:
        return "writes"

    async def close(self) -> None: ...


def book(chance: random.Random) -> str:
    """Generate paragraphs, headings and lists of four characters per token."""
    parts: list[str] = []
    while sum(map(len, parts)) < 4 * TOKENS:
        text = " ".join(chance.choices(SENTENCE.split(), k=chance.randint(20, 90)))
        parts.append(chance.choice(["", "", "## Part\n\n", "- ", "> "]) + text + ".")
    return "\n\n".join(parts)


def roster() -> str:
    seats = ", ".join(f'{{name = "{seat}", lens = "one", stance = "two", model = "flood:{seat}"}}' for seat in SEATS)
    providers = '[providers.flood]\nbase_url = "http://127.0.0.1:9/v1"\n'
    return f'{providers}[models]\ndefault = "flood:{SEATS[0]}"\n[chair]\nmodel = "flood:{SEATS[0]}"\n[rosters.ten]\nseats = [{seats}]\n'


def run_council(site: WebServer, on_run: Callable[[str], None]) -> None:
    """Run a council in this process; `on_run` gets the run id."""

    async def work() -> None:
        convener = Convener(site.folder, site.env, members=[LongTextMember(seat) for seat in SEATS])
        plan = await convener.plan(["Which way?"], {"roster": "ten"}, protocol="ranking")
        await convener.run(plan, lambda entry: on_run(entry.event.run) if entry.event.type == "convened" else None)
        await convener.close()

    asyncio.run(work())


def longest_task(trace: Path) -> float:
    """Return the CPU time of the longest main-thread task after the first paint."""
    events = json.loads(trace.read_text())["traceEvents"]
    main = {
        (one["pid"], one["tid"]) for one in events
        if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
    }  # fmt: skip
    painted = min(one["ts"] for one in events if one["name"] == "firstPaint")
    tasks = [
        one.get("tdur", 0) / 1e6 for one in events
        if one["name"].endswith("RunTask") and (one["pid"], one["tid"]) in main and one["ts"] > painted
    ]  # fmt: skip
    assert len(tasks) > 100
    return max(tasks)


def trace_run(look: Callable[..., Browser], place: Path) -> float:
    (write_project(place) / "council.toml").write_text(roster(), encoding="utf-8")
    trust_project(place / "project", **environment(place))
    site = WebServer(place / "project", environment(place))
    seen, named = look(), threading.Event()
    run: list[str] = []
    held = threading.Thread(target=run_council, args=(site, lambda name: (run.append(name), named.set())))
    browser = seen.context.browser
    browser.start_tracing(
        page=seen.page, path=str(place / "trace.json"), categories=["toplevel", "loading", "devtools.timeline"]
    )
    seen.at(site.url)
    held.start()
    assert named.wait(60)
    wait_until(lambda: site.ask("GET", f"/api/runs/{run[0]}").status == 200, "the run is stored")
    seen.go(f"/run/{run[0]}")
    seen.wait("() => document.querySelectorAll('.statement[data-showing=live]').length === 10", within=60)
    seen.page.wait_for_selector(".answer:not([hidden])", timeout=120_000)
    seen.wait("() => [...document.querySelectorAll('.seat .prose')].length > 10")
    browser.stop_tracing()
    held.join()
    run_in_thread(site.close)
    assert seen.errors == []
    return longest_task(place / "trace.json")


@pytest.mark.sweep
@pytest.mark.behaviour("50-page-smooth")
def test_ten_seats_of_fifty_thousand_tokens_make_no_task_over_200_ms(
    look: Callable[..., Browser], tmp_path: Path
) -> None:
    times = []
    for n in range(3):
        place = tmp_path / str(n)
        place.mkdir()
        times.append(trace_run(look, place))
    print("longest task of each trace, in seconds:", [round(one, 3) for one in times])
    assert statistics.median(times) < MAX_TASK_S
