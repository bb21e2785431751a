"""Prompt files: lookup by seat, checks before any request, fences, and the shipped prompts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import make_prompts
from council import events as ev
from council import protocols
from council.engine.prompting import PARTS_FOLDER, PROTOCOLS_FOLDER, Prompts, load_prompt
from council.errors import PromptError
from council.planning.rehearsal import RehearsalInput, rehearse
from council.settings.catalogue import catalogue
from council.types import Outcome, Question, Roster, Round, Seat, Statement
from tests.paths import DATA
from tests.run_session import ALPHA, BETA, QUESTION

GIVEN = {"question": QUESTION}
SOURCE_RUNS = DATA / "source_word_runs.txt"
RUN_OF = 8  # words in a row; so many do not repeat by accident
BUILT = ("collaborative", "adversarial", "triad")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "t").mkdir()
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def words_for(folder: Path, seat: Seat = ALPHA, key: str = "key", **given: Any) -> str:
    return Prompts(key, [folder]).render("t/say", seat, {**GIVEN, **given}).messages[-1]["content"]


def said(seat: Seat, text: str) -> Statement[None]:
    return Statement(seat, f"draft/{seat.name}", text, None, Outcome("ok", text))


# Lookup


def test_a_seat_file_is_preferred_over_the_phase_file(folder: Path) -> None:
    write(folder, "t/say", "for all")
    write(folder, "t/say.alpha", "for alpha")
    assert words_for(folder, ALPHA).endswith("for alpha")
    assert words_for(folder, BETA).endswith("for all")


def test_a_custom_folder_is_searched_before_the_shipped_prompts(folder: Path) -> None:
    (folder / "triad").mkdir()
    write(folder, "triad/merge", "my own merge")
    rendered = Prompts("key", [folder]).render("triad/merge", ALPHA, GIVEN)
    assert rendered.messages[-1]["content"].endswith("my own merge")


def test_a_missing_prompt_is_named_with_the_searched_folder(folder: Path) -> None:
    with pytest.raises(PromptError, match=rf'there is no prompt "t/say.md" in "{re.escape(str(folder))}": add it'):
        words_for(folder)


def test_the_front_matter_ask_is_available_in_the_body(folder: Path) -> None:
    write(folder, "t/say", '+++\nask = "Answer {{ question }} now."\n+++\nYour task, {{ seat.name }}: {{ ask }}')
    assert words_for(folder).endswith("Your task, alpha: Answer Tabs or spaces? now.")


# Required variables


def test_a_prompt_lists_its_required_variables(folder: Path) -> None:
    write(
        folder,
        "t/say",
        '+++\nrole = "{{ a }}"\nask = "{{ b }}"\nmaterial = ["c.d"]\n+++\n{{ e }} {{ seat.name }} {{ quote(f) }}',
    )
    assert load_prompt(folder / "t/say.md").required_variables == {"a", "b", "c", "e", "f", "seat"}


@pytest.mark.behaviour("10-template-checked-first")
@pytest.mark.parametrize("small", [False, True])
def test_a_missing_variable_is_named_for_full_and_small_members(folder: Path, small: bool) -> None:
    write(folder, "t/say", "{% if 1 > 2 %}{{ drfats }}{% endif %}")
    with pytest.raises(PromptError, match=r'"say\.md" needs "drfats", which the protocol does not pass: pass drfats=…'):
        words_for(folder, replace(ALPHA, small=small))


def test_a_missing_attribute_is_an_error(folder: Path) -> None:
    write(folder, "t/say", "{{ question.txet }}")
    with pytest.raises(PromptError, match=r'"say.md" cannot be rendered: .*txet'):
        words_for(folder)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("+++\nrolle = 'x'\n+++\nbody", 'unknown front matter key "rolle"'),
        ("+++\nrole = \n+++\nbody", "cannot be read: Invalid value"),
        ("+++\nrole = 'x'\nbody", "cannot be read"),
        ("{% if %}", "cannot be read"),
        ("+++\nrole = '{{'\n+++\nbody", "cannot be read"),
        ("+++\nmaterial = ['a b']\n+++\nbody", "cannot be read"),
        ("+++\nwords = 'many'\n+++\nbody", '"words" must be a whole number'),
        ("+++\nmaterial = 'drafts'\n+++\nbody", '"material" must be a list'),
    ],
)
def test_an_invalid_prompt_is_refused_by_name(folder: Path, text: str, complaint: str) -> None:
    write(folder, "t/say", text)
    with pytest.raises(PromptError, match=complaint) as caught:
        words_for(folder)
    assert '"say.md"' in str(caught.value)


# The full and the compact template


def test_a_full_prompt_has_system_message_question_and_body(folder: Path) -> None:
    write(folder, "t/say", "+++\ntokens = 600\n+++\nDo your part.")
    rendered = Prompts("key", [folder]).render("t/say", ALPHA, GIVEN)
    system, user = rendered.messages
    assert system == {"role": "system", "content": (PARTS_FOLDER / "system.md").read_text().strip()}
    assert user["content"].index("Tabs or spaces?") < user["content"].index("Do your part.")
    assert (rendered.temperature, rendered.max_tokens) == (None, 600)


SMALL = replace(ALPHA, small=True)
FRONT = '+++\nrole = "You are {{ seat.label }}."\nask = "Say it better."\nwords = {words}\nmaterial = ["drafts"]\n+++\nA body {{ drafts|length }} it never sees.'


@pytest.mark.behaviour("local-compact-template")
@pytest.mark.parametrize(("words", "asked"), [(1500, 80), (40, 40)])
def test_a_small_member_gets_role_material_question_and_about_80_words(folder: Path, words: int, asked: int) -> None:
    write(folder, "t/say", FRONT.replace("{words}", str(words)))
    drafts = Round([said(ALPHA, "Tabs."), said(BETA, "Spaces.")])
    rendered = Prompts("key", [folder]).render("t/say", SMALL, {**GIVEN, "drafts": drafts})
    system, user = rendered.messages
    assert system == {"role": "system", "content": (PARTS_FOLDER / "compact_system.md").read_text().strip()}
    places = [user["content"].index(part) for part in ("Tabs.", "Spaces.", "You are Alpha.", "Tabs or spaces?")]
    assert places == sorted(places)
    assert "Say it better." in user["content"]
    assert f"about {asked} words" in user["content"]
    assert "never sees" not in user["content"]
    assert rendered.temperature == 0.2
    assert rendered.max_tokens and asked < rendered.max_tokens < 4 * asked


@pytest.mark.behaviour("local-compact-template")
def test_a_small_member_gets_the_start_of_a_long_statement(folder: Path) -> None:
    write(folder, "t/say", FRONT.replace("{words}", "80"))
    long = " ".join(f"word{n}" for n in range(500))
    shown = words_for(folder, SMALL, drafts=Round([said(BETA, long)]))
    assert "word89 …" in shown
    assert "word90" not in shown


@pytest.mark.behaviour("local-compact-template")
def test_many_labelled_statements_share_the_limit_of_a_small_member(folder: Path) -> None:
    write(folder, "t/say", '+++\nmaterial = ["responses"]\n+++\nA body {{ responses|length }} it never sees.')
    responses = {f"L{n}": said(BETA, " ".join(f"w{n}-{word}" for word in range(90))) for n in range(40)}
    user = words_for(folder, SMALL, responses=responses)
    assert "Beta" not in user and 'L7 wrote: "w7-0 ' in user
    assert len(user.split()) < 1400 and "w39-29 …" in user and "w39-30" not in user


@pytest.mark.behaviour("local-compact-template")
def test_the_requested_member_selects_the_template_also_for_fallbacks(folder: Path) -> None:
    write(folder, "t/say", FRONT.replace("{words}", "80"))
    given = {**GIVEN, "drafts": Round([said(BETA, "Spaces.")])}
    prompts = Prompts("key", [folder])
    with_fallback = replace(SMALL, fallbacks=("big:one",))
    assert prompts.render("t/say", with_fallback, given) == prompts.render("t/say", SMALL, given)


def test_the_repair_turn_names_the_problem_after_the_answer() -> None:
    said_, wish = Prompts("key").render_repair("{}", "leader is missing")
    assert said_ == {"role": "assistant", "content": "{}"}
    assert (wish["role"], "leader is missing" in wish["content"]) == ("user", True)


# Shipped prompts


def shipped() -> list[Path]:
    return sorted([*PARTS_FOLDER.glob("*.md"), *PROTOCOLS_FOLDER.glob("*/prompts/*.md")])


def named(path: Path) -> str:
    return f"{path.parents[1].name}/{path.name}"


async def asked_in_rehearsal(name: str, *, small: bool, agree: bool, domain: str = "code") -> list[ev.Asked]:
    protocol = protocols.get_protocol(name)
    roster = Roster(
        tuple(replace(seat, small=small) for seat in protocol.seats),
        protocol.chair and replace(protocol.chair, small=small),
    )
    given = RehearsalInput(protocol, roster, Question("Tabs or spaces?", domain=domain))
    entries = await rehearse(given, agree=agree)
    return [entry.event for entry in entries if isinstance(entry.event, ev.Asked)]


@pytest.mark.anyio
@pytest.mark.behaviour("10-template-checked-first")
@pytest.mark.parametrize("agree", [True, False])
@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("protocol", BUILT)
async def test_every_shipped_protocol_renders_all_its_prompts(protocol: str, small: bool, agree: bool) -> None:
    for event in await asked_in_rehearsal(protocol, small=small, agree=agree):
        assert [message["role"] for message in event.messages] == ["system", "user"]
        assert "Tabs or spaces?" in event.messages[1]["content"]
        assert not re.search(r"\{[{%]|Undefined|<council\.|Statement\(|\n{4}", event.messages[1]["content"])


@pytest.mark.anyio
@pytest.mark.behaviour("local.shared-prefix")
async def test_prompts_of_small_seats_begin_with_the_drafts_in_the_same_order() -> None:
    asked = await asked_in_rehearsal("collaborative", small=True, agree=True)
    texts = [event.messages[1]["content"].partition("You are ") for event in asked if event.phase == "improve"]
    assert len(texts) == 3
    assert len({shared for shared, *_ in texts}) == 1
    assert [name in texts[0][0] for name in ("Alpha wrote", "Beta wrote", "Gamma wrote")] == [True] * 3
    assert len({role for *_, role in texts}) == 3


@pytest.mark.anyio
@pytest.mark.behaviour("10-domain-focus")
@pytest.mark.parametrize("protocol", BUILT)
async def test_the_focus_line_appears_only_in_drafts_of_its_domain(protocol: str) -> None:
    for domain, told in (("code", True), ("general", False)):
        for event in await asked_in_rehearsal(protocol, small=False, agree=False, domain=domain):
            shown = re.search(r"^For this question: [a-z][^.]+\.$", event.messages[1]["content"], re.MULTILINE)
            assert bool(shown) is (told and event.phase == "draft"), event.key


@pytest.mark.behaviour("10-prompts-reviewed")
def test_the_reviewed_prompts_are_those_that_a_seat_receives() -> None:
    assert make_prompts.stale() == [], "run python scripts/make_prompts.py and read the diff of tests/data/prompts"


@pytest.mark.behaviour("10-prompts-name-no-vendor")
@pytest.mark.parametrize("path", shipped(), ids=named)
def test_no_prompt_names_a_vendor_or_a_model(path: Path) -> None:
    known = catalogue()
    parts = {part for name in known.canonical_names for part in re.split(r"[^a-z]+", name.lower())}
    names = (
        parts | {model.vendor for model in known.models.values()} | set(known.providers) | {"gpt", "claude", "gemini"}
    )
    names -= {
        "",
        "pro",
        "preview",
        "mini",
        "fast",
        "flash",
        "v",
        "o",
        "instruct",
        "it",
        "latest",
        "chat",
        "max",
        "large",
        "small",
    }
    words = set(re.findall(r"[a-z]+", path.read_text(encoding="utf-8").lower()))
    assert not names & words


SECTIONS = {
    "collaborative/draft.alpha": ("## Open Questions", "## Wild Ideas", "at least one"),
    "collaborative/draft.beta": ("## Building Blocks", "## Combinations"),
    "collaborative/draft.gamma": ("## Alternative Angles", "at least 2", "## What If"),
    "collaborative/improve": ("## Tensions",),
    "adversarial/draft.alpha": ("## Self-Critique", "assumptions", "weak points", "uncertain", "counter-arguments"),
    "adversarial/draft.beta": ("## Validation Notes", "CRITICAL", "IMPORTANT", "MINOR"),
    "adversarial/draft.gamma": ("## Devil's Advocate", "at least one alternative"),
    "adversarial/attack": ("FATAL", "MAJOR", "MINOR", "STAND", "MODIFIED", "REJECTED"),
    "adversarial/verdict": ("SURVIVED", "MODIFIED", "OVERTURNED"),
    "triad/merge": ("CRITICAL", "caveat"),
}


@pytest.mark.behaviour("000-draft-sections-collaborative", "000-draft-self-critique", "000-attack-severity")
@pytest.mark.parametrize(("name", "parts"), SECTIONS.items(), ids=SECTIONS)
def test_a_prompt_asks_for_its_required_sections(name: str, parts: tuple[str, ...]) -> None:
    text = load_text(name)
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param(
            "collaborative/improve",
            (
                "Take the best of what",
                "of you had",
                "Drop what",
                "Keep your strength",
                "what came from whom",
                "Recompute the figures",
                "## Corrections",
            ),
            marks=pytest.mark.behaviour("000-improve-asks"),
        ),
        pytest.param(
            "collaborative/synthesise",
            (
                "strongest element of each",
                "what emerged",
                "Keep what is truly new",
                "not a summary",
                "author",
                "choose one and work it out",
                "as untested",
                "Recompute the figures",
            ),
            marks=pytest.mark.behaviour("000-synthesis-asks"),
        ),
        pytest.param(
            "adversarial/attack",
            (
                "only issues that you can support, one fault each, at most six",
                "gaps, wrong assumptions",
                "contradicts your own draft",
                "evidence",
                "correction",
                "polite",
            ),
            marks=pytest.mark.behaviour("000-attack-asks"),
        ),
        pytest.param(
            "adversarial/verdict",
            (
                "by its id",
                "same_as",
                "strongest alternative",
                "the valid criticism built in",
                "does not mention drafts",
            ),
            marks=pytest.mark.behaviour("000-verdict-asks"),
        ),
    ],
)
def test_a_prompt_asks_for_its_required_content(name: str, parts: tuple[str, ...]) -> None:
    text = load_text(name)
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize("name", [f"{mode}/draft.{seat}" for mode in BUILT[:2] for seat in ("alpha", "beta", "gamma")])
def test_a_draft_is_soft_capped_at_1500_words(name: str) -> None:
    assert load_prompt(path_of(name)).words == 1500


MATERIAL_FIRST = (
    "adversarial/attack", "adversarial/triage", "adversarial/verdict", "advisors/final", "advisors/opening", "advisors/rebuttal",
    "advisors/referee", "collaborative/improve", "collaborative/synthesise", "general/answer", "general/clerk", "general/synthesise",
    "judges/consolidate", "ranking/rank", "ranking/synthesise", "triad/merge",
)  # fmt: skip


@pytest.mark.behaviour("10-task-before-material")
@pytest.mark.parametrize("name", MATERIAL_FIRST)
def test_a_prompt_says_its_task_in_short_before_the_material(name: str) -> None:
    text = load_text(name)
    assert text.index("# In short") < text.index("{{ quote(") < text.index("# Your part")


@pytest.mark.behaviour("10-task-before-material")
@pytest.mark.parametrize("seat", ["", ".alpha", ".beta", ".gamma"])
@pytest.mark.parametrize("mode", BUILT[:2])
def test_a_draft_prompt_gives_its_limit_before_its_task(mode: str, seat: str) -> None:
    text = load_text(f"{mode}/draft{seat}")
    limit = "At most {{ words }} words. Count words as in prose: code and the marks of tables do not count."
    assert text.index(limit) < text.index("1. Begin with your")
    assert ("on top, at most {{ words // 5 }} words" in text) is bool(seat)


@pytest.mark.behaviour("10-optional-variables")
@pytest.mark.parametrize(
    ("given", "shown"), [({}, "tested"), ({"merged": False}, "tested"), ({"merged": True}, "merged")]
)
def test_a_variable_that_is_tested_for_being_defined_may_be_missing(folder: Path, given: Any, shown: str) -> None:
    write(folder, "t/say", "{{ 'merged' if merged is defined and merged else 'tested' }}")
    assert words_for(folder, **given).endswith(shown)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("protocol", "told"), [("triad", "merged into one answer"), ("adversarial", "tested against each other")]
)
async def test_drafts_are_told_what_happens_to_them(protocol: str, told: str) -> None:
    for event in await asked_in_rehearsal(protocol, small=False, agree=True):
        assert (told in event.messages[1]["content"]) is (event.phase == "draft")


@pytest.mark.behaviour("10-claims-marked")
@pytest.mark.parametrize("seat", ["alpha", "beta", "gamma"])
def test_an_adversarial_draft_marks_its_claims(seat: str) -> None:
    assert "(HIGH), (MEDIUM) or (LOW)" in load_text(f"adversarial/draft.{seat}")


@pytest.mark.behaviour("10-room-to-think")
@pytest.mark.parametrize("name", ["adversarial/triage", "general/queries"])
def test_the_chair_has_room_to_think_before_a_short_reply(name: str) -> None:
    assert load_prompt(path_of(name)).tokens is None


def path_of(name: str) -> Path:
    protocol, _, phase = name.partition("/")
    return PROTOCOLS_FOLDER / protocol / "prompts" / f"{phase}.md"


def load_text(name: str) -> str:
    return path_of(name).read_text(encoding="utf-8")


def runs_of_words(text: str) -> Iterator[str]:
    """Yield the first 12 hex digits of the sha256 of every eight-word run, without headings and template tags."""
    prose = re.sub(r"\{[{%#].*?[}%#]\}|^#.*$", " ", text, flags=re.MULTILINE)
    words = re.findall(r"[a-z0-9']+", prose.lower())
    for n in range(len(words) - RUN_OF + 1):
        yield hashlib.sha256(" ".join(words[n : n + RUN_OF]).encode()).hexdigest()[:12]


@pytest.mark.behaviour("00-prompts-in-own-words")
@pytest.mark.parametrize("path", shipped(), ids=named)
def test_no_prompt_copies_a_sentence_of_its_source(path: Path) -> None:
    source = set(SOURCE_RUNS.read_text().split())
    assert len(source) > 1000
    assert not source & set(runs_of_words(path.read_text(encoding="utf-8")))
