"""Twelve planted bugs and three judges: findings are verified, grouped, reported and exported."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jsonschema import Draft7Validator

from tests.acceptance.helpers import Json, Terminal
from tests.acceptance.judges.fake_judges import MIXED, JudgesWorkspace, finding, opinion
from tests.acceptance.judges.planted_bugs import BUGS, FILES, line_of, place_of
from tests.packet.conftest import commit, write
from tests.paths import DATA

SCHEMA = DATA / "sarif-schema-2.1.0.json"
NAMES = list(BUGS)
FOUND = {"judge-1": NAMES[:8], "judge-2": NAMES[4:], "judge-3": NAMES[:2]}
SHARED = {
    "sql": ("judge-1", "judge-3"),
    "shell": ("judge-1", "judge-3"),
    **dict.fromkeys(NAMES[4:8], ("judge-1", "judge-2")),
}
NASTY = "::error file=x::pwned\n::set-output name=secret::1\r\n##[command]rm -rf / ::stop-commands::x %0A::warning::y <script>]]>{0}[a](http://b)"


@cache
def sarif() -> Draft7Validator:
    return Draft7Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def reported(root: Path, bug: str, extra: str = "") -> Json:
    _, _, severity, category, wrong = BUGS[bug]
    advice = {"fix": f"{bug}()", "recommendation": f"Rewrite the {bug} line of the shop."}
    return finding(severity, place_of(root, bug), wrong + extra, category=category, quote=BUGS[bug][1], **advice)


@pytest.fixture
def shop(judges: JudgesWorkspace) -> JudgesWorkspace:
    commit(judges.folder, FILES, "the shop")
    set_up(judges)
    return judges


def set_up(judges: JudgesWorkspace) -> None:
    """Script the judges to report the current lines of the bugs."""
    for judge, bugs in FOUND.items():
        judges.judge_answers.said[f"judge/{judge}"] = opinion(
            "FAIL" if judge != "judge-2" else "WARN", *(reported(judges.folder, bug) for bug in bugs)
        )
    gone = finding("significant", "src/shop/orders.py:4000", "The cache is never emptied.", category="performance")
    absent = finding("minor", "src/shop/carts.py:3", "Carts have no limit.", category="performance")
    judges.judge_answers.said["judge/judge-3"]["findings"] += [gone, absent]


def reviewed(council: Terminal, *flags: str, code: int = 0) -> Json:
    done = council("--deep", *flags, "validate", "src/shop", "--json")
    assert done.code == code, done.err
    return done.json


@pytest.mark.behaviour("issue-3-planted-bugs", "20-findings-grouped", "20-locations-checked")
def test_findings_are_checked_against_the_packet_and_grouped_across_judges(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    report = reviewed(council)
    assert (report["verdict"], report["confidence"], report["status"]) == ("FAIL", "MEDIUM", "complete")
    rows = {row["description"]: row for row in report["findings"]}
    assert len(rows) == 14
    for bug, (_, _, severity, _, wrong) in BUGS.items():
        row = rows[wrong]
        assert (row["severity"], row["verified"], row["of"]) == (severity, True, 3), bug
        assert row["location"] == place_of(shop.folder, bug)
        assert tuple(row["found_by"]) == SHARED.get(bug, ("judge-1",) if bug in NAMES[:8] else ("judge-2",))
    assert [rows[one]["verified"] for one in ("The cache is never emptied.", "Carts have no limit.")] == [False, False]
    assert [row["category"] for row in report["findings"][:3]] == ["security"] * 3
    assert {tuple(row["found_by"]) for row in report["consensus"]} == {("judge-1", "judge-3"), ("judge-1", "judge-2")}
    assert [len(seen.body["messages"]) for seen in shop.provider.log] == [2, 2, 2, 2]


SECTIONS = [
    "## Council Consensus: FAIL", "**Target:** src/shop", "**Mode:** validate, --deep", "**Judges:** 3 asked, 3 answered", "### Verdicts",
    "### Shared Findings", "### Single-Judge Findings", "### Disagreements", "### Recommendation", "Council completed in", "3/3 judges responded.",
    "cost unknown",
]  # fmt: skip


@pytest.mark.behaviour("issue-3-planted-bugs", "20-report-validate")
def test_the_report_has_the_specified_sections_in_order_and_attributes_findings(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    report = reviewed(council)
    text = (shop.folder / report["report_path"]).read_text(encoding="utf-8")
    places = [text.lower().find(section.lower()) for section in SECTIONS]
    assert -1 not in places
    assert places == sorted(places)
    sql = text[text.index(f"#### critical security · `{place_of(shop.folder, 'sql')}` · 2 of 3") :]
    assert sql.index("*found by judge-1.F1, judge-3.F1*") < sql.index("\n#### ")
    single = text[text.index("### Single-Judge Findings") : text.index("### Disagreements")]
    assert f"#### minor security · `{place_of(shop.folder, 'timing')}` · 1 of 3\n" in single
    assert "src/shop/orders.py:4000` (not found in the packet)" in single
    step = f"Start at {place_of(shop.folder, 'sql')}. Rewrite the sql line of the shop."
    assert f"{step} (critical, found by 2 of 3: judge-1, judge-3)" in text
    assert re.fullmatch(r"\.agents/council/\d{4}-\d\d-\d\d-validate-src-shop\.md", report["report_path"])
    assert re.fullmatch(r"council-\d{8}-src-shop", report["name"])


@pytest.mark.behaviour("50-repository-paths")
def test_paths_are_relative_to_the_repository_also_from_a_subfolder(
    shop: JudgesWorkspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = place_of(shop.folder, "sql")
    inner = whole.removeprefix("src/")
    bug = reported(shop.folder, "sql") | {"location": inner, "ref": inner}
    for judge in ("judge-1", "judge-2"):
        shop.judge_answers.said[f"judge/{judge}"] = opinion("FAIL", bug)
    monkeypatch.chdir(shop.folder / "src")
    report = council("validate", "shop", "--json").json
    (row,) = report["findings"]
    path, _, line = whole.rpartition(":")
    assert (row["path"], row["location"], row["ref"]) == (path, whole, whole)
    assert [one["location"] for one in row["by_judge"]] == [whole, whole]
    assert f"::error file={path},line={line}," in council("report", "--format", "github").out
    (result,) = json.loads(council("report", "--format", "sarif").out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == path
    assert f'name="{whole} ' in council("report", "--format", "junit").out
    assert f"critical  {inner}  2 of 2" in council("validate", "shop").out  # a person stands in the subfolder


@pytest.mark.behaviour("issue-3-analyses", "20-analysis-file")
def test_each_judges_analysis_is_stored_beside_the_report_and_linked_from_events(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    done = council("--deep", "validate", "src/shop", "--jsonl")
    events = [json.loads(line) for line in done.out.splitlines()]
    voted = [event for event in events if event["type"] == "verdict"]
    assert [(event["seat"], event["verdict"], event["confidence"]) for event in voted] == [
        ("judge-1", "FAIL", "HIGH"), ("judge-2", "WARN", "HIGH"), ("judge-3", "FAIL", "HIGH"),
    ]  # fmt: skip
    report = council("report", "--format", "json").json
    assert [seat["file"] for seat in report["seats"]] == [event["file"] for event in voted]
    for event in voted:
        path = shop.folder / event["file"]
        assert re.fullmatch(rf"\d{{4}}-\d\d-\d\d-src-shop-{event['seat']}\.md", path.name)
        assert path.parent == (shop.folder / report["report_path"]).parent
        text = path.read_text(encoding="utf-8")
        assert text.startswith("```json\n")
        reply = json.loads(text.partition("```json\n")[2].partition("\n```")[0])
        assert reply["verdict"] == event["verdict"]
        assert len(reply["findings"]) == len(shop.judge_answers.said[f"judge/{event['seat']}"]["findings"])
    assert all(event["file"] in (shop.folder / report["report_path"]).read_text() for event in voted)


@pytest.mark.behaviour("issue-3-sarif", "50-sarif")
def test_the_sarif_fits_its_schema_and_fingerprints_stay_when_lines_move(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    def results() -> dict[str, tuple[str, int | None]]:
        log = council("report", "--format", "sarif").json
        sarif().validate(log)
        rows = log["runs"][0]["results"]
        found = {}
        for row in rows:
            where = row["locations"][0]["physicalLocation"]
            mark = row["partialFingerprints"]["councilFinding/v1"]
            found[row["message"]["text"].partition("\n")[0]] = (mark, where.get("region", {}).get("startLine"))
        return found

    reviewed(council)
    before, lines = results(), {bug: line_of(shop.folder, bug) for bug in BUGS}
    for path, text in FILES.items():
        write(shop.folder, {path: "# A licence.\n" * 17 + text.replace("\n\n\ndef", "\n\n\n# about\ndef")})
    assert all(line_of(shop.folder, bug) > line for bug, line in lines.items())
    set_up(shop)
    reviewed(council)
    after = results()
    assert len({mark for mark, _ in before.values()}) == 14
    assert {words: mark for words, (mark, _) in after.items()} == {words: mark for words, (mark, _) in before.items()}
    for bug, (*_, wrong) in BUGS.items():
        assert (before[wrong][1], after[wrong][1]) == (lines[bug], line_of(shop.folder, bug))


@pytest.mark.behaviour("issue-3-no-injected-command", "50-github", "50-junit")
def test_judge_text_is_never_executed_as_a_command_by_other_tools(shop: JudgesWorkspace, council: Terminal) -> None:
    nasty = reported(shop.folder, "sql", f"\n{NASTY}") | {
        "fix": NASTY,
        "why": NASTY,
        "ref": NASTY,
        "category": f"security{NASTY}",
    }
    lost = finding("minor", f"src/x.py,title=::error::\n::error::{NASTY}:3", NASTY)
    shop.judge_answers.said["judge/judge-1"] = opinion("FAIL", nasty, lost, key_insight=NASTY, recommendation=NASTY)
    report = reviewed(council)
    out = council("report", "--format", "github").out
    commands = [line for line in re.split(r"\r\n|\r|\n", out) if line]
    assert len(commands) == 1 + len(report["findings"])
    assert all(
        re.match(r"::(?:notice|warning|error) (?:file=[^,:]+,(?:line=\d+,)?)?title=Council[^:]*::", line)
        for line in commands
    )
    assert all(line.count("::") == 2 and "##[" not in line for line in commands)
    suite = ElementTree.fromstring(council("report", "--format", "junit").out)[0]
    assert {element.tag for element in suite.iter()} <= {"testsuite", "testcase", "failure", "error"}
    assert int(suite.attrib["tests"]) == len(suite) == 1 + 3 + len(report["findings"])
    assert int(suite.attrib["failures"]) == 1 + len(report["findings"])
    log = council("report", "--format", "sarif").json
    sarif().validate(log)
    assert all(
        "](" not in re.sub(r"\\\[", "", row["message"]["text"]) or r"\[a](" in row["message"]["text"]
        for row in log["runs"][0]["results"]
    )
    text = (shop.folder / report["report_path"]).read_text(encoding="utf-8")
    assert not re.search(r"^(?:::|##\[)", text, re.MULTILINE)


@pytest.mark.behaviour("20-disagree", "20-report-disagree", "issue-3-disagree-exit")
def test_two_families_that_disagree_are_both_shown_and_the_user_decides(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    for seat in MIXED:
        failing = seat.startswith("codex")
        held = [reported(shop.folder, "sql")] if failing else []
        insight = "The statement can be injected." if failing else "It is tidy and does what it says."
        shop.judge_answers.said[f"judge/{seat}"] = opinion("FAIL" if failing else "PASS", *held, key_insight=insight)
    done = council("--mixed", "validate", "src/shop", "--json")
    report = done.json
    assert (done.code, report["verdict"], report["status"]) == (3, "DISAGREE", "complete")
    (issue,) = report["disagreements"]
    assert {(row["family"], row["verdict"], row["why"]) for row in issue["positions"]} == {
        ("anthropic", "PASS", "It is tidy and does what it says."), ("openai", "FAIL", "The statement can be injected."),
    }  # fmt: skip
    text = (shop.folder / report["report_path"]).read_text(encoding="utf-8")
    assert text.startswith("## Council Consensus: DISAGREE")
    assert "It is tidy and does what it says." in text and "The statement can be injected." in text
    assert "the decision is yours" in text
    insights = text[text.index("### Cross-Vendor Insights") : text.index("### Recommendation")]
    assert "**Only openai** saw: (critical) The name is pasted into the SQL statement." in insights
    assert council("--mixed", "validate", "src/shop", "--fail-on", "never").code == 0
    assert council("--mixed", "validate", "src/shop", "--fail-on", "warn").code == 10
    assert council("gate").code == 3
    assert council("gate", "--fail-on", "warn").code == 10


@pytest.mark.behaviour("issue-3-fail-on", "00-gate-needs-two")
def test_fail_on_and_the_gate_exit_ten_for_findings_without_new_calls(shop: JudgesWorkspace, council: Terminal) -> None:
    assert reviewed(council, "--fail-on", "fail", code=10)["verdict"] == "FAIL"
    sent = len(shop.provider.log)
    codes = {
        level: council("gate", "--fail-on", level).code
        for level in ("fail", "warn", "critical", "significant", "never")
    }
    assert codes == {"fail": 10, "warn": 10, "critical": 10, "significant": 10, "never": 0}
    assert len(shop.provider.log) == sent
    for judge in FOUND:
        shop.judge_answers.said[f"judge/{judge}"] = opinion("WARN", reported(shop.folder, "zero"))
    reviewed(council, "--fail-on", "fail")
    reviewed(council, "--fail-on", "warn", code=10)
    reviewed(council, "--fail-on", "critical")
    reviewed(council, "--fail-on", "significant", code=10)
    done = council("gate")
    assert (done.code, done.out) == (
        0,
        "gate: WARN by 3 of 3 judges, findings: 1 significant; --fail-on fail is not met\n",
    )
    done = council("gate", "--fail-on", "warn", "--json")
    assert (done.code, done.json["exit"], done.json["verdict"]) == (10, 10, "WARN")


@pytest.mark.behaviour("issue-3-fail-on", "13-old-words")
def test_a_report_with_fail_on_is_printed_and_gated_like_by_the_old_word(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    reviewed(council)
    sent = len(shop.provider.log)
    plain = council("report")
    rules = [("--rule", rule) for rule in ("consensus", "Consensus", "CORROBORATED")]
    for arguments in ((), *rules, ("--fail-on", "never"), ("--fail-on", "critical")):
        old = council("gate", *arguments)
        level = () if "--fail-on" in arguments else ("--fail-on", "fail")
        new = council("report", *arguments, *level)
        assert (new.code, new.err, new.out) == (old.code, old.out, plain.out), arguments
        told = council("report", *arguments, *level, "--json")
        gate = told.json["gate"]
        assert told.code == gate["exit"] == old.code
        assert {name: gate[name] for name in ("verdict", "exit", "why", "rule")} == {
            name: value for name, value in council("gate", *arguments, "--json").json.items() if name != "run"
        }
    sarif = council("report", "--format", "sarif", "--fail-on", "warn")
    assert (sarif.code, sarif.json["version"]) == (10, "2.1.0")
    assert "gate" not in council("report", "--json").json
    refused = council("report", "--rule", "consensus")
    assert (refused.code, refused.out) == (2, "") and "--fail-on fail" in refused.err
    assert len(shop.provider.log) == sent


@pytest.mark.behaviour("20-report-quick", "00-gate-needs-two")
def test_a_quick_check_is_labelled_capped_and_inconclusive_for_a_gate(shop: JudgesWorkspace, council: Terminal) -> None:
    done = council("--quick", "validate", "src/shop", "--json")
    report = done.json
    assert (done.code, report["verdict"], report["confidence"]) == (0, "FAIL", "LOW")
    assert re.search(r"/\d{4}-\d\d-\d\d-quick-src-shop\.md$", report["report_path"])
    text = (shop.folder / report["report_path"]).read_text(encoding="utf-8")
    heads = [
        "# Council Quick Check: src/shop",
        "**Mode:** quick (single-agent)",
        "## Verdict: FAIL",
        '"verdict": "FAIL"',
        "## Analysis",
    ]
    assert [text.index(head) for head in heads] == sorted(text.index(head) for head in heads)
    gate = council("gate")
    assert (gate.code, gate.out) == (3, "gate: inconclusive: single judge\n")
    assert len(shop.provider.log) == 1


@pytest.mark.behaviour("issue-3-inconsistent-judge")
def test_a_critical_finding_excludes_pass_and_names_the_inconsistent_judge(
    shop: JudgesWorkspace, council: Terminal
) -> None:
    for judge in FOUND:
        shop.judge_answers.said[f"judge/{judge}"] = opinion(
            "PASS", *([reported(shop.folder, "sql")] if judge == "judge-2" else [])
        )
    report = reviewed(council)
    assert (report["verdict"], [seat["verdict"] for seat in report["seats"]]) == ("WARN", ["PASS"] * 3)
    assert (report["confidence"], report["trust"]["level"]) == ("MEDIUM", "MEDIUM")
    assert "judge-2 said PASS and holds a critical finding" in report["trust"]["because"]
    assert [row["severity"] for row in report["findings"]] == ["critical"]
    text = (shop.folder / report["report_path"]).read_text(encoding="utf-8")
    assert (
        "**judge-2** said PASS and holds a critical finding: inconsistent, so the verdict can be no better than WARN."
        in text
    )
    assert council("gate", "--fail-on", "critical").code == 10
    assert council("gate", "--fail-on", "warn").code == 10


@pytest.mark.behaviour("20-rule-corroborated")
def test_corroborated_requires_evidence_for_a_fail(shop: JudgesWorkspace, council: Terminal) -> None:
    for judge in FOUND:
        shop.judge_answers.said[f"judge/{judge}"] = opinion()
    shop.judge_answers.said["judge/judge-1"] = opinion("FAIL", finding("critical", "somewhere", "It feels wrong."))
    report = reviewed(council, "--rule", "corroborated")
    assert report["verdict"] == "WARN"
    assert "The FAIL of **judge-1** counted as a WARN" in (shop.folder / report["report_path"]).read_text()
    shop.judge_answers.said["judge/judge-1"] = opinion("FAIL", reported(shop.folder, "sql"))
    assert reviewed(council, "--rule", "corroborated")["verdict"] == "FAIL"
