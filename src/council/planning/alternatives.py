"""Councils that fit a cap where the planned one does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from council import protocols
from council.errors import CouncilError
from council.planning.cap_fit import Alternative
from council.planning.intent import Intent
from council.planning.plan import Plan
from council.protocols.seats import PanelContext

MAX_ALTERNATIVES = 3
MakePlan = Callable[..., Awaitable[Plan]]  # make_plan(intent, where=…)


async def find_alternatives(intent: Intent, plan: Plan, make: MakePlan, where: PanelContext) -> tuple[Alternative, ...]:
    """Return councils that fit the cap of a plan: with fast models, and by other protocols, the most thorough first."""
    can_be_cheap = not where.settings.cheap and not where.settings.named_members
    fast = replace(where, settings=replace(where.settings, cheap=True))
    same = await _try_councils([(intent, fast)], make) if can_be_cheap else []
    names = [
        name
        for name in protocols.SHIPPED_PROTOCOLS
        if name != plan.protocol.name and plan.question.task in protocols.get_protocol(name).tasks
    ]
    others = [(replace(intent, protocol=name, options={}), where) for name in names]
    found = await _try_councils(others, make)
    if not found and can_be_cheap:
        found = await _try_councils([(other, fast) for other, _ in others], make)
    ordered = sorted(found, key=lambda one: -one.usd)
    return tuple([*(replace(one, protocol=None) for one in same), *ordered][:MAX_ALTERNATIVES])


async def _try_councils(councils: Sequence[tuple[Intent, PanelContext]], make: MakePlan) -> list[Alternative]:
    """Return those of the councils that fit the cap and can be run."""
    found = []
    for intent, where in councils:
        try:
            plan = await make(intent, where=where)
            plan.check_runnable()
        except CouncilError:  # no members, no search, or a cap that is too low for it
            continue
        if plan.cost:
            found.append(Alternative(plan.protocol.name, where.settings.cheap, plan.cost["expected"]))
    return found
