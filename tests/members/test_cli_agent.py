"""Command-line agents as members: the result of each misbehaviour, and that no process or file is left."""

from __future__ import annotations

import asyncio
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from council import events as ev
from council.engine.ledger import Ledger
from council.errors import ConfigError, Fault
from council.members import cli_agent, cli_process
from council.members.cli_agent import CliAgentMember, vendor_model_id
from council.members.cli_sandbox import AGENTS, CODEX_OPENAI, open_workspace
from council.render.report import build_report
from council.runs.service import Convener
from council.store.interface import Record
from council.store.sqlite import SqliteStore
from council.types import Usage
from tests.calling.helpers import RUN, call, events_of, step
from tests.fake_clock import skip
from tests.members.fake_agents import KEY, OTHERS, SCRIPTS, FakeAgents, eventually
from tests.run_session import make_ask

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
ANSWER = "Tabs are better."
NO_RETRIES = {"request_max_retries": 0, "stream_max_retries": 0}
GATE = 'openai_base_url = "http://h/v1"'
BEDROCK = 'model_provider = "amazon-bedrock"\n[model_providers.amazon-bedrock.aws]\nregion = "eu-west-1"'


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    store = SqliteStore(tmp_path / "store")
    store.post(RUN, [("run", ("a run", "here", 1.0, "42", "{}"))])
    yield Ledger(store, Record(RUN, "a run", "here", 1.0, "42", {}))
    store.close()


def typed(text: str) -> Any:
    try:
        return json.loads(text)["answer"]
    except (ValueError, KeyError, TypeError):
        raise Fault("schema", "it is no JSON object with an answer", said=text) from None


def gone_home(row: dict[str, Any]) -> Path:
    return Path(row["environ"]["HOME"])


FIRST, IDLE = {"first_byte": 2.0}, {"idle": 0.3}
HABITS = [
    # script, timeouts, seat state, number of starts, text of the reason
    ("waits_on_stdin", FIRST, "failed(cli:silent)", 1, "may be waiting for input"),
    ("is_error", {}, "failed(server)", 3, "claude reports: API Error: 500 Internal server error"),
    ("reports_an_error", {}, "failed(cli:error)", 2, "claude reports an error: The session ended unexpectedly"),
    ("retries_a_refused_key", {}, "failed(auth)", 1, "authentication_failed (status 401); check ANTHROPIC_API_KEY"),
    ("error_on_stdout", {}, "failed(cli:exit)", 2, "exited with code 1: Error: the disk of this agent is full"),
    ("empty", {}, "degenerate", 2, "empty"),
    ("half_a_json", {}, "failed(cli:output)", 2, "printed an incomplete answer"),
    ("ignores_term", IDLE, "failed(cli:silent)", 1, "no output before the timeout"),
    ("forks_a_grandchild", {}, "ok", 1, ""),
    ("floods", {}, "failed(cli:flood)", 2, "more than 8 MB"),
    ("writes_too_long_an_answer", {}, "failed(flood)", 1, "claude: the answer is longer than 256 KB"),
    ("terminal_escapes", {}, "ok", 1, ""),
    ("echoes_the_prompt", {}, "ok", 1, ""),
    ("unknown_flag", {}, "ok", 2, ""),
    ("not_logged_in", {}, "failed(auth)", 1, "run `claude` and log in"),
    ("hangs_after_the_answer", {}, "ok", 1, ""),
    ("behaves", {}, "ok", 1, ""),
    ("knows_no_json", {}, "ok", 1, ""),
]


