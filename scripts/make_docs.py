"""Write the documentation that is made from the code: python scripts/make_docs.py. With --check: say what is stale.

docs/cli.md comes from the click commands, docs/events.md from the event classes, docs/faults.md from the retry table,
docs/protocols.md from scripted runs of the protocols themselves, and the file tree of README.md from the first sentence of
every module.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import dataclasses
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from council import events as ev
from council import protocols
from council.calling.changes import CHANGES
from council.calling.limits import FEWER, START
from council.calling.table import CHAIR, TABLE
from council.convene import Convener
from council.doors.cli.ask import convening
from council.doors.cli.manage import management
from council.doors.cli.words import BUILT, COMMON, PLANNED, owned_flags
from council.errors import UsageError
from council.members.scripted import Scripted
from council.minutes import Minutes
from council.money import UNPAID
from council.planning import Plan
from council.render.mermaid import mermaid
from council.render.states import in_words
from council.rules import exits
from council.types import Json

ROOT = Path(__file__).parents[1]
MADE = "<!-- Made by scripts/make_docs.py: change the code it is made from, not this page. -->"
TREE = ("<!-- tree -->", "<!-- /tree -->")


# The command line

EXITS = {
    exits.COMPLETE: "the last step of the protocol was done, whoever was absent (the report says who)",
    exits.FAILED: "nothing was said at all, or something broke",
    exits.USAGE: "wrong words, flags or files; nothing was spent",
    exits.PARTIAL: "a person has to look: the chair is gone (the answer is a digest), too few seats were left, the families DISAGREE, "
    "a review had a coverage hole, or a gate is inconclusive",
    exits.NO_ACCESS: "nobody could answer, and every reason is a key, a login or a quota",
    exits.BUDGET: "stopped by the budget, with what was said kept; `council resume --max-cost` goes on",
    exits.GATED: "complete, and what `--fail-on` asks for was found",
    exits.INTERRUPTED: "interrupted or cancelled; `council resume` goes on",
}


def cli_page() -> str:
    sections = [
        "# The command line",
        MADE,
        "Flags may stand anywhere before `--`. A first word that is one of the commands below is that command; all else convenes.",
        "## Convening",
        "```text\ncouncil [FLAGS] [ask|validate|brainstorm|research] WORDS…\n```",
        *_convening_sections(),
        "## Commands",
        "Every command has `-h` and `--help`. Where a command takes a RUN and none is given, it is the newest one of this folder; "
        "`resume` takes the newest unfinished one, and `runs fsck` checks all there are.",
        *(part for word in BUILT for part in _command_sections(_commands()[word], f"council {word}")),
        "## Exit codes",
        _table(("code", "what happened"), [(str(code), what) for code, what in sorted(EXITS.items())]),
        "## Words that are reserved",
        "These are commands to come. They never start a run: each says that it is not built yet, and how to ask it as a question.",
        ", ".join(f"`{word}`" for word in PLANNED),
    ]
    return "\n\n".join(sections) + "\n"


def _commands() -> Mapping[str, click.Command]:
    return management().commands


def _convening_sections() -> list[str]:
    options = {option.name: option for option in convening().params if isinstance(option, click.Option)}
    common = [*(options[flag["name"]] for flag in COMMON), options["version"]]
    sections = ["### Flags of every council", _flag_table(common)]
    for protocol in dict.fromkeys(flag["owners"][0] for flag in owned_flags()):
        own = [options[flag["name"]] for flag in owned_flags() if flag["owners"][0] == protocol]
        sections += [f"### Flags of {protocol}", _reach(protocol), _flag_table(own)]
    return sections


def _reach(protocol: str) -> str:
    return f"One of these chooses the protocol {protocol}."


def _command_sections(command: click.Command, path: str, level: int = 3) -> list[str]:
    arguments = [argument.make_metavar(click.Context(command)) for argument in _of(command, click.Argument)]
    usage = " ".join([path, *arguments, *(["[FLAGS]"] if command.params else [])])
    sections = [f"{'#' * level} {path}", _sentence(command.help or ""), f"```text\n{usage}\n```"]
    if options := _of(command, click.Option):
        sections.append(_flag_table(options))
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            sections += _command_sections(inner, f"{path} {name}", level + 1)
    return sections


def _of(command: click.Command, kind: type[Any]) -> list[Any]:
    return [parameter for parameter in command.params if isinstance(parameter, kind)]


def _flag_table(options: Iterable[click.Option]) -> str:
    rows = [(", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts)), _value(option), _help(option)) for option in options]  # fmt: skip
    return _table(("flag", "value", "what it does"), rows)


def _value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    if isinstance(option.type, click.Choice):
        return " or ".join(f"`{choice}`" for choice in option.type.choices)
    return option.metavar or option.type.name.upper().removesuffix(" RANGE")


def _help(option: click.Option) -> str:
    if not option.help:
        raise UsageError(f'the flag "{option.opts[0]}" has no help text, so it cannot be documented: write one')
    return option.help + (f" Default: {option.default}." if option.show_default else "")


# The events


def events_page() -> str:
    sections = [
        "# The events",
        MADE,
        "Everything that can be seen of a run is one of these, in order. `council --jsonl` and `council replay --jsonl` print them, one "
        "object a line; `council.stream` yields them; the terminal, the report and the diagrams are folds over them.",
        f"Each line begins with `seq` (its number in the run), `at` (seconds since the epoch) and `type`:\n\n```json\n{_example()}\n```",
        f"The types {_passing()} are shown and never kept: they have `seq` 0, and a replay makes the pieces of an answer anew.",
        _table(
            ("type", "class", "what happened"),
            [(f"`{tag}`", f"`{kind.__name__}`", _doc(kind)) for tag, kind in ev.BY_TAG.items()],
        ),
        *(f"## {tag}\n\n{_doc(kind)}\n\n{_fields(kind)}" for tag, kind in ev.BY_TAG.items()),
    ]
    return "\n\n".join(sections) + "\n"


def _example() -> str:
    entry = ev.Entry(12, 1767225600.0, ev.Noted("leading position: beta", "it names its evidence"))
    return json.dumps(entry.as_json(), ensure_ascii=False)


def _passing() -> str:
    return " and ".join(f"`{kind.type}`" for kind in ev.PASSING)


def _fields(kind: type[Any]) -> str:
    comments = _field_comments(kind.__name__)
    rows = [(f"`{part.name}`", f"`{part.type}`", comments.get(part.name, "")) for part in dataclasses.fields(kind)]
    return _table(("field", "type", ""), rows)


def _field_comments(name: str) -> dict[str, str]:
    """What stands behind a field in the source: the one place where it is said."""
    source = Path(ev.__file__).read_text(encoding="utf-8")
    lines = source.splitlines()
    (body,) = [node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
    fields = [node for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    return {field.target.id: lines[field.lineno - 1].partition("  # ")[2] for field in fields if isinstance(field.target, ast.Name)}  # fmt: skip


def _doc(kind: type[Any]) -> str:
    return " ".join((kind.__doc__ or "").split())


# The protocols


@dataclass(frozen=True, slots=True)
class Shown:
    """A protocol on the page: what is said of it, and the runs that are drawn (a caption, what is said in them, their options)."""

    name: str
    paragraph: str
    runs: tuple[tuple[str, Json, Json], ...] = (("", {}, {}),)


SURE = {"statement": "Do it.", "stance": "for", "choice": "do it", "confidence": "HIGH", "evidence": ""}


def claiming(stance: str) -> Json:
    claim = {"topic": "doing it", "stance": stance, "text": "It pays.", "confidence": 0.9, "sources": []}
    return {"response": "Do it.", "claims": [claim], "sources": [], "confidence": 0.9, "areasOfUncertainty": []}


SIDES = [{"position": "for", "case": "It pays."}, {"position": "against", "case": "It does not."}]
BOTH_SIDES = {"answer": "It depends.", "disagreements": [{"disagreement": "D1", "because": "", "sides": SIDES}]}

SHOWN = (
    Shown(
        "collaborative",
        "For building something: plans, designs, ideas. The seats answer apart, so that nobody leans on the first voice in the room; then each reads the "
        "other two and writes again; then the chair writes the answer from what emerged, ruling where the seats still differ. It is what the council "
        "does when the words ask for nothing else, or begin with `collaborative council:`.",
    ),
    Shown(
        "adversarial",
        "For choosing and checking: which is better, is this true, what is wrong with it. The seats answer apart. The chair's triage names the leading draft "
        "and holds the drafts against four criteria; only if all four are met is there consensus, and the attack is skipped. Otherwise everyone but the leader's author tries to "
        "break the leading draft, and the chair rules on every point. The outcome is SURVIVED, MODIFIED or OVERTURNED, and the confidence is "
        "computed from the points that landed. Words such as “which is better” choose it, and so does the prefix `adversarial council:`.",
        (
            ("Where the drafts differ, the leader's author sits out and the others attack:", {}, {}),
            ("Where the triage finds consensus on all four counts, nobody attacks:", {"triage/chair": {"agree": True}}, {}),
        ),
    ),
    Shown(
        "triad",
        "For a quick second and third look. The seats answer apart, each with a section that doubts its own answer, and the chair merges them once. "
        "Four calls, one after the other only once; no seat reads another's draft. Choose it with `--protocol triad`.",
    ),
    Shown(
        "advisors",
        "For a decision: an advisor for each way of looking at it, and a referee who rules. They speak at once, in turn or in debate, in one to five rounds; "
        "this is `--flow debate`, with its three rounds of opening, rebuttal and final position. Any of `--flow`, `--rounds`, `--tier` and `--roster` chooses it. "
        "[Advisors](advisors.md) has the rest.",
        (
            ("Every round is held, and the referee tells how positions moved:", {}, {"flow": "debate"}),
            (
                "With `--early-stop`, where all are sure of one thing after the first round:",
                {f"r1/{name}": {"reply": SURE} for name in ("pragmatist", "visionary", "skeptic")},
                {"flow": "debate", "early_stop": True},
            ),
        ),
    ),
    Shown(
        "general",
        "For what has to be looked up. The chair writes queries, and what they find is one numbered context for everybody. The seats answer apart, each with its claims; "
        "rules find who contradicts whom, and only those answer each other once; then the chair writes the answer, and the code checks what it cites and that no "
        "disagreement is missing. Any of `--search`, `--no-search`, `--spec-review` and `--no-deliberate` chooses it. [General](general.md) has the rest.",
        (
            (
                "Where two contradict each other, those two are asked once more:",
                {
                    "r1/generalist": {"reply": claiming("supports")},
                    "r1/skeptic": {"reply": claiming("opposes")},
                    "synthesise/chair": {"reply": BOTH_SIDES},
                },
                {"search": "files:."},
            ),
            ("If no claims contradict each other, there is no second round:", {}, {"search": "files:."}),
        ),
    ),
    Shown(
        "ranking",
        "For finding out which answer is good when you do not know whom to trust. The seats answer apart; then each reads the others' answers under labels, "
        "in an order of its own and without its own answer, and puts them in order; then the chair, who knows nobody's name either, writes one answer from the disputed "
        "points, the table and the ballots. Choose it with `--protocol ranking`; `--roster` seats up to 60. [Ranking](ranking.md) has the rest.",
    ),
)  # fmt: skip


def protocols_page() -> str:
    sections = [
        "# The protocols",
        MADE,
        "Seats, phases and calls are read off each protocol's rehearsal; the diagrams are scripted runs, folded. "
        "[Writing a protocol](writing-a-protocol.md) shows how to add one.",
        *(part for shown in SHOWN for part in asyncio.run(_protocol_sections(shown))),
    ]
    return "\n\n".join(sections) + "\n"


async def _protocol_sections(shown: Shown) -> list[str]:
    runs = [(caption, *await _scripted_run(shown.name, *how)) for caption, *how in shown.runs]
    plan = runs[0][1]
    drawings = ["\n\n".join([caption, f"```mermaid\n{mermaid(minutes)}```"]).strip() for caption, _, minutes in runs]
    return [f"## {shown.name}", shown.paragraph, _seat_table(plan), _phase_table(plan), *drawings]


async def _scripted_run(name: str, script: Json, options: Json) -> tuple[Plan, Minutes]:
    """A real run by scripted members, in a folder and a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        env = {"COUNCIL_DATA": f"{folder}/data", "XDG_CONFIG_HOME": f"{folder}/config"}
        seats = {seat.name: "scripted:" for seat in (*protocols.find(name).seats, protocols.CHAIR)}
        (Path(folder) / "council.toml").write_text('[models]\ndefault = "scripted:"\n', encoding="utf-8")
        convener = Convener(Path(folder), env, flags={"seats": seats}, members=[Scripted(script=script)])
        try:
            plan = await convener.plan(["What should we do?"], options, protocol=name)
            return plan, await convener.run(plan, lambda entry: None)
        finally:
            await convener.close()


