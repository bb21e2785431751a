"""Accuracy by trust level: real protocols and rules, simulated members and recorded answers."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

import make_trust_levels
from council.evals.matrix import read_csv
from council.language import LANGUAGES
from council.types import TrustFact
from council.wording import HIGH_ACCURACY_PERCENT, HIGH_COMPETENCE_PERCENT, load_wording
from make_trust_levels import CLAUSE_COMPETENCE, SEATS, STRONG_CORRELATION, Panel
from simulation import NO_ANSWER, Members
from tests.paths import ROOT
from trust_levels import SIMULATED_PROTOCOLS, LevelMeter, LevelTable, Pattern, Share, find_level, make_grid

SEED = 19
COMPETENCES = (0.55, 0.7, 0.9)
CORRELATIONS = (0.0, 0.2, 0.4, 0.6)
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
RECORD = make_trust_levels.read_record()


def find_panel(protocol: str, seats: int, options: int = 4, competence: float = CLAUSE_COMPETENCE) -> Panel:
    return next(
        panel
        for panel in RECORD["panels"]
        if (panel["protocol"], panel["options"]) == (protocol, options) and panel["competence"] == [competence] * seats
    )


@pytest.mark.behaviour("evidence-trust-order")
@pytest.mark.parametrize("name", SIMULATED_PROTOCOLS)
def test_higher_trust_levels_are_right_more_often(name: str) -> None:
    asyncio.run(check_grid(name, COMPETENCES, CORRELATIONS, questions=1000))


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-trust-order")
@pytest.mark.parametrize("conformity", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("name", SIMULATED_PROTOCOLS)
def test_no_lower_trust_level_is_right_more_often_on_the_whole_grid(name: str, conformity: float) -> None:
    grid = (0.55, 0.65, 0.75, 0.9), (*CORRELATIONS, 0.8, 0.95)
    asyncio.run(check_grid(name, *grid, questions=2000, conformity=conformity))


async def check_grid(
    name: str,
    competences: tuple[float, ...],
    correlations: tuple[float, ...],
    *,
    questions: int,
    conformity: float = 0.3,
) -> None:
    meter, compared = LevelMeter(), 0
    for members in make_grid(competences, correlations, conformity=conformity):
        table = await meter.measure(name, members, questions, SEED)
        assert sum(share.total for share in table.levels.values()) == questions
        assert table.list_inversions() == [], table
        compared += sum(share.total >= 100 for share in table.levels.values()) > 1
    assert compared > 1  # several levels have enough cases


@pytest.mark.behaviour("evidence-trust-order")
def test_no_level_is_right_more_often_than_high_unless_members_guess() -> None:
    tables = [table for table in make_trust_levels.list_tables(RECORD) if not table.is_guess]
    compared = [table for table in tables if table.is_comparable and table.levels.get("HIGH", Share(0, 0)).total]
    assert len(compared) > 1000
    assert [table for table in compared if make_trust_levels.has_inverted_high(table)] == []


def test_an_inversion_is_found_between_levels_with_enough_answers() -> None:
    def invert(low: Share, *, is_clear: bool) -> list[tuple[str, str]]:
        return LevelTable("triad", Members(), {"HIGH": Share(140, 200), "LOW": low}).list_inversions(is_clear=is_clear)

    assert invert(Share(180, 200), is_clear=True) == [("LOW", "HIGH")]
    assert invert(Share(145, 200), is_clear=True) == []
    assert invert(Share(145, 200), is_clear=False) == [("LOW", "HIGH")]
    assert invert(Share(99, 99), is_clear=False) == []


# The limit of HIGH


@pytest.mark.behaviour("evidence-high-limit")
def test_the_limit_of_high_trust_is_the_lowest_figure_of_the_record() -> None:
    assert make_trust_levels.find_clause_percent(RECORD) == HIGH_ACCURACY_PERCENT
    assert HIGH_COMPETENCE_PERCENT == 100 * CLAUSE_COMPETENCE
    compared = 0
    for panel in RECORD["panels"]:
        if set(panel["competence"]) == {CLAUSE_COMPETENCE} and "HIGH" in panel["levels"]:
            right, count = panel["levels"]["HIGH"][RECORD["correlations"].index(STRONG_CORRELATION)]
            assert 100 * right >= HIGH_ACCURACY_PERCENT * count, panel
            compared += 1
    assert compared >= len(SEATS) * (len(SIMULATED_PROTOCOLS) - 1)


@pytest.mark.behaviour("evidence-high-limit")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("seats", SEATS)
def test_the_limit_names_its_figure_and_the_competence_in_every_language(language: str, seats: int) -> None:
    names = ("alpha", "beta", "gamma", "delta", "epsilon")[:seats]
    lines = load_wording(language).list_supports("HIGH", [TrustFact("all_agree", "", names, seats)])
    assert len(lines) == 2
    percents = sorted(map(int, re.findall(r"(\d+)[ \u00a0]?%", lines[-1])))
    assert percents == sorted([HIGH_ACCURACY_PERCENT, HIGH_COMPETENCE_PERCENT])


# The record


@pytest.mark.behaviour("evidence-trust-record")
@pytest.mark.parametrize(("protocol", "seats", "options"), [("triad", 2, 2), ("collaborative", 3, 4), ("judges", 3, 3)])
def test_the_record_is_what_the_code_gives(protocol: str, seats: int, options: int) -> None:
    panel = find_panel(protocol, seats, options)
    assert asyncio.run(make_trust_levels.measure_panel(protocol, panel["competence"], options)) == panel


@pytest.mark.sweep
@pytest.mark.behaviour("evidence-trust-record")
@pytest.mark.parametrize("protocol", SIMULATED_PROTOCOLS)
def test_the_whole_record_is_what_the_code_gives(protocol: str) -> None:
    found = [
        asyncio.run(make_trust_levels.measure_panel(protocol, *panel))
        for panel in make_trust_levels.list_panels(protocol)
    ]
    assert found == [panel for panel in RECORD["panels"] if panel["protocol"] == protocol]


@pytest.mark.behaviour("evidence-trust-record")
def test_the_tables_of_the_page_are_those_of_the_record() -> None:
    for name, lines in make_trust_levels.format_parts(RECORD).items():
        assert "\n".join([f"<!-- {name} -->", "", *lines, "", f"<!-- /{name} -->"]) in PAGE, f"{name}: run {COMMAND}"


COMMAND = "python benchmarks/simulated/make_trust_levels.py --tables"


@pytest.mark.behaviour("evidence-trust-record")
def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    make_trust_levels.write_record(RECORD, tmp_path / "record.json")
    assert make_trust_levels.read_record(tmp_path / "record.json") == RECORD
    assert (tmp_path / "record.json").read_bytes() == make_trust_levels.RECORD.read_bytes()


# Levels of patterns


@pytest.mark.parametrize(("name", "split", "agreeing"), [("collaborative", "LOW", "HIGH"), ("adversarial", "LOW", "HIGH"), ("advisors", "LOW", "HIGH"), ("general", "CONTESTED", "HIGH"), ("panel", "LOW", "HIGH")])  # fmt: skip
def test_the_level_follows_from_who_agrees_with_whom(name: str, split: str, agreeing: str) -> None:
    protocol, options = SIMULATED_PROTOCOLS[name]
    assert asyncio.run(find_level(protocol, options, Pattern((0, 1, 2), (0, 1, 2)))) == split
    assert asyncio.run(find_level(protocol, options, Pattern((0, 0, 0), (0, 0, 0)))) == agreeing


@pytest.mark.parametrize(
    ("first", "is_firm", "objects", "level"),
    [
        ((0, 0, 1), (True, True, True), False, "HIGH"),  # the third is not asked
        ((0, 0, 0), (True, False, True), False, "MEDIUM"),
        ((0, 0, 0), (True, True, True), True, "LOW"),  # the author rejects the error
        ((0, 1, 2), (True, True, True), False, "LOW"),
    ],
)
def test_the_level_of_adaptive_follows_from_confidence_and_check(
    first: tuple[int, ...], is_firm: tuple[bool, ...], objects: bool, level: str
) -> None:
    pattern = Pattern(first, first, (), is_firm, objects)
    assert asyncio.run(find_level("adaptive", {}, pattern)) == level


# Recorded answers


@pytest.mark.behaviour("evidence-trust-recorded")
def test_recorded_answers_get_the_level_of_the_real_rules() -> None:
    rows = [(0, 0, 0), (0, 0, 0), (1, 1, 1), (0, 0, 1), (1, 1, 0), (0, 1, 2), (NO_ANSWER, NO_ANSWER, NO_ANSWER)]
    found = asyncio.run(LevelMeter().measure_recorded("triad", rows))
    assert found == {"HIGH": Share(2, 3), "MEDIUM": Share(1, 2), "LOW": Share(1, 2)}


@pytest.mark.behaviour("evidence-trust-recorded")
def test_a_replay_has_every_council_of_the_best_models_and_a_simulated_one_like_it() -> None:
    letters = ["A" if n % 10 < 7 else "B" for n in range(200)]
    others = ["A" if (n * 7) % 10 < 6 else "C" for n in range(200)]
    third = ["A" if (n * 3) % 10 < 8 else "B" for n in range(200)]
    lines = ["question,truth,one/a,two/b,three/c,one/weaker"]
    lines += [f"q{n},A,{a},{b},{c},D" for n, (a, b, c) in enumerate(zip(letters, others, third, strict=True))]
    councils = asyncio.run(make_trust_levels.replay(read_csv(lines), 300))
    assert [council["models"] for council in councils] == [
        ["three/c", "one/a"],
        ["three/c", "two/b"],
        ["one/a", "two/b"],
        ["three/c", "one/a", "two/b"],
    ]
    for council in councils:
        columns = {"three/c": third, "one/a": letters, "two/b": others}
        equal = [
            said for said in zip(*(columns[model] for model in council["models"]), strict=True) if len(set(said)) == 1
        ]
        assert council["levels"]["HIGH"] == Share(sum(said[0] == "A" for said in equal), len(equal))


@pytest.mark.behaviour("evidence-trust-recorded")
def test_simulated_members_are_matched_to_a_correlation_of_right_and_wrong_answers() -> None:
    members = make_trust_levels.match_members(Members((0.7, 0.6, 0.5), options=10), 0.4, 1000)
    assert make_trust_levels.correlate_errors(members, 1000) == pytest.approx(0.4, abs=0.01)
