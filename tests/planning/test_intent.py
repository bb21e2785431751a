"""Parsing of words and flags into protocol, task, target and domain."""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from council import protocols
from council.errors import UsageError
from council.planning.intent import ChosenBy, Intent, parse_intent, place_piped_text
from council.protocols import Protocol

KNOWN = ("collaborative", "adversarial", "triad", "advisors", "judges", "general", "ranking", "quick", "own")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for path in (
        "src/auth/jwt.py",
        "src/api/app.py",
        "README.md",
        "PLAN.md",
        "docs/ARCHITECTURE.md",
        "Makefile",
        "plan",
        "my notes.md",
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    return root


def read(words: str | list[str], folder: Path = Path(), protocol: str | None = None, **flags: Any) -> Intent:
    said = words if isinstance(words, list) else [words]
    return parse_intent(said, flags, protocol=protocol, folder=folder, known=KNOWN)


def refusal(words: str, protocol: str | None = None, **flags: Any) -> str:
    with pytest.raises(UsageError) as refused:
        read(words, protocol=protocol, **flags)
    assert "\n" not in str(refused.value)
    return refused.value.message_for("cli")


LONG_TEXTS = [
    "x",
    "word ",
    "a or b, ",
    "should we ",
    "attack ",
    "please ",
    "adversarial ",
    "who that my plan ",
    "is a better ",
    "(a) ",
    "I want a debate ",
    "或者还是",
    "Should we buy or rent?\n",
]


@pytest.mark.behaviour("00-words-long")
@pytest.mark.parametrize("text", LONG_TEXTS)
def test_a_very_long_question_takes_linear_time(text: str) -> None:
    began = time.process_time()
    assert read(text * (100_000 // len(text))).task == "ask"
    assert time.process_time() - began < 5


@pytest.mark.behaviour("00-words-long")
@pytest.mark.parametrize("where", ["start", "end", "middle"])
def test_words_in_the_middle_of_a_long_text_are_material(where: str) -> None:
    request, material = "Should we buy or rent?", "The lake is calm. " * 1000
    texts = {
        "start": f"{request} {material}",
        "end": f"{material} {request}",
        "middle": f"{material} {request} {material}",
    }
    assert read(texts[where]).protocol == ("collaborative" if where == "middle" else "adversarial")


@contextmanager
def recorded_globs() -> Iterator[list[str]]:
    """Record the patterns that are matched against the files of a folder."""
    patterns: list[str] = []
    is_open = True

    def on_audit(event: str, arguments: tuple[Any, ...]) -> None:  # it cannot be removed
        if is_open and event == "pathlib.Path.glob":
            patterns.append(str(arguments[1]))

    sys.addaudithook(on_audit)
    try:
        yield patterns
    finally:
        is_open = False


@pytest.mark.behaviour("question-no-glob")
@pytest.mark.parametrize(
    "question",
    ["Which is better? We use v1.2 now.", "Is Node.js fine?", "What does a[0].b do?", "Why is x**2/y slow? See p. 3."],
)
def test_a_question_with_a_question_mark_and_a_dot_is_not_matched_as_a_glob(folder: Path, question: str) -> None:
    with recorded_globs() as patterns:
        assert read(question, folder).target is None
    assert patterns == []


@pytest.mark.parametrize("target", ["*.md", "docs/*.md", "READ??.md", "my no*.md", "./*.md"])
def test_a_glob_that_matches_a_file_is_a_target(folder: Path, target: str) -> None:
    assert read(f"review {target}", folder).target == target


@pytest.mark.parametrize("target", ["readme.md", "PLAN.MD", "Docs/ARCHITECTURE.md"])
def test_a_name_in_other_letters_is_a_target_only_if_the_file_system_finds_it(folder: Path, target: str) -> None:
    assert (read(f"validate {target}", folder).target == target) is (folder / target).exists()


# Rule 1: an explicit choice.


@pytest.mark.behaviour("000-trigger-explicit-prefix")
@pytest.mark.parametrize(
    ("words", "protocol", "why", "question"),
    [
        ("adversarial council: pick a queue", "adversarial", 'the prefix "adversarial council:"', "pick a queue"),
        (
            "collaborative council: which is better",
            "collaborative",
            'the prefix "collaborative council:"',
            "which is better",
        ),
        ("Adversarial-Council : pick", "adversarial", 'the prefix "adversarial council:"', "pick"),
        (
            "collaborative council: validate this",
            "collaborative",
            'the prefix "collaborative council:"',
            "validate this",
        ),
    ],
)
def test_a_prefix_chooses_the_protocol_and_is_removed(words: str, protocol: str, why: str, question: str) -> None:
    found = read(words)
    assert (found.protocol, found.why, found.question, found.task) == (protocol, why, question, "ask")


@pytest.mark.behaviour("00-mode-names")
@pytest.mark.parametrize(
    "words",
    [
        "adversarial council",
        "Adversarial council:",
        "adversarial council: verbose",
        "please run an adversarial council",
        "Collaborative mode -",
        "in collaborative mode",
        "advisors:",
        "council of advisors",
        "对抗模式：",
    ],
)
def test_a_mode_name_without_a_question_is_refused_in_one_line(words: str) -> None:
    said = refusal(words)
    assert said.startswith('no question was given after the prefix "') and said.endswith(": add one")


@pytest.mark.behaviour("00-mode-names")
@pytest.mark.parametrize(
    "words",
    [
        "What is adversarial mode?",
        "How does a council of advisors work?",
        "Explain collaborative mode in Google Docs",
        "adversarial networks: how are they trained?",
        "collaborative filtering: how does it work?",
    ],
)
def test_a_question_about_a_mode_keeps_its_words_and_chooses_nothing(words: str) -> None:
    found = read(words)
    assert (found.protocol, found.question, found.chosen_by is ChosenBy.PREFIX) == ("collaborative", words, False)


@pytest.mark.behaviour("00-mode-names")
def test_a_mode_name_in_a_request_wins_over_other_words_and_stays() -> None:
    for words in ("Which is better, A or B? (collaborative mode)", "Debate our logo, but collaboratively."):
        found = read(words)
        assert (found.protocol, found.question, found.chosen_by) == ("collaborative", words, ChosenBy.TRIGGER)


@pytest.mark.behaviour("00-grammar-explicit-wins")
def test_a_named_protocol_wins_over_every_word() -> None:
    found = read("validate which is better", protocol="Triad")
    assert (found.protocol, found.why, found.task) == ("triad", "chosen by name", "ask")
    assert found.question == "validate which is better"


@pytest.mark.behaviour("00-grammar-unknown-protocol")
def test_an_unknown_protocol_is_refused_with_a_suggestion() -> None:
    said = refusal("x", protocol="advers")
    assert 'unknown protocol "advers": did you mean "adversarial"?' in said and "triad" in said
    assert "did you mean" not in refusal("x", protocol="zzz")


def test_two_explicit_choices_that_differ_are_refused() -> None:
    said = refusal("adversarial council: x", protocol="triad")
    assert "adversarial" in said and "triad" in said
    assert read("adversarial council: x", protocol="adversarial").question == "x"


# Rule 2: a flag chooses its protocol.


@pytest.mark.behaviour("00-grammar-flag-chooses")
@pytest.mark.parametrize(
    ("flags", "protocol", "why", "task"),
    [
        ({"flow": "debate"}, "advisors", "--flow", "ask"),
        ({"rounds": 3, "tier": "heavy"}, "advisors", "--rounds", "ask"),
        ({"deep": True}, "judges", "--deep", "validate"),
        ({"perspectives_file": "p.yaml"}, "judges", "--perspectives-file", "validate"),
        ({"technique": "scamper"}, "judges", "--technique", "brainstorm"),
        ({"no_search": True}, "general", "--no-search", "ask"),
        ({"preset": "ops"}, "judges", "--preset", "validate"),
        ({"preset": "ops", "search": "files:docs"}, "general", "--search", "ask"),
    ],
)
def test_a_flag_of_one_protocol_chooses_it(flags: dict[str, Any], protocol: str, why: str, task: str) -> None:
    found = read("pick a queue", **flags)
    assert (found.protocol, found.why, found.task, found.options) == (protocol, why, task, flags)


@pytest.mark.behaviour("00-grammar-flag-chooses")
def test_a_flag_wins_over_trigger_words_and_verbs() -> None:
    assert read("which is better, a or b", rounds=2).protocol == "advisors"
    found = read("validate my plan", search="brave")
    assert (found.protocol, found.task, found.question) == ("general", "ask", "validate my plan")


@pytest.mark.behaviour("00-grammar-two-protocols")
@pytest.mark.parametrize(
    ("protocol", "flags", "named"),
    [
        (None, {"flow": "debate", "deep": True}, ["--flow", "advisors", "--deep", "judges"]),
        (None, {"preset": "ops", "tier": "light"}, ["--preset", "judges", "--tier", "advisors"]),
        (None, {"quick": True, "search": "brave"}, ["--quick", "judges", "--search", "general"]),
        ("judges", {"flow": "debate"}, ["--flow", "advisors", "--protocol", "judges"]),
        ("collaborative", {"deep": True}, ["--deep", "judges", "collaborative"]),
    ],
)
def test_flags_of_two_protocols_are_refused_by_name(
    protocol: str | None, flags: dict[str, Any], named: list[str]
) -> None:
    said = refusal("x", protocol=protocol, **flags)
    assert all(word in said for word in named)


@pytest.mark.behaviour("00-grammar-two-protocols")
def test_a_flag_against_the_prefix_is_refused() -> None:
    said = refusal("adversarial council: x", flow="debate")
    assert '--flow belongs to advisors, but the prefix "adversarial council:" chose adversarial' in said


@pytest.mark.behaviour("00-grammar-preset-general")
def test_a_preset_with_a_general_flag_chooses_general() -> None:
    assert read("x", protocol="general", preset="science").protocol == "general"


def test_an_unknown_option_is_refused_unless_a_third_party_protocol_is_named() -> None:
    assert 'did you mean "--flow"?' in refusal("x", flw=1)
    assert read("x", protocol="own", depth=3).options == {"depth": 3}


# Rule 3: verbs and targets choose the judges.


@pytest.mark.behaviour("002-task-triggers")
@pytest.mark.parametrize(
    ("verb", "task"),
    [(verb, "validate") for verb in ["validate", "check", "review", "assess", "critique", "feedback", "improve"]]
    + [(verb, "brainstorm") for verb in ["brainstorm", "explore", "options", "approaches"]]
    + [(verb, "research") for verb in ["research", "investigate", "analyze", "examine", "evaluate", "compare"]]
    + [("deep dive", "research"), ("Deep-dive", "research"), ("explore deeply", "research"), ("EXPLORE", "brainstorm")],
)
def test_a_leading_verb_chooses_the_task(verb: str, task: str) -> None:
    found = read(f"{verb} our queue service")
    assert (found.protocol, found.task) == ("judges", task)
    assert found.why == f'the verb "{verb.lower().replace("-", " ")}"'


@pytest.mark.behaviour("00-grammar-verb-leaves-question")
def test_a_task_verb_is_removed_from_the_question_and_its_synonyms_stay() -> None:
    assert read("validate: this plan").question == "this plan"
    assert read("compare Redis and Memcached").question == "compare Redis and Memcached"


@pytest.mark.behaviour("00-grammar-ask")
def test_a_separate_ask_argument_makes_a_plain_question() -> None:
    found = read(["ask", "validate", "my", "assumption"])
    assert (found.protocol, found.task, found.question) == ("collaborative", "ask", "validate my assumption")
    assert read("ask not what your country can do").question == "ask not what your country can do"


@pytest.mark.behaviour("00-grammar-trigger-elsewhere")
def test_a_verb_elsewhere_counts_only_with_an_existing_path(folder: Path) -> None:
    found = read("my colleague wants a review of src/auth", folder)
    assert (found.protocol, found.task, found.target) == ("judges", "validate", "src/auth")
    assert found.why == 'the verb "review" and the target "src/auth"'
    assert found.question == "my colleague wants a review of src/auth"
    assert read("my colleague wants a review of src/nowhere", folder).protocol == "collaborative"
    assert read("my colleague wants a review of the docs", folder).protocol == "collaborative"
    (folder / "src/old.py").symlink_to("gone.py")
    assert read("my colleague wants a review of src/old.py", folder).protocol == "collaborative"


@pytest.mark.behaviour("00-words-table")
def test_a_polite_opening_is_skipped_and_a_missing_path_is_still_a_target(folder: Path) -> None:
    found = read("please review src/auth", folder)
    assert (found.protocol, found.task, found.target, found.why) == (
        "judges",
        "validate",
        "src/auth",
        'the verb "review"',
    )
    assert found.question == "please review src/auth"
    assert read("could you check src/nowhere", folder).protocol == "judges"
    assert read("improve notes.txt, and/or replace it", folder).protocol == "judges"
    assert read("please review the docs", folder).protocol == "collaborative"


@pytest.mark.behaviour("00-grammar-lone-target")
@pytest.mark.parametrize(
    "words", ["recent", "staged", "src/auth", "docs", "README.md", "src/**/*.py", "HEAD~3..HEAD", "main...topic"]
)
def test_a_lone_target_is_validated_by_judges(words: str, folder: Path) -> None:
    found = read(words, folder)
    assert (found.protocol, found.task, found.target, found.why) == (
        "judges",
        "validate",
        words,
        f'the target "{words}"',
    )


@pytest.mark.parametrize(
    "words",
    [
        "Research-based design for schools",
        "Research shows that coffee helps; should I drink more?",
        "Feedback loops in biology",
        "`validate` is a name",
    ],
)
def test_a_noun_that_only_looks_like_a_verb_does_not_lead(words: str) -> None:
    assert read(words).protocol == "collaborative"


@pytest.mark.behaviour("00-targets-light")
@pytest.mark.parametrize(
    ("words", "target"),
    [
        ("validate recent", "recent"),
        ("review the recent changes", "recent"),
        ("validate recent, above all the security", "recent"),
        ("research recent advances in batteries", None),
        ("validate staged", "staged"),
        ("review main..topic for races", "main..topic"),
        ("validate the Makefile", "Makefile"),
        ("validate the plan", None),
        ("validate plan", "plan"),
        ("validate my notes.md", "my notes.md"),
        ("validate src/*/*.py", "src/*/*.py"),
        ("validate src/auth/jwt.py and README.md.", "src/auth/jwt.py README.md"),
        ("summarise README.md", "README.md"),
        ("why is there a /tmp folder?", None),
        ("plan our offsite", None),
        ("what does **bold** do, or a/b?", None),
    ],
)
def test_targets_are_kept_as_written(words: str, target: str | None, folder: Path) -> None:
    assert read(words, folder).target == target


def test_a_dash_is_standard_input_only_as_an_argument_at_an_edge() -> None:
    assert read(["validate", "-"]).target == "-"
    assert read(["summarise this", "-"]).target == "-"
    assert read("tea - or coffee").target is None


@pytest.mark.behaviour("002-example-lines")
@pytest.mark.parametrize(
    ("line", "flags", "task", "target"),
    [
        ("validate recent", {"quick": True}, "validate", "recent"),
        ("validate this plan", {}, "validate", None),
        ("brainstorm caching approaches", {}, "brainstorm", None),
        ("validate the implementation", {}, "validate", None),
        ("research kubernetes upgrade strategies", {}, "research", None),
        ("research the CI/CD pipeline bottlenecks", {}, "research", None),
        ("validate the auth system", {"preset": "security-audit"}, "validate", None),
        ("research upgrade automation", {"deep": True, "explorers": 3}, "research", None),
        ("validate the auth system", {"debate": True}, "validate", None),
        ("validate the migration plan", {"deep": True, "debate": True}, "validate", None),
        ("recent", {}, "validate", "recent"),
        ("recent", {"deep": True}, "validate", "recent"),
        ("recent", {"mixed": True}, "validate", "recent"),
        ("validate src/auth/", {"perspectives": "security-auditor,performance-critic"}, "validate", "src/auth/"),
        ("validate src/api/", {"perspectives_file": ".agents/perspectives/api-review.yaml"}, "validate", "src/api/"),
        ("research the auth system", {"deep": True, "preset": "architecture"}, "research", None),
        ("validate this plan", {"mixed": True}, "validate", None),
        ("research upgrade patterns", {"deep": True, "explorers": 3}, "research", None),
        ("validate the API", {"preset": "security-audit", "deep": True}, "validate", None),
        ("validate README.md", {"preset": "doc-review"}, "validate", "README.md"),
        ("brainstorm caching strategies for the API", {}, "brainstorm", None),
        ("brainstorm API improvements", {"technique": "scamper"}, "brainstorm", None),
        ("brainstorm migration strategy", {"technique": "six-hats"}, "brainstorm", None),
        ("validate the security architecture", {"profile": "thorough"}, "validate", None),
        ("validate recent", {"profile": "fast"}, "validate", "recent"),
        ("research Redis vs Memcached for session storage", {}, "research", None),
        ("validate the implementation plan in PLAN.md", {}, "validate", "PLAN.md"),
        ("validate docs/ARCHITECTURE.md", {"preset": "doc-review"}, "validate", "docs/ARCHITECTURE.md"),
        ("validate src/", {"perspectives": "security-auditor,perf-critic"}, "validate", "src/"),
        ("research Kubernetes upgrade strategies", {"mixed": True, "explorers": 2}, "research", None),
    ],
)
def test_the_documented_examples_work_quoted_or_not(
    line: str, flags: dict[str, Any], task: str, target: str | None, folder: Path
) -> None:
    for words in ([line], line.split()):
        found = read(words, folder, **flags)
        assert (found.protocol, found.task, found.target) == ("judges", task, target)


# The table of words: see tests/data/words.toml for its keys.

TABLE = tomllib.loads((Path(__file__).parents[1] / "data" / "words.toml").read_text(encoding="utf-8"))["rows"]
RIGHT_ROWS = [row for row in TABLE if "missed" not in row]


def read_row(row: dict[str, Any], folder: Path) -> Intent:
    return parse_intent(
        [row["words"]],
        {},
        folder=folder,
        known=KNOWN,
        piped=row.get("piped", False),
        can_search=lambda: bool(row.get("search")),
    )


@pytest.mark.behaviour("00-words-table")
@pytest.mark.parametrize("row", RIGHT_ROWS, ids=[row["words"][:60] for row in RIGHT_ROWS])
def test_words_choose_the_protocol_that_they_ask_for(row: dict[str, Any], folder: Path) -> None:
    found = read_row(row, folder)
    assert (found.protocol, found.task) == (row["protocol"], row.get("task", "ask")), found.why
    assert found.question == row.get("question", row["words"])
    assert found.target == row.get("target")
    if found.chosen_by is ChosenBy.TRIGGER:
        chosen = found.why.partition('"')[2].rstrip('"').removesuffix(" …")
        assert chosen and " ".join(chosen.lower().split()) in " ".join(row["words"].lower().split())


@pytest.mark.behaviour("00-words-level")
@pytest.mark.parametrize(("held", "share"), [("a", 0.98), ("b", 0.98), ("c", 0.95)])
def test_words_that_others_wrote_choose_the_protocol_that_they_ask_for(held: str, share: float, folder: Path) -> None:
    rows = [row for row in TABLE if row.get("held") == held]
    chosen = [(row["protocol"], read_row(row, folder).protocol) for row in rows]
    assert len(rows) >= 120
    assert sum(asked == found for asked, found in chosen) >= share * len(rows)
    everyday = [found for asked, found in chosen if asked == "collaborative"]
    assert everyday.count("adversarial") <= 0.03 * len(everyday)


# Rules 4 and 5: trigger words, else collaborative.


@pytest.mark.behaviour("000-trigger-which-is-better", "000-trigger-adversarial")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("which is better, REST or gRPC?", 'the words "which is better"'),
        ("Which Is Better: tea?", 'the words "which is better"'),
        ("which one is better for us", 'the words "which one is better"'),
        ("stress-test my plan", 'the words "stress-test"'),
        ("please stress test my plan", 'the words "stress test"'),
        ("REST vs gRPC", 'the word "vs"'),
        ("REST vs. gRPC", 'the word "vs"'),
        ("REST-vs-gRPC", 'the word "vs"'),
        ("REST versus gRPC", 'the word "versus"'),
        ("Debate the merger", 'the word "debate"'),
        ("an adversarial look at it", 'the words "adversarial look"'),
        ("challenge this plan", 'the word "challenge"'),
        ("try arguing for tabs", 'the word "arguing"'),
        ("attack my thesis", 'the word "attack"'),
        ("defend the budget", 'the word "defend"'),
    ],
)
def test_an_adversarial_trigger_that_is_asked_for_gives_adversarial(words: str, why: str) -> None:
    found = read(words)
    assert (found.protocol, found.why, found.question, found.task) == ("adversarial", why, words, "ask")


@pytest.mark.behaviour("00-choice-reason")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            "Should I take the job in Oslo, or stay where I am?",
            'the choice "Should I take the job in Oslo, or stay where I am"',
        ),
        ("Given the rent, should we buy or lease?", 'the choice "should we buy or lease"'),
        ("(a) buy it or (b) rent it: what should we do?", 'the choice "(a) buy it or (b) rent it: what should we do"'),
        ("We need a house (should we buy or rent?)", 'the choice "should we buy or rent"'),
        ("Split src/billing or keep it?", 'the choice "Split src/billing or keep it"'),
        ("İstanbul or İzmir?", 'the choice "İstanbul or İzmir"'),
        ("SHOULD WE MOVE TO İZMİR OR STAY?", 'the choice "SHOULD WE MOVE TO İZMİR OR STAY"'),
        ("买房还是租房？", 'the choice "买房还是租房"'),
        (
            f"Should we move to {'x' * 80} or stay?",
            'the choice "Should we move to …"',
        ),
    ],
)
def test_the_reason_quotes_a_choice_as_a_phrase(words: str, why: str) -> None:
    assert read(words).why == why


