"""Protocol options: validation, defaults and flags."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from pydantic import BaseModel, Field, create_model

from council.errors import UsageError
from council.protocols import SHIPPED_PROTOCOLS, Protocol, get_protocol
from council.protocols.judges.options import JudgesOptions
from council.protocols.options import Options, build_flag_table, parse_options


@pytest.mark.behaviour("house-flags-generated")
def test_the_flag_file_matches_the_option_models() -> None:
    stored = json.loads(files("council").joinpath("data/flags.json").read_text(encoding="utf-8"))
    assert stored == build_flag_table(), "run python scripts/make_flags.py"


@pytest.mark.behaviour("00-grammar-flag-owners")
def test_flags_belong_to_the_specified_protocols() -> None:
    owned: dict[str, set[str]] = {}
    for row in build_flag_table():
        for owner in row["owners"]:
            owned.setdefault(owner, set()).add(row["flag"])
    assert owned["collaborative"] == {"--early-stop"}
    assert owned["advisors"] == {"--flow", "--rounds", "--tier", "--roster", "--early-stop"}
    assert owned["general"] == {"--search", "--no-search", "--spec-review", "--no-deliberate", "--preset"}
    judges = "quick deep mixed debate preset perspectives perspectives-file count explorers explorer-model technique profile rule no-clerk early-stop"
    assert owned["judges"] == {f"--{name}" for name in judges.split()}


def test_every_flag_has_a_help_text_and_a_kind() -> None:
    for row in build_flag_table():
        assert row["help"] and row["kind"] in ("bool", "int", "str", "choice")
        assert (row["kind"] == "choice") == bool(row["choices"])


@pytest.mark.behaviour("002-error-quick-debate", "002-error-debate-validate", "002-error-technique-brainstorm")
@pytest.mark.parametrize(
    ("task", "given", "sentence"),
    [
        ("validate", {"quick": True, "debate": True}, "Error: --quick and --debate are incompatible."),
        ("brainstorm", {"debate": True}, "Error: --debate is only supported with validate mode."),
        ("research", {"debate": True}, "Error: --debate is only supported with validate mode."),
        ("validate", {"technique": "scamper"}, "Error: --technique is only applicable to brainstorm mode."),
        ("research", {"technique": "reverse"}, "Error: --technique is only applicable to brainstorm mode."),
    ],
)
def test_incompatible_options_raise_the_specified_errors(task: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_options("judges", task, given)
    assert refusal.value.message_for("cli") == sentence


@pytest.mark.behaviour("20-unknown-names-listed", "20-quick-stands-alone", "10-advisors-bounds")
@pytest.mark.parametrize(
    ("protocol", "given", "said"),
    [
        (
            "judges",
            {"technique": "scampr"},
            'unknown technique "scampr": did you mean "scamper"? known are scamper, six-hats',
        ),
        ("judges", {"profile": "rapid"}, 'unknown profile "rapid": known are thorough, balanced, fast'),
        ("judges", {"quick": True, "deep": True}, "--quick seats one judge and cannot be combined with --deep"),
        ("judges", {"quick": True, "count": 2}, "--count"),
        ("judges", {"quick": True, "preset": "ops"}, "--preset"),
        ("judges", {"explorers": 6}, '--explorers "6" cannot be used'),
        ("judges", {"count": 0}, '--count "0" cannot be used'),
        ("judges", {"debate": True, "count": 1}, "--debate needs at least 2 judges"),
        ("judges", {"perspectives": "a,,b"}, "without a letter"),
        ("judges", {"perspectives": "api use,API-use"}, "twice"),
        ("judges", {"perspectives": "a", "perspectives_file": "f.yaml"}, "drop one of the two"),
        ("advisors", {"flow": "debat"}, 'did you mean "debate"?'),
        ("advisors", {"rounds": 6}, '--rounds "6" cannot be used'),
        ("advisors", {"rounds": "many"}, '--rounds "many" cannot be used'),
        ("advisors", {"flow": "debate", "rounds": 1}, "at least 2 rounds"),
        ("advisors", {"deep": True}, "--deep is not an option of the protocol advisors"),
        ("general", {"search": "brave", "no_search": True}, "cannot be combined"),
        ("collaborative", {"flow": "debate"}, "--flow is not an option of the protocol collaborative"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(protocol: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_options(protocol, "validate", given)
    assert said in refusal.value.message_for("cli") and "\n" not in str(refusal.value)


@pytest.mark.behaviour("10-advisors-defaults")
@pytest.mark.parametrize(
    ("given", "rounds"),
    [({}, 1), ({"flow": "debate"}, 3), ({"flow": "DEBATE"}, 3), ({"flow": "debate", "rounds": 2}, 2)],
)
def test_a_debate_has_three_rounds_by_default(given: dict[str, Any], rounds: int) -> None:
    assert parse_options("advisors", "ask", given).model_dump()["rounds"] == rounds


@pytest.mark.behaviour("002-technique-any-case")
def test_a_technique_may_be_written_in_any_case() -> None:
    assert parse_options("judges", "brainstorm", {"technique": "Six-Hats"}).model_dump()["technique"] == "six-hats"


def test_perspectives_are_split_at_commas() -> None:
    options = parse_options("judges", "validate", {"perspectives": "security-auditor, perf-critic"})
    assert isinstance(options, JudgesOptions) and options.perspectives == ("security-auditor", "perf-critic")


@pytest.mark.parametrize("protocol", ["adversarial", "triad", "quick"])
def test_protocols_without_options_take_none(protocol: str) -> None:
    assert parse_options(protocol, "ask", {}).model_dump() == {}


def test_a_third_party_protocol_has_no_options_unless_it_says_so() -> None:
    assert Protocol("an-own-one", "an.own:one").load_options().model_validate({}).model_dump() == {}


def test_every_option_model_forbids_unknown_options() -> None:
    for model in {get_protocol(name).load_options() for name in SHIPPED_PROTOCOLS}:
        assert issubclass(model, BaseModel) and model.model_config.get("extra") == "forbid"


@pytest.mark.parametrize(
    ("limits", "shown"),
    [({}, ""), ({"ge": 2}, " from 2 on"), ({"ge": 2, "le": 5}, " from 2 to 5"), ({"le": 5}, " from 0 to 5")],
)
def test_an_unreadable_number_names_the_bounds(limits: dict[str, int], shown: str) -> None:
    model = create_model("Numbered", __base__=Options, number=(int, Field(default=3, **limits)))  # type: ignore[call-overload]
    with pytest.raises(UsageError, match=f"give a whole number{shown}$"):
        parse_options("advisors", "ask", {"number": "many"}, model)
