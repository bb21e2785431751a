"""aiohttp and the json module, without anything around them."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from peers.workload import messages, run_waves


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        self.url, self.model, self.stream = f"{base_url}/chat/completions", model, stream
        self.session: aiohttp.ClientSession | None = None

    async def call(self, role: str, prompt: str) -> str:
        if self.session is None:
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers={"authorization": "Bearer x"}
            )
        body: dict[str, Any] = {"model": self.model, "messages": messages(role, prompt)}
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        async with self.session.post(self.url, json=body) as response:
            response.raise_for_status()
            if self.stream:
                return await read_events(response)
            text: str = json.loads(await response.read())["choices"][0]["message"]["content"]
            return text

    async def council(self) -> str:
        return await run_waves(self.call)

    async def close(self) -> None:
        if self.session:
            await self.session.close()


async def read_events(response: aiohttp.ClientResponse) -> str:
    parts = []
    async for line in response.content:
        if line.startswith(b"data: {"):
            choices = json.loads(line[6:])["choices"]
            if choices:
                parts.append(choices[0]["delta"].get("content") or "")
    return "".join(parts)