def test_lettered_options_far_from_their_question_are_material() -> None:
    options, question = "Our notes say: (a) buy the house (b) rent it. ", "What should we take?"
    assert read(f"{options}{question}").protocol == "adversarial"
    assert read(f"{options}{'The house is old. ' * 40}{question}").protocol == "collaborative"


@pytest.mark.behaviour("000-trigger-both-lists")
def test_words_of_both_lists_give_adversarial() -> None:
    assert read("collect creative ideas and debate them").protocol == "adversarial"


@pytest.mark.behaviour("000-trigger-collaborative", "000-trigger-default")
@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("plan our offsite", "the default"),
        ("a novel way to cool a flat", 'the word "novel"'),
        ("some ideas for lunch", 'the word "ideas"'),
        ("what can we build on here", 'the words "build on"'),
        ("a multi-agent look at lunch", 'the words "multi-agent"'),
    ],
)
def test_everything_else_is_collaborative(words: str, why: str) -> None:
    found = read(words)
    assert (found.protocol, found.why, found.task, found.verbose) == ("collaborative", why, "ask", False)


@pytest.mark.behaviour("00-trigger-exceptions", "00-trigger-whole-words")
@pytest.mark.parametrize(
    "words",
    [
        "how do I survive a heart attack",
        "he argues for tabs",
        "we are stress testing a bridge",
        "Heart-attack symptoms",
        "our biggest challenge is hiring",
        "what are the challenges of remote work",
        "a challenging year for us",
        "reduce the attack surface",
        "defend against phishing attacks",
        "tips for VS Code",
        "join the debate club?",
        "attackers and defenders in football",
        "the argument of a function",
        "unchallenged champions",
        "explain src/attack.py",
        "read https://example.com/attack-vs-defend",
        "fix `attack()` in my game",
        "why does this fail\n```\ndebate = attack\n```",
    ],
)
def test_words_that_mean_something_else_trigger_nothing(words: str) -> None:
    assert read(words).protocol == "collaborative"


