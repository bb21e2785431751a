"""`council doctor` names the members that the next plain question is asked with, for many generated environments."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from council.settings.catalogue import catalogue
from tests.acceptance.helpers import Json, Terminal
from tests.fake_provider import FakeProvider

MODELS = tuple(id_ for model in catalogue().models.values() for id_ in model.ids.values())
VENDORS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "openai": "OPENAI_API_KEY",
    "google": "GEMINI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
QUESTION = "Which queue should we use for the new service?"
TOP = (
    "",
    'vendors = ["openai"]',
    'vendors = ["anthropic", "google"]',
    *(f'protocol = "{name}"' for name in ("adaptive", "auto", "quick", "triad", "advisors", "panel", "judges")),
)
TABLES = (
    '[models]\ndefault = "opus"',
    '[models]\nfast = "haiku"',
    '[seats.alpha]\nmodel = "openai:gpt-5.2"\nfallback = ["google:gemini-pro"]',
    '[seats.alpha]\nmodel = "cli:claude"',
    '[seats.beta]\nmodel = "scripted:"',
    '[seats.gamma]\nmodel = "local:smollm2"',
    '[seats.clerk]\nmodel = "openai:gpt-5.2"',
    '[chair]\nmodel = "anthropic:opus"',
    "[budget]\nmax_cost = 0.02",
    "[budget]\nmax_cost = 5.0",
)
QUICK, ALL = (0, 3, 7, 10), 250  # seeds of environments, and their number in the sweep


class Place:
    """A machine whose keys, agents and configuration are drawn by chance."""

    def __init__(
        self, provider: FakeProvider, council: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        self.provider, self.council, self.monkeypatch = provider, council, monkeypatch
        self.agents = tmp_path / "agents"
        self.agents.mkdir()
        (self.agents / "claude").write_text("#!/bin/sh\necho 1.0\n")
        (self.agents / "claude").chmod(0o755)
        self.config = tmp_path / "drawn.toml"
        monkeypatch.setenv("COUNCIL_CONFIG", str(self.config))
        monkeypatch.setenv("HOME", str(tmp_path))

    def draw(self, seed: int) -> str:
        """Set up one environment, and return what it is."""
        chance = random.Random(seed)
        for variable in VENDORS.values():
            self.monkeypatch.delenv(variable, raising=False)
        keys = [variable for variable in VENDORS.values() if chance.random() < 0.45]
        for variable in keys:
            self.monkeypatch.setenv(variable, "a key")
        path = [str(self.agents)] if chance.random() < 0.3 else []
        self.monkeypatch.setenv("PATH", ":".join([*path, "/usr/bin", "/bin"]))
        tables = {text.partition("\n")[0]: text for text in chance.sample(TABLES, chance.choice((0, 1, 1, 2, 3)))}
        parts = [chance.choice(TOP), *tables.values()]
        self.configure(*parts)
        return f"seed {seed}: {keys}, agents {path}, {parts}"

    def configure(self, *parts: str) -> None:
        """Write the configuration, with the fake endpoint for every vendor."""
        urls = [f'[providers.{name}]\nbase_url = "{self.provider.base(name)}"' for name in VENDORS]
        self.config.write_text("\n".join([*parts, *urls]), encoding="utf-8")

    def check(self, seed: int) -> bool:
        """Compare the doctor with the plan of a run. Return whether the run would be refused."""
        what = self.draw(seed)
        doctor = json.loads(self.council("doctor", "--json").out)
        plan = json.loads(self.council("--dry-run", "--json", QUESTION).out)
        if "seats" not in plan:
            reason = plan["error"].partition(":")[0]
            assert any(reason.partition(", which")[0] in notice for notice in doctor["notices"]), f"{what}: {plan}"
            return True
        assert seats_of(doctor["seats"], "seat", "member") == seats_of(places_of(plan), "name", "model"), what
        assert doctor["protocol"] == plan["protocol"], what
        return False


def places_of(plan: Json) -> list[Json]:
    return [*plan["seats"], *([plan["chair"]] if plan["chair"] else [])]


def seats_of(rows: list[Json], seat: str, member: str) -> list[tuple[str, str]]:
    return [("chair" if row[seat] == "referee" else row[seat], row[member]) for row in rows]


@pytest.fixture
def place(council: Terminal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Place]:
    with FakeProvider(models=MODELS) as provider:
        yield Place(provider, council, monkeypatch, tmp_path)


@pytest.mark.behaviour("00-doctor-next-seats")
def test_the_doctor_and_the_plan_choose_the_same_members(place: Place) -> None:
    refused = [place.check(seed) for seed in QUICK]
    assert not all(refused), "no run of these environments would start"


@pytest.mark.behaviour("00-doctor-next-seats")
def test_the_doctor_says_that_a_cap_refuses_the_next_question(place: Place) -> None:
    place.monkeypatch.setenv("ANTHROPIC_API_KEY", "a key")
    place.configure('[models]\ndefault = "opus"', "[budget]\nmax_cost = 0.001")
    assert "! the next question would be refused: the cap of $0.0010 does not cover" in place.council("doctor").out


@pytest.mark.sweep
@pytest.mark.behaviour("00-doctor-next-seats")
def test_the_doctor_and_the_plan_agree_in_any_environment(place: Place, sweep_figures: Callable[..., None]) -> None:
    refused = [place.check(seed) for seed in range(ALL)]
    sweep_figures("doctor-seats", environments=len(refused), refused=sum(refused))
