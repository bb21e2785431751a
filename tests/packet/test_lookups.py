"""Read-only look-ups: results and refusals."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council.packet import lookups
from council.packet.lookups import look
from tests.packet.conftest import write


@pytest.mark.behaviour("packet-look")
def test_slices_names_and_lines_are_found(repo: Path) -> None:
    write(repo, {"src/long.py": "".join(f"line {n}\n" for n in range(1, 1001))})
    rows = look(repo, {"files": [{"path": "src/long.py", "from": 10, "to": 12}, "src/long.py"], "names": ["JWT", "src/*.py"],
                       "patterns": [r"line 9\d\d$", "return True"]})  # fmt: skip
    assert rows[0] == {
        "look": "file",
        "path": "src/long.py",
        "from": 10,
        "to": 12,
        "lines": 1000,
        "content": "line 10\nline 11\nline 12\n",
    }
    assert (rows[1]["from"], rows[1]["to"]) == (1, 400)
    assert rows[2] == {"look": "name", "name": "JWT", "paths": ["src/auth/jwt.py"], "more": 0}
    assert rows[3]["paths"] == ["src/app.py", "src/long.py"]
    assert rows[4]["hits"][0] == {"path": "src/long.py", "line": 900, "text": "line 900"}
    assert len(rows[4]["hits"]) == 40
    assert rows[5]["hits"] == [{"path": "src/auth/jwt.py", "line": 2, "text": "    return True"}]


def test_a_long_path_is_found_whole_so_that_it_can_be_asked_for(repo: Path) -> None:
    path = "/".join(["module"] * 40) + "/api.py"
    write(repo, {path: "timeout = 30\n"})
    names, lines = look(repo, {"names": ["api.py"], "patterns": ["timeout"]})
    assert names["paths"] == [path] == [hit["path"] for hit in lines["hits"]]
    [content] = look(repo, {"files": names["paths"]})
    assert (content["content"], content["path"]) == ("timeout = 30\n", path[:200])


@pytest.mark.behaviour("40-invisible-characters")
def test_removed_invisible_characters_are_counted(repo: Path) -> None:
    write(repo, {"src/a.txt": "pl\u200bain\U000e0041\n", "src/b.txt": "plain\n"})
    hidden, plain = look(repo, {"files": ["src/a.txt", "src/b.txt"]})
    assert (hidden["content"], hidden["invisible_characters_removed"]) == ("plain\n", 2)
    assert "invisible_characters_removed" not in plain


@pytest.mark.behaviour("packet-look")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../outside.txt", "outside the folder"), ("/etc/passwd", "outside the folder"), ("nope.py", "cannot be read"), ("", "a path is needed"),
        (7, "a path is needed"), (".git/config", "never included"), (".agents/council/x.md", "never included"), ("src", "a folder"),
        (".env", "secret file name"), ("a\0b", "NUL"), ("out.txt", "a link"), ("uv.lock", "a lock file"),
    ],
)  # fmt: skip
def test_refused_look_up_has_a_reason(path: object, why: str, repo: Path) -> None:
    write(repo, {".env": "a=1\n", "uv.lock": "x\n", "../outside.txt": "x\n"})
    (repo / "out.txt").symlink_to("../outside.txt")
    [row] = look(repo, {"files": [{"path": path}]})
    assert why in row["why"] and "content" not in row


@pytest.mark.behaviour("packet-look-pattern-time")
def test_pattern_that_never_finishes_is_stopped(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "GREP_TIMEOUT_S", 0.5)
    write(repo, {"src/a.txt": "a" * 60 + "\n"})
    started = time.monotonic()
    [row] = look(repo, {"patterns": ["(a+)+b$"]})
    assert "took longer" in row["why"]
    assert time.monotonic() - started < 30


def test_invalid_regex_is_searched_literally(repo: Path) -> None:
    write(repo, {"src/a.txt": "call(x\n"})
    assert look(repo, {"patterns": ["call(x"]})[0]["hits"] == [{"path": "src/a.txt", "line": 1, "text": "call(x"}]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "from", "to", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=ANYTHING, names=ANYTHING)
def test_any_look_up_request_returns_rows(repo: Path, files: Any, names: Any) -> None:
    rows = look(repo, {"files": files, "names": names, "patterns": files})
    assert all(isinstance(row["look"], str) for row in rows)


@pytest.mark.behaviour("packet-look-globs")
@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("*.py", ["src/app.py", "src/auth/jwt.py"]), ("j*t.py", ["src/auth/jwt.py"]), ("src/*.py", ["src/app.py"]),
        ("./src/*.py", ["src/app.py"]), ("**/*.py", ["src/app.py", "src/auth/jwt.py"]), ("*auth*", []), ("README*", ["README.md"]),
        ("[jx]wt.py", ["src/auth/jwt.py"]), ("app", ["src/app.py"]), ("*.rs", []), ("[id].tsx", ["web/[id].tsx"]),
    ],
)  # fmt: skip
def test_a_glob_without_a_folder_finds_files_in_all_folders(name: str, paths: list[str], repo: Path) -> None:
    write(repo, {"web/[id].tsx": "x\n"})
    [row] = look(repo, {"names": [name]})
    assert row["paths"] == paths and "why" not in row


@pytest.mark.behaviour("packet-look-globs")
def test_an_invalid_pattern_is_an_error_and_not_an_empty_result(repo: Path) -> None:
    rows = look(repo, {"names": ["src/[ab", "[z-a].py"], "patterns": ["nowhere(", "*.py"]})
    assert [row["why"].split("(")[0].split(",")[0].strip() for row in rows] == ["invalid glob", "invalid glob", "invalid pattern", "invalid pattern"]  # fmt: skip
    assert not any(key in row for row in rows for key in ("paths", "hits"))