@pytest.mark.behaviour("00-trigger-exceptions")
def test_an_exception_does_not_hide_another_trigger() -> None:
    assert read("attack my plan for heart attack care").protocol == "adversarial"


# Verbose.


@pytest.mark.behaviour("000-verbose-phrases", "00-verbose-removed")
@pytest.mark.parametrize(
    ("words", "question"),
    [
        ("verbose which queue", "which queue"),
        ("which queue verbose", "which queue"),
        ("which queue? Verbose.", "which queue?"),
        ("which queue, verbose, for us", "which queue, for us"),
        ("which queue (verbose)?", "which queue?"),
        ("verbose council: pick a queue", "pick a queue"),
        ("run a verbose council on queues", "run a council on queues"),
        ("show debate: pick a queue", "pick a queue"),
        ("pick a queue, show council", "pick a queue"),
        ("pick a queue. Show debate. For us", "pick a queue. For us"),
        ("pick a queue, please be verbose", "pick a queue"),
        ("verbose adversarial council: pick a queue", "pick a queue"),
        ("adversarial council (verbose): pick a queue", "pick a queue"),
        ("adversarial council, show debate: pick a queue", "pick a queue"),
        ("adversarial council: verbose pick a queue", "pick a queue"),
        ("validate my queue verbose", "my queue"),
    ],
)
def test_a_verbose_phrase_turns_verbose_on_and_is_removed(words: str, question: str) -> None:
    found = read(words)
    assert (found.verbose, found.question) == (True, question)


