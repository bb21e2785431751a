"""The key `protocol`: the protocol of a question whose words choose none."""

from __future__ import annotations

import pytest

from tests.acceptance.adaptive.fake_solvers import QUESTION, Solvers
from tests.acceptance.helpers import Terminal, Workspace
from tests.trusted_project import trust_project

OPEN = "Plan our offsite."


def set_protocol(workspace: Workspace, name: str) -> None:
    path = workspace.folder / "council.toml"
    path.write_text(f'protocol = "{name}"\n{path.read_text()}')
    trust_project(workspace.folder)


@pytest.mark.behaviour("00-config-protocol")
def test_the_key_is_used_where_the_words_choose_nothing(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    set_protocol(workspace, "adaptive")
    plan = council(OPEN, "--dry-run", "--json").json
    assert (plan["protocol"], plan["why"]) == ("adaptive", "the key protocol of council.toml")
    for words, protocol in (
        (["Redis or Postgres for our sessions?"], "adversarial"),
        (["--protocol", "triad", OPEN], "triad"),
        (["--rounds", "2", OPEN], "advisors"),
        (["--protocol", "auto", OPEN], "refine"),
    ):
        assert council(*words, "--dry-run", "--json").json["protocol"] == protocol, words
    report = council("--json", QUESTION).json
    assert report["stopped"]["reason"] == "confirmed"
    assert council("-c", "And 17 * 25?", "--dry-run", "--json").json["protocol"] == "adaptive"


@pytest.mark.behaviour("00-config-protocol")
def test_auto_as_the_default_follows_the_advice(workspace: Workspace, council: Terminal, answers: Solvers) -> None:
    set_protocol(workspace, "auto")
    assert council(QUESTION, "--dry-run", "--json").json["protocol"] == "adaptive"
    assert council(OPEN, "--dry-run", "--json").json["protocol"] == "refine"


@pytest.mark.behaviour("00-config-protocol")
@pytest.mark.parametrize(("name", "problem"), [("adaptiv", "is not known: use collaborative"), ("", "is not known")])
def test_an_unknown_protocol_is_one_clear_line(
    workspace: Workspace, council: Terminal, answers: Solvers, name: str, problem: str
) -> None:
    set_protocol(workspace, name)
    refused = council(OPEN)
    assert refused.code == 2 and problem in refused.err and len(refused.err.strip().splitlines()) == 1
    assert workspace.asked() == []


@pytest.mark.behaviour("00-config-protocol")
@pytest.mark.parametrize(
    ("key", "flag", "protocol", "why"),
    [
        ("adaptive", ["--early-stop"], "collaborative", "--early-stop: adaptive, the key protocol of council.toml, does not have it"),
        ("panel", ["--cheap-first"], "adaptive", "--cheap-first: panel, the key protocol of council.toml, does not have it"),
        ("panel", ["--rounds", "2", "--early-stop"], "advisors", "--rounds: panel, the key protocol of council.toml, does not have"),
        ("adaptive", ["--cheap-first"], "adaptive", "the key protocol of council.toml"),
        ("advisors", ["--rounds", "2", "--early-stop"], "advisors", "the key protocol of council.toml"),
        ("auto", ["--cheap-first"], "adaptive", "--cheap-first"),
    ],
)  # fmt: skip
def test_a_flag_that_the_protocol_of_the_key_lacks_chooses_and_the_plan_says_so(
    workspace: Workspace, council: Terminal, answers: Solvers, key: str, flag: list[str], protocol: str, why: str
) -> None:
    set_protocol(workspace, key)
    done = council(*flag, "--dry-run", "--json", OPEN)
    assert done.code == 0, done.err
    assert done.json["protocol"] == protocol
    assert done.json["why"].startswith(why)


@pytest.mark.behaviour("00-config-protocol")
def test_the_text_of_the_plan_names_the_flag_that_chose(
    workspace: Workspace, council: Terminal, answers: Solvers
) -> None:
    set_protocol(workspace, "adaptive")
    shown = council("--early-stop", "--dry-run", OPEN)
    assert "--early-stop: adaptive, the key protocol of council.toml, does not have it" in shown.out


@pytest.mark.behaviour("50-continue")
@pytest.mark.parametrize(
    ("flag", "protocol", "options"),
    [("--early-stop", "collaborative", {"early_stop": True}), ("--cheap-first", "adaptive", {"cheap_first": True})],
)
def test_a_flag_beside_a_follow_up_question_is_used(
    workspace: Workspace, council: Terminal, answers: Solvers, flag: str, protocol: str, options: dict[str, bool]
) -> None:
    first = council("--json", "--protocol", "adaptive", QUESTION)
    assert first.code == 0, first.err
    plan = council("-c", flag, "--dry-run", "--json", "And 17 * 25?").json
    assert plan["protocol"] == protocol
    assert plan["options"].items() >= options.items()
