"""Tavily search: POST /search, key in a header."""

from __future__ import annotations

from typing import Any

from council.search.provider import Hit, SearchClient, SearchError, SearchProvider, SearchSetup, truncate_query

BASE_URL = "https://api.tavily.com"
MAX_QUERY_CHARS = 400  # characters of a query; limit of the API


class Tavily(SearchProvider):
    name = "tavily"
    key_env = "TAVILY_API_KEY"

    def __init__(self, setup: SearchSetup) -> None:
        self._client = SearchClient(
            self.name,
            setup.base_url or BASE_URL,
            {"Authorization": f"Bearer {setup.key}"},
            auth_hint=f"check {self.key_env}",
            secret=setup.key,
        )

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]:
        body: dict[str, Any] = {
            "query": truncate_query(query, MAX_QUERY_CHARS),
            "max_results": max_results,
            "search_depth": "advanced",
        }
        if freshness != "none":
            body["time_range"] = freshness
        answer = await self._client.request_json("POST", "/search", json=body)
        if not isinstance(answer, dict):
            raise SearchError(f"{self.name} returned an unexpected response")
        return self._client.parse_hits(answer.get("results"), "content")

    async def close(self) -> None:
        await self._client.close()
