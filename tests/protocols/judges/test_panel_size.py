"""Number of judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from council.errors import UsageError
from council.protocols.judges.options import JudgesOptions
from council.protocols.judges.panel import DEFAULT_JUDGES, MAX_AGENTS, JudgeCounts
from council.protocols.judges.panel import count_judges as count
from council.text_cleanup import slugify

PRESET = ("attacker", "defender", "compliance")


def count_judges(
    perspectives: Sequence[str] = (), families: int = 1, default_count: int = DEFAULT_JUDGES, **flags: Any
) -> JudgeCounts:
    options = JudgesOptions(mixed=families > 1 and families, **flags)
    return count(options, families, perspectives, default_count, named=0)


@pytest.mark.behaviour("002-bench-sizes")
@pytest.mark.parametrize(
    ("flags", "judges", "agents"),
    [
        ({}, 2, 2),
        ({"quick": True}, 1, 1),
        ({"deep": True}, 3, 3),
        ({"families": 2}, 6, 6),
        ({"debate": True}, 2, 2),
        ({"deep": True, "debate": True}, 3, 3),
        ({"count": 4}, 4, 4),
        ({"count": 4, "families": 2}, 8, 8),
        ({"count": 1, "deep": True}, 1, 1),
        ({"explorers": 3}, 2, 8),
        ({"deep": True, "explorers": 3}, 3, 12),
        ({"families": 2, "explorers": 1}, 6, 12),
        ({"default_count": 3}, 3, 3),
        ({"default_count": 2, "deep": True}, 3, 3),
    ],
)
def test_flags_set_the_number_of_judges_and_agents(flags: dict[str, Any], judges: int, agents: int) -> None:
    bench = count_judges(**flags)
    assert (bench.judges, bench.agents, bench.is_scaled_down) == (judges, agents, False)


@pytest.mark.behaviour("002-bench-escalates")
def test_perspectives_raise_the_count_and_never_lower_it() -> None:
    assert count_judges(perspectives=PRESET).judges == 3
    assert count_judges(perspectives=("one",), deep=True).judges == 3
    assert count_judges(perspectives=PRESET, families=2).per_family == 3


@pytest.mark.behaviour("002-bench-count-overrides")
def test_count_overrides_the_perspectives_and_names_those_it_drops() -> None:
    fewer, more = count_judges(perspectives=PRESET, count=2), count_judges(perspectives=PRESET, count=5)
    assert (fewer.perspectives, fewer.dropped_perspectives) == (("attacker", "defender"), ("compliance",))
    assert (more.judges, more.perspectives, more.dropped_perspectives) == (5, PRESET, ())


@pytest.mark.behaviour("002-bench-cap")
def test_mixed_with_two_explorers_scales_to_two_judges_per_family() -> None:
    bench = count_judges(families=2, explorers=2)
    assert (bench.per_family, bench.judges, bench.agents, bench.requested, bench.is_scaled_down) == (2, 4, 12, 3, True)


@pytest.mark.behaviour("002-bench-cap")
def test_scaling_down_drops_perspectives_by_name() -> None:
    bench = count_judges(perspectives=(*PRESET, "scope"), explorers=3)
    assert (bench.per_family, bench.dropped_perspectives) == (3, ("scope",))


@pytest.mark.behaviour("20-bench-count-over-cap")
def test_an_explicit_count_over_the_cap_is_refused_with_the_sum() -> None:
    with pytest.raises(
        UsageError, match=r"count=4 makes 8 judges x \(1 \+ 2 explorers\) = 24 agents.*lower count to 2"
    ):
        count_judges(families=2, count=4, explorers=2)
    with pytest.raises(UsageError, match="13 agents"):
        count_judges(count=13)


@pytest.mark.behaviour("20-bench-debate-needs-two")
def test_a_debate_with_one_judge_is_refused() -> None:
    with pytest.raises(UsageError, match="debate=True needs at least 2 judges"):
        count_judges(debate=True, default_count=1)
    assert count_judges(debate=True, count=1, families=2).judges == 2


@given(
    families=st.integers(1, 4),
    deep=st.booleans(),
    explorers=st.integers(0, 5),
    names=st.lists(st.text(min_size=1), max_size=20, unique=True),
)
def test_there_is_at_least_one_judge_within_the_cap_and_no_perspective_is_lost(
    families: int, deep: bool, explorers: int, names: list[str]
) -> None:
    assume(families * (1 + explorers) <= MAX_AGENTS)
    bench = count_judges(perspectives=names, families=families, deep=deep, explorers=explorers)
    assert bench.judges >= 1 and bench.agents <= MAX_AGENTS
    assert [*bench.perspectives, *bench.dropped_perspectives] == names


def test_explorers_that_leave_no_room_for_a_judge_are_refused() -> None:
    with pytest.raises(UsageError, match="3 vendor families with 4 explorers makes 15 agents, over the cap of 12"):
        count_judges(families=3, explorers=4)


def test_a_name_becomes_a_slug() -> None:
    assert slugify(" Error paths! ") == "error-paths"
