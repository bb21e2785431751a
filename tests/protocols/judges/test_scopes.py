"""Enclosing definitions of lines: right, or unknown."""

from __future__ import annotations

import time
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.protocols.judges.locations import Material, find_place
from council.protocols.judges.scopes import Line, find_code_names, find_definition
from council.types import Packet, PacketFile
from council.unified_diff import parse_diff

# Each line with the name of its definition before the bar; "-" for unknown.
SOURCES = {
    "a.py": '''
-      |import x
f      |@cache
f      |def f(
f      |    a,
f      |) -> int:
f      |    q = """
-      |SELECT 1
-      |"""
f      |    if a:
f      |        return 1
inner  |    def inner():
inner  |        return 2
f      |    return q
-      |
C      |class C(Base):
C      |    name = 1
m      |    async def m(self):
m      |        for x in y:
m      |            await x
-      |f(
-      |    3,
-      |)
''',
    "a.ts": """
-      |import { x } from "y";
load   |export async function load(ids: string[]) {
load   |  for (const id of ids) {
load   |    await go(id);
-      |  }
-      |}
Store  |export class Store extends Base<Foo> {
Store  |  private cache = {};
constructor|  constructor(private a: A) {
constructor|    super(a);
-      |  }
get    |  async get(id: string): Promise<Foo | null> {
get    |    const r = await this.db.query(
get    |      id,
-      |    );
get    |    items.forEach((item) => {
get    |      use(item);
-      |    });
-      |  }
handle |  handle = async (e: Event) => {
handle |    e.stop();
-      |  };
-      |}
-      |describe("x", () => {
-      |  it("y", () => {
-      |    expect(1);
-      |  });
-      |});
sum    |export const sum = (a: number, b: number): number => {
sum    |  return a + b;
-      |};
""",
    "a.go": """
-      |package main
T      |type T struct {
T      |	a int
-      |}
Run    |func (w *T) Run(ctx context.Context) error {
Run    |	go func() error {
Run    |		w.x()
Run    |	}()
Run    |	return nil
-      |}
-      |var a = map[string]int{
-      |	"a": 1,
-      |}
""",
    "a.rs": """
-      |impl<T> Foo<T>
-      |where
-      |    T: Clone,
-      |{
run    |    pub async fn run<'a>(&self, x: &'a str) -> Result<(), E>
-      |    where
run    |        T: X,
run    |    {
run    |        let y = x
run    |            .trim();
run    |        match y {
run    |            1 => foo(),
-      |        }
-      |    }
-      |    const X: u8 = 1;
-      |}
S      |pub(crate) struct S {
S      |    a: u8,
-      |}
""",
    "A.java": """
-      |package a;
A      |public class A extends B {
A      |    private final int x = 1;
names  |    @Override
names  |    public List<String> names(Map<String, Integer> in, int b) throws IOException {
names  |        for (String s : in.keySet()) {
names  |            Foo result = compute(
names  |                a,
names  |                b);
names  |            executor.submit(() -> {
names  |                run();
-      |            });
-      |        }
-      |    }
A      |    abstract void foo(int a);
bar    |    int bar() {
bar    |        return 1;
-      |    }
-      |}
""",
    "a.cpp": """
Foo    |Foo::Foo(int a)
Foo    |    : a_(a),
Foo    |      b_(1) {
Foo    |  init();
-      |}
helper |static int helper(const char* s, int n = 0)
helper |{
helper |    if (n) {
helper |        goto out;
-      |    }
helper |    Foo bar(
helper |        1,
helper |        2);
-      |out:
helper |    return 1;
-      |}
Q      |class Q {
Q      |  int a;
set    |  void set(int v) {
set    |    a = v;
-      |  }
-      |};
""",
    "a.cs": """
A      |public class A
A      |{
GetAsync|    public async Task<int> GetAsync(int id, CancellationToken ct = default)
GetAsync|    {
GetAsync|        var x = await _db.Users
GetAsync|            .Where(u => u.Id == id)
GetAsync|        return x.Id;
-      |    }
Sum    |    public int Sum(int a) => a + 1;
A      |    private readonly ILogger _log;
-      |}
""",
    "a.rb": """
A      |class A
run    |  def run(x)
run    |    x.each do |y|
run    |      puts y
-      |    end
-      |  end
go?    |  def self.go?
go?    |    true
-      |  end
-      |end
""",
    "a.php": """
-      |<?php
A      |class A
A      |{
run    |    public function run(array $x): int
run    |    {
run    |        foreach ($x as $y) {
run    |            echo $y;
-      |        }
-      |    }
-      |}
""",
    "a.sql": """
-      |-- about
users  |CREATE TABLE users (
users  |  id int
-      |);
pay    |CREATE OR REPLACE FUNCTION pay(a int) RETURNS void AS $$
pay    |BEGIN
pay    |  UPDATE t SET x = 1;
pay    |END;
pay    |$$ LANGUAGE plpgsql;
trg    |CREATE TRIGGER trg AFTER INSERT ON users
trg    |FOR EACH ROW EXECUTE FUNCTION pay();
orders |ALTER TABLE orders ADD COLUMN z int;
foo    |CREATE PROCEDURE foo()
foo    |BEGIN
foo    |  SELECT 1;
foo    |  IF x THEN
foo    |    SELECT 2;
foo    |  END IF;
foo    |END;
big    |CREATE VIEW big AS
big    |SELECT *
big    |FROM users;
""",
    "notes.md": """
-      |# def heading():
-      |    text
""",
}


def read(source: str) -> tuple[list[str], list[Line]]:
    pairs = [line.partition("|") for line in source.strip("\n").splitlines()]
    return [name.strip() for name, _, _ in pairs], [Line(n, text) for n, (_, _, text) in enumerate(pairs, 1)]


