"""Prices and costs: published rates, configured prices and unknown prices."""

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

from council.calling.pricing import find_price
from council.errors import ConfigError
from council.money import (
    FREE,
    Price,
    Rates,
    cost,
    exact_cost,
    format_saving,
    format_usd,
    highest_price,
    max_cost,
    nanos_to_usd,
    usd_to_nanos,
)
from council.settings import Settings, flatten, load_settings
from council.settings.catalogue import model_id, split_member
from council.types import Usage

SIM = '[providers.sim]\nbase_url = "http://127.0.0.1:9/v1"\n'


def settings(config: str = "") -> Settings:
    path = Path.cwd() / "council.toml"
    path.write_text(config, encoding="utf-8")
    return load_settings(path.parent, {"XDG_CONFIG_HOME": str(path.parent / "none")}, config=path)


def known(member: str, config: str = "") -> Price:
    price = find_price(member, settings(config))
    assert price is not None
    return price


# Costs computed by hand from the published rates, in dollars per million tokens


@pytest.mark.behaviour("40-four-price-classes")
def test_anthropic_charges_for_cache_writes_and_discounts_reads() -> None:
    usage = Usage(input=12_000, output=800, cached=7_000, written=3_000)
    # (2,000 uncached × 5 + 7,000 cached × 0.50 + 3,000 written × 6.25 + 800 out × 25) / 1,000,000
    by_hand = (2_000 * 5 + 7_000 * 0.50 + 3_000 * 6.25 + 800 * 25) / 1e6
    assert by_hand == pytest.approx(0.05225)
    assert exact_cost(usage, known("anthropic:claude-opus-4.6")) == Decimal("0.05225")


@pytest.mark.behaviour("40-four-price-classes")
def test_openai_discounts_cache_reads_and_does_not_charge_for_writes() -> None:
    usage = Usage(
        input=10_240, output=1_500, cached=8_192
    )  # 1,100 of the output are thinking, which is billed as output
    # (2,048 uncached × 1.75 + 8,192 cached × 0.175 + 1,500 out × 14) / 1,000,000
    by_hand = (2_048 * 1.75 + 8_192 * 0.175 + 1_500 * 14) / 1e6
    assert by_hand == pytest.approx(0.0260176)
    assert exact_cost(usage, known("openai:gpt-5.2")) == Decimal("0.0260176")


@pytest.mark.behaviour("40-four-price-classes")
@pytest.mark.parametrize(
    ("usage", "by_hand"),
    [
        # up to 200,000 input tokens: 2 in, 0.20 cached, 12 out
        (Usage(200_000, 1_000, 50_000), (150_000 * 2 + 50_000 * 0.20 + 1_000 * 12) / 1e6),
        # above it, every token of the call costs more: 4 in, 0.40 cached, 18 out
        (Usage(200_001, 1_000, 50_000), (150_001 * 4 + 50_000 * 0.40 + 1_000 * 18) / 1e6),
    ],
)
def test_google_uses_a_higher_tier_above_200_000_tokens(usage: Usage, by_hand: float) -> None:
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
def test_costs_equal_those_of_genai_prices(member: str, fresh: int, cached: int, written: int, output: int) -> None:
    written = written if "anthropic" in member else 0  # only Anthropic reports cache writes
    usage = Usage(fresh + cached + written, output, cached, True, written)
    price = find_price(member, load_settings(Path("nowhere"), {"XDG_CONFIG_HOME": "nowhere"}))
    assert price is not None
    theirs = calc_price(
        ListUsage(input_tokens=usage.input, output_tokens=output, cache_read_tokens=cached, cache_write_tokens=written),
        model_id(member), provider_id=split_member(member)[0],
    )  # fmt: skip
    assert exact_cost(usage, price) == theirs.total_price


# Configured prices


@pytest.mark.behaviour("00-own-prices")
def test_a_configured_price_applies_to_a_configured_provider() -> None:
    table = '[prices."sim:m1"]\ninput = 1.0\ncached = 0.1\nwrite = 1.25\noutput = 5.0\n'
    bill = exact_cost(Usage(1_000, 200, 300, True, 400), known("sim:m1", SIM + table))
    assert bill == Decimal("0.00183")  # (300 × 1 + 300 × 0.1 + 400 × 1.25 + 200 × 5) / 1,000,000


