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
