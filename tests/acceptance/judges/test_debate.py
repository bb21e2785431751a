"""Debate: second round, verdict shifts, weak flips and early stop."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.helpers import Json, Terminal
from tests.acceptance.judges.fake_judges import JudgesWorkspace, finding, opinion, second
from tests.fake_provider import Reply

LINE = ("--debate", "validate", "the auth system", "--json")
WEAK = "The others see it so."
HARD = "I missed src/auth/jwt.py:7, where the signature is never looked at."
BUG = finding(
    "critical",
    "src/auth/jwt.py:7",
    "The signature is never checked.",
    quote="return json.loads(base64.b64decode(body))",
)


def split(judges: JudgesWorkspace, after: Json) -> None:
    """judge-1 says FAIL, judge-2 says PASS; `after` is the second-round reply of judge-2."""
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", BUG, key_insight="Anyone can forge a token.")
    judges.judge_answers.said["judge/judge-2"] = opinion("PASS", key_insight="It reads well.")
    judges.judge_answers.said["r2/judge-1"] = second("FAIL", BUG, challenges=[{"target_judge": "judge-2", "claim": "It reads well.", "response": "See line 7."}])  # fmt: skip
    judges.judge_answers.said["r2/judge-2"] = after


def text_of(judges: JudgesWorkspace, report: Json) -> str:
    return (judges.folder / report["report_path"]).read_text(encoding="utf-8")


@pytest.mark.behaviour("issue-3-debate", "20-debate-reply")
def test_the_second_round_continues_the_judges_conversation_with_the_other_verdicts(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    split(judges, second("PASS"))
    assert council(*LINE).code == 0
    for name, other in (("judge-1", "judge-2"), ("judge-2", "judge-1")):
        first, again = judges.request(f"judge/{name}"), judges.request(f"r2/{name}")
        said = json.dumps(judges.judge_answers.said[f"judge/{name}"])
        assert again.model == first.model == name
        assert again.body["messages"][:2] == first.body["messages"]
        assert again.body["messages"][2] == {"role": "assistant", "content": said}
        (prompt,) = (message["content"] for message in again.body["messages"][3:])
        verdict = judges.judge_answers.said[f"judge/{other}"]
        assert f"{other} says {verdict['verdict']}, confidence HIGH:" in prompt
        assert verdict["key_insight"] in prompt
        own = judges.judge_answers.said[f"judge/{name}"]
        assert f"In the first round you said {own['verdict']}, confidence HIGH:" in prompt
        assert own["key_insight"] in prompt
    prompt = judges.request("r2/judge-2").body["messages"][3]["content"]
    assert (
        "- judge-1.F1 (critical security, src/auth/jwt.py:7, quote verified): The signature is never checked." in prompt
    )
    assert "    > return json.loads(base64.b64decode(body))" in prompt
    rules = [
        "In the first round you said PASS", "says FAIL, confidence HIGH", "Your verdict may change only for something specific",
        "a detail you missed, a place in the material, an error of fact", "That others disagree is no reason", "Steel-man", "Challenge: name at least one",
        "Acknowledge: name at least one", "Revise or confirm",
    ]  # fmt: skip
    assert [prompt.index(rule) for rule in rules] == sorted(prompt.index(rule) for rule in rules)
    assert "Devil's advocate" not in prompt


@pytest.mark.behaviour("issue-3-weak-flip", "20-weak-flip", "20-convergence", "20-report-debate")
def test_a_flip_without_evidence_is_flagged_weak_and_convergence_is_reported(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    split(judges, second("FAIL", reason=WEAK, revised_from="PASS"))
    report = council(*LINE).json
    assert report["verdict"] == "FAIL"
    assert [(row["seat"], row["from"], row["to"], row["changed"], row["weak"]) for row in report["shifts"]] == [
        ("judge-1", "FAIL", "FAIL", False, False), ("judge-2", "PASS", "FAIL", True, True),
    ]  # fmt: skip
    text = text_of(judges, report)
    assert "**Rounds:** 2 (independent assessment + adversarial debate)" in text
    assert "**Fidelity:** full" in text
    assert (
        "| judge-2 | PASS | FAIL | yes | The others see it so. **Weak flip: it names no evidence, possible anchoring.** |"
        in text
    )
    assert "**Convergence:** the judges disagreed in R1 and agree in R2." in text
    heads = [
        "### Verdicts",
        "### Verdict Shifts (R1 -> R2)",
        "### Debate Notes",
        "### Shared Findings",
        "### Recommendation",
    ]
    assert [text.index(head) for head in heads] == sorted(text.index(head) for head in heads)
    assert "**judge-1** challenges **judge-2**: It reads well. See line 7." in text
    assert "R1: 2/2 judges responded. R2: 2/2 judges responded." in text


@pytest.mark.behaviour("issue-3-weak-flip", "20-weak-flip")
def test_a_flip_that_cites_a_location_is_not_weak(judges: JudgesWorkspace, council: Terminal) -> None:
    split(judges, second("FAIL", BUG, reason=HARD, revised_from="PASS"))
    report = council(*LINE).json
    assert [row["weak"] for row in report["shifts"]] == [False, False]
    assert "Weak flip" not in text_of(judges, report)
    assert [len(row["found_by"]) for row in report["findings"]] == [2]


@pytest.mark.behaviour("20-findings-stand", "20-critical-excludes-pass")
def test_a_second_round_that_repeats_nothing_keeps_every_finding_of_the_first(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    split(judges, second("PASS"))
    judges.judge_answers.said["r2/judge-1"] = {"verdict": "PASS", "confidence": "HIGH"}
    done = council(*LINE[:-1], "--fail-on", "critical")
    assert done.code == 10
    assert done.out.startswith("WARN  2 of 2 judges\n")
    assert "  1 of 2\n  The signature is never checked.\n" in done.out and "· found by judge-1.F1" in done.out
    assert "judge-1      PASS: Anyone can forge a token." in done.out
    report = council("report", "--format", "json").json
    assert [(row["severity"], row["found_by"]) for row in report["findings"]] == [("critical", ["judge-1"])]
    (row,) = council("report", "--format", "sarif").json["runs"][0]["results"]
    assert (row["level"], row["properties"]["id"]) == ("error", "judge-1.F1")


@pytest.mark.behaviour("issue-3-r2-decides", "20-findings-stand", "20-supports-join")
def test_the_second_round_decides_withdraws_supports_and_settles_by_id(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    typo = finding("minor", "src/auth/jwt.py:5", "The name says too little.", quote="def decode(token):")
    split(judges, second("FAIL", supports=["judge-1.F1"], reason=HARD, revised_from="PASS"))
    judges.judge_answers.said["judge/judge-1"] = opinion("FAIL", BUG, typo)
    judges.judge_answers.said["r2/judge-1"] = second(
        "WARN", reason=HARD, revised_from="FAIL", withdrawn=[{"id": "judge-1.F2", "why": "decode is the usual name."}],
        settled=[{"id": "F1", "severity": "significant", "why": "Line 7 only runs for admins."}], blind_spots=["No test was shown."],
    )  # fmt: skip
    report = council(*LINE).json
    assert report["verdict"] == "FAIL"
    assert [seat["verdict"] for seat in report["seats"]] == ["WARN", "FAIL"]
    (row,) = report["findings"]
    assert (row["id"], row["severity"], row["found_by"]) == ("judge-1.F1", "significant", ["judge-1"])
    assert (row["held_by"], row["of"]) == (["judge-1", "judge-2"], 2)
    assert [(one["id"], one["why"]) for one in report["withdrawn"]] == [("judge-1.F2", "decode is the usual name.")]
    assert report["blind_spots"] == [{"seat": "judge-1", "text": "No test was shown."}]
    text = text_of(judges, report)
    for part in (
        "**Withdrawn Findings**",
        "**Severity Settled**",
        "**Blind Spots**",
        "judge-2 supports it in the second round",
        "found by 1, held by 2 of 2: judge-1, judge-2",
    ):
        assert part in text
    files = [seat["file"] for seat in report["seats"]]
    assert all(file.endswith(f"-the-auth-system-judge-{n}-r2.md") for n, file in enumerate(files, 1))
    assert all((judges.folder / file).exists() and (judges.folder / file.replace("-r2", "")).exists() for file in files)


@pytest.mark.behaviour("issue-3-r2-timeout", "20-report-debate")
def test_a_judge_absent_in_the_second_round_keeps_its_first_verdict(
    judges: JudgesWorkspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNCIL_R2_TIMEOUT", "1")
    split(judges, second("FAIL", BUG, reason=HARD, revised_from="PASS"))
    judges.judge_answers.instead["r2/judge-1"] = Reply(hang=True)
    done = council(*LINE)
    report = done.json
    assert (done.code, report["status"], report["verdict"]) == (0, "complete", "FAIL")
    assert [seat["verdict"] for seat in report["seats"]] == ["FAIL", "FAIL"]
    assert ("judge-1", "r2", "timed_out") in [(row["seat"], row["phase"], row["state"]) for row in report["degraded"]]
    text = text_of(judges, report)
    assert "FAIL (HIGH, R1 verdict (R2 timeout))" in text
    assert "R1: 2/2 judges responded. R2: 1/2 judges responded." in text


@pytest.mark.behaviour("issue-3-r2-timeout", "20-missing-round")
def test_without_second_round_answers_the_first_round_decides(
    judges: JudgesWorkspace, council: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNCIL_R2_TIMEOUT", "1")
    split(judges, second())
    judges.judge_answers.instead |= {f"r2/judge-{n}": Reply(hang=True) for n in (1, 2)}
    done = council(*LINE)
    assert (done.code, done.json["status"], done.json["verdict"]) == (0, "complete", "FAIL")
    assert text_of(judges, done.json).count("R1 verdict (R2 timeout)") >= 2
    assert done.json["confidence"] == done.json["trust"]["level"] == "LOW"
    assert text_of(judges, done.json).count("judge-1 and judge-2 did not answer in round 2 (") == 1
    assert [row["description"] for row in done.json["findings"]] == ["The signature is never checked."]


@pytest.mark.behaviour("issue-3-devils-advocate")
@pytest.mark.parametrize("verdict", ["PASS", "WARN", "FAIL"])
def test_a_unanimous_first_round_gets_the_devils_advocate_prompt(
    judges: JudgesWorkspace, council: Terminal, verdict: str
) -> None:
    for n in (1, 2, 3):
        judges.judge_answers.said[f"judge/judge-{n}"] = opinion(verdict)
        judges.judge_answers.said[f"r2/judge-{n}"] = second(verdict)
    report = council("--deep", *LINE).json
    assert report["verdict"] == verdict
    for n in (1, 2, 3):
        prompt = judges.request(f"r2/judge-{n}").body["messages"][3]["content"]
        steps = [
            "Your verdict may change only",
            "Do not invent a disagreement",
            "Devil's advocate",
            "Blind spot",
            "Confirm or revise",
        ]
        assert [prompt.index(step) for step in steps] == sorted(prompt.index(step) for step in steps)
        assert "Challenge: name at least one" not in prompt
    assert "**Convergence:**" not in text_of(judges, report)
    assert all(not row["changed"] for row in report["shifts"])


@pytest.mark.behaviour("issue-3-debate-of-one")
def test_with_one_judge_left_the_second_round_is_skipped_and_the_report_says_so(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.judge_answers.instead["judge/judge-2"] = Reply(status=401)
    done = council(*LINE)
    assert (done.code, done.json["verdict"]) == (0, "PASS")
    assert not [key for key in judges.steps() if key.startswith("r2/")]
    assert "1 (no debate: only one judge answered the first round)" in text_of(judges, done.json)


@pytest.mark.behaviour("issue-3-debate")
def test_only_judges_that_answered_the_first_round_take_part_in_the_second(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    split(judges, second())
    judges.judge_answers.instead["judge/judge-3"] = Reply(status=401)
    done = council("--deep", *LINE)
    assert sorted(key for key in judges.steps() if key.startswith("r2/")) == ["r2/judge-1", "r2/judge-2"]
    assert "judge-3" not in judges.request("r2/judge-1").body["messages"][3]["content"]
    assert "R1: 2/3 judges responded. R2: 2/2 judges responded." in text_of(judges, done.json)


@pytest.mark.behaviour("10-early-stop-judges")
@pytest.mark.parametrize("verdict", ["PASS", "FAIL"])
def test_early_stop_skips_the_second_round_if_all_agree_with_high_confidence(
    judges: JudgesWorkspace, council: Terminal, verdict: str
) -> None:
    for n in (1, 2, 3):
        judges.judge_answers.said[f"judge/judge-{n}"] = opinion(verdict, *([BUG] if verdict == "FAIL" else []))
    report = council("--early-stop", "--deep", *LINE).json
    assert (report["verdict"], report["calls"]["made"], report["shifts"]) == (
        verdict,
        4 if verdict == "FAIL" else 3,
        [],
    )
    why = f"all 3 judges say {verdict} with HIGH confidence; 3 calls saved"
    assert f"**Rounds:** 1 (no debate: {why})" in text_of(judges, report)


@pytest.mark.behaviour("10-early-stop-judges")
@pytest.mark.parametrize("doubt", [opinion("WARN"), opinion(confidence="MEDIUM"), opinion(confidence="LOW")])
def test_any_disagreement_or_lower_confidence_keeps_the_second_round(
    judges: JudgesWorkspace, council: Terminal, doubt: Json
) -> None:
    judges.judge_answers.said["judge/judge-2"] = doubt
    report = council("--early-stop", *LINE).json
    assert (report["calls"]["made"], len(report["shifts"])) == (4, 2)


@pytest.mark.behaviour("10-early-stop-judges")
def test_the_plan_of_an_early_stop_debate_has_two_call_counts(judges: JudgesWorkspace, council: Terminal) -> None:
    plan = council("--early-stop", "--dry-run", *LINE).json
    assert plan["calls"] == {"min": 2, "max": 5}
    assert [phase["name"] for phase in plan["phases"]] == ["r1", "r2", "grouping"]


# Agreement


@pytest.mark.behaviour("20-shared-recommendation")
@pytest.mark.parametrize(
    ("shared_by", "reason"),
    [
        (["judge-1", "Judge 2"], ""),
        (["judge-1"], "no two members recommended this at first"),
        (["judge-9", "everyone"], "agreement was not assessed"),
        ([], "no two members recommended this at first"),
        (None, "agreement was not assessed"),
    ],
)
def test_a_brainstorm_takes_its_agreement_from_the_judges_that_share_the_recommendation(
    judges: JudgesWorkspace, council: Terminal, shared_by: list[str] | None, reason: str
) -> None:
    told: Json = {"trade_offs": [], "themes": [], "open_questions": [], "recommendation": "Take it."}
    judges.judge_answers.said["consolidate/chair"] = told | ({} if shared_by is None else {"shared_by": shared_by})
    because = council("brainstorm", "caching approaches", "--json").json["trust"]["because"]
    known = ("no two members recommended this at first", "agreement was not assessed", "the seats agree only in part")
    assert [row for row in because if row in known] == ([reason] if reason else [])


@pytest.mark.behaviour("20-one-voice")
def test_a_fallback_in_two_seats_of_the_second_round_is_one_vote_for_trust(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    judges.configure(more="")
    text = judges.config.read_text(encoding="utf-8")
    for n in (1, 2):
        text = text.replace(
            f'model = "sim:judge-{n}"\nfallback = []', f'model = "sim:judge-{n}"\nfallback = ["sim:judge-4"]'
        )
    judges.config.write_text(text, encoding="utf-8")
    judges.judge_answers.instead |= {f"r2/judge-{n}": Reply(status=400) for n in (1, 2)}
    report = council(*LINE).json
    assert [seat["served_by"] for seat in report["seats"]] == ["sim:judge-4"] * 2
    assert report["trust"]["level"] == "LOW"
    because = "; ".join(report["trust"]["because"])
    assert "sim:judge-4 answered for all seats" in because


@pytest.mark.behaviour("20-one-voice")
def test_a_fallback_does_not_confirm_its_own_finding(judges: JudgesWorkspace, council: Terminal) -> None:
    judges.configure(more="")
    text = judges.config.read_text(encoding="utf-8")
    text = text.replace('model = "sim:judge-2"\nfallback = []', 'model = "sim:judge-2"\nfallback = ["sim:judge-1"]')
    judges.config.write_text(text, encoding="utf-8")
    judges.judge_answers.said |= {f"judge/judge-{n}": opinion("FAIL", BUG) for n in (1, 2)}
    judges.judge_answers.instead["judge/judge-2"] = Reply(status=400)
    report = council("validate", "the auth system", "--json").json
    assert [seat["served_by"] for seat in report["seats"]] == ["sim:judge-1"] * 2
    (row,) = report["findings"]
    assert (row["found_by"], row["of"], [one["id"] for one in row["by_judge"]]) == (
        ["judge-1"],
        1,
        ["judge-1.F1", "judge-2.F1"],
    )
    assert (report["consensus"], report["confidence"]) == ([], "LOW")
    shown = council("runs", "replay", report["run"]).out
    assert "2 of 2 (judge" not in shown
    assert "One model answered for several judges by fallback (sim:judge-1 as judge-1, judge-2)" in shown


@pytest.mark.behaviour("20-findings-stand")
def test_a_withdrawn_finding_that_another_judge_supports_does_not_count_its_own_judge(
    judges: JudgesWorkspace, council: Terminal
) -> None:
    split(judges, second("PASS", supports=["judge-1.F1"]))
    judges.judge_answers.said["r2/judge-1"] = second(
        "PASS", withdrawn=[{"id": "judge-1.F1", "why": "Checked by the caller."}]
    )
    report = council(*LINE).json
    (row,) = report["findings"]
    assert (row["found_by"], row["disputed_by"], report["verdict"]) == (["judge-2"], ["judge-1"], "WARN")
    assert "judge-2 said PASS and holds a critical finding" in report["trust"]["because"]


@pytest.mark.behaviour("20-weak-flip")
def test_agreement_by_a_flip_without_evidence_is_not_trusted_fully(judges: JudgesWorkspace, council: Terminal) -> None:
    split(judges, second("FAIL", reason=WEAK, revised_from="PASS"))
    trust = council(*LINE).json["trust"]
    assert trust["level"] == "LOW"  # the first verdicts differ
    assert "judge-2 changed its verdict without citing evidence" in trust["because"]
