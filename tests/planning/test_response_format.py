"""The call that writes the answer as JSON is a part of the plan: its phase, its calls, its cost and its cap."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.engine.response_format import ResponseFormat
from council.errors import CapTooLow
from council.planning.plan import Plan
from council.planning.setup import RunSetup
from council.runs.service import Convener

pytestmark = pytest.mark.anyio
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
RESPONSE_FORMAT = ResponseFormat("json_schema", "it", schema=SCHEMA)


async def make_plan(response_format: ResponseFormat | None, protocol: str = "triad", **flags: object) -> Plan:
    convener = Convener(
        Path.cwd(), {"ANTHROPIC_API_KEY": "test"}, flags={**flags, "models": ["anthropic:claude-opus-4-5"]}
    )
    try:
        return await convener.plan(["Shard or scale up?"], protocol=protocol, response_format=response_format)
    finally:
        await convener.close()


@pytest.mark.behaviour("50-v1-format-money")
@pytest.mark.parametrize("protocol", ["triad", "solo", "panel"])
async def test_the_call_is_in_the_calls_and_the_cost_of_the_plan(protocol: str) -> None:
    plain, planned = await make_plan(None, protocol), await make_plan(RESPONSE_FORMAT, protocol)
    assert [now - before for now, before in zip(planned.calls, plain.calls, strict=True)] == [1, 1]
    assert planned.phases[-1]["name"] == "format"
    assert planned.cost and plain.cost
    for name in ("low", "expected", "worst"):
        assert planned.cost[name] > plain.cost[name]
    assert planned.as_json()["response_format"] == {"type": "json_schema", "name": "it"}
    assert "response_format" not in plain.as_json()


@pytest.mark.behaviour("50-v1-format-money")
async def test_the_call_is_within_the_cap_or_the_plan_is_refused() -> None:
    plain = await make_plan(None, max_cost=0.000_001)
    planned = await make_plan(RESPONSE_FORMAT, max_cost=0.000_001)
    assert plain.shortfall and planned.shortfall
    assert planned.shortfall.needed > plain.shortfall.needed
    between = (plain.shortfall.needed + planned.shortfall.needed) / 2
    assert (await make_plan(None, max_cost=between)).shortfall is None
    with pytest.raises(CapTooLow):
        (await make_plan(RESPONSE_FORMAT, max_cost=between)).check_runnable()


@pytest.mark.behaviour("50-v1-format-crash")
async def test_a_stored_setup_has_the_format_for_the_process_that_resumes() -> None:
    setup = (await make_plan(RESPONSE_FORMAT)).setup()
    assert RunSetup.load(setup.as_json()).load_response_format() == RESPONSE_FORMAT
    assert RunSetup.load((await make_plan(None)).setup().as_json()).load_response_format() is None
