"""Brave search: GET /res/v1/web/search, key in a header. A response without a web section has no results."""

from __future__ import annotations

from council.search.hits import Hit, Trouble
from council.search.web import Site, within

ADDRESS = "https://api.search.brave.com"
LONGEST, MOST_WORDS = 400, 50  # limits of the API for a query
LOCKED = (401, 403, 422)  # an unknown key returns 422
AGES = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}


class Brave:
    name = "brave"
    remarks: tuple[str, ...] = ()

    def __init__(self, key: str, address: str = "") -> None:
        headers = {"X-Subscription-Token": key}
        todo = "check BRAVE_SEARCH_API_KEY"
        self._site = Site(self.name, address or ADDRESS, headers, refused=todo, secret=key, locked=LOCKED)

    async def find(self, query: str, most: int, freshness: str) -> list[Hit]:
        asked = {"q": within(query, LONGEST, MOST_WORDS), "count": str(most), "result_filter": "web"}
        if freshness in AGES:
            asked["freshness"] = AGES[freshness]
        answer = await self._site.ask("GET", "/res/v1/web/search", params=asked)
        web = answer.get("web", {}) if isinstance(answer, dict) else None
        if not isinstance(web, dict):
            raise Trouble(f"{self.name} returned an unexpected response")
        return self._site.hits(web.get("results", []), "description")

    async def close(self) -> None:
        await self._site.close()
