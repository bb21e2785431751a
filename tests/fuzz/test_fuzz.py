"""Fuzzing of the parsers of foreign text: documented errors only, time in proportion to the size, and round trips."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import json
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from council.errors import ConfigError, UsageError
from council.json_text import find_json, load_json
from council.members.wires.http import ByteLimits, iter_lines
from council.notes_filter import NotesFilter
from council.packet.git import split_patch
from council.protocols.judges.locations import parse_location
from council.render.markdown import TextPart
from council.render.terminal_markdown import render_parts
from council.settings.config_files import edit_config, format_toml
from council.settings.schema import nest_keys
from council.types import repair_surrogates
from council.unified_diff import parse_diff
from tests.fuzz.targets import TARGETS, Target, json_values, texts

every_target = pytest.mark.parametrize("name", TARGETS)
QUICK_EXAMPLES, SWEEP_EXAMPLES = 25, 1_000


def fuzz(examples: int, *strategies: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], None]:
    """Run a property on this many examples, the same ones every time."""

    def run(check: Callable[..., None]) -> None:
        checked = given(*strategies)(check)
        phases = [Phase.explicit, Phase.generate, Phase.target, Phase.shrink]
        chosen = settings(
            max_examples=examples, derandomize=True, deadline=None, database=None, phases=phases,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        chosen(checked)()

    return run


def parse_or_reject(target: Target, text: str) -> None:
    with contextlib.suppress(*target.errors):
        target.parse(text)


# Errors


@pytest.mark.behaviour("14-fuzzed-parsers")
@every_target
def test_any_text_is_parsed_or_rejected_with_the_documented_error(name: str) -> None:
    target = TARGETS[name]
    fuzz(QUICK_EXAMPLES, texts(target))(lambda text: parse_or_reject(target, text))


@pytest.mark.sweep
@pytest.mark.behaviour("14-fuzzed-parsers")
@every_target
def test_many_texts_are_parsed_or_rejected_with_the_documented_error(
    name: str, sweep_figures: Callable[..., None]
) -> None:
    target = TARGETS[name]
    fuzz(SWEEP_EXAMPLES, texts(target))(lambda text: parse_or_reject(target, text))
    sweep_figures("fuzz", parsers=1, examples=SWEEP_EXAMPLES)


NESTED = [("[", "]"), ('{"a": ', "}"), ('{"\\u0041": [', "]}"), ("> ", ""), ("- ", "\n")]


@pytest.mark.behaviour("14-fuzzed-parsers")
@every_target
def test_nested_text_is_parsed_or_rejected(name: str) -> None:
    for depth in (90, 400, 950):
        for opening, closing in NESTED:
            for prefix in ("", TARGETS[name].prefix):
                parse_or_reject(TARGETS[name], prefix + opening * depth + closing * depth)


# Time

GROWTH_CHARS = 131_072  # of the longer text
FIRST_CHARS = 16_384  # a piece that takes long at this size is not tried with a larger one
MEASURABLE_S, TOO_LONG_S = 0.1, 2.0


def seconds(target: Target, text: str) -> float:
    start = time.process_time()
    parse_or_reject(target, text)
    return time.process_time() - start


def repeated(piece: str, size: int) -> str:
    return (piece * (size // max(1, len(piece)) + 1))[:size]


def long_pieces(target: Target) -> Iterator[str]:
    """Yield pieces to repeat: each of the target's own, and pairs of neighbours."""
    yield from target.pieces
    yield from (a + b for a, b in zip(target.pieces, target.pieces[1:], strict=False))
    yield from (f"{a} {b}\n" for a, b in zip(target.pieces, target.pieces[2:], strict=False))


def measure_growth(target: Target, piece: str) -> tuple[float, float]:
    """Return the growth from half to the whole size, 0 if it is too fast to measure, and the seconds of the whole."""
    size = min(GROWTH_CHARS, target.max_chars)
    if (first := seconds(target, repeated(piece, min(FIRST_CHARS, size)))) > TOO_LONG_S:
        return float("inf"), first
    half, whole = repeated(piece, size // 2), repeated(piece, size)
    before, took = seconds(target, half), seconds(target, whole)
    if before < MEASURABLE_S or took / before <= target.max_growth:
        return (took / before if before > MEASURABLE_S else 0.0), took
    before = max(before, seconds(target, half))  # other processes may have delayed one of them
    took = min(took, seconds(target, whole))
    return took / before, took


@pytest.mark.sweep
@pytest.mark.behaviour("14-fuzzed-parsers")
@every_target
def test_time_grows_in_proportion_to_the_size(name: str, sweep_figures: Callable[..., None]) -> None:
    target = TARGETS[name]
    slow, worst_growth, worst_seconds = [], 0.0, 0.0
    for piece in long_pieces(target):
        growth, took = measure_growth(target, piece)
        worst_growth, worst_seconds = max(worst_growth, growth), max(worst_seconds, took)
        if growth > target.max_growth:
            slow.append(f"{piece[:40]!r}: {took:.2f} s, grows by {growth:.1f}")
    sweep_figures(
        "growth", parsers=1, worst_growth=round(worst_growth, 2), worst_seconds=round(worst_seconds, 2), slow=len(slow)
    )
    assert not slow, "\n".join(slow)


# Round trips


def test_json_in_prose_is_found_as_it_is() -> None:
    def check(value: Any, before: str) -> None:
        text = json.dumps({"value": value})
        assert load_json(text) == load_json(json.dumps(load_json(text)))
        values, problem = find_json(f"{before} {text} and so on")
        assert (values, problem) == ([load_json(text)], "")

    fuzz(QUICK_EXAMPLES, json_values(), st.text(alphabet="abc .,\n"))(check)


KEYS = st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True)
TOML_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def test_a_written_setting_is_read_back() -> None:
    def check(value: Any) -> None:
        assert tomllib.loads(f"value = {format_toml(value)}")["value"] == value

    fuzz(QUICK_EXAMPLES * 2, TOML_VALUES)(check)


