"""Every command of README.md and docs/ runs: in a small project, with fake keys and a fake endpoint for three vendors.

`sh` fences are the two commands of .ci/run. Other commands are in `bash` fences, or in `console` fences after `$ `.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from PIL import Image

import council
from council.doors.cli import _load_command
from council.doors.cli.params import split_command
from council.errors import CouncilError
from council.settings.catalogue import catalogue
from tests.acceptance.judges.project import FILES
from tests.acceptance.workers import wait_for_worker_exit
from tests.fake_provider import FakeProvider, Seen
from tests.fork_server import command_path
from tests.packet.conftest import commit, git, write
from tests.paths import ROOT
from tests.search.test_local_files import pdf
from tests.vendor_trap import VendorTrap, vendor_trap

PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`(council (?!RUN`)[^`\n]+)`(?!`)")  # `council RUN` is the name of a file in a packet
QUESTION = "Should the archive move to cold storage?"

# Commands that are not run here, by their beginning. Those of `council` are still parsed.
NOT_RUN = {
    "git clone": "needs the network; the README test clones the checkout",
    "git pull": "needs the network",
    "pip ": "needs the network; the README test and the wheel test install",
    "pipx ": "needs the network",
    "uv ": "needs the network",
    "council\n": "asks at a terminal; see tests/acceptance/judges/test_bare.py",
    "council open": "serves a page until it is stopped; see tests/doors/web/test_open.py",
    "council serve": "runs until it is stopped; see tests/doors/web",
    "council mcp": "runs until it is stopped; see tests/doors/mcp",
    "council chat": "is a conversation; its own tests type into a terminal",
    "council --seat skeptic=human": "a person answers; see tests/acceptance/test_people.py",
    "council --search tavily": "needs the service; see tests/search",
    "council doctor --deep": "also asks the embedded model; see tests/runs",
    "council keys rm": "needs a keyring; see tests/settings",
    "sh ci/review.sh": "see tests/ci",
    "benchmarks/run": "takes minutes; tests/test_calls.py runs some rows",
    "python benchmarks/secret_filter.py": "it installs detect-secrets",
    "python benchmarks/reliability.py": "the full suites take long; their short parts are in the default set",
    "pytest ": "this is pytest",
    "llm ": "needs the package llm; see tests/doors/test_chat_clients.py",
    "aider ": "needs the package aider",
    "export OPENAI_API_BASE": "for aider",
}
# Pages whose commands another test runs.
RUN_ELSEWHERE = {
    "docs/web.md": "tests/doors/web/test_docs.py",
    "docs/writing-a-protocol.md": "tests/test_docs.py",
    "docs/extending.md": "tests/acceptance/test_extensions.py",
}


THIRD_PARTY = ("docs/writing-a-protocol.md", "docs/extending.md")  # with the flags and protocols of an example package


@dataclass(frozen=True)
class Command:
    page: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def fences(page: str, *kinds: str) -> Iterator[tuple[int, str, str]]:
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        kind = found["info"].partition(" ")[0]
        if kind in kinds:
            yield text.count("\n", 0, found.start()) + 2, kind, found["body"]


def commands_of(page: str) -> Iterator[Command]:
    for first, kind, body in fences(page, "bash", "console"):
        joined = body.replace("\\\n", "  ")
        for number, line in enumerate(joined.splitlines(), first):
            if kind == "console" and not line.startswith("$ "):
                continue
            if text := line.removeprefix("$ ").strip():
                yield Command(page, number, text)


COMMANDS = [command for page in PAGES if page not in RUN_ELSEWHERE for command in commands_of(page)]
BY_TEXT = {re.sub(r"\s+# .*", "", command.text): command for command in reversed(COMMANDS)}


def reason_not_to_run(text: str) -> str:
    return next(
        (
            reason
            for start, reason in NOT_RUN.items()
            if re.search(rf"(^|[&|;] ?|\w=\S+ ){re.escape(start)}", f"{text}\n")
        ),
        "",
    )


RUN_HERE = [command for text, command in BY_TEXT.items() if not reason_not_to_run(text)]


# Parsing


def parse(words: list[str]) -> None:
    """Parse a command line of `council` like the command does, without running it."""
    name, rest = split_command(words)
    command: click.Command = _load_command(name)
    context = command.make_context("council", list(rest))
    while isinstance(command, click.Group) and (left := [*context._protected_args, *context.args]):
        found, inner, rest = command.resolve_command(context, left)
        assert inner is not None
        command, context = inner, inner.make_context(found, list(rest), parent=context)


def council_words(text: str) -> list[list[str]]:
    """Return the arguments of each `council` in a shell command."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    parts: list[list[str]] = [[]]
    for word in lexer:
        if set(word) <= set("|&;<>()"):
            parts.append([])
        else:
            parts[-1].append(word)
    return [part[part.index("council") + 1 :] for part in parts if "council" in part[:2]]


