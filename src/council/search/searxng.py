"""SearXNG, a self-hosted metasearch engine: GET /search with format=json, which its settings must allow."""

from __future__ import annotations

from council.search.hits import Hit, Trouble
from council.search.web import Site


class Searxng:
    name = "searxng"
    remarks: tuple[str, ...] = ()

    def __init__(self, address: str) -> None:
        self._site = Site(self.name, address, {}, refused="allow the format json under search.formats in its settings")

    async def find(self, query: str, most: int, freshness: str) -> list[Hit]:
        asked = {"q": query, "format": "json"}
        if freshness != "none":
            asked["time_range"] = freshness
        answer = await self._site.ask("GET", "/search", params=asked)
        if not isinstance(answer, dict):
            raise Trouble(f"{self.name} returned an unexpected response")
        return self._site.hits(answer.get("results"), "content")[:most]

    async def close(self) -> None:
        await self._site.close()
