"""`--check` and the key `check`: who reads the answer, who corrects it, and where it applies."""

from __future__ import annotations

import pytest

from tests.acceptance.helpers import QUESTION, SEATS, Terminal, Workspace, mark
from tests.acceptance.refine.fake_authors import Authors, make_error
from tests.trusted_project import trust_project

FATAL = make_error("FATAL", "It costs 4,000 euros in all", "The train is not counted.")


def set_key(workspace: Workspace) -> None:
    """Write `check = true` into the project's file."""
    path = workspace.folder / "council.toml"
    path.write_text(f"check = true\n{path.read_text()}")
    trust_project(workspace.folder)


@pytest.mark.behaviour("10-check-flag", "10-check-config")
@pytest.mark.parametrize("by_key", [False, True])
def test_the_flag_and_the_key_have_the_answer_checked_and_corrected(
    workspace: Workspace, council: Terminal, answers: Authors, by_key: bool
) -> None:
    answers.errors["check/beta"] = [FATAL]
    if by_key:
        set_key(workspace)
    flags = [] if by_key else ["--check"]
    done = council("--json", "--protocol", "collaborative", *flags, QUESTION)
    assert done.code == 0, done.err
    assert sorted(workspace.asked()[7:]) == [
        "check-again/alpha",
        "check-again/beta",
        "check/alpha",
        "check/beta",
        "fix/chair",
    ]
    assert mark("chair", "fix") in done.json["answer"]
    assert done.json["check"]["readers"] == ["alpha", "beta"]
    assert done.json["tail"][0] == "Outcome: checked by alpha and beta: 1 error found, 1 corrected"
    assert mark("chair", "fix") in council("--quiet", "--protocol", "collaborative", *flags, QUESTION).out


@pytest.mark.behaviour("10-check-flag", "10-check-config")
@pytest.mark.parametrize("by_key", [False, True])
def test_refine_has_its_own_check_and_no_second_one(
    workspace: Workspace, council: Terminal, answers: Authors, by_key: bool
) -> None:
    if by_key:
        set_key(workspace)
    done = council("--json", "--protocol", "refine", *([] if by_key else ["--check"]), QUESTION)
    assert done.code == 0, done.err
    assert [key for key in workspace.asked() if key.startswith("check")] == ["check/beta", "check/gamma"]


@pytest.mark.behaviour("10-check-flag", "10-check-config")
def test_a_protocol_without_such_an_answer_refuses_the_flag_and_ignores_the_key(
    workspace: Workspace, council: Terminal, answers: Authors
) -> None:
    refused = council("--protocol", "solo", "--check", QUESTION)
    assert (refused.code, refused.err.count("\n"), workspace.provider.log) == (2, 1, [])
    assert "the protocol solo has no answer that other seats can check: drop --check" in refused.err
    answers.is_solo = True
    set_key(workspace)
    assert council("--protocol", "solo", QUESTION).code == 0


@pytest.mark.parametrize("protocol", ["triad", "adversarial", "collaborative"])
def test_the_readers_get_the_question_and_the_answer_alone(
    workspace: Workspace, council: Terminal, answers: Authors, protocol: str
) -> None:
    assert council("--protocol", protocol, "--check", QUESTION).code == 0
    for seat in ("alpha", "beta"):
        prompt = workspace.prompt(f"check/{seat}")
        assert QUESTION in prompt
        assert not any(mark(name, "draft") in prompt for name in SEATS)
