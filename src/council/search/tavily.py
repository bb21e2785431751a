"""Tavily search: POST /search, key in a header."""

from __future__ import annotations

from typing import Any

from council.search.provider import Hit, SearchClient, SearchSetup, WebSearch, truncate_query

BASE_URL = "https://api.tavily.com"
MAX_QUERY_CHARS = 400  # characters of a query; limit of the API


class Tavily(WebSearch):
    name = "tavily"
    key_env = "TAVILY_API_KEY"

    def __init__(self, setup: SearchSetup) -> None:
        self._client = SearchClient(
            self.name,
            setup.base_url or BASE_URL,
            f"check {self.key_env}",
            {"Authorization": f"Bearer {setup.key}"},
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
        return self._client.parse_hits(answer.get("results"), "content")

    async def check(self) -> str:
        await self._client.request_json("GET", "/usage")  # costs no credit
        return "answered"
