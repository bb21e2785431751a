"""Tavily search: POST /search, key in a header."""

from __future__ import annotations

from typing import Any

from council.search.hits import Hit, Trouble
from council.search.web import Site, within

ADDRESS = "https://api.tavily.com"
LONGEST = 400  # characters of a query; limit of the API


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
            raise Trouble(f"{self.name} returned an unexpected response")
        return self._site.hits(answer.get("results"), "content")

    async def close(self) -> None:
        await self._site.close()
