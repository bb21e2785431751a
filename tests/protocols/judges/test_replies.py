"""Replies of judges, explorers and the chair: schema, parsing and rendering."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.engine.reply import Reply, build_schema, parse_reply
from council.errors import Fault
from council.members.scripted import example_value
from council.protocols.judges.replies import (
    Consolidation,
    Exploration,
    Facets,
    Lookups,
    Opinion,
    Options,
    SecondOpinion,
    SubQuestions,
)

ALL = (Opinion, SecondOpinion, Options, Facets, SubQuestions, Lookups, Exploration, Consolidation)
FOUND: dict[str, Any] = {
    "severity": "critical", "category": "security", "description": "The token is never checked.", "location": "src/auth.py:12",
    "quote": "return decode(token)", "recommendation": "Check it.", "fix": "Call verify().", "why": "It was forgotten.", "ref": "RFC 7519",
}  # fmt: skip
OPINION: dict[str, Any] = {
    "verdict": "FAIL", "confidence": "HIGH", "key_insight": "Anyone can log in.", "findings": [FOUND],
    "recommendation": "Do not ship.", "schema_version": 2,
}  # fmt: skip
NOTES: dict[str, Any] = {
    "revised_from": "PASS", "steel_man": "It is behind a proxy.",
    "challenges": [{"target_judge": "judge-2", "claim": "It is checked.", "response": "Not in src/auth.py:12."}],
    "acknowledgments": [{"source_judge": "judge-3", "point": "No test covers it.", "impact": "I looked again."}],
}  # fmt: skip
SECOND = OPINION | {"restated": "I said PASS.", "debate_notes": NOTES, "reason": "src/auth.py:12 returns early."}


def said(reply: type[Reply], value: Any) -> Any:
    return parse_reply(reply, json.dumps(value), {})


def objects(node: Any) -> list[dict[str, Any]]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    own = [node] if isinstance(node, dict) and node.get("type") == "object" else []
    return own + [found for item in inner for found in objects(item)]


# Schemas


@pytest.mark.behaviour("house-strict-schemas")
@pytest.mark.parametrize("reply", ALL)
def test_a_schema_is_strict_and_can_be_answered(reply: type[Reply]) -> None:
    schema = build_schema(reply, {})
    for node in objects(schema):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    assert set(re.findall(r'"minItems": (\d+)', json.dumps(schema))) <= {"1"}  # the only value that every dialect has
    answer = said(reply, example_value(schema, agree=True))
    assert answer.prose()


@pytest.mark.behaviour("20-verdict-schema")
def test_the_verdict_schema_has_the_specified_values_and_order() -> None:
    properties = build_schema(Opinion, {})["properties"]
    assert list(properties) == ["verdict", "confidence", "key_insight", "findings", "recommendation", "schema_version"]
    assert properties["verdict"]["enum"] == ["PASS", "WARN", "FAIL"]
    assert properties["confidence"]["enum"] == ["HIGH", "MEDIUM", "LOW"]
    assert properties["schema_version"]["enum"] == [2]
    finding = properties["findings"]["items"]["properties"]
    assert list(finding) == list(FOUND)
    assert finding["severity"]["enum"] == ["critical", "significant", "minor"]
    assert "enum" not in finding["category"]


@pytest.mark.behaviour("20-debate-reply")
def test_the_second_round_debates_and_changes_before_it_rules() -> None:
    properties = build_schema(SecondOpinion, {"target_judge": ["judge-2"]})["properties"]
    assert list(properties) == [
        "debate_notes", "reason", "withdrawn", "supports", "settled", "blind_spots", "verdict", "confidence", "key_insight",
        "findings", "recommendation", "schema_version",
    ]  # fmt: skip
    assert list(properties["withdrawn"]["items"]["properties"]) == ["id", "why"]
    notes = properties["debate_notes"]["properties"]
    assert list(notes) == ["revised_from", "steel_man", "challenges", "acknowledgments"]
    assert list(notes["challenges"]["items"]["properties"]) == ["target_judge", "finding", "claim", "response"]
    assert list(notes["acknowledgments"]["items"]["properties"]) == ["source_judge", "point", "impact"]
    assert notes["challenges"]["items"]["properties"]["target_judge"]["enum"] == ["judge-2"]


# Parsing verdicts


@pytest.mark.behaviour("20-verdict-schema")
def test_a_complete_opinion_is_parsed_unchanged() -> None:
    assert said(Opinion, OPINION).model_dump() == OPINION


@pytest.mark.behaviour("20-schema-version-zero")
@pytest.mark.parametrize("old", [{}, {"schema_version": None}])
def test_a_missing_version_is_read_as_zero_and_its_fields_may_be_missing(old: dict[str, Any]) -> None:
    bare = {"severity": "minor", "description": "Unclear name."}
    value = {key: item for key, item in OPINION.items() if key != "schema_version"} | old | {"findings": [bare]}
    opinion = said(Opinion, value)
    assert opinion.schema_version == 0
    assert (opinion.findings[0].fix, opinion.findings[0].ref) == ("", "")


@pytest.mark.behaviour("20-verdict-schema")
def test_any_word_is_a_category_and_any_case_is_a_verdict() -> None:
    opinion = said(
        Opinion,
        OPINION | {"verdict": " fail ", "findings": [FOUND | {"category": "licensing", "severity": "Critical"}]},
    )
    assert (opinion.verdict, opinion.findings[0].category, opinion.findings[0].severity) == (
        "FAIL",
        "licensing",
        "critical",
    )


def test_null_text_is_parsed_as_an_empty_string() -> None:
    (finding,) = said(Opinion, OPINION | {"findings": [FOUND | {"fix": None, "location": None}]}).findings
    assert (finding.fix, finding.location) == ("", "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdict": "MAYBE"}, 'verdict: "MAYBE" is not one of PASS, WARN, FAIL'),
        (
            {"findings": [FOUND, FOUND | {"severity": "urgent"}]},
            'findings 2, severity: "urgent" is not one of critical, significant, minor',
        ),
        ({"findings": 3}, "findings: 3 is not a list"),
        ({"confidence": None}, "confidence: null is not one of HIGH, MEDIUM, LOW"),
    ],
)
def test_a_value_outside_the_schema_is_a_fault(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Fault, match=words):
        said(Opinion, OPINION | change)


@pytest.mark.behaviour("issue-3-inconsistent-judge")
def test_a_pass_with_a_critical_finding_is_parsed_unchanged() -> None:
    opinion = said(Opinion, OPINION | {"verdict": "PASS"})
    assert (opinion.verdict, opinion.findings[0].severity) == ("PASS", "critical")


# Parsing the debate


@pytest.mark.behaviour("20-debate-reply")
@pytest.mark.parametrize(
    ("value", "read_as"), [("PASS", "PASS"), ("warn", "WARN"), (None, None), ("", None), ("none", None)]
)
def test_revised_from_is_a_verdict_or_nothing(value: Any, read_as: str | None) -> None:
    second = said(SecondOpinion, SECOND | {"debate_notes": NOTES | {"revised_from": value}})
    assert second.debate_notes.revised_from == read_as


@pytest.mark.behaviour("20-debate-reply")
def test_only_texts_from_the_debate_count_as_reasons_for_a_change() -> None:
    assert said(SecondOpinion, SECOND).revision_reasons == (
        "src/auth.py:12 returns early.",
        "No test covers it.",
        "I looked again.",
    )


def test_a_challenge_to_an_unknown_judge_is_left_out_without_a_repair_turn() -> None:
    reply = parse_reply(SecondOpinion, json.dumps(SECOND), {"target_judge": ["judge-1"]})
    assert (reply.verdict, reply.debate_notes.challenges) == (SECOND["verdict"], [])
    assert reply.unread == ["debate notes, challenges 1, target judge"]


# Explorers


@pytest.mark.behaviour("20-explorer-replies")
def test_an_explorer_asks_for_files_names_and_patterns() -> None:
    files = [{"path": "src/a.py", "first": 3, "last": 9}, {"path": "src/b.py", "first": 0, "last": 0}]
    wants = said(Lookups, {"exploration": None, "files": files, "names": ["*auth*"], "patterns": ["def verify"]})
    assert not wants.is_done
    assert wants.prose().splitlines() == [
        "- read src/a.py:3-9",
        "- read src/b.py",
        "- find *auth*",
        "- search def verify",
    ]


@pytest.mark.behaviour("20-explorer-replies")
def test_an_explorer_is_done_when_it_writes_up_findings_evidence_and_assessment() -> None:
    written = {"findings": ["It is checked."], "evidence": [], "assessment": "Fine."}
    done = said(Lookups, {"exploration": written})
    assert done.is_done
    assert done.prose() == "## Findings\n- It is checked.\n\n## Evidence\n- none\n\n## Assessment\nFine."


@pytest.mark.parametrize(
    "value",
    [{}, {"names": [""]}, {"files": [{"path": "a", "first": 9, "last": 3}]}, {"files": [{"path": "a", "first": -1}]}],
    ids=["nothing", "blank", "backwards", "negative"],
)
def test_an_invalid_look_up_request_is_a_fault(value: Any) -> None:
    with pytest.raises(Fault) as caught:
        said(Lookups, value)
    assert caught.value.kind == "schema"


@pytest.mark.parametrize(("reply", "empty"), [(SubQuestions, {"questions": []}), (Options, {"options": [], "recommendation": "x"})])  # fmt: skip
def test_an_empty_list_is_a_fault(reply: type[Reply], empty: Any) -> None:
    with pytest.raises(Fault, match="give at least one"):
        said(reply, empty)


# Rendering


def test_an_opinion_reads_as_verdict_insight_findings_and_next_step() -> None:
    assert Opinion(**OPINION).prose().split("\n\n") == [
        "**Verdict: FAIL** (confidence HIGH)",
        "Anyone can log in.",
        "1. **critical** security `src/auth.py:12`: The token is never checked.\n"
        "   - Quote: return decode(token)\n   - Recommendation: Check it.\n   - Fix: Call verify().\n   - Why: It was forgotten.\n   - Ref: RFC 7519",
        "Recommendation: Do not ship.",
    ]


def test_a_second_opinion_adds_what_was_debated() -> None:
    assert SecondOpinion(**SECOND).prose().split("\n\n")[4:] == [
        "First position: I said PASS.",
        "Steel-man: It is behind a proxy.",
        "Challenge to judge-2: It is checked. Not in src/auth.py:12.",
        "Acknowledged from judge-3: No test covers it. I looked again.",
        "Revised from PASS: src/auth.py:12 returns early.",
    ]


@pytest.mark.behaviour("20-survey-replies")
def test_options_render_with_pros_and_cons() -> None:
    option = {"name": "Redis", "what": "A cache.", "pros": ["fast"], "cons": ["one more part"], "assessment": "Good."}
    prose = said(Options, {"options": [option], "recommendation": "Redis."}).prose()
    assert (
        prose
        == "### Redis\nA cache.\nFor:\n- fast\nAgainst:\n- one more part\nAssessment: Good.\n\nRecommendation: Redis."
    )


@pytest.mark.behaviour("20-survey-replies")
def test_facets_render_with_findings_and_open_questions() -> None:
    value = {"facets": [{"name": "Cost", "findings": ["low"]}], "findings": ["It pays."], "open_questions": ["Who?"], "recommendation": "Go."}  # fmt: skip
    prose = said(Facets, value).prose()
    assert prose == "### Cost\n- low\n\nFindings:\n- It pays.\n\nOpen questions:\n- Who?\n\nRecommendation: Go."


@pytest.mark.behaviour("20-survey-replies")
def test_a_consolidation_renders_only_the_fields_of_its_task() -> None:
    trade = {"option": "Redis", "buys": "Speed.", "costs": "Upkeep."}
    assert said(Consolidation, {"trade_offs": [trade], "recommendation": "Go."}).prose() == (
        "### Trade-offs\n- **Redis**: Speed. Costs: Upkeep.\n\nRecommendation: Go."
    )
    theme = {"name": "Cost", "findings": ["Low (judge-1)."]}
    assert said(Consolidation, {"themes": [theme], "open_questions": ["Who?"], "recommendation": "Go."}).prose() == (
        "### Cost\n- Low (judge-1).\n\nOpen questions:\n- Who?\n\nRecommendation: Go."
    )


@given(st.text(max_size=200))
def test_any_text_of_a_judge_is_a_reply_or_a_fault(text: str) -> None:
    for reply in ALL:
        try:
            parse_reply(reply, text, {})
        except Fault as fault:
            assert fault.kind == "schema"
