"""Seat assignment, by examples and by properties."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council.errors import ConfigError
from council.planning.seating import SeatAssignment, Seating, seat_council, shared_vendor_notices
from council.settings import Origin, OriginKind, Provider, SeatSetting, Settings, load_settings
from council.settings.member_lookup import (
    LOCAL_CANDIDATE,
    Candidate,
    available_members,
    resolve_member,
    tier_member,
    vendor_of,
)

NAMES = ("alpha", "beta", "gamma")
KEYS = {"a": "ANTHROPIC_API_KEY", "o": "OPENAI_API_KEY", "g": "GEMINI_API_KEY", "r": "OPENROUTER_API_KEY"}
CLAUDE, GPT, GEMINI = "anthropic:claude-opus-5.5", "openai:gpt-6.1-sol", "google:gemini-3.1-pro-preview"


def keys(which: Iterable[str]) -> dict[str, str]:
    return {KEYS[letter]: "k" for letter in which}


def settings_with(
    env: Mapping[str, str],
    *,
    models: Mapping[str, str] | None = None,
    seats: Mapping[str, SeatSetting] | None = None,
    chair: SeatSetting | None = None,
    providers: tuple[str, ...] = (),
) -> Settings:
    base = load_settings(Path("no/such/folder"), {"XDG_CONFIG_HOME": "no/such/folder", **env})
    own = {name: Provider(name, base_url="http://127.0.0.1:1/v1", vendor=name) for name in providers}
    return dataclasses.replace(
        base,
        providers={**base.providers, **own},
        models=models or {},
        seats=seats or {},
        chair=chair or SeatSetting(),
        origins={
            **base.origins,
            **{f"providers.{name}": Origin(OriginKind.PROJECT_FILE, "council.toml") for name in providers},
        },
    )


def members_of(seating: Seating) -> list[str]:
    return [place.member for place in seating.seats]


def families_of(seating: Seating) -> list[str]:
    return [place.vendor for place in seating.seats]


TABLE = [
    ("aog", [CLAUDE, GPT, GEMINI], CLAUDE),
    ("og", [GPT, GPT, GEMINI], GPT),
    ("ag", [CLAUDE, GEMINI, GEMINI], CLAUDE),
    ("ao", [CLAUDE, GPT, CLAUDE], CLAUDE),
    ("a", [CLAUDE, CLAUDE, CLAUDE], CLAUDE),
    ("g", [GEMINI, GEMINI, GEMINI], GEMINI),
    ("r", ["openrouter:claude-opus-5.5", "openrouter:gpt-6.1-sol", "openrouter:gemini-3.1-pro-preview"], "openrouter:claude-opus-5.5"),
    ("or", ["openrouter:claude-opus-5.5", GPT, "openrouter:gemini-3.1-pro-preview"], "openrouter:claude-opus-5.5"),
]  # fmt: skip


@pytest.mark.behaviour("000-model-table", "000-model-fallback")
@pytest.mark.parametrize(("which", "seats", "chair"), TABLE)
def test_default_table_is_applied_to_the_available_keys(which: str, seats: list[str], chair: str) -> None:
    env = keys(which)
    seating = seat_council(NAMES, settings_with(env), env)
    assert members_of(seating) == seats
    assert seating.chair.member == chair


@pytest.mark.behaviour("000-model-fallback")
def test_unused_vendor_is_preferred_to_a_fallback_in_use() -> None:
    env = keys("og")
    seating = seat_council(NAMES, settings_with(env, models={"default": "sim:m1"}, providers=("sim",)), env)
    assert members_of(seating) == ["sim:m1", GPT, GEMINI]


@pytest.mark.behaviour("000-model-fallback")
def test_fallbacks_start_with_the_default_one_and_cover_all_vendors() -> None:
    env = keys("aog")
    chains = [place.fallbacks for place in seat_council(NAMES, settings_with(env), env).seats]
    assert chains == [(GPT, GEMINI), (GEMINI, CLAUDE), (CLAUDE, GPT)]


@pytest.mark.behaviour("000-model-fallback")
def test_unused_vendors_come_first_in_the_fallbacks() -> None:
    env = keys("aog")
    settings = settings_with(env, models={"other": "sim:m1"}, providers=("sim",))
    assert seat_council(NAMES, settings, env).seats[0].fallbacks == ("sim:m1", GPT, GEMINI)


def test_chair_fallbacks_start_with_the_default_one() -> None:
    env = keys("aog")
    assert seat_council(NAMES, settings_with(env), env).chair == SeatAssignment(
        "chair", CLAUDE, "anthropic", (GPT, GEMINI)
    )


@pytest.mark.behaviour("00-members-chair-stand-in")
def test_chair_fallback_prefers_an_unused_vendor() -> None:
    env = keys("aog")
    settings = settings_with(env, models={"other": "sim:m1"}, providers=("sim",))
    assert seat_council(NAMES, settings, env).chair == SeatAssignment(
        "chair", CLAUDE, "anthropic", ("sim:m1", GPT, GEMINI)
    )


@pytest.mark.behaviour("00-members-chair-stand-in")
def test_chair_prefers_an_unused_vendor_to_its_default_fallback() -> None:
    env = keys("og")
    models = {"default": "sim:m1", "other": "simb:m1"}
    seating = seat_council(NAMES, settings_with(env, models=models, providers=("sim", "simb")), env)
    assert (members_of(seating), seating.chair.member) == (["sim:m1", GPT, GEMINI], "simb:m1")


@pytest.mark.behaviour("10-chair-no-attacker")
@pytest.mark.parametrize(
    ("which", "models", "chair"),
    [
        ("aog", {}, CLAUDE),  # three vendors and three seats: the default table
        ("ao", {}, CLAUDE),
        ("aog", {"other": "sim:m1"}, "sim:m1"),
        ("aog", {"strong": "sim:m1"}, "sim:m1"),
        ("aog", {"fast": "sim:m1"}, CLAUDE),  # too weak to rule on the seats
        ("aog", {"default": "sim:m1"}, "sim:m1"),
    ],
)
def test_a_chair_apart_uses_a_vendor_without_a_seat_if_there_is_a_choice(
    which: str, models: dict[str, str], chair: str
) -> None:
    env = keys(which)
    settings = settings_with(env, models=models, providers=("sim",))
    assert seat_council(NAMES, settings, env, chair_apart=True).chair.member == chair
    assert seat_council(NAMES, settings, env).chair.member == CLAUDE


@pytest.mark.behaviour("10-chair-no-attacker")
def test_a_chair_apart_is_neither_a_guessed_local_model_nor_chosen_over_a_configured_chair() -> None:
    env = keys("aog") | {"OLLAMA_HOST": "127.0.0.1"}
    assert seat_council(NAMES, settings_with(env), env, chair_apart=True).chair.member == CLAUDE
    settings = settings_with(env, models={"other": "sim:m1"}, chair=SeatSetting(GPT), providers=("sim",))
    assert seat_council(NAMES, settings, env, chair_apart=True).chair.member == GPT


@pytest.mark.behaviour("10-chair-no-attacker")
def test_a_chair_apart_of_two_seats_uses_the_third_vendor() -> None:
    env = keys("aog")
    assert seat_council(NAMES[:2], settings_with(env), env, chair_apart=True).chair.member == GEMINI


@pytest.mark.behaviour("00-members-models-candidates")
def test_configured_models_seat_distinct_families_first() -> None:
    models = {"default": "sim:m1", "strong": "sim:m2", "fast": "sim:m3", "other": "simb:m2"}
    seating = seat_council(NAMES, settings_with({}, models=models, providers=("sim", "simb")), {})
    assert members_of(seating) == ["sim:m1", "simb:m2", "sim:m1"]
    assert [place.fallbacks for place in seating.seats] == [("simb:m2",), ("sim:m1",), ("simb:m2",)]
    assert seating.chair.member == "sim:m1"


@pytest.mark.behaviour("00-members-seat-wins")
def test_configured_seat_is_kept_and_other_seats_avoid_its_vendor() -> None:
    env = keys("aog")
    settings = settings_with(env, seats={"alpha": SeatSetting("openai:gpt-9")})
    assert members_of(seat_council(NAMES, settings, env)) == ["openai:gpt-9", CLAUDE, GEMINI]


@pytest.mark.behaviour("00-members-missing-key-is-named")
@pytest.mark.parametrize("env", [{}, {"ANTHROPIC_API_KEY": " "}])
@pytest.mark.parametrize("how", ["seat", "chair", "everyone", "roster"])
def test_configured_member_without_a_key_raises_with_the_variable(env: dict[str, str], how: str) -> None:
    chosen = SeatSetting(CLAUDE)
    seats, chair = {"alpha": chosen} if how == "seat" else {}, chosen if how == "chair" else None
    settings = settings_with(env, seats=seats, chair=chair)
    with pytest.raises(ConfigError, match=r'no API key for "anthropic:claude-opus-5.5": set ANTHROPIC_API_KEY'):
        seat_council(
            NAMES, settings, env, spread=how != "everyone", shared_member=CLAUDE if how == "everyone" else None,
            members={"beta": chosen} if how == "roster" else {},
        )  # fmt: skip


def test_configured_fallback_without_a_key_is_only_a_remark() -> None:
    settings = settings_with({}, seats={"alpha": SeatSetting("sim:m1", (CLAUDE,))}, providers=("sim",))
    seating = seat_council(NAMES, settings, {})
    assert seating.seats[0].fallbacks == (CLAUDE,)
    *_, line = seating.remarks
    assert line.startswith(f'Fallback unavailable: no API key for "{CLAUDE}"')
    assert "ANTHROPIC_API_KEY" in line


def test_duplicate_fallbacks_are_removed() -> None:
    chain = ("sim:m2", "sim:m1", "sim:m2")
    settings = settings_with({}, seats={"alpha": SeatSetting("sim:m1", chain)}, providers=("sim",))
    assert seat_council(NAMES, settings, {}).seats[0].fallbacks == ("sim:m2",)


def test_configured_member_takes_all_seats_if_it_is_the_only_one() -> None:
    settings = settings_with({}, seats={"alpha": SeatSetting("sim:m1", ())}, providers=("sim",))
    seating = seat_council(NAMES, settings, {})
    assert members_of(seating) == ["sim:m1", "sim:m1", "sim:m1"]
    assert seating.chair.member == "sim:m1"


@pytest.mark.behaviour("00-members-toy-stands-in-for-nobody")
@pytest.mark.parametrize("env", [{}, {"OLLAMA_HOST": "127.0.0.1"}])
def test_configured_member_is_preferred_to_the_embedded_model(env: dict[str, str]) -> None:
    settings = settings_with(env, seats={"alpha": SeatSetting("ollama:qwen3")})
    seating = seat_council(NAMES, settings, env)
    assert [*members_of(seating), seating.chair.member] == ["ollama:qwen3"] * 4
    assert {place.fallbacks for place in (*seating.seats, seating.chair)} == {()}
    (notice,) = seating.notices
    assert notice == "alpha, beta and gamma use the same vendor (ollama), so their agreement means less."
    assert (seating.hints, seating.remarks) == ((), (notice,))


def test_many_seats_of_one_vendor_are_counted_instead_of_listed() -> None:
    seats = [(f"judge-{n}", "openai") for n in range(1, 13)]
    assert shared_vendor_notices(seats) == ["12 seats use the same vendor (openai), so their agreement means less."]


@pytest.mark.behaviour("00-members-toy-stands-in-for-nobody")
@pytest.mark.parametrize(("model", "variable"), [(CLAUDE, "ANTHROPIC_API_KEY"), ("gpt-5.2", "OPENAI_API_KEY")])
def test_embedded_model_does_not_replace_a_configured_model_without_a_key(model: str, variable: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        seat_council(NAMES, settings_with({}, models={"default": model}), {})
    own = seat_council(NAMES, settings_with({}, models={"default": LOCAL_CANDIDATE.member}), {})
    assert members_of(own) == [LOCAL_CANDIDATE.member] * 3


def test_scripted_member_takes_all_seats_only_without_real_members() -> None:
    seats = {"alpha": SeatSetting("scripted:calm")}
    assert members_of(seat_council(NAMES, settings_with({}, seats=seats), {})) == ["scripted:calm"] * 3
    env = keys("o")
    assert members_of(seat_council(NAMES, settings_with(env, seats=seats), env)) == ["scripted:calm", GPT, GPT]


@pytest.mark.behaviour("00-members-toy-stands-in-for-nobody")
@pytest.mark.parametrize("which", ["a", "ao", "aog", "r"])
def test_embedded_model_takes_only_its_configured_seat(which: str) -> None:
    env = keys(which)
    settings = settings_with(
        env, seats={"beta": SeatSetting(LOCAL_CANDIDATE.member)}, models={"fast": LOCAL_CANDIDATE.member}
    )
    seating = seat_council(NAMES, settings, env)
    assert members_of(seating).count(LOCAL_CANDIDATE.member) == 1
    assert all(LOCAL_CANDIDATE.member not in place.fallbacks for place in (*seating.seats, seating.chair))
    assert seating.chair.member != LOCAL_CANDIDATE.member


@given(st.deferred(lambda: councils))
def test_embedded_model_is_never_a_fallback(council: Council) -> None:
    seating, _, _ = convened(council)
    assert all(LOCAL_CANDIDATE.member not in place.fallbacks for place in (*seating.seats, seating.chair))


@pytest.mark.behaviour("00-members-explicit-fallback")
@pytest.mark.parametrize(
    ("written", "chain"),
    [(("sim:m2", "opus"), ("sim:m2", CLAUDE)), ((), ()), (None, (GPT, CLAUDE, GEMINI)), (("sim:m1",), ())],
)
def test_configured_fallback_is_used_as_written_and_empty_means_none(
    written: tuple[str, ...] | None, chain: tuple[str, ...]
) -> None:
    env = keys("aog")
    settings = settings_with(env, seats={"alpha": SeatSetting("sim:m1", written)}, providers=("sim",))
    assert set(seat_council(NAMES, settings, env).seats[0].fallbacks) == set(chain)
    settings = settings_with(env, chair=SeatSetting("sim:m1", written), providers=("sim",))
    assert seat_council(NAMES, settings, env).chair.fallbacks == chain


@pytest.mark.parametrize("member", ["human", "local:/models/big.gguf", "scripted:calm"])
def test_local_human_and_scripted_members_have_no_fallback(member: str) -> None:
    env = keys("aog")
    place = seat_council(NAMES, settings_with(env, seats={"beta": SeatSetting(member)}), env).seats[1]
    assert (place.member, place.fallbacks) == (member, ())


@pytest.mark.behaviour("00-members-general-defaults")
def test_other_seats_inherit_from_alpha_beta_and_gamma_in_rotation() -> None:
    env = keys("aog")
    names = ("generalist", "skeptic", "domain_expert")
    assert members_of(seat_council(names, settings_with(env), env)) == [CLAUDE, GPT, GEMINI]
    seats = {"alpha": SeatSetting("sim:m1", ()), "skeptic": SeatSetting("sim:m2")}
    seating = seat_council(names, settings_with(env, seats=seats, providers=("sim",)), env)
    assert members_of(seating) == ["sim:m1", "sim:m2", GEMINI]
    assert seating.seats[0].fallbacks == ()


def test_seats_share_vendors_evenly() -> None:
    env = keys("aog")
    seating = seat_council(("s1", "s2", "s3", "s4", "s5"), settings_with(env), env)
    assert sorted(Counter(families_of(seating)).values()) == [1, 2, 2]


@pytest.mark.behaviour("00-members-lenses")
def test_seats_with_the_same_vendor_are_reported() -> None:
    env = keys("ao")
    (notice,) = seat_council(NAMES, settings_with(env), env).notices
    assert notice == "alpha and gamma use the same vendor (anthropic), so their agreement means less."


def test_three_vendors_give_no_notice() -> None:
    env = keys("aog")
    assert seat_council(NAMES, settings_with(env), env).notices == ()


@pytest.mark.behaviour("00-members-local-default")
def test_embedded_model_takes_all_seats_by_default_with_a_notice() -> None:
    seating = seat_council(NAMES, settings_with({}), {})
    assert {(place.member, place.vendor, place.fallbacks) for place in (*seating.seats, seating.chair)} == {
        ("local:smollm2", "local", ())
    }
    assert (
        seating.notices[0]
        == "All seats use the embedded model local:smollm2, which is a demonstration and too small for good answers."
    )


def test_embedded_model_gives_advice_for_better_models() -> None:
    notice, advice = seat_council(NAMES, settings_with({}), {}).hints
    assert notice.startswith("All seats use the embedded model ")
    for word in ("ANTHROPIC_API_KEY", ".gguf", "OLLAMA_HOST"):
        assert word in advice


@pytest.mark.behaviour("00-members-not-spread")
def test_unspread_council_uses_the_default_model() -> None:
    env = keys("aog")
    settings = settings_with(env, models={"default": "sim:m1", "strong": "sim:m2"}, providers=("sim",))
    seating = seat_council(("judge-1", "judge-2"), settings, env, spread=False)
    assert [*members_of(seating), seating.chair.member] == ["sim:m1"] * 3
    assert seating.notices == ()
    assert members_of(seat_council(("judge-1", "judge-2"), settings_with(env), env, spread=False)) == [CLAUDE, CLAUDE]


def test_tier_overrides_the_configuration_for_seats_and_chair() -> None:
    settings = settings_with({}, models={"default": "sim:m1"}, chair=SeatSetting("sim:m7"), providers=("sim",))
    plain = seat_council(("judge-1",), settings, {}, spread=False)
    heavy = seat_council(("judge-1",), settings, {}, spread=False, shared_member="sim:m2", chair=SeatSetting("sim:m2"))
    assert (plain.seats[0].member, plain.chair.member) == ("sim:m1", "sim:m7")
    assert (heavy.seats[0].member, heavy.chair.member) == ("sim:m2", "sim:m2")


def test_roster_sets_members_and_seat_settings_override_it() -> None:
    roster = {"cfo": SeatSetting("sim:m1", ("sim:m2",)), "coo": SeatSetting("sim:m1")}
    settings = settings_with({}, seats={"coo": SeatSetting("sim:m3")}, providers=("sim",))
    seating = seat_council(("cfo", "coo"), settings, {}, spread=False, members=roster)
    assert members_of(seating) == ["sim:m1", "sim:m3"]
    assert seating.seats[0].fallbacks == ("sim:m2",)


@pytest.mark.parametrize(
    ("tier", "models", "which", "member"),
    [
        ("strong", {"default": "sim:m1", "strong": "sim:m2"}, "a", "sim:m2"),
        ("fast", {"default": "sim:m1"}, "a", "sim:m1"),
        ("fast", {}, "a", "anthropic:claude-haiku-5.5"),
        ("fast", {}, "r", "openrouter:claude-haiku-5.5"),
        ("default", {}, "o", "openai:gpt-6.1-terra"),
        ("strong", {}, "", LOCAL_CANDIDATE.member),
    ],
)
def test_tier_selects_a_member(tier: str, models: dict[str, str], which: str, member: str) -> None:
    env = keys(which)
    assert tier_member(tier, settings_with(env, models=models, providers=("sim",)), env) == member


@pytest.mark.parametrize(
    ("member", "vendor"),
    [
        (CLAUDE, "anthropic"),
        ("openrouter:claude-opus-5.5", "anthropic"),
        ("openrouter:openai/gpt-5.2", "openai"),
        ("openrouter:x-ai/grok-9", "x-ai"),
        ("openrouter:auto", "openrouter"),
        ("ollama:qwen3:8b", "ollama"),
        ("sim:m1", "sim"),
        ("local:smollm2", "local"),
        ("scripted:calm", "scripted"),
        ("human", "human"),
        ("cli:codex", "openai"),
        ("pai:mistral:large", "mistral"),
    ],
)
def test_vendor_of_each_member(member: str, vendor: str) -> None:
    assert vendor_of(member, settings_with({}, providers=("sim",))) == vendor


@pytest.mark.behaviour("00-members-unknown-provider")
def test_an_unknown_provider_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r'"foo" in "foo:bar".*anthropic, openai, google, openrouter, ollama, local'):
        vendor_of("foo:bar", settings_with({}))


@pytest.mark.behaviour("00-members-unknown-provider")
def test_unknown_provider_error_lists_supported_providers() -> None:
    with pytest.raises(ConfigError) as caught:
        vendor_of("foo:bar", settings_with({}, providers=("sim",)))
    assert "one of anthropic, openai, google, openrouter, ollama, sim, local, scripted, cli, pai, human, or add" in str(
        caught.value
    )


@pytest.mark.behaviour("00-members-empty-model")
@pytest.mark.parametrize("member", ["sim:", "sim: ", "ollama:", "local:"])
def test_a_member_without_a_model_is_refused(member: str) -> None:
    settings = settings_with({}, seats={"beta": SeatSetting(member)}, providers=("sim",))
    with pytest.raises(ConfigError, match=f'"{member}" names no model.*{member.strip()}MODEL'):
        seat_council(NAMES, settings, {})


@pytest.mark.behaviour("00-members-short-names")
@pytest.mark.parametrize(
    ("name", "which", "member"),
    [
        ("sonnet", "ar", "anthropic:claude-sonnet-5.5"),
        ("sonnet", "r", "openrouter:claude-sonnet-5.5"),
        ("gpt-5.3-codex", "o", "openai:gpt-5.3-codex"),
        ("sim:sonnet", "a", "sim:sonnet"),
        ("human", "", "human"),
    ],
)
def test_short_name_uses_the_first_provider_with_a_key(name: str, which: str, member: str) -> None:
    env = keys(which)
    assert resolve_member(name, settings_with(env, providers=("sim",)), env) == member


@pytest.mark.behaviour("00-members-short-names")
def test_unknown_or_unavailable_short_name_raises_with_a_fix() -> None:
    with pytest.raises(ConfigError, match=r'unknown model "sonett".*did you mean "sonnet"'):
        resolve_member("sonett", settings_with({}), {})
    with pytest.raises(ConfigError, match="set one of ANTHROPIC_API_KEY, OPENROUTER_API_KEY"):
        resolve_member("sonnet", settings_with({}), {})


@pytest.mark.behaviour("00-members-available")
def test_available_members_are_listed_best_first() -> None:
    assert available_members(settings_with({}), {}) == []
    assert available_members(settings_with({}), {"ANTHROPIC_API_KEY": " "}) == []
    env = {**keys("og"), "OLLAMA_HOST": "127.0.0.1"}
    settings = settings_with(env, models={"fast": "sim:m3", "default": "anthropic:x"}, providers=("sim",))
    assert [candidate.member for candidate in available_members(settings, env)] == [
        "sim:m3",
        GPT,
        GEMINI,
        "ollama:llama3.2",
    ]
    assert available_members(settings_with({}, models={"default": "local:/m.gguf"}), {}) == [
        Candidate("local:/m.gguf", "local")
    ]


CHOICES = ("anthropic:x", "openai:x", "google:x", "sim:m5", "human", "local:smollm2", "scripted:s")
ALL_MODELS = ("sim:m1", "simb:m2", "anthropic:y", "openai:y")
councils: st.SearchStrategy[Council] = st.tuples(
    st.sets(st.sampled_from("aogr")).map("".join),
    st.dictionaries(st.sampled_from(("default", "strong", "fast", "other")), st.sampled_from(ALL_MODELS)),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CHOICES)),
    st.sampled_from([NAMES, ("generalist", "skeptic", "domain_expert"), ("s1", "s2", "s3", "s4", "s5")]),
)
Council = tuple[str, dict[str, str], dict[str, str], tuple[str, ...]]


def convened(council: Council) -> tuple[Seating, set[str], dict[str, str]]:
    which, models, chosen, names = council
    named = [member[0] for member in models.values() if member[0] in "ao"]
    env = keys({*(which or named), *(member[0] for member in chosen.values() if member[0] in "aog")})
    seats = {name: SeatSetting(member) for name, member in chosen.items()}
    settings = settings_with(env, models=models, seats=seats, providers=("sim", "simb"))
    seating = seat_council(names, settings, env)
    defaults = {name: NAMES[n % len(NAMES)] for n, name in enumerate(names)}
    by_name = {name: chosen[default] for name, default in defaults.items() if default in chosen}
    return seating, {candidate.vendor for candidate in available_members(settings, env)}, by_name


@pytest.mark.behaviour("00-members-spread")
@given(councils)
def test_no_vendor_is_shared_while_another_is_unused(council: Council) -> None:
    seating, families, chosen = convened(council)
    unused = families - set(families_of(seating))
    counts = Counter(families_of(seating))
    for place in seating.seats:
        if place.name not in chosen:
            assert counts[place.vendor] == 1 or not unused


@pytest.mark.behaviour("00-members-seat-wins")
@given(councils)
def test_configured_members_keep_their_seats(council: Council) -> None:
    seating, _, chosen = convened(council)
    assert {place.name: place.member for place in seating.seats if place.name in chosen} == chosen


@given(councils)
def test_fallbacks_contain_no_duplicates(council: Council) -> None:
    seating, _, _ = convened(council)
    for place in (*seating.seats, seating.chair):
        line = (place.member, *place.fallbacks)
        assert len(set(line)) == len(line)


@given(councils)
def test_every_shared_vendor_is_reported_once(council: Council) -> None:
    seating, _, _ = convened(council)
    shared = {vendor for vendor, count in Counter(families_of(seating)).items() if count > 1} - {"human"}
    assert {
        vendor for vendor in shared if any(f"use the same vendor ({vendor})" in notice for notice in seating.notices)
    } == shared


def test_a_member_of_one_seat_does_not_fill_others_if_its_vendor_is_not_among_the_vendors() -> None:
    settings = settings_with(keys("ao"), seats={"first": SeatSetting(GPT)})
    allowed = dataclasses.replace(settings, vendors=("anthropic",))
    assert {candidate.vendor for candidate in available_members(settings, keys("ao"))} == {"anthropic", "openai"}
    assert {candidate.vendor for candidate in available_members(allowed, keys("ao"))} == {"anthropic"}