@pytest.mark.behaviour("20-clerk-checked")
@pytest.mark.parametrize("path", SOURCES)
def test_a_line_lies_in_its_nearest_definition_or_in_none_that_is_known(path: str) -> None:
    names, rows = read(SOURCES[path])
    found = [find_definition(path, rows, row.number) for row in rows]
    assert [one.name if one else "-" for one in found] == names


LINE_PIECES = st.sampled_from(
    [
        "def f(x):",
        "class A {",
        "  }",
        "    x = 1",
        '"""',
        "CREATE FUNCTION f() AS $$",
        "$$;",
        "func F() {",
        "\tfoo(",
        ")",
        "@a",
        "",
        "é|\x0c",
    ]
)


@pytest.mark.behaviour("20-clerk-checked")
@given(st.lists(st.one_of(LINE_PIECES, st.text(max_size=30)), max_size=30), st.sampled_from(sorted(SOURCES)), st.data())
def test_a_definition_starts_at_or_before_a_line_that_is_there(
    texts: list[str], path: str, data: st.DataObject
) -> None:
    gaps = data.draw(st.lists(st.integers(1, 3), min_size=len(texts), max_size=len(texts)))
    rows = [Line(number, text) for number, text in zip(accumulate(gaps), texts, strict=True)]
    for row in rows:
        found = find_definition(path, rows, row.number)
        is_mark = row.text.strip().startswith(("@", "#[", "["))  # a decorator stands above its definition
        assert found is None or (found.line in {one.number for one in rows} and (found.line <= row.number or is_mark))


def test_a_long_file_of_sql_is_read_in_linear_time() -> None:
    rows = [Line(1, "CREATE FUNCTION f() RETURNS void AS $$"), *(Line(n, f"  x := {n};") for n in range(2, 20_000))]
    started = time.process_time()
    found = find_definition("a.sql", rows, 19_000)
    assert found is not None
    assert found.name == "f"
    assert time.process_time() - started < 2


@pytest.mark.behaviour("20-clerk-checked")
def test_a_function_and_one_inside_it_are_one_place_but_methods_and_siblings_are_not() -> None:
    text = """def outer():
    a = 1
    def first():
        return a
    def second():
        return a
    return first


class Cart:
    limit = 3
    def add(self):
        self.n += 1
    def drop(self):
        self.n -= 1"""
    rows = [Line(n, line) for n, line in enumerate(text.split("\n"), 1)]
    outer, first, second, limit, add, drop = (find_definition("a.py", rows, n) for n in (2, 4, 6, 11, 13, 15))
    assert outer and first and second and limit and add and drop
    assert outer.is_same(first)
    assert second.is_same(outer)
    assert not first.is_same(second)
    assert not limit.is_same(add)
    assert not add.is_same(drop)


@pytest.mark.behaviour("20-clerk-checked")
def test_a_gap_between_the_line_and_its_header_gives_no_answer() -> None:
    rows = [Line(1, "def f():"), Line(2, "    a = 1"), Line(40, "    b = 2")]
    assert find_definition("a.py", rows, 40) is None
    known = find_definition("a.py", rows, 2)
    assert known is not None
    assert known.name == "f"


@pytest.mark.parametrize("text", ["def f(): return 1" + " " * 10 + "x" * 2_000, "", "    "])
def test_generated_and_blank_lines_lie_in_no_known_definition(text: str) -> None:
    assert find_definition("a.py", [Line(1, "def f():"), Line(2, text)], 2) is None


DIFF = """diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -40,4 +40,4 @@ def price_of(item):
     total = item.price
-    return total
+    return total * rate
     # end
@@ -80,3 +80,3 @@ class Cart:
     def add(self, item):
-        self.items = item
+        self.items.append(item)
@@ -120,2 +120,3 @@ class Cart:
         item.check()
+        item.save()
"""


@pytest.mark.behaviour("20-clerk-checked")
@pytest.mark.parametrize(
    ("location", "quote", "name"),
    [
        ("shop.py:41", "return total * rate", "price_of"),
        ("shop.py:81", "self.items.append(item)", "add"),
        ("shop.py:121", "item.save()", "-"),  # a class in the header of the hunk: the method is not known
        ("shop.py:41", "return total", "price_of"),
        ("shop.py:81", "self.items = item", "-"),  # a removed line
    ],
)
def test_the_header_of_a_hunk_names_a_function_and_nothing_else(location: str, quote: str, name: str) -> None:
    material = Material({}, DIFF)
    place = find_place(location, "", quote, material)
    found = material.find_definition(place, quote)
    assert (found.name if found else "-") == name
    (section,) = parse_diff(DIFF)
    assert [hunk.where.strip() for hunk in section.hunks] == ["def price_of(item):", "class Cart:", "class Cart:"]


def test_parts_of_a_file_keep_their_line_numbers() -> None:
    parts = (
        PacketFile("shop.py", "def tax(x):\n    return x\n", ((50, 51),), "definitions", lines=90),
        PacketFile("shop.py", "def first(y):\n    return y\n", ((10, 11),), "callers", lines=90),
    )
    material = Material.from_packet(Packet(files=parts))
    place = find_place("shop.py:3", "", "return x", material)
    assert (place.line, place.state) == (51, "verified")
    found = material.find_definition(place, "return x")
    assert found is not None
    assert (found.name, found.line) == ("tax", 50)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`load_user` never calls close()", {"load_user", "close"}),
        ("UserStore.findById trusts the caller (which is wrong)", {"UserStore", "findById"}),
        ("MAX_ROWS is too small for the average cart", {"MAX_ROWS"}),
        ("the average is wrong", set()),
    ],
)
def test_code_names_are_read_from_prose(text: str, names: set[str]) -> None:
    assert find_code_names(text) == names
