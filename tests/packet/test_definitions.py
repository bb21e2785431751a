"""Definitions around lines, in each language with a grammar."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from council.packet.definitions import (
    Definition,
    ParseClock,
    clip_definition,
    find_constants,
    find_defined_names,
    has_grammars,
    merge_ranges,
    parse_source,
)


class Example(NamedTuple):
    path: str
    text: str
    line: int
    names: tuple[str, ...]  # of the definitions around the line
    lines: tuple[int, int, int]  # first line, last line of the signature, last line of the innermost one
    imports: tuple[tuple[int, int], ...] = ()


EXAMPLES = [
    Example(
        "a.py",
        "import os\nfrom x import (\n    a,\n)\n\n\n# Carts\n@final\nclass Cart(Base):\n    @property\n    def total(\n        self,\n    ) -> int:\n        return 1\n",
        14,
        ("Cart", "total"),
        (10, 13, 14),
        ((1, 1), (2, 4)),
    ),
    Example("decorator.py", "@cached\ndef total():\n    return 1\n", 1, ("total",), (1, 2, 3)),
    Example(
        "a.ts",
        "import { a } from './a';\n\n/** Adds. */\nexport const total = async (x: number) => {\n  return x;\n};\n",
        5,
        ("total",),
        (3, 4, 6),
        ((1, 1),),
    ),
    Example("head.ts", "export abstract class Cart extends Base {\n  x = 1;\n}\n", 1, ("Cart",), (1, 1, 3)),
    Example("a.tsx", "export function View(): any {\n  return <p>{1}</p>;\n}\n", 2, ("View",), (1, 1, 3)),
    Example("a.js", "exports.total = function (x) {\n  return x;\n};\n", 2, ("total",), (1, 1, 3)),
    Example(
        "a.spec.js",
        "describe('cart', () => {\n  it('adds', () => {\n    total(1);\n  });\n});\n",
        3,
        ("", ""),
        (2, 2, 4),
    ),
    Example(
        "a.go",
        'package a\n\nimport (\n\t"fmt"\n)\n\n// Total adds.\nfunc (c *Cart) Total(x int) int {\n\treturn x\n}\n',
        9,
        ("Total",),
        (7, 8, 10),
        ((3, 5),),
    ),
    Example("group.go", "package a\n\ntype (\n\tA struct {\n\t\tX int\n\t}\n\tB struct{}\n)\n", 5, ("A",), (4, 4, 6)),
    Example(
        "a.rs",
        "use std::io;\n\nimpl<T> Shop for Cart<T> {\n    #[inline]\n    fn total(&self) -> i32 {\n        1\n    }\n}\n",
        6,
        ("Cart", "total"),
        (4, 5, 7),
        ((1, 1),),
    ),
    Example(
        "A.java",
        "import b.C;\n\nclass Cart extends Base<C> {\n  @Override\n  public int total(int x) {\n    return x;\n  }\n}\n",
        6,
        ("Cart", "total"),
        (4, 5, 7),
        ((1, 1),),
    ),
    Example(
        "a.c", "#include <a.h>\n\nstatic int *total(int x)\n{\n  return 0;\n}\n", 5, ("total",), (3, 4, 6), ((1, 1),)
    ),
    Example(
        "a.cpp", "namespace shop {\nint Cart::total(int x) {\n  return x;\n}\n}\n", 3, ("shop", "total"), (2, 2, 4)
    ),
    Example(
        "a.cs",
        "using System;\nnamespace Shop {\n  class Cart {\n    int Total() {\n      return 1;\n    }\n  }\n}\n",
        5,
        ("Shop", "Cart", "Total"),
        (4, 4, 6),
        ((1, 1),),
    ),
    Example(
        "a.rb",
        "require 'x'\n\nclass Cart < Base\n  def total(x)\n    x\n  end\nend\n",
        5,
        ("Cart", "total"),
        (4, 4, 6),
        ((1, 1),),
    ),
    Example(
        "a.php",
        "<?php\nuse B\\C;\n\nclass Cart extends C\n{\n    function total(int $x): int\n    {\n        return 1;\n    }\n}\n",
        8,
        ("Cart", "total"),
        (6, 7, 9),
        ((2, 2),),
    ),
]


@pytest.mark.behaviour("packet-definitions")
@pytest.mark.parametrize("example", EXAMPLES, ids=[example.path for example in EXAMPLES])
def test_the_definitions_around_a_line_are_found(example: Example) -> None:
    source = parse_source(example.path, example.text)
    assert source
    around = source.find_enclosing(example.line)
    assert tuple(one.name for one in around) == example.names
    assert (around[-1].first, around[-1].head, around[-1].last) == example.lines
    assert tuple(source.list_imports()) == example.imports


@pytest.mark.behaviour("packet-definitions")
def test_imports_of_a_module_may_be_optional_and_those_of_a_function_are_its_own() -> None:
    optional = "try:\n    import a\nexcept ImportError:\n    a = None\nif TYPE_CHECKING:\n    from b import B\n"
    inner = "def total():\n    import c\n\n\nclass Cart:\n    import d\n"
    source = parse_source("a.py", optional + inner)
    assert source
    assert list(source.list_imports()) == [(2, 2), (6, 6)]


@pytest.mark.behaviour("packet-definitions")
def test_a_long_definition_is_cut_to_its_head_the_place_and_its_end() -> None:
    long = Definition("total", 1, 500, 3, False, 1)
    assert merge_ranges(clip_definition(long, [200], most=100, around=20)) == ((1, 3), (180, 220), (500, 500))
    short = Definition("total", 1, 60, 3, False, 1)
    assert clip_definition(short, [30], most=100, around=20) == [(1, 60)]


@pytest.mark.behaviour("packet-definitions")
def test_crlf_and_other_characters_do_not_shift_lines() -> None:
    text = "# größe ✓\r\nclass Cart:\r\n\tdef total(self):\r\n\t\treturn 1\r\n"
    source = parse_source("a.py", text)
    assert source and [(one.name, one.first, one.last) for one in source.find_enclosing(4)] == [
        ("Cart", 1, 4),
        ("total", 3, 4),
    ]


@pytest.mark.behaviour("packet-bad-sources")
@pytest.mark.parametrize(
    ("path", "text"),
    [("a.js", "x=" + "1;" * 1_000_000), ("a.py", "x = 1\n" * 200_000), ("a.unknown", "x"), ("a.sql", "select 1")],
    ids=["a line of 2 MB", "over 1 MB", "unknown suffix", "no grammar"],
)
def test_a_file_that_cannot_be_parsed_has_no_definitions(path: str, text: str) -> None:
    assert parse_source(path, text) is None


@pytest.mark.behaviour("packet-bad-sources")
@pytest.mark.parametrize(
    "text", ["(" * 9_000, "x = [" * 1_500, "class A:\n" * 900, "def f(:\n  )))\n\x0c}}\n", "\0\n\ufffd", ""]
)
def test_broken_and_deeply_nested_sources_are_no_error(text: str) -> None:
    source = parse_source("a.py", text)
    assert source
    for line in (0, 1, 2, 500, 100_000):
        assert len(source.find_enclosing(line)) <= 150
    source.list_definitions()
    source.list_imports()


@pytest.mark.behaviour("packet-bad-sources")
def test_the_time_of_all_parses_is_limited() -> None:
    clock = ParseClock(0.000_001)
    started = time.process_time()
    assert parse_source("a.py", "x = 1\n", clock) is not None
    assert parse_source("a.py", "x = (1,\n" * 30_000, clock) is None
    assert time.process_time() - started < 1


@pytest.mark.behaviour("packet-bad-sources")
def test_reading_many_nodes_releases_no_foreign_object() -> None:
    program = (
        "from council.packet.definitions import parse_source\n"
        "text = 'class A:\\n' + ''.join(f'    def f{n}(self):\\n        return {n}\\n' for n in range(900))\n"
        "for _ in range(20):\n"
        "    source = parse_source('a.py', text)\n"
        "    assert all(source.find_enclosing(line) for line in range(2, 1800))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_names_are_found_in_lines_without_a_grammar() -> None:
    lines = ["fun total(x: Int)", "CREATE TABLE IF NOT EXISTS carts (", "  export default class Cart {", "x = total()"]
    assert find_defined_names(lines) == ["total", "carts", "Cart"]
    constants = ["MAX_ITEMS = 3", "export const TIMEOUT: int = 5", "pub static mut limits: u8 = 1;"]
    assert find_constants([*constants, "if MAX_ITEMS == 3:", "  const inner = 1"]) == ["MAX_ITEMS", "TIMEOUT", "limits"]


def test_the_grammars_are_installed_for_the_tests() -> None:
    assert has_grammars()