@pytest.mark.behaviour("issue-5-cli-habits", "40-retry-command", "issue-5-cli-own-key", "issue-18-agent-retries")
@pytest.mark.parametrize(("habit", "clocks", "state", "starts", "reason"), HABITS, ids=[row[0] for row in HABITS])
async def test_misbehaving_agent_ends_in_its_state_and_leaves_no_process(
    habit: str, clocks: dict[str, Any], state: str, starts: int, reason: str, tmp_path: Path, ledger: Ledger
) -> None:
    agents = FakeAgents(tmp_path, habit)
    outcome = await call(ledger, step("cli:claude"), agents.member(**clocks), timeout=lambda member: 60.0)
    assert await eventually(lambda: not agents.left())
    assert (outcome.state, len(agents.started)) == (state, starts)
    assert outcome.text == (ANSWER if state == "ok" else "")
    assert reason in outcome.reason
    for row in agents.log:
        assert row["environ"]["ANTHROPIC_API_KEY"] == KEY
        assert not OTHERS.keys() & row["environ"].keys()
        assert row["cwd"] == ["packet.md"]


@pytest.mark.behaviour("issue-5-cli-habits")
async def test_agent_that_ignores_the_schema_gets_one_repair_turn(tmp_path: Path, ledger: Ledger) -> None:
    agents = FakeAgents(tmp_path, "ignores_the_schema")
    asked = step("cli:claude", read=typed, ask=make_ask("draft/alpha", schema=SCHEMA))
    outcome = await call(ledger, asked, agents.member(), timeout=lambda member: 60.0)
    assert (outcome.state, len(agents.started)) == ("failed(schema)", 2)
    first = agents.started[0]["started"]
    assert json.loads(first[first.index("--json-schema") + 1]) == SCHEMA
    assert "JSON Schema" in agents.log[1]["prompt"]
    assert await eventually(lambda: not agents.left())


@pytest.mark.behaviour("40-retry-command")
async def test_tails_of_both_streams_are_kept_with_the_attempt(tmp_path: Path, ledger: Ledger) -> None:
    agents = FakeAgents(tmp_path, "floods")
    await call(ledger, step("cli:claude"), agents.member(), timeout=lambda member: 60.0)
    results = [attempt.result for attempt in ledger.attempts("draft/alpha")]
    kept = [result["said"] for result in results if result and "fault" in result]
    assert len(kept) == 2
    for said in kept:
        assert "[standard output]\nxxx" in said
        assert len(said) < 2 * 4096 + 100


@pytest.mark.behaviour("issue-18-agent-timeout")
async def test_timeout_names_the_last_complaint_and_keeps_both_tails(tmp_path: Path, ledger: Ledger) -> None:
    agents = FakeAgents(tmp_path, "retries_once_and_hangs")
    task = asyncio.ensure_future(call(ledger, step("cli:claude"), agents.member(), timeout=lambda member: 60.0))
    assert await eventually(lambda: any("complained" in row for row in agents.log))
    skip(61.0)
    outcome = await task
    assert outcome.state == "timed_out"
    assert outcome.reason == "no answer within 60 s; claude reports: rate_limit (status 429)"
    results = [attempt.result for attempt in ledger.attempts("draft/alpha")]
    said = next(result["said"] for result in results if result and "fault" in result)
    assert "[standard output]" in said and "[standard error]\nwaiting for the rate limit" in said
    assert await eventually(lambda: not agents.left())


@pytest.mark.behaviour("issue-5-cli-habits")
async def test_echo_of_the_prompt_is_not_an_answer(tmp_path: Path, ledger: Ledger) -> None:
    agents = FakeAgents(tmp_path, "echoes_the_prompt")
    asked = step("cli:claude", ask=make_ask("draft/alpha"))
    asked.ask.messages[0]["content"] += " Give no answer."
    outcome = await call(ledger, asked, agents.member(), timeout=lambda member: 60.0)
    assert outcome.state == "degenerate"


@pytest.mark.behaviour("issue-5-cli-gone")
@pytest.mark.parametrize("habit", ["ignores_term", "waits_on_stdin"])
async def test_cancelled_call_leaves_no_process(habit: str, tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, habit)
    member = agents.member()
    task = asyncio.ensure_future(member.send(member.prepare(make_ask()), lambda piece: None))
    assert await eventually(lambda: any("prompt" in row for row in agents.log))
    assert agents.left()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not agents.left()