def parse_problem(text: str, *, is_complete: bool = True) -> str:
    """Return why the command line does not accept a command, or "". An incomplete one may lack arguments and values."""
    for words in council_words(text):
        try:
            parse(words)
        except click.exceptions.Exit:
            pass  # --help and --version
        except click.BadParameter as error:
            if is_complete:
                return error.format_message()
        except (click.ClickException, CouncilError) as error:
            return error.format_message() if isinstance(error, click.ClickException) else str(error)
    return ""


@pytest.mark.behaviour("13-docs-commands-run")
def test_every_command_of_the_docs_is_one_that_the_command_line_knows() -> None:
    commands = [command for page in PAGES if page not in THIRD_PARTY for command in commands_of(page)]
    problems = {str(command): problem for command in commands if (problem := parse_problem(command.text))}
    assert problems == {}


@pytest.mark.behaviour("13-docs-commands-run")
def test_every_command_in_a_sentence_is_one_that_the_command_line_knows() -> None:
    """A synopsis such as `council runs [list|show]` and the flags of a third-party protocol are no commands."""
    problems = {}
    for page in (page for page in PAGES if page not in (*THIRD_PARTY, "docs/cli.md")):
        text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
        for command in (command for command in INLINE.findall(text) if not set("[{|·") & set(command)):
            if problem := parse_problem(command.replace("…", "x"), is_complete=False):
                problems[f"{page}: {command}"] = problem
    assert problems == {}


def test_every_exception_is_used_and_has_a_reason() -> None:
    assert [start for start in NOT_RUN if not any(reason_not_to_run(text) == NOT_RUN[start] for text in BY_TEXT)] == []
    assert all((ROOT / test).is_file() for test in RUN_ELSEWHERE.values())


def test_no_command_hides_in_a_text_fence() -> None:
    hidden = [
        f"{page}:{line}"
        for page in PAGES
        if page != "docs/cli.md"
        for line, _, body in fences(page, "text", "")
        if re.search(r"^(\$ )?council ", body, re.MULTILINE)
    ]
    assert hidden == []


# Running


@pytest.fixture
def trap() -> Iterator[VendorTrap]:
    with vendor_trap() as trap:
        yield trap


VENDORS = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
MANY = "\n".join(f'[[seats]]\nname = "{name}"\n' for name in ("first", "second", "third"))


def vote(seen: Seen) -> str | None:
    """Return the vote of a judge; None for the verdict of other typed replies."""
    return "PASS" if "findings" in (seen.schema or {}).get("properties", {}) else None


