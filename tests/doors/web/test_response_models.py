"""The models of responses have the fields that are sent."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from council.doors.web import models
from council.runs import doctor, spending
from tests.doors.web.server import Json, WebServer


def resolve(node: Json, described: Json) -> Json:
    """Return a schema without references and without null."""
    if "anyOf" in node:
        node = next(one for one in node["anyOf"] if one.get("type") != "null")
    if "$ref" not in node:
        return node
    found: Json = described["components"]["schemas"][node["$ref"].rpartition("/")[2]]
    return found


def find_undescribed(value: Any, node: Json, described: Json, place: str) -> list[str]:
    """Return the places of the fields of a response that its schema does not name."""
    schema = resolve(node, described)
    if isinstance(value, list):
        return [
            one
            for n, row in enumerate(value)
            for one in find_undescribed(row, schema["items"], described, f"{place}[{n}]")
        ]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    unknown = [f"{place}.{name}" for name in value.keys() - schema["properties"].keys()]
    return [*unknown, *(
        one for name in value.keys() & schema["properties"].keys()
        for one in find_undescribed(value[name], schema["properties"][name], described, f"{place}.{name}")
    )]  # fmt: skip


@pytest.mark.behaviour("50-web-openapi")
@pytest.mark.parametrize("path", ["/api/spend", "/api/members", "/api/runs", "/api/runs/{run}"])
def test_every_field_that_is_sent_is_described(site: WebServer, path: str) -> None:
    described = site.get("/api/openapi.json")
    run = site.run_council()
    sent = site.get(path.replace("{run}", run))
    node = described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert find_undescribed(sent, node, described, "it") == []


def names_of(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


@pytest.mark.behaviour("50-web-openapi")
def test_models_have_the_fields_of_the_rows_that_they_are_made_from() -> None:
    assert names_of(models.Spending) == list(spending.SpendingObject.__annotations__)
    assert names_of(models.SpendingToday) == list(spending.TodaySpending.__annotations__)
    assert {*names_of(models.MemberInfo)} >= {*doctor.ListedMember.__annotations__, *doctor.MemberLife.__annotations__}
