"""The clerk groups the findings of several judges: its request, its groups, its failures, and the gate."""

from __future__ import annotations

import json
import re

import pytest

from tests.acceptance.helpers import Json, Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, opinion, second
from tests.fake_provider import Reply, Seen

LINE = ("validate", "src/auth", "--json")
QUOTE = "return json.loads(base64.b64decode(body))"
SPLIT = 'head, body, signature = token.split(".")'
FORGED = finding("critical", "src/auth/jwt.py:7", "The signature is never checked.", quote=QUOTE)
UNUSED = finding(
    "significant", "src/auth/jwt.py:3", "A caller may hand in what it likes.", quote=SPLIT, category="auth"
)
CHECK = finding(
    "significant",
    "src/auth/jwt.py:11",
    "`key` is ignored, so `decode` and `check` accept anything.",
    quote="claims = decode(token)",
)
GUARD = finding(
    "minor", "src/auth/middleware.py:2", "A user without rights passes.", quote="return request.user is not None"
)


def script(judges: JudgesWorkspace, *found: list[Json]) -> None:
    for n, findings in enumerate(found, 1):
        judges.judge_answers.said[f"judge/judge-{n}"] = opinion("WARN", *findings)


def shown(judges: JudgesWorkspace) -> dict[str, str]:
    """Return the findings that the clerk was shown by their ids, each with the number of its place."""
    prompt = judges.request("clerk/fast").body["messages"][1]["content"]
    return {
        text: label
        for label, text in re.findall(
            r"(F\d+)[^\n]*\n(?:[^\n]*\n)*?Place: [^\n]*\n(?:Category[^\n]*\n)?(?:Quote[^\n]*\n)?([^\n]+)", prompt
        )
    }


def group(*descriptions: str, defect: str = "The signature is not verified.", form: str = "") -> object:
    """Answer with one group of the findings with these descriptions, in a form that models use."""

    def answer(seen: Seen) -> Reply:
        prompt = seen.body["messages"][1]["content"]
        at = {text: prompt.index(text) for text in descriptions}
        labels = [re.findall(r"\bF\d+\b", prompt[:place])[-1] for place in at.values()]
        row: Json = {"findings": labels, "defect": defect}
        forms = {
            "": json.dumps({"groups": [row]}),
            "lists": json.dumps({"groups": [labels]}),
            "text": json.dumps({"groups": [", ".join(labels)]}),
            "one text": json.dumps({"groups": [{"findings": ", ".join(labels), "defect": defect}]}),
            "prose": json.dumps(
                {"groups": [{"findings": [f"{label} (the same)" for label in labels], "defect": defect}]}
            ),
            "wrapped": f"Here are the groups:\n```json\n{json.dumps({'result': {'groups': [row]}})}\n```",
            "named": json.dumps({"groups": {defect: labels}}),
            "other names": json.dumps({"defects": [{"ids": labels, "description": defect}]}),
            "bare list": json.dumps([row]),
        }
        return Reply(text=forms[form])

    return answer


def rows(report: Json) -> list[tuple[list[str], str, str]]:
    return [(row["found_by"], row["grouped_by"], row["defect"]) for row in report["findings"]]


