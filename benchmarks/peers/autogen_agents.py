"""AutoGen: one AssistantAgent per call, because agents keep their history; waves by asyncio.gather."""

from __future__ import annotations

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from peers.workload import SYSTEM, run_waves

MODEL_INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": False,
    "family": "unknown",
    "structured_output": False,
}


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        self.stream = stream
        options = {"stream_options": {"include_usage": True}} if stream else {}
        self.client = OpenAIChatCompletionClient(
            model=model, base_url=base_url, api_key="x", model_info=MODEL_INFO, timeout=600, max_retries=0, **options
        )

    async def call(self, role: str, prompt: str) -> str:
        agent = AssistantAgent(role, self.client, system_message=SYSTEM[role], model_client_stream=self.stream)
        result = await agent.run(task=prompt)
        return result.messages[-1].content

    async def council(self) -> str:
        return await run_waves(self.call)

    async def close(self) -> None:
        await self.client.close()
