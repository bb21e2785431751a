"""Selection of material by the words of a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from council.engine.prompting import build_dossier
from council.errors import PacketRefused, UsageError
from council.packet import build
from council.packet.files import match_glob
from council.packet.targets import has_changes, select
from council.planning.plan_object import make_packet_receipt
from council.types import DossierContext, Packet, Question, Seat
from tests.packet.conftest import commit, git, write


def context_of(packet: Packet, task: str = "validate") -> DossierContext:
    return build_dossier(packet, Question("", task), Seat("judge-1"))["council_packet"]["context"]


def paths(packet: Packet) -> list[str]:
    return [file.path for file in packet.files]


def validate(target: str | Sequence[str], root: Path, **given: object) -> Packet:
    return build(target, root, task="validate", **given)  # type: ignore[arg-type]


@pytest.mark.behaviour("packet-recent")
def test_recent_is_the_last_three_commits_and_the_work_tree_with_their_diff(history: Callable[[int], Path]) -> None:
    repo = history(5)
    write(repo, {"README.md": "# Changed\n", "untracked.py": "u = 1\n"})
    packet = validate("recent", repo)
    assert paths(packet) == ["README.md", "src/step2.py", "src/step3.py", "src/step4.py", "untracked.py"]
    assert packet.diff.count("diff --git") == 5
    assert [line.split(" ", 1)[1] for line in packet.commits] == ["change"] * 3
    assert "+# Changed" in packet.diff and packet.files[0].content == "# Changed\n"


@pytest.mark.behaviour("packet-recent")
@pytest.mark.parametrize("commits", [0, 1, 2])
def test_recent_with_fewer_commits_shows_all_of_them(commits: int, history: Callable[[int], Path]) -> None:
    assert paths(validate("recent", history(commits))) == [
        "README.md", "src/app.py", "src/auth/jwt.py", *(f"src/step{n}.py" for n in range(commits)),
    ]  # fmt: skip


@pytest.mark.behaviour("packet-recent")
def test_recent_works_in_a_shallow_clone(history: Callable[[int], Path], tmp_path: Path) -> None:
    source = history(5)
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{source}", "shallow")
    assert paths(validate("recent", tmp_path / "shallow")) == ["src/step4.py"]
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{source}", "shallowest")
    packet = validate("recent", tmp_path / "shallowest")
    assert paths(packet) == ["README.md", "src/app.py", "src/auth/jwt.py", *(f"src/step{n}.py" for n in range(5))]
    assert packet.note == "" and packet.diff.count("new file mode") == 8


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
def test_no_changes_is_reported(target: str, repo: Path) -> None:
    for _ in range(4):
        commit(repo, {})
    packet = validate(target, repo)
    assert packet.empty and packet.note == "no changes to review"
    assert not has_changes(repo)


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
def test_three_dots_and_base_start_at_the_merge_base(repo: Path) -> None:
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
def test_empty_target_is_the_changes_of_the_work_tree(repo: Path) -> None:
    write(repo, {"src/app.py": "x = 2\n", "new/file.py": "n = 1\n"})
    (repo / "README.md").unlink()
    packet = validate("", repo)
    assert paths(packet) == ["src/app.py", "new/file.py"]
    assert "deleted file mode" in packet.diff
    assert has_changes(repo)


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
        ("src is a word here", ["src/app.py", "src/auth/jwt.py"]), (".", ["README.md", "src/app.py", "src/auth/jwt.py"]),
        ("src/app.py src/app.py", ["src/app.py"]), (["src/app.py", "README.md"], ["src/app.py", "README.md"]),
    ],
)  # fmt: skip
def test_paths_folders_and_globs_are_found_in_the_words(target: str | list[str], found: list[str], repo: Path) -> None:
    assert paths(validate(target, repo)) == found


@pytest.mark.behaviour("packet-targets")
def test_name_with_spaces_is_a_path_if_it_is_the_whole_target(repo: Path) -> None:
    write(repo, {"my notes.md": "notes\n"})
    assert paths(validate("my notes.md", repo)) == ["my notes.md"]
    assert paths(validate(["my notes.md"], repo)) == ["my notes.md"]
    assert paths(validate("src/app.py my notes.md", repo)) == ["src/app.py", "my notes.md"]


@pytest.mark.behaviour("packet-words-match")
@pytest.mark.parametrize("task", ["validate", "brainstorm", "research"])
def test_word_that_is_part_of_a_path_selects_that_path(task: str, repo: Path) -> None:
    packet = build("the Auth system", repo, task=task)
    assert paths(packet) == ["src/auth/jwt.py"]
    assert packet.matched == ("auth → src/auth/",)
    assert make_packet_receipt(packet)["matched"] == ["auth → src/auth/"]
    assert paths(build("how the JWT works?", repo, task=task)) == ["src/auth/jwt.py"]


@pytest.mark.behaviour("packet-words-match")
def test_words_are_matched_only_on_request(repo: Path) -> None:
    assert validate("the auth system", repo, match=False).matched == ()
    assert build("the auth system", repo, task="ask").empty
    assert paths(validate("the auth system as in README.md", repo)) == ["README.md"]
    assert validate("authentication in general", repo).matched == ()


def test_word_with_too_many_matches_is_ignored(repo: Path) -> None:
    write(repo, {f"packages/p{n}/index.js": "" for n in range(30)})
    assert validate("the index", repo).matched == ()


@pytest.mark.behaviour("packet-stdin")
def test_a_dash_is_standard_input(repo: Path) -> None:
    packet = validate("-", repo, stdin="some text\n")
    assert [(file.path, file.content) for file in packet.files] == [("stdin", "some text\n")]
    with pytest.raises(UsageError, match="nothing was piped in"):
        validate("-", repo)


@pytest.mark.behaviour("packet-stdin")
@pytest.mark.parametrize("given", ["", " \n\t\n"])
def test_empty_standard_input_is_nothing_to_review(given: str, repo: Path) -> None:
    packet = validate("-", repo, stdin=given)
    assert packet.empty and packet.note == "standard input is empty" and packet.holes == ()
    beside = validate("src/app.py -", repo, stdin=given)
    assert paths(beside) == ["src/app.py"] and beside.note == ""
    assert [(item.path, item.why) for item in beside.skipped] == [("stdin", "empty")]


@pytest.mark.behaviour("packet-stdin")
@pytest.mark.parametrize("raw", [b"\x7fELF\0\0\1", b"\x1f\x8b\x08\xff\xfe\x01\x02\x93"])
def test_binary_standard_input_is_not_sent(raw: bytes, repo: Path) -> None:
    with pytest.raises(UsageError, match="standard input is binary, nothing was sent: pipe text"):
        validate("-", repo, stdin=raw.decode("utf-8", "surrogateescape"))


@pytest.mark.behaviour("packet-stdin")
def test_standard_input_that_is_not_utf_8_is_read_and_reported(repo: Path) -> None:
    packet = validate("-", repo, stdin=b"caf\xe9\n".decode("utf-8", "surrogateescape"))
    assert packet.files[0].content == "café\n"
    assert packet.remarks == ("stdin is not UTF-8 and was read as Windows-1252",)


@pytest.mark.behaviour("packet-agents-stay-out")
@pytest.mark.parametrize(
    "target", [".", "", "recent", "HEAD~1..HEAD", ".agents/council/old.md", "**/*.md", "the council report"]
)
def test_council_records_are_never_included(target: str, repo: Path) -> None:
    commit(repo, {".agents/council/old.md": "private finding\n", "src/app.py": "x = 2\n"})
    write(repo, {".agents/council/new.md": "private finding\n", ".agents/ao/environment.json": '{"os": "linux"}\n'})
    packet = validate(target, repo)
    assert "private finding" not in str(packet)
    assert packet.environment == '{"os": "linux"}\n'
    assert context_of(packet)["environment"] == '{"os": "linux"}\n'


@pytest.mark.behaviour("packet-agents-stay-out")
def test_git_files_are_never_included(repo: Path) -> None:
    packet = validate(".git/config", repo)
    assert packet.empty and packet.skipped[0].why == "never included in a packet"


@pytest.mark.behaviour("packet-outside-root")
@pytest.mark.parametrize(
    "target", ["../outside.txt", "/etc/hostname", "see ../outside.txt", "src/../../outside.txt", "../*.txt"]
)
def test_path_outside_the_root_is_rejected(target: str, repo: Path) -> None:
    write(repo.parent, {"outside.txt": "outside\n"})
    with pytest.raises(UsageError, match=r"outside the folder"):
        validate(target, repo)


@pytest.mark.behaviour("packet-outside-root")
def test_question_can_mention_an_outside_file_without_including_it(repo: Path) -> None:
    assert build("what is /etc/passwd for?", repo, task="ask").empty
    assert paths(build("what does README.md say?", repo, task="ask")) == ["README.md"]


@pytest.mark.behaviour("packet-missing-target")
@pytest.mark.parametrize("target", ["src/nope.py", "nope.md", "nope/*.py", ["nope"]])
def test_missing_target_is_a_one_line_error(target: str | list[str], repo: Path) -> None:
    with pytest.raises(UsageError, match='there is no "'):
        validate(target, repo)


@pytest.mark.behaviour("packet-missing-target")
@pytest.mark.parametrize(
    ("target", "missing"),
    [
        ("src/app.py nosuch.py", "nosuch.py"), ("nosuch.py src/app.py", "nosuch.py"), ("README.md src/nope/", "src/nope/"),
        ("README.md src/nope", "src/nope"), ("README.md nope/*.py", "nope/*.py"), ("src/app.py *.rs", "*.rs"),
        ("compare src/app.py with `core.py`, please", "core.py"), ("nosuch.py other.py", "nosuch.py"), ("README.md ./x", "./x"),
    ],
)  # fmt: skip
def test_missing_path_among_others_is_a_one_line_error(target: str, missing: str, repo: Path) -> None:
    with pytest.raises(UsageError) as error:
        validate(target, repo)
    assert f'there is no "{missing}" here' in str(error.value) and "\n" not in str(error.value)


@pytest.mark.behaviour("packet-missing-target")
def test_missing_paths_in_the_full_text_are_reported(repo: Path) -> None:
    with pytest.raises(UsageError, match=r'there is no "nosuch\.py" here'):
        validate("src/app.py", repo, full_text="src/app.py nosuch.py")
    assert paths(validate("src/app.py", repo, full_text="the read/write path of src/app.py, please")) == ["src/app.py"]
    packet = build("src/app.py", repo, task="research", full_text="split src/app.py into core.py")
    assert packet.target == "src/app.py" and [item.path for item in packet.skipped] == ["core.py"]


@pytest.mark.behaviour("packet-missing-target")
@pytest.mark.parametrize("task", ["brainstorm", "research", "ask"])
def test_mentioned_missing_path_is_skipped_with_a_reason(task: str, repo: Path) -> None:
    packet = build("split src/app.py into core.py and src/cli/", repo, task=task)
    assert paths(packet) == ["src/app.py"]
    assert [(item.path, item.hole) for item in packet.skipped] == [("core.py", False), ("src/cli/", False)]


@pytest.mark.parametrize(
    "words",
    ["the read/write path of src/app.py", "src/app.py and/or README.md", "Node.js and HTTP/2 beside src/app.py", "src/app.py: is it right?",
     "src/app.py, see https://example.org/a.html", "src/app.py e.g. x.y.z and a[i].b", "**Bold.** src/app.py", "src/app.py costs 5$/month"],
)  # fmt: skip
def test_words_with_slashes_and_dots_are_still_words(words: str, repo: Path) -> None:
    packet = validate(words, repo)
    assert "src/app.py" in paths(packet) and packet.skipped == ()


@pytest.mark.behaviour("packet-missing-target")
def test_future_file_can_be_mentioned_and_is_a_hole(repo: Path) -> None:
    assert validate("our plan to write docs.md for the auth system", repo).holes == ("docs.md",)


@pytest.mark.behaviour("packet-missing-target")
def test_path_with_a_base_must_exist_now_or_at_the_base(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "topic")
    git(repo, "rm", "-q", "README.md")
    commit(repo, {"src/app.py": "x = 2\n"})
    packet = validate("README.md", repo, base="main")
    assert paths(packet) == [] and "deleted file mode" in packet.diff and "x = 2" not in packet.diff
    with pytest.raises(UsageError, match=r'there is no "nosuch\.py" here'):
        validate("src/app.py nosuch.py", repo, base="main")


@pytest.mark.behaviour("packet-targets")
@pytest.mark.parametrize(
    ("target", "base"), [("recent", None), ("staged", None), ("", None), ("", "HEAD"), ("HEAD~3..HEAD", None)]
)
def test_changes_outside_a_subfolder_are_out_of_scope(target: str, base: str | None, repo: Path) -> None:
    for n in range(3):
        commit(repo, {"src/auth/jwt.py": f"changed = {n}\n", "README.md": f"# Changed {n}\n", "uv.lock": f"{n}\n"})
    if ".." not in target:
        write(repo, {"src/auth/jwt.py": "changed = 9\n", "README.md": "# Changed\n", "uv.lock": "9\n"})
        git(repo, "add", "-A")
    packet = validate(target, repo / "src", base=base)
    assert paths(packet) == ["auth/jwt.py"]
    assert "README" not in packet.diff
    assert packet.holes == () and packet.skipped == ()
    assert packet.remarks == ("2 changed files outside this folder: not part of the review",)


@pytest.mark.behaviour("packet-targets")
def test_new_files_outside_a_subfolder_are_no_changes_here(repo: Path) -> None:
    write(repo, {"other/new.py": "n = 1\n", ".agents/council/x.md": "private\n"})
    packet = validate("", repo / "src")
    assert packet.empty and packet.holes == () and packet.note == "no changes to review"
    assert packet.remarks == ("1 changed file outside this folder: not part of the review",)


@pytest.mark.behaviour("packet-targets")
def test_single_revision_selects_the_changes_since(history: Callable[[int], Path]) -> None:
    repo = history(3)
    git(repo, "branch", "topic", "HEAD~2")
    write(repo, {"new.py": "n = 1\n"})
    packet = validate("HEAD~1", repo)
    assert paths(packet) == ["src/step2.py", "new.py"]
    assert packet.matched == ("HEAD~1 → changes since HEAD~1",)
    assert paths(validate("topic", repo)) == ["src/step1.py", "src/step2.py", "new.py"]
    assert paths(validate(git(repo, "rev-parse", "--short", "HEAD~1").strip(), repo)) == ["src/step2.py", "new.py"]
    assert "step" not in validate("the topic", repo).diff
    assert build("topic", repo, task="research").diff == ""
    write(repo, {"topic": "a file\n"})
    assert paths(validate("topic", repo)) == ["topic"]


@pytest.mark.parametrize("target", ["src/app.py:2", "src/app.py:2:7", "src/app.py:2-9", "see src/app.py:1."])
def test_a_line_of_a_file_names_the_file(target: str, repo: Path) -> None:
    assert paths(validate(target, repo)) == ["src/app.py"]


def test_recent_and_staged_together_are_a_one_line_error(repo: Path) -> None:
    with pytest.raises(UsageError, match='"recent" or "staged"') as error:
        validate("recent staged", repo)
    assert "\n" not in str(error.value)


def test_unusual_file_names_are_preserved(repo: Path) -> None:
    names = ["ünï cödé.py", "-rf.py", "tab\there.py", 'quo"te.py', "new\nline.py", ":(glob)x.py"]
    commit(repo, dict.fromkeys(names, "x = 1\n"))
    commit(repo, dict.fromkeys(names, "x = 2\n"))
    packet = validate("HEAD~1..HEAD", repo)
    assert sorted(paths(packet)) == sorted(names)
    assert packet.diff.count("+x = 2") == len(names)


def test_merge_conflict_can_be_reviewed(repo: Path) -> None:
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
     ("[ab].py", ["a.py"]), ("[!b].py", ["a.py"]), ("s/[", []),
     ("s**/c.py", ["s/d/c.py"]), ("s**", ["s/b.py", "s/d/c.py"]), ("s/**c.py", ["s/d/c.py"]), ("**/s", []), ("[^b].py", ["a.py"]), ("*/*/*.py", ["s/d/c.py"])],
)  # fmt: skip
def test_single_star_stays_in_its_folder_and_double_star_does_not(pattern: str, found: list[str]) -> None:
    assert match_glob(pattern, ["a.py", "s/b.py", "s/d/c.py"]) == found


# New files, submodules, and reviews without material


@pytest.mark.behaviour("packet-added-once")
@pytest.mark.parametrize("target", ["recent", "staged", "", "HEAD~1..HEAD"])
def test_a_new_file_is_sent_once_and_listed_in_the_diff(target: str, repo: Path) -> None:
    if target == "HEAD~1..HEAD":
        commit(repo, {"src/new.py": "fresh = 1\n"})
    else:
        for _ in range(3):
            commit(repo, {})
        write(repo, {"src/new.py": "fresh = 1\n"})
    if target == "staged":
        git(repo, "add", "-A")
    packet = validate(target, repo)
    assert paths(packet) == ["src/new.py"]
    assert packet.diff == "diff --git a/src/new.py b/src/new.py\nnew file mode 100644\n"
    assert str(context_of(packet)).count("fresh = 1") == 1


@pytest.mark.behaviour("packet-added-once")
def test_a_new_file_that_is_left_out_is_not_listed_in_the_diff(repo: Path) -> None:
    write(repo, {"big.py": "x = 1\n" * 50_000, "src/new.py": "n = 1\n"})
    packet = validate("", repo)
    assert packet.holes == ("big.py",) and "big.py" not in packet.diff


@pytest.mark.behaviour("packet-untracked")
def test_untracked_files_count_within_the_limit_of_recent(repo: Path) -> None:
    write(repo, {f"many/f{n:02}.py": f"n = {n}\n" for n in range(25)})
    packet = validate("recent", repo)
    assert len(packet.files) == 20
    assert packet.holes == tuple(f"many/f{n:02}.py" for n in range(17, 25))


@pytest.mark.behaviour("packet-untracked")
@pytest.mark.parametrize("target", ["", "recent", "the payments module"])
def test_the_files_of_a_repository_without_commits_are_its_changes(target: str, root: Path) -> None:
    git(root, "init", "-q")
    write(root, {"a.py": "a = 1\n", "b.py": "b = 1\n"})
    git(root, "add", "a.py")
    packet = validate(target, root)
    assert sorted(paths(packet)) == ["a.py", "b.py"]
    assert packet.commits == () and packet.note == ""


@pytest.fixture
def with_submodule(repo: Path, tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "inner")
    commit(tmp_path / "inner", {"a.py": "a = 1\n"})
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "inner"), "libs/inner")
    for _ in range(4):
        commit(repo, {})
    return repo


@pytest.mark.behaviour("packet-submodules")
@pytest.mark.parametrize("target", ["", "recent", "staged", "HEAD~1..HEAD", "the payments module"])
def test_a_submodule_bump_is_shown_as_a_submodule_change(target: str, with_submodule: Path) -> None:
    inner = with_submodule / "libs" / "inner"
    before = git(inner, "rev-parse", "HEAD").strip()
    commit(inner, {"a.py": "a = 2\n"})
    after = git(inner, "rev-parse", "HEAD").strip()
    if target == "staged":
        git(with_submodule, "add", "libs/inner")
    if ".." in target:
        commit(with_submodule, {}, "Bump inner")
        assert [line.split(" ", 1)[1] for line in validate(target, with_submodule).commits] == ["Bump inner"]
    packet = validate(target, with_submodule)
    assert f"-Subproject commit {before}\n+Subproject commit {after}" in packet.diff
    assert "libs/inner is a submodule: only its commit is shown" in packet.remarks
    assert packet.note == "" and packet.refusal == "" and packet.holes == () and packet.files == ()


@pytest.mark.behaviour("packet-submodules")
def test_a_submodule_bump_beside_other_changes_is_kept(with_submodule: Path) -> None:
    commit(with_submodule / "libs" / "inner", {"a.py": "a = 2\n"})
    write(with_submodule, {"src/app.py": "x = 2\n"})
    packet = validate("", with_submodule)
    assert paths(packet) == ["src/app.py"]
    assert "Subproject commit" in packet.diff and "+x = 2" in packet.diff


@pytest.mark.behaviour("packet-submodules")
def test_the_folder_of_a_submodule_shows_its_files(with_submodule: Path) -> None:
    assert paths(validate("libs/inner", with_submodule)) == ["libs/inner/a.py"]


@pytest.mark.behaviour("packet-nothing-to-show")
def test_words_that_match_nothing_review_the_work_tree_and_then_recent(repo: Path) -> None:
    instead = 'no file here matches "the payments module": reviewing '
    packet = validate("the payments module", repo)
    assert packet.remarks == (f"{instead}the recent changes",) and len(packet.files) == 3
    write(repo, {"src/app.py": "x = 2\n"})
    packet = validate("the payments module", repo)
    assert packet.remarks == (f"{instead}the changes in the work tree",) and paths(packet) == ["src/app.py"]
    assert build("the payments module", repo, task="research").empty
    assert build("the payments module", repo, task="ask").empty


@pytest.mark.behaviour("packet-nothing-to-show")
def test_a_review_of_nothing_cannot_start_and_says_what_was_looked_for(repo: Path, tmp_path: Path) -> None:
    for _ in range(4):
        commit(repo, {})
    looked_for = 'nothing to review: no file here matches "the payments module", and '
    assert validate("the payments module", repo).refusal.startswith(f"{looked_for}there are no changes")
    plain = tmp_path / "plain"
    plain.mkdir()
    assert validate("the payments module", plain).refusal.startswith(f"{looked_for}this folder is not in a git")
    assert validate("the payments module", plain, stdin="text").refusal == ""
    assert build("the payments module", plain, task="brainstorm").refusal == ""


@pytest.mark.behaviour("packet-nothing-to-show")
def test_a_review_whose_material_was_all_left_out_cannot_start(repo: Path) -> None:
    write(repo, {"big.py": "x = 1\n" * 50_000})
    packet = validate("big.py", repo)
    assert packet.refusal == (
        "nothing to review: everything was left out, big.py (293 KB, over 256 KB a file); name a text file within the limits"
    )
    assert validate("big.py src/app.py", repo).refusal == ""


@pytest.mark.behaviour("packet-commits")
def test_the_packet_has_the_commit_messages_and_says_what_to_judge(repo: Path) -> None:
    commit(repo, {"src/app.py": "x = 2\n"}, "Raise the limit")
    commit(repo, {"README.md": "# New\n"}, "Rename the project\n\nThe reason.")
    packet = validate("HEAD~2..HEAD", repo)
    context = context_of(packet)
    assert [text.split(" ", 1)[1] for text in context["commits"]] == [
        "Rename the project\nThe reason.",
        "Raise the limit",
    ]
    assert context["scope"].startswith("The diff is the object")
    assert [line.split(" ", 1)[1] for line in validate("", repo / "src", base="HEAD~2").commits] == ["Raise the limit"]
    files = context_of(validate("src/app.py", repo))
    assert "commits" not in files and "scope" not in files
    assert "scope" not in context_of(packet, "research")


@pytest.mark.behaviour("packet-commits")
def test_a_secret_in_a_commit_subject_is_refused(repo: Path) -> None:
    commit(repo, {"src/app.py": "x = 2\n"}, "Use token ghp_" + "a1B2" * 9)
    with pytest.raises(PacketRefused, match=r"secrets found at commit \w+:1"):
        validate("HEAD~1..HEAD", repo)
    assert "ghp_" not in str(validate("HEAD~1..HEAD", repo, redact=True).commits)
