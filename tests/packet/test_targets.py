"""What words mean as material."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from council.errors import UsageError
from council.packet import build, changed, select
from council.packet.trees import globbed
from council.types import Packet
from tests.packet.conftest import commit, git, write


def paths(packet: Packet) -> list[str]:
    return [file.path for file in packet.files]


def validate(target: str | Sequence[str], root: Path, **given: object) -> Packet:
    return build(target, root, task="validate", **given)  # type: ignore[arg-type]


@pytest.mark.behaviour("packet-recent")
def test_recent_is_the_last_three_commits_and_the_work_tree_with_their_diff(history: Callable[[int], Path]) -> None:
    repo = history(5)
    write(repo, {"README.md": "# Changed\n", "untracked.py": "u = 1\n"})
    packet = validate("recent", repo)
    assert paths(packet) == ["README.md", "src/step2.py", "src/step3.py", "src/step4.py"]
    assert packet.diff.count("diff --git") == 4
    assert "+# Changed" in packet.diff and packet.files[0].content == "# Changed\n"


@pytest.mark.behaviour("packet-recent")
@pytest.mark.parametrize("commits", [0, 1, 2])
def test_with_fewer_commits_recent_is_what_there_is(commits: int, history: Callable[[int], Path]) -> None:
    assert paths(validate("recent", history(commits))) == [
        "README.md", "src/app.py", "src/auth/jwt.py", *(f"src/step{n}.py" for n in range(commits)),
    ]  # fmt: skip


@pytest.mark.behaviour("packet-recent")
def test_a_shallow_clone_gives_what_it_has(history: Callable[[int], Path], tmp_path: Path) -> None:
    source = history(5)
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{source}", "shallow")
    assert paths(validate("recent", tmp_path / "shallow")) == ["src/step4.py"]
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", "shallowest")
    assert validate("recent", tmp_path / "shallowest").note == "no changes to review"


@pytest.mark.behaviour("packet-recent")
def test_recent_shows_twenty_files_and_names_the_others_as_holes(repo: Path) -> None:
    commit(repo, {f"many/f{n:02}.py": f"n = {n}\n" for n in range(25)})
    for _ in range(2):
        commit(repo, {})
    packet = validate("recent", repo)
    assert len(packet.files) == 20 and packet.diff.count("diff --git") == 20
    assert packet.holes == tuple(f"many/f{n:02}.py" for n in range(20, 25))


@pytest.mark.behaviour("packet-no-changes")
@pytest.mark.parametrize("target", ["recent", "staged", "HEAD..HEAD", ""])
def test_nothing_changed_is_said(target: str, repo: Path) -> None:
    for _ in range(4):
        commit(repo, {})
    packet = validate(target, repo)
    assert packet.empty and packet.note == "no changes to review"
    assert not changed(repo)


@pytest.mark.behaviour("packet-targets")
def test_staged_shows_the_index_and_not_the_work_tree(repo: Path) -> None:
    write(repo, {"src/app.py": "x = 2\n"})
    git(repo, "add", "-A")
    write(repo, {"src/app.py": "x = 3\n"})
    packet = validate("staged", repo)
    assert [(file.path, file.content) for file in packet.files] == [("src/app.py", "x = 2\n")]
    assert "+x = 2" in packet.diff and "x = 3" not in packet.diff


@pytest.mark.behaviour("packet-targets")
def test_staged_works_before_the_first_commit(root: Path) -> None:
    git(root, "init", "-q")
    write(root, {"a.py": "a = 1\n"})
    assert paths(validate("", root)) == ["a.py"]
    git(root, "add", "-A")
    assert paths(validate("staged", root)) == ["a.py"]
    assert paths(validate("recent", root)) == ["a.py"]


@pytest.mark.behaviour("packet-targets")
def test_a_range_shows_files_as_they_are_at_its_end(history: Callable[[int], Path]) -> None:
    repo = history(3)
    commit(repo, {"src/app.py": "x = 2\n"})
    commit(repo, {"src/app.py": "x = 3\n"})
    write(repo, {"src/app.py": "x = 4\n"})
    packet = validate("HEAD~3..HEAD~1", repo)
    assert [(file.path, file.content) for file in packet.files] == [
        ("src/app.py", "x = 2\n"),
        ("src/step2.py", "step = 2\n"),
    ]
    assert paths(validate("HEAD~1..", repo)) == ["src/app.py"]


@pytest.mark.behaviour("packet-targets")
def test_three_dots_and_base_start_where_the_branches_parted(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "topic")
    commit(repo, {"src/topic.py": "t = 1\n"})
    git(repo, "checkout", "-q", "main")
    commit(repo, {"src/main.py": "m = 1\n"})
    git(repo, "checkout", "-q", "topic")
    write(repo, {"src/new.py": "n = 1\n"})
    assert paths(validate("main...topic", repo)) == ["src/topic.py"]
    assert paths(validate("", repo, base="main")) == ["src/topic.py", "src/new.py"]
    assert paths(validate("src/topic.py", repo, base="main")) == ["src/topic.py"]
    assert validate("README.md", repo, base="main").note == "no changes to review"


@pytest.mark.behaviour("packet-targets")
def test_nothing_said_means_the_changes_of_the_work_tree(repo: Path) -> None:
    write(repo, {"src/app.py": "x = 2\n", "new/file.py": "n = 1\n"})
    (repo / "README.md").unlink()
    packet = validate("", repo)
    assert paths(packet) == ["src/app.py", "new/file.py"]
    assert "deleted file mode" in packet.diff
    assert changed(repo)


@pytest.mark.behaviour("packet-targets")
def test_a_renamed_file_is_shown_under_its_new_name(repo: Path) -> None:
    git(repo, "mv", "src/auth/jwt.py", "src/auth/token.py")
    packet = validate("staged", repo)
    assert paths(packet) == ["src/auth/token.py"]
    assert "rename from src/auth/jwt.py" in packet.diff


@pytest.mark.behaviour("packet-targets")
@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("src/app.py", ["src/app.py"]), ("src", ["src/app.py", "src/auth/jwt.py"]), ("./src/", ["src/app.py", "src/auth/jwt.py"]),
        ("src/*.py", ["src/app.py"]), ("src/**/*.py", ["src/app.py", "src/auth/jwt.py"]), ("**/jwt.*", ["src/auth/jwt.py"]),
        ("the plan in README.md, please", ["README.md"]), ("compare (src/app.py) with `README.md`.", ["src/app.py", "README.md"]),
        ("docs", []), ("src is a word here", ["src/app.py", "src/auth/jwt.py"]), (".", ["README.md", "src/app.py", "src/auth/jwt.py"]),
        ("src/app.py src/app.py", ["src/app.py"]), (["src/app.py", "README.md"], ["src/app.py", "README.md"]),
    ],
)  # fmt: skip
def test_paths_folders_and_globs_are_found_in_the_words(target: str | list[str], found: list[str], repo: Path) -> None:
    assert paths(validate(target, repo)) == found


@pytest.mark.behaviour("packet-targets")
def test_a_name_with_blanks_is_a_path_when_it_is_all_that_was_said(repo: Path) -> None:
    write(repo, {"my notes.md": "notes\n"})
    assert paths(validate("my notes.md", repo)) == ["my notes.md"]
    assert paths(validate(["my notes.md"], repo)) == ["my notes.md"]


@pytest.mark.behaviour("packet-words-match")
@pytest.mark.parametrize("task", ["validate", "brainstorm", "research"])
def test_a_word_that_is_part_of_a_path_means_that_place(task: str, repo: Path) -> None:
    packet = build("the Auth system", repo, task=task)
    assert paths(packet) == ["src/auth/jwt.py"]
    assert packet.matched == ("auth → src/auth/",)
    assert packet.as_json()["matched"] == ["auth → src/auth/"]
    assert paths(build("how the JWT works?", repo, task=task)) == ["src/auth/jwt.py"]


@pytest.mark.behaviour("packet-words-match")
def test_words_are_only_matched_where_that_was_asked_for(repo: Path) -> None:
    assert validate("the auth system", repo, match=False).empty
    assert build("the auth system", repo, task="ask").empty
    assert paths(validate("the auth system as in README.md", repo)) == ["README.md"]
    assert validate("authentication in general", repo).matched == ()


def test_a_word_that_means_too_many_places_means_none(repo: Path) -> None:
    write(repo, {f"packages/p{n}/index.js": "" for n in range(30)})
    assert validate("the index", repo).matched == ()


@pytest.mark.behaviour("packet-stdin")
def test_a_dash_is_standard_input(repo: Path) -> None:
    packet = validate("-", repo, stdin="some text\n")
    assert [(file.path, file.content) for file in packet.files] == [("stdin", "some text\n")]
    with pytest.raises(UsageError, match="nothing came from there"):
        validate("-", repo)


@pytest.mark.behaviour("packet-agents-stay-out")
@pytest.mark.parametrize(
    "target", [".", "", "recent", "HEAD~1..HEAD", ".agents/council/old.md", "**/*.md", "the council report"]
)
def test_the_councils_own_records_are_no_material(target: str, repo: Path) -> None:
    commit(repo, {".agents/council/old.md": "private finding\n", "src/app.py": "x = 2\n"})
    write(repo, {".agents/council/new.md": "private finding\n", ".agents/ao/environment.json": '{"os": "linux"}\n'})
    packet = validate(target, repo)
    assert "private finding" not in str(packet)
    assert packet.environment == '{"os": "linux"}\n'
    assert packet.dossier("validate")["council_packet"]["context"]["environment"] == '{"os": "linux"}\n'


@pytest.mark.behaviour("packet-agents-stay-out")
def test_gits_own_files_are_no_material(repo: Path) -> None:
    packet = validate(".git/config", repo)
    assert packet.empty and packet.skipped[0].why == "kept out of every packet"


@pytest.mark.behaviour("packet-outside-root")
@pytest.mark.parametrize(
    "target", ["../outside.txt", "/etc/hostname", "see ../outside.txt", "src/../../outside.txt", "../*.txt"]
)
def test_a_path_outside_the_root_is_refused(target: str, repo: Path) -> None:
    write(repo.parent, {"outside.txt": "outside\n"})
    with pytest.raises(UsageError, match=r"outside the folder|out of the folder"):
        validate(target, repo)


@pytest.mark.behaviour("packet-outside-root")
def test_a_question_may_speak_of_a_file_elsewhere_without_getting_it(repo: Path) -> None:
    assert build("what is /etc/passwd for?", repo, task="ask").empty
    assert paths(build("what does README.md say?", repo, task="ask")) == ["README.md"]


@pytest.mark.behaviour("packet-missing-target")
@pytest.mark.parametrize("target", ["src/nope.py", "nope.md", "nope/*.py", ["nope"]])
def test_a_target_that_does_not_exist_is_one_line(target: str | list[str], repo: Path) -> None:
    with pytest.raises(UsageError, match='there is no "'):
        validate(target, repo)


def test_from_a_folder_below_only_what_is_there_is_seen(repo: Path) -> None:
    commit(repo, {"src/auth/jwt.py": "changed = 1\n", "README.md": "# Changed\n"})
    for _ in range(2):
        commit(repo, {})
    packet = validate("recent", repo / "src")
    assert paths(packet) == ["auth/jwt.py"]
    assert "README" not in packet.diff


def test_odd_names_are_carried_through(repo: Path) -> None:
    names = ["ünï cödé.py", "-rf.py", "tab\there.py", 'quo"te.py', "new\nline.py", ":(glob)x.py"]
    commit(repo, dict.fromkeys(names, "x = 1\n"))
    commit(repo, dict.fromkeys(names, "x = 2\n"))
    packet = validate("HEAD~1..HEAD", repo)
    assert sorted(paths(packet)) == sorted(names)
    assert packet.diff.count("+x = 2") == len(names)


def test_a_merge_in_conflict_can_be_looked_at(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "topic")
    commit(repo, {"src/app.py": "x = 2\n"})
    git(repo, "checkout", "-q", "main")
    commit(repo, {"src/app.py": "x = 3\n"})
    with pytest.raises(Exception, match="exit status 1"):
        git(repo, "merge", "-q", "topic")
    packet = validate("", repo)
    assert paths(packet) == ["src/app.py"]
    assert "<<<<<<<" in packet.files[0].content


def test_a_selection_can_be_made_first_and_packed_later(repo: Path) -> None:
    chosen = select("the auth system", repo, task="validate")
    assert chosen.matched and not chosen.empty
    assert build(chosen, repo, task="validate") == validate("the auth system", repo)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("*.py", ["a.py"]), ("**/*.py", ["a.py", "s/b.py", "s/d/c.py"]), ("s/**", ["s/b.py", "s/d/c.py"]), ("s/?.py", ["s/b.py"]),
     ("[ab].py", ["a.py"]), ("[!b].py", ["a.py"]), ("s/[", []), ("*/*/*.py", ["s/d/c.py"])],
)  # fmt: skip
def test_a_star_stays_in_its_folder_and_two_do_not(pattern: str, found: list[str]) -> None:
    assert globbed(pattern, ["a.py", "s/b.py", "s/d/c.py"]) == found
