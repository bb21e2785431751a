"""The published JSON Schemas are generated from the types of the plan, the report and the error."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import TypeAdapter

import council
from council.engine.plan_object import PlanObject
from council.render.report_object import Report
from council.runs.service import Convener
from make_schemas import OBJECTS, dump_schema

SEATS = dict.fromkeys(("alpha", "beta", "gamma", "chair"), "scripted:")


def load_schema(name: str) -> Any:
    return json.loads(files("council").joinpath(f"data/schemas/{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", OBJECTS)
def test_the_published_schema_is_generated_from_its_type(name: str) -> None:
    published = files("council").joinpath(f"data/schemas/{name}.json").read_text(encoding="utf-8")
    assert published == dump_schema(name), "run scripts/make_schemas.py"
    jsonschema.Draft202012Validator.check_schema(json.loads(published))


@pytest.mark.behaviour("00-plan-object")
@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["collaborative", "judges", "ranking"])
async def test_a_real_plan_is_a_plan_object(protocol: str) -> None:
    convener = Convener(Path.cwd(), flags={"seats": SEATS})
    plan = (await convener.plan(["Tabs or spaces?"], None, protocol=protocol)).as_json()
    await convener.close()
    TypeAdapter(PlanObject).validate_python(plan, strict=True)
    assert set(plan) <= PlanObject.__annotations__.keys()


@pytest.mark.parametrize("protocol", ["collaborative", "adversarial", "ranking"])
def test_a_real_report_is_a_report_object(protocol: str) -> None:
    report = council.convene_sync("Tabs or spaces?", protocol=protocol, seats=SEATS)
    data = json.loads(json.dumps(report.to_dict()))
    assert Report.model_validate(data, strict=True) == report
    assert set(data) <= {field.alias or name for name, field in Report.model_fields.items()}
    assert report.model_extra == {}
    jsonschema.validate(data, load_schema("report"))


def test_fields_that_were_required_stay_required() -> None:
    assert load_schema("error")["required"] == ["schema", "error", "exit"]
    assert set(load_schema("plan")["required"]) == {
        "schema", "task", "protocol", "why", "question", "target", "options", "seats", "chair", "phases", "calls", "agents",
        "packet", "cost", "warnings",
    }  # fmt: skip
    assert set(load_schema("report")["required"]) == {
        "schema", "run", "name", "status", "task", "protocol", "question", "target", "verdict", "outcome", "confidence",
        "answer", "seats", "consensus", "disagreements", "insights", "blind_spots", "findings", "dissent", "shifts",
        "sources", "degraded", "quorum", "calls", "tokens", "cost", "seconds", "report_path", "trust", "tail", "chair",
    }  # fmt: skip
