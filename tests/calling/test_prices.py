"""What a call costs: hand-computed bills, the user's own prices, and prices nobody knows."""

from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from hypothesis import given
from hypothesis import strategies as st

from council.calling.prices import price_of
from council.errors import ConfigError
from council.money import FREE, Price, at_most, cost, dollars, exact, nanos, shown
from council.settings import Settings, flatten, load_settings, model_id, split_member
from council.types import Usage

SIM = '[providers.sim]\nbase_url = "http://127.0.0.1:9/v1"\n'


def settings(config: str = "") -> Settings:
    path = Path.cwd() / "council.toml"
    path.write_text(config, encoding="utf-8")
    return load_settings(path.parent, {"XDG_CONFIG_HOME": str(path.parent / "none")})


def known(member: str, config: str = "") -> Price:
    price = price_of(member, settings(config))
    assert price is not None
    return price


# Bills by hand: dollars for a million tokens, as the vendors publish them


@pytest.mark.behaviour("40-four-price-classes")
def test_a_bill_of_anthropics_has_a_cache_that_costs_to_write_and_saves_to_read() -> None:
    usage = Usage(input=12_000, output=800, cached=7_000, written=3_000)
    # 2,000 fresh × 5 + 7,000 cached × 0.50 + 3,000 written × 6.25 + 800 out × 25, all by a million
    by_hand = (2_000 * 5 + 7_000 * 0.50 + 3_000 * 6.25 + 800 * 25) / 1e6
    assert by_hand == pytest.approx(0.05225)
    assert exact(usage, known("anthropic:claude-opus-4.6")) == Decimal("0.05225")


@pytest.mark.behaviour("40-four-price-classes")
def test_a_bill_of_openais_reads_its_cache_for_a_tenth_and_writes_it_for_nothing_more() -> None:
    usage = Usage(input=10_240, output=1_500, cached=8_192)  # 1,100 of the output were thoughts: they cost as output
    # 2,048 fresh × 1.75 + 8,192 cached × 0.175 + 1,500 out × 14, all by a million
    by_hand = (2_048 * 1.75 + 8_192 * 0.175 + 1_500 * 14) / 1e6
    assert by_hand == pytest.approx(0.0260176)
    assert exact(usage, known("openai:gpt-5.2")) == Decimal("0.0260176")


@pytest.mark.behaviour("40-four-price-classes")
@pytest.mark.parametrize(
    ("usage", "by_hand"),
    [
        # up to 200,000 input tokens: 2 in, 0.20 cached, 12 out
        (Usage(200_000, 1_000, 50_000), (150_000 * 2 + 50_000 * 0.20 + 1_000 * 12) / 1e6),
        # one token more, and every token of the call is dearer: 4 in, 0.40 cached, 18 out
        (Usage(200_001, 1_000, 50_000), (150_001 * 4 + 50_000 * 0.40 + 1_000 * 18) / 1e6),
    ],
)
def test_a_bill_of_googles_jumps_above_200_000_tokens(usage: Usage, by_hand: float) -> None:
    assert cost(usage, known("google:gemini-3-pro-preview")) == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.behaviour("40-four-price-classes")
def test_openrouter_is_billed_by_vendor_and_model() -> None:
    usage = Usage(input=1_000, output=100, cached=400, written=500)
    by_hand = (100 * 3 + 400 * 0.30 + 500 * 3.75 + 100 * 15) / 1e6
    assert cost(usage, known("openrouter:claude-sonnet-4.6")) == pytest.approx(by_hand, abs=1e-12)


MEMBERS = ("anthropic:claude-haiku-4.5", "openai:gpt-5-mini", "google:gemini-3-pro-preview", "openrouter:gpt-5.2")


@given(
    st.sampled_from(MEMBERS), st.integers(0, 400_000), st.integers(0, 400_000), st.integers(0, 400_000), st.integers(0, 10**5)
)  # fmt: skip
def test_a_bill_is_the_price_lists_own(member: str, fresh: int, cached: int, written: int, output: int) -> None:
    written = written if "anthropic" in member else 0  # nobody else reports what was written
    usage = Usage(fresh + cached + written, output, cached, True, written)
    price = price_of(member, load_settings(Path("nowhere"), {"XDG_CONFIG_HOME": "nowhere"}))
    assert price is not None
    theirs = calc_price(
        ListUsage(input_tokens=usage.input, output_tokens=output, cache_read_tokens=cached, cache_write_tokens=written),
        model_id(member), provider_id=split_member(member)[0],
    )  # fmt: skip
    assert exact(usage, price) == theirs.total_price


# The user's own prices


@pytest.mark.behaviour("00-own-prices")
def test_ones_own_price_counts_for_a_provider_of_ones_own() -> None:
    table = '[prices."sim:m1"]\ninput = 1.0\ncached = 0.1\nwrite = 1.25\noutput = 5.0\n'
    bill = exact(Usage(1_000, 200, 300, True, 400), known("sim:m1", SIM + table))
    assert bill == Decimal("0.00183")  # 300 × 1 + 300 × 0.1 + 400 × 1.25 + 200 × 5, by a million


