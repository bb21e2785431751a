"""Answers that people type at a terminal, field by field."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from council.doors.cli.terminal_input import Abstained, FieldPrompter, TerminalReader, confirm
from council.runs.people import FormField


def type_lines(text: str, *, end: bool = False) -> TerminalReader:
    """Return a reader of a pipe in which these lines wait; with `end` it is closed after them."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    if end:
        os.close(writing)
    reader = TerminalReader()
    reader.fd = reading
    return reader


def fill_in(spec: dict[str, Any], typed: str) -> Any:
    field: FormField = {"name": "field", "help": "", **spec}  # type: ignore[typeddict-item]
    return asyncio.run(FieldPrompter(type_lines(typed))._ask_value(field))


CHOICE = {"kind": "choice", "choices": ["PASS", "WARN", "no", "none"]}


@pytest.mark.parametrize(
    ("spec", "typed", "value", "refused"),
    [
        (CHOICE, "warn\n", "WARN", []),
        (CHOICE, "P\n", "PASS", []),
        (CHOICE, "no\n", "no", []),
        (CHOICE, "\nn\nnon\n", "none", ["choose one of PASS, WARN, no, none"] * 2),
        ({"kind": "boolean"}, "Y\n", True, []),
        ({"kind": "boolean"}, "\nnope\nNo\n", False, ["answer yes or no"] * 2),
        ({"kind": "integer", "minimum": 1, "maximum": 5}, "5\n", 5, []),
        ({"kind": "integer", "minimum": 1, "maximum": 5}, "1\n", 1, []),
        ({"kind": "integer", "minimum": 1, "maximum": 5}, "0\n6\n2.5\n3\n", 3, ["a whole number from 1 to 5"] * 2 + ["a whole number"]),
        ({"kind": "integer", "minimum": 0}, "-1\n0\n", 0, ["a whole number from 0 on"]),
        ({"kind": "number", "maximum": 1}, "1,5\n0,5\n", 0.5, ["a number up to 1"]),
        ({"kind": "number"}, "nan\ninf\nmany\n-2.5\n", -2.5, ["a number"] * 3),
        ({"kind": "integer", "optional": True}, "\n", None, []),
        ({"kind": "text"}, "a line\n", "a line", []),
        ({"kind": "text", "optional": True}, "\n", None, []),
    ],
)  # fmt: skip
def test_a_value_is_asked_for_until_it_fits(
    spec: dict[str, Any], typed: str, value: Any, refused: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fill_in(spec, typed) == value
    shown = [line.rpartition("  ")[2] for line in capsys.readouterr().err.splitlines() if "  " in line]
    assert [line.removeprefix("enter ") for line in shown] == refused


def test_a_list_ends_with_an_empty_line_but_not_before_it_has_enough(capsys: pytest.CaptureFixture[str]) -> None:
    assert fill_in({"kind": "list", "minItems": 2}, "a\n\nb\nc\n\n") == ["a", "b", "c"]
    shown = capsys.readouterr().err
    assert "field (one per line, 2 or more; an empty line ends the list)" in shown
    assert "  at least 2 required" in shown
    assert fill_in({"kind": "list"}, "\n") == []
    assert "field (one per line; an empty line ends the list)" in capsys.readouterr().err


def test_a_full_list_asks_for_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert fill_in({"kind": "list", "minItems": 2, "maxItems": 2, "choices": ["x", "y"]}, "x\ny\n") == ["x", "y"]
    assert "(one per line, 2; an empty line ends the list)" in capsys.readouterr().err


def test_rows_and_groups_have_their_own_fields(capsys: pytest.CaptureFixture[str]) -> None:
    inner = [
        {"name": "what", "help": "the error", "kind": "text"},
        {"name": "sure", "help": "", "kind": "boolean"},
    ]
    rows = [{"what": "a leak", "sure": True}, {"what": "a typo", "sure": False}]
    assert fill_in({"kind": "rows", "fields": inner}, "a leak\ny\na typo\nn\n\n") == rows
    assert "what, the error: sure (yes or no): " in capsys.readouterr().err
    assert fill_in({"kind": "group", "fields": inner}, "a leak\ny\n") == rows[0]


def answer(fields: list[dict[str, Any]], typed: str, *, end: bool = False, schema: Any = None) -> str:
    question: Any = {"fields": fields, "schema": schema or {"type": "object", "properties": {}}}
    return asyncio.run(FieldPrompter(type_lines(typed, end=end)).read_answer(question))


@pytest.mark.parametrize("end", [".\n", " . \n"])
def test_free_text_ends_with_a_dot(end: str) -> None:
    assert answer([], f"\none\n-\ntwo.\n\n{end}not read\n") == "one\n-\ntwo."


def test_free_text_ends_with_the_input() -> None:
    assert answer([], "one\r\ntwo", end=True) == "one\ntwo"


@pytest.mark.parametrize(
    ("fields", "typed"), [([], "-\n"), ([], "\n - \n"), ([{"name": "n", "help": "", "kind": "text"}], "-\n")]
)
def test_a_single_dash_abstains(fields: list[dict[str, Any]], typed: str) -> None:
    with pytest.raises(Abstained):
        answer(fields, typed)


def test_a_closed_input_abstains_from_a_field_that_needs_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Abstained):
        answer([{"name": "n", "help": "", "kind": "integer"}], "", end=True)
    assert capsys.readouterr().err.count("n: ") == 3


@pytest.mark.parametrize(
    ("typed", "is_yes"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("sure\nyes\n", True), ("", False)]
)  # fmt: skip
def test_only_a_yes_confirms(typed: str, is_yes: bool) -> None:
    screen: list[str] = []
    assert asyncio.run(confirm("Go? ", type_lines(typed, end=True), screen.append)) is is_yes
    assert screen[0] == f"Go? {typed.partition(chr(10))[0] or 'no'}"
    assert ("Error: answer y or n" in screen) is typed.startswith("sure")


def test_the_main_text_of_a_typed_reply_has_many_lines_and_the_others_one(capsys: pytest.CaptureFixture[str]) -> None:
    fields = [
        {"name": "answer", "help": "", "kind": "text"},
        {"name": "why", "help": "", "kind": "text"},
    ]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("answer", "why")}}
    typed = answer(fields, "Größe\nzählt\n.\nbecause\n", schema=schema)
    assert typed == '{"answer": "Größe\\nzählt", "why": "because"}'
    assert "answer (end with a line that has a single dot)" in capsys.readouterr().err
