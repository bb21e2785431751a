"""The OpenAI SDK."""

from __future__ import annotations

from openai import AsyncOpenAI

from peers.workload import messages, run_waves


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        self.client = AsyncOpenAI(base_url=base_url, api_key="x", timeout=600, max_retries=0)
        self.model, self.stream = model, stream

    async def call(self, role: str, prompt: str) -> str:
        create = self.client.chat.completions.create
        if not self.stream:
            answer = await create(model=self.model, messages=messages(role, prompt))
            return answer.choices[0].message.content
        parts = []
        stream = await create(
            model=self.model, messages=messages(role, prompt), stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            if chunk.choices:
                parts.append(chunk.choices[0].delta.content or "")
        return "".join(parts)

    async def council(self) -> str:
        return await run_waves(self.call)

    async def close(self) -> None:
        await self.client.close()