class Sandbox:
    """A home folder with a configuration, a small repository in it, and two runs: one finished, one to resume."""

    def __init__(self, place: Path, provider: FakeProvider, trap: VendorTrap) -> None:
        """`trap` gets every request that does not go to the endpoint of this test."""
        self.home, self.project = place / "home", place / "home" / "project"
        self.project.mkdir(parents=True)
        self.provider, self.trap = provider, trap
        self._write_config()
        self._write_project()
        kept = ("LANG", "LC_ALL", "TMPDIR", "COUNCIL_CACHE")
        self.env = {name: os.environ[name] for name in kept if name in os.environ} | {
            **{variable: f"fake-{name}-key" for name, variable in VENDORS.items()},
            "PATH": command_path(),
            "HOME": str(self.home), "COUNCIL_CONFIG": str(self.home / "endpoint.toml"), "BROWSER": "true", "EDITOR": "true", "COUNCIL_WORKER_IDLE": "0.1",
            **self.trap.proxies(),
            "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
        }  # fmt: skip
        self.provider.models = tuple(id_ for model in catalogue().models.values() for id_ in model.ids.values())
        self.provider.values = {"verdict": vote, "findings": []}
        self.finished = self._run("--protocol", "collaborative")
        self.review = self._run("validate", "staged")

    def _write_config(self) -> None:
        lines = ["[budget]", "confirm_above = 1000", "[chair]", "fallback = []"]
        for vendor in VENDORS:
            lines += [f"[providers.{vendor}]", f'base_url = "{self.provider.base(vendor)}"', "backoff = 0.01"]
        lines += ["[rosters.board]", 'seats = [{name = "cfo", lens = "cash"}, {name = "coo", lens = "people"}]']
        write(self.home, {"endpoint.toml": "\n".join(lines) + "\n"})

    def _write_project(self) -> None:
        git(self.project, "init", "-q", "-b", "main")
        (self.project / ".git" / "hooks").mkdir()
        files = FILES | {
            "questions.jsonl": '{"question": "Which queue fits us?", "answer": "none"}\n',
            "open.jsonl": '{"question": "How should we move the archive?"}\n',
            "answers.csv": "question,truth,a,b,c\n1,x,x,x,y\n2,x,y,x,x\n",
            "rows.jsonl": "".join(f'{{"id": {n}, "question": "Which queue fits us?"}}\n' for n in range(3)),
            "plan.md": "# Plan\n\n1. Move it.\n",
            ".gitignore": "*.html\n",  # an exported run is too long for the packet of a later review
            "notes.md": "Cold storage is cheap.\n",
            "many.toml": MANY,
        }
        files |= {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (ROOT / "examples").rglob("*.*") if path.suffix in (".py", ".toml", ".md")}  # fmt: skip
        files |= {f"ci/{path.name}": path.read_text(encoding="utf-8") for path in (ROOT / "ci").iterdir()}
        files |= {"src/auth/login.py": "def login(name):\n    return name\n", "docs/guide.md": "# Guide\n\nResume.\n"}
        for name in ("chart.png", "mockup.png"):
            Image.new("RGB", (40, 30), "red").save(self.project / name)
        (self.project / "brief.pdf").write_bytes(pdf("Two columns, no animation."))
        commit(self.project, files, "Begin")
        git(self.project, "update-ref", "refs/remotes/origin/main", "HEAD")
        git(self.project, "switch", "-q", "-c", "feature")
        price = (
            "def price(items):\n    total = 0\n    for item in items:\n        total -= item.price\n    return total\n"
        )
        commit(self.project, {"src/price.py": price}, "Add the price of a basket")
        commit(self.project, {"src/price.py": price.replace("-=", "+=")}, "Fix the price of a basket")
        for n in range(3):
            commit(self.project, {f"src/step{n}.py": f"step = {n}\n"}, f"Step {n}")
        write(self.project, {"src/app.py": "print('staged')\n"})
        git(self.project, "add", "src/app.py")
        write(self.project, {"README.md": "# Shop\n\nSells more.\n"})

    def _run(self, *words: str) -> str:
        done = self.shell(shlex.join(["council", "--json", *words, *([] if "validate" in words else [QUESTION])]))
        report: dict[str, Any] = json.loads(done.stdout)
        return str(report["run"])

    def _interrupt_a_run(self) -> str:
        """Make a run whose chair failed; the next request to the chair is answered."""
        lines = self.home / "chair.toml"
        lines.write_text('["merge/chair"]\nfail = "server"\n', encoding="utf-8")
        run = self._run("--protocol", "triad", "--seat", f"chair=scripted:{lines}")
        lines.write_text('["merge/chair"]\ntext = "Move it."\n', encoding="utf-8")
        return run

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command}"], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def run_documented(self, command: Command) -> str:
        """Run a command of the docs; return the problem, or ""."""
        word = command.text.split()[1] if " " in command.text else ""
        run = (
            self._interrupt_a_run()
            if word == "resume"
            else self.review
            if "--fail-on" in command.text
            else self.finished
        )
        if command.text.startswith("council skill rm"):
            self.shell("council skill install")
        if command.text.startswith("council config init"):  # `council init` of another page has written it
            (self.home / ".config" / "council" / "config.toml").unlink(missing_ok=True)
        asked_before = len(self.trap.requests)
        text = re.sub(r"\bRUN\b", run, command.text).replace('"…"', f'"{QUESTION}"').replace("…", "x")
        done = self.shell(text)
        if asked := self.trap.requests[asked_before:]:
            return f"{command}: asked a vendor that is not its endpoint: {asked}"
        if done.returncode == 0 and "Traceback" not in done.stderr:
            return ""
        return f"{command}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}"


