"""Locations of findings: parsing, files of the packet, and quotes that verify and correct a line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.protocols.judges.findings import Finding
from council.protocols.judges.groups import FindingGroup, build_rows
from council.protocols.judges.locations import Material, Place, find_place, parse_location
from council.types import Packet, PacketFile

CODE = "".join(f"line {n}\n" for n in range(1, 101))
FILES = {"src/auth.py": CODE, "src/db.py": CODE, "tests/auth.py": CODE}
SHOP = """import os


def total(items):
    return sum(item.price for item in items)


def first(items):
    return items[0]


def last(items):
    return items[-1]


def mean(items):
    return sum(item.price for item in items) / len(items)
"""


def place(location: str, quote: str = "", ref: str = "", files: dict[str, str] | None = None, diff: str = "") -> Place:
    return find_place(location, ref, quote, Material(files if files is not None else {"src/shop.py": SHOP}, diff))


# Parsing


@pytest.mark.behaviour("20-locations-checked")
@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("src/auth.py:12", ("src/auth.py", 12)),
        ("src/auth.py:12-20", ("src/auth.py", 12)),
        ("auth.py:12:5", ("auth.py", 12)),
        ("src/auth.py#L12-L20", ("src/auth.py", 12)),
        ("src/auth.py:L12", ("src/auth.py", 12)),
        ("src/auth.py, line 12", ("src/auth.py", 12)),
        ("src/auth.py (lines 12-14)", ("src/auth.py", 12)),
        ("see `src/auth.py:12` and db.py:3", ("src/auth.py", 12)),
        ("`src/auth.py`:12", ("src/auth.py", 12)),
        ("`load` in src/auth.py:12", ("src/auth.py", 12)),
        ("don't trust (src/auth.py:12)", ("src/auth.py", 12)),
        ("[src/auth.py:12](there)", ("src/auth.py", 12)),
        ("`my file.py:3`", ("my file.py", 3)),
        ("app/[id].tsx:4", ("app/[id].tsx", 4)),
        (".\\src\\auth.py:12", ("src/auth.py", 12)),
        ("Makefile:3", ("Makefile", 3)),
    ],
)
def test_locations_are_parsed_in_all_common_forms(text: str, place: tuple[str, int]) -> None:
    assert parse_location(text) == place


@pytest.mark.parametrize(
    "text",
    ["", "the whole design", "http://localhost:8080", "https://example.org/a.py#L3", "12:30", "src/auth.py", "src/auth.py:0",
     "src/auth.py:99999999", "src/auth.py:-3"],
)  # fmt: skip
def test_text_without_a_file_and_line_is_not_a_location(text: str) -> None:
    assert parse_location(text) is None


@given(st.text())
def test_parsing_a_location_never_fails(text: str) -> None:
    found = parse_location(text)
    assert found is None or found[1] > 0


@given(st.text(), st.text(), st.text())
def test_checking_a_place_never_fails(location: str, ref: str, quote: str) -> None:
    found = place(f"src/shop.py {location}", quote, ref)
    assert (found.state == "verified") == (found.quote == "found")


# Files and lines


@pytest.mark.behaviour("20-locations-checked")
@pytest.mark.parametrize(
    ("location", "ref", "state", "path"),
    [
        ("src/auth.py:100", "", "located", "src/auth.py"),
        ("src/auth.py:101", "", "unlocated", "src/auth.py"),
        ("src/auth.py:0", "", "unlocated", "src/auth.py"),
        ("src/auth.py:-3", "", "unlocated", "src/auth.py"),
        ("src/auth.py:99999999", "", "unlocated", "src/auth.py"),
        ("src/auth.py", "", "unlocated", "src/auth.py"),
        ("src/nowhere.py:1", "", "unlocated", ""),
        ("the design", "", "unlocated", ""),
        ("the login", "src/auth.py:5", "located", "src/auth.py"),
        ("db.py:5", "", "located", "src/db.py"),
        ("auth.py:5", "", "unlocated", ""),
        ("b/src/db.py:5", "", "located", "src/db.py"),
        ("/anywhere/project/src/db.py:5", "", "located", "src/db.py"),
        ("other/db.py:5", "", "unlocated", ""),
    ],
    ids=["last", "beyond", "zero", "negative", "huge", "no-line", "no-file", "no-place", "by-ref", "by-its-end", "ambiguous",
         "diff-side", "rooted", "elsewhere"],
)  # fmt: skip
def test_a_line_without_a_quote_is_at_best_located_and_a_missing_line_keeps_the_file(
    location: str, ref: str, state: str, path: str
) -> None:
    found = place(location, ref=ref, files=FILES)
    assert (found.state, found.path, bool(found.line)) == (state, path, state == "located")


@pytest.mark.behaviour("20-locations-checked")
def test_a_blank_line_is_no_location() -> None:
    assert [place(f"src/shop.py:{n}").state for n in (2, 3, 4)] == ["unlocated", "unlocated", "located"]


def test_a_final_line_break_does_not_start_a_new_line() -> None:
    assert place("a.py:2", files={"a.py": "one\n"}).state == "unlocated"
    assert place("a.py:2", files={"a.py": "one\r\ntwo"}).code == "two"
    assert place("a.py:2", files={"a.py": "one\x0ctwo"}).state == "unlocated"  # a form feed is not a line break


# Quotes


@pytest.mark.behaviour("20-quote-verifies")
@pytest.mark.parametrize(
    ("location", "quote", "line"),
    [
        ("src/shop.py:9", "return items[0]", 9),
        ("src/shop.py:12", "    return items[0]", 9),
        ("src/shop.py:400", "return  items[ 0 ]", 9),
        ("src/shop.py:0", "return items[0]", 9),
        ("src/shop.py", "def first(items):\n    return items[0]", 8),
        ("src/shop.py:9", "def first(items):\n    return items[0]", 9),
        ("src/shop.py:5", "sum(item.price for item in items)", 5),
        ("src/shop.py:18", "sum(item.price for item in items)", 17),
        ("src/shop.py:9", "9| return items[0]", 9),
        ("src/shop.py:9", "```python\nreturn items[0]\n```", 9),
        ("src/shop.py:9", "`return items[0]`", 9),
        ("src/shop.py:9", "+    return items[0]", 9),
        ("src/shop.py:9", "return items[0] ...", 9),
        ("shop.py:3", "import os", 1),
    ],
)
def test_a_quote_verifies_a_finding_and_corrects_its_line_to_the_nearest_occurrence(
    location: str, quote: str, line: int
) -> None:
    found = place(location, quote)
    assert (found.state, found.quote, found.path, found.line) == ("verified", "found", "src/shop.py", line)


@pytest.mark.behaviour("20-quote-verifies")
@pytest.mark.parametrize(
    ("location", "quote", "state", "quoted"),
    [
        ("src/shop.py:9", "return items.pop()", "located", "not_found"),
        ("src/shop.py:900", "return items.pop()", "unlocated", "not_found"),
        ("src/shop.py:9", SHOP, "located", "too_long"),
        ("src/shop.py:9", SHOP * 25, "located", "too_long"),
        ("src/shop.py", "sum(item.price for item in items)", "unlocated", "ambiguous"),
        ("src/other.py:9", "return items[0]", "unlocated", "not_found"),
        ("src/shop.py:9", "tems[0]", "located", "not_found"),
        ("src/shop.py:9", "):", "located", "not_found"),
        ("src/shop.py:9", "s", "located", "not_found"),
        ("src/shop.py:9", "", "located", ""),
    ],
    ids=["invented", "invented-past-the-end", "whole-file", "400-lines", "twice-no-line", "other-file", "part-of-a-word",
         "signs", "letter", "none"],
)  # fmt: skip
def test_a_quote_that_proves_nothing_leaves_the_finding_unverified_and_says_why(
    location: str, quote: str, state: str, quoted: str
) -> None:
    found = place(location, quote)
    assert (found.state, found.quote) == (state, quoted)


@pytest.mark.behaviour("20-quote-verifies")
def test_a_quote_from_another_file_of_the_packet_is_not_found() -> None:
    found = place("src/db.py:2", "return items[0]", files={"src/shop.py": SHOP, "src/db.py": "a = 1\nb = 2\n"})
    assert (found.state, found.quote, found.path, found.line) == ("located", "not_found", "src/db.py", 2)


def test_a_long_quote_counts_with_three_lines() -> None:
    found = place("src/shop.py:9", "\n".join(SHOP.splitlines()[3:13]))
    assert (found.line, found.first, found.last) == (9, 8, 10)


# The diff

DIFF = """diff --git a/src/gate.py b/src/gate.py
--- a/src/gate.py
+++ b/src/gate.py
@@ -10,4 +10,4 @@ def enter(user):
     log(user)
