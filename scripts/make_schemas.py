"""Generate the JSON Schemas in src/council/data/schemas from the types of the plan, the report, the batch, the
evaluation on a history and the error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from council.engine.plan_object import PlanObject
from council.render.report_object import ErrorObject, Report
from council.runs.batch_output import BatchObject
from council.runs.eval_object import HistoryEvalObject

FOLDER = Path(__file__).parent.parent / "src" / "council" / "data" / "schemas"
OBJECTS: dict[str, Any] = {
    "batch": BatchObject,
    "error": ErrorObject,
    "history-eval": HistoryEvalObject,
    "plan": PlanObject,
    "report": Report,
}


def build_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of an object."""
    made = _drop_titles(TypeAdapter(OBJECTS[name]).json_schema())
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:council:{name}:1",
        "title": f"council.{name}/1",
    }
    defs = made.pop("$defs", {})
    return {**head, **made, **({"$defs": defs} if defs else {})}


def _drop_titles(value: Any, named: bool = False) -> Any:
    """Remove the titles that pydantic makes from names; keys of `properties` and `$defs` are names, not keywords."""
    if isinstance(value, list):
        return [_drop_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _drop_titles(item, named=key in ("properties", "$defs"))
        for key, item in value.items()
        if named or key != "title"
    }


def dump_schema(name: str) -> str:
    return json.dumps(build_schema(name), ensure_ascii=False, indent=2) + "\n"


def main() -> None:
    for name in OBJECTS:
        (FOLDER / f"{name}.json").write_text(dump_schema(name), encoding="utf-8")


if __name__ == "__main__":
    main()
