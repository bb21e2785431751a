"""Command-line agents: seated only if they are named and installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.errors import ConfigError
from council.planning.seating import seat_council
from council.settings import Settings, load_settings
from council.settings.catalogue import is_reasoning
from council.settings.member_lookup import available_members, vendor_of
from tests.trusted_project import trust_project

NAMES = ["alpha", "beta", "gamma"]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """Return an environment with all three agents on PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("claude", "codex", "gemini"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    return {"PATH": str(place), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def settings(env: dict[str, str], *lines: str) -> Settings:
    Path("council.toml").write_text("\n".join(lines))
    trust_project()
    return load_settings(Path.cwd(), env)


@pytest.mark.behaviour("00-members-cli")
def test_unnamed_agent_is_not_seated(env: dict[str, str]) -> None:
    seated = seat_council(NAMES, settings(env), env)
    assert {place.member for place in seated.seats} == {"local:smollm2"}


@pytest.mark.behaviour("00-members-cli")
def test_named_agents_are_seated_and_count_as_their_vendors(env: dict[str, str]) -> None:
    named = settings(
        env, "[seats]", 'alpha.model = "cli:claude:opus"', 'beta.model = "cli:codex"', 'gamma.model = "cli:gemini"'
    )
    seated = seat_council(NAMES, named, env)
    assert [place.member for place in seated.seats] == ["cli:claude:opus", "cli:codex", "cli:gemini"]
    assert [place.vendor for place in seated.seats] == ["anthropic", "openai", "google"]


@pytest.mark.behaviour("00-members-cli")
def test_providers_with_a_key_come_before_agents_of_single_seats(env: dict[str, str]) -> None:
    env["OPENAI_API_KEY"] = "k"
    found = available_members(settings(env, "[seats.beta]", 'model = "cli:claude"'), env)
    assert [one.member for one in found] == ["openai:gpt-6.1-sol", "cli:claude"]


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("cli:claude", "needs `claude`, which is not on PATH: install it and log in"),
        ("cli:clod", "use one of cli:claude, cli:codex, cli:gemini"),
        ("cli:", "names no model"),
    ],
)
def test_missing_agent_is_named_in_the_error(env: dict[str, str], member: str, said: str) -> None:
    env["PATH"] = "/nowhere"
    with pytest.raises(ConfigError, match=said):
        seat_council(NAMES, settings(env, "[seats.alpha]", f'model = "{member}"'), env)


@pytest.mark.behaviour("40-security-command")
def test_executable_in_a_relative_folder_is_not_used(env: dict[str, str]) -> None:
    Path("claude").write_text("#!/bin/sh\n")
    Path("claude").chmod(0o755)
    env["PATH"] = ":.:bin"
    with pytest.raises(ConfigError, match="needs `claude`, which is not on PATH"):
        seat_council(NAMES, settings(env, "[models]", 'default = "cli:claude"'), env)


def test_agent_has_the_timeouts_of_reasoning_members(env: dict[str, str]) -> None:
    assert settings(env).seat_timeout(reasoning=is_reasoning("cli:codex")) == 300.0


def test_agent_timeouts_can_be_set(env: dict[str, str]) -> None:
    assert settings(env, "[commands.claude]", "first_byte = 20").commands == {"claude": {"first_byte": 20}}
    with pytest.raises(ConfigError, match=r'did you mean "commands\.claude"'):
        settings(env, "[commands.claud]", "first_byte = 20")


def test_agent_model_does_not_change_its_family(env: dict[str, str]) -> None:
    assert vendor_of("cli:gemini:gemini-3-pro-preview", settings(env)) == "google"
