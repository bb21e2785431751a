"""The search provider of a run, created on first use from the run's options."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from council.errors import SearchNotEnabled
from council.planning.setup import RunSetup
from council.runs.service import Convener
from council.types import Question, Roster
from tests.packet.conftest import write
from tests.packet.fake_secrets import SECRETS
from tests.search.conftest import KEY
from tests.search.fake_search import FakeSearch, page
from tests.trusted_project import trust_project

pytestmark = pytest.mark.anyio


def setup_of(options: dict[str, Any]) -> RunSetup:
    return RunSetup("general", Question("?"), Roster(()), options)


def searching(convener: Convener, meant: str) -> Any:
    return convener.run_context.make_effects(setup_of({"search": meant}), convener.folder)["search"]


@pytest.fixture
async def convener(fake: FakeSearch) -> AsyncIterator[Convener]:
    write(
        Path.cwd(),
        {"council.toml": f'[search]\nbase_url = "{fake.address}"\nmax_results = 2\n', "docs/a.md": "A zeppelin.\n"},
    )
    trust_project()
    made = Convener(env={"TAVILY_API_KEY": KEY})
    yield made
    await made.close()


def test_no_search_without_a_choice() -> None:
    assert set(Convener().run_context.make_effects(setup_of({}), Path())) == {"look"}


@pytest.mark.behaviour("30-search-files")
async def test_documents_are_searched_without_any_key(convener: Convener, fake: FakeSearch) -> None:
    [row] = await searching(convener, "files:docs")({"queries": ["zeppelin"]})
    assert row["url"] == "docs/a.md" and not fake.seen


@pytest.mark.behaviour("30-search-rows")
async def test_settings_give_max_results_and_the_run_gives_freshness(convener: Convener, fake: FakeSearch) -> None:
    fake.results = [page(str(n), f"https://a.example/{n}") for n in range(9)]
    rows = await searching(convener, "tavily")({"queries": ["tabs"], "freshness": "week"})
    assert len(rows) == 2 and fake.seen[0].asked["time_range"] == "week" and fake.seen[0].asked["max_results"] == 10


async def test_secret_in_a_query_is_not_sent(convener: Convener, fake: FakeSearch) -> None:
    line, secret = SECRETS["github"]
    await searching(convener, "tavily")({"queries": [line]})
    assert fake.queries == ["token [redacted:GitHub token]"] and secret not in str(fake.seen)


@pytest.mark.behaviour("30-search-enabled")
async def test_resumed_run_without_its_key_names_the_variable(convener: Convener) -> None:
    with pytest.raises(SearchNotEnabled, match="set BRAVE_SEARCH_API_KEY"):
        await searching(convener, "brave")({"queries": ["tabs"]})