@pytest.mark.behaviour("00-own-prices")
def test_a_configured_price_overrides_the_list() -> None:
    for name in ("anthropic:claude-opus-4.6", "anthropic:claude-opus-4-6"):  # catalogue name and model id
        price = known("anthropic:claude-opus-4.6", f'[prices."{name}"]\ninput = 1\noutput = 2\n')
        assert exact_cost(Usage(10**6, 10**6, 10**6), price) == 3  # cached tokens are charged as input by default


@pytest.mark.behaviour("00-own-prices")
def test_a_star_price_applies_to_all_other_models_of_a_provider() -> None:
    table = '[prices."sim:*"]\ninput = 0\noutput = 0\n[prices."sim:big"]\ninput = 1\noutput = 1\n'
    assert known("sim:m1", SIM + table) == FREE
    assert cost(Usage(10**6), known("sim:big", SIM + table)) == 1.0


@pytest.mark.behaviour("00-own-prices")
def test_configured_prices_are_listed_with_their_origin() -> None:
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
def test_an_invalid_price_is_rejected_in_one_line(table: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(table)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


# Free and unknown


@pytest.mark.parametrize("member", ["local:smollm2", "scripted:", "human", "ollama:llama3.2", "openrouter:openai/gpt-oss-20b:free"])  # fmt: skip
def test_unbilled_members_are_free(member: str) -> None:
    assert known(member) == FREE
    assert cost(Usage(10**9, 10**9), known(member)) == 0.0


@pytest.mark.behaviour("40-unknown-price-is-unknown")
@pytest.mark.parametrize(
    "member",
    [
        "sim:m1",  # configured provider without a price
        "openai:gpt-unheard-of",
        "cli:claude",  # subscription or API key: unknown
        "missing:m1",
        "openrouter:google/lyria-3-pro-preview",  # in the list, but without a price
        "ollama:gpt-oss:120b-cloud",
    ],
)
def test_an_unknown_price_is_none_and_not_zero(member: str) -> None:
    assert find_price(member, settings(SIM)) is None


def test_a_configured_provider_at_a_known_url_has_its_list_prices() -> None:
    config = '[providers.mine]\nbase_url = "https://api.deepseek.com/v1"\n'
    assert find_price("mine:deepseek-chat", settings(config)) is not None


# Conversions


def test_the_maximum_cost_is_never_below_the_real_cost() -> None:
    price = known("anthropic:claude-opus-4.6")
    for usage in (Usage(9_000, 500), Usage(9_000, 500, 9_000), Usage(9_000, 500, 0, True, 9_000)):
        assert exact_cost(usage, price) <= max_cost(9_000, 500, price)


def test_nanodollars_round_reservations_up() -> None:
    assert usd_to_nanos(Decimal("0.0000000004")) == 0
    assert usd_to_nanos(Decimal("0.0000000004"), up=True) == 1
    assert nanos_to_usd(usd_to_nanos(Decimal("0.123456789"))) == 0.123456789


@pytest.mark.parametrize(
    ("usd", "told"), [(0.0, "$0.00"), (0.31, "$0.31"), (1234.5, "$1,234.50"), (0.0042, "$0.0042"), (0.01, "$0.010"), (0.0000031, "$0.0000031")]
)  # fmt: skip
def test_a_small_amount_is_not_formatted_as_zero(usd: float, told: str) -> None:
    assert format_usd(usd) == told


def test_a_price_survives_json() -> None:
    price = known("google:gemini-3-pro-preview")
    assert Price.from_json(price.as_json()) == price


@pytest.mark.behaviour("issue-2-lazy-import")
def test_the_price_list_is_imported_only_when_needed() -> None:
    code = "import sys, council.runs.service, council.doors.cli.ask; print('genai_prices' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("usd", "told"),
    [
        (None, ""),
        (0.0, ""),
        (0.5, ", $0.50 saved by the vendors' caches"),
        (-0.5, ", $0.50 more for writing to the vendors' caches"),
    ],
)
def test_what_the_caches_saved_or_cost_follows_the_cost(usd: float | None, told: str) -> None:
    assert format_saving(usd) == told


def test_the_highest_of_two_prices_is_taken_rate_by_rate_and_tier_by_tier() -> None:
    low, high = Rates(*map(Decimal, "1111")), Rates(*map(Decimal, "1921"))
    first, second = Price(low, ((100, Rates(*map(Decimal, "5555"))),)), Price(high)
    assert highest_price(None, second) == second
    assert highest_price(first, second) == Price(high, ((100, Rates(*map(Decimal, "5955"))),))