@pytest.mark.behaviour("issue-5-cli-gone")
async def test_cancelled_agent_may_finish_its_work_before_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli_process, "TERM_WAIT_S", 60.0)  # a busy machine may start the handler late
    agents = FakeAgents(tmp_path, "ends_when_asked")
    member = agents.member()
    task = asyncio.ensure_future(member.send(member.prepare(make_ask()), lambda piece: None))
    assert await eventually(lambda: any("prompt" in row for row in agents.log))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert agents.log[-1].get("finished")
    assert not agents.left()


ASKING = """
import asyncio, os
from council.members import cli_agent
from council.members.cli_agent import CliAgentMember
from council.types import Ask
member = CliAgentMember("cli:claude", env=dict(os.environ), vendor="anthropic")
asyncio.run(member.send(member.prepare(Ask("k", ({"role": "user", "content": "Why?"},))), lambda piece: None))
"""


@pytest.mark.behaviour("issue-5-cli-gone")
async def test_killed_council_leaves_no_process_and_no_workspace(tmp_path: Path) -> None:
    agents, rooms = FakeAgents(tmp_path, "ignores_term"), tmp_path / "rooms"
    rooms.mkdir()
    council = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKING, env={**agents.env, "TMPDIR": str(rooms)}
    )
    assert await eventually(lambda: any("prompt" in row for row in agents.log), within=60.0)
    assert agents.left()
    assert list(rooms.iterdir())
    council.kill()
    await council.wait()
    assert await eventually(lambda: not agents.left() and not list(rooms.iterdir()))


@pytest.mark.behaviour("issue-5-cli-gone")
async def test_second_cancellation_kills_at_once(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "ignores_term")
    member = agents.member()
    task = asyncio.ensure_future(member.send(member.prepare(make_ask()), lambda piece: None))
    assert await eventually(lambda: any("prompt" in row for row in agents.log))
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await eventually(lambda: not agents.left())


async def test_agent_output_streams_and_usage_is_read(tmp_path: Path) -> None:
    member, pieces = FakeAgents(tmp_path, "behaves").member(), list[str]()
    answer = await member.send(member.prepare(make_ask()), pieces.append)
    assert [piece for piece in pieces if piece] == ["Tabs ", "are better."]
    assert answer.usage == Usage(24, 9, 7, True, 5)
    assert (answer.model, answer.id) == ("claude-opus-4-6", "s1")


async def test_an_agent_that_has_ended_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_process, "EXIT_WAIT_S", 600.0)
    member = FakeAgents(tmp_path, "behaves").member()
    async with asyncio.timeout(60):
        assert (await member.send(member.prepare(make_ask()), lambda piece: None)).text == ANSWER


