"""Which beginnings of requests are marked for a vendor's cache, and what is expected to be read from it."""

from __future__ import annotations

import pytest

from council.members.base import CacheRules
from council.planning.estimate import (
    CacheUse,
    Prefix,
    RehearsedCall,
    find_cache_points,
    forecast_cache,
    list_prefixes,
)
from council.types import Ask

POINTS = CacheRules(1024, has_points=True)
BY_ITSELF = CacheRules(1024)
PACKET, TURN = Prefix("packet", 6000), Prefix("turn", 6500)
RULES = {"a:1": POINTS, "b:1": BY_ITSELF, "g:1": CacheRules(4096, schema_first=False)}


def call(key: str, *prefixes: Prefix, member: str = "a:1", form: str = "") -> RehearsedCall:
    return RehearsedCall(key, (member,), 0, frozenset(), 0, Ask(key, ()), form=form, prefixes=prefixes or (PACKET,))


def points(*calls: RehearsedCall, warm: bool = True) -> dict[str, tuple[int, ...]]:
    return find_cache_points(calls, 20, RULES.get, warm_start=warm)


@pytest.mark.behaviour("29-cache-points")
def test_a_beginning_that_two_requests_have_is_marked_in_both() -> None:
    assert points(call("draft/alpha"), call("merge/chair")) == {"draft/alpha": (0,), "merge/chair": (0,)}


@pytest.mark.behaviour("29-cache-points")
@pytest.mark.parametrize(
    "other",
    [
        call("merge/chair", member="a:2"),
        call("merge/chair", member="b:1"),
        call("merge/chair", form="another schema"),
        call("merge/chair", Prefix("another packet", 6000)),
    ],
)
def test_a_beginning_that_only_one_request_has_is_not_marked(other: RehearsedCall) -> None:
    assert points(call("draft/alpha"), other) == {}


@pytest.mark.behaviour("29-cache-points")
def test_a_beginning_below_the_minimum_of_the_vendor_is_not_marked() -> None:
    short, enough = Prefix("packet", 1340), Prefix("packet", 1346)  # 3 bytes per token are a third too many
    assert points(call("draft/alpha", short), call("draft/beta", short)) == {}
    assert points(call("draft/alpha", enough), call("draft/beta", enough)) != {}


@pytest.mark.behaviour("29-cache-points")
def test_without_a_warm_start_requests_of_one_phase_do_not_count_for_each_other() -> None:
    drafts = call("draft/alpha"), call("draft/beta")
    assert points(*drafts, warm=False) == {}
    assert set(points(*drafts, call("merge/chair"), warm=False)) == {"draft/alpha", "draft/beta", "merge/chair"}


@pytest.mark.behaviour("29-cache-points")
def test_a_continued_conversation_is_marked_where_the_next_request_continues_it() -> None:
    later = call("r2/one", PACKET, TURN, Prefix("second turn", 7000))
    assert points(call("r1/one", PACKET, TURN), later) == {"r1/one": (1,), "r2/one": (1,)}
    others = call("r1/two", PACKET, Prefix("other turn", 6500))
    assert points(call("r1/one", PACKET, TURN), others, later) == {"r1/one": (0, 1), "r1/two": (0,), "r2/one": (0, 1)}


@pytest.mark.behaviour("29-cache-estimate")
def test_the_first_request_writes_and_the_others_read() -> None:
    calls = [call("draft/alpha"), call("draft/beta"), call("merge/chair", form="Ruling")]
    expected = [CacheUse(0, 6020), CacheUse(6020, 0), CacheUse()]
    assert forecast_cache(calls, points(*calls), 20, RULES.get) == expected


@pytest.mark.behaviour("29-cache-estimate")
def test_a_vendor_that_caches_by_itself_reads_only_what_an_earlier_phase_sent() -> None:
    calls = [call(key, member="b:1") for key in ("draft/alpha", "draft/beta", "improve/alpha")]
    assert forecast_cache(calls, {}, 20, RULES.get) == [CacheUse(), CacheUse(), CacheUse(6020, 0)]


@pytest.mark.behaviour("29-cache-estimate")
def test_only_where_the_schema_comes_first_another_schema_is_another_beginning() -> None:
    for member, read in (("b:1", 0), ("g:1", 6020)):
        calls = [call("draft/alpha", member=member), call("merge/chair", member=member, form="Ruling")]
        assert forecast_cache(calls, {}, 20, RULES.get)[1].cached == read


@pytest.mark.behaviour("29-cache-estimate")
def test_an_endpoint_that_is_not_known_to_cache_saves_nothing() -> None:
    calls = [call("draft/alpha", member="x:1"), call("merge/chair", member="x:1")]
    assert forecast_cache(calls, points(*calls), 20, RULES.get) == [CacheUse(), CacheUse()]


@pytest.mark.behaviour("29-cache-points")
def test_the_beginnings_of_a_request_end_at_the_shared_part_and_at_user_messages() -> None:
    def prefixes(own: str, *more: dict[str, str], shared: int = 6) -> tuple[Prefix, ...]:
        first = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": f"packet{own}"})
        return list_prefixes(Ask("k", (*first, *more), shared=shared), "")

    alpha, beta = prefixes(" alpha"), prefixes(" beta")
    assert alpha[0] == beta[0] and alpha[1] != beta[1]
    later = prefixes(" alpha", {"role": "assistant", "content": "yes"}, {"role": "user", "content": "why?"})
    assert later[:2] == alpha and len(later) == 3
    assert prefixes("", shared=0) == ()