@pytest.mark.behaviour("00-verbose-removed")
def test_a_verbose_phrase_is_removed_before_triggers_are_matched() -> None:
    assert read("pick a queue, show debate").why == "the default"


@pytest.mark.parametrize(
    "words",
    [
        "why is our logging so verbose",
        "is Java verbose?",
        "verbose logging in production, yes or no?",
        "what does --verbose do",
        "run pytest with --verbose",
        "should the verbose flag be kept",
        "how do I show council members on a map",
        "verbose=true means what",
    ],
)
def test_a_question_about_verbosity_keeps_its_words(words: str) -> None:
    found = read(words)
    assert (found.verbose, found.question) == (False, words)


def test_the_flag_turns_verbose_on_too() -> None:
    assert parse_intent(["x"], {}, verbose=True, folder=Path(), known=KNOWN).verbose


@pytest.mark.behaviour("00-grammar-empty-question")
@pytest.mark.parametrize("words", ["", "  ", "verbose", "adversarial council:", "validate", "show debate"])
def test_an_empty_question_is_refused(words: str) -> None:
    assert "no question was given" in refusal(words)


# Arbitrary input.

SPICE = [
    "verbose",
    "show debate",
    "council",
    ":",
    ",",
    "(",
    ")",
    "-",
    "--",
    "validate",
    "review",
    "vs",
    "`",
    "```",
    "**",
    "*.py",
    "../",
    "..",
    "?",
    "[",
    "\n",
    "\0",
    "ask",
    "recent",
    "ſ",
    "İ",
    "ı",
]
WORDS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.lists(st.sampled_from(SPICE), max_size=8).map(" ".join),
        st.lists(st.sampled_from(SPICE), max_size=5).map("".join),
    ),
    max_size=6,
)


