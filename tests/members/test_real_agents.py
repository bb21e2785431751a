"""The real claude, codex and gemini against fake vendor endpoints: text, usage, failures, tools, processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from council.engine.ledger import Ledger
from council.errors import Fault
from council.members import cli_agent
from council.members.cli_agent import CliAgentMember, ExecutableInfo
from council.store.interface import Record
from council.store.sqlite import SqliteStore
from council.types import Outcome
from tests.acceptance.helpers import Terminal
from tests.calling.helpers import RUN, call, step
from tests.fake_clock import skip
from tests.members.fake_agents import eventually
from tests.members.real_agents import HINT, NAMES, agents_folder, find_agent
from tests.members.vendor_endpoint import CACHED, READ, TEXT, TYPED, WRITTEN, VendorEndpoint, tools_in
from tests.run_session import make_ask

pytestmark = pytest.mark.anyio
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "CODEX_API_KEY", "gemini": "GEMINI_API_KEY"}
KEY = "-".join(["sk", "real", "agent", "0123456789"])
# Codex always has a JavaScript console without files and network, and two ways to ask the user.
TOOLS_LEFT = {"codex": {"exec", "wait", "request_user_input", "request_user_input_async"}}
STATES = {
    "401": "failed(auth)",
    "403": "failed(auth)",
    "429": "failed(rate)",
    "500": "failed(server)",
    "quota": "failed(quota)",
}
REASONS = {
    ("401", "claude"): "Invalid API key",
    ("401", "codex"): "401 Unauthorized: Incorrect API key provided",
    ("401", "gemini"): "400: API key not valid",
    ("403", "claude"): "403 This key may not use this model",
    ("403", "codex"): "403 Forbidden: You have insufficient permissions",
    ("403", "gemini"): "403: The caller does not have permission",
    ("429", "claude"): "(429) · This request would exceed your rate limit",
    ("429", "codex"): "429 Too Many Requests",
    ("429", "gemini"): "Resource has been exhausted",
    ("500", "claude"): "500 Internal server error",
    ("500", "codex"): "high demand",
    ("500", "gemini"): "500: An internal error has occurred",
    ("quota", "claude"): "Credit balance is too low",
    ("quota", "codex"): "Quota exceeded",
    ("quota", "gemini"): "exhausted your daily quota",
}


class RealAgent:
    """One installed agent, its endpoint, and a folder for everything it writes."""

    def __init__(self, name: str, endpoint: VendorEndpoint, folder: Path, ledger: Ledger) -> None:
        self.name, self.endpoint, self.rooms, self.ledger = name, endpoint, folder / "rooms", ledger
        self.home = folder / "home"
        for place in (self.rooms, self.home / ".codex"):
            place.mkdir(parents=True)
        endpoint.target = str(folder / "written-by-a-tool")
        (self.home / ".codex/config.toml").write_text(f'model = "o1"\nopenai_base_url = "{endpoint.address}/v1"\n')
        self.env = {
            "PATH": f"{agents_folder() / 'node_modules' / '.bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "COUNCIL_CACHE": str(folder / "cache"),
            KEYS[name]: KEY,
            "ANTHROPIC_BASE_URL": endpoint.address,
            "GOOGLE_GEMINI_BASE_URL": endpoint.address,
            "HTTPS_PROXY": endpoint.address,
            "NO_PROXY": "127.0.0.1",
        }

    async def ask(self, *, typed: bool = False, timeout: float = 120.0) -> Outcome:
        member = CliAgentMember(f"cli:{self.name}", env=self.env, vendor="vendor")
        member.backoff = 0.0
        ask = make_ask("draft/alpha", schema=SCHEMA if typed else None)
        ask = replace(ask, messages=({"role": "system", "content": "Be brief."}, *ask.messages))
        asked = step(member.name, read=_read_typed if typed else lambda text: None, ask=ask)
        return await call(self.ledger, asked, member, timeout=lambda name: timeout)

    def pids(self) -> list[int]:
        """Return the running processes with a variable that points to the folder of the rooms."""
        return [int(place.name) for place in Path("/proc").glob("[0-9]*") if self._is_ours(place)]

    def has_written(self) -> bool:
        return Path(self.endpoint.target).exists()

    def _is_ours(self, place: Path) -> bool:
        try:
            state = (place / "stat").read_text().rpartition(")")[2].split()[0]
            return state != "Z" and str(self.rooms).encode() in (place / "environ").read_bytes()
        except OSError:
            return False


def _read_typed(text: str) -> Any:
    try:
        return json.loads(text)["answer"]
    except (ValueError, KeyError, TypeError):
        raise Fault("schema", "it is no JSON object with an answer", said=text) from None


Start = Callable[[str, str], RealAgent]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [("run", ("a run", "here", 1.0, "42", "{}"))])
    with VendorEndpoint() as endpoint:

        def make(name: str, mode: str) -> RealAgent:
            if find_agent(name) is None:
                pytest.skip(f"{name} is not installed: {HINT}")
            endpoint.mode = mode
            agent = RealAgent(name, endpoint, tmp_path, Ledger(store, Record(RUN, "a run", "here", 1.0, "42", {})))
            monkeypatch.setattr(tempfile, "tempdir", str(agent.rooms))
            return agent

        yield make
    store.close()


def list_skills(agent: RealAgent) -> str:
    """Return what the agent says about its skills in the current folder, with its own settings."""
    flags = {
        "claude": ["--print", "--output-format", "stream-json", "--verbose"],
        "codex": ["exec", "--json", "--skip-git-repo-check", "-"],
        "gemini": ["skills", "list"],
    }[agent.name]
    env = agent.env | {"TMPDIR": str(agent.rooms), "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    done = subprocess.run([agent.name, *flags], input="Hello", env=env, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr + json.dumps(agent.endpoint.requests)


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-skill-real")
@pytest.mark.parametrize(("name", "words"), [("claude", r'"skills":\[[^]]*"council"'), ("codex", "- council: Ask several language models"), ("gemini", "council.*Enabled")])  # fmt: skip
def test_real_agent_lists_the_installed_skill(name: str, words: str, start: Start, council: Terminal) -> None:
    agent = start(name, "answer")
    assert not re.search(words, list_skills(agent))
    council("skill", "install", "--agent", name)
    assert re.search(words, list_skills(agent))


async def check_nothing_is_left(agent: RealAgent) -> None:
    assert await eventually(lambda: not agent.pids())
    assert not list(agent.rooms.iterdir())
    assert agent.endpoint.outside == []


def usage_of(agent: RealAgent) -> Any:
    results = [attempt.result for attempt in agent.ledger.attempts("draft/alpha")]
    return next(result["usage"] for result in results if result and "usage" in result)


@pytest.mark.behaviour("issue-18-agent-real", "issue-18-agent-tools")
@pytest.mark.parametrize("name", NAMES)
async def test_real_agent_gives_a_typed_reply_with_its_usage(
    name: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = start(name, "answer")
    path = find_agent(name)
    assert path
    # Without a help text every flag is passed; `gemini --help` takes longer than an answer.
    monkeypatch.setitem(cli_agent._executables, cli_agent._file_version(path), ExecutableInfo(""))
    outcome = await agent.ask(typed=True)
    assert (outcome.state, json.loads(outcome.text)) == ("ok", TYPED), outcome.reason
    requests = agent.endpoint.requests
    assert usage_of(agent)["in"] == READ * len(requests) and usage_of(agent)["out"] == WRITTEN * len(requests)
    typed = {"StructuredOutput"} if name == "claude" else set()
    assert all(tools_in(request) <= TOOLS_LEFT.get(name, typed) for request in requests)
    assert all("Be brief." in json.dumps(request) for request in requests)
    await check_nothing_is_left(agent)


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-agent-real")
@pytest.mark.parametrize("name", NAMES)
async def test_real_agent_gives_the_text_and_its_usage(name: str, start: Start) -> None:
    agent = start(name, "answer")
    outcome = await agent.ask()
    assert (outcome.state, outcome.text) == ("ok", TEXT), outcome.reason
    assert usage_of(agent) | {"written": 0} == {"in": READ, "out": WRITTEN, "cached": CACHED, "written": 0}
    assert all(tools_in(request) <= TOOLS_LEFT.get(name, set()) for request in agent.endpoint.requests)
    await check_nothing_is_left(agent)


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-agent-faults")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("trouble", STATES)
async def test_real_agent_fails_with_the_reason_of_the_vendor(
    trouble: str, name: str, start: Start, sweep_figures: Callable[..., None]
) -> None:
    agent = start(name, trouble)
    outcome = await agent.ask()
    assert outcome.state == STATES[trouble], outcome.reason
    assert REASONS[trouble, name] in outcome.reason
    assert KEY not in outcome.reason
    attempts = list(agent.ledger.attempts("draft/alpha"))
    assert len(agent.endpoint.requests) == len(attempts)  # only Council retries
    assert trouble in ("429", "500") or len(attempts) == 1
    sweep_figures(f"agent {trouble}", cases=1, **{f"worst_{name}_seconds": outcome.seconds, f"{name}_requests": len(agent.endpoint.requests)})  # fmt: skip
    await check_nothing_is_left(agent)


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-agent-faults")
@pytest.mark.parametrize("name", NAMES)
async def test_real_agent_whose_vendor_hangs_times_out(name: str, start: Start) -> None:
    agent = start(name, "hang")
    task = asyncio.ensure_future(agent.ask())
    assert await eventually(agent.endpoint.arrived.is_set)
    skip(121.0)
    outcome = await task
    assert outcome.state == "timed_out"
    assert outcome.reason.startswith("no answer within 120 s")
    await check_nothing_is_left(agent)


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-agent-faults")
@pytest.mark.parametrize("name", NAMES)
async def test_real_agent_that_is_killed_is_retried_once(name: str, start: Start) -> None:
    agent = start(name, "hang")
    task = asyncio.ensure_future(agent.ask())
    for count in (1, 2):
        assert await eventually(lambda count=count: len(agent.endpoint.requests) >= count)  # type: ignore[misc]
        for pid in agent.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    outcome = await task
    assert outcome.state == "failed(cli:exit)", outcome.reason
    assert "exited with code" in outcome.reason
    await check_nothing_is_left(agent)


@pytest.mark.sweep
@pytest.mark.behaviour("issue-18-agent-tools")
@pytest.mark.parametrize("name", NAMES)
async def test_tool_call_of_the_model_does_nothing(name: str, start: Start) -> None:
    agent = start(name, "tools")
    outcome = await agent.ask()
    assert outcome.state != "ok" or outcome.text == TEXT
    assert not agent.has_written()
    await check_nothing_is_left(agent)