@pytest.mark.behaviour("20-clerk-groups")
@pytest.mark.parametrize(
    "form", ["", "lists", "text", "one text", "prose", "wrapped", "named", "other names", "bare list"]
)
def test_findings_in_one_definition_are_joined_by_the_clerk_in_any_form_of_its_reply(
    judges: JudgesWorkspace, council: Terminal, form: str
) -> None:
    script(judges, [FORGED], [UNUSED])
    judges.judge_answers.instead["clerk/fast"] = group(FORGED["description"], UNUSED["description"], form=form)  # type: ignore[assignment]
    report = council(*LINE).json
    ((found_by, by, defect),) = rows(report)
    assert (found_by, by) == (["judge-1", "judge-2"], "clerk")
    assert defect in ("The signature is not verified.", "")
    assert (report["grouping"]["by"], report["grouping"]["clerk"]) == ("clerk", "answered")
    assert judges.steps().count("clerk/fast") == 1
    text = (judges.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "**Grouping:** by the clerk, checked by code" in text
    assert "2 of 2: judge-1, judge-2" in text


@pytest.mark.behaviour("20-clerk-groups")
def test_the_clerk_sees_ids_places_and_words_but_no_judge_and_no_severity(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    script(judges, [FORGED, GUARD], [UNUSED])
    council(*LINE)
    seen = judges.request("clerk/fast")
    prompt = seen.body["messages"][1]["content"]
    assert "Place: src/auth/jwt.py:7, in decode" in prompt
    assert "Place: src/auth/jwt.py:6, in decode" in prompt  # the line of the quote, not the stated one
    assert f"Quote: {QUOTE}" in prompt
    assert "def check(token, key)" not in prompt  # the material is not sent again
    for hidden in ("judge-1", "judge-2", "critical", "significant"):
        assert hidden not in prompt
    schema = seen.body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["groups"]["items"]["properties"]["findings"]["items"]["enum"] == ["F1", "F2", "F3"]


@pytest.mark.behaviour("20-clerk-groups")
@pytest.mark.parametrize("found", [([FORGED], []), ([], []), ([FORGED, GUARD], [])])
def test_without_findings_of_two_judges_there_is_no_clerk(
    judges: JudgesWorkspace, council: Terminal, found: tuple[list[Json], ...]
) -> None:
    script(judges, *found)
    report = council(*LINE).json
    assert not [key for key in judges.steps() if key.startswith("clerk")]
    assert report["grouping"] == {"by": "rule", "clerk": "unneeded", "why": "fewer than two judges have findings"}
    assert report["calls"]["made"] == 2


@pytest.mark.behaviour("20-clerk-optional")
def test_no_clerk_groups_by_rule_and_is_in_the_plan_and_the_report(judges: JudgesWorkspace, council: Terminal) -> None:
    script(judges, [FORGED], [FORGED, UNUSED])
    plan = council("--no-clerk", "--dry-run", *LINE).json
    assert plan["calls"] == {"min": 2, "max": 2}
    report = council("--no-clerk", *LINE).json
    assert rows(report) == [(["judge-1", "judge-2"], "rule", ""), (["judge-2"], "", "")]
    assert report["calls"]["made"] == 2
    assert report["grouping"]["clerk"] == "off"
    text = (judges.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "**Grouping:** by rule, without a clerk" in text


@pytest.mark.behaviour("20-clerk-optional")
@pytest.mark.parametrize("reply", [Reply(status=401), Reply(text="I cannot do that."), Reply(text="{}")])
def test_a_failed_clerk_leaves_the_verdict_and_the_rule(
    judges: JudgesWorkspace, council: Terminal, reply: Reply
) -> None:
    judges.configure(more='[seats.clerk]\nmodel = "sim:fast"\nfallback = []\n')
    script(judges, [FORGED], [FORGED, UNUSED])
    judges.judge_answers.instead["clerk/fast"] = lambda seen: reply
    done = council(*LINE)
    report = done.json
    assert (done.code, report["status"], report["verdict"]) == (0, "complete", "WARN")
    assert rows(report) == [(["judge-1", "judge-2"], "rule", ""), (["judge-2"], "", "")]
    assert report["grouping"]["clerk"] == "absent"
    assert [row["seat"] for row in report["degraded"] if row["seat"]] == ["clerk"]
    assert report["quorum"] == {"needed": 1, "ok": 2, "asked": 2}
    text = (judges.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "**Grouping:** by rule: the clerk did not answer" in text
    assert "What follows is from two of two seats." not in text


@pytest.mark.behaviour("20-clerk-checked")
def test_a_clerk_that_is_wrong_makes_no_false_group_and_the_reader_knows(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    script(judges, [FORGED, GUARD], [UNUSED], [CHECK])
    wild = {"groups": [{"findings": ["F1", "F2", "F3", "F4", "F77"], "defect": "All."}]}
    judges.judge_answers.said["clerk/fast"] = wild
    report = council("--deep", *LINE).json
    guard = next(row for row in report["findings"] if row["path"] == "src/auth/middleware.py")
    assert guard["found_by"] == ["judge-1"]
    assert max(len(row["found_by"]) for row in report["findings"]) == 2  # one definition
    text = (judges.folder / report["report_path"]).read_text(encoding="utf-8")
    assert 'The clerk named "F77", which is no finding.' in text
    one = {"groups": [{"findings": [f"F{n}" for n in range(1, 5)], "defect": "All."}]}
    script(judges, [FORGED, GUARD], [UNUSED, GUARD | {"quote": "def guard(request):", "description": "No docstring."}])
    judges.judge_answers.said["clerk/fast"] = one
    report = council(*LINE).json
    assert all(len({row["path"]}) == 1 for row in report["findings"])
    assert len(report["findings"]) >= 2


@pytest.mark.behaviour("20-clerk-groups", "20-supports-join")
def test_in_a_debate_the_clerk_groups_once_what_remains_after_the_second_round(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    script(judges, [FORGED, GUARD], [UNUSED], [])
    judges.judge_answers.said["r2/judge-1"] = second(
        "WARN", withdrawn=[{"id": "F2", "why": "guard is for another case."}]
    )
    judges.judge_answers.said["r2/judge-2"] = second("WARN", supports=["judge-1.F1"])
    judges.judge_answers.said["r2/judge-3"] = second("WARN", supports=["judge-1.F1", "judge-9.F1", "F1"])
    judges.judge_answers.instead["clerk/fast"] = group(FORGED["description"], UNUSED["description"])  # type: ignore[assignment]
    report = council("--deep", "--debate", *LINE).json
    assert judges.steps()[-1] == "clerk/fast"
    assert judges.steps().count("clerk/fast") == 1
    assert GUARD["description"] not in judges.request("clerk/fast").body["messages"][1]["content"]
    (row,) = report["findings"]
    assert (row["found_by"], row["held_by"], row["of"]) == (
        ["judge-1", "judge-2"],
        ["judge-1", "judge-2", "judge-3"],
        3,
    )
    text = (judges.folder / report["report_path"]).read_text(encoding="utf-8")
    assert "found by 2, held by 3 of 3: judge-1, judge-2, judge-3" in text
    assert 'judge-3 supports "judge-9.F1", which is no finding: the support does not count.' in text
    assert 'judge-3 supports "F1" without naming its judge: the support does not count.' in text
    schema = judges.request("r2/judge-1").body["response_format"]["json_schema"]["schema"]["properties"]
    ids = ["judge-1.F1", "judge-1.F2", "judge-2.F1"]
    assert schema["supports"]["items"]["enum"] == ids
    assert schema["withdrawn"]["items"]["properties"]["id"]["enum"] == ids
    assert schema["settled"]["items"]["properties"]["id"]["enum"] == ids
    challenge = schema["debate_notes"]["properties"]["challenges"]["items"]["properties"]
    assert challenge["finding"]["enum"] == ["", *ids]


@pytest.mark.behaviour("20-second-round-shows-checks")
def test_the_second_round_shows_corrected_places_and_whether_quotes_were_found(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    invented = GUARD | {"quote": "return request.admin", "location": "src/auth/middleware.py:2"}
    missing = finding("minor", "src/auth/jwt.py:9", "There is no test.", quote="")
    nowhere = finding("minor", "", "It has no owner.", quote="")
    script(
        judges, [UNUSED, invented], [missing, nowhere, finding("minor", "src/auth/jwt.py:900", "Too long.", quote="")]
    )
    council("--debate", *LINE)
    for seat in ("judge-1", "judge-2"):
        prompt = judges.request(f"r2/{seat}").body["messages"][3]["content"]
        for line in (
            "- judge-1.F1 (significant auth, src/auth/jwt.py:6, stated as line 3, quote verified): A caller may",
            f"    > {SPLIT}",
            "- judge-1.F2 (minor security, src/auth/middleware.py:2, quote not found): A user",
            "    > return request.admin",
            "- judge-2.F2 (minor security, no place): It has no owner.",
            "- judge-2.F3 (minor security, src/auth/jwt.py:900, no such line in the material): Too long.",
        ):
            assert line in prompt


# The gate


@pytest.mark.behaviour("50-gate-corroborated")
def test_the_gate_counts_a_lone_fail_without_evidence_as_a_warning_and_says_so(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    invented = FORGED | {"quote": "verify = False", "severity": "significant"}
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", invented)
    judges.judge_answers.said["judge/judge-2"] = opinion("PASS")
    report = council(*LINE).json
    assert report["verdict"] == "FAIL"  # validate keeps its rule
    assert report["by_rule"] == {"consensus": "FAIL", "corroborated": "WARN"}
    passed = council("gate")
    assert passed.code == 0
    assert passed.out.strip().endswith(
        "the FAIL of judge-1 counts as WARN, because its evidence was not found (--rule consensus fails on it)"
    )
    assert council("gate", "--rule", "consensus").code == 10
    assert council("gate", "--fail-on", "warn").code == 10
    told = council("gate", "--json").json
    assert (told["verdict"], told["rule"], told["exit"]) == ("WARN", "corroborated", 0)


@pytest.mark.behaviour("50-gate-corroborated")
def test_the_gate_fails_on_a_fail_whose_quote_was_found(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", FORGED)
    judges.judge_answers.said["judge/judge-2"] = opinion("PASS")
    council(*LINE)
    for rule in ("corroborated", "consensus"):
        done = council("gate", "--rule", rule)
        assert done.code == 10
        assert "counts as WARN" not in done.out
