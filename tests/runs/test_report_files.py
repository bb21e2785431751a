"""Report files."""

from __future__ import annotations

import os
import re
import resource
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council import events as ev
from council.errors import StoreError
from council.protocols import Protocol
from council.runs import report_files
from council.runs.report_files import (
    MAX_SLUG_CHARS,
    choose_report_dir,
    is_unwritten,
    open_report_folder,
    redact_event,
    reserve_report_path,
    slugify,
    write_atomically,
)
from council.store.interface import Record

NOON = 1_800_000_000.0


@pytest.mark.behaviour("13-names-latin")
@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Tabs or spaces?", "tabs-or-spaces"), ("  Über  Köln!! ", "ueber-koeln"), ("../../etc/passwd", "etc-passwd"),
        ("Straße nach Łódź", "strasse-nach-lodz"), ("Smørrebrød på Færøerne", "smorrebrod-pa-faeroerne"),
        ("Qu'est-ce que l'œuvre?", "qu-est-ce-que-l-oeuvre"), ("I\u0307stanbul'da ılık", "istanbul-da-ilik"),
        ("Что выбрать: съёмный щит?", "chto-vybrat-semnyy-shchit"), ("Чи варто їхати до Києва?", "chi-varto-yikhati-do-kiyeva"),
        ("Ποια βάση δεδομένων;", "poia-vasi-dedomenon"), ("한국어 질문", "hangugeo-jilmun"), ("データベースの API", "detabesuno-api"),
        ("u\u0308ber ＡＰＩ ﬁx", "ueber-api-fix"), ("日本語 Redis?", "redis"), ("👍", "question"), ("؟", "question"),
        ("日本語", "question"), ("", "question"), ("a" * 100, "a" * MAX_SLUG_CHARS), ("REST/gRPC v2.0", "rest-grpc-v2-0"),
    ],
)  # fmt: skip
def test_a_slug_is_made_of_plain_words(text: str, made: str) -> None:
    assert slugify(text) == made


SECRET = "-".join(["sk", "ant", "api03", "a1B2" * 12])
TEXT = f"Use {SECRET} here."


@pytest.mark.behaviour("issue-3-report-scrubbed", "packet-asked-masked")
@pytest.mark.parametrize(
    "event",
    [
        ev.Asked(
            "k", "p", "alpha", "m:x", [{"role": "system", "content": "Plain."}, {"role": "user", "content": TEXT}]
        ),
        ev.Stated("k", "p", "alpha", "ok", TEXT, None, "m:x", {}, 1, 0.5),
        ev.Stated("k", "p", "alpha", "ok", "Fine.", {"claims": [{"text": TEXT}]}, "m:x", {}, 1, 0.5),
        ev.Stated("k", "p", "alpha", "ok", "Fine.", None, "m:x", {}, 1, 0.5, [TEXT], [TEXT], [TEXT], [TEXT]),
        ev.WasAbsent("k", "p", "alpha", "refused", TEXT),
        ev.Faulted("k", "alpha", 1, "m:x", "server", TEXT),
        ev.Noted(TEXT, "why"),
        ev.Noted("what", TEXT),
        ev.LookedUp("k", "p", TEXT, 1),
        ev.Closed("complete", {"answer": TEXT, "findings": ({"text": TEXT},)}, {}),
        ev.Closed("failed", {}, {}, reason=TEXT),
    ],
)
def test_a_secret_in_the_text_of_a_model_is_masked_in_its_event(event: ev.Event) -> None:
    masked = redact_event(event)
    assert type(masked) is type(event) and SECRET in str(event)
    assert SECRET not in str(masked) and "[redacted:" in str(masked)


def test_an_event_without_a_secret_stays_the_same() -> None:
    event = ev.Stated("k", "p", "alpha", "ok", "Tabs.", {"ok": [1]}, "m:x", {"in": 1}, 1, 0.5)
    assert redact_event(event) is event


def test_a_long_slug_is_cut_at_a_word() -> None:
    made = slugify("one two three four five six seven eight nine ten eleven twelve thirteen")
    assert len(made) <= MAX_SLUG_CHARS
    assert made.split("-")[-1] == "eleven"