def test_an_edited_configuration_has_the_new_value_and_keeps_the_others() -> None:
    def check(table: str, key: str, other: str, value: str) -> None:
        text = f"# heading\n\ntimeout = 5 # why\n[{table}]\n{other} = 1\n"
        edited = tomllib.loads(edit_config(text, {f"{table}.{key}": value, "effort": "low"}))
        assert edited == {"timeout": 5, "effort": "low", table: {other: 1, key: value}}

    names = KEYS.filter(lambda name: name not in ("timeout", "effort"))
    plain = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    fuzz(QUICK_EXAMPLES, names, KEYS.map(lambda key: f"k{key}"), KEYS.map(lambda key: f"o{key}"), plain)(check)


def test_dotted_keys_are_nested_as_in_toml() -> None:
    def check(values: dict[str, int]) -> None:
        flat = {f"top.{table}.{key}": n for n, (table, key) in enumerate(values.items())}
        assert nest_keys(flat) == tomllib.loads("\n".join(f"{key} = {n}" for key, n in flat.items()))

    fuzz(QUICK_EXAMPLES, st.dictionaries(KEYS, KEYS))(check)


LINES = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), max_size=12)


def test_a_unified_diff_gives_the_lines_of_the_new_file() -> None:
    def check(old: list[str], new: list[str]) -> None:
        rows = list(difflib.unified_diff(old, new, "a/x.py", "b/x.py", lineterm="", n=50))
        sections = parse_diff("\n".join(rows))
        lines = [line for section in sections for hunk in section.hunks for line in hunk.list_lines()]
        kept = {line.number: line.text for line in lines if line.sign != "-"}
        assert list(kept.items()) == (list(enumerate(new, 1)) if rows else [])
        assert [section.path for section in sections] == (["x.py"] if rows else [])

    fuzz(QUICK_EXAMPLES, LINES, LINES)(check)


def test_the_sections_of_a_patch_are_the_patch() -> None:
    def check(bodies: list[str]) -> None:
        sections = [f"diff --git a/{n} b/{n}\n{body}\n" for n, body in enumerate(bodies)]
        assert "".join(split_patch("".join(sections))) == "".join(sections)

    fuzz(QUICK_EXAMPLES, st.lists(st.text(alphabet="+- ab\n", max_size=20)))(check)


def test_a_written_location_is_read_back() -> None:
    def check(path: str, line: int) -> None:
        assert parse_location(f"{path}:{line}") == (path, line)
        assert parse_location(f"see `{path}:{line}` there") == (path, line)

    fuzz(
        QUICK_EXAMPLES, st.from_regex(r"[a-z]{1,8}(/[a-z_]{1,8}){0,3}\.py", fullmatch=True), st.integers(1, 10**7 - 1)
    )(check)


def test_surrogates_are_repaired_once() -> None:
    def check(text: str) -> None:
        repaired = repair_surrogates(text)
        assert repaired.encode() and repair_surrogates(repaired) == repaired if text else repaired == ""

    fuzz(QUICK_EXAMPLES * 4, st.text(st.characters()))(check)


def test_pieces_of_notes_do_not_change_what_is_shown() -> None:
    def check(text: str, sizes: list[int]) -> None:
        whole, pieces = NotesFilter(), NotesFilter()
        expected = whole.feed(text) + whole.flush()
        shown, at = "", 0
        for size in sizes:
            shown, at = shown + pieces.feed(text[at : at + size]), at + size
        shown += pieces.feed(text[at:]) + pieces.flush()
        assert (shown, pieces.blocks) == (expected, whole.blocks)

    fuzz(QUICK_EXAMPLES * 4, texts(TARGETS["cleaned text"]), st.lists(st.integers(1, 9), max_size=20))(check)


# Lines of a stream


def split_lines(chunks: list[bytes]) -> list[bytes]:
    """Return the non-empty lines that a stream in these chunks has."""

    async def iter_any() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    response: Any = SimpleNamespace(headers={}, content=SimpleNamespace(iter_any=iter_any))

    async def collect() -> list[bytes]:
        return [line async for lines in iter_lines(response, ByteLimits()) for line in lines if line]

    return asyncio.run(collect())


def test_chunks_do_not_change_the_lines_of_a_stream() -> None:
    def check(pieces: list[bytes], sizes: list[int]) -> None:
        whole, chunks, at = b"".join(pieces), [], 0
        for size in sizes:
            chunks.append(whole[at : at + size])
            at += size
        expected = whole.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"\n").split(b"\n")[:-1]
        assert split_lines([*chunks, whole[at:]]) == split_lines([whole]) == [line for line in expected if line]

    pieces = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"data: x", b"\xef\xbb\xbf", "ü".encode(), b":"]))
    fuzz(QUICK_EXAMPLES, pieces, st.lists(st.integers(1, 5)))(check)


# Limits


def test_a_configuration_file_over_its_limit_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"council\.toml is larger than 256 kB: shorten it$"):
        TARGETS["settings"].parse("#" * 256_001)


def test_yaml_merges_do_not_multiply() -> None:
    rows = ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12))]
    with pytest.raises(UsageError, match="too many merged keys"):
        TARGETS["perspectives in YAML"].parse("\n".join(rows))


def test_a_yaml_tag_without_a_value_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="is not valid YAML"):
        TARGETS["perspectives in YAML"].parse("!!int")


def test_a_long_answer_is_shown_as_plain_lines() -> None:
    text = "**bold** word\n" * 4000
    assert render_parts([TextPart(text)], width=60, color=False).count("**bold**") == 4000