@pytest.mark.behaviour("00-own-prices")
def test_ones_own_price_is_stronger_than_the_list() -> None:
    for name in ("anthropic:claude-opus-4.6", "anthropic:claude-opus-4-6"):  # our name, and the endpoint's
        price = known("anthropic:claude-opus-4.6", f'[prices."{name}"]\ninput = 1\noutput = 2\n')
        assert exact(Usage(10**6, 10**6, 10**6), price) == 3  # cached as input, where nothing else is said


@pytest.mark.behaviour("00-own-prices")
def test_a_star_prices_all_models_of_a_provider_that_have_no_price_of_their_own() -> None:
    table = '[prices."sim:*"]\ninput = 0\noutput = 0\n[prices."sim:big"]\ninput = 1\noutput = 1\n'
    assert known("sim:m1", SIM + table) == FREE
    assert cost(Usage(10**6), known("sim:big", SIM + table)) == 1.0


@pytest.mark.behaviour("00-own-prices")
def test_ones_own_prices_are_listed_with_their_origin() -> None:
    rows = flatten(settings('[prices."openai:gpt-5.2"]\ninput = 1.5\noutput = 2\n'))
    told = {key: value for key, value, origin in rows if origin.endswith("council.toml")}
    assert told == {"prices.'openai:gpt-5.2'.input": 1.5, "prices.'openai:gpt-5.2'.output": 2}


@pytest.mark.behaviour("00-own-prices")
@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[prices."sim:m1"]\ninput = 1\n', '[prices."sim:m1"] has no output'),
        ('[prices."sim:m1"]\ninput = -1\noutput = 1\n', "must be dollars per million tokens, 0 or more"),
        ('[prices."sim:m1"]\ninput = "1"\noutput = 1\n', "must be dollars per million tokens, 0 or more"),
        ('[prices."sim:m1"]\ninput = 1\nouput = 1\n', "did you mean \"prices.'sim:m1'.output\"?"),
        ('[prices."gpt-5.2"]\ninput = 1\noutput = 1\n', '"prices.gpt-5.2" is not a member'),
        ("[prices]\ninput = 1\n", '"prices.input" is not a member'),
    ],
)
def test_a_price_that_cannot_be_is_refused_in_one_line(table: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(table)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


# Nothing, and nobody knows


@pytest.mark.parametrize("member", ["local:smollm2", "scripted:", "human", "ollama:llama3.2", "openrouter:openai/gpt-oss-20b:free"])  # fmt: skip
def test_members_that_send_no_bill_are_free(member: str) -> None:
    assert known(member) == FREE
    assert cost(Usage(10**9, 10**9), known(member)) == 0.0


@pytest.mark.behaviour("40-unknown-price-is-unknown")
@pytest.mark.parametrize(
    "member",
    [
        "sim:m1",  # a provider of one's own
        "openai:gpt-nobody-heard-of",
        "cli:claude",  # paid by the month, or not: nobody tells
        "nobody:m1",
        "openrouter:google/lyria-3-pro-preview",  # on the list, without a price
        "ollama:gpt-oss:120b-cloud",
    ],
)
def test_a_price_nobody_knows_is_none_and_not_nothing(member: str) -> None:
    assert price_of(member, settings(SIM)) is None


def test_a_provider_of_ones_own_at_a_known_address_has_the_prices_of_that_address() -> None:
    config = '[providers.mine]\nbase_url = "https://api.deepseek.com/v1"\n'
    assert price_of("mine:deepseek-chat", settings(config)) is not None


# Sums


def test_the_dearest_a_call_can_be_is_never_less_than_its_bill() -> None:
    price = known("anthropic:claude-opus-4.6")
    for usage in (Usage(9_000, 500), Usage(9_000, 500, 9_000), Usage(9_000, 500, 0, True, 9_000)):
        assert exact(usage, price) <= at_most(9_000, 500, price)


def test_the_store_counts_billionths_and_rounds_a_reservation_up() -> None:
    assert nanos(Decimal("0.0000000004")) == 0
    assert nanos(Decimal("0.0000000004"), up=True) == 1
    assert dollars(nanos(Decimal("0.123456789"))) == 0.123456789


@pytest.mark.parametrize(
    ("usd", "told"), [(0.0, "$0.00"), (0.31, "$0.31"), (1234.5, "$1,234.50"), (0.0042, "$0.0042"), (0.01, "$0.010"), (0.0000031, "$0.0000031")]
)  # fmt: skip
def test_a_small_amount_is_not_shown_as_nothing(usd: float, told: str) -> None:
    assert shown(usd) == told


def test_a_price_survives_being_written_down() -> None:
    price = known("google:gemini-3-pro-preview")
    assert Price.from_json(price.as_json()) == price


@pytest.mark.behaviour("issue-2-lazy-import")
def test_the_price_list_is_loaded_by_nobody_who_needs_no_price() -> None:
    code = "import sys, council.convene, council.doors.cli.ask; print('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