@given(st.text())
def test_a_slug_is_always_a_safe_name(text: str) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slugify(text))
    assert len(slugify(text)) <= MAX_SLUG_CHARS


@pytest.mark.behaviour("00-gitignore")
def test_folder_gets_a_gitignore_and_an_existing_one_is_kept(tmp_path: Path) -> None:
    folder = open_report_folder(tmp_path, ".agents/council")
    assert (folder, (folder / ".gitignore").read_text()) == (tmp_path / ".agents/council", "*\n")
    (folder / ".gitignore").write_text("!keep\n")
    open_report_folder(tmp_path, ".agents/council")
    assert (folder / ".gitignore").read_text() == "!keep\n"
    assert [path.name for path in folder.iterdir()] == [".gitignore"]


@pytest.mark.behaviour("13-report-places")
@pytest.mark.parametrize(
    ("in_project", "task", "report_dir", "place"),
    [
        (True, "validate", None, ".agents/council"), (True, "research", None, ".agents/council"), (True, "ask", None, "DATA/reports"),
        (False, "ask", None, "DATA/reports"), (True, "validate", "mine", "mine"), (False, "ask", "mine", "mine"),
        (False, "ask", "/srv/reports", "/srv/reports"), (False, "ask", "~/reports", "HOME/reports"),
    ],
)  # fmt: skip
def test_the_report_folder_is_the_configured_one_or_depends_on_the_protocol(
    tmp_path: Path, in_project: bool, task: str, report_dir: str | None, place: str
) -> None:
    protocol = Protocol("any", "any:any", reports_in_project=in_project)
    wanted = place.replace("DATA", str(tmp_path)).replace("HOME", str(Path.home()))
    assert choose_report_dir(protocol, task, report_dir, tmp_path) == wanted


def test_a_configured_folder_gets_no_gitignore_and_may_be_outside_through_links(tmp_path: Path) -> None:
    work, real = tmp_path / "project", tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real, target_is_directory=True)
    for name in ("mine", str(tmp_path / "link" / "reports")):
        assert list(open_report_folder(work, name).iterdir()) == []


@pytest.mark.parametrize("link", [".agents", ".agents/council"])
def test_reports_are_not_written_through_links(tmp_path: Path, link: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / link).parent.mkdir(exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(StoreError, match="is a link, and reports are not written through links"):
        open_report_folder(tmp_path, ".agents/council")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_file_in_place_of_the_folder_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / ".agents").write_text("in the way")
    with pytest.raises(StoreError, match=r'the report folder ".*" cannot be written \(.*\): make it writable'):
        open_report_folder(tmp_path, ".agents/council")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_found_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="make it writable"):
        open_report_folder(tmp_path, "reports")


def test_taken_name_gets_a_number(tmp_path: Path) -> None:
    names = [reserve_report_path(tmp_path, "collaborative", "Tabs or spaces?", NOON, f"r{n}").name for n in range(3)]
    stem = re.sub(r"\.md$", "", names[0])
    assert re.fullmatch(r"2027-01-1\d-collaborative-tabs-or-spaces", stem)
    assert names[1:] == [f"{stem}-2.md", f"{stem}-3.md"]


def test_crashed_run_finds_its_reserved_path(tmp_path: Path) -> None:
    first = reserve_report_path(tmp_path, "triad", "q", NOON, "r1")
    assert reserve_report_path(tmp_path, "triad", "q", NOON, "r1") == first
    assert is_unwritten(first, "r1")
    write_atomically(first, "The report.")
    assert not is_unwritten(first, "r1")
    assert reserve_report_path(tmp_path, "triad", "q", NOON, "r1") != first


def test_a_dangling_link_under_the_name_is_not_followed(tmp_path: Path) -> None:
    first = reserve_report_path(tmp_path, "triad", "q", NOON, "r1")
    first.unlink()
    first.symlink_to(tmp_path / "outside")
    second = reserve_report_path(tmp_path, "triad", "q", NOON, "r1")
    assert second != first
    assert not (tmp_path / "outside").exists()


