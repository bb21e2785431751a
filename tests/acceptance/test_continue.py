"""Follow-up runs: the earlier question and answer are added to the packet, through its gate."""

from __future__ import annotations

import sqlite3

import pytest

from tests.acceptance.helpers import QUESTION, Terminal, Workspace, mark
from tests.acceptance.test_worker import queue_run
from tests.fake_provider import Reply

NEXT = "And what about the restores?"


@pytest.mark.behaviour("50-continue")
def test_every_seat_gets_the_earlier_question_and_answer(workspace: Workspace, council: Terminal) -> None:
    first = council("--json", "--protocol", "triad", QUESTION).json["run"]
    workspace.provider.forget()
    then = council("--continue", first, "--json", NEXT)
    assert then.code == 0, then.err
    assert (then.json["continues"], then.json["question"]) == (first, NEXT)
    drafts = [seen.prompt for seen in workspace.provider.log if workspace.answers.who(seen)[1] == "draft"]
    assert len(drafts) == 3
    for prompt in drafts:
        assert f"### council {first}\n1| " in prompt
        assert QUESTION in prompt and mark("chair", "merge") in prompt and NEXT in prompt
    assert council("runs", "fsck").code == 0


@pytest.mark.behaviour("50-continue")
def test_the_protocol_and_its_options_come_from_the_earlier_run(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(more='[models]\ndefault = "sim:alpha"\n')
    workspace.provider.answer = None
    first = council("--json", "--rounds", "2", "--flow", "debate", QUESTION).json["run"]
    plan = council("--continue", first, "--dry-run", "--json", NEXT).json
    assert (plan["protocol"], plan["why"]) == ("advisors", f"same as {first}, which it continues")
    assert (plan["options"]["rounds"], plan["options"]["flow"]) == (2, "debate")
    assert plan["packet"]["files"] == [f"council {first}"]
    assert f"continues {first}: its question and answer are in the packet" in council("--continue", first, "--dry-run", NEXT).out  # fmt: skip


@pytest.mark.behaviour("50-continue")
@pytest.mark.parametrize(
    ("words", "protocol", "why"),
    [
        (("--protocol", "collaborative", NEXT), "collaborative", "chosen by name"),
        (("which is better, tape or disk?",), "adversarial", 'the words "which is better"'),
        (("--rounds", "2", NEXT), "advisors", "--rounds"),
    ],
)
def test_words_and_flags_choose_another_protocol(
    workspace: Workspace, council: Terminal, words: tuple[str, ...], protocol: str, why: str
) -> None:
    workspace.configure(more='[models]\ndefault = "sim:alpha"\n')
    first = council("--json", "--protocol", "triad", QUESTION).json["run"]
    plan = council("--continue", first, "--dry-run", "--json", *words).json
    assert (plan["protocol"], plan["why"], plan["continues"]) == (protocol, why, first)


@pytest.mark.behaviour("50-continue-gate")
def test_a_secret_in_the_earlier_question_is_not_sent(workspace: Workspace, council: Terminal) -> None:
    first = council("--json", "--protocol", "triad", QUESTION).json["run"]
    asked = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    _rewrite(workspace, first, asked)
    workspace.provider.forget()
    refused = council("--continue", first, NEXT)
    assert (refused.code, workspace.provider.log) == (2, [])
    assert f"council {first}:" in refused.err and asked not in refused.err
    masked = council("--continue", first, "--redact", "--json", NEXT)
    assert masked.code == 0
    assert all(asked not in seen.prompt for seen in workspace.provider.log)


def _rewrite(workspace: Workspace, run: str, secret: str) -> None:
    """Put a secret into a stored question, as an older version might have."""
    with sqlite3.connect(workspace.data / "council.db") as db:
        db.execute("UPDATE events SET body = replace(body, ?, ?) WHERE run = ? AND type = 'convened'", (QUESTION, f"{QUESTION} {secret}", run))  # fmt: skip


def test_a_review_can_be_continued(workspace: Workspace, council: Terminal) -> None:
    workspace.configure(more='[models]\ndefault = "sim:alpha"\n')
    workspace.provider.answer = None
    (workspace.folder / "auth.py").write_text("def check(): return True\n")
    first = council("--json", "validate", "auth.py")
    assert first.json["task"] == "validate", first.err
    then = council("--continue", first.json["run"], "--json", "is the second finding real?")
    assert (then.json["task"], then.json["protocol"]) == ("validate", "judges"), then.out
    assert f"council {first.json['run']}" in workspace.provider.log[-2].prompt  # the clerk is last


@pytest.mark.behaviour("50-continue")
def test_a_run_without_an_answer_cannot_be_continued(workspace: Workspace, council: Terminal) -> None:
    waiting = queue_run()
    workspace.provider.always("*", Reply(status=401))
    workspace.provider.answer = None
    failed = council("--json", "--protocol", "triad", QUESTION).json["run"]
    for run in (waiting, failed, "r2222"):
        refused = council("--continue", run, NEXT)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"run {failed} has no answer to continue from yet" in council("--continue", failed, NEXT).err


@pytest.mark.behaviour("50-continue-rule")
def test_a_chain_of_follow_ups_includes_the_earlier_turns_newest_first(workspace: Workspace, council: Terminal) -> None:
    first = council("--json", "--protocol", "triad", QUESTION).json["run"]
    second = council("--continue", first, "--json", NEXT).json["run"]
    plan = council("--continue", second, "--dry-run", "--json", "And then?").json
    files = [f"council {second}", f"council {first}"]
    assert (plan["continues"], plan["packet"]["files"]) == (second, files)
    assert (plan["conversation"]["full"], plan["conversation"]["left_out"]) == ([second, first], [])
    assert "newest first, up to 24,000 characters" in plan["conversation"]["rule"]
    assert f"continues {second}: 2 turns in full in the packet" in council("-c", "--dry-run", "And then?").out
    sent = council("packet", "-c", "--json", "And then?").json["council_packet"]["context"]["files"]
    assert [file["path"] for file in sent] == files
    lines = sent[1]["content"].split("\n")
    assert lines[0].endswith("Turn 1 of 2 of this conversation.") and lines[4].endswith(QUESTION)
    assert council("runs", "rm", first).code == 0
    assert council("-c", "--dry-run", "--json", "And then?").json["packet"]["files"] == [f"council {second}"]


@pytest.mark.behaviour("50-continue-last")
def test_without_a_run_the_last_run_of_this_folder_is_continued(
    workspace: Workspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = council("-c", NEXT)
    assert (none.code, none.err.count("\n"), "this folder has no run to continue" in none.err) == (2, 1, True)
    first = council("--json", "--protocol", "triad", QUESTION).json["run"]
    then = council("-c", "--json", NEXT).json
    assert (then["continues"], then["question"]) == (first, NEXT)
    assert f"continues {then['run']}: " in council("--continue", "--dry-run", "rust", "or", "go?").out
    plan = council("-c", first, "--dry-run", "--json", NEXT).json
    assert (plan["continues"], plan["question"]) == (first, NEXT)
    plan = council("-c", "refactor", "it", "now?", "--dry-run", "--json").json  # the word may be the start of an id
    assert (plan["continues"], plan["question"]) == (then["run"], "refactor it now?")
    other = workspace.folder / "elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    assert "this folder has no run to continue" in council("-c", NEXT).err