@given(
    words=WORDS,
    flags=st.sets(st.sampled_from(["flow", "deep", "preset", "search", "technique", "nonsense"]), max_size=2),
)
def test_any_input_is_parsed_or_refused(words: list[str], flags: set[str]) -> None:
    try:
        found = parse_intent(words, dict.fromkeys(flags, "x"), folder=Path(), known=KNOWN)
    except UsageError as refused:
        assert str(refused)
    else:
        assert found.question and found.why and found.protocol in KNOWN


@pytest.mark.parametrize(
    ("words", "task", "question"),
    [
        ("research queues", "research", "queues"),
        ("brainstorm queues", "validate", "brainstorm queues"),
        ("Which queue?", "validate", "Which queue?"),
    ],
)
@pytest.mark.behaviour("00-protocol-tasks")
def test_a_third_party_protocol_declares_the_tasks_that_verbs_choose(words: str, task: str, question: str) -> None:
    own = Protocol("own-tasks", "own:own", tasks=("validate", "research"))
    protocols.register(own)
    try:
        found = parse_intent([words], {}, protocol="own-tasks", folder=Path(), known=("own-tasks",))
    finally:
        protocols._registered.pop("own-tasks")
    assert (found.task, found.question) == (task, question)


@pytest.mark.parametrize(
    ("words", "flags", "protocol", "placed"),
    [
        ([], {}, None, (["some text"], None)),
        (["-"], {}, None, (["some text"], None)),
        (["ask"], {}, "judges", (["ask", "some text"], None)),
        ([], {}, "collaborative", (["some text"], None)),
        ([], {}, "judges", (["validate", "-"], "some text")),
        (["review"], {}, None, (["review"], "some text")),
        (["validate"], {}, None, (["validate", "-"], "some text")),
        (["validate", "this"], {}, None, (["validate", "this"], "some text")),
        (["explain this: -"], {}, None, (["explain this:"], "some text")),
    ],
)
def test_piped_text_is_the_question_only_if_the_words_have_none(
    words: list[str], flags: dict[str, Any], protocol: str | None, placed: tuple[list[str], str | None]
) -> None:
    assert place_piped_text(words, "some text", flags, protocol=protocol, known=KNOWN) == placed
