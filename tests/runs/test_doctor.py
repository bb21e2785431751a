"""The doctor: checks of each member, next steps, and warnings about leaked keys."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from council.doors.cli import run
from council.doors.cli.info_commands import format_models
from council.runs.doctor import (
    DoctorRow,
    SeatingPreview,
    add_used_members,
    diagnose,
    list_members,
    list_warnings,
    preview_seating,
)
from council.runs.service import Convener
from council.settings.catalogue import catalogue
from tests.fake_provider import FakeProvider, Reply
from tests.members.fake_agents import FakeAgents
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio


def configure(*lines: str) -> None:
    Path("council.toml").write_text("\n".join(lines))
    trust_project()


def sim(provider: FakeProvider, **more: str) -> list[str]:
    said = {"base_url": provider.base_url, "api_key_env": "SIM_API_KEY", **more}
    return ["[providers.sim]", *(f'{key} = "{value}"' for key, value in said.items())]


def steps(row: DoctorRow) -> list[bool | None]:
    return [row["configured"], row["installed"], row["key"], row["answered"]]


def agents(folder: Path) -> dict[str, str]:
    """Return the environment of a machine with three agents, two of them logged in, and no keys."""
    bench = FakeAgents(folder, "behaves")
    for name in ("codex", "gemini"):
        (bench.bin / name).symlink_to(bench.bin / "claude")
    for login in (".claude/.credentials.json", ".codex/auth.json"):
        (bench.home / login).parent.mkdir()
        (bench.home / login).write_text("{}")
    return {name: bench.env[name] for name in ("PATH", "HOME")}


async def rows(convener: Convener, **how: Any) -> dict[str, DoctorRow]:
    try:
        return {row["member"]: row for row in await diagnose(convener, **how)}
    finally:
        await convener.close()


@pytest.fixture
async def seated(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeProvider]:
    """One provider with a key, and two of its models in seats."""
    monkeypatch.setenv("SIM_API_KEY", "k")
    configure(*sim(provider), "[models]", 'default = "sim:m1"', "[seats.beta]", 'model = "sim:m2"')
    yield provider


@pytest.mark.behaviour("00-members-missing-key-is-named")
async def test_doctor_reports_a_seat_whose_key_is_missing() -> None:
    configure("[providers.sim]", 'base_url = "http://127.0.0.1:9/v1"', 'api_key_env = "SIM_API_KEY"', "[seats.alpha]", 'model = "sim:m1"')  # fmt: skip
    found = await preview_seating(Convener())
    assert (found["protocol"], found["seats"]) == (None, [])
    assert "set SIM_API_KEY" in found["notices"][0]


@pytest.mark.behaviour("00-doctor-next-seats")
async def test_doctor_names_the_seats_that_the_next_question_has(seated: FakeProvider) -> None:
    convener = Convener()
    try:
        found = await preview_seating(convener)
        plan = await convener.plan(["What should we do about the cache?"])
    finally:
        await convener.close()
    assert plan.roster.chair and found["protocol"] == plan.protocol.name
    used = [(seat.name, seat.member) for seat in (*plan.roster.seats, plan.roster.chair)]
    assert [(place["seat"], place["member"]) for place in found["seats"]] == used


@pytest.mark.behaviour("00-doctor-next-seats")
@pytest.mark.parametrize(
    ("failed", "used"), [([], "a:m"), (["a:m"], "b:m"), (["a:m", "b:m"], "c:m"), (["a:m", "b:m", "c:m"], None)]
)
def test_a_seat_whose_member_does_not_answer_has_its_fallback(failed: list[str], used: str | None) -> None:
    seats: SeatingPreview = {
        "protocol": None,
        "seats": [{"seat": "alpha", "member": "a:m", "vendor": "a", "fallbacks": ["b:m", "c:m"]}],
        "families": 1,
        "notices": [],
    }
    rows: list[Any] = [{"member": name, "answered": name not in failed} for name in ("a:m", "b:m", "c:m")]
    assert [place["used"] for place in add_used_members(seats, rows)["seats"]] == [used]


@pytest.mark.behaviour("issue-5-doctor-steps")
async def test_each_member_is_listed_with_its_four_checks(seated: FakeProvider, tmp_path: Path) -> None:
    closed = ['base_url = "http://127.0.0.1:9/v1"', "connect = 1"]
    configure(*sim(seated), "[providers.keyless]", *closed, 'api_key_env = "OTHER_API_KEY"', "[providers.gone]", *closed,
              "[models]", 'default = "sim:m1"', 'other = "cli:claude"')  # fmt: skip
    found = await rows(Convener(env=agents(tmp_path) | {"SIM_API_KEY": "k"}))
    assert steps(found["sim:m1"]) == [True, True, True, True]
    assert steps(found["keyless:"]) == [True, True, False, None]
    assert found["keyless:"]["next"].startswith("set OTHER_API_KEY")
    assert steps(found["gone:"]) == [True, True, True, False]
    assert steps(found["google:"]) == [False, True, False, None]
    assert steps(found["cli:claude"]) == [True, True, True, None]
    assert steps(found["cli:codex"]) == [False, True, True, None]
    assert found["cli:codex"]["next"] == "seat it by name: --seat alpha=cli:codex"
    assert steps(found["cli:gemini"]) == [False, True, False, None]
    assert "log in with `gemini`" in found["cli:gemini"]["detail"]


async def test_members_are_probed_without_a_paid_call(seated: FakeProvider) -> None:
    found = await rows(Convener())
    assert [found[name]["detail"] for name in ("sim:m1", "sim:m2")] == ["answered, 3 models"] * 2
    assert seated.log == []


@pytest.mark.behaviour("issue-5-doctor-steps")
async def test_model_not_listed_by_its_provider_is_reported(provider: FakeProvider) -> None:
    told = f'base_url = "{provider.base_url}"'
    configure("[providers.sim]", told, "[providers.idle]", told, "[models]", 'default = "sim:m1"', 'strong = "sim:m9"')
    found = await rows(Convener())
    assert found["sim:m1"]["detail"] == found["idle:"]["detail"] == "answered, 3 models"
    assert found["sim:m9"]["detail"] == "answered, 3 models, m9 not listed"


@pytest.mark.behaviour("issue-5-doctor-steps")
async def test_present_weights_file_does_not_count_as_an_answer(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="the extra local is not installed")
    (tmp_path / "own.gguf").write_bytes(b"GGUF")
    configure("[models]", f'default = "local:{tmp_path}/own.gguf"')
    found = (await rows(Convener()))[f"local:{tmp_path}/own.gguf"]
    assert steps(found) == [True, True, True, None]


@pytest.mark.behaviour("issue-5-doctor-deep")
async def test_deep_check_calls_every_seated_member_and_reports_the_cost(seated: FakeProvider) -> None:
    configure(
        *sim(seated),
        "[models]",
        'default = "sim:m1"',
        'strong = "sim:m2"',
        '[prices."sim:m1"]',
        "input = 1",
        "output = 2",
    )
    found = await rows(Convener(), deep=True)
    assert sorted(seen.model for seen in seated.log) == ["m1", "m2"]
    usage = next(seen.tokens for seen in seated.log if seen.model == "m1")
    assert found["sim:m1"]["cost"] == pytest.approx((usage["in"] + 2 * usage["out"]) / 1e6)
    assert "for $0.0000" in found["sim:m1"]["detail"]
    assert found["sim:m2"]["cost"] is None
    assert "of unknown cost" in found["sim:m2"]["detail"]


@pytest.mark.behaviour("issue-5-doctor-deep")
async def test_deep_check_separates_member_failures_from_the_provider(seated: FakeProvider) -> None:
    seated.always("m2", Reply(status=404, error={"code": "model_not_found", "message": "the model m2 does not exist"}))
    found = await rows(Convener(), deep=True)
    assert (found["sim:m1"]["answered"], found["sim:m2"]["answered"]) == (True, False)
    assert "the model m2 does not exist" in found["sim:m2"]["detail"]


async def test_deep_check_calls_a_command_line_agent(tmp_path: Path) -> None:
    configure("[models]", 'default = "cli:claude"')
    found = await rows(Convener(env=agents(tmp_path)), deep=True)
    assert found["cli:claude"]["answered"] is True
    assert found["cli:codex"]["answered"] is None


def test_command_prints_the_table_and_fails_if_a_member_does_not_answer(
    provider: FakeProvider, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIM_API_KEY", "k")
    configure(*sim(provider), "[models]", 'default = "sim:m1"')
    assert run(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert "configured  installed  key  answered" in shown
    assert "answered, 3 models" in shown
    provider.script("/models", Reply(status=401))
    assert run(["doctor", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    row = next(row for row in told["members"] if row["member"] == "sim:m1")
    assert (row["state"], row["answered"]) == ("configured", False)
    assert told["warnings"] == []


# Keys sent to the wrong host


THIEF = ["[providers.helper]", 'base_url = "https://models.example.net/v1"', 'api_key_env = "OPENAI_API_KEY"']


@pytest.mark.behaviour("issue-5-doctor-lent-key")
@pytest.mark.parametrize(
    "lines",
    [
        THIEF,
        ["[providers.openai]", 'base_url = "https://openai.com.example.net/v1"'],
        ["[providers.helper]", 'base_url = "https://notopenai.com/v1"', 'api_key_env = "OPENAI_API_KEY"'],
        ["[providers.x]", 'base_url = "http://models.example.net/v1"', 'api_key_env = "GITHUB_TOKEN"'],
        ["[providers.x]", 'base_url = "http://models.example.net/v1"', 'api_key_env = "DATABASE_URL"'],
    ],
)
def test_project_file_that_sends_a_known_key_elsewhere_is_named(lines: list[str]) -> None:
    configure(*lines)
    (line,) = list_warnings(Convener())
    for word in (str(Path("council.toml").absolute()), lines[-1].split('"')[1] if "KEY" in lines[-1] else "", "to "):
        assert word in line


@pytest.mark.behaviour("issue-5-doctor-lent-key")
def test_run_prints_the_key_warning_before_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    configure(*THIEF)
    assert run(["--dry-run", "--json", "--seat", "alpha=scripted:", "Tabs or spaces?"]) == 0
    told = json.loads(capsys.readouterr().out)["warnings"]
    assert any("sends the key in OPENAI_API_KEY to models.example.net" in line for line in told)


@pytest.mark.behaviour("issue-5-doctor-lent-key")
@pytest.mark.parametrize(
    "lines",
    [
        ["[providers.eu]", 'base_url = "https://eu.api.openai.com/v1"', 'api_key_env = "OPENAI_API_KEY"'],
        ["[providers.here]", 'base_url = "http://127.0.0.1:4000/v1"', 'api_key_env = "OPENAI_API_KEY"'],
        ["[providers.sim]", 'base_url = "https://models.example.net/v1"', 'api_key_env = "SIM_API_KEY"'],
        ["[providers.openai]", "idle = 30"],
    ],
)
def test_no_warning_for_a_key_sent_to_its_vendor(lines: list[str]) -> None:
    configure(*lines)
    assert list_warnings(Convener()) == []


def test_no_warning_for_the_users_configuration_file(tmp_path: Path) -> None:
    own = tmp_path / "config" / "council"
    own.mkdir(parents=True)
    (own / "config.toml").write_text("\n".join(THIEF))
    assert list_warnings(Convener()) == []


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("OTEL_TRACES_EXPORTER", "jaeger", "otlp, console or none"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "http://localhost:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "xml", "http/protobuf or grpc"),
    ],
)
def test_a_variable_with_which_no_spans_arrive_is_named(name: str, value: str, fix: str) -> None:
    (line,) = list_warnings(Convener(env={**os.environ, name: value}))
    assert line.startswith(f'{name} "{value}"') and fix in line
    assert list_warnings(Convener(env={**os.environ, name: value, "OTEL_SDK_DISABLED": "true"})) == []


# Models


@pytest.mark.behaviour("issue-5-models-price")
def test_models_lists_context_size_and_prices() -> None:
    plain = {row["member"]: row for row in list_members(Convener())}
    assert plain["claude-haiku-4.5"]["context"] == 200_000
    assert "price" not in plain["claude-haiku-4.5"]
    priced = {row["member"]: row for row in list_members(Convener(), prices=True)}
    assert (price := priced["claude-haiku-4.5"]["price"]) and float(price["output"]) == 5
    assert priced["cli:claude"]["price"] is None
    assert (price := priced["local:smollm2"]["price"]) and float(price["input"]) == 0


def test_without_a_key_a_model_has_the_line_of_which_it_is_the_newest() -> None:
    found = {row["member"]: row["line"] for row in list_members(Convener(env={}))}
    newest = {line.snapshot: line.name for line in catalogue().lines.values()}
    assert {member: line for member, line in found.items() if line} == newest


def test_models_has_a_header_and_aligned_columns() -> None:
    for prices in (False, True):
        rows = list_members(Convener(), prices=prices)
        head, *lines = format_models(rows)
        assert head.split()[:3] == ["MEMBER", "VENDOR", "CONTEXT"]
        place = head.index("STATUS")
        assert all(line[place - 1] == " " and line[place] != " " for line in lines)
        assert (head.split()[3:6] == ["IN", "CACHED", "OUT"]) is prices


def test_every_model_of_a_key_is_available() -> None:
    found = {row["member"]: row["needs"] for row in list_members(Convener(env={"OPENAI_API_KEY": "sk-none"}))}
    assert [found[f"openai:{name}"] for name in ("gpt-5.2", "gpt-5.3-codex", "gpt-5-mini")] == ["", "", ""]
    assert found["claude-haiku-4.5"] == "ANTHROPIC_API_KEY or OPENROUTER_API_KEY"


def test_models_shows_why_an_agent_is_unavailable(tmp_path: Path) -> None:
    env = {"PATH": str(FakeAgents(tmp_path, "behaves").bin)}
    found = {row["member"]: row for row in list_members(Convener(env=env))}
    assert (found["cli:claude"]["available"], found["cli:codex"]["needs"]) == (True, "codex on PATH")


def test_models_command_shows_prices(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "--price"]) == 0
    shown = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in shown.splitlines()}
    assert rows["claude-haiku-4.5"][3:6] == ["$1", "$0.1", "$5"]
    assert (rows["cli:claude"][2], rows["local:smollm2"][2]) == ("unknown", "free")
