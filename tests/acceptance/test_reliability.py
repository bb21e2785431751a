"""Suites of benchmarks/reliability.toml: what they name is what the code has, and a part that is run later is added."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from types import ModuleType
from typing import Any

import pytest

from make_docs import _describe_result
from tests.acceptance.test_crash_everywhere import (
    HEDGED_PARTS,
    REJECTED_PARTS,
    SHARED_PARTS,
    SHARED_REJECTED_PARTS,
    list_parts,
    make_params,
)
from tests.acceptance.test_two_versions import STORES
from tests.engine.test_fences import every_case
from tests.paths import ROOT
from tests.store.test_migrations import POSTGRES_SCHEMA, SQLITE_SCHEMA

Json = dict[str, Any]
FOLDER = ROOT / "benchmarks"
SUITES: dict[str, Json] = {
    suite["name"]: suite for suite in tomllib.loads((FOLDER / "reliability.toml").read_text(encoding="utf-8"))["suite"]
}
RECORDED: Json = json.loads((FOLDER / "reliability.json").read_text(encoding="utf-8"))


def list_names(params: list[Any]) -> set[str]:
    """Return what tests with these parameters cover."""
    return {name for param in params for mark in param.marks if mark.name == "covers" for name in mark.args}


IN_CODE = {
    "crash": list_names(make_params([*list_parts(), *HEDGED_PARTS]) + make_params(SHARED_PARTS, "postgres/")),
    "rejected": list_names(make_params(REJECTED_PARTS) + make_params(SHARED_REJECTED_PARTS, "postgres/")),
    "fences": list_names(list(every_case.mark.args[1])),
    "versions": {SQLITE_SCHEMA, POSTGRES_SCHEMA} | {"/".join(store) for store in STORES},
}


@pytest.fixture
def reliability() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reliability", FOLDER / "reliability.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.behaviour("14-promises-have-proofs")
def test_a_suite_names_what_of_the_code_it_covers() -> None:
    """A new shape, case or version belongs into the table too, so that the page lists it until it is recorded."""
    assert {name: set(suite["covers"]) for name, suite in SUITES.items() if "covers" in suite} == IN_CODE


@pytest.mark.behaviour("14-promises-have-proofs")
def test_a_recorded_run_says_what_it_covered() -> None:
    for name in IN_CODE:
        covered = RECORDED[name]["covered"]
        assert covered and max(covered.values()) <= RECORDED[name]["date"]


@pytest.mark.behaviour("14-promises-have-proofs")
def test_the_page_lists_what_a_recorded_run_did_not_cover() -> None:
    suite = {"covers": ["triad", "solo", "panel"], "kind": "shapes"}
    result = {
        "passed": True,
        "figures": {},
        "date": "2026-11-17",
        "machine": "m",
        "seconds": 5,
        "covered": {"triad": "2026-11-16", "older": "2026-11-16"},
    }
    assert _describe_result(suite, result) == (
        "passed: 1 of 3 shapes; not yet: `solo`, `panel`",
        "2026-11-16 to 2026-11-17, in parts, 5 s; m",
    )
    known = dict.fromkeys(suite["covers"], "2026-11-17")
    assert _describe_result(suite, result | {"covered": known}) == (
        "passed: 3 of 3 shapes",
        "2026-11-17, 5 s; m",
    )


@pytest.mark.behaviour("14-promises-have-proofs")
def test_a_part_that_is_run_later_is_added_to_the_recorded_run(reliability: ModuleType) -> None:
    text = "covered: panel solo\nsweep crash: points=4 worst_s=0.5 newer=2 solo=3 panel=1\n"
    covered = {"solo": "2026-11-19", "panel": "2026-11-19"}
    later = {
        "passed": True,
        "date": "2026-11-19",
        "machine": "m",
        "seconds": 5,
        "figures": reliability.parse_figures(text, covered),
        "covered": covered,
    }
    assert later["figures"] == {"crash": {"points": "4", "worst_s": "0.5", "newer": "2"}}
    earlier = {
        "passed": True,
        "date": "2026-11-16",
        "machine": "m",
        "seconds": 7,
        "note": "one run",
        "figures": {"crash": {"points": "10", "worst_s": "0.75"}},
        "covered": {"triad": "2026-11-16"},
    }
    assert reliability.merge_results(earlier, later) == {
        "passed": True,
        "date": "2026-11-19",
        "machine": "m",
        "seconds": 12,
        "figures": {"crash": {"points": "14", "worst_s": "0.75"}},
        "covered": {"triad": "2026-11-16", **covered},
    }
    del earlier["seconds"]
    assert "seconds" not in reliability.merge_results(earlier, later)
