"""A package outside the tree adds members, a search provider, a protocol and a format by entry points alone."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.acceptance.helpers import Result, wait_for_exit, wait_until
from tests.acceptance.workers import wait_for_worker_exit
from tests.doors.mcp.clients import call_refused, call_tool, connect, wait_until_done
from tests.doors.web.page.browser import Browser
from tests.doors.web.page.conftest import launch_browser
from tests.fork_server import SERVERS, Process
from tests.paths import ROOT
from tests.trusted_project import trust_project
from tests.vendor_trap import VendorTrap, vendor_trap

Json = dict[str, Any]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
QUESTION = "Shall we ship?"
pytestmark = pytest.mark.behaviour("issue-11-extensions")


def page_files() -> dict[str, str]:
    """Return the files of the page by their titles."""
    titled = ((re.search(r'title="([^"]+)"', found["info"]), found["body"]) for found in FENCE.finditer(PAGE))
    return {title[1]: body for title, body in titled if title}


def install(place: Path, files: Mapping[str, str]) -> None:
    """Write the files and the metadata that `pip install` would write, and put them on the path."""
    for name, body in files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body, encoding="utf-8")
    project = tomllib.loads(files["pyproject.toml"])["project"]
    info = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    sections = ["\n".join([f"[{group}]", *(f"{name} = {at}" for name, at in rows.items())]) for group, rows in groups]
    (info / "entry_points.txt").write_text("\n".join(sections) + "\n")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the page, on the path of every process that the test starts."""
    place = tmp_path / "acme"
    install(place, page_files())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("COUNCIL_WORKER_IDLE", "0.2")
    Path("council.toml").write_text(page_files()["council.toml"], encoding="utf-8")
    trust_project()
    yield place
    wait_for_worker_exit(Path(os.environ["COUNCIL_DATA"]))


def council(*arguments: str) -> Result:
    return wait_for_exit(Process(arguments, Path.cwd(), trusts=False))


