"""`--format` on a run: what `council report` prints of it later, printed at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from council.doors.cli import run as command
from council.doors.cli.formats import FORMATS

Council = Callable[..., tuple[int, str, str]]


@pytest.fixture
def council(capsys: pytest.CaptureFixture[str]) -> Council:
    """The command in this process; judges, and whoever else sits, are scripted."""
    Path("plan.md").write_text("# Plan\nShip it.\n", encoding="utf-8")
    Path("council.toml").write_text('[models]\ndefault = "scripted:"\n[chair]\nmodel = "scripted:"\n', encoding="utf-8")

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = command(list(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.behaviour("50-format-on-a-run")
@pytest.mark.parametrize("form", FORMATS)
def test_a_run_prints_itself_as_its_report_would(council: Council, form: str) -> None:
    code, out, _ = council("validate", "plan.md", "--format", form, "--fail-on", "never")
    assert code == 0
    _, later, _ = council("report", "--format", form)
    assert out.strip()
    assert out.rstrip("\n") == later.rstrip("\n")


@pytest.mark.behaviour("50-format-on-a-run")
def test_nothing_but_the_format_stands_on_standard_output(council: Council) -> None:
    _, out, _ = council("validate", "plan.md", "--format", "github")
    assert all(line.startswith("::") for line in out.splitlines())
    assert ElementTree.fromstring(council("validate", "plan.md", "--format", "junit")[1]).tag == "testsuites"
    assert json.loads(council("validate", "plan.md", "--format", "sarif")[1])["version"] == "2.1.0"


@pytest.mark.behaviour("50-format-on-a-run")
def test_json_is_a_format_and_the_flag_stays(council: Council) -> None:
    for flags in (["--json"], ["--format", "json"], ["--format=json"], ["--json", "--format", "json"]):
        assert json.loads(council("validate", "plan.md", *flags)[1])["schema"] == "council.report/1"
        assert json.loads(council("validate", "plan.md", "--dry-run", *flags)[1])["schema"] == "council.plan/1"
        assert json.loads(council("validate", "plan.md", "--count", "nine", *flags)[1])["schema"] == "council.error/1"


@pytest.mark.behaviour("50-format-on-a-run")
@pytest.mark.parametrize("other", ["--json", "--jsonl"])
def test_two_wishes_for_standard_output_are_refused_before_anything_is_spent(council: Council, other: str) -> None:
    code, out, err = council("validate", "plan.md", "--format", "sarif", other)
    assert code == 2
    assert f"and {other} conflict" in out + err
    assert not Path(".agents").exists()


def test_an_unknown_format_is_answered_with_the_known_ones(council: Council) -> None:
    code, _, err = council("validate", "plan.md", "--format", "jnit")
    assert code == 2
    assert '"jnit"' in err
    assert "junit" in err
