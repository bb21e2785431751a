"""Documentation: generated pages are current, examples run, links work."""

from __future__ import annotations

import ast
import html
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from rich.text import Text

import make_docs
import make_terminal
import site_pages
from council import events as ev
from council.doors.cli.ask import ask_command
from council.doors.cli.ci_log import CI_VARIABLES
from council.doors.cli.management import management_group
from council.doors.cli.params import COMMAND_HELP, CURRENT_COMMANDS, OLD_WORDS
from council.engine.council import Council
from council.engine.layout import STATE_DESCRIPTIONS
from council.settings.catalogue import catalogue
from tests.fork_server import PYTHON_PATH, command_path
from tests.paths import ROOT
from tests.vendor_trap import VendorTrap, vendor_trap

PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "RELEASING.md", "SECURITY.md", "benchmarks/README.md", *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]  # fmt: skip
PROTOCOL_PAGE = (ROOT / "docs" / "writing-a-protocol.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def fences(text: str, info: str) -> list[str]:
    return [found["body"] for found in FENCE.finditer(text) if found["info"] == info]


def prose(text: str) -> str:
    return FENCE.sub("", text)


@cache
def tracked() -> list[Path]:
    """Return the tracked files, or all files of the main folders outside a repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        names = [path for part in ("src", "tests", "docs", "scripts", "benchmarks", ".ci") for path in (ROOT / part).rglob("*")]  # fmt: skip
    return [path for path in names if path.is_file() and path.suffix not in (".png", ".gif", ".pyc")]


# Generated pages


def test_generated_pages_are_current() -> None:
    assert make_docs.stale() == [], "run python scripts/make_docs.py"


@pytest.mark.behaviour("14-promises-have-proofs")
def test_every_promise_has_required_behaviours_and_suites_that_passed() -> None:
    known = tomllib.loads((ROOT / "benchmarks" / "reliability.toml").read_text(encoding="utf-8"))
    results = json.loads((ROOT / "benchmarks" / "reliability.json").read_text(encoding="utf-8"))
    rows = tomllib.loads((ROOT / "tests" / "behaviours.toml").read_text(encoding="utf-8"))["row"]
    suites = [suite["name"] for suite in known["suite"]]
    for promise in known["promise"]:
        assert promise["behaviours"]
        assert set(promise["behaviours"]) <= {row["id"] for row in rows}
        assert set(promise["suites"]) <= set(suites)
        assert [name for name in promise["suites"] if not results.get(name, {}).get("passed")] == []
    paths = [word for suite in known["suite"] for word in suite["command"].split() if "/" in word]
    assert [path for path in paths if not (ROOT / path).exists()] == []


def commands() -> Iterator[tuple[str, click.Command]]:
    def inside(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            for name, inner in command.commands.items():
                yield from inside(f"{path} {name}", inner)

    yield "council", ask_command()
    for name, command in management_group(*CURRENT_COMMANDS).commands.items():
        yield from inside(f"council {name}", command)


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_every_command_and_flag_is_documented(path: str, command: click.Command) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert path == "council" or f"# {path}\n" in page
    for option in (option for option in command.params if isinstance(option, click.Option)):
        assert option.help or option.hidden, f"{path} {option.opts[0]} has no help"
        assert f"`{option.opts[-1]}`" in page


@pytest.mark.behaviour("13-old-words")
@pytest.mark.parametrize("word", OLD_WORDS)
def test_every_word_of_an_earlier_version_is_documented_with_its_replacement(word: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"| `council {word}` | `{OLD_WORDS[word]}` |" in page


def test_every_management_word_is_a_command() -> None:
    assert set(management_group().commands) == set(COMMAND_HELP)


@pytest.mark.parametrize("kind", ev.EVENT_BY_TAG.values(), ids=list(ev.EVENT_BY_TAG))
def test_an_event_docstring_names_only_its_fields(kind: type[ev.Event]) -> None:
    named = re.findall(r"`(\w+)`", kind.__doc__ or "")
    assert kind.__doc__
    assert set(named) <= set(kind.__slots__)


# Environment variables

VARIABLE = re.compile(r"_?[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
# Constants that look like variables: names of enums and errors, variables that Council sets for git and for agents, and
# the one that Bash sets for completion.
NOT_READ = {
    "_API_KEY", "O_PATH", "COMP_TYPE",
    "HTTP_REQUEST", "LIST_MARKER", "LOCAL_CANDIDATE", "RECORD_LAYER_FAILURE", "SHIPPED_PROTOCOLS", "SO_PEERCRED", "WRONG_VERSION_NUMBER",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "GOOGLE_GENAI_USE_GCA", "LC_ALL", "LC_CTYPE",
    "PYTHON_KEYRING_BACKEND", "CLAUDE_CODE_MAX_RETRIES", "GEMINI_CLI_NO_RELAUNCH", "GEMINI_SYSTEM_MD",
}  # fmt: skip
READ = re.compile(r"(?:environ|env)(?:\.get\(|\[)[\"']([A-Z_]+)[\"']|[\"']([A-Z_]+)[\"'] in (?:os\.)?env")


@cache
def variables_in_code() -> dict[str, str]:
    """Return each environment variable that the code may read, with one of its places."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "src" / "council").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        read = {name for pair in READ.findall(source) for name in pair if name}
        constants = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant) and isinstance(node.value, str)}  # fmt: skip
        named = {text for text in constants if VARIABLE.fullmatch(text)}
        found |= {name: path.name for name in (named | read) - NOT_READ if not name.startswith("GIT_")}
    return found


