"""Bad input: one clear line, exit 2, nothing sent, nothing recorded."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, opinion
from tests.fake_provider import Reply
from tests.packet.conftest import commit, git, write

HERE = ("validate", "src/app.py")
KNOWN = "security-audit, architecture, research, ops, code-review, plan-review, doc-review, retrospective, product, developer-experience"

# Arguments → expected text of the error line.
WRONG: dict[tuple[str, ...], str] = {
    ("validate", "src/nope.py"): 'there is no "src/nope.py" here',
    ("validate", "../outside.txt"): '"../outside.txt" is outside the folder council was started in',
    ("validate", "/etc/passwd"): '"/etc/passwd" is outside the folder council was started in',
    ("validate", "out"): '"out" is a link that points outside the folder council was started in',
    ("validate", "outdir"): '"outdir" is a link that points outside the folder council was started in',
    ("validate", "outdir/passwd"): '"outdir/passwd" is behind a link that points outside the root',
    ("validate", "loop"): '"loop" is a link that points to itself',
    ("validate", "pipe"): '"pipe" is a named pipe and cannot be shown',
    ("validate", "big.txt"): '"big.txt" cannot be shown (binary, 10 GB)',
    ("validate", "picture.png"): '"picture.png" cannot be shown (binary)',
    ("validate", "nobranch..HEAD"): 'unknown revision "nobranch"',
    ("validate", "--", "--output=canary..HEAD"): '"--output=canary" is not a revision',
    ("validate", "--", "HEAD..--output=canary"): '"--output=canary" is not a revision',
    ("--base=--output=canary", "validate"): '"--output=canary" is not a revision',
    ("--base=nobranch", "validate"): 'unknown revision "nobranch"',
    ("--spec=gone.md", *HERE): '--spec "gone.md" does not exist',
    ("--spec=../outside.txt", *HERE): '"../outside.txt" is outside the folder',
    ("--perspectives-file=bad.yaml", *HERE): 'bad.yaml" is not valid YAML (',
    ("--perspectives-file=bytes.yaml", *HERE): 'bytes.yaml" cannot be read (',
    ("--perspectives-file=empty.yaml", *HERE): 'empty.yaml" contains no perspectives',
    ("--perspectives-file=prose.yaml", *HERE): 'prose.yaml" contains no perspectives',
    ("--perspectives-file=nameless.yaml", *HERE): 'nameless.yaml" has no name for perspective 1',
    ("--perspectives-file=gone.yaml", *HERE): 'gone.yaml" does not exist',
    ("--perspectives-file=pipe", *HERE): 'pipe" is not a file',
    ("--preset=securty-audit", *HERE): f'unknown preset "securty-audit": did you mean "security-audit"? known are {KNOWN}',
    ("--profile=slow", *HERE): 'unknown profile "slow": known are thorough, balanced, fast',
    ("--technique=sixhats", "brainstorm", "names"): 'unknown technique "sixhats": did you mean "six-hats"? known are scamper, six-hats, reverse',
    ("--explorers=6", *HERE): '--explorers "6" cannot be used: give a whole number from 0 to 5',
    ("--explorers=-1", *HERE): '--explorers "-1" cannot be used',
    ("--count=13", *HERE): "--count=13 makes 13 judges x (1 + 0 explorers) = 13 agents, over the cap of 12",
    ("--count=0", *HERE): '--count "0" cannot be used',
    ("--count=4", "--explorers=5", *HERE): "4 judges x (1 + 5 explorers) = 24 agents, over the cap of 12",
    ("--mixed", "--count=7", *HERE): "14 judges x (1 + 0 explorers) = 14 agents, over the cap of 12",
    ("--quick", "--deep", *HERE): "--quick seats one judge and cannot be combined with --deep",
    ("--quick", "--count=2", *HERE): "--quick seats one judge and cannot be combined with --count",
    ("--perspectives=a,A", *HERE): "contains the same name twice",
    ("--perspectives=a", "--perspectives-file=empty.yaml", *HERE): "--perspectives and --perspectives-file cannot be combined",
    ("--redact", "--skip-secrets", *HERE): "choose one",
    ("--mixed", "--flow=debate", *HERE): "--flow belongs to advisors and --mixed to judges",
    ("--explorers=1", "--explorer-model=nowhere:x", *HERE): 'unknown provider "nowhere"',
}  # fmt: skip


@pytest.fixture
def odd(judges: JudgesWorkspace) -> JudgesWorkspace:
    """Odd files that a target or a flag could name."""
    root = judges.folder
    os.mkfifo(root / "pipe")
    (root / "picture.png").write_bytes(b"\x89PNG\0\0\0")
    with (root / "big.txt").open("wb") as sparse:
        sparse.truncate(10 * 1024**3)
    (root / "out").symlink_to("/etc/passwd")
    (root / "outdir").symlink_to("/etc")
    (root / "loop").symlink_to("loop")
    (root.parent / "outside.txt").write_text("outside\n", encoding="utf-8")
    (root / "bytes.yaml").write_bytes(b"\xff\xfe\0")
    texts = {"bad.yaml": "perspectives: [a: b: c\n", "empty.yaml": "perspectives: []\n", "prose.yaml": "only words\n", "nameless.yaml": "perspectives:\n  - focus: x\n"}  # fmt: skip
    write(root, texts)
    return judges


@pytest.mark.behaviour("issue-3-bad-input", "20-unknown-names-listed")
def test_bad_input_is_one_clear_line_and_no_run(odd: JudgesWorkspace, council: Terminal) -> None:
    for arguments, sentence in WRONG.items():
        done = council("--json", *arguments)
        assert (done.code, done.json["exit"]) == (2, 2), (arguments, done.out)
        assert sentence in done.json["error"], arguments
        in_words = council(*arguments)
        assert (in_words.code, in_words.out, in_words.err.count("\n")) == (2, "", 1), arguments
        assert "Traceback" not in in_words.err and "internal error" not in in_words.err
    assert (odd.provider.log, odd.runs()) == ([], [])
    assert not list(odd.folder.rglob("*canary*"))


@pytest.mark.behaviour("issue-3-bad-input", "packet-odd-files")
def test_odd_files_in_a_folder_are_skipped_with_a_reason_and_the_rest_is_judged(
    odd: JudgesWorkspace, council: Terminal
) -> None:
    for name in ("out", "loop", "picture.png", "pipe"):
        (odd.folder / name).rename(odd.folder / "src" / "api" / name)
    plan = council("validate", "src/api", "--dry-run", "--json").json
    assert plan["packet"]["files"] == ["src/api/routes.py"]
    assert {row["path"] for row in plan["packet"]["skipped"]} >= {"src/api/out", "src/api/loop", "src/api/picture.png"}
    assert plan["packet"]["holes"] == []
    done = council("validate", "src/api", "--json")
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    assert all(b"root:" not in seen.raw for seen in odd.provider.log)


@pytest.mark.behaviour("issue-3-bad-input", "packet-limits")
def test_a_file_that_is_too_large_is_reported_as_a_hole_and_exits_three(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    write(judges.folder, {"src/api/large.py": "x = 1\n" * 60_000})
    done = council("validate", "src/api", "--json")
    assert (done.code, done.json["verdict"]) == (3, "WARN")
    assert [row["reason"] for row in done.json["degraded"] if row["state"] == "coverage_hole"] == [
        "src/api/large.py: 351.6 KB, over 256 KB a file"
    ]
    assert "src/api/large.py" in (judges.folder / done.json["report_path"]).read_text()
    assert council("gate").code == 3
    assert council("validate", "src/api", "--fail-on", "never").code == 0


@pytest.mark.behaviour("issue-3-bad-input", "packet-git-none")
def test_without_a_repository_recent_staged_and_ranges_say_so(
    council: Terminal, provider: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    monkeypatch.chdir(plain)
    write(plain, {"notes.md": "words\n"})
    for words, what in ((["recent"], "recent"), (["validate", "recent"], "recent"), (["validate", "staged"], "staged"),
                        (["validate", "main..HEAD"], "a revision range"), (["--base=main", "validate"], "--base")):  # fmt: skip
        done = council("--json", *words)
        assert (done.code, done.json["error"].startswith(f'"{what}" needs a git repository')) == (2, True), words
    bare = council("--json")
    assert (bare.code, "the work tree has no changes" in bare.json["error"]) == (2, True)
    assert council("validate", "notes.md", "--dry-run", "--json").json["packet"]["files"] == ["notes.md"]


@pytest.mark.behaviour("issue-3-bad-input", "packet-recent")
def test_recent_in_a_shallow_clone_uses_the_available_commits(
    judges: JudgesWorkspace, council: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(4):
        commit(judges.folder, {f"src/step{n}.py": f"step = {n}\n"})
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{judges.folder}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    plan = council("recent", "--dry-run", "--json").json
    assert plan["packet"]["files"] == ["src/step3.py"]


HOSTILE = """[core]
\tfsmonitor = "touch {canary}; false"
\thooksPath = {hooks}
\tpager = "touch {canary}"
\tsshCommand = "touch {canary}"
\teditor = "touch {canary}"
\tattributesFile = {attributes}
[diff]
\texternal = "touch {canary}"
[diff "evil"]
\ttextconv = "touch {canary}; cat"
\tcommand = "touch {canary}"
[filter "evil"]
\tclean = "touch {canary}; cat"
\tsmudge = "touch {canary}; cat"
\tprocess = "touch {canary}"
[alias]
\tdiff = "!touch {canary}"
\tlog = "!touch {canary}"
"""


@pytest.mark.behaviour("issue-3-bad-input", "packet-git-hostile-config")
def test_a_hostile_git_config_runs_nothing(judges: JudgesWorkspace, council: Terminal, tmp_path: Path) -> None:
    canary, hooks, attributes = tmp_path / "canary", tmp_path / "hooks", tmp_path / "attributes"
    hooks.mkdir()
    for hook in ("post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {canary}\n", encoding="utf-8")
        (hooks / hook).chmod(0o755)
    attributes.write_text("* diff=evil filter=evil\n", encoding="utf-8")
    commit(judges.folder, {"src/next.py": "x = 1\n"})
    write(
        judges.folder,
        {"src/next.py": "x = 2\n", "src/new.py": "y = 1\n", ".gitattributes": "* diff=evil filter=evil\n"},
    )
    with (judges.folder / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write(HOSTILE.format(canary=canary, hooks=hooks, attributes=attributes))
    for words in (["recent"], ["staged"], ["HEAD~1..HEAD"], ["src"], []):
        done = council("validate", *words, "--json")
        assert done.code == 0, (words, done.out)
        assert not canary.exists(), words
    assert council("--base=HEAD~1", "validate", "--json").code == 0
    assert not canary.exists()
    sent = b"".join(seen.raw for seen in judges.provider.log)
    assert b"x = 2" in sent and b"y = 1" in sent
    with suppress(subprocess.CalledProcessError):
        git(judges.folder, "diff", "HEAD")  # proves that the config is hostile
    assert canary.exists()


@pytest.mark.behaviour("20-locations-checked")
def test_findings_at_lines_that_do_not_exist_are_marked_not_found(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.said["judge/judge-1"] = opinion(
        "WARN", finding("significant", "src/app.py:99", "Line 99 is wrong."), finding("significant", "src/gone.py:1", "That file is wrong."),
        finding("minor", "", "Something is off somewhere.", ref=""),
    )  # fmt: skip
    done = council("validate", "src/app.py", "--json")
    rows = {row["description"]: row for row in done.json["findings"]}
    assert [row["verified"] for row in rows.values()] == [False] * 3
    text = (judges.folder / done.json["report_path"]).read_text(encoding="utf-8")
    assert "`src/app.py:99` (not found in the packet)" in text
    assert "`src/gone.py:1` (not found in the packet)" in text
    assert text.count("(not found in the packet)") == 2
    github = council("report", "--format", "github").out
    assert github.count("file=") == github.count("file=src/app.py,title") == 1 and "line=" not in github
    assert "not found in the packet: src/app.py:99" in github
    places = [
        row["locations"][0]["physicalLocation"]
        for row in council("report", "--format", "sarif").json["runs"][0]["results"]
    ]
    assert sorted(place["artifactLocation"]["uri"] for place in places) == [".", ".", "src/app.py"]


QUOTE = "print(sys.argv)"


@pytest.mark.behaviour("20-quote-verifies", "20-file-kept")
@pytest.mark.parametrize(
    ("location", "quote", "state", "shown", "note"),
    [
        ("src/app.py:1", QUOTE, "verified", "src/app.py:3", ""),
        ("app.py:0", QUOTE, "verified", "src/app.py:3", ""),
        ("src/app.py:-3", QUOTE, "verified", "src/app.py:3", ""),
        ("src/app.py:-3", "", "unlocated", "src/app.py:-3", ""),
        ("src/app.py:2", "", "unlocated", "src/app.py:2", ""),
        ("src/app.py:3", "return request.user is not None", "located", "src/app.py:3", "quote not found"),
        ("src/app.py:3", "\n".join(f"print(sys.argv[{n}])" for n in range(400)), "located", "src/app.py:3", "quote too long to check"),
    ],
    ids=["wrong-line", "line-zero", "negative-line", "negative-no-quote", "blank-line", "quote-of-another-file", "400-lines"],
)  # fmt: skip
def test_a_quote_decides_what_is_verified_and_a_wrong_one_is_reported(
    judges: JudgesWorkspace, council: Terminal, location: str, quote: str, state: str, shown: str, note: str
) -> None:
    judges.judge_answers.said["judge/judge-1"] = opinion(
        "WARN", finding("significant", location, "It prints.", quote=quote)
    )
    done = council("validate", "src", "--json")
    (row,) = done.json["findings"]
    assert (row["location_state"], row["location"], row["location_note"], row["path"]) == (
        state,
        shown,
        note,
        "src/app.py",
    )
    assert row["verified"] == (state == "verified")
    because = "; ".join(done.json["trust"]["because"])
    assert ("no finding above minor quotes the material" in because) == (state != "verified")
    text = (judges.folder / done.json["report_path"]).read_text(encoding="utf-8")
    assert note in text


@pytest.mark.behaviour("issue-3-bad-reply")
def test_a_judge_with_an_invalid_reply_is_asked_once_more_and_then_absent(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.instead["judge/judge-1"] = Reply(wrong_schema=True)
    judges.judge_answers.instead["judge/judge-2"] = [Reply(text='{"verdict": "MAYBE"}')]
    done = council("validate", "src/app.py", "--json")
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    assert [seat["state"] for seat in done.json["seats"]] == ["failed(schema)", "ok_repaired"]
    assert council("gate").code == 3


@pytest.mark.behaviour("issue-3-fail-on")
def test_fail_on_without_a_review_is_refused_before_a_call(judges: JudgesWorkspace, council: Terminal) -> None:
    done = council("--fail-on", "fail", "Is Redis fast?")
    assert (done.code, judges.provider.log) == (2, [])
    assert "--fail-on fail needs a review, but collaborative (the default) gives no verdict" in done.err
