"""Unified diffs: files, hunks and line numbers, also of diffs that git did not write."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from council.unified_diff import FileDiff, parse_diff

GIT = """diff --git a/src/gate.py b/src/gate.py
index 1f0a3c2..8d11e07 100644
--- a/src/gate.py
+++ b/src/gate.py
@@ -10,4 +10,3 @@ def enter(user):
     log(user)
-    if not user.is_admin:
-        raise Denied
+    audit(user)
     return True
@@ -90 +89,2 @@
-old
+new
+newer
\\ No newline at end of file
diff --git a/new.py b/new.py
new file mode 100644
diff --git a/a b.txt b/a b.txt
deleted file mode 100644
--- a/a b.txt
+++ /dev/null
@@ -1,2 +0,0 @@
-one
-two
diff --git a/old.py b/moved.py
similarity index 100%
rename from old.py
rename to moved.py
"""


def numbered(section: FileDiff) -> list[tuple[str, int, str]]:
    return [(line.sign, line.number, line.text) for hunk in section.hunks for line in hunk.list_lines()]


def test_each_line_has_the_number_of_its_side() -> None:
    gate, new, deleted, moved = parse_diff(GIT)
    assert [one.path for one in (gate, new, deleted, moved)] == ["src/gate.py", "new.py", "a b.txt", "moved.py"]
    assert numbered(gate) == [
        (" ", 10, "    log(user)"),
        ("-", 11, "    if not user.is_admin:"),
        ("-", 12, "        raise Denied"),
        ("+", 11, "    audit(user)"),
        (" ", 12, "    return True"),
        ("-", 90, "old"),
        ("+", 89, "new"),
        ("+", 90, "newer"),
    ]
    assert numbered(deleted) == [("-", 1, "one"), ("-", 2, "two")]
    assert [one.is_listed for one in (gate, new, deleted, moved)] == [False, True, False, False]


def test_removed_comments_and_signs_are_no_headers() -> None:
    diff = "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n--- drop it\n+++ keep it\n-@@ -1 +1 @@\n+@@ -2 +2 @@\n \n"
    (section,) = parse_diff(diff)
    assert [line[2] for line in numbered(section)] == ["-- drop it", "++ keep it", "@@ -1 +1 @@", "@@ -2 +2 @@", ""]


def test_a_diff_without_lines_of_git_is_divided_at_its_names() -> None:
    diff = "--- a.py\t2026-01-01\n+++ a.py\n@@ -1 +1 @@\n-a\n+b\n--- b.py\n+++ b.py\n@@ -3 +3 @@\n-c\n+d\n-- \n2.39.5\n"
    first, second = parse_diff(diff)
    assert (first.path, second.path) == ("a.py", "b.py")
    assert numbered(second) == [("-", 3, "c"), ("+", 3, "d")]


def test_lines_with_carriage_returns_and_tabs_keep_their_text() -> None:
    (section,) = parse_diff("--- a/w.bat\n+++ b/w.bat\n@@ -1 +1 @@\r\n-\tcd old\r\n+\tcd new\r\n")
    assert numbered(section) == [("-", 1, "\tcd old"), ("+", 1, "\tcd new")]


def test_rows_without_headers_are_kept_as_they_are() -> None:
    (section,) = parse_diff("+one\n-two\n")
    assert (section.path, section.head, section.hunks) == ("", ("+one", "-two"), ())
    assert parse_diff("") == ()


def test_a_hunk_is_split_with_the_numbers_of_its_rows() -> None:
    hunk = parse_diff(GIT)[0].hunks[0]
    first, second = hunk.split([3, 2])
    assert (first.header, second.header) == (
        "@@ -10,3 +10,1 @@ def enter(user):",
        "@@ -13,1 +11,2 @@ def enter(user):",
    )
    assert [*first.list_lines(), *second.list_lines()] == hunk.list_lines()


@given(
    st.lists(
        st.sampled_from(["@@ -1,2 +1,2 @@", "+a", "-b", " c", "", "--- a/x", "+++ b/x", "diff --git a/x b/x", "?"])
    )
)
def test_no_row_of_any_diff_is_lost(rows: list[str]) -> None:
    diff = "".join(f"{row}\n" for row in rows)
    kept = [row for section in parse_diff(diff) for row in section.text.splitlines()]
    assert sorted(row for row in kept if not row.startswith("@@")) == sorted(
        row for row in rows if not row.startswith("@@")
    )
    assert sum(row.startswith("@@") for row in kept) == sum(row.startswith("@@") for row in rows)


def test_a_hunk_with_fewer_rows_than_it_counts_ends_at_the_next_one() -> None:
    (section,) = parse_diff("--- a/x.py\n+++ b/x.py\n@@ -1,4 +1,4 @@\n a\n+b\n@@ -9,1 +10,1 @@ def f():\n-c\n+d\n")
    assert [hunk.rows for hunk in section.hunks] == [(" a", "+b"), ("-c", "+d")]
