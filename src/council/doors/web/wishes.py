"""Turn a request into a plan within the owner's limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from council.convene import Convener
from council.doors import bounds
from council.doors.bounds import BudgetCaps
from council.doors.web.bodies import RunRequest
from council.doors.web.hall import AppState
from council.planning import Material, Plan
from council.types import Json

VERBS = ("validate", "brainstorm", "research")


@asynccontextmanager
async def plan_request(request: RunRequest, app_state: AppState) -> AsyncIterator[tuple[Convener, Plan]]:
    """Yield the convener and the plan."""
    folder, roots = app_state.find_root(request.root), list(app_state.roots.values())
    options = {name: value for name, value in request.options.items() if _is_filled(value)}
    settings = app_state.owner.settings(folder)
    bounds.refuse_owner_options(request.options)
    bounds.check_files(options, folder, roots)
    bounds.check_members([*request.seats.values(), *_as_list(options.get("explorer_model"))], settings)
    cap = app_state.caps.effective_cap(BudgetCaps.from_settings(settings), request.max_cost)
    async with app_state.open_convener(folder, **_make_flags(request, options, cap)) as convener:
        plan = await convener.plan(
            _question_words(request), options, protocol=request.protocol, material=_make_material(request)
        )
        bounds.check_members(plan.roster.member_names, settings)
        bounds.check_search(plan.options.get("search"), options.get("search"), folder, roots, settings)
        yield convener, plan


def _question_words(request: RunRequest) -> list[str]:
    """Return the question; add the targets if it is empty or only a task."""
    question = request.question.strip()
    if question and question not in VERBS:
        return [question]
    return [*([question] if question else []), *request.targets]


def _make_material(request: RunRequest) -> Material:
    return Material(
        decisions=tuple(request.decisions),
        redact=request.redact,
        skip_secrets=request.skip_secrets,
        targets=tuple(request.targets),
    )


def _make_flags(request: RunRequest, options: Json, cap: float | None) -> Json:
    profile = options.get("profile")
    flags: Json = {"max_cost": cap, "effort": request.effort, "seats": dict(request.seats) or None}
    flags["profile"] = profile if isinstance(profile, str) else None  # the options check refuses other types
    return {name: value for name, value in flags.items() if value is not None}


def _is_filled(value: Any) -> bool:
    """Whether a form field has a value: null, false and empty mean unset, 0 does not."""
    return bool(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else []