def run_in_new_interpreter(*arguments: str) -> str:
    """Run `python -m council …`, and return what it printed."""
    command = [sys.executable, "-m", "council", *arguments]
    return subprocess.run(command, text=True, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout


def run_ok(*arguments: str) -> str:
    done = council(*arguments)
    assert done.code == 0, done.out + done.err
    return done.out


# Command line


@pytest.fixture
def trap() -> Iterator[VendorTrap]:
    with vendor_trap() as trap:
        yield trap


@pytest.mark.behaviour("30-examples-ask-no-vendor")
def test_the_tests_of_the_page_pass(package: Path, trap: VendorTrap) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_acme.py"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.behaviour("30-examples-ask-no-vendor")
def test_the_page_shows_what_the_command_prints(package: Path, trap: VendorTrap) -> None:
    (block,) = (found["body"] for found in FENCE.finditer(PAGE) if found["info"] == "console")
    for step in re.split(r"^\$ council ", block, flags=re.MULTILINE)[1:]:
        command, *shown = step.splitlines()
        words = re.findall(r'"[^"]*"|\S+', command)
        printed = iter(run_in_new_interpreter(*(word.strip('"') for word in words)).splitlines())
        for line in (line for line in shown if line != "…"):
            assert any(line == output.strip() for output in printed), f'"{line}" is not what `{command}` printed'


def test_a_member_of_a_package_works_with_flags_settings_prices_and_fallbacks(package: Path) -> None:
    plan = json.loads(run_ok("--dry-run", "--json", "--seat", "alpha=acme:no", QUESTION))
    rows = {seat["name"]: seat for seat in plan["seats"]}
    assert (rows["alpha"]["model"], rows["alpha"]["vendor"]) == ("acme:no", "acme")
    assert rows["beta"]["model"] == "acme:yes"
    assert plan["cost"]["expected"] > 0, "the price is an attribute of the member"
    Path("council.toml").write_text(
        '[seats.one]\nmodel = "scripted:"\nfallback = ["acme:no"]\n[models]\ndefault = "acme:yes"\n'
        '[prices."acme:yes"]\ninput = 1000\noutput = 1000\n'
    )
    trust_project()
    costly = json.loads(run_ok("--dry-run", "--json", "--protocol", "acme-vote", QUESTION))
    assert costly["cost"]["expected"] > plan["cost"]["expected"], "the settings override the member's price"
    assert costly["seats"][0]["fallbacks"] == ["acme:no"]


def test_a_member_of_a_package_needs_its_key(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = package / "acme_council" / "member.py"
    text, count = re.subn(
        r"^class AcmeMember.*:\n", r'\g<0>    api_key_env = "ACME_KEY"\n', module.read_text(), flags=re.M
    )
    assert count == 1
    module.write_text(text)
    refused = council("--dry-run", QUESTION)
    assert refused.code != 0 and "ACME_KEY" in refused.err
    monkeypatch.setenv("ACME_KEY", "-".join(["acme", "key"]))
    assert "acme:yes" in run_ok("--dry-run", QUESTION)


def test_the_flags_of_a_protocol_choose_it_and_are_checked(package: Path) -> None:
    report = json.loads(run_ok("--json", "--threshold", "3", QUESTION))
    assert (report["protocol"], report["answer"]) == ("acme-vote", "rejected")
    for given, line in {
        ("--threshold", "9"): '--threshold "9" cannot be used: give a whole number from 1 to 3',
        ("--wording", "loud"): 'unknown wording "loud": known are short, long',
        ("--threshold", "2", "--debate"): "--debate belongs to judges and --threshold to acme-vote",
    }.items():
        done = council(*given, QUESTION)
        assert (done.code, done.out) == (2, "")
        assert line in done.err


def test_a_search_provider_of_a_package_works(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n')
    done = council("--search", "acme", "What is the best queue?")
    assert done.code == 4
    assert "set ACME_SEARCH_KEY" in done.err
    monkeypatch.setenv("ACME_SEARCH_KEY", "k")
    report = json.loads(run_ok("--json", "--search", "acme", "What is the best queue?"))
    assert any(source["url"] == "https://acme.example/handbook" for source in report["sources"])
    plan = json.loads(run_ok("--dry-run", "--json", "--protocol", "general", "What is the best queue?"))
    assert plan["options"]["search"] == "acme", "its key enables it"


def test_help_doctor_models_and_protocols_list_the_package(package: Path) -> None:
    shown = " ".join(run_ok("--help-all").split())
    assert "Flags of acme-vote: --threshold INTEGER Votes that are needed, 1 to 3. --wording [short|long]" in shown
    assert "Added by packages: acme." in shown
    assert "|html|acme]" in shown
    models = {row["member"]: row for row in json.loads(run_ok("models", "--price", "--json"))}
    assert (models["acme:no"]["vendor"], models["acme:no"]["available"]) == ("acme", True)
    assert models["acme:yes"]["price"]["output"] == "2.0"
    (row,) = [row for row in json.loads(run_ok("protocols", "--json")) if row["name"] == "acme-vote"]
    assert (row["package"], row["seats"], row["calls"]) == (
        "acme-council",
        ["one", "two", "three"],
        {"min": 3, "max": 3},
    )
    assert "(package acme-council)" in run_ok("protocols")
    doctor = json.loads(run_ok("doctor", "--json"))
    assert {"acme:yes", "acme:no"} <= {row["member"] for row in doctor["members"] if row["installed"] and row["key"]}
    assert {"provider": "acme", "package": "acme-council", "needs": "ACME_SEARCH_KEY", "error": ""} in doctor["search"]
    kinds = {row["kind"]: row["error"] for row in doctor["extensions"]}
    assert kinds == {"member": "", "search provider": "", "protocol": "", "format": ""}


# Library, MCP and page

LIBRARY = """
import asyncio, json, sys
import council
from acme_council.member import AcmeMember

class Own(AcmeMember):
    vendor = "own"

member = Own("own:yes", None)
seats = {"one": "own:yes", "two": "acme:no", "three": "acme:yes"}
how = dict(protocol="acme-vote", options={"threshold": 3, "wording": "long"})
print(json.dumps(asyncio.run(council.convene(sys.argv[1], members=[member], seats=seats, **how)).to_dict()))
"""


def test_the_library_uses_members_by_name_and_by_object(package: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIBRARY, QUESTION], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["answer"] == "rejected: 2 of 3 votes, 3 needed"
    assert {seat["name"]: seat["vendor"] for seat in report["seats"]} == {"one": "own", "two": "acme", "three": "acme"}


@pytest.mark.anyio
async def test_mcp_offers_and_checks_the_options(package: Path) -> None:
    async with connect() as client:
        (start,) = [tool for tool in (await client.list_tools()).tools if tool.name == "council_start"]
        schema = start.input_schema["properties"]
        assert "acme-vote" in schema["protocol"]["enum"]
        assert "acme-vote: threshold, wording short|long" in schema["options"]["description"]
        assert "acme-vote: three seats vote yes or no" in schema["protocol"]["description"]
        line = await call_refused(client, "council_start", question=QUESTION, options={"threshold": 9})
        assert line.startswith("threshold ")
        assert "1 to 3" in line
        options = {"threshold": 3, "seats": {"three": "acme:yes"}}
        run = (await call_tool(client, "council_start", question=QUESTION, options=options))["run"]
        assert (await wait_until_done(client, run))["done"]
        assert (await call_tool(client, "council_result", run=run, tail=False))["answer"] == "passed"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launch_browser() as browser:
        yield browser


@contextmanager
def serving() -> Iterator[str]:
    """Run `council serve` and yield its address."""
    process = Process(["serve", "--port", "0"], Path.cwd(), trusts=False, modules=SERVERS)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def request(url: str, path: str, body: Json | None = None) -> Any:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    headers = {"Authorization": f"Bearer {parts.fragment.removeprefix('token=')}", "Content-Type": "application/json"}
    try:
        connection.request("GET" if body is None else "POST", path, body and json.dumps(body), headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_the_web_api_lists_the_fields_and_takes_the_options(package: Path) -> None:
    with serving() as url:
        (row,) = [row for row in request(url, "/api/protocols") if row["name"] == "acme-vote"]
        fields = row["options"]["properties"]
        assert {name: fields["threshold"][name] for name in ("type", "default", "minimum", "maximum")} == {
            "type": "integer", "default": 2, "minimum": 1, "maximum": 3,
        }  # fmt: skip
        assert (fields["wording"]["enum"], fields["wording"]["default"]) == (["short", "long"], "short")
        assert fields["wording"]["description"] == "Length of the result."
        assert "acme:no" in {row["member"] for row in request(url, "/api/members")["members"]}
        asked = {"question": QUESTION, "options": {"threshold": 3}, "seats": {"three": "acme:yes"}}
        run = request(url, "/api/runs", asked)["run"]
        wait_until(lambda: request(url, f"/api/runs/{run}")["status"] == "complete", "the run")
        assert request(url, f"/api/runs/{run}/report?format=json")["answer"] == "passed"


def choose_protocol(seen: Browser, name: str) -> None:
    """Choose a protocol in the form of the page, and open its options."""
    seen.page.wait_for_selector(f"#protocol-{name}", state="attached")
    seen.choose_protocol(name)
    seen.open_options()


def test_the_form_of_the_page_has_the_options(package: Path, chromium: Any) -> None:
    with serving() as url:
        seen = Browser(chromium.new_context()).at(url)
        choose_protocol(seen, "acme-vote")
        seen.page.fill("#option-threshold", "3")
        seen.page.select_option("#option-wording", "long")
        seen.page.fill("#question", QUESTION)
        seen.page.wait_for_selector(".go .run:not([disabled])")
        seen.page.click(".go .run")
        seen.page.wait_for_selector(".answer:not([hidden])", timeout=60_000)
        assert "rejected: 2 of 3 votes, 3 needed" in seen.text(".answer")


# An option that is on by default

GREET = """
[project]
name = "greet-council"
version = "0.1.0"

[project.entry-points."council.protocols"]
greet = "greet:PROTOCOL"
resend = "greet:RESEND"
"""
GREET_FLOW = """
from pydantic import Field
from council import Protocol, Seat, Verdict
from council.protocols.options import Options

class Greeting(Options):
    polite: bool = Field(default=True, description="Say please.")

class Resend(Options):
    resend: bool = True

async def greet(council, polite=True):
    async with council.phase("greet"):
        await council.poll(council.members, "greet")
    return Verdict("please" if polite else "now")

SEATS = (Seat("one", "Voter"),)
PROTOCOL = Protocol("greet", greet, seats=SEATS, chair=None, options=Greeting)
RESEND = Protocol("resend", greet, seats=SEATS, chair=None, options=Resend)
"""
GREET_FILES = {"pyproject.toml": GREET, "greet.py": GREET_FLOW}


@pytest.fixture
def greeting(package: Path) -> Path:
    install(package, GREET_FILES | {"prompts/greet.md": page_files()["acme_council/prompts/vote.md"]})
    return package


def test_an_option_that_is_on_by_default_has_a_flag_that_turns_it_off(greeting: Path) -> None:
    answers = {flag: json.loads(run_ok("--json", flag, QUESTION)) for flag in ("--polite", "--no-polite")}
    assert {flag: report["answer"] for flag, report in answers.items()} == {"--polite": "please", "--no-polite": "now"}
    assert {report["protocol"] for report in answers.values()} == {"greet"}
    assert json.loads(run_ok("--json", "--protocol", "greet", QUESTION))["answer"] == "please"
    assert "--polite / --no-polite Say please." in " ".join(run_ok("--help-all").split())
    assert "--polite/--no-polite  Say please." in run_ok("protocols", "greet")
    assert "protocol greet: --no-polite" in run_ok("--dry-run", "--no-polite", QUESTION)
    assert "--no-polite belongs to greet" in council("--protocol", "triad", "--no-polite", QUESTION).err


def test_a_flag_that_turns_an_option_off_cannot_be_a_common_flag(greeting: Path) -> None:
    done = council("--protocol", "resend", QUESTION)
    assert done.code == 2
    assert "its option --resend is on by default, and --no-resend exists already" in done.err


def test_the_web_api_and_the_page_turn_an_option_off(greeting: Path, chromium: Any) -> None:
    with serving() as url:
        run = request(url, "/api/runs", {"question": QUESTION, "protocol": "greet", "options": {"polite": False}})[
            "run"
        ]
        wait_until(lambda: request(url, f"/api/runs/{run}")["status"] == "complete", "the run")
        assert request(url, f"/api/runs/{run}/report?format=json")["answer"] == "now"
        plan = request(url, "/api/estimate", {"question": QUESTION, "options": {"debate": False}})
        assert plan["protocol"] == "collaborative", "false is no choice for an option that is off by default"
        seen = Browser(chromium.new_context()).at(url)
        choose_protocol(seen, "greet")
        seen.page.uncheck("#option-polite")
        seen.page.fill("#question", QUESTION)
        seen.page.wait_for_selector(".go .run:not([disabled])")
        seen.page.click(".go .run")
        seen.page.wait_for_selector(".answer:not([hidden])", timeout=60_000)
        assert "now" in seen.text(".answer")


# Broken packages

BROKEN = """
[project]
name = "broken-council"
version = "0.1.0"

[project.entry-points."council.members"]
broken = "no_such_module:Member"

[project.entry-points."council.protocols"]
clash = "clash:PROTOCOL"
"""
CLASH = """
from pydantic import BaseModel
from council import Protocol

class Options(BaseModel):
    rounds: str = "three"

async def run(council, rounds): ...

PROTOCOL = Protocol("clash", run, options=Options)
"""


STUCK = """
[project]
name = "stuck-council"
version = "0.1.0"

[project.entry-points."council.protocols"]
promptless = "stuck:PROMPTLESS"
raising = "stuck:RAISING"
seatless = "stuck:SEATLESS"
"""
STUCK_CODE = """
from council import Protocol, Seat

async def ask_without_a_prompt(council):
    return await council.ask(council.members[0], "missing")

async def raise_error(council):
    raise KeyError("leader")

PROMPTLESS = Protocol("promptless", ask_without_a_prompt, (Seat("one"),))
RAISING = Protocol("raising", raise_error, (Seat("one"),))
SEATLESS = Protocol("seatless", ask_without_a_prompt)
"""


@pytest.mark.behaviour("00-doctor-protocols")
def test_doctor_names_protocols_that_cannot_run(package: Path) -> None:
    install(package, {"pyproject.toml": STUCK, "stuck.py": STUCK_CODE})
    found = {row["name"]: row["error"] for row in json.loads(run_ok("doctor", "--json"))["extensions"]}
    assert found["acme-vote"] == ""
    notes = {row["name"]: row["note"] for row in json.loads(run_ok("protocols", "--json"))}
    for name in ("promptless", "raising", "seatless"):
        assert found[name].startswith("cannot run: "), found
        assert notes[name] in found[name]
        done = council("--protocol", name, QUESTION)
        assert done.code in (1, 2), "it cannot run"


def test_a_broken_package_is_named_only_where_it_is_used(package: Path) -> None:
    install(package, {"pyproject.toml": BROKEN, "clash.py": CLASH})
    assert run_ok("--threshold", "2", QUESTION).startswith("passed\n")
    for arguments, words in {
        ("--seat", "alpha=broken:x"): ('member "broken"', '"broken-council"', "no_such_module"),
        ("--protocol", "clash"): ('protocol "clash"', '"broken-council"', "its option --rounds has another type"),
    }.items():
        done = council(*arguments, QUESTION)
        assert done.code == 2
        assert done.err.count("\n") == 1
        assert all(word in done.err for word in words), done.err
    errors = {row["name"]: row["error"] for row in json.loads(council("doctor", "--json").out)["extensions"]}
    assert "no_such_module" in errors["broken"]
    assert "--rounds" in errors["clash"]
    assert errors["acme"] == ""


CARELESS = """
[project]
name = "careless-council"
version = "0.1.0"

[project.entry-points."council.members"]
careless = "careless:Member"
leaving = "careless:Leaving"

[project.entry-points."council.search"]
careless = "careless:Search"
gone = "careless:Gone"

[project.entry-points."council.formats"]
careless = "careless:render"
"""
CARELESS_CODE = """
import sys
from council.members.scripted import Scripted
from council.search.provider import SearchProvider

class Member(Scripted):
    vendor = "careless"
    def __init__(self, name, context):
        super().__init__(name, {})
    async def send(self, body, on_delta):
        sys.exit("enough")

class Leaving(Member):
    def __init__(self, name, context):
        sys.exit("no constructor")

class Search(SearchProvider):
    name = "careless"
    def __init__(self, setup): ...
    async def search(self, query, max_results, freshness):
        sys.exit("no search")
    async def close(self):
        raise KeyboardInterrupt
    @property
    def remarks(self):
        raise GeneratorExit

class Gone(Search):
    name = "gone"
    def __init__(self, setup):
        sys.exit("no provider")

def render(run):
    sys.exit("no report")
"""


@pytest.mark.behaviour("30-extensions-raise")
def test_whatever_the_code_of_a_package_raises_ends_no_run_and_is_named(package: Path) -> None:
    install(package, {"pyproject.toml": CARELESS, "careless.py": CARELESS_CODE})
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n', encoding="utf-8")
    report = json.loads(run_ok("--json", "--protocol", "triad", "--seat", "beta=careless:x", QUESTION))
    (row,) = (row for row in report["degraded"] if row["seat"] == "beta")
    assert row["reason"] == "requested careless:x, which failed(member): scripted: answered instead"
    refused = council("--seat", "beta=leaving:x", QUESTION)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert 'the member "leaving" of the package "careless-council" failed (SystemExit: no constructor)' in refused.err
    for name, reason in {"careless": "SystemExit", "gone": "SystemExit: no provider"}.items():
        done = council("--json", "--protocol", "general", "--search", name, "What is the best queue?")
        assert done.code in (0, 3), done.err
        assert reason in done.out
    unreadable = council("--format", "careless", QUESTION)
    assert unreadable.code == 2
    assert 'the format "careless" of the package "careless-council" failed (SystemExit: no report)' in unreadable.err
    assert json.loads(run_ok("report", "--format", "json"))["status"] == "complete", "the run is stored"