def _seat_table(plan: Plan) -> str:
    chair = [plan.roster.chair] if plan.roster.chair else []
    rows = [(seat.name, seat.role, seat.perspective) for seat in (*plan.roster.seats, *chair)]
    return _table(("seat", "title", "strength"), rows)


def _phase_table(plan: Plan) -> str:
    rows = [(phase["name"], str(phase["calls"]), "yes" if phase["parallel"] else "") for phase in plan.phases]
    low, high = plan.calls
    calls = f"{low} calls" if low == high else f"{low} to {high} calls"
    return _table(("phase", "calls", "at once"), rows) + f"\n\nIn all {calls}; the critical path is one call per phase."


# The file tree

FOLDERS = {
    "src/council/data/prompts": "Every prompt: one folder per protocol, one file per phase (and per seat where they differ).",
    "src/council/data/layouts": "How a run is printed in full, one file per protocol.",
    "src/council/data/schemas": "The plan, the report and the error as JSON Schema.",
    "src/council/data/models.toml": "The one place where names of models live.",
    "src/council/data/triggers.toml": "Which words choose a protocol, a task, a domain.",
    "skills": "The skill for coding agents: when a council is worth it, how to run one, how to report it.",
    "ci": "What pipelines run: install, review, the hook before a push; action.yml is the action made of them.",
    "tests": "Sentences of behaviour; behaviours.toml says which demand each one proves.",
    "docs": "Reference made from the code, and how to write a protocol.",
    "benchmarks": "What it costs, as ratios that can be repeated.",
    "scripts": "What makes the generated files.",
}


