"""Requests for look-ups as models write them, and the limits of the results."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.errors import Fault
from council.protocols.common.lookups import LookupLimit, SeatLookups, format_results, read_request
from council.types import estimate_tokens


def wanted(text: str) -> list[str]:
    """Return the paths, names and patterns of a request, each once."""
    rows = read_request(text).list_requests()
    return [one["path"] if isinstance(one, dict) else one for row in rows for kind in row.values() for one in kind]


@pytest.mark.behaviour("look-imperfect-requests")
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"files": ["a.py"], "names": ["*.md"], "patterns": ["def x"]}', ["a.py", "*.md", "def x"]),
        ('Sure!\n```json\n{"files": [{"path": "a.py"}]}\n```\nThat is all.', ["a.py"]),
        ('{"files": [{"path": "a.py", "first": null, "last": null}, "a.py", {"path": "a.py", "from": 1, "to": 5}]}', ["a.py", "a.py"]),
        ('{"names": ["", "  "], "files": [], "patterns": []}', []),
        ('{"request": {"files": ["a.py"]}}', ["a.py"]),
        ('One: {"files": ["a.py"]}. Two: {"patterns": ["x"]}.', ["a.py", "x"]),
        ("I can answer this without reading anything: split it.", []),
        ("I am sorry, but I cannot access files on your computer.", []),
        ("{}", []),
    ],
)  # fmt: skip
def test_a_request_is_read_leniently(said: str, expected: list[str]) -> None:
    assert wanted(said) == expected


@pytest.mark.behaviour("look-imperfect-requests")
@pytest.mark.parametrize("said", ['{"files": [{"path": "a', '{"files": [{"path": "a.py", "first": 9, "last": 2}]}'])
def test_a_broken_request_gets_the_repair_turn(said: str) -> None:
    with pytest.raises(Fault):
        read_request(said)


@given(st.text(max_size=200) | st.recursive(st.text(max_size=8) | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.sampled_from(["files", "names", "path", "x"]), one)).map(json.dumps))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_any_answer_is_a_request_or_a_fault(said: str) -> None:
    try:
        assert isinstance(read_request(said), SeatLookups)
    except Fault as fault:
        assert fault.kind == "schema"


@pytest.mark.behaviour("look-limits")
def test_the_results_of_a_seat_are_cut_at_its_limit() -> None:
    limit = LookupLimit(12, tokens=200)
    content = "".join(f"line {n}\n" for n in range(1, 101))
    file: dict[str, Any] = {"look": "file", "path": "a.py", "from": 1, "to": 100, "lines": 100, "content": content}
    rows = limit.add([file, {"look": "name", "name": "*", "paths": [f"folder/{n}.py" for n in range(50)], "more": 0}])
    assert 10 < rows[0]["to"] < 100 and rows[0]["is_cut"]
    assert "(the rest was left out)" in format_results(
        rows
    ) and f"{rows[0]['to']}| line {rows[0]['to']}" in format_results(rows)
    assert rows[1]["why"].startswith("the results are limited to") and "paths" not in rows[1]
    assert estimate_tokens(format_results(rows[:1])) <= 200


@pytest.mark.behaviour("look-imperfect-requests")
def test_a_request_is_looked_up_once_and_only_within_the_limit() -> None:
    limit = LookupLimit(3)
    first, lines = limit.select(SeatLookups(names=["a", "b"]))
    assert (len(first), lines, limit.left) == (2, [], 1)
    second, lines = limit.select(SeatLookups(names=["b", "c", "d", "e"]))
    assert [one["names"] for one in second] == [["c"]] and limit.left == 0
    assert lines == [
        "1 request not repeated: the results are above.",
        "2 requests not looked up: 3 look-ups in all are allowed.",
    ]