@pytest.mark.behaviour("13-docs-environment")
def test_every_environment_variable_of_the_code_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    needed = {**variables_in_code(), **{name: "models.toml" for row in catalogue().providers.values() for name in row.get("api_key_env", [])}}  # fmt: skip
    assert {"COUNCIL_DATA", "OLLAMA_HOST", "TERM", "ANTHROPIC_API_KEY"} <= needed.keys()
    system = {"PATH", "HOME"}
    assert {name: place for name, place in needed.items() if f"`{name}`" not in page and name not in system} == {}


@pytest.mark.behaviour("13-docs-environment")
def test_every_documented_variable_is_one_that_the_code_reads() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    by_system = {
        "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "NAME_API_KEY", "OPENROUTER_API_KEY", "DISPLAY",
        *CI_VARIABLES,
    }  # fmt: skip  # of Python, of data files, of the table of CI systems
    documented = set(re.findall(r"^\| `(_?[A-Z][A-Z0-9_]+)`", page, re.MULTILINE))
    assert documented - by_system <= variables_in_code().keys()


def test_troubleshooting_names_only_states_that_exist() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:failed|skipped)\(\w+\)|timed_out)`", page))
    assert {"failed(auth)", "failed(rate)", "timed_out"} <= named <= set(STATE_DESCRIPTIONS)


# Examples


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The files of the page about writing a protocol, laid out like an installed package."""
    folder = tmp_path / "second-opinion"
    for found in FENCE.finditer(PROTOCOL_PAGE):
        if title := re.search(r'title="([^"]+)"', found["info"]):
            path = folder / title[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(found["body"], encoding="utf-8")
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = folder / "second_opinion-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = project["entry-points"]["council.protocols"]
    lines = [f"{name} = {place}" for name, place in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[council.protocols]", *lines, ""]))
    return folder


@pytest.fixture
def trap() -> Iterator[VendorTrap]:
    with vendor_trap() as trap:
        yield trap


def shell(command: str, folder: Path) -> str:
    env = {**os.environ, "PATH": command_path(), "PYTHONPATH": os.pathsep.join([str(folder), PYTHON_PATH])}
    done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.behaviour("30-examples-ask-no-vendor")
def test_the_example_protocol_runs_as_documented(example: Path, trap: VendorTrap) -> None:
    for block in fences(PROTOCOL_PAGE, "console"):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = step.splitlines()
            printed = iter(shell(command, example).splitlines())
            for line in (line for line in shown if line != "…"):
                assert any(line == output.strip() for output in printed), f'"{line}" is not what `{command}` printed'


@pytest.mark.behaviour("30-examples-ask-no-vendor")
def test_the_example_tests_pass_as_documented(example: Path, trap: VendorTrap) -> None:
    assert "4 passed" in shell(f'"{sys.executable}" -m pytest -q -p no:cacheprovider --rootdir . test_second_opinion.py', example)  # fmt: skip


def test_the_page_lists_exactly_the_public_verbs() -> None:
    named = {name: value for name, value in vars(Council).items() if not name.startswith("_")}
    public = {name for name, value in named.items() if not isinstance(value, property)}
    rows = set(re.findall(r"^\| `[^`]*council\.(\w+)\(", PROTOCOL_PAGE, re.MULTILINE))
    assert rows == public


# README and links


def test_the_two_readme_commands_are_single_lines() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = fences(readme, "sh")
    assert [block.count("\n") for block in blocks] == [1, 1]


@pytest.mark.behaviour("13-docs-links")
@pytest.mark.parametrize("page", PAGES)
def test_relative_links_exist(page: str) -> None:
    here = ROOT / page
    for link in LINK.findall(prose(here.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (here.parent / path) if path else here
        assert target.exists(), f"{page} links to {link}"
        assert not heading or heading in headings(target), f"{page} links to {link}"


@pytest.mark.behaviour("13-docs-links")
def test_the_source_of_every_required_behaviour_is_a_section_of_a_page() -> None:
    rows = tomllib.loads((ROOT / "tests" / "behaviours.toml").read_text(encoding="utf-8"))["row"]
    missing = []
    for source in sorted({row["source"] for row in rows}):
        page, _, heading = source.partition("#")
        if not (ROOT / page).is_file() or heading not in headings(ROOT / page):
            missing.append(source)
    assert missing == []


def headings(page: Path) -> set[str]:
    """Return the heading anchors of a page, as GitHub generates them."""
    titles = re.findall(r"^#+ (.+)$", prose(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize(("picture", "word"), [("answer.svg", "Outcome"), ("terminal-live.svg", "adversarial")])
def test_a_picture_of_the_terminal_loads_nothing_and_shows_the_command_and_its_run(picture: str, word: str) -> None:
    svg = (ROOT / "docs" / picture).read_text(encoding="utf-8")
    assert not re.findall(r"@font-face|@import|href=|src=|url\((?!#)", svg)
    assert word in svg and "Redis" in svg


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("one\r\ntwo\x1b[1A\rnew", ["new", "two"]),
        ("old text\r\x1b[2Knew\r\n", ["new"]),
        ("a\r\nb\r\nc\x1b[2A\r\x1b[J", []),
        ("\x1b[1mbold\x1b[0m plain\x1b[?25l", ["bold plain"]),
        ("12345678901", ["1234567890", "1"]),
    ],
)
def test_the_picture_shows_the_screen_after_all_movements(written: str, shown: list[str]) -> None:
    screen = make_terminal.Screen(10)
    screen.feed(written)
    assert [line.plain for line in screen.lines()] == shown


def test_a_note_explains_the_lines_up_to_the_next_note_without_blank_lines_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    notes = [{"at": "$", "text": "question"}, {"at": "Trust", "text": "trust"}]
    monkeypatch.setattr(make_terminal, "SCRIPT", {"note": notes})
    lines = [Text(line) for line in ("$ council", "", "Yes.", "", "────", "Trust: LOW", "because")]
    assert make_terminal.find_notes(lines) == [
        make_terminal.Note("question", 0, 2),
        make_terminal.Note("trust", 5, 6),
    ]


def test_the_picture_of_an_answer_has_every_note() -> None:
    svg = (ROOT / "docs" / "answer.svg").read_text(encoding="utf-8")
    shown = " ".join(html.unescape(line) for line in re.findall(r"<tspan[^>]*>([^<]*)</tspan>", svg))
    assert [note["text"] for note in make_terminal.SCRIPT["note"] if note["text"] not in shown] == []


# Built from parts, so that this file does not match itself.
MACHINE = re.compile("|".join(rf"(?<![\w.]){re.escape('/' + folder)}/" for folder in ("wo" + "rk", "ho" + "me", "ro" + "ot", "Us" + "ers")))  # fmt: skip
REGISTRY = re.compile("|".join(re.escape(host) for host in ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.")))


def test_no_file_contains_a_local_path() -> None:
    assert [(path.name, found[0]) for path in tracked() if (found := MACHINE.search(text_of(path)))] == []


def test_no_file_names_a_package_registry() -> None:
    assert [(path.name, found[0]) for path in tracked() if (found := REGISTRY.search(text_of(path)))] == []


# The site

DOCS = ROOT / "docs"
SITE_PAGES = set(site_pages.PAGES.values()) | {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}


def nav_pages() -> list[str]:
    """Return the pages in the navigation of the site, in order."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return re.findall(r": (\S+\.md)$", nav, re.MULTILINE)


@pytest.mark.behaviour("13-docs-links")
def test_every_page_is_in_the_navigation_of_the_site_once() -> None:
    assert sorted(nav_pages()) == sorted(SITE_PAGES)


@pytest.mark.behaviour("13-docs-links")
def test_links_of_the_site_lead_to_its_pages() -> None:
    read = site_pages.rewrite_links(
        "[a](docs/cli.md#exit-codes) [b](CONTRIBUTING.md) [c](https://example.org)", "README.md"
    )
    assert read == "[a](cli.md#exit-codes) [b](contributing.md) [c](https://example.org)"
    assert site_pages.rewrite_links("[a](../README.md) `[b](../x.md)`", "docs/cli.md") == "[a](index.md) `[b](../x.md)`"
    assert site_pages.rewrite_links("```md\n[a](../README.md)\n```", "docs/cli.md") == "```md\n[a](../README.md)\n```"


def test_every_page_outside_docs_has_links_that_the_checker_sees() -> None:
    assert {path for path in site_pages.PAGES if path.endswith(".md")} <= {*PAGES, "CHANGELOG.md", "examples/README.md"}


@pytest.mark.behaviour("13-docs-links")
def test_the_site_builds_without_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs")
    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    front = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="quickstart/"' in front
    assert (tmp_path / "site" / "contributing" / "index.html").is_file()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
