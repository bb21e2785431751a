"""Generate tests/data/prompts: every prompt of every shipped protocol as a seat receives it, with three, two and one
seats that answer, and with four seats.

A reviewer reads a change of wording in the diff of these files. Fence marks are replaced by the word "mark".
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from council import protocols
from council.errors import QuorumLost
from council.members.scripted import example_value
from council.planning.plan import load_panel
from council.planning.rehearsal import RehearsalInput, rehearse
from council.protocols.options import parse_options
from council.protocols.seats import PanelContext
from council.settings import load_settings
from council.types import CarryOut, Json, JsonSchema, Outcome, Packet, PacketFile, Question, Roster, Skipped, Step

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "prompts"
MARK = re.compile(r"^(<<<.* )[0-9a-f]{12}$|^[0-9a-f]{12}(>>>)$", re.MULTILINE)
ENV = {
    **dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "sample"),
    "XDG_CONFIG_HOME": str(FOLDER / "no-config"),
}
DIFF = """diff --git a/src/shop/cart.py b/src/shop/cart.py
index 1f0a3c2..8d11e07 100644
--- a/src/shop/cart.py
+++ b/src/shop/cart.py
@@ -40,2 +40,2 @@ class Cart:
     def total(self, items):
-        return sum(item.price for item in items)
+        return float(sum(item.price for item in items))
"""
PACKET = Packet(
    (
        PacketFile("AGENTS.md", "# Rules\n\nMoney is always Decimal.\n", part="rules"),
        PacketFile(
            "src/shop/cart.py",
            "class Cart:\n    def total(self, items):\n        return float(sum(item.price for item in items))\n",
            ranges=((12, 12), (40, 41)),
            part="definitions",
            reason="encloses the change",
            lines=80,
        ),
        PacketFile(
            "src/shop/bill.py",
            "def bill(cart):\n    return cart.total(cart.items)\n",
            ranges=((7, 8),),
            part="callers",
            reason="calls total",
            lines=8,
        ),
    ),
    diff=DIFF,
    commits=("4f1c2aa Sum the prices of the cart\n\nFixes #41.",),
    skipped=(Skipped("assets/logo.png", "binary"),),
    target="recent",
)
TWO_FILES = replace(PACKET, diff=DIFF + DIFF.replace("cart", "till"), budget=150)
FILES = Packet((PacketFile("src/shop/cart.py", "def total(items):\n    return sum(item.price for item in items)\n"),))


@dataclass(frozen=True, slots=True)
class Case:
    """One way to run a protocol."""

    protocol: str
    title: str
    question: str = "Which storage should a small shop use?"
    target: str | None = None
    task: str = "ask"
    domain: str = "general"
    options: Json = field(default_factory=dict)
    packet: Packet = field(default_factory=Packet)
    members: int = 0  # members by `-m`; 0: the usual seats
    look: bool = False  # with --look


CASES = (
    Case("collaborative", "a question about code", domain="code"),
    Case("adversarial", "a question about code", domain="code"),
    Case("triad", "a question about code", domain="code"),
    Case("advisors", "one round"),
    Case("advisors", "a debate of three rounds", options={"flow": "debate"}),
    Case("advisors", "two rounds in turn", options={"flow": "sequential", "rounds": 2}),
    Case("ranking", "a question"),
    Case("general", "without research", options={"no_search": True}),
    Case("general", "with research", options={"search": "files:."}),
    Case("general", "a specification", options={"no_search": True, "spec_review": True}, packet=PACKET),
    Case(
        "judges",
        "validate changes",
        "recent",
        "recent",
        task="validate",
        packet=PACKET,
        options={"deep": True, "debate": True},
    ),
    Case(
        "judges",
        "validate files with explorers",
        "src/shop",
        "src/shop",
        task="validate",
        packet=FILES,
        options={"deep": True, "explorers": 1},
    ),
    Case("judges", "brainstorm", task="brainstorm", options={"deep": True}),
    Case("judges", "research", task="research", options={"deep": True}),
    Case("refine", "a question"),
    Case("solo", "a question"),
    Case("adaptive", "a question"),
    Case("panel", "a question"),
    Case("quick", "a question with one short answer", "What is the capital of Mongolia?"),
    Case("collaborative", "four seats", members=4),
    Case("collaborative", "seats that look", look=True),
    Case("adversarial", "four seats", members=4),
    Case("triad", "four seats", members=4),
    Case("ranking", "four seats", members=4),
    Case("refine", "four seats", members=4),
    Case("adaptive", "two seats", members=2),
    Case("adaptive", "four seats", members=4),
    Case("panel", "four seats", members=4),
    Case("general", "four seats", options={"no_search": True}, members=4),
    Case("judges", "changes in two parts", "recent", "recent", "validate", packet=TWO_FILES, options={"debate": True}),
)


@dataclass(frozen=True, slots=True)
class Way:
    """How the seats of a run answer."""

    title: str
    answering: int = 8  # of the seats, the first ones
    agree: bool = False
    once: bool = False  # a seat answers only its first request
    small: bool = False


WAYS = (
    Way("all answer and disagree"),
    Way("all answer and agree", agree=True),
    Way("two answer", answering=2),
    Way("one answers", answering=1),
    Way("each answers only once", once=True),
    Way("small members", small=True),
)


def stale() -> list[str]:
    """Return the files that differ from what would be generated."""
    return [
        name
        for name, text in build_files().items()
        if not (path := FOLDER / name).is_file() or path.read_text(encoding="utf-8") != text
    ]


def build_files() -> dict[str, str]:
    names = dict.fromkeys(case.protocol for case in CASES)
    return {f"{name}.txt": asyncio.run(_build_file(name)) for name in names}


async def _build_file(protocol: str) -> str:
    parts: dict[str, str] = {}  # text → its heading; a text that was already shown is left out
    replies: dict[str, JsonSchema] = {}
    for case in (case for case in CASES if case.protocol == protocol):
        for way in (
            WAYS[:1] if case.members or case.look or case.packet.budget else WAYS
        ):  # absences and small members do not depend on the size and on parts
            for step in await rehearse_case(case, way):
                last = step.ask.messages[-1]["content"]
                heading = f"{step.ask.key} ({case.title}; {way.title})"
                whose = "a small member" if way.small else "every request"
                parts.setdefault(step.ask.messages[0]["content"], f"The system message of {whose}")
                if step.ask.schema and not way.small:
                    replies.setdefault(step.ask.schema_name, step.ask.schema)
                parts.setdefault(_hide_marks(last), heading)
    shown = [_format_part(heading, text) for text, heading in parts.items()]
    shown += [_format_part(f"Reply {name}", "\n".join(_describe(schema))) for name, schema in replies.items()]
    return "\n".join(shown)


def _format_part(heading: str, text: str) -> str:
    return f"{'=' * 100}\n{heading}\n{'=' * 100}\n\n{text}\n"


def _hide_marks(text: str) -> str:
    return MARK.sub(lambda found: f"{found[1]}mark" if found[1] else "mark>>>", text)


def _describe(schema: JsonSchema, indent: str = "") -> Iterator[str]:
    """Return the fields of a reply, one per line, with their types and descriptions."""
    for name, of in schema.get("properties", {}).items():
        about = f": {of['description']}" if "description" in of else ""
        yield f"{indent}{name} ({_describe_type(of)}){about}"
        yield from _describe(of.get("items") or of, f"{indent}    ")


def _describe_type(of: JsonSchema) -> str:
    if "anyOf" in of:
        return " or ".join(map(_describe_type, of["anyOf"]))
    if "enum" in of:
        return ", ".join(map(str, of["enum"]))
    if of.get("type") != "array":
        return str(of.get("type", "any"))
    most = f", at most {of['maxItems']}" if "maxItems" in of else ""
    return f"list of {_describe_type(of['items'])}{most}"


async def rehearse_case(case: Case, way: Way = WAYS[0]) -> list[Step]:
    """Return the steps of one run."""
    protocol = protocols.get_protocol(case.protocol)
    question = Question(case.question, case.task, case.target, case.domain)
    options = parse_options(protocol.name, case.task, case.options, protocol.load_options())
    settings = load_settings(FOLDER, ENV, flags={"models": ["sonnet"] * case.members})
    panel = load_panel(protocol, question, options, PanelContext(settings, ENV, FOLDER))
    options = options.model_copy(update=panel.options)
    roster = Roster(
        tuple(replace(seat, member="scripted:", small=way.small) for seat in panel.seats),
        panel.chair and replace(panel.chair, member="scripted:", small=way.small),
        tuple(replace(seat, member="scripted:", small=way.small) for seat in panel.helpers),
    )
    steps: list[Step] = []
    absent = {seat.name for seat in roster.seats[way.answering :]}
    seats = {seat.name for seat in roster.seats} if way.once else set()
    answer = _make_caller(steps, absent, seats, dict(options), agree=way.agree)
    with suppress(QuorumLost):  # too few seats answer: the prompts so far are shown
        given = RehearsalInput(protocol, roster, question, dict(options), case.packet, look=case.look)
        await rehearse(given, agree=way.agree, answer=answer)
    return steps


def _make_caller(steps: list[Step], absent: set[str], only_once: set[str], options: Json, *, agree: bool) -> CarryOut:
    asked: Counter[str] = Counter()

    async def carry_out(step: Step) -> Outcome:
        n, asked[step.ask.schema_name] = asked[step.ask.schema_name], asked[step.ask.schema_name] + 1
        is_late = step.seat in only_once and any(earlier.seat == step.seat for earlier in steps)
        steps.append(step)
        await asyncio.sleep(0)  # let parallel asks start before the first answer
        if step.seat in absent or is_late:
            return Outcome("failed(server)", reason="no answer")
        if not step.ask.schema:
            return Outcome("ok", f"Words of {step.seat} in {step.ask.key}.", served_by="sample")
        reply: Any = example_value(step.ask.schema, agree, f"words of {step.seat}")
        if step.reply:
            reply = step.reply.rehearse(reply, options, agree=agree, n=n)
        return Outcome("ok", json.dumps(reply), served_by="sample")

    return carry_out


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in build_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
