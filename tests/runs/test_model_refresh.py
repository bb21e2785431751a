"""Lists of the vendors' models: the defaults are the newest models with a price, with the catalogue's names offline."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from council.errors import Fault
from council.planning.plan import Plan
from council.render.terminal import format_plan
from council.runs.doctor import list_members
from council.runs.model_refresh import refresh_models
from council.runs.service import Convener
from council.settings.catalogue import catalogue, find_line, find_newest, find_successor, find_traits, model_id
from council.settings.model_lists import LISTS_FILE
from tests.fake_provider import FakeProvider, Reply
from tests.fakes.members import asked, member_at

pytestmark = pytest.mark.anyio
KEYS = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "COUNCIL_MODEL_LISTS": "on"}
CLOSED = "http://127.0.0.1:9"
SEED = {"alpha": "claude-opus-4.6", "beta": "gpt-5.2", "gamma": "gemini-3-pro-preview", "chair": "claude-opus-4.6"}
KNOWN = ["anthropic:claude-opus-5.5", "openai:gpt-6.1-sol", "google:gemini-3.1-pro-preview"]


class Vendors:
    """Two vendors with lists and a third that is offline, with the caches of one test."""

    def __init__(self, anthropic: FakeProvider, openai: FakeProvider, folder: Path) -> None:
        self.anthropic, self.openai, self.cache = anthropic, openai, folder / "cache"
        self.env = KEYS | {"COUNCIL_CACHE": str(self.cache), "COUNCIL_DATA": str(folder / "data"), "PATH": ""}
        self.config = folder / "own.toml"
        self.place(anthropic.base("anthropic"), openai.base("openai"))

    def place(self, anthropic: str, openai: str) -> None:
        rows = {"anthropic": anthropic, "openai": openai, "google": f"{CLOSED}/v1beta"}
        text = "".join(f'[providers.{name}]\nbase_url = "{url}"\n' for name, url in rows.items())
        self.config.write_text(text, encoding="utf-8")

    def convener(self, **flags: Any) -> Convener:
        return Convener(Path.cwd(), self.env, flags=flags, config=self.config)

    async def plan(self, protocol: str = "collaborative", **flags: Any) -> Plan:
        convener = self.convener(**flags)
        try:
            return await convener.plan(["Should we shard the database?"], protocol=protocol)
        finally:
            await convener.close()

    def age(self, seconds: float) -> None:
        """Make the stored lists older."""
        file = self.cache / LISTS_FILE
        rows = json.loads(file.read_text())
        for row in rows.values():
            row |= {"fetched": row["fetched"] - seconds, "tried": row["tried"] - seconds}
        file.write_text(json.dumps(rows))
        os.utime(file, (1, time.time() + seconds))


@pytest.fixture
def vendors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendors]:
    monkeypatch.setattr("council.runs.model_refresh.PLAN_TIMEOUT_S", 60.0)  # a busy machine is slow
    living = ("claude-opus-5", "claude-opus-99", "claude-sonnet-5", "claude-haiku-4-5-20251001")
    with (
        FakeProvider(models=living) as anthropic,
        FakeProvider(models=("gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-sol-pro")) as openai,
    ):
        yield Vendors(anthropic, openai, tmp_path)


def members_of(plan: Plan) -> list[str]:
    return [seat.member for seat in plan.roster.seats]


@pytest.mark.behaviour("18-living-defaults", "18-lists-of-a-day")
async def test_names_that_a_vendor_no_longer_lists_are_replaced_by_living_ones_and_the_plan_says_so(
    vendors: Vendors,
) -> None:
    first, second = await vendors.plan(), await vendors.plan()
    assert members_of(first) == ["anthropic:claude-opus-5", "openai:gpt-5.6-sol", KNOWN[2]]  # 99 has no price
    assert first.roster == second.roster
    assert first.cost
    assert [line for line in first.hints if "does not list" in line] == [
        "opus: anthropic does not list anthropic:claude-opus-5.5, so anthropic:claude-opus-5 is used.",
        "gpt: openai does not list openai:gpt-6.1-sol, so openai:gpt-5.6-sol is used.",
    ]
    rows = {row["line"]: row for row in first.as_json()["lines"]}
    assert {name: row["documented"] for name, row in rows.items()} == {
        "opus": SEED["alpha"], "gpt": SEED["beta"], "gemini-pro": SEED["gamma"],
    }  # fmt: skip
    assert [rows[name]["source"] for name in ("opus", "gpt", "gemini-pro")] == ["list", "list", "snapshot"]
    (shown,) = [line for line in format_plan(first.as_json()) if line.startswith("models ")]
    assert "opus (documented as claude-opus-4.6) is anthropic:claude-opus-5," in shown
    cheap = await vendors.plan(cheap=True)
    assert "anthropic:claude-haiku-4.5" in cheap.roster.member_names  # listed with its date
    assert (await vendors.plan(models=["opus"])).roster.member_names == ("anthropic:claude-opus-5",)


@pytest.mark.behaviour("18-living-defaults")
async def test_lines_of_a_file_mean_their_newest_models_also_at_one_gateway_for_two_vendors(vendors: Vendors) -> None:
    gateway = vendors.anthropic
    gateway.models += vendors.openai.models
    vendors.place(gateway.base("anthropic"), gateway.base("openai"))
    lines = '[models]\ndefault = "anthropic:sonnet"\nfast = "anthropic:haiku"\n[seats.alpha]\nmodel = "anthropic:opus"\nfallback = ["openai:gpt"]\n'
    vendors.config.write_text(vendors.config.read_text() + lines)
    (alpha, *_) = (await vendors.plan()).roster.seats
    assert (alpha.member, list(alpha.fallbacks)) == ("anthropic:claude-opus-5", ["openai:gpt-5.6-sol"])
    cheap = (await vendors.plan(cheap=True)).roster.seats
    assert cheap[0].member == "anthropic:claude-haiku-4.5"
    convener = vendors.convener()
    listed = {row["member"] for row in list_members(convener)}
    await convener.close()
    assert {"anthropic:claude-sonnet-5", "anthropic:claude-haiku-4.5"} <= listed
    assert not {f"{vendor}:{line}" for vendor in ("anthropic", "openai") for line in catalogue().lines} & listed


@pytest.mark.behaviour("18-lists-of-a-day")
async def test_a_list_is_asked_for_once_a_day_and_an_old_one_is_used_offline(vendors: Vendors) -> None:
    living = ("claude-opus-5", "claude-opus-5-5")
    assert members_of(await vendors.plan())[0] == "anthropic:claude-opus-5"
    vendors.anthropic.models = living
    assert members_of(await vendors.plan())[0] == "anthropic:claude-opus-5"
    vendors.age(25 * 3600)
    vendors.anthropic.models = ()  # an empty list is none
    assert members_of(await vendors.plan())[0] == "anthropic:claude-opus-5"
    vendors.anthropic.models = living
    vendors.age(-48 * 3600)  # the clock was wrong: both times are in the future
    vendors.anthropic.script("/models", Reply(status=503))
    assert members_of(await vendors.plan())[0] == "anthropic:claude-opus-5"
    vendors.age(20 * 60)  # after a failed attempt there is another one
    newer = await vendors.plan()
    assert members_of(newer)[0] == KNOWN[0]
    assert newer.as_json()["lines"][0]["source"] == "list"


@pytest.mark.behaviour("18-living-defaults")
async def test_offline_the_names_of_the_catalogue_are_used(vendors: Vendors) -> None:
    vendors.place(CLOSED, CLOSED)
    plan = await vendors.plan()
    assert members_of(plan) == KNOWN
    assert {row["source"] for row in plan.as_json()["lines"]} == {"snapshot"}
    assert not [line for line in (*plan.warnings, *plan.hints) if "list" in line]
    row = {
        "fetched": time.time(),
        "tried": 0,
        "models": {"claude-opus-5": ""},
        "is_complete": True,
        "lines": {"opus": "claude-opus-5"},
    }
    for damage in (
        {"fetched": "x"},
        {"tried": None},
        {"models": 3},
        {"models": {"x": 5}},
        {"lines": {"opus": 7}},
        {"extra": 1},
    ):
        (vendors.cache / LISTS_FILE).write_text(json.dumps({f"anthropic {CLOSED}": row | damage}))
        os.utime(vendors.cache / LISTS_FILE, ns=(1, id(damage)))
        assert members_of(await vendors.plan()) == KNOWN, damage
    vendors.env["COUNCIL_MODEL_LISTS"] = "off"
    vendors.place(vendors.anthropic.base("anthropic"), vendors.openai.base("openai"))
    assert members_of(await vendors.plan()) == KNOWN


@pytest.mark.behaviour("18-lists-of-a-day")
async def test_a_plan_does_not_wait_for_a_vendor_that_hangs(vendors: Vendors, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("council.runs.model_refresh.PLAN_TIMEOUT_S", 0.2)

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, "127.0.0.1", 0) as server:
        vendors.place(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", vendors.openai.base("openai"))
        assert members_of(await vendors.plan())[0] == KNOWN[0]


@pytest.mark.behaviour("18-retired-models")
async def test_retired_models_are_named_with_their_successors(vendors: Vendors) -> None:
    vendors.config.write_text(
        vendors.config.read_text() + '[seats.alpha]\nmodel = "google:gemini-3-pro-preview"\n'
        '[seats.beta]\nmodel = "openai:gpt-5.2"\n[seats.gamma]\nmodel = "anthropic:claude-opus-4.6"\n'
    )
    plan = await vendors.plan()
    assert members_of(plan) == ["google:gemini-3-pro-preview", "openai:gpt-5.2", "anthropic:claude-opus-4.6"]
    shown = [line for line in plan.hints if ": use " in line]
    assert shown == [
        "google:gemini-3-pro-preview was retired on 2026-03-09: use google:gemini-3.1-pro-preview.",
        "openai:gpt-5.2 is not listed by openai: use openai:gpt-5.6-sol.",
        "anthropic:claude-opus-4.6 is not listed by anthropic: use anthropic:claude-opus-5.",
    ]
    assert members_of(await vendors.plan(models=["gemini-3-pro"]))[0] == KNOWN[2]


@pytest.mark.behaviour("18-retired-models")
async def test_a_list_that_may_be_a_part_retires_no_model(vendors: Vendors) -> None:
    """A stored list that does not say whether it is complete may be the first page of one."""
    vendors.config.write_text(vendors.config.read_text() + '[seats.beta]\nmodel = "openai:gpt-5.2"\n')
    unlisted = "openai:gpt-5.2 is not listed by openai: use openai:gpt-5.6-sol."
    assert unlisted in (await vendors.plan()).hints
    file = vendors.cache / LISTS_FILE
    rows = json.loads(file.read_text())
    assert all(row.pop("is_complete") is not None for row in rows.values())
    file.write_text(json.dumps(rows))
    os.utime(file, (1, 1))
    assert unlisted not in (await vendors.plan()).hints


@pytest.mark.behaviour("50-notices-once-a-day")
async def test_a_model_that_is_only_a_fallback_has_no_notice(vendors: Vendors) -> None:
    seats = "".join(f'[seats.{name}]\nmodel = "scripted:"\n' for name in ("beta", "gamma"))
    vendors.config.write_text(
        f'{vendors.config.read_text()}{seats}[seats.alpha]\nmodel = "scripted:"\nfallback = ["openai:gpt-5.2", "opus"]\n'
        '[chair]\nmodel = "scripted:"\n'
    )
    plan = await vendors.plan()
    assert plan.roster.seats[0].fallbacks == ("openai:gpt-5.2", "anthropic:claude-opus-5")
    assert plan.hints == ()
    assert [row["line"] for row in plan.as_json()["lines"]] == ["opus"], "the plan has it"


@pytest.mark.behaviour("18-retired-models")
async def test_models_shows_lines_retired_models_and_what_a_refresh_found(vendors: Vendors) -> None:
    convener = vendors.convener()
    try:
        problems = await refresh_models(convener.settings, convener.env, convener.members, is_forced=True)
        rows = {row["member"]: row for row in list_members(convener)}
    finally:
        await convener.close()
    assert {name: bool(problem) for name, problem in problems.items()} == {
        "anthropic": False, "openai": False, "google": True,
    }  # fmt: skip
    assert rows["anthropic:claude-opus-5"]["line"] == "opus"
    retired = rows["google:gemini-3-pro-preview"]["retired"]
    assert retired is not None and retired["successor"] == KNOWN[2]
    assert rows["anthropic:claude-opus-4.6"]["retired"] == {
        "date": None, "successor": "anthropic:claude-opus-5", "is_over": True,
    }  # fmt: skip
    assert rows["google:gemini-3.1-pro-preview"]["retired"] is None


async def test_a_model_that_is_not_found_names_its_successor(provider: FakeProvider) -> None:
    error = {"error": {"code": 404, "message": "models/gemini-3-pro-preview is not found for API version v1beta."}}
    provider.always("gemini-3-pro-preview", Reply(status=404, error=error))
    member = member_at(provider.base("google"), "google", model="gemini-3-pro-preview")
    with pytest.raises(Fault, match=r"Its successor is gemini-3\.1-pro-preview\.$"):
        await asked(member)


# Lines

NEWEST = [
    ("opus", ["claude-opus-4-20250514", "claude-opus-4-1-20250805", "claude-opus-5", "claude-3-opus"], "claude-opus-5"),
    ("opus", ["claude-opus-4-9", "claude-opus-4-10"], "claude-opus-4-10"),
    ("opus", ["claude-opus-5-5-20260901", "claude-opus-5-5"], "claude-opus-5-5"),
    ("opus", ["anthropic/claude-opus-5", "anthropic/claude-opus-5.5:batch"], "anthropic/claude-opus-5"),
    ("gpt", ["gpt-5.5", "gpt-6-sol", "gpt-6.1-terra", "gpt-6-astra", "gpt-5.5-pro", "gpt-4o"], "gpt-6-sol"),
    ("gpt-mini", ["gpt-5-mini", "gpt-5.6-terra", "gpt-5-image-mini"], "gpt-5.6-terra"),
    ("gemini-pro", ["gemini-2.5-pro", "gemini-3.1-pro-preview", "gemini-3.1-pro-preview-customtools"], "gemini-3.1-pro-preview"),
    ("gemini-pro", ["gemini-4-pro-preview", "gemini-4-pro"], "gemini-4-pro"),
    ("gemini-flash", ["gemini-3.8-flash", "gemini-3.8-flash-lite-tts", "gemini-3.9-flash-lite"], "gemini-3.8-flash"),
    ("haiku", ["claude-opus-5"], ""),
]  # fmt: skip


@pytest.mark.behaviour("18-living-defaults")
@pytest.mark.parametrize(("line", "ids", "newest"), NEWEST)
def test_the_newest_model_of_a_line_is_found_by_its_version(line: str, ids: list[str], newest: str) -> None:
    assert find_newest(catalogue().lines[line], ids) == newest


def test_a_model_with_a_price_comes_before_a_newer_one_without() -> None:
    ids = ["claude-opus-5", "claude-opus-6"]
    assert find_newest(catalogue().lines["opus"], ids, lambda id_: id_ == "claude-opus-5") == "claude-opus-5"
    assert find_newest(catalogue().lines["opus"], ids, lambda id_: False) == "claude-opus-6"


@pytest.mark.behaviour("18-living-defaults")
def test_the_four_seats_of_the_documented_line_up_are_lines_with_living_models() -> None:
    for seat, name in SEED.items():
        line = catalogue().lines[catalogue().seating[seat]["model"]]
        assert line.documented == name
        assert find_line(name) == line
        assert not catalogue().models[line.snapshot].retired
    for line in catalogue().lines.values():
        assert find_line(line.snapshot) == line  # its own pattern matches it
        assert find_newest(line, [line.snapshot, line.documented or line.snapshot]) == line.snapshot


def test_a_model_that_is_newer_than_the_catalogue_has_the_parameters_of_its_line() -> None:
    known, newer = find_traits("gemini-3.1-pro-preview"), find_traits("gemini-9-pro")
    assert known and newer and (newer.reasoning, newer.efforts) == (known.reasoning, known.efforts)
    assert model_id("google:gemini-9-pro") == "gemini-9-pro"
    assert (find_successor("gemini-9-pro"), find_successor("gpt-5.2"), find_successor("m1")) == ("", "gpt-6.1-sol", "")
