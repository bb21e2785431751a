"""Look-ups that a hostile model or a hostile project writes: nothing outside the folder is read, no secret is shown,
none hangs.
"""

from __future__ import annotations

import json
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from council.packet import lookups
from council.packet.files import is_private, match_glob
from council.packet.lookups import look
from council.protocols.common.lookups import format_results
from council.types import LookupRow
from tests.packet.conftest import write
from tests.packet.fake_secrets import SECRETS

Json = dict[str, Any]
OUTSIDE = "outside-of-the-folder"
PRIVATE = "never-material"
LINE, SECRET = SECRETS["github"]
MAX_WHY_CHARS = 400
LOOK_TIMEOUT_S = 120  # of a process that would hang without a limit


@pytest.fixture
def project(repo: Path) -> Path:
    """A project with private files, files with secrets, and links and special files that lead to them."""
    place = repo.parent / "outside"
    write(place, {"secret.txt": OUTSIDE, "inner/deep.txt": OUTSIDE})
    write(repo, {
        ".git/notes": PRIVATE, ".agents/council/x.md": PRIVATE, ".ssh/known_hosts": PRIVATE, ".env": LINE,
        "keys.txt": LINE, "docs/plain.md": "plain text\n", "ignored.log": "a log line\n", ".gitignore": "ignored.log\n",
        "sub/.git": f"gitdir: {place}\n", "sub/code.py": "x = 1\n", "big.txt": "line\n" * 90_000,
    })  # fmt: skip
    links: dict[str, Path | str] = {
        "out": place, "out.txt": place / "secret.txt", "up": "..", "git": ".git", "agents": ".agents", "ssh": ".ssh", "env": ".env",
        "docs/git": "../.git", "loop": "loop", "self": "/proc/self", "environ": "/proc/self/environ", "chain": "git", "docs/up": "../..",
    }  # fmt: skip
    for name, target in links.items():
        (repo / name).symlink_to(target)
    os.link(repo / "keys.txt", repo / "hard.txt")
    os.link(repo / ".env", repo / "settings.txt")
    os.mkfifo(repo / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(repo / "socket"))
    with suppress(PermissionError):
        os.mknod(repo / "zero", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    return repo


def check_rows(rows: list[LookupRow]) -> None:
    """Check that no row shows what it must not, and that each refusal is one line for the model."""
    shown = json.dumps(rows, ensure_ascii=False) + format_results(rows)
    for text in (OUTSIDE, PRIVATE, SECRET):
        assert text not in shown
    for row in rows:
        for why in [row.get("why", "-"), *(hit["why"] for hit in row.get("left_out", []))]:
            assert why.strip() and len(why) <= MAX_WHY_CHARS and why.isprintable(), why


REFUSED = {
    **dict.fromkeys(["../outside/secret.txt", "docs/../../outside/secret.txt", "/etc/passwd", "/proc/self/environ", "//etc/passwd"], "outside the folder"),
    **dict.fromkeys(["./././../outside/secret.txt", "up/../../outside/secret.txt", "../x: y", "../" + "a" * 900], "outside the folder"),
    **dict.fromkeys(["out/secret.txt", "out/inner/deep.txt", "up/outside/secret.txt", "self/environ", "docs/up/outside/secret.txt"], "points outside"),
    **dict.fromkeys(["out.txt", "environ", "env", "git", "loop"], "a link"),
    **dict.fromkeys([".git/notes", ".GIT/notes", "docs/../.git/notes", ".agents/council/x.md", ".Agents/council/x.md", "sub/.git"], "never included"),
    **dict.fromkeys([".git./notes", ".git /notes", ".g\u200cit/notes", "\uff0egit/notes", "git~1/notes", ".git\\notes", ".git::$DATA/notes"], "never included"),
    **dict.fromkeys(["git/notes", "chain/notes", "docs/git/notes", "agents/council/x.md"], "never included"),
    **dict.fromkeys(["ssh/known_hosts", ".env", ".ENV", "docs/../.env", ".ssh/known_hosts"], "secret file name"),
    **dict.fromkeys(["keys.txt", "hard.txt"], "secret found at"),
    **dict.fromkeys(["pipe"], "a named pipe"), **dict.fromkeys(["socket"], "a socket"), "docs": "a folder", ".": "a folder", "big.txt": "KB",
    **dict.fromkeys(["a" * 900, "a/" * 450 + "b", "nowhere", "C:\\Windows\\win.ini", "docs\\plain.md", "\\\\host\\share\\x", "a\nb", "~/x", "loop/x"], "cannot be read"),
    "docs/plain.md\0.png": "NUL", "\ud800": "not UTF-8", " ": "a path is needed", "file:///etc/passwd": "cannot be read", "..%2foutside%2fsecret.txt": "cannot be read",
}  # fmt: skip


@pytest.mark.behaviour("look-traversal")
@pytest.mark.parametrize("redact", [False, True])
def test_no_path_leads_to_private_files_or_out_of_the_folder(project: Path, redact: bool) -> None:
    for path, why in REFUSED.items():
        [row] = rows = look(project, {"files": [{"path": path}]}, redact=redact)
        check_rows(rows)
        if not redact or "secret" not in why:  # these are masked
            assert why in row.get("why", ""), (path, row)
            assert "content" not in row
    if (project / "zero").exists():
        assert look(project, {"files": ["zero"]}, redact=redact)[0]["why"] == "a device"


def test_files_that_may_be_read_are_read(project: Path) -> None:
    rows = look(project, {"files": ["docs/plain.md", "ignored.log", "sub/code.py", "docs/../docs/./plain.md"]})
    assert [row["content"] for row in rows] == ["plain text\n", "a log line\n", "x = 1\n", "plain text\n"]
    (project / "alias").symlink_to("docs")
    assert look(project, {"files": ["alias/plain.md"]})[0]["content"] == "plain text\n"


@pytest.mark.behaviour("look-traversal")
def test_names_and_patterns_show_no_private_file(project: Path) -> None:
    wanted = [
        "*",
        "**",
        ".*",
        "**/*",
        "/",
        ".",
        "..",
        "../*",
        ".git",
        "git/*",
        ".env",
        "*/../*",
        "secret",
        "[.]git/*",
        ".",
    ]
    listed = look(project, {"names": wanted[:10]}) + look(project, {"names": wanted[10:]})
    check_rows(listed)
    assert not any(is_private(path) for row in listed for path in row["paths"])
    found = look(project, {"patterns": [OUTSIDE[:9], PRIVATE[:8], SECRET[:6], ".", "line", "gitdir"]})
    assert [hit for row in found[:3] for hit in row["hits"]] == []
    check_rows(found)


# A file or a folder that is replaced between the check and the read

_swaps: list[Callable[[str], None]] = []


def _on_open(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _swaps and isinstance(args[0], str | bytes | os.PathLike):
        _swaps[0](os.fsdecode(args[0]))


sys.addaudithook(_on_open)


@contextmanager
def swap_when_opened(name: str, swap: Callable[[], None]) -> Iterator[list[str]]:
    """Replace a part of the project at the moment in which a file or a folder with this name is opened."""
    done: list[str] = []

    def run(path: str) -> None:
        if Path(path).name == name and not done:
            done.append(path)
            swap()

    _swaps.append(run)
    try:
        yield done
    finally:
        _swaps.clear()


@pytest.mark.behaviour("look-traversal")
@pytest.mark.parametrize("part", ["file", "folder", "outer folder", "pipe"])
def test_what_is_replaced_by_a_link_after_the_check_is_not_followed(project: Path, part: str) -> None:
    write(project, {"a/b/notes.txt": "fine\n"})
    write(project.parent / "outside", {"notes.txt": OUTSIDE, "b/notes.txt": OUTSIDE})
    replaced = project / {"file": "a/b/notes.txt", "folder": "a/b", "outer folder": "a", "pipe": "a/b/notes.txt"}[part]

    def swap() -> None:
        replaced.rename(project / "moved")
        if part == "pipe":
            os.mkfifo(replaced)
        else:
            target = project.parent / "outside"
            replaced.symlink_to(target / "notes.txt" if part == "file" else target)

    opened = {"folder": "b", "outer folder": "a"}.get(part, "notes.txt")
    with swap_when_opened(opened, swap) as done:
        rows = look(project, {"files": ["a/b/notes.txt"]})
    assert done
    check_rows(rows)
    assert "why" in rows[0]


# Requests that take long

SLOW_GLOBS = [
    "*a" * 14 + "*b",
    "**/" * 30 + "x",
    "**/a*/" * 60 + "b",
    "**a*" * 60 + "b",
    "*".join("a" * 90) + "*.b",
    "[!b]*" * 60 + "b",
    "a**/" * 20 + "b",
]
SLOW_PATTERNS = ["(a+)+b$", "(a|a)*b", "(?i)" + "|".join(["[\u0100-\U0010fff0]"] * 240), "(.*)*\\1x", "((a{0,60000}){0,60000}){0,60000}b", "(" * 400 + "a" + ")" * 400, "(?:a?){900}a{900}b"]  # fmt: skip
LOOK = "import sys, json; from pathlib import Path; from council.packet.lookups import look; print(json.dumps(look(Path(sys.argv[1]), json.load(sys.stdin))))"


@pytest.mark.behaviour("look-no-hang", "packet-look-pattern-time")
@pytest.mark.parametrize("count", [2, pytest.param(7, marks=pytest.mark.sweep)])
def test_globs_and_patterns_that_explode_are_answered_or_stopped(project: Path, count: int) -> None:
    deep = "/".join(["a" * 3] * 40)
    write(project, {f"{'a' * 240}": "a" * 4000, f"{deep}/{'a' * 200}": "aaaa " * 400})
    for requests in ({"names": SLOW_GLOBS[:count]}, {"patterns": SLOW_PATTERNS[:count]}):
        argv = [sys.executable, "-c", LOOK, str(project)]
        done = subprocess.run(argv, input=json.dumps(requests), capture_output=True, text=True, timeout=LOOK_TIMEOUT_S, check=True)  # fmt: skip
        rows = json.loads(done.stdout)
        check_rows(rows)
        assert len(rows) == count and all({"why", "paths", "hits"} & set(row) for row in rows)


@pytest.mark.behaviour("look-no-hang")
def test_a_pattern_is_compiled_in_the_process_that_can_be_stopped(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "GREP_TIMEOUT_S", 0)
    [row] = look(project, {"patterns": ["("]})
    assert "took longer" in row["why"]


@pytest.mark.behaviour("look-no-hang")
def test_a_search_that_did_not_read_all_files_says_so(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(repo, {f"text/{n:02}.txt": "word\n" for n in range(20)})
    monkeypatch.setattr(lookups, "MAX_SEARCHED_BYTES", 40)
    [row] = look(repo, {"patterns": ["nowhere"]})
    assert row["unread"] >= 15 and f"{row['unread']} files not searched" in format_results([row])
    monkeypatch.setattr(lookups, "MAX_LISTED_FILES", 10)
    rows = look(repo, {"names": ["word"], "patterns": ["word"]})
    assert ["too many" in row["why"] or "more than" in row["why"] for row in rows] == [True, True]
    assert "none" not in format_results(rows)


GLOBS = st.lists(st.sampled_from(["*", "**", "**/", "/", "a", "b", "?", "[ab]", "[!a]"]), max_size=8).map("".join)
NAMES = st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


def match_slowly(pattern: str, name: str) -> bool:
    """Match a glob by its definition, trying every place of every star."""
    tokens = re.findall(r"\*\*/+|\*+|\?|\[[^\]]*\]|.", pattern.removeprefix("./"))

    def match(n: int, at: int) -> bool:
        if n == len(tokens):
            return at == len(name)
        token, rest = tokens[n], name[at:]
        if token.startswith("**/"):
            ends = [at] + [at + one.end() for one in re.finditer("/", rest) if one.start() > 0]
        elif set(token) == {"*"}:
            ends = (
                list(range(at, len(name) + 1)) if len(token) > 1 else list(range(at, at + len(rest.split("/")[0]) + 1))
            )
        else:
            letter = token.replace("?", "[^/]").replace("[!", "[^")
            is_match = rest[:1] == token or (rest[:1] not in ("", "/") and re.fullmatch(letter, rest[0]))
            ends = [at + 1] if is_match else []
        return any(match(n + 1, end) for end in ends)

    return match(0, 0)


@settings(max_examples=150)
@given(GLOBS, st.lists(NAMES, min_size=4, max_size=8))
def test_a_glob_matches_as_if_all_places_of_its_stars_were_tried(pattern: str, names: list[str]) -> None:
    try:
        matched = match_glob(pattern, names)
    except re.error as error:
        assert error.msg == "too many stars" and pattern.count("**") > 3
        return
    assert matched == [name for name in names if match_slowly(pattern, name)]


# Generated requests

PARTS = ["..", ".", "", "docs", "plain.md", "out", "up", "git", ".git", ".GIT", ".g\u200bit", "notes", ".agents", "agents", "council", "x.md", "ssh", ".env",
    "env", "keys.txt", "hard.txt", "settings.txt", "pipe", "socket", "zero", "loop", "self", "environ", "etc", "passwd", "outside", "secret.txt", "sub", "*", "**", "[", "~",
    "a" * 300, "\ufe52git", "C:", "\\", "%2e%2e", "\u202e", "\ud800", "(", ".*", "$(id)", "-rf"]  # fmt: skip
PATHS = st.tuples(st.sampled_from(["", "/", "./", "../", "//", "\\"]), st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), st.sampled_from(["/", "\\", "//"]))  # fmt: skip
REQUESTS = st.fixed_dictionaries({
    kind: st.lists(PATHS.map(lambda path: path[0] + path[2].join(path[1])), max_size=2) for kind in ("files", "names", "patterns")
})  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=REQUESTS, redact=st.booleans())
def test_generated_requests_show_nothing_private(project: Path, requests: Json, redact: bool) -> None:
    check_rows(look(project, requests, redact=redact))


@pytest.mark.sweep
def test_many_generated_requests_show_nothing_private(project: Path, sweep_figures: Callable[..., None]) -> None:
    counts = {"requests": 0, "refused": 0}

    @settings(max_examples=1000, derandomize=False, suppress_health_check=list(HealthCheck), deadline=None)
    @given(requests=REQUESTS, redact=st.booleans())
    def check(requests: Json, redact: bool) -> None:
        rows = look(project, requests, redact=redact)
        check_rows(rows)
        counts["requests"] += len(rows)
        counts["refused"] += sum("why" in row for row in rows)

    check()
    sweep_figures("look-ups", shown=0, **counts)


@pytest.mark.sweep
def test_a_folder_with_a_quarter_of_a_million_files_is_answered(
    project: Path, sweep_figures: Callable[..., None]
) -> None:
    for n in range(250):
        folder = project / f"many/{n}"
        folder.mkdir(parents=True)
        for number in range(1000):
            (folder / f"{number}.txt").touch()
    rows = look(project, {"files": ["docs/plain.md"], "names": ["plain"], "patterns": ["plain"]})
    check_rows(rows)
    assert rows[0]["content"] == "plain text\n" and all("files to search" in row["why"] for row in rows[1:])
    sweep_figures("large folder", files=250_000)
