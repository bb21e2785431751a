"""Figures, dates and names of a synthesis that occur in no statement and no source."""

from __future__ import annotations

import json
from typing import Any

import pytest

from council.protocols.general.origins import Material, find_foreign, mark_foreign
from tests.growth import measure_growth
from tests.paths import TESTS

QUESTION = "Should we shard our Postgres database in 2026?"
STATEMENTS = (
    "Postgres sustains about 20,000 tps on one node; sharding is not needed before 50k tps. Citus costs $3,000 a month.",
    "We measured 18k tps on 16 cores in March 2025. A read replica raises reads by 80 %. Errors fell from 4 % to 1 %.",
    "Vitess is built for MySQL. The team of six engineers does not know it. A migration takes 4 to 6 months.",
)
SOURCE = "Report of the Robert Koch Institute: 19,400 tps on AWS m6i.4xlarge with SHA-256."
MATERIAL = Material([*STATEMENTS, SOURCE, QUESTION])


def found_in(text: str, material: Material = MATERIAL) -> list[str]:
    return [one.text for one in find_foreign(text, material)]


@pytest.mark.behaviour("30-not-from-the-council")
@pytest.mark.parametrize(
    "text",
    [
        "One node sustains 18,000 to 20,000 tps [1], far from 50,000.",
        "It serves 18-20k tps, 24/7.",
        "About 19k tps were measured on Amazon Web Services.",  # rounded, and the long form of an abbreviation
        "Citus would cost $36,000 a year.",  # a rate in another period
        "The headroom is 30,000 tps.",  # a difference
        "Errors fell by 75 %.",  # a share of two shares
        "Reads rise by 80 percent; PostgreSQL's node has sixteen cores.",
        "## 14 Reasons\n\n1. Keep it.\n2. Measure in 2026.\n\n13. Stop.\n\nThis is the 3rd option of 5.",
        "However, six engineers know no Vitess. The RKI agrees. Overall, wait.",
        "Use `shared_buffers = 131072` and\n\n```sql\nSET work_mem = 65536;\n```\n",
        "Half of it, 100 %, and 365 days a year.",
        "At 18 to 50k tps it is slow.",  # a range in thousands
        "It costs 1,500 to 3,000 dollars.",
        "Since 2025-03-14 or March 2025 it is known.",
    ],
)
def test_figures_and_names_of_the_council_are_known(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.behaviour("30-not-from-the-council")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Move to CockroachDB, which sustains 2 million tps and costs nothing.", ["CockroachDB", "2 million tps"]),
        ("One node is enough, and Uber ran 310,000 tps in 2019.", ["Uber", "310,000 tps", "2019"]),
        ("Sharding with Citus costs $7,500 a month.", ["$7,500"]),
        ("Keep it. Linus Torvalds agreed in December 2025.", ["Torvalds", "December 2025"]),
        ("Errors fell by 92 %.", ["92 %"]),
        ("It takes 3 seconds.", ["3 seconds"]),
        ("使用 CockroachDB，每秒 310,000 次。", ["CockroachDB", "310,000"]),
        ("Die Datenbank reicht, denn MongoDB ist für die Firma nicht besser.", ["MongoDB"]),  # nouns have capitals
    ],
)
def test_figures_and_names_from_nowhere_are_found(text: str, expected: list[str]) -> None:
    assert found_in(text) == expected


@pytest.mark.behaviour("30-not-from-the-council")
def test_words_of_files_and_of_the_question_are_known_but_their_figures_are_not_combined() -> None:
    material = Material([QUESTION], ["Limit 300 and 40 by Okonkwo"])
    assert found_in("The limit is 300, as in 2026, says Okonkwo.", material) == []
    assert found_in("The limit is 340.", material) == ["340"]


def test_each_item_is_marked_once_where_it_first_occurs() -> None:
    text = "Take CockroachDB [1]. It is CockroachDB with 2 million tps."
    marked = mark_foreign(text, find_foreign(text, MATERIAL), "not from the council")
    assert marked == (
        "Take CockroachDB (not from the council) [1]. It is CockroachDB with 2 million tps (not from the council)."
    )


def test_a_long_answer_is_checked_in_time() -> None:
    material = Material([("word 17 and 18 % " * 20_000)])

    def check(size: int) -> None:
        assert len(find_foreign("At 12,345 tps Foo-Bar wins. " * size, material)) == 2 * size

    assert measure_growth(check, 750, times=4) < 9  # in proportion to the size: 4; to its square: 16


SYNTHESES: list[dict[str, Any]] = json.loads((TESTS / "data" / "syntheses.json").read_text(encoding="utf-8"))


def count_found(case: dict[str, Any]) -> tuple[int, int]:
    """Return how many invented items are found, and how many items are found that are not invented."""
    found = found_in(case["synthesis"], Material([*case["statements"], *case["sources"], case["question"]]))
    hits = [item for item in case["foreign"] if any(item in one or one in item for one in found)]
    wrong = [one for one in found if not any(item in one or one in item for item in case["foreign"])]
    return len(hits), len(wrong)


@pytest.mark.behaviour("30-not-from-the-council")
def test_most_inventions_are_found_in_texts_of_others_and_few_honest_texts_are_doubted() -> None:
    counts = [count_found(case) for case in SYNTHESES]
    assert sum(hits for hits, _ in counts) >= 0.6 * sum(len(case["foreign"]) for case in SYNTHESES)
    assert sum(wrong == 0 for _, wrong in counts) >= 0.8 * len(SYNTHESES)


@pytest.mark.behaviour("30-not-from-the-council")
@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("It is rare.", "It fails for 2 in 10,000 users."),  # the whole of a share
        ("It is old.", "It is of the 21st century."),
        ("Es kostet 19.400 Euro.", "It costs about 19k euros."),
        ("It has 1200000 users.", "It has 1.200.000 users."),
        ("It is fast.", "It runs at some GHz."),  # a unit is no name
        ("We asked the Great Lakes Ocean Basin Team.", "Ask the GLOBT now."),
        ("Growth was 18 % and 24 %.", "Together that is 42 %, and 82 % were left before."),
        ("It costs 40 dollars, and we have 25 people.", "That is 1,000 dollars for all."),
    ],
)
def test_a_figure_or_name_in_another_form_is_known(known: str, text: str) -> None:
    assert found_in(text, Material([known])) == []


def test_a_single_letter_is_no_name() -> None:
    assert found_in("Take plan Q or plan Ä.", Material(["There are two plans."])) == []


@pytest.mark.behaviour("30-not-from-the-council")
@pytest.mark.parametrize(
    ("known", "text", "found"),
    [
        ("It is rare.", "It fails for 10 % of all users.", ["10 %"]),  # not known because 10 is a tenth of 100
        ("Growth was 18 % and 24 %.", "Costs fall by 7.2 %.", ["7.2 %"]),  # not 18 times 24 by 60
        ("There are 90 users; 25 % pay.", "We have 65 rooms.", ["65"]),  # not 90 less 25
        ("There are 90 users; 20 % pay.", "That is 18 of them, or 108 with others.", []),
        ("It is done.", "It needs 130-150k rows.", ["130", "150k"]),
    ],
)
def test_a_figure_is_not_known_because_of_arithmetic_without_a_reason(known: str, text: str, found: list[str]) -> None:
    assert found_in(text, Material([known])) == found


def test_the_first_figure_of_a_range_has_the_scale_of_the_second() -> None:
    material = Material(["It needs 130,000 to 150,000 rows."])
    assert found_in("It needs 130-150k rows.", material) == []
    assert found_in("It needs 135 to 150k rows.", material) == ["135"]
