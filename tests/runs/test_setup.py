"""First setup: search for keys and logins, choice of members, and changes of the user's file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from council.errors import ConfigError
from council.runs.service import Convener
from council.runs.setup import Source, VendorModels, assign_seats, build_values, choose_models, find_sources
from council.settings import load_settings
from council.settings.config_files import edit_config, format_toml, write_private
from tests.fake_provider import FakeProvider, Reply
from tests.members.fake_agents import FakeAgents
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio
CLOSED = "http://127.0.0.1:9/v1"
WIRES = ("anthropic", "openai", "google")


async def found(env: dict[str, str], own: dict[str, str] | None = None) -> dict[str, Source]:
    convener = Convener(env={"PATH": "/nowhere", "HOME": "/nowhere", **env})
    try:
        return {source.name: source for source in await find_sources(convener, env if own is None else own)}
    finally:
        await convener.close()


def configure(**addresses: str) -> None:
    tables = {"ollama": CLOSED, **addresses}
    lines = [f'[providers.{name}]\nbase_url = "{url}"\nconnect = 1\n' for name, url in tables.items()]
    Path("council.toml").write_text("".join(lines))
    trust_project()


@pytest.mark.behaviour("00-init-tests-keys")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_key_is_tested_by_listing_models_on_every_wire(provider: FakeProvider, wire: str) -> None:
    configure(**{wire: provider.base(wire)})
    variable = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}[wire]
    source = (await found({variable: "k"}))[wire]
    assert (source.state, source.found, source.detail) == ("works", f"{variable} (environment)", "3 models")
    provider.script("/models", Reply(status=401, error={"message": "this key was revoked"}))
    source = (await found({variable: "k"}, {}))[wire]
    assert (source.state, source.found) == ("refused", f"{variable} (keyring)")
    assert "this key was revoked" in source.detail
    assert provider.log == [], "no completion"


@pytest.mark.behaviour("00-init-tests-keys")
async def test_an_endpoint_without_an_answer_is_unreachable(provider: FakeProvider) -> None:
    configure(openai=CLOSED, anthropic=provider.base("anthropic"))
    sources = await found({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "line\nbreak"})
    assert (sources["openai"].state, "connection refused" in sources["openai"].detail) == ("unreachable", True)
    assert sources["anthropic"].state == "refused"
    assert (sources["google"].state, sources["google"].detail) == ("missing", "no key: set GEMINI_API_KEY")
    assert sources["cli:claude"].state == "missing"


@pytest.mark.behaviour("00-init-tests-keys")
async def test_logins_and_a_local_endpoint_are_found(provider: FakeProvider, tmp_path: Path) -> None:
    bench = FakeAgents(tmp_path, "behaves")
    (bench.home / ".claude").mkdir()
    (bench.home / ".claude" / ".credentials.json").write_text("{}")
    env = {name: bench.env[name] for name in ("PATH", "HOME")}
    sources = await found(env | {"OLLAMA_HOST": f"127.0.0.1:{provider.port}"})
    assert (sources["cli:claude"].state, "logged in" in sources["cli:claude"].detail) == ("works", True)
    assert (sources["ollama"].state, sources["ollama"].models) == ("works", ("m1", "m2", "m3"))


@pytest.mark.behaviour("00-init-bad-key")
async def test_an_agent_with_a_key_that_the_vendor_refused_is_refused_too(
    provider: FakeProvider, tmp_path: Path
) -> None:
    bench = FakeAgents(tmp_path, "behaves")
    env = {name: bench.env[name] for name in ("PATH", "HOME")} | {"ANTHROPIC_API_KEY": "k"}
    configure(anthropic=provider.base("anthropic"))
    assert (await found(env))["cli:claude"].state == "works"
    provider.always("/models", Reply(status=401, error={"message": "this key was revoked"}))
    agent = (await found(env))["cli:claude"]
    assert (agent.state, agent.detail[:46]) == ("refused", "ANTHROPIC_API_KEY was refused: 401: this key w")
    assert (await found(env | {"ANTHROPIC_BASE_URL": "http://gateway"}))["cli:claude"].state == "works"


# Choice of members


def source(name: str, *models: str, lists_all: bool = True, **more: Any) -> Source:
    return Source(name, more.pop("vendor", name), "KEY", "works", models=models, lists_all=lists_all, **more)


ANTHROPIC = source("anthropic", "claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5")
OPENAI = source("openai", "gpt-5.2", "gpt-5-mini")


@pytest.mark.behaviour("00-init-seats")
@pytest.mark.parametrize(
    ("chosen", "strong"),
    [
        ([ANTHROPIC], ["anthropic:claude-opus-4.6"]),
        ([OPENAI, ANTHROPIC], ["openai:gpt-5.2", "anthropic:claude-opus-4.6"]),
        ([source("openrouter", lists_all=False)], ["openrouter:opus", "openrouter:gpt", "openrouter:gemini-pro"]),
        ([source("anthropic", "claude-sonnet-4-6")], ["anthropic:claude-sonnet-4.6"]),
        ([source("anthropic", "claude-next")], ["anthropic:claude-next"]),
        ([source("ollama", "nomic-embed-text", "qwen3:8b")], ["ollama:qwen3:8b"]),
        ([source("ollama", "llama3.2:latest")], ["ollama:llama3.2"]),
        ([ANTHROPIC, source("cli:claude", vendor="anthropic"), source("cli:codex", vendor="openai")], ["anthropic:claude-opus-4.6", "cli:codex"]),
        ([source("openai", "text-embedding-3")], []),
    ],
    ids=["one", "order", "router", "tier not listed", "no tier listed", "local", "local tag", "agents", "no chat model"],
)  # fmt: skip
def test_members_are_listed_models_of_each_vendor_once(chosen: list[Source], strong: list[str]) -> None:
    models = choose_models(chosen, load_settings(Path.cwd(), {}))
    assert [one.strong for one in models] == strong


@pytest.mark.behaviour("00-init-seats")
def test_with_lists_of_models_the_lines_are_written_and_not_todays_names() -> None:
    settings = load_settings(Path.cwd(), {"COUNCIL_MODEL_LISTS": "on"})
    anthropic, openai = choose_models([ANTHROPIC, OPENAI], settings)
    assert anthropic == VendorModels("anthropic", "anthropic:sonnet", "anthropic:opus", "anthropic:haiku")
    assert openai == VendorModels("openai", "openai:gpt-mini", "openai:gpt", "openai:gpt-mini")  # lists no nano
    (only,) = choose_models([source("anthropic", "claude-sonnet-4-6")], settings)
    assert only.strong == "anthropic:sonnet"


def test_an_endpoint_of_your_own_keeps_the_model_that_the_settings_name() -> None:
    Path("council.toml").write_text(f'[providers.sim]\nbase_url = "{CLOSED}"\n[models]\ndefault = "sim:m2"\n')
    trust_project()
    (one,) = choose_models([source("sim", "m1", "m2")], load_settings(Path.cwd(), {}))
    assert one == VendorModels("sim", "sim:m2", "sim:m2", "sim:m2")


@pytest.mark.parametrize(
    ("listed", "member"),
    [(("m1", "m2"), "sim:m1"), (("m1", "text-embedding-3", "kept"), "sim:kept"), (("text-embedding-3",), "sim:gone"), ((), "sim:gone")],
)  # fmt: skip
def test_a_named_model_that_an_endpoint_of_your_own_does_not_list_is_replaced(
    listed: tuple[str, ...], member: str
) -> None:
    named = '[models]\ndefault = "sim:gone"\nstrong = "other:m2"\n[seats.alpha]\nmodel = "sim:kept"\n'
    tables = "".join(f'[providers.{name}]\nbase_url = "{CLOSED}"\n' for name in ("sim", "other"))
    Path("council.toml").write_text(tables + named)
    trust_project()
    (one,) = choose_models([source("sim", *listed)], load_settings(Path.cwd(), {}))
    assert one == VendorModels("sim", member, member, member)


@pytest.mark.behaviour("00-init-seats")
@pytest.mark.parametrize(
    ("vendors", "seats"),
    [
        ("anthropic openai google", "anthropic openai google anthropic"),
        ("google anthropic", "anthropic google google anthropic"),
        ("openai", "openai openai openai openai"),
        ("sim openai", "sim openai sim sim"),
        ("a b c d", "a b c a"),
    ],
)
def test_seats_use_their_usual_vendor_then_unused_ones(vendors: str, seats: str) -> None:
    models = [VendorModels(name, name, name, name) for name in vendors.split()]
    assert [one.vendor for one in assign_seats(models)] == seats.split()


@pytest.mark.behaviour("00-init-seats")
def test_fallbacks_are_only_the_chosen_vendors() -> None:
    chosen = [ANTHROPIC, OPENAI]
    values = build_values(choose_models(chosen, load_settings(Path.cwd(), {})), chosen)
    assert values["seats.beta.fallback"] == ["anthropic:claude-opus-4.6"]
    assert values["models.other"] == "openai:gpt-5-mini"
    assert values["vendors"] == ["anthropic", "openai"]
    alone = build_values(choose_models([OPENAI], load_settings(Path.cwd(), {})), [OPENAI])
    assert alone["chair.fallback"] == []
    assert alone["models.other"] is None


# The file


OLD = """# my settings
timeout = 60  # seconds

