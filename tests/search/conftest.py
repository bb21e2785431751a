"""Fake search server, and each HTTP search provider connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from council.search import make_provider
from council.search.provider import SearchProvider
from council.settings import load_settings
from tests.search.fake_search import FakeSearch
from tests.trusted_project import trust_project

KEY = "-".join(["tvly", "dev", "q8Zk3Xv0Lm2Tn7Rb5Wc9"])
ENV = {"TAVILY_API_KEY": KEY, "BRAVE_SEARCH_API_KEY": KEY}


def refuse(path: Path) -> None:
    raise AssertionError("no file is read for a search on the web")


def web_finder(name: str, address: str, **env: str) -> SearchProvider:
    env = ENV | env
    Path("council.toml").write_text(f'[search]\nbase_url = "{address}"\n', encoding="utf-8")
    trust_project()
    return make_provider(name, load_settings(Path(), env), env, Path(), refuse)


@pytest.fixture
async def fake() -> AsyncIterator[FakeSearch]:
    async with FakeSearch() as running:
        yield running


@pytest.fixture(params=["tavily", "brave", "searxng"])
async def web(request: pytest.FixtureRequest, fake: FakeSearch) -> AsyncIterator[SearchProvider]:
    """Each HTTP search provider in turn."""
    made = web_finder(request.param, fake.address)
    yield made
    await made.close()


@pytest.fixture
async def tavily(fake: FakeSearch) -> AsyncIterator[SearchProvider]:
    made = web_finder("tavily", fake.address)
    yield made
    await made.close()
