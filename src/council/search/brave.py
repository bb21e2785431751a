"""Brave search: GET /res/v1/web/search, key in a header. A response without a web section has no results."""

from __future__ import annotations

from council.search.provider import Hit, SearchClient, SearchSetup, WebSearch, truncate_query

BASE_URL = "https://api.search.brave.com"
MAX_QUERY_CHARS, MAX_QUERY_WORDS = 400, 50  # limits of the API for a query
AUTH_STATUSES = (401, 403, 422)  # an unknown key returns 422
FRESHNESS_CODES = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave(WebSearch):
    name = "brave"
    key_env = "BRAVE_SEARCH_API_KEY"

    def __init__(self, setup: SearchSetup) -> None:
        self._client = SearchClient(
            self.name,
            setup.base_url or BASE_URL,
            f"check {self.key_env}",
            {"X-Subscription-Token": setup.key},
            secret=setup.key,
            auth_statuses=AUTH_STATUSES,
        )

    async def search(self, query: str, max_results: int, freshness: str) -> list[Hit]:
        params = {
            "q": truncate_query(query, MAX_QUERY_CHARS, MAX_QUERY_WORDS),
            "count": str(max_results),
            "result_filter": "web",
        }
        if freshness in FRESHNESS_CODES:
            params["freshness"] = FRESHNESS_CODES[freshness]
        answer = await self._client.request_json("GET", "/res/v1/web/search", params=params)
        web = answer.get("web", {})
        return self._client.parse_hits(web.get("results", []) if isinstance(web, dict) else None, "description")