[models]
default = "sim:m1"    # the small one
other = "simb:m1"

[budget]
max_cost = 1.0
"""


@pytest.mark.behaviour("00-init-keeps-the-file")
def test_an_edit_keeps_comments_and_other_keys() -> None:
    new = edit_config(
        OLD, {"models.default": "a:m", "models.other": None, "seats.alpha.model": "a:m", "chair.fallback": ["b:m"]}
    )
    assert "# my settings\ntimeout = 60  # seconds\n" in new
    assert 'default = "a:m"    # the small one\n' in new
    assert tomllib.loads(new) == {
        "timeout": 60, "models": {"default": "a:m"}, "budget": {"max_cost": 1.0}, "seats": {"alpha": {"model": "a:m"}}, "chair": {"fallback": ["b:m"]},
    }  # fmt: skip
    assert edit_config(new, {"models.default": "a:m", "chair.fallback": ["b:m"]}) == new
    assert tomllib.loads(edit_config(new, {"vendors": ["a"]})) == {**tomllib.loads(new), "vendors": ["a"]}


@pytest.mark.parametrize(
    "old", ['models = {default = "x:y"}\n', 'models.default = "x:y"\n', '[seats]\nalpha = {model = "x:y"}\n']
)
def test_an_edit_understands_every_notation(old: str) -> None:
    new = tomllib.loads(
        edit_config(old, {"models.default": "a:m", "seats.alpha.model": "a:m", "seats.beta.model": "b:m"})
    )
    assert new == {"models": {"default": "a:m"}, "seats": {"alpha": {"model": "a:m"}, "beta": {"model": "b:m"}}}


def test_a_written_file_is_private_and_a_link_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles" / "config.toml", tmp_path / "config.toml"
    target.parent.mkdir()
    link.symlink_to(target)
    write_private(link, "timeout = 1\n")
    assert link.is_symlink() and target.read_text() == "timeout = 1\n"
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(target.parent.iterdir()) == [target]
    with pytest.raises(ConfigError, match="cannot write"):
        write_private(target / "below" / "config.toml", "")


@pytest.mark.parametrize(
    "value", ['a "b"\\c\n\x7f', 1, 0.5, True, ["a", "b"], [{"name": "x", "n": 1}], {"a b": [1.0]}, [], "ü"]
)
def test_values_are_printed_as_toml(value: Any) -> None:
    assert tomllib.loads(f"key = {format_toml(value)}") == {"key": value}