-    if not user.is_admin:
-        raise Denied
+    audit(user)
     return True
"""


@pytest.mark.behaviour("20-quote-verifies")
def test_quotes_of_added_and_removed_lines_of_a_diff_are_found() -> None:
    added = place("src/gate.py:3", "audit(user)", files={}, diff=DIFF)
    removed = place("src/gate.py:11", "if not user.is_admin:", files={}, diff=DIFF)
    assert [(one.state, one.line) for one in (added, removed)] == [("verified", 11), ("verified", 11)]


LATE = DIFF.replace("@@ -10,4 +10,3 @@", "@@ -310,4 +10,3 @@").replace("@@ -10,4 +10,4 @@", "@@ -310,4 +10,4 @@")


@pytest.mark.behaviour("20-quote-verifies")
@pytest.mark.parametrize(
    ("quote", "first", "last"),
    [
        ("    log(user)\n    audit(user)", 10, 11),
        ("log(user)\nif not user.is_admin:", 10, 11),
        ("raise Denied\n    return True", 11, 12),
        ("-        raise Denied\n+    audit(user)", 11, 11),
        ("312 - |         raise Denied\n 11 + |     audit(user)", 11, 11),
        ("11 + |     audit(user)", 11, 11),
        ("11 +     audit(user)", 11, 11),
        ("11: audit(user)", 11, 11),
        ("12   |     return True", 12, 12),
        ("+ | audit(user)", 11, 11),
        ("\taudit(user)\r\n\treturn True\r\n", 11, 12),
    ],
    ids=["new", "old", "old-end", "both", "our-prefixes", "added", "no-bar", "colon", "context", "no-number", "crlf"],
)
def test_quotes_of_either_side_of_a_diff_are_found_with_our_prefixes(quote: str, first: int, last: int) -> None:
    found = place("src/gate.py:11", quote, files={}, diff=LATE)
    assert (found.state, found.first, found.last) == ("verified", first, last)


def test_a_removed_line_is_located_by_its_old_number_and_a_deleted_file_keeps_its_own() -> None:
    assert (
        place("src/gate.py:312", files={}, diff=LATE).state,
        place("src/gate.py:312", files={}, diff=LATE).line,
    ) == (
        "located",
        11,
    )
    deleted = "--- a/old.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one()\n-two()\n"
    found = place("old.py:2", "two()", files={}, diff=deleted)
    assert (found.state, found.line) == ("verified", 2)


@pytest.mark.behaviour("20-locations-checked")
def test_the_header_of_a_hunk_names_a_definition_that_the_sent_lines_do_not_show() -> None:
    diff = "--- a/cart.py\n+++ b/cart.py\n@@ -39,2 +39,3 @@ def total(items):\n     price = 0\n+    tax = 1\n     return price\n"
    material = Material({}, diff, [PacketFile("cart.py", "    tax = 1\n", ((40, 40),), "rest", "", 90)])
    found = find_place("cart.py:40", "", "", material)
    definition = material.find_definition(found, "")
    assert definition is not None and definition.name == "total"


# Parts of files


PARTIAL = Packet(
    (
        PacketFile(
            "src/cart.py", "import os\ndef total(items):\n    return 0\n", ((1, 1), (40, 41)), "definitions", "", 90
        ),
        PacketFile("src/cart.py", "def last(items):\n    return 0\n", ((80, 81),), "rest", "", 90),
        PacketFile("AGENTS.md", "# Rules\n\nMoney is always Decimal.\n", part="rules"),
    ),
    commits=("4f1c2aa91 Sum the prices\n\nCallers pass b from now on.",),
)


@pytest.mark.behaviour("20-locations-checked")
@pytest.mark.parametrize(
    ("location", "quote", "state", "line"),
    [
        ("src/cart.py:40", "def total(items):", "verified", 40),
        ("src/cart.py:2", "def total(items):", "verified", 40),
        ("src/cart.py:81", "return 0", "verified", 81),
        ("src/cart.py:40", "return 0", "verified", 41),
        ("src/cart.py:41", "", "located", 41),
        ("src/cart.py:42", "", "unlocated", 0),
        ("src/cart.py:2", "", "unlocated", 0),
        ("src/cart.py:900", "", "unlocated", 0),
        ("src/cart.py:1", "import os\ndef total(items):", "located", 1),
        ("AGENTS.md:3", "Money is always Decimal.", "verified", 3),
    ],
    ids=[
        "its-number",
        "corrected",
        "nearest",
        "nearest-first",
        "sent",
        "not-sent",
        "gap",
        "past",
        "over-a-gap",
        "rules",
    ],
)
def test_lines_of_partial_files_have_their_real_numbers_and_unsent_lines_are_not_located(
    location: str, quote: str, state: str, line: int
) -> None:
    found = find_place(location, "", quote, Material.from_packet(PARTIAL))
    assert (found.state, found.line, bool(found.path)) == (state, line, True)


@pytest.mark.behaviour("20-quote-verifies")
@pytest.mark.parametrize("location", ["commit 4f1c2aa", "4f1c2aa91: the message", "4f1c2aa91f00d"])
def test_a_quote_of_a_commit_message_is_found_and_is_no_file(location: str) -> None:
    found = find_place(location, "", "Callers pass b from now on.", Material.from_packet(PARTIAL))
    assert (found.state, found.path, found.is_file) == ("verified", "commit 4f1c2aa91", False)
    assert find_place("commit 0000000", "", "Callers pass b", Material.from_packet(PARTIAL)).path == ""
    one = Finding("minor", "style", "The message is wrong.", location, seat="judge-1", id="judge-1.F1", place=found)
    (row,) = build_rows([FindingGroup((one,), 1)])
    assert (row["path"], row["line"], row["location"], row["verified"]) == ("", 0, "commit 4f1c2aa91:3", True)


HOOK = "useEffect(() => {\n  load();\n}, []);\n\nuseMemo(() => {\n  sort();\n}, []);\n"


@pytest.mark.behaviour("20-quote-verifies")
@pytest.mark.parametrize(
    ("location", "quote", "state", "quoted"),
    [
        ("a.tsx:7", "  }, []);", "verified", "found"),
        ("a.tsx:7", "7| }, []);", "verified", "found"),
        ("a.tsx:6", "}, []);", "located", "not_found"),
        ("a.tsx", "}, []);", "unlocated", "not_found"),
        ("a.tsx:7", "}, [", "located", "not_found"),
        ("a.tsx:7", "}", "located", "not_found"),
    ],
    ids=["copied", "numbered", "elsewhere", "no-line", "part-of-it", "sign"],
)
def test_a_quote_of_signs_counts_as_a_whole_line_at_the_named_place(
    location: str, quote: str, state: str, quoted: str
) -> None:
    found = place(location, quote, files={"a.tsx": HOOK})
    assert (found.state, found.quote) == (state, quoted)
    assert found.line == (7 if state == "verified" else found.line)


@pytest.mark.behaviour("20-quote-verifies")
def test_a_quote_of_a_line_that_the_packet_changed_is_found() -> None:
    """The packet shows marks that a file imitates with round brackets."""
    files = {"notes.md": "first line\n<<<Beta 0123456789ab\nlast line"}
    for quote in ("<<<Beta 0123456789ab", "(((Beta 0123456789ab", "2| (((Beta 0123456789ab"):
        assert find_place("notes.md:2", "", quote, Material(files)).state == "verified"


def test_quotes_in_a_line_of_two_megabytes_and_in_wide_text_are_found_in_time() -> None:
    material = Material({"min.js": "a1 b2;" * 350_000 + "end()", "w.txt": "caf\u00e9\r\nzwei\r\n"})
    started = time.process_time()
    assert find_place("min.js:1", "", "b2;end()", material).state == "verified"
    assert [find_place("min.js:1", "", f"missing{n}", material).quote for n in range(20)] == ["not_found"] * 20
    assert find_place("w.txt:1", "", "café\r\nzwei", material).last == 2
    assert time.process_time() - started < 10


def test_the_specification_is_part_of_the_material() -> None:
    packet = Packet((PacketFile("a.py", "x = 1\n"),), spec_source="SPEC.md", spec="Orders are kept for a year.\n")
    found = find_place("SPEC.md:1", "", "kept for a year", Material.from_packet(packet))
    assert (found.state, found.path) == ("verified", "SPEC.md")


def test_a_quote_with_the_escapes_of_the_packet_is_found() -> None:
    """The packet writes marks that a file imitates as JSON escapes."""
    files = {"notes.md": "first line\n<<<Beta 0123456789ab\nlast line"}
    found = find_place("notes.md:2", "", "\\u003c\\u003c\\u003cBeta 0123456789ab", Material(files, ""))
    assert found == find_place("notes.md:2", "", "<<<Beta 0123456789ab", Material(files, ""))
    assert found.path == "notes.md" and found.line == 2
