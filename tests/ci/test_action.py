"""The GitHub action, run by the shell commands of its steps: exit codes, outputs and summaries."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.acceptance.helpers import Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, opinion
from tests.ci.runner import Runner
from tests.fake_provider import Reply
from tests.packet.conftest import commit, git
from tests.packet.test_accepted_secrets import OTHER_SETTING, SETTING
from tests.trusted_project import trust_project

BUG = finding("critical", "src/auth/jwt.py:2", "Every token is accepted.", quote="return True")
PRICES = '[prices."sim:*"]\ninput = 3.0\noutput = 15.0\n'
FORK = {"pull_request": {"head": {"repo": {"full_name": "stranger/shop"}}}}


def rule(judges: JudgesWorkspace, first: str, second: str) -> None:
    judges.judge_answers.said = {
        f"judge/judge-{n}": opinion(verdict, *([] if verdict == "PASS" else [BUG]))
        for n, verdict in enumerate((first, second), 1)
    }


@pytest.mark.behaviour("50-ci-action")
@pytest.mark.parametrize(
    ("verdicts", "verdict", "code"),
    [(("PASS", "PASS"), "PASS", 0), (("PASS", "WARN"), "WARN", 0), (("PASS", "FAIL"), "FAIL", 10)],
)
def test_the_verdict_becomes_exit_code_outputs_and_summary(
    judges: JudgesWorkspace, runner: Runner, verdicts: tuple[str, str], verdict: str, code: int
) -> None:
    judges.configure(more=PRICES)
    rule(judges, *verdicts)
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (code, verdict), done.log
    assert done.steps == ["Install council", "Review"]
    assert sorted(judges.steps()) == ["judge/judge-1", "judge/judge-2"]
    run, cost = done.outputs["run"], done.outputs["cost"]
    assert float(cost) > 0
    assert done.summary.startswith(f"**Council: {verdict}** · exit {code} · cost in dollars: {cost} · run {run}\n")
    assert f"gate: {verdict} by 2 of 2 judges" in done.summary
    assert f"## Council Consensus: {verdict}" in done.summary
    level = {"PASS": "notice", "WARN": "warning", "FAIL": "error"}[verdict]
    assert done.annotations[0].startswith(f"::{level} title=Council::{verdict}")
    found = [line for line in done.annotations if "file=src/auth/jwt.py,line=2" in line]
    assert len(found) == (verdict != "PASS")
    assert Path(done.outputs["report"]).read_text(encoding="utf-8") in done.summary
    sarif = json.loads(Path(done.outputs["sarif"]).read_text(encoding="utf-8"))
    assert len(sarif["runs"][0]["results"]) == (verdict != "PASS")


@pytest.mark.behaviour("50-gate-corroborated")
@pytest.mark.parametrize(("chosen", "verdict", "code"), [("", "WARN", 0), ("consensus", "FAIL", 10)])
def test_a_lone_fail_without_evidence_is_a_warning_unless_the_rule_is_consensus(
    judges: JudgesWorkspace, runner: Runner, chosen: str, verdict: str, code: int
) -> None:
    invented = BUG | {"quote": "return token", "severity": "significant"}
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", invented)
    inputs = {"rule": chosen} if chosen else {}
    done = runner.run(None, **inputs)
    assert (done.code, done.outputs["verdict"]) == (code, verdict), done.log
    assert ("the FAIL of judge-1 counts as WARN" in done.summary) is (verdict == "WARN")


@pytest.mark.behaviour("50-ci-action")
def test_disagreeing_families_need_a_person(judges: JudgesWorkspace, runner: Runner) -> None:
    judges.judge_answers.said = {f"judge/codex-judge-{n}": opinion("FAIL", BUG) for n in (1, 2, 3)}
    done = runner.run(args="--mixed")
    assert (done.code, done.outputs["verdict"]) == (3, "DISAGREE"), done.log
    assert "the families disagree, and a person has to decide" in done.summary


@pytest.mark.behaviour("50-ci-action")
def test_a_cap_that_does_not_cover_the_review_is_reported_with_its_exit_code(
    judges: JudgesWorkspace, runner: Runner
) -> None:
    judges.configure(more=PRICES)
    done = runner.run(max_cost="0.00001")
    assert (done.code, done.outputs["verdict"]) == (2, "none"), done.log
    assert any("does not cover this council" in line for line in done.annotations)
    assert judges.provider.log == []


@pytest.mark.behaviour("50-ci-action")
def test_a_missing_judge_is_not_a_pass(judges: JudgesWorkspace, runner: Runner) -> None:
    judges.judge_answers.instead["judge-2"] = lambda seen: Reply(status=500, error="##[error]::error::broken")
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (3, "PASS"), done.log
    assert "inconclusive: 1 of 2 judges answered, a gate needs 2" in done.summary
    assert any("a seat is missing" in line for line in done.annotations)
    assert "broken" in done.log
    assert not any(line.startswith(("::error", "##[")) for line in done.annotations)


@pytest.mark.behaviour("50-ci-action")
def test_refused_keys_of_all_judges_are_not_a_pass(judges: JudgesWorkspace, runner: Runner) -> None:
    judges.judge_answers.instead = {f"judge-{n}": Reply(status=401) for n in (1, 2)}
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (4, "none"), done.log
    assert "judge-1 and judge-2 did not answer: sim refused the key: 401" in done.summary


# Trust


@pytest.mark.behaviour("14-trust-ci")
def test_the_settings_of_the_base_revision_are_trusted_and_those_of_the_change_are_not(
    judges: JudgesWorkspace, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNCIL_CONFIG")
    rule(judges, "PASS", "PASS")
    root, config = runner.checkout, judges.config.read_text(encoding="utf-8")
    git(root, "switch", "-q", "main")
    commit(root, {"council.toml": config}, "configure")
    git(root, "push", "-q", "origin", "main")
    git(root, "switch", "-q", "feature")
    git(root, "rebase", "-q", "main")
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (0, "PASS"), done.log
    sent = len(judges.provider.log)
    assert sent == 2
    commit(
        root,
        {"council.toml": config.replace('wire = "openai"', 'wire = "openai"\napi_key_env = "NPM_TOKEN"')},
        "take a key",
    )
    done = runner.run({"NPM_TOKEN": "no-key"})
    assert (done.code, done.outputs["verdict"]) == (2, "none"), done.log
    assert "has settings that need trust" in done.log
    assert len(judges.provider.log) == sent


@pytest.mark.behaviour("packet-baseline-ci")
def test_secrets_are_accepted_as_in_the_base_revision_and_never_by_the_change(
    judges: JudgesWorkspace, runner: Runner, council: Terminal
) -> None:
    rule(judges, "PASS", "PASS")
    root = runner.checkout
    git(root, "switch", "-q", "main")
    (root / "app.yaml").write_text(SETTING, encoding="utf-8")
    assert council("packet", "--accept-secret", "a test", "validate", "app.yaml").code == 0
    commit(root, {"app.yaml": SETTING}, "accept a secret")
    git(root, "push", "-q", "origin", "main")
    git(root, "switch", "-q", "feature")
    git(root, "rebase", "-q", "main")
    commit(root, {"app.yaml": SETTING + "port: 5432\n"}, "set the port")
    (Path(os.environ["XDG_CONFIG_HOME"]) / "council" / "trust.json").unlink()
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (0, "PASS"), done.log
    assert "1 accepted secret in app.yaml is sent (line 1)" in done.summary
    sent = len(judges.provider.log)
    (root / "new.yaml").write_text(OTHER_SETTING, encoding="utf-8")
    assert council("packet", "--accept-secret", "a test", "validate", "new.yaml").code == 0
    commit(root, {"new.yaml": OTHER_SETTING}, "accept my own secret")
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (2, "none"), done.log
    assert "secrets found at new.yaml:1 (" in done.log and 'once "origin/main" has it' in done.log
    assert len(judges.provider.log) == sent


# No member available


@pytest.mark.behaviour("50-ci-action")
@pytest.mark.parametrize(
    "config",
    ["", '[providers.shop]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "SHOP_API_KEY"\n[models]\ndefault = "shop:m1"\n'],
    ids=["no key and no endpoint", "an endpoint without its key"],
)  # fmt: skip
def test_without_a_key_there_is_no_call_and_no_pass(runner: Runner, config: str) -> None:
    (runner.checkout / "council.toml").write_text(config, encoding="utf-8")
    trust_project(runner.checkout)
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (4, "none"), done.log
    assert done.annotations == [line for line in done.annotations if "no model is available" in line] != []
    assert done.annotations[0].startswith("::error title=Council::")
    assert done.summary.startswith("## Council: none\n\nno model is available")


@pytest.mark.behaviour("50-ci-fork")
@pytest.mark.parametrize(
    "github", [{"event": FORK}, {"actor": "dependabot[bot]"}], ids=["a fork", "a bot without secrets"]
)
def test_a_fork_without_secrets_is_skipped_and_never_a_pass(runner: Runner, github: dict[str, object]) -> None:
    runner.github |= github
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (0, "skipped"), done.log
    assert (
        done.annotations
        == [line for line in done.annotations if line.startswith("::notice") and "skipped" in line]
        != []
    )
    assert "Nothing was reviewed" in done.summary
    assert "This is not a PASS." in done.summary
    assert done.outputs["report"] == ""


@pytest.mark.behaviour("50-ci-fork")
def test_a_fork_with_available_judges_is_not_skipped(judges: JudgesWorkspace, runner: Runner) -> None:
    runner.github |= {"event": FORK}
    done = runner.run(preset="no-such-preset")
    assert (done.code, done.outputs["verdict"]) == (2, "none"), done.log


# Base revision


@pytest.mark.behaviour("50-ci-action")
def test_a_missing_base_is_a_one_line_error(judges: JudgesWorkspace, runner: Runner) -> None:
    runner.github |= {"base_ref": "develop"}
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (2, "none")
    assert 'the revision "origin/develop" is not in this checkout' in done.summary
    assert "fetch-depth: 0" in done.summary
    assert judges.provider.log == []


@pytest.mark.behaviour("50-ci-action")
def test_invalid_inputs_appear_in_summary_and_annotations(judges: JudgesWorkspace, runner: Runner) -> None:
    done = runner.run(preset="securty-audit")
    assert (done.code, done.outputs["verdict"]) == (2, "none")
    assert 'unknown preset "securty-audit"' in done.summary
    assert any('unknown preset "securty-audit"' in line for line in done.annotations)


@pytest.mark.behaviour("50-ci-action")
def test_an_invalid_configuration_is_not_reported_as_a_missing_key(runner: Runner) -> None:
    (runner.checkout / "council.toml").write_text("[models\n", encoding="utf-8")
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (2, "none"), done.log
    assert "is not valid TOML" in done.summary


@pytest.mark.behaviour("50-ci-action")
def test_without_changes_there_is_no_verdict_and_no_call(
    judges: JudgesWorkspace, runner: Runner, checkout: Path
) -> None:
    git(checkout, "switch", "-q", "main")
    done = runner.run()
    assert (done.code, done.outputs["verdict"]) == (0, "none"), done.log
    assert "nothing to judge" in done.summary
    assert judges.provider.log == []


@pytest.mark.behaviour("50-ci-action")
def test_a_push_is_compared_with_the_previous_commit(judges: JudgesWorkspace, runner: Runner, checkout: Path) -> None:
    before = git(checkout, "rev-parse", "HEAD").strip()
    commit(checkout, {"src/one.py": "one = 1\n"})
    commit(checkout, {"src/two.py": "two = 2\n"})
    runner.github = {"repository": "shop/shop", "event": {"before": before}}
    assert runner.run(roster="judge-1=sim:judge-3").code == 0
    prompt = judges.request("judge/judge-3").prompt
    assert "src/one.py" in prompt
    assert "src/two.py" in prompt
    assert "simplify the check" not in prompt
    assert "src/auth/jwt.py" not in prompt