@pytest.mark.behaviour("40-files-at-rest")
def test_report_is_complete_private_and_leaves_no_temp_file(tmp_path: Path) -> None:
    path = reserve_report_path(tmp_path, "triad", "q", NOON, "r1")
    write_atomically(path, "Café.\n")
    assert path.read_text(encoding="utf-8") == "Café.\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == [path.name]


def test_failed_write_keeps_the_old_report_and_leaves_no_temp_file(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == ["report.md"]


# A crash while a path is reserved


def reserve_in_child(folder: Path, prepare: Callable[[], object]) -> int:
    """Reserve a path in another process after `prepare`; return its wait status."""
    if (pid := os.fork()) == 0:
        try:
            prepare()
            reserve_report_path(folder, "triad", "q", NOON, "r1")
        except StoreError:
            os._exit(3)
        os._exit(0)
    return os.waitpid(pid, 0)[1]


def kill_at_link(*, after: bool) -> None:
    """Kill this process when it has created the file of a reserved path, or before that."""
    link = os.link

    def die(*paths: Any, **how: Any) -> None:
        if after:
            link(*paths, **how)
        os.kill(os.getpid(), signal.SIGKILL)

    os.link = die


@pytest.mark.behaviour("40-report-name-after-a-crash")
@pytest.mark.parametrize("after", [False, True])
def test_a_process_killed_while_it_reserves_a_path_leaves_the_name_to_its_run(tmp_path: Path, after: bool) -> None:
    status = reserve_in_child(tmp_path, lambda: kill_at_link(after=after))
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert all(path.stat().st_size for path in tmp_path.iterdir() if path.is_file())  # no empty file
    path = reserve_report_path(tmp_path, "triad", "q", NOON, "r1")
    assert path.name.endswith("-triad-q.md")
    assert [found.name for found in tmp_path.iterdir() if found.is_file()] == [path.name]


@pytest.mark.behaviour("40-report-name-after-a-crash")
def test_a_full_disk_leaves_no_empty_file(tmp_path: Path) -> None:
    status = reserve_in_child(tmp_path, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert os.waitstatus_to_exitcode(status) == 3
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


def test_a_number_is_found_in_few_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reserve_report_path(tmp_path, "triad", "q", NOON, "r0")
    for n in range(2, 2001):
        (tmp_path / first.name.replace(".md", f"-{n}.md")).touch()
    looks: list[object] = []
    exists = os.path.lexists

    def look(path: Path) -> bool:
        looks.append(path)
        return exists(path)

    monkeypatch.setattr(os.path, "lexists", look)
    path = reserve_report_path(tmp_path, "triad", "q", NOON, "r1", may_have_one=False)
    assert path.name == first.name.replace(".md", "-2001.md")
    assert len(looks) < 30


@pytest.mark.behaviour("16-fencing")
@pytest.mark.parametrize(("stored", "stays"), [("other.md", False), ("", True), ("own", True)])
def test_a_replaced_process_removes_its_files_unless_the_run_uses_them(
    tmp_path: Path, stored: str, stays: bool
) -> None:
    record = Record("r2345", "a run", str(tmp_path), 1.0, "seed", {})
    folder = tmp_path / "reports"
    folder.mkdir()
    path = report_files.reserve_report_path(folder, "triad", "Why?", 1.0, record.run)
    report_files.write_draft(path, ["# Why?"])
    files = sorted(folder.iterdir())
    paths = {"own": [path], "": []}.get(stored, [folder / stored])
    report_files.discard_drafts(record, [str(path)], paths)
    assert sorted(folder.iterdir()) == (files if stays else [])


@pytest.mark.behaviour("16-fencing")
def test_a_replaced_process_removes_its_draft_of_a_report_that_is_written(tmp_path: Path) -> None:
    record = Record("r2345", "a run", str(tmp_path), 1.0, "seed", {})
    path = report_files.reserve_report_path(tmp_path, "triad", "Why?", 1.0, record.run)
    report_files.write_atomically(path, "# Why?")
    report_files.write_draft(path, ["# Another"])
    report_files.discard_drafts(record, [str(path)], [path])
    assert (path.read_text(), list(tmp_path.glob(".*"))) == ("# Why?", [])
