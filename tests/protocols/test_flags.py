"""What a draft says against itself: open flags, confidence marks, and whether an answer settles them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.protocols.common.flags import (
    Flag,
    choose_leader,
    count_confidence_marks,
    find_flags,
    is_mostly_low,
    list_draft_facts,
    list_flagged_drafts,
    list_unsettled_flags,
)

ROWS = tomllib.loads((Path(__file__).parents[1] / "data" / "critical_flags.toml").read_text())["row"]


# Flags


@pytest.mark.behaviour("10-open-flags")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"][:50])
def test_a_flag_is_a_mark_that_is_not_denied_explained_settled_or_supposed(row: dict[str, Any]) -> None:
    found = find_flags(row["text"])
    assert len(found) == (row.get("count", 1) if row["flag"] else 0)


@pytest.mark.parametrize(
    ("text", "severity", "problem"),
    [
        ("- **Critical:** the licence forbids resale.", "CRITICAL", "the licence forbids resale"),
        ("FATAL: the lock is never released.", "FATAL", "the lock is never released"),
        ("There is no way back (CRITICAL).", "CRITICAL", "There is no way back"),
        ("The load is a guess – **CRITICAL**", "CRITICAL", "The load is a guess"),
        ("Severity: critical. Tokens are in the log.", "CRITICAL", "Tokens are in the log"),
        ("One critical issue remains: the rate is a guess.", "CRITICAL", "the rate is a guess"),
        ("| # | Problem | Level |\n|---|---|---|\n| 1 | No backup | Critical |", "CRITICAL", "No backup"),
        ("**Issue:** the rate is old\n**Severity:** Critical\n**Status:** Open", "CRITICAL", "the rate is old"),
        ("CRITICAL: 1, IMPORTANT: 2, MINOR: 0", "CRITICAL", ""),
        ("The rate is old.\n\n**Critical**", "CRITICAL", "The rate is old"),
        ("## Critical issues", "CRITICAL", ""),
    ],
)
def test_a_flag_names_its_problem_in_a_few_words(text: str, severity: str, problem: str) -> None:
    assert [(flag.severity, flag.text) for flag in find_flags(text)] == [(severity, problem)]


def test_a_flag_at_the_end_of_a_long_sentence_is_found() -> None:
    (flag,) = find_flags("We compared many ways to store it, " * 20 + "and one critical issue remains: no backup")
    assert flag.severity == "CRITICAL"


def test_all_items_below_a_label_are_flags_until_the_next_label() -> None:
    text = "## Critical issues\n\n1. The rate is old.\n2. ~~No owner.~~\n3. None left.\n\n## Minor\n\n- Long."
    assert [flag.text for flag in find_flags(text)] == ["The rate is old"]


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert find_flags(text) is not None
    assert sum(count_confidence_marks(text).values()) >= 0
    assert is_mostly_low(text) in (True, False)


# Which draft leads, and which are flagged


@pytest.mark.parametrize(
    ("drafts", "leader", "flagged"),
    [
        ({"alpha": "CRITICAL: it may lose data.", "beta": "IMPORTANT: slow."}, "beta", ["alpha"]),
        ({"alpha": "No CRITICAL flag.", "beta": "CRITICAL: it fails."}, "alpha", ["beta"]),
        (
            {"alpha": "CRITICAL: one. CRITICAL: two.", "beta": "CRITICAL: none.", "gamma": "**CRITICAL** one"},
            "beta",
            ["alpha", "gamma"],
        ),
        ({"alpha": "CRITICAL / IMPORTANT / MINOR flags: none", "beta": "CRITICAL: x"}, "alpha", ["beta"]),
        ({"alpha": "fine", "beta": "fine"}, "alpha", []),
        ({"alpha": "- CRITICAL — the key is public", "beta": "a critical reading"}, "beta", ["alpha"]),
        ({"alpha": "[Critical] the key is public", "beta": "**CRITICAL:** None."}, "beta", ["alpha"]),
    ],
)
def test_without_a_triage_the_draft_with_the_fewest_critical_flags_leads(
    drafts: dict[str, str], leader: str, flagged: list[str]
) -> None:
    assert choose_leader(drafts) == leader
    assert list_flagged_drafts(drafts) == flagged


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("**Issue:** the rate is old\n**Severity:** Critical\n**Status:** Resolved", []),
        ("- Critical path: the tests are slow.", []),
        ("The CRITICAL PATH is long.", []),
        ("A CRITICAL log event is written.", []),
        ("logging.CRITICAL is used.", []),
        ("CRITICAL_SECTION is entered.", []),
        ("There is a severe problem with the tyres.", []),
        ("No backup (CRITICAL)", ["No backup"]),
        ("Critical issues: none were found", []),
        ("No claim here is CRITICAL", []),
        ("No backup is CRITICAL.", ["No backup is"]),
        ("| Critical | Minor |\n|---|---|\n| | typo |", []),
        ("### Critical\n\nNote:\n\n- the key leaks\n", ["the key leaks"]),
        ("Is it CRITICAL? No.", []),
        ("Formerly CRITICAL, it remains open.", ["Formerly CRITICAL, it remains open"]),
        ("It is no longer CRITICAL", []),
        ("Downgraded from CRITICAL to MINOR.", []),
        ("CRITICAL (breaks the run), IMPORTANT (slows it), MINOR (style).", []),
        ("CRITICAL (breaks the run): the key leaks.", ["the key leaks"]),
        ("This is CRITICAL if not fixed.", ["This is CRITICAL if not fixed"]),
        ("A CRITICAL flaw would stop us.", []),
        ("CRITICAL none", []),
    ],
)
def test_a_word_of_severity_is_a_flag_by_its_place_and_the_words_around_it(text: str, problems: list[str]) -> None:
    assert [flag.text for flag in find_flags(text)] == problems


# Confidence marks


@pytest.mark.behaviour("10-confidence-marks")
@pytest.mark.parametrize(
    ("text", "high", "medium", "low"),
    [
        ("Postgres is enough (HIGH). It scales to 10 TB (MEDIUM). It stays free [LOW].", 1, 1, 1),
        ("**HIGH** – it works.\n**LOW**: it is cheap.", 1, 0, 1),
        ("Confidence: LOW", 0, 0, 1),
        ("It holds (confidence: low).", 0, 0, 1),
        ("**Confidence:** Medium", 0, 1, 0),
        ("It holds (HIGH confidence), and it is cheap (low confidence).", 1, 0, 1),
        ("It holds — HIGH.", 1, 0, 0),
        ("- HIGH: it holds\n- LOW: it is cheap", 1, 0, 1),
        ("It holds (MEDIUM-HIGH).", 0, 1, 0),
        ("My confidence in this figure is low.", 0, 0, 1),
        ("It holds (**HIGH**).", 1, 0, 0),
        ("| Claim | Confidence |\n|---|---|\n| It holds | High |\n| It is cheap | low |", 1, 0, 1),
        ("| Option | Risk | Confidence |\n|---|---|---|\n| A | LOW | HIGH |", 1, 0, 0),
        ("Es hält (HOCH). Es ist billig (NIEDRIG). Konfidenz: mittel", 1, 1, 1),
        ("Ça tient (ÉLEVÉE). Confiance : faible", 1, 0, 1),
        ("Funciona (ALTA). Confianza: baja", 1, 0, 1),
        # no marks
        ("Claims are marked (HIGH), (MEDIUM) or (LOW).", 0, 0, 0),
        ("Marks: HIGH / MEDIUM / LOW", 0, 0, 0),
        ("The cost is (low), the risk high.", 0, 0, 0),
        ("Risk: HIGH\nImpact (HIGH)\n- Effort: **LOW**", 0, 0, 0),
        ("A **HIGH** load and a low price.", 0, 0, 0),
        ("| Risk | Impact |\n|---|---|\n| Fire | HIGH |", 0, 0, 0),
        ("```python\nlevel(HIGH)  # (HIGH)\n```", 0, 0, 0),
        ("", 0, 0, 0),
    ],
)
def test_confidence_marks_are_counted_and_other_scales_are_not(text: str, high: int, medium: int, low: int) -> None:
    assert count_confidence_marks(text) == {"HIGH": high, "MEDIUM": medium, "LOW": low}


@pytest.mark.behaviour("10-confidence-marks")
@pytest.mark.parametrize(
    ("text", "low"),
    [
        ("It works (LOW). It is cheap (LOW). It is fast (HIGH).", True),
        ("It works (HIGH). It is cheap (LOW).", False),
        ("It works (HIGH). It is cheap (HIGH). It is fast (LOW).", False),
        ("Use Postgres (LOW).\n\nIt is free (HIGH). It is old (HIGH). It is known (HIGH).", True),
        ("# Postgres or MySQL\n\nUse Postgres. (LOW)\n\nIt is free (HIGH) and old (HIGH).", True),
        ("It is free (HIGH) and old (HIGH).\n\n## Recommendation\n\nUse Postgres (LOW).", True),
        ("It is free (HIGH) and old (HIGH).\n\nOverall confidence: LOW", True),
        ("It is free (HIGH) and old (HIGH).\n\n**Fazit:** Postgres (NIEDRIG).", True),
        ("It is free (HIGH) and old (HIGH).\n\nOverall confidence: MEDIUM, costs (LOW)", False),
        ("Use Postgres.", False),
    ],
)
def test_a_draft_is_unsure_if_its_conclusion_or_most_claims_are_marked_low(text: str, low: bool) -> None:
    assert is_mostly_low(text) is low


# What the answer settles

LEGAL = "Sell it.\n\n## Validation Notes\n- CRITICAL: the licence of the map data forbids commercial resale."
BACKUP = "Move.\n\nCRITICAL: no restore of the customer database was ever tested."


@pytest.mark.behaviour("10-unsettled-flags")
@pytest.mark.parametrize(
    ("draft", "answer", "unsettled"),
    [
        (LEGAL, "Sell it now. It will be a success.", 1),
        (LEGAL, "Sell it.\n\n**Caveat:** the licence of the map data may forbid commercial resale.", 0),
        (LEGAL, "Sell it, but first check whether the licence of the map data allows resale.", 0),
        (LEGAL, "Sell it.\n\n## Next steps\n\n1. Ask the owner of the map data for a licence that covers resale.", 0),
        (LEGAL, "Sell it. The map data are excellent, and resale is where the margin is.", 1),
        (LEGAL, "Sell it. A licence is not expensive.", 1),
        (BACKUP, "Move.\n\n1. Restore the customer database from a backup as a test before the move.", 0),
        (BACKUP, "Move. The customer database is small.", 1),
        (BACKUP, "Move. It is not necessary to test a restore of the customer database.", 1),
        (BACKUP, "", 1),
        ("CRITICAL: backup", "Before the move, test the backup.", 1),  # one word could be about anything
        ("CRITICAL: 1, IMPORTANT: 0", "Check everything before the move.", 1),
        ("**KRITISCH:** Die Lizenz der Kartendaten verbietet den Verkauf.", "Verkaufen.", 1),
        (
            "**KRITISCH:** Die Lizenz der Kartendaten verbietet den Verkauf.",
            "Verkaufen, aber vorher die Lizenz der Kartendaten prüfen: der Verkauf ist offen.",
            0,
        ),
        ("CRITICAL: None.", "Move.", 0),
    ],
)
def test_a_flag_is_settled_only_if_a_caveat_or_a_step_takes_it_up(draft: str, answer: str, unsettled: int) -> None:
    assert len(list_unsettled_flags({"alpha": draft}, answer)) == unsettled


def test_unsettled_flags_name_their_seats() -> None:
    drafts = {"alpha": LEGAL, "beta": "Sell it.", "gamma": BACKUP}
    assert list_unsettled_flags(drafts, "Sell it.") == [
        ("alpha", Flag("CRITICAL", "the licence of the map data forbids commercial resale")),
        ("gamma", Flag("CRITICAL", "no restore of the customer database was ever tested")),
    ]


@pytest.mark.behaviour("10-unsettled-flags")
def test_drafts_against_a_merged_answer_become_facts() -> None:
    drafts = {"alpha": LEGAL, "beta": "Sell it (LOW).", "gamma": BACKUP}
    flags, marks = list_draft_facts(drafts, "Sell it.")
    assert (flags.kind, flags.seats, flags.count) == ("unsettled_flag", ("alpha", "gamma"), 2)
    assert flags.detail == "the licence of the map data forbids commercial resale"
    assert (marks.kind, marks.seats) == ("low_marks", ("beta",))
    assert list_draft_facts({"alpha": "Sell it (HIGH)."}, "Sell it.") == []
