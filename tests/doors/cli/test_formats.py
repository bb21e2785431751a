"""`--format` on a run prints the same as `council report` prints later."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from council.doors.cli import run as command
from council.extensions import FORMATS
from tests.acceptance.test_machine_readable import fits

Council = Callable[..., tuple[int, str, str]]


@pytest.fixture
def council(capsys: pytest.CaptureFixture[str]) -> Council:
    """The command in this process, with scripted members."""
    Path("plan.md").write_text("# Plan\nShip it.\n", encoding="utf-8")
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n[chair]\nmodel = "scripted:"\n', encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = command(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.mark.behaviour("50-format-on-a-run")
@pytest.mark.parametrize("form", FORMATS.names)
def test_a_run_prints_the_same_as_council_report(council: Council, form: str) -> None:
    code, out, _ = council("validate", "plan.md", "--format", form, "--fail-on", "never")
    assert code == 0
    _, later, _ = council("report", "--format", form)
    assert out.strip()
    assert out.rstrip("\n") == later.rstrip("\n")


@pytest.mark.behaviour("50-format-on-a-run", "10-check-reported")
@pytest.mark.parametrize("arguments", [["--protocol", "refine"], ["--protocol", "triad", "--check"]])
def test_every_format_has_a_checked_answer(council: Council, arguments: list[str]) -> None:
    code, _, err = council(*arguments, "Where to?")
    assert code == 0, err
    told = {form: council("report", "--format", form)[1] for form in FORMATS.names}
    assert all(text.strip() for text in told.values())
    report = json.loads(told["json"])
    fits(report, "report")
    (error, *_) = report["check"]["errors"]
    assert error["flaw"] in told["md"] and error["flaw"] in told["html"]
    assert "## Result of the Check" in told["md"]
    assert ("## Errors in the Drafts" in told["md"]) == ("refine" in arguments) == bool(report.get("attacks"))
    plan = json.loads(council(*arguments, "Where to?", "--dry-run", "--json")[1])
    fits(plan, "plan")
    assert plan.get("check", False) == ("--check" in arguments)


@pytest.mark.behaviour("50-format-on-a-run")
def test_only_the_format_is_on_standard_output(council: Council) -> None:
    _, out, _ = council("validate", "plan.md", "--format", "github")
    assert all(line.startswith("::") for line in out.splitlines())
    assert ElementTree.fromstring(council("validate", "plan.md", "--format", "junit")[1]).tag == "testsuites"
    assert json.loads(council("validate", "plan.md", "--format", "sarif")[1])["version"] == "2.1.0"


@pytest.mark.behaviour("50-format-on-a-run")
def test_json_works_as_format_and_as_flag(council: Council) -> None:
    for flags in (["--json"], ["--format", "json"], ["--format=json"], ["--json", "--format", "json"]):
        assert json.loads(council("validate", "plan.md", *flags)[1])["schema"] == "council.report/1"
        assert json.loads(council("validate", "plan.md", "--dry-run", *flags)[1])["schema"] == "council.plan/1"
        assert json.loads(council("validate", "plan.md", "--count", "nine", *flags)[1])["schema"] == "council.error/1"


@pytest.mark.behaviour("50-format-on-a-run")
@pytest.mark.parametrize("other", ["--json", "--jsonl"])
def test_conflicting_output_flags_are_refused_before_anything_is_spent(council: Council, other: str) -> None:
    code, out, err = council("validate", "plan.md", "--format", "sarif", other)
    assert code == 2
    assert f"and {other} conflict" in out + err
    assert not Path(".agents").exists()


def test_an_unknown_format_error_lists_the_known_ones(council: Council) -> None:
    code, _, err = council("validate", "plan.md", "--format", "jnit")
    assert code == 2
    assert '"jnit"' in err
    assert "junit" in err
