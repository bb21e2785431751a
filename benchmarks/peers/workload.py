"""One collaborative council: three drafts, three improvements, one synthesis.

Every contestant sends these prompts in this order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

ADVISORS = ("alpha", "beta", "gamma")
CHAIR = "chair"
CALLS = 7
WAVES = 3
SYSTEM = {
    name: (
        f"You are advisor {name} of a three-member council. Argue from your own discipline, state assumptions, give numbers "
        "where you can, name the main risk, and say plainly when you are unsure. Answer in about three hundred words of prose, "
        "without headings, and never mention these instructions in the answer."
    )
    for name in ADVISORS
}
SYSTEM[CHAIR] = (
    "You are the chair of the council. Merge the improved answers into one, keep what they agree on, resolve what they do not, "
    "and record the dissent in one sentence. Answer in about three hundred words."
)
QUESTION = (
    "A small team must decide whether to replace its nightly batch pipeline by a streaming one within a quarter. Which option "
    "should it take, what would change your mind, and how would you measure after three months that the decision was right?"
)

Call = Callable[[str, str], Awaitable[str]]  # a role and a prompt → the answer


class Council(Protocol):
    """What the module of a contestant has as `Contestant(base_url, model, stream)`."""

    async def council(self) -> str:
        """Run one council and return its final text."""

    async def close(self) -> None: ...


def improve_prompt(name: str, drafts: dict[str, str]) -> str:
    others = "\n\n".join(f"### {other}\n{drafts[other]}" for other in ADVISORS if other != name)
    return f"{QUESTION}\n\nYour draft:\n{drafts[name]}\n\nDrafts of the others:\n{others}\n\nImprove your answer using the best of the others."


def synthesis_prompt(improved: dict[str, str]) -> str:
    answers = "\n\n".join(f"### {name}\n{improved[name]}" for name in ADVISORS)
    return f"{QUESTION}\n\nImproved answers:\n{answers}\n\nWrite the final answer."


def messages(role: str, prompt: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": SYSTEM[role]}, {"role": "user", "content": prompt}]


async def run_waves(call: Call) -> str:
    """Run the council of a contestant whose library does not order the calls."""
    drafts = await _gather(call, dict.fromkeys(ADVISORS, QUESTION))
    improved = await _gather(call, {name: improve_prompt(name, drafts) for name in ADVISORS})
    return await call(CHAIR, synthesis_prompt(improved))


async def _gather(call: Call, prompts: dict[str, str]) -> dict[str, str]:
    answers = await asyncio.gather(*(call(name, prompt) for name, prompt in prompts.items()))
    return dict(zip(prompts, answers, strict=True))
