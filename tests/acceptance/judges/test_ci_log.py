"""Output in a CI job: no line that a model, an endpoint or a file wrote is a command for the CI system."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from tests.acceptance.helpers import Result
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, opinion
from tests.acceptance.pseudo_terminal import PseudoTerminal
from tests.fake_provider import Reply

COMMANDS = (
    "::stop-commands::token", "::error file=a.py,line=1::forged", "::add-mask::secret", "::set-output name=x::y", "   ::warning::indented",
    "##[error]forged", "##[group]forged", "text ##vso[task.setvariable variable=x]y", "##teamcity[buildStatus status='FAILURE']",
    "section_start:1700000000:forged", "travis_fold:start:forged",
)  # fmt: skip
HOSTILE = "\n".join(
    ["It is fine.", *COMMANDS, "<img src=https://e.example/x.png>", "![x](https://e.example/y.png)", "`<b>`"]
)
COMMAND = re.compile(r"^\s*::|##[A-Za-z.]*\[|section_(?:start|end):|travis_fold:", re.MULTILINE)
FORMATS = ("md", "json", "sarif", "junit", "html", "github")


@pytest.fixture
def hostile(judges: JudgesWorkspace, monkeypatch: pytest.MonkeyPatch) -> JudgesWorkspace:
    """Return judges whose every text has commands; one of them fails with commands in the endpoint's message."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    bad = finding(
        "critical", f"src/auth/jwt.py:1 {HOSTILE}", HOSTILE, fix=HOSTILE, why=HOSTILE, ref=HOSTILE, category=HOSTILE
    )
    said = opinion("FAIL", bad, key_insight=HOSTILE, recommendation=HOSTILE)
    judges.judge_answers.said = {f"judge/judge-{n}": said for n in (1, 2)}
    judges.judge_answers.instead["judge-3"] = lambda seen: Reply(status=400, error=" ".join(COMMANDS))
    return judges


def commands_in(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if COMMAND.search(line)]


def check(result: Result) -> str:
    """Assert that neither output has a command, and return both."""
    assert not commands_in(result.out) and not commands_in(result.err)
    return result.out + result.err


VALIDATE = ("validate", "src/auth", "--deep", "--no-input")


@pytest.mark.behaviour("40-ci-commands")
@pytest.mark.parametrize(
    "more", [(), ("--raw",), ("--verbose",), ("--show", "transcript"), ("--jsonl",), ("--ascii",)], ids=" ".join
)
def test_no_line_of_a_run_is_a_command(hostile: JudgesWorkspace, more: tuple[str, ...]) -> None:
    shown = check(hostile.council(*VALIDATE, *more))
    assert "forged" in shown


@pytest.mark.behaviour("40-ci-commands")
def test_no_line_of_a_report_is_a_command_in_any_format(hostile: JudgesWorkspace) -> None:
    hostile.council(*VALIDATE)
    for name in FORMATS[:-1]:
        assert "forged" in check(hostile.council("report", "--format", name)), name
    for words in (
        ("runs", "show"),
        ("runs", "show", "--verbose"),
        ("runs", "replay"),
        ("runs", "export"),
        ("gate",),
        ("runs", "list"),
        ("doctor",),
    ):
        check(hostile.council(*words))
    check(hostile.council("runs", "show", "::error::x"))
    check(hostile.council("report", "##[error]x", "--json"))
    check(hostile.council("packet", "validate", "src/auth"))


@pytest.mark.behaviour("40-ci-commands")
def test_only_our_own_annotations_are_commands(hostile: JudgesWorkspace) -> None:
    for words in ((*VALIDATE, "--format", "github"), ("report", "--format", "github")):
        done = hostile.council(*words)
        lines = done.out.splitlines()
        assert lines and all(
            re.match(r"::(?:notice|warning|error) (?:file=[^:]*,)?(?:line=\d+,)?title=Council", line) for line in lines
        )
        assert not commands_in(done.err)
        assert not [line for line in lines if line.count("::") != 2 or re.search(r"##[a-z]*\[", line)]


@pytest.mark.behaviour("40-ci-commands")
def test_escapes_in_json_and_xml_do_not_change_the_content(hostile: JudgesWorkspace) -> None:
    report = json.loads(hostile.council(*VALIDATE, "--json").out)
    description = report["findings"][0]["description"]
    assert "##[error]forged" in description and "::stop-commands::token" in description
    sarif = json.loads(hostile.council("report", "--format", "sarif").out)
    assert "##[error]forged" in sarif["runs"][0]["results"][0]["message"]["text"]
    suite = ElementTree.fromstring(hostile.council("report", "--format", "junit").out)
    assert "\n::stop-commands::token\n" in "".join(suite.itertext())


@pytest.mark.behaviour("40-ci-commands")
def test_a_file_of_a_ci_job_has_no_commands(hostile: JudgesWorkspace, tmp_path: Path) -> None:
    for n, name in enumerate(FORMATS[:-1]):
        hostile.council(*VALIDATE, "--format", name, "--output", str(tmp_path / f"{n}"))
        assert not commands_in((tmp_path / f"{n}").read_text(encoding="utf-8")), name


@pytest.mark.behaviour("40-ci-commands")
def test_without_ci_and_at_a_terminal_the_text_stays_as_it_is(
    hostile: JudgesWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = PseudoTerminal(hostile.folder, *VALIDATE, "--raw", "--yes", "--verbose", stdout=True).wait_for_exit()
    assert "\n::stop-commands::token" in done.err.replace("\r", "")
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.setenv(name, "false")
    assert "\n::stop-commands::token\n" in hostile.council("report", "--format", "md").out


@pytest.mark.behaviour("40-report-html")
def test_a_report_renders_without_elements_and_images_of_models(hostile: JudgesWorkspace) -> None:
    hostile.council(*VALIDATE)
    texts = [path.read_text(encoding="utf-8") for path in hostile.reports()]
    assert len(texts) == 3 and any("https://e.example/x.png" in text for text in texts)
    for text in texts:
        rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        assert not re.findall(
            r"<(?!/?(?:h\d|p|em|strong|code|pre|ul|ol|li|table|thead|tbody|tr|th|td|hr|blockquote|a|br|details|summary)\b)\w+",
            rendered,
        )
        assert "<img" not in rendered
