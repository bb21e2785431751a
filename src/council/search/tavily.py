"""Tavily search: POST /search, key in a header."""

from __future__ import annotations

from typing import Any

from council.search.provider import Hit, SearchClient, SearchError, truncate_query

BASE_URL = "https://api.tavily.com"
MAX_QUERY_CHARS = 400  # characters of a query; limit of the API


class Tavily:
    name = "tavily"
    remarks: tuple[str, ...] = ()

    def __init__(self, key: str, base_url: str = "") -> None:
        headers = {"Authorization": f"Bearer {key}"}
        self._client = SearchClient(
            self.name, base_url or BASE_URL, headers, secret=key, auth_hint="check TAVILY_API_KEY"
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
