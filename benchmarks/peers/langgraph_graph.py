"""LangGraph: a graph with one node per call, and ChatOpenAI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypedDict

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

from peers.workload import ADVISORS, CHAIR, QUESTION, SYSTEM, improve_prompt, synthesis_prompt


def merge(left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    return {**left, **right}


class State(TypedDict):
    drafts: Annotated[dict[str, str], merge]
    improved: Annotated[dict[str, str], merge]
    final: str


class Contestant:
    def __init__(self, base_url: str, model: str, stream: bool) -> None:
        self.model = ChatOpenAI(
            model=model,
            base_url=base_url,
            api_key="x",
            timeout=600,
            max_retries=0,
            streaming=stream,
            stream_usage=stream,
        )
        self.graph = self.build_graph()

    def build_graph(self) -> Any:
        graph = StateGraph(State)
        for name in ADVISORS:
            graph.add_node(f"draft_{name}", self.draft_node(name))
            graph.add_node(f"improve_{name}", self.improve_node(name))
            graph.add_edge(START, f"draft_{name}")
        drafts = [f"draft_{name}" for name in ADVISORS]
        for name in ADVISORS:
            graph.add_edge(drafts, f"improve_{name}")
        graph.add_node("synthesis", self.synthesize)
        graph.add_edge([f"improve_{name}" for name in ADVISORS], "synthesis")
        graph.add_edge("synthesis", END)
        return graph.compile()

    def draft_node(self, name: str) -> Callable[[State], Awaitable[dict[str, Any]]]:
        async def draft(state: State) -> dict[str, Any]:
            return {"drafts": {name: await self.ask(name, QUESTION)}}

        return draft

    def improve_node(self, name: str) -> Callable[[State], Awaitable[dict[str, Any]]]:
        async def improve(state: State) -> dict[str, Any]:
            return {"improved": {name: await self.ask(name, improve_prompt(name, state["drafts"]))}}

        return improve

    async def synthesize(self, state: State) -> dict[str, Any]:
        return {"final": await self.ask(CHAIR, synthesis_prompt(state["improved"]))}

    async def ask(self, role: str, prompt: str) -> str:
        answer = await self.model.ainvoke([SystemMessage(SYSTEM[role]), HumanMessage(prompt)])
        return answer.content

    async def council(self) -> str:
        state = await self.graph.ainvoke({"drafts": {}, "improved": {}, "final": ""})
        return state["final"]

    async def close(self) -> None:
        pass