def tree() -> str:
    """The package's rooms with a line each, then the folders that are not code."""
    lines = ["src/council/", *_room(ROOT / "src" / "council", 1), "  data/"]
    for place, what in FOLDERS.items():
        name = Path(place).name + ("" if Path(place).suffix else "/")
        lines.append(_line(name, what, 2 if place.startswith("src/") else 0))
    return "\n".join(["```text", *lines, "```"])


def _room(folder: Path, depth: int) -> list[str]:
    """The modules of a package, then the packages in it."""
    lines = _modules(folder, depth)
    for inner in sorted(folder.glob("*/__init__.py")):
        lines += [_line(f"{inner.parent.name}/", _first_sentence(inner), depth), *_room(inner.parent, depth + 1)]
    return lines


def _modules(folder: Path, depth: int) -> list[str]:
    return [_line(path.name, _first_sentence(path), depth) for path in sorted(folder.glob("*.py")) if path.name not in ("__init__.py", "__main__.py")]  # fmt: skip


def _line(name: str, what: str, depth: int) -> str:
    return f"{'  ' * depth + name:<24} {what}".rstrip()


def _first_sentence(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    if not doc:
        raise UsageError(f'"{path.relative_to(ROOT)}" has no docstring: say in one sentence what it is for')
    return _sentence(doc.split("\n\n")[0])


def _sentence(text: str) -> str:
    """The first one, capital letter and full stop included."""
    sentence = " ".join(text.split()).partition(". ")[0].rstrip(".")
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def readme() -> str:
    before, start, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(TREE[0])
    _, end, after = rest.partition(TREE[1])
    if not (start and end):
        raise UsageError(f"README.md has no place for the file tree: put {TREE[0]} and {TREE[1]} where it belongs")
    return f"{before}{start}\n{tree()}\n{end}{after}"


# When members fail

FAULTS = {
    "net": "no connection: address, name, TLS", "rate": "429: too many requests", "quota": "429 or 402: no money left",
    "overload": "503, 529 and the like", "server": "500",
    "cut": "502, 504, an error or the end of the stream before its terminator",
    "doubt": "a request in flight when the process stopped, and `--no-resend`",
    "stall": "no first byte in time, or no content for a while; comments are none",
    "empty": "an answer without a word", "loop": "the same words again and again; the stream is stopped early",
    "stub": "a placeholder in the place of an answer", "length": "cut at the length limit",
    "refused": "a refusal, a content filter", "schema": "a reply that does not fit its form", "size": "too long for the member",
    "model": "no such model", "auth": "401, 403", "endpoint": "something answers there, but no model does",
    "parameter": "a parameter is refused", "script": "a `scripted:` member was told to fail",
    "cli:start": "a command-line agent does not start", "cli:exit": "it ends with an error", "cli:error": "it reports an error",
    "cli:output": "its output is none", "cli:flood": "it never stops writing", "cli:silent": "it never writes",
}  # fmt: skip
CHANGED = {
    "warmer": "at another temperature", "doubled": "at twice the output", "repaired": "one turn with the validator's words",
    "shrunk": "once the material is cut to fit, which is told", "bare": "without any optional parameter, which is told",
}  # fmt: skip


def faults_page() -> str:
    rows = [
        (FAULTS[kind], str(row.retries), CHANGED.get(row.change, "as it was" if row.retries else ""), "no" if kind in UNPAID else "maybe", in_words(row.state))
        for kind, row in TABLE.items()
    ]  # fmt: skip
    assert CHANGED.keys() == CHANGES.keys()
    return (
        "\n\n".join(
            [
                "# When members fail",
                MADE,
                "One loop calls every member. What happens after a fault is decided by its kind, not by a vendor's prose:",
                _table(("what happened", "retries", "asked again", "may be paid", "the seat afterwards"), rows),
                f"The chair has {CHAIR} retries where others have one, silence excepted. When a member is used up, its fallbacks are asked, "
                "those first whose family no other seat speaks through; a family that is down comes last. The report shows who was asked "
                "for and who answered. A member that was silent, or cannot be called, is not asked again by its seat in that run.",
                "Only answers in an ok state count. One that was cut at its length limit counts, with confidence LOW, if its typed reply is "
                "whole. What a seat was not shown, because it did not fit, stands above the answer; in `validate` it is a coverage hole, and "
                "the verdict can be no better than WARN.",
                "## Clocks",
                "`[providers.X]` sets `connect` (10 s), `first_byte` (120 s; 300 s for models that think first) and `idle` (90 s without "
                "content). `--timeout` is the time a seat has in a phase, with all retries and fallbacks. While fallbacks are left, a member "
                "without a sign of life has half of it. Waiting for a free place at a provider does not count. `--grace N` leaves a seat that "
                "has not said a word behind, N seconds after the others of its phase are done.",
                "## How many calls at once",
                f"A provider begins with {START} calls at once. While all are under way, each that begins to answer makes room for one more, up to "
                f"`max_connections`. A 429 leaves {FEWER:.0%} of the places, once an episode; from then on room is won back slowly. All runs of "
                "a process share this.",
            ]
        )
        + "\n"
    )


# All of it


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|").strip() for cell in row] for row in (head, *rows)]
    filled = [number for number in range(len(head)) if number == 0 or any(row[number] for row in cells[1:])]
    shown = ["| " + " | ".join(row[number] for number in filled) + " |" for row in cells]
    return "\n".join([shown[0], "|" + "---|" * len(filled), *shown[1:]])


PAGES: dict[str, Callable[[], str]] = {
    "docs/cli.md": cli_page,
    "docs/events.md": events_page,
    "docs/faults.md": faults_page,
    "docs/protocols.md": protocols_page,
    "README.md": readme,
}


def stale() -> list[str]:
    """The pages that do not say what the code says."""
    return [name for name, page in PAGES.items() if not (ROOT / name).is_file() or (ROOT / name).read_text(encoding="utf-8") != page()]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Write the documentation that is made from the code.")
    options.add_argument("--check", action="store_true", help="write nothing; exit 1 and name what is stale")
    if not options.parse_args(argv).check:
        for name, page in PAGES.items():
            (ROOT / name).parent.mkdir(exist_ok=True)
            (ROOT / name).write_text(page(), encoding="utf-8")
        return 0
    if names := stale():
        print(f"stale: {', '.join(names)}; run python scripts/make_docs.py", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as error:
        sys.exit(f"make_docs: {error}")
