"""Choice of the search provider, and its errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from council.errors import SearchNotEnabled, UsageError, word_for
from council.search import not_enabled_message, resolve_search
from council.settings import load_settings
from tests.trusted_project import trust_project

TAVILY, BRAVE = {"TAVILY_API_KEY": "tvly-x"}, {"BRAVE_SEARCH_API_KEY": "brave-x"}


def choice(said: str | None, table: str = "", **env: str) -> str | None:
    Path("council.toml").write_text(f"[search]\n{table}\n", encoding="utf-8")
    trust_project()
    return resolve_search(said, load_settings(Path(), env), env)


@pytest.fixture(autouse=True)
def _documents(_alone: None) -> None:
    Path("docs").mkdir()
    Path("file.md").write_text("x", encoding="utf-8")


@pytest.mark.behaviour("30-search-enabled")
@pytest.mark.parametrize(
    ("said", "table", "env", "meant"),
    [
        (None, "", {}, None), (None, "", {"TAVILY_API_KEY": "  "}, None), (None, "", TAVILY, "tavily"), (None, "", BRAVE, "brave"),
        (None, "", BRAVE | TAVILY, "tavily"), (None, 'provider = "brave"', BRAVE | TAVILY, "brave"), ("brave", "", BRAVE | TAVILY, "brave"),
        (" Tavily ", "", TAVILY, "tavily"), ("brave", 'provider = "tavily"', BRAVE, "brave"),
        ("searxng:http://127.0.0.1:8080/", "", {}, "searxng:http://127.0.0.1:8080"), ("https://searx.example.org", "", {}, "searxng:https://searx.example.org"),
        ("http://x/search?q=a", "", {}, "searxng:http://x"), ("searxng", 'base_url = "http://x:8080"', {}, "searxng:http://x:8080"),
        (None, 'provider = "searxng"\nbase_url = "http://x:8080/"', TAVILY, "searxng:http://x:8080"),
        ("http://y", 'provider = "searxng"\nbase_url = "http://x:8080"', {}, "searxng:http://y"),
        ("files:docs", "", {}, "files:docs"), ("files:./docs/", "", {}, "files:docs"), ("files:.", "", {}, "files:."),
        ("files", 'folder = "docs"', {}, "files:docs"), (None, 'provider = "files"\nfolder = "docs"', TAVILY, "files:docs"),
    ],
)  # fmt: skip
def test_search_choice_is_one_word(said: str | None, table: str, env: dict[str, str], meant: str | None) -> None:
    assert choice(said, table, **env) == meant
    if meant:
        assert choice(meant, table, **env) == meant, "a plan's word means the same when a run is resumed"


@pytest.mark.behaviour("30-search-enabled")
@pytest.mark.parametrize(
    ("said", "table", "todo"),
    [
        ("tavily", "", "set TAVILY_API_KEY"), ("brave", "", "set BRAVE_SEARCH_API_KEY"), (None, 'provider = "brave"', "set BRAVE_SEARCH_API_KEY"),
        ("searxng", "", "--search searxng:http://ADDRESS"), ("files", "", "--search files:FOLDER"), ("files:", "", "--search files:FOLDER"),
        ("searxng", 'provider = "tavily"\nbase_url = "http://proxy"', "--search searxng:http://ADDRESS"),
    ],
)  # fmt: skip
def test_incomplete_search_setting_names_what_to_set(said: str | None, table: str, todo: str) -> None:
    with pytest.raises(SearchNotEnabled) as refused:
        choice(said, table)
    words = refused.value.message_for("cli")
    assert words.startswith("General Council is not enabled. ") and todo in words and "--no-search" in words
    assert refused.value.exit_code == 4 and "\n" not in words


@pytest.mark.behaviour("30-search-enabled")
def test_not_enabled_error_lists_every_option() -> None:
    assert not_enabled_message().startswith("General Council is not enabled. ") and "\n" not in not_enabled_message()
    for way in ("TAVILY_API_KEY", "BRAVE_SEARCH_API_KEY", "--search files:FOLDER", "--no-search", "SearXNG"):
        assert way in word_for(not_enabled_message(), "cli")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("tavly", 'did you mean "tavily"'), ("Bravo", 'did you mean "brave"'), ("", "is not a known search"), ("ftp://x", "is not a known search"),
        ("tavily:tvly-abcdefgh1234", "takes no value"), ("tvly-abcdefgh1234", "is not a known search"), ("searxng:nowhere", "not a valid address"),
        ("http://", "not a valid address"), ("http://[::1", "not a valid address"), ("http://x:99999", "not a valid address"), ("http://a b", "not a valid address"),
        (f"http://me:{'hunter2'}@x", "an address with a password"), ("files:nope", "no such folder"), ("files:file.md", "that is a file"),
        ("files:a\0b", "no such folder"), ("files:" + "x" * 5000, "no such folder"), ("files:~missing-user/x", "no such folder"),
    ],
)  # fmt: skip
def test_invalid_search_value_is_a_one_line_error(said: str, words: str) -> None:
    with pytest.raises(UsageError) as refused:
        choice(said, TAVILY_API_KEY="tvly-x")
    assert words in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 400
    assert "abcdefgh1234" not in str(refused.value) and "hunter2" not in str(refused.value)


LOCKED = """
import sys
from pathlib import Path
from council.errors import UsageError
from council.search import resolve_search
from council.settings import load_settings
try:
    print(resolve_search("files:papers", load_settings(Path(), {}), {}, Path()))
except UsageError as error:
    print(error)
"""
# Root may read every folder, without its capabilities only its own.
AS_USER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.getuid() == 0 else []


@pytest.mark.skipif(bool(AS_USER) and not shutil.which("setpriv"), reason="root can read every folder")
@pytest.mark.parametrize(("mode", "problem"), [(0o300, True), (0o400, True), (0o500, False)])
def test_a_folder_that_cannot_be_read_is_refused(mode: int, problem: bool) -> None:
    Path("papers").mkdir(mode=mode)
    done = subprocess.run([*AS_USER, sys.executable, "-c", LOCKED], capture_output=True, text=True, check=True)
    Path("papers").chmod(0o700)  # so that it can be removed
    assert ("the folder cannot be read, check its permissions" in done.stdout) is problem


def test_documents_may_be_outside_the_folder_and_in_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    outside = f"files:{tmp_path / 'notes'}"
    assert choice("files:../notes") == choice("files:~/notes") == choice(outside) == outside


def test_folder_is_relative_to_the_run_not_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "papers").mkdir(parents=True)
    settings = load_settings(Path(), {})
    assert resolve_search("files:papers", settings, {}, tmp_path / "elsewhere") == "files:papers"


@pytest.mark.behaviour("30-bad-search")
def test_no_suggestion_without_a_close_match_and_settings_are_not_called_flags() -> None:
    with pytest.raises(UsageError, match=r'"google" is not a known search provider: use tavily'):
        choice("google")
    with pytest.raises(UsageError, match=r'^\[search\] folder is "nowhere": no such folder'):
        choice(None, 'provider = "files"\nfolder = "nowhere"')
