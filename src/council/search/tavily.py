"""Tavily: a search made for models. POST /search, the key in a header and never in the body."""

from __future__ import annotations

from typing import Any

from council.search.hits import Hit, Trouble
from council.search.web import Site, within

ADDRESS = "https://api.tavily.com"
LONGEST = 400  # characters of a query; more is refused there


class Tavily:
    name = "tavily"
    remarks: tuple[str, ...] = ()

    def __init__(self, key: str, address: str = "") -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._site = Site(self.name, address or ADDRESS, headers, secret=key, refused="check TAVILY_API_KEY")

    async def find(self, query: str, most: int, freshness: str) -> list[Hit]:
        body: dict[str, Any] = {"query": within(query, LONGEST), "max_results": most, "search_depth": "advanced"}
        if freshness != "none":
            body["time_range"] = freshness
        answer = await self._site.ask("POST", "/search", json=body)
        if not isinstance(answer, dict):
            raise Trouble(f"{self.name} answered, but not with results")
        return self._site.hits(answer.get("results"), "content")

    async def close(self) -> None:
        await self._site.close()
