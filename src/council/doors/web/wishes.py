"""Turn a request into a plan within the owner's limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from council.convene import Convener
from council.doors import bounds
from council.doors.bounds import Caps
from council.doors.web.bodies import Wish
from council.doors.web.hall import Hall
from council.planning import Material, Plan
from council.types import Json

VERBS = ("validate", "brainstorm", "research")


@asynccontextmanager
async def planned(wish: Wish, hall: Hall) -> AsyncIterator[tuple[Convener, Plan]]:
    """Yield the convener and the plan."""
    folder, roots = hall.root(wish.root), list(hall.roots.values())
    options = {name: value for name, value in wish.options.items() if _was_said(value)}
    settings = hall.owner.settings(folder)
    bounds.refuse_owners(wish.options)
    bounds.check_files(options, folder, roots)
    bounds.check_members([*wish.seats.values(), *_texts(options.get("explorer_model"))], settings)
    cap = hall.caps.cap(Caps.of(settings), wish.max_cost)
    async with hall.convener(folder, **_flags(wish, options, cap)) as convener:
        plan = await convener.plan(_words(wish), options, protocol=wish.protocol, material=_material(wish))
        bounds.check_members(plan.roster.everybody, settings)
        bounds.check_search(plan.options.get("search"), options.get("search"), folder, roots, settings)
        yield convener, plan


def _words(wish: Wish) -> list[str]:
    """Return the question; add the targets if it is empty or only a task."""
    question = wish.question.strip()
    if question and question not in VERBS:
        return [question]
    return [*([question] if question else []), *wish.targets]


def _material(wish: Wish) -> Material:
    return Material(
        decisions=tuple(wish.decisions), redact=wish.redact, skip_secrets=wish.skip_secrets, targets=tuple(wish.targets)
    )


def _flags(wish: Wish, options: Json, cap: float | None) -> Json:
    profile = options.get("profile")
    flags: Json = {"max_cost": cap, "effort": wish.effort, "seats": dict(wish.seats) or None}
    flags["profile"] = profile if isinstance(profile, str) else None  # the options check refuses other types
    return {name: value for name, value in flags.items() if value is not None}


def _was_said(value: Any) -> bool:
    """Whether a form field has a value: null, false and empty mean unset, 0 does not."""
    return bool(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else []