def is_destructive(text: str) -> int:
    """Return the rank of a command that removes things: it runs after the others, and `rm` of the folders runs last."""
    return 2 if text.startswith("rm ") else int(bool(re.search(r" (rm|prune)\b", text)))


GROUPS = 4


def pages_by_group() -> list[list[str]]:
    """Divide the pages into groups with about the same number of commands."""
    counts = Counter(command.page for command in RUN_HERE)
    groups: list[list[str]] = [[] for _ in range(GROUPS)]
    for page, _ in counts.most_common():
        min(groups, key=lambda pages: sum(counts[page] for page in pages)).append(page)
    return groups


@pytest.mark.behaviour("13-docs-commands-run")
@pytest.mark.parametrize("pages", pages_by_group(), ids=lambda pages: Path(pages[0]).stem)
def test_every_command_of_the_docs_runs(
    pages: list[str], tmp_path: Path, provider: FakeProvider, trap: VendorTrap
) -> None:
    sandbox = Sandbox(tmp_path, provider, trap)
    mine = [command for command in RUN_HERE if command.page in pages]
    mine.sort(key=lambda command: (is_destructive(command.text), pages.index(command.page), command.line))
    problems = [problem for command in mine if (problem := sandbox.run_documented(command))]
    wait_for_worker_exit(sandbox.home / ".local" / "share" / "council")
    assert problems == [], "\n\n".join(problems)


# Python


def python_blocks() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for line, _, body in fences(page, "python", "py"):
            yield f"{page}:{line}", body


def test_every_python_block_is_valid() -> None:
    for where, body in python_blocks():
        compile(body, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


@pytest.mark.behaviour("13-docs-commands-run")
def test_the_python_blocks_run(
    tmp_path: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, trap: VendorTrap
) -> None:
    """Run each complete block: one that uses council, is no file of an example, and leaves nothing out."""
    sandbox = Sandbox(tmp_path, provider, trap)
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    for name in ("COUNCIL_DATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name)
    monkeypatch.chdir(sandbox.project)
    complete = [
        (where, body) for where, body in python_blocks()
        if re.search(r"\bcouncil\.", body) and "…" not in body and where.partition(":")[0] not in RUN_ELSEWHERE
    ]  # fmt: skip
    assert len(complete) >= 4
    for where, body in complete:
        code = compile(body, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        result = eval(code, {"__name__": "__main__", "council": council})
        if inspect.iscoroutine(result):
            asyncio.run(result)
