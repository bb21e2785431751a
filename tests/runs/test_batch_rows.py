"""Rows of a batch: every bad one is named with its line, its value and the fix."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from council.errors import UsageError
from council.runs.batch_execution import make_run_id
from council.runs.batch_output import parse_line
from council.runs.batch_rows import DONE, Problems, Row, RowErrors, RowTable, detect_csv, read_rows

Json = dict[str, Any]
BAD_LINES = {
    "not JSON": ('{"id": 1, "question": "a?"', 'is not JSON (Expecting'),
    "a list": ('[{"question": "a?"}]', "is not an object"),
    "NaN": ('{"question": "a?", "options": {"max_cost": NaN}}', "NaN is not a value of JSON"),
    "no question": ('{"id": "x"}', 'the row has no "question": add one'),
    "an empty question": ('{"question": "  "}', 'the question "  " is empty'),
    "standard input": ('{"question": "-"}', 'the question "-" means standard input'),
    "a number": ('{"question": 7}', 'the question "7" is not text'),
    "an unknown field": ('{"question": "a?", "answer": 1}', '"answer" is not a field of a row: known are'),
    "an option as a field": ('{"question": "a?", "protocol": "triad"}', '"protocol" is not a field of a row: put it into "options"'),
    "an id that is an object": ('{"id": {}, "question": "a?"}', 'the id "{}" is neither text nor a whole number'),
    "a long id": ('{"id": "' + "x" * 201 + '", "question": "a?"}', "has over 200 characters"),
    "an id with a line break": ('{"id": "a\\nb", "question": "a?"}', 'the id "a\\nb" has characters that cannot be printed'),
    "an id with half a character": ('{"id": "\\ud800", "question": "a?"}', 'the id "\\ud800" has characters that cannot be printed'),
    "options that are text": ('{"question": "a?", "options": "triad"}', 'options "triad" is not an object'),
    "a misspelt option": ('{"question": "a?", "options": {"protcol": "triad"}}', 'did you mean "protocol"?'),
    "an option of the command": ('{"question": "a?", "options": {"config": "x"}}', '"config" is not an option of a row'),
    "an option twice": ('{"question": "a?", "options": {"max_cost": 1, "max-cost": 2}}', '"max-cost" is given twice'),
    "a word as a number": ('{"question": "a?", "options": {"max_cost": "much"}}', 'max_cost "much" is not a number'),
    "half a round": ('{"question": "a?", "options": {"rounds": 1.5}}', 'rounds "1.5" is not a whole number'),
    "a number as a switch": ('{"question": "a?", "options": {"cheap": "maybe"}}', 'cheap "maybe" is neither true nor false'),
    "a number as a name": ('{"question": "a?", "options": {"protocol": 3}}', 'protocol "3" is not text'),
    "members that are numbers": ('{"question": "a?", "options": {"members": [1]}}', 'members "[1]" is not a list of names'),
    "seats without members": ('{"question": "a?", "options": {"seats": {"alpha": ""}}}', "does not name members by seat"),
}  # fmt: skip


def list_lines(problems: Problems) -> list[str]:
    try:
        problems.check()
    except RowErrors as errors:
        return list(errors.problems)
    return []


def read(text: str | bytes, name: str = "rows.jsonl") -> tuple[list[Row], list[str]]:
    data = text if isinstance(text, bytes) else text.encode()
    problems = Problems()
    rows = list(read_rows(io.BytesIO(data), problems, is_csv=detect_csv(name, data[:4096])))
    return rows, list_lines(problems)


@pytest.mark.behaviour("50-batch-bad-rows")
@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_row_is_named_with_its_line_and_the_fix(case: str) -> None:
    line, problem = BAD_LINES[case]
    rows, (found,) = read(f'{{"id": "a", "question": "first?"}}\n\n{line}\n{{"id": "b", "question": "last?"}}\n')
    assert found.startswith("line 3: ") and problem in found and "\n" not in found
    assert [row.id for row in rows] == ["a", "b"]


@pytest.mark.behaviour("50-batch-bad-rows")
def test_bytes_that_are_not_text_and_overlong_lines_are_named() -> None:
    rows, found = read(b'{"question": "a?"}\n{"question": "\xff?"}\n{"question": "' + b"x" * 4_000_001 + b'"}\n')
    assert len(rows) == 1
    assert found == [
        "line 2: byte 15 is not UTF-8: save the file as UTF-8",
        "line 3: it is over 4 MB: shorten the question or its material",
    ]


@pytest.mark.behaviour("50-batch-bad-rows")
def test_all_bad_rows_are_counted_and_the_first_problems_kept() -> None:
    lines = [json.dumps({"id": n, "question": "a?", "options": {"rounds": f"r{n % 30}"}}) for n in range(300)]
    table, problems = RowTable(), Problems()
    data = "\n".join(lines).encode()
    table.fill(read_rows(io.BytesIO(data), problems, is_csv=False), problems)
    with pytest.raises(RowErrors) as error:
        problems.check()
    assert error.value.count == 300 and len(error.value.problems) == 20
    assert error.value.problems[0].startswith('line 1 and 9 more: rounds "r0" is not a number')


@pytest.mark.behaviour("50-batch-bad-rows")
def test_two_rows_with_one_id_are_named_with_both_lines() -> None:
    lines = [{"id": 7, "question": "a?"}, {"id": "7", "question": "b?"}, {"question": "c?"}, {"question": "c?"}]
    table, problems = RowTable(), Problems()
    table.fill(read_rows(io.BytesIO("\n".join(map(json.dumps, lines)).encode()), problems, is_csv=False), problems)
    first, second = list_lines(problems)
    assert first == 'line 2: the id "7" is also on line 1: give each row its own id'
    assert second.startswith("line 4: ") and "is also on line 3 with the same question and options" in second


CSV = 'ID;Question;Protocol;max-cost\n1;"a; or\nb?";triad;0.5\n;plain?;;\n'


@pytest.mark.behaviour("50-batch-csv")
def test_a_csv_file_has_a_column_for_each_option() -> None:
    rows, found = read(f"\ufeff{CSV}", "-")
    assert not found
    assert [(row.line, row.question, row.options) for row in rows] == [
        (2, "a; or\nb?", {"protocol": "triad", "max_cost": 0.5}),
        (4, "plain?", {}),
    ]


@pytest.mark.behaviour("50-batch-csv")
def test_bad_cells_of_a_csv_file_are_named() -> None:
    rows, found = read('id,question,members,options\na,"x?",,"{"\nb,y?\nc,z?,"m1,m2",\n', "rows.csv")
    assert [row.options for row in rows] == [{"models": ["m1", "m2"]}]
    assert found[0].startswith('line 2: options "{" is not an object')
    assert found[1].startswith("line 3: it has 2 cells, but the header has 4")


@pytest.mark.behaviour("50-batch-csv")
@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("id,text", 'has no column "question"'),
        ("question,question", '"question" occurs twice'),
        ("question,protcol", 'did you mean "protocol"?'),
    ],
)
def test_a_csv_header_that_cannot_be_used_is_refused(header: str, problem: str) -> None:
    with pytest.raises(UsageError, match="line 1: ") as error:
        read(f"{header}\na?,b\n", "rows.csv")
    assert problem in str(error.value)


@pytest.mark.behaviour("50-batch-ids")
def test_an_id_follows_from_the_row_and_the_run_from_batch_and_row() -> None:
    (first, second), _ = read('{"question": "a?"}\n{"question": "b?"}\n')
    (moved,), _ = read('\n\n{"question": "b?", "options": {}}\n')
    assert first.id != second.id == moved.id
    (changed,), _ = read(json.dumps({"id": second.id, "question": "c?"}))
    runs = {make_run_id(batch, row, n) for batch in "xy" for row in (first, second, changed) for n in (0, 1)}
    assert len(runs) == 12
    assert make_run_id("x", moved, 0) == make_run_id("x", second, 0)


@pytest.mark.behaviour("50-batch-sample")
def test_a_larger_sample_contains_the_smaller_one() -> None:
    def sample(size: int, *, reverse: bool = False) -> set[str]:
        lines = [json.dumps({"id": f"q{n}", "question": f"{n}?"}) for n in range(50)]
        table, problems = RowTable(), Problems()
        data = "\n".join(reversed(lines) if reverse else lines).encode()
        table.fill(read_rows(io.BytesIO(data), problems, is_csv=False), problems)
        table.keep_sample(size)
        return {table.get(n).id for n in table.order_pending()}

    assert sample(5) == sample(5, reverse=True)
    assert len(sample(5)) == 5 and sample(5) < sample(9)


@pytest.mark.behaviour("50-batch-order")
def test_rows_with_the_same_options_are_next_to_each_other_after_started_ones() -> None:
    lines = [{"id": f"{n}", "question": f"{n}?", "options": {"protocol": "triad"} if n % 2 else {}} for n in range(6)]
    table, problems = RowTable(), Problems()
    table.fill(read_rows(io.BytesIO("\n".join(map(json.dumps, lines)).encode()), problems, is_csv=False), problems)
    table.mark("4", DONE)
    table.mark_started("3")
    assert [table.get(n).id for n in table.order_pending()] == ["3", "0", "2", "1", "5"]


@pytest.mark.parametrize("line", [b"[]", b"{}", b'{"id": "a", "run": 1, "status": "complete"}', b'{"id": "a", "run": null, "status": "x"}'])  # fmt: skip
def test_a_line_of_another_file_is_no_result(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"it |unknown status"):
        parse_line(line)


@pytest.mark.behaviour("50-batch-bad-rows")
def test_a_list_over_several_lines_gets_the_fix_for_lists_and_other_broken_lines_do_not() -> None:
    _, lines = read('[\n{"id": "a", "question": "first?"},\n[\n')
    assert ["jq -c" in line for line in lines] == [True, False, False]
    assert lines[0].startswith('line 1: "[" is not JSON') and "one object on each line instead of a list" in lines[0]
    _, (line, *_) = read(' [\n{"id": "a", "question": "first?"}\n]\n')
    assert "jq -c" in line
    _, (line,) = read('{"id": \n')
    assert line.endswith("write each row as one JSON object on one line")


@pytest.mark.behaviour("50-batch-bad-rows")
@pytest.mark.parametrize("start", ["[", " [", "{", "\ufeff\n{", "\ufeff["])
def test_standard_input_that_begins_like_json_is_not_csv(start: str) -> None:
    assert not detect_csv("-", start.encode())
    assert detect_csv("rows.csv", start.encode())
