"""SearXNG, a self-hosted metasearch engine: GET /search with format=json, which its settings must allow."""

from __future__ import annotations

from council.search.provider import Hit, SearchClient, SearchSetup, WebSearch


class Searxng(WebSearch):
    name = "searxng"
    argument = "ADDRESS"

    def __init__(self, setup: SearchSetup) -> None:
        self._client = SearchClient(
            self.name, setup.argument, "allow the format json under search.formats in its settings"
        )

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]:
        params = {"q": query, "format": "json"}
        if freshness != "none":
            params["time_range"] = freshness
        answer = await self._client.request_json("GET", "/search", params=params)
        return self._client.parse_hits(answer.get("results"), "content")[:max_results]

    async def check(self) -> str:
        found = len(await self.search("council", 5, "none"))  # the server is the user's own
        return f"answered with {found} result{'' if found == 1 else 's'}"
