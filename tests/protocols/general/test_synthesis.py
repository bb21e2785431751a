"""Checks of a synthesis."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.protocols.general import synthesis
from council.protocols.general.claims import Dispute, Side
from council.protocols.general.synthesis import (
    find_citations,
    find_problems,
    find_unknown_urls,
    number_disputes,
    remove_json,
)
from council.wording import load_wording

format_disagreement = partial(synthesis.format_disagreement, wording=load_wording("en"))

SOURCES = {
    1: {"title": "One", "url": "https://one.example/a"},
    2: {"title": "Two", "url": "https://two.example/wiki/Redis_(store)"},
    3: {"title": "Three", "url": "http://three.example"},
}
URLS = [source["url"] for source in SOURCES.values()]
REDIS = Dispute(
    "Redis", (Side("generalist", "It is fast.", "supports", (1, 2)), Side("domain_expert", "It forgets.", "opposes")), "declared"
)  # fmt: skip
COST = Dispute("the cost\nof it.", (Side("a", "Low.", "supports"), Side("b", "High.", "opposes")), "marker")
POSSIBLE = Dispute("x vs y", (Side("a", "I recommend x."), Side("b", "I recommend y.")), "possible")
BOTH = ["It is fast.", "It forgets."]


# Citing


@pytest.mark.behaviour("30-synthesis-checked")
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("As shown [1].", [1]),
        ("Redis is fast[2], and cheap [1].", [2, 1]),
        ("Both [2, 3] and [1][2].", [2, 3, 1]),
        ("All [1-3], or [1–3], or [1; 3], or [1 and 2].", [1, 2, 3]),
        ("Too many [1-900], backwards [9-7], one [5-5].", [1, 900, 9, 7, 5]),
        ("As many as there can be [1-30].", list(range(1, 31))),
        ("One too many [1-31].", [1, 31]),
        ("By its name [One](https://one.example/a).", [1]),
        ("With brackets [Two](https://two.example/wiki/Redis_(store)).", [2]),
        ("By number and address [3](http://three.example/).", [3]),
        ("Bare: https://one.example/a, <http://three.example>.", [1, 3]),
        ("By an address that is not there [X](https://one.example/a/b).", []),
        ("```python\nrows[1] = cols[2]\n```\n[3]", [3]),
        ("~~~\n[1]\n~~~", []),
        ("```\nnever closed [1]", []),
        ("Inline `a[1]` and ``b[`2`]`` but [3].", [3]),
        ("- [x] done\n- [ ] to do\n- [X] done", []),
        ("A footnote [^1] and its text.\n\n[^1]: here", []),
        ("In [2024] and [1999].", []),
        ("Between [0, 1] or at [0].", []),
        ("An empty [] and a [word] and [1.5] and [1,] and [-1].", []),
        ("Escaped \\[2\\].", [2]),
        ("[1]: https://one.example/a", [1]),
        ("[12] and [123]", [12, 123]),
        ("", []),
    ],
)
def test_citations_of_a_text(text: str, numbers: list[int]) -> None:
    assert find_citations(text, SOURCES) == numbers


def test_without_a_context_only_numbers_are_cited() -> None:
    assert find_citations("[One](https://one.example/a) says so [4].") == [4]


@pytest.mark.behaviour("30-synthesis-checked")
@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("See https://one.example/a.", []),
        ("See https://one.example/a, (https://one.example/a) and <https://one.example/a>!", []),
        ("[Two](https://two.example/wiki/Redis_(store)), [Three](http://three.example/ 'title')", []),
        ("[One](https://one.example/a),[Three](http://three.example)", []),
        ("https://one.example/a,http://three.example;https://one.example/a", []),
        ("HTTPS://ONE.example/a/ is the same page", []),
        ("[see https://one.example/a], [https://one.example/a](http://three.example)", []),
        ("**https://one.example/a** and _http://three.example_ and “http://three.example”", []),
        ("| https://one.example/a|http://three.example |", []),
        ("[Two](https://two.example/wiki/Redis\\_(store))", []),
        ("https://one.example/a#part and https://one.example/a/b", ["https://one.example/a#part", "https://one.example/a/b"]),
        ("https://one.example", ["https://one.example"]),
        ("https://one.example/A", ["https://one.example/A"]),
        ("http://one.example/a", ["http://one.example/a"]),
        ("https://one.example@evil.example/a", ["https://one.example@evil.example/a"]),
        ("https://one.example/a?x=1&amp;y=2", ["https://one.example/a?x=1&amp;y=2"]),
        ("[made up](https://made.up/x(1)/y), once more https://made.up/x(1)/y.", ["https://made.up/x(1)/y"]),
        ("In code `https://made.up/x`", ["https://made.up/x"]),
        ("```\ncurl https://api.example/v1\n```", []),
        ("on http://localhost:8080/x, http://127.0.0.1, http://[::1]:80/", []),
        ("on http://localhost.evil.example", ["http://localhost.evil.example"]),
        ("https:// and https://… and http://<host>/x", []),
        ("http://[broken", ["http://[broken"]),
        ("参照：https://made.up/頁。終わり", ["https://made.up/頁"]),
        ("no address, one.example/a", []),
    ],
)  # fmt: skip
def test_unknown_urls(text: str, strange: list[str]) -> None:
    assert find_unknown_urls(text, URLS) == strange


@pytest.mark.behaviour("30-synthesis-checked")
def test_urls_are_normalised_for_comparison() -> None:
    assert find_unknown_urls("https://a.example/x?a=1&b=2", ["https://A.example/x?a=1&amp;b=2"]) == []
    assert find_unknown_urls("https://a.example/x_", ["https://a.example/x_"]) == []


# Problems


def problems(answer: str, told: dict[str, list[str]] | None = None, persisting: tuple[Dispute, ...] = ()) -> list[str]:
    return find_problems(answer, told or {}, SOURCES, number_disputes(persisting))


@pytest.mark.behaviour("30-synthesis-checked")
def test_a_valid_synthesis_has_no_problem() -> None:
    answer = 'Use it [1], [Two](https://two.example/wiki/Redis_(store)).\n\n- Short.\n\n```json\n{"ttl": 60}\n```'
    assert problems(answer, {"D1": BOTH, "d2 ": ["Low.", "High."]}, (REDIS, COST)) == []


@pytest.mark.behaviour("30-synthesis-checked")
@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (SOURCES, "cites [7], [9], but the context has 1 to 3"),
        ({1: SOURCES[1], 2: SOURCES[2]}, "cites [7], [9], but the context has 1 to 2"),
        ({1: SOURCES[1]}, "cites [7], [9], but the context has only 1"),
        ({1: SOURCES[1], 4: SOURCES[2]}, "cites [7], [9], but the context has 1, 4"),
        ({}, "cites [7], [9], but there is no research context: cite nothing"),
    ],
)
def test_an_unknown_citation_is_named_with_the_valid_range(sources: dict[int, dict[str, str]], said: str) -> None:
    assert find_problems("So it is [7] [9].", {}, sources, {}) == [said]


@pytest.mark.behaviour("30-synthesis-checked", "003-no-invented-claims")
def test_an_unknown_url_is_named() -> None:
    assert problems("See [this](https://made.up/x).") == [
        'gives the address "https://made.up/x", which is not in the context: leave it out'
    ]


def test_at_most_ten_of_a_kind_are_named() -> None:
    many = "".join(f"[{n}] https://made.up/{n} " for n in range(50, 70))
    cites, *addresses = problems(many)
    assert (cites.count("["), len(addresses)) == (10, 10)


@pytest.mark.behaviour("30-synthesis-checked")
def test_citations_in_the_sides_are_checked() -> None:
    told = {"D1": ["It is fast [8].", "It forgets, says https://made.up."]}
    assert [line.split(",")[0] for line in problems("Fine.", told, (REDIS,))] == [
        "cites [8]",
        'gives the address "https://made.up"',
    ]


@pytest.mark.behaviour("30-synthesis-checked", "003-persisting-told")
@pytest.mark.parametrize(
    ("told", "what"),
    [
        ({}, "says nothing about"),
        ({"D2": []}, "says nothing about"),
        ({"D2": ["", " \n"]}, "says nothing about"),
        ({"D2": ["Low.", ""]}, "gives only one side of"),
        ({"D2": ["It is low.", "it is LOW"]}, "gives only one side of"),
        ({"D3": ["Low.", "High."]}, "says nothing about"),
    ],
)
def test_a_disagreement_needs_both_sides(told: dict[str, list[str]], what: str) -> None:
    said = problems("Fine.", {"D1": BOTH} | told, (REDIS, COST))
    assert said == [f'{what} the disagreement D2 on "the cost of it.": give both sides']


@pytest.mark.behaviour("30-disputes-possible")
def test_a_possible_dispute_need_not_be_reported() -> None:
    assert problems("Fine.", {}, (POSSIBLE,)) == []


REPLY = json.dumps({"memberId": "council_skeptic", "response": "No.", "confidence": 0.9}, indent=1)


@pytest.mark.behaviour("30-synthesis-checked", "003-no-raw-json")
@pytest.mark.parametrize(
    "answer",
    [
        '{"answer": "Yes."}',
        ' [{"a": 1}] ',
        '["yes", "no"]',
        '```json\n{"answer": "Yes."}\n```',
        '```\n{"answer": "Yes."}\n```\n',
        '{"answer": "It was cut o',
        '```json\n{"answer": "It was cut o',
    ],
)
def test_a_json_answer_is_a_problem(answer: str) -> None:
    assert problems(answer) == ["is raw JSON: write Markdown prose"]


@pytest.mark.behaviour("003-no-raw-json")
@pytest.mark.parametrize(
    ("answer", "prose"),
    [
        ('{"answer": "Move it."}', "Move it."),
        ('```json\n{"confidence": 0.9, "response": "Move it."}\n```', "Move it."),
        ('{"answer": ["Move it."]}', ""),
        ('[{"answer": "Move it."}]', ""),
        ('{"answer": "It was cut o', ""),
        ("Move it [1].", "Move it [1]."),
    ],
)
def test_of_a_json_answer_only_its_text_is_kept(answer: str, prose: str) -> None:
    assert remove_json(answer) == prose


@pytest.mark.behaviour("30-synthesis-checked", "003-no-raw-json")
@pytest.mark.parametrize(
    "answer",
    [
        f"The skeptic said:\n\n```json\n{REPLY}\n```\n\nSo be it.",
        f"The skeptic said: {REPLY}",
        f"```\n[{REPLY}]\n```\n\nSo be it.",
        'They said:\n\n```json\n{"response": "No.", "confidence": 0.9}\n```',
        'They said:\n\n~~~json\n[{"topic": "cost", "stance": "supports"}]\n~~~',
    ],
)
def test_a_repeated_reply_is_a_problem(answer: str) -> None:
    assert problems(answer) == ["repeats a member's reply as raw JSON: rewrite it as prose"]


@pytest.mark.behaviour("30-synthesis-checked")
@pytest.mark.parametrize(
    "answer",
    [
        'Set this:\n\n```json\n{"topic": "events", "sources": ["a"]}\n```',
        'Set this:\n\n```json\n{"confidence": 0.9}\n```',
        '```json\n{"ttl": 60}\n```\n\nPut this into the file.',
        "The memberId is stamped by the engine.",
        "{braces} are fine",
        "[1]",
        "42",
        "null",
        '"Yes."',
    ],
)
def test_json_that_belongs_to_the_answer_is_allowed(answer: str) -> None:
    assert problems(answer) == []


@pytest.mark.behaviour("30-synthesis-checked")
@pytest.mark.parametrize("answer", ["", " \n\t"])
def test_an_empty_answer_is_the_only_problem(answer: str) -> None:
    assert problems(answer, {}, (REDIS,)) == ["is empty: write the answer"]


# Formatting


@pytest.mark.behaviour("003-persisting-told")
def test_a_disagreement_is_formatted_with_both_sides() -> None:
    sides = [("**Use it:**", "It is fast [1]."), ("Leave it", "It\nforgets."), ("", " ")]
    assert format_disagreement(REDIS, "because speed and safety part here.", sides) == (
        "Experts disagree on Redis because speed and safety part here.\n"
        "\n"
        "- **Use it**: It is fast [1].\n"
        "- **Leave it**: It forgets."
    )


@pytest.mark.behaviour("003-persisting-told")
@pytest.mark.parametrize(
    "sides", [[], [("Use it", "It is fast.")], [("Use it", ""), ("use it!", "")], [("", ""), (" ", "")]]
)
def test_without_two_sides_the_seats_positions_are_used(sides: list[tuple[str, str]]) -> None:
    assert format_disagreement(REDIS, "", sides) == (
        "Experts disagree on Redis.\n\n- Generalist (supports): It is fast. [1] [2]\n- Domain expert (opposes): It forgets."
    )


@pytest.mark.behaviour("003-persisting-told")
def test_a_side_may_have_a_name_or_a_case_alone() -> None:
    text = format_disagreement(REDIS, "", [("Use it", ""), ("", "It forgets.")])
    assert text.endswith("\n- Use it\n- It forgets.")


@pytest.mark.behaviour("003-persisting-told", "30-disputes-possible")
def test_a_topic_stays_on_one_line_and_a_possible_dispute_is_marked() -> None:
    assert format_disagreement(COST, "", []).startswith("Experts disagree on the cost of it.\n\n- A (supports): Low.")
    assert format_disagreement(POSSIBLE, "", []) == (
        "Experts may disagree on x vs y (possible).\n\n- A: I recommend x.\n- B: I recommend y."
    )


@pytest.mark.behaviour("17-plain-reasons")
@pytest.mark.parametrize(
    ("question", "because", "lead"),
    [
        ("restore latency is acceptable", "They measure it differently.", "Experts disagree on whether restore latency is acceptable because they measure it differently."),
        ("the cost", "Because AWS bills by request", "Experts disagree on the cost because AWS bills by request."),
        ("Is it safe?", "", 'Experts disagree on "Is it safe?".'),
        ("how long it must be kept", "One counts months", "Experts disagree on how long it must be kept because one counts months."),
    ],
)  # fmt: skip
def test_a_disagreement_is_one_correct_sentence(question: str, because: str, lead: str) -> None:
    text = format_disagreement(Dispute(question, REDIS.positions, "values"), because, [])
    assert text.partition("\n")[0] == lead


def test_disputes_are_numbered_in_order() -> None:
    assert number_disputes([REDIS, POSSIBLE, COST]) == {"D1": REDIS, "D2": COST}


# Properties

PIECES = (
    "[1]", "[2, 3]", "[", "]", "(", ")", "https://one.example/a", "http://", "https://x", "`", "```\n", "~~~", "\n", "{", '{"a":',
    "}", '"memberId":', "\\[", "\\", "[^1]", " ", "。", "\0", "[1-", "9]", "&amp;", "\ud800",
)  # fmt: skip
TEXT = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


@pytest.mark.behaviour("30-synthesis-checked")
@settings(max_examples=300, deadline=None)
@given(TEXT, TEXT, TEXT, TEXT)
def test_any_text_can_be_checked_and_formatted(answer: str, one: str, other: str, topic: str) -> None:
    dispute = Dispute(topic, (Side(one, other),), "declared")
    said = find_problems(answer, {"D1": [one, other], topic: [one]}, SOURCES, {"D1": dispute})
    assert len(said) == len(set(said))
    assert all(line == line.strip() and "\n" not in line for line in said)
    text = format_disagreement(dispute, one, [(one, other), (other, topic)])
    assert text.startswith("Experts disagree on ")
    assert all(line.startswith("- ") for line in text.split("\n")[2:])
    assert find_unknown_urls(answer, find_unknown_urls(answer, [])) == []


LONG = 1_000_000
NASTY = {
    "open brackets": "[" * LONG,
    "numbers": "[1, 2][3]" * (LONG // 9),
    "one list": "[" + "1," * (LONG // 2),
    "white space in a bracket": "[1" + " " * LONG,
    "one address": "https://x/" + "(" * LONG,
    "addresses": "https://one.example/a " * (LONG // 22),
    "slashes": "https://" * (LONG // 8),
    "backticks": "`a``b" * (LONG // 5),
    "fences": "```\n" * (LONG // 4),
    "an open fence": "```" + " \n" * (LONG // 2),
    "objects": '{"a":' * (LONG // 5),
    "lists": "[" * 100_000 + "]" * 100_000,
    "backslashes": "\\" * LONG,
    "white space": " " * LONG + "x",
}


@pytest.mark.behaviour("30-synthesis-long-texts")
@pytest.mark.parametrize("text", NASTY.values(), ids=list(NASTY))
def test_a_megabyte_is_checked_in_linear_time(text: str) -> None:
    """Guard against quadratic run time."""
    assert len(find_problems(text, {}, SOURCES, {"D1": REDIS})) < 20