@pytest.mark.behaviour("40-security-command")
async def test_home_contains_only_the_agents_login(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    for place in (".claude", ".ssh", ".codex"):
        (agents.home / place).mkdir()
    (agents.home / ".claude/.credentials.json").write_text("{}")
    for other in (".claude/history.jsonl", ".claude.json", ".ssh/id_rsa", ".codex/auth.json"):
        (agents.home / other).write_text("private")
    member = agents.member()
    await member.send(member.prepare(make_ask()), lambda piece: None)
    row = agents.log[-1]
    assert row["home"] == [".claude/.credentials.json"]
    assert row["environ"]["HOME"] != str(agents.home)
    assert not gone_home(row).exists()
    assert (agents.home / ".claude/.credentials.json").read_text() == "{}"


@pytest.mark.behaviour("issue-18-agent-env")
async def test_gateway_and_selected_cloud_reach_the_agent_and_other_variables_do_not(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    (agents.home / ".aws").mkdir()
    (agents.home / ".aws/config").write_text("[default]")
    gateway = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_AUTH_TOKEN": "gateway-token", "MY_TICKET": "t1"}
    agents.env |= gateway | {"AWS_PROFILE": "work", "AWS_SECRET_ACCESS_KEY": "s3", "CLOUD_ML_REGION": "eu"}
    for bedrock in ("", "0", "1"):
        env = agents.env | {"CLAUDE_CODE_USE_BEDROCK": bedrock}
        with open_workspace(AGENTS["claude"], env, pass_env=["MY_TICKET", "HOME"]) as workspace:
            assert gateway.items() <= workspace.env.items()
            assert workspace.env["HOME"] == str(workspace.home)
            has_cloud = ("AWS_SECRET_ACCESS_KEY" in workspace.env, (workspace.home / ".aws/config").is_file())
            assert has_cloud == (bedrock == "1",) * 2
            assert not {"CLOUD_ML_REGION", *OTHERS} & workspace.env.keys()
    assert (agents.home / ".aws/config").is_file()
    assert "CLAUDE_CODE_USE_BEDROCK is set" in await CliAgentMember("cli:claude", env=env, vendor="anthropic").probe()


@pytest.mark.behaviour("issue-18-agent-env")
async def test_codex_gets_only_the_model_provider_of_its_configuration(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves", "codex")
    agents.env |= {"GATEWAY_KEY": "gateway-key", "CODEX_HOME": str(tmp_path / "codex")}
    (tmp_path / "codex").mkdir()
    config = tmp_path / "codex/config.toml"
    config.write_text(
        'model_provider = "gate"\nsandbox_mode = "danger-full-access"\n[mcp_servers.x]\ncommand = "x"\n'
        '[model_providers.gate]\nbase_url = "https://gate.example/v1"\nenv_key = "GATEWAY_KEY"\n[model_providers.other]\nname = "o"\n'
    )
    member = agents.member("cli:codex", key=False)
    with open_workspace(member.agent, member.env) as workspace:
        copied = tomllib.loads((workspace.home / ".codex/config.toml").read_text())
        gate = {"base_url": "https://gate.example/v1", "env_key": "GATEWAY_KEY"}
        assert copied["model_providers"] == {"gate": gate | NO_RETRIES}
        assert copied.keys() == {"model_provider", "model_providers"}
        assert workspace.env["GATEWAY_KEY"] == "gateway-key"
        assert workspace.env["CODEX_API_KEY"] == OTHERS["OPENAI_API_KEY"]  # `codex exec` reads no other key
    assert await member.probe() == "9.9.9 (Claude Code), GATEWAY_KEY is set"
    for text in ("not toml [", 'model_provider = 3\nmodel_providers = "x"', ""):
        config.write_text(text)
        with open_workspace(member.agent, member.env | {"OPENAI_API_KEY": ""}) as workspace:
            assert not (workspace.home / ".codex/config.toml").exists()


@pytest.mark.behaviour("issue-18-codex-retries")
@pytest.mark.parametrize(
    ("config", "key", "written"),
    [
        ("", "k", {"model_provider": "council", "model_providers": {"council": CODEX_OPENAI | NO_RETRIES}}),
        ("", "", None),  # a ChatGPT login: only codex's own provider sends all headers
        (f"{GATE}", "", {"openai_base_url": "http://h/v1"}),
        (f"{GATE}", "k", {"model_provider": "council", "model_providers": {"council": CODEX_OPENAI | NO_RETRIES | {"base_url": "http://h/v1"}}}),
        (BEDROCK, "k", tomllib.loads(BEDROCK)),  # codex refuses these settings for it
        ('model_provider = "x"\nmodel_providers.x = 3', "k", {"model_provider": "x"}),
    ],
)  # fmt: skip
def test_own_retries_of_codex_are_off_where_it_lets_them(config: str, key: str, written: Any, tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/config.toml").write_text(config)
    (tmp_path / ".codex/auth.json").write_text("{}")
    with open_workspace(AGENTS["codex"], {"HOME": str(tmp_path), "CODEX_API_KEY": key}) as workspace:
        path = workspace.home / ".codex/config.toml"
        assert (tomllib.loads(path.read_text()) if path.exists() else None) == written


@pytest.mark.behaviour("issue-18-agent-env")
@pytest.mark.parametrize(
    ("given", "login", "kind", "passed"),
    [
        ({"GEMINI_API_KEY": "k"}, True, "gemini-api-key", {"GEMINI_API_KEY": "k"}),
        ({"GOOGLE_API_KEY": "k"}, False, "gemini-api-key", {"GEMINI_API_KEY": "k"}),
        ({"GOOGLE_CLOUD_PROJECT": "p"}, True, "oauth-personal", {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_PROJECT": "p"}),
        ({"GOOGLE_GENAI_USE_VERTEXAI": "true", "GEMINI_API_KEY": "k"}, True, "vertex-ai", {"GOOGLE_GENAI_USE_VERTEXAI": "true"}),
    ],
)  # fmt: skip
def test_gemini_settings_name_the_kind_of_login(
    given: dict[str, str], login: bool, kind: str, passed: dict[str, str], tmp_path: Path
) -> None:
    agents = FakeAgents(tmp_path, "behaves", "gemini")
    if login:
        (agents.home / ".gemini").mkdir()
        (agents.home / ".gemini/oauth_creds.json").write_text("{}")
    with open_workspace(AGENTS["gemini"], {"HOME": str(agents.home)} | given) as workspace:
        settings = json.loads((workspace.home / ".gemini/settings.json").read_text())
        assert settings["security"]["auth"]["selectedType"] == kind
        assert settings["tools"]["core"] == ["none"]
        assert passed.items() <= workspace.env.items()


def test_hint_for_a_refused_key_names_the_variable_once() -> None:
    member = CliAgentMember("cli:gemini", env={"GEMINI_API_KEY": "k"}, vendor="google")
    assert member._login_hint() == "check GEMINI_API_KEY, or log in with `gemini` (company accounts only)"


async def test_setting_that_codex_cannot_read_is_left_out(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "rejects_a_setting", "codex")
    agents.env["CODEX_API_KEY"] = "codex-key"
    member = agents.member("cli:codex", key=False)
    assert (await member.send(member.prepare(make_ask()), lambda piece: None)).text == ANSWER
    first, second = (row["started"] for row in agents.started)
    assert "agents.enabled=false" in first
    assert [word for word in first if word not in second and "file=" not in word] == ["agents.enabled=false"]


async def test_renewed_login_is_copied_back(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "renews_its_login")
    (agents.home / ".claude").mkdir()
    (agents.home / ".claude/.credentials.json").write_text("old")
    member = agents.member()
    await member.send(member.prepare(make_ask()), lambda piece: None)
    assert (agents.home / ".claude/.credentials.json").read_text() == "new"
    assert [path.name for path in (agents.home / ".claude").iterdir()] == [".credentials.json"]


@pytest.mark.behaviour("issue-5-cli-depth")
def test_nested_council_refuses_command_line_agents(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    with pytest.raises(ConfigError, match="inside another council"):
        CliAgentMember("cli:claude", env=agents.env | {"COUNCIL_DEPTH": "1"}, vendor="anthropic")


@pytest.mark.behaviour("issue-5-cli-depth")
async def test_agent_environment_contains_the_council_depth(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    member = agents.member()
    await member.send(member.prepare(make_ask()), lambda piece: None)
    assert {row["environ"]["COUNCIL_DEPTH"] for row in agents.log} == {"1"}


@pytest.mark.behaviour("issue-5-cli-probing")
async def test_only_flags_listed_in_help_are_passed(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    member = agents.member("cli:claude:opus")
    await member.send(member.prepare(make_ask()), lambda piece: None)
    flags = agents.started[0]["started"]
    assert flags[flags.index("--model") + 1] == vendor_model_id("opus")
    assert flags[flags.index("--tools") + 1] == ""
    assert flags[flags.index("--output-format") + 1] == "stream-json"
    assert not {"--system-prompt-file", "--no-session-persistence", "--effort"} & set(flags)


@pytest.mark.behaviour("issue-5-cli-probing")
async def test_executable_is_probed_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = FakeAgents(tmp_path, "counts_its_probes")
    member = agents.member()
    for _ in range(2):
        await member.send(member.prepare(make_ask()), lambda piece: None)
    assert len([row for row in agents.log if "probe" in row]) == 1  # --help
    monkeypatch.setattr(cli_agent, "_executables", {})  # as in another process
    await member.send(member.prepare(make_ask()), lambda piece: None)
    assert len([row for row in agents.log if "probe" in row]) == 1
    for damage in (
        "[",
        "[]",
        '{"x": 1}',
        (tmp_path / "cache/agent_help.json").read_text().replace('"time": ', '"time": 9'),
    ):
        (tmp_path / "cache/agent_help.json").write_text(damage)
        assert cli_agent.load_help(member.env, cli_agent._file_version(agents.bin / "claude")) == ""
    (agents.bin / "claude").unlink()
    (agents.bin / "claude").symlink_to(SCRIPTS / "behaves.py")
    assert "9.9.9" in await member.probe()


def test_prepare_is_deterministic_and_contains_prompt_and_schema(tmp_path: Path) -> None:
    member = FakeAgents(tmp_path, "behaves").member()
    ask = make_ask(schema=SCHEMA)
    assert member.prepare(ask) == member.prepare(ask)
    stored = json.loads(member.prepare(ask))
    assert stored["schema"] == SCHEMA
    assert "Tabs or spaces?" in stored["prompt"]


async def test_conversation_becomes_one_prompt(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    member = agents.member()
    turns = [("system", "Be brief."), ("user", "Tabs?"), ("assistant", "Yes."), ("user", "Sure?")]
    ask = make_ask()
    ask = type(ask)(ask.key, tuple({"role": role, "content": text} for role, text in turns))
    await member.send(member.prepare(ask), lambda piece: None)
    prompt = agents.log[1]["prompt"]
    assert [prompt.index(text) for _, text in turns] == sorted(prompt.index(text) for _, text in turns)
    assert "Your answer" in prompt


@pytest.mark.behaviour("issue-5-cli-habits")
async def test_council_continues_without_a_failing_agent_and_reports_it(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "error_on_stdout")
    seats = {"alpha": "cli:claude", **dict.fromkeys(("beta", "gamma", "chair"), "scripted:")}
    env = {name: agents.env[name] for name in ("PATH", "HOME")} | {"COUNCIL_DATA": str(tmp_path / "data")}
    convener = Convener(env=env, flags={"seats": seats})
    plan = await convener.plan(["Tabs or spaces?"], protocol="collaborative")
    told = build_report(await convener.run(plan, lambda entry: None))
    await convener.close()
    assert told["status"] == "complete"
    assert {row["name"]: row["state"] for row in told["seats"]}["alpha"] == "failed(cli:exit)"
    assert any("the disk of this agent is full" in row["reason"] for row in told["degraded"])
    assert await eventually(lambda: not agents.left())


async def test_agents_key_is_redacted_in_the_reason(tmp_path: Path, ledger: Ledger) -> None:
    agents = FakeAgents(tmp_path, "tells_its_key")
    await call(ledger, step("cli:claude"), agents.member(), timeout=lambda member: 60.0)
    faults = events_of(ledger, ev.Faulted)
    assert faults
    assert KEY not in json.dumps([attempt.result for attempt in ledger.attempts("draft/alpha")])
    assert all("***" in fault.detail for fault in faults)


async def test_probe_reports_the_login_without_a_call(tmp_path: Path) -> None:
    agents = FakeAgents(tmp_path, "behaves")
    assert await agents.member().probe() == "9.9.9 (Claude Code), ANTHROPIC_API_KEY is set"
    with pytest.raises(Fault, match="not logged in; run `claude` and log in"):
        await agents.member(key=False).probe()
    (agents.home / ".claude").mkdir()
    (agents.home / ".claude/.credentials.json").write_text("{}")
    assert await agents.member(key=False).probe() == "9.9.9 (Claude Code), logged in"
    assert not agents.started
