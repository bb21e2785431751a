"""pydantic-ai: one Agent per role, waves by asyncio.gather."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from peers.workload import SYSTEM, run_waves


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        self.stream = stream
        chat = OpenAIChatModel(model, provider=OpenAIProvider(base_url=base_url, api_key="x"))
        self.agents = {
            role: Agent(chat, system_prompt=prompt, name=role, retries=0, model_settings={"timeout": 600})
            for role, prompt in SYSTEM.items()
        }

    async def call(self, role: str, prompt: str) -> str:
        if not self.stream:
            return (await self.agents[role].run(prompt)).output
        async with self.agents[role].run_stream(prompt) as answer:
            return "".join([part async for part in answer.stream_text(delta=True, debounce_by=None)])

    async def council(self) -> str:
        return await run_waves(self.call)

    async def close(self) -> None:
        pass
