"""Marks of replies and the reading of votes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from council.final_answers.choices import LETTERS
from council.final_answers.finder import find_last_answer
from council.final_answers.marks import Question, find_kind, make_key, mark_reply, read_reply

CITIES = ("Lisbon", "Oslo", "Quito", "Hanoi", "Kabul", "Tunis", "Minsk", "Dakar", "Seoul", "Rabat")
REPLIES = (
    "{x}", "({x})", "{x})", "{x}.", "{x}. {city}", "**{x}**", "Answer: {x}", "answer: ({x}) {city}", "My final answer: ({x}) {city}", r"\boxed{{{x}}}",
    r"\boxed{{\text{{{x}}}}}", "The answer is {x}.", "The correct choice is {x}, because it is far.", "option {x}", "choice {x}.", "So it must be {x}.",
    "It is not {y} but {x}.", "{y} is wrong, so is {z}. The answer is {x}.", "Answer: not {x}", "Answer: {x} or {y}", "{x} is correct; {y} is not.",
    "I think it's {x}", "I would go with {x} rather than {y}.", "{city}", "It is {city} ({x}).", "Option {x} fits best, {y} fails the test.",
    "{y} and {z} are out, so {x} remains.", "Answer: {x}, not {y}", "Neither {y} nor {z} works, {x} does.", "Either {x} or {y}.",
    "Answer: {y}\n\nWait, that is wrong.\n\nAnswer: {x}", "A fair question. I say {x}.", "As a rule, I look at all of them. {x} is the one.",
    "I see a pattern: {x}", "It was, I think, A long day for {city}.", "I considered {x}, {y} and {z}; {x} is best.", "So B-flat aside, {x} it is!",
    "a good guess is {city}", "{x} because {y} is too small", "I'd eliminate {y} and {z}; {x} it is.", "The text says {y}, but my final choice is {x}.",
)  # fmt: skip


@pytest.mark.behaviour("evidence-letters")
@settings(max_examples=120, deadline=None)
@given(st.sampled_from(REPLIES), st.sampled_from([4, 10]), st.integers(0, 10**6), st.integers(0, 2))
def test_no_letter_is_special(reply: str, count: int, seed: int, right: int) -> None:
    """Permute the choices, and the letters of the reply and of the key with them: the mark stays."""
    draw = random.Random(seed)
    named = draw.sample(range(count), 3)

    def mark(order: list[int]) -> str:
        choices = tuple(CITIES[n] for n in order)
        x, y, z = (LETTERS[order.index(n)] for n in named)
        key = make_key((x, y, z)[right], Question("Which city?", choices))
        return mark_reply(reply.format(x=x, y=y, z=z, city=CITIES[named[0]]), key)

    orders = [draw.sample(range(count), count) for _ in range(5)]
    assert len({mark(order) for order in orders}) == 1


@pytest.mark.behaviour("evidence-graders")
@pytest.mark.parametrize(
    ("key", "reply", "mark"),
    [
        ("16", "2^4 = 16", "right"), ("2", "2^4 = 16", "wrong"), ("9", "3 × 3 = 9", "right"), ("1000000", "1 million", "right"), ("-5", "minus 5", "right"),
        ("2.5", "2 1/2", "right"), ("0.5", r"\frac{1}{2}", "right"), ("0.5", "50 %", "right"), ("0.5", "50%", "right"), ("5", "either 4 or 5", "ambiguous"),
        ("3.14", "3.14159", "right"), ("3.14159", "3.14", "wrong"), ("1250.50", "1.250,50 €", "right"), ("1200", "1.200", "ambiguous"), ("42", "", "unreadable"),
        ("yes", "Yes, it is", "right"), ("1, 2, 3", "1,2,3", "right"), ("1 May 2026", "May 1st, 2026", "right"), ("2026-04-03", "03/04/2026", "ambiguous"),
        ("42", "Answer: 41\n\nAnswer: 42", "ambiguous"), ("42", "Answer: 41\n\nWait, I missed one.\n\nAnswer: 42", "right"), ("Lyon", "Paris, not Lyon", "wrong"),
        ("42", "The answer depends on the shop.", "unreadable"), ("42", "So the result of all this is", "unreadable"), ("7", "seven", "right"),
    ],
)  # fmt: skip
def test_the_last_value_is_marked_by_the_form_of_the_key(key: str, reply: str, mark: str) -> None:
    assert mark_reply(reply, make_key(key, Question("What is it?"))) == mark


@pytest.mark.behaviour("evidence-graders")
@pytest.mark.parametrize(
    ("question", "key", "reply", "mark"),
    [
        # corrections: what is taken back is not the answer
        ("In which city?", "Portsmouth", "I think Portsmouth. Actually no: Washington. That's my final answer.", "wrong"),
        ("In which city?", "Portsmouth", "Answer: Portsmouth\n\nActually, I misremembered. It was Washington.", "wrong"),
        ("How many?", "15", "The count is 15 — scratch that, 16, I forgot the last one.", "wrong"),
        ("What was it?", "100", "So it was 200.\n\nHmm, I halved four times only. Once more gives 100.", "right"),
        # a name that a sentence only mentions
        ("Which river is it?", "Danube", "The Wien, a tributary of the Danube.", "wrong"),
        ("Who did it?", "the butler", "The cook framed the butler.", "wrong"),
        ("Who did it?", "the butler", "The butler was accused, but it was the cook.", "wrong"),
        ("What does it print?", "hello", "It raises a NameError before printing hello.", "wrong"),
        ("Who is taller?", "Bo", "Bo is shorter than Ann.", "wrong"),
        ("Who wrote it?", "Mary Shelley", "Mary Shelley's husband, Percy", "wrong"),
        # two names, and names that several people have
        ("Which protocol?", "IMAP", "IMAP/POP3", "ambiguous"),
        ("Who found it?", "Carl Scheele", "Both Priestley and Scheele have a claim.", "ambiguous"),
        ("Which president?", "George H. W. Bush", "President Bush", "ambiguous"),
        ("Which president?", "George H. W. Bush", "George W. Bush", "wrong"),
        ("Which president?", "George H. W. Bush", "George H.W. Bush", "right"),
        ("Who found it?", "Carl Wilhelm Scheele", "C. W. Scheele", "right"),
        ("Qui a écrit le livre ?", "Victor Hugo", "Il s'agit bien sûr de Victor Hugo.", "right"),
        # no answer
        ("Who chaired it?", "Ruth Alvarez", "Could you share the minutes? Once I have them I can tell you.", "unreadable"),
        ("Who chaired it?", "Ruth Alvarez", "The person who chaired it is the person who", "unreadable"),
        ("What is the remainder?", "1", "We reduce the powers.\n- $2^3 = 8 \\equiv 3$\n- $2^4 = 16 \\equiv$", "unreadable"),
        ("Is the argument valid?", "yes", "The argument has two premises. Validity has to be distinguished from soundness.", "unreadable"),
        # yes and no
        ("Does the lease allow subletting?", "no", "Under clause 9 the tenant may not sublet.", "right"),
        ("Is the graph bipartite?", "no", "1. Colour 1 red. Yes, works.\n2. Conflict.\n\nSo the graph is not bipartite.", "right"),
        ("Is the graph bipartite?", "yes", "Is there an odd cycle? No. Hence, the graph is bipartite.", "right"),
        ("Does the text mention it?", "no", "The text does not mention it.", "right"),
        # dates, times and durations
        ("In which century?", "14th century", "in the early fourteenth century", "right"),
        ("When was it?", "Q3 2021", "in the third quarter of 2021", "right"),
        ("When did it begin?", "28 July 1914", "It lasted from 28 July 1914 to 11 November 1918.", "right"),
        ("When did it end?", "28 July 1914", "It lasted from 28 July 1914 to 11 November 1918.", "wrong"),
        ("How long did it take?", "2:08:14", "2 hours, 8 minutes and 14 seconds", "right"),
        ("How long did it take?", "2:08:14", "2:08:41", "wrong"),
        # money and signs in words
        ("What does it cost?", "3.50", "It costs three dollars and fifty cents.", "right"),
        ("What is the profit?", "-1200", "The company made a loss of 1,200.", "right"),
        ("What is the temperature?", "-5", "5 degrees below zero", "right"),
    ],
)  # fmt: skip
def test_a_reply_is_marked_by_what_it_concludes(question: str, key: str, reply: str, mark: str) -> None:
    assert mark_reply(reply, make_key(key, Question(question))) == mark


@pytest.mark.behaviour("evidence-graders")
@pytest.mark.parametrize(
    ("question", "key", "reply", "mark"),
    [
        # verdicts, questions with a phrase before the verb, and "without" on both sides
        ("Is it legal to cross the border here?", "yes", "So it is legal.", "right"),
        ("Is it legal to cross the border here?", "yes", "Therefore, it is not legal.", "wrong"),
        ("Under US GAAP, is LIFO permitted as a method?", "yes", "LIFO isn't permitted there either.", "wrong"),
        ("Can it be won without winning the vote?", "yes", "So it can't be won without winning the vote.", "wrong"),
        ("Is it so?", "no", "Answer: Yes\n\nThe polls say otherwise, so the answer is no.", "ambiguous"),
        ("Is it so?", "no", "Answer: No\n\nMany people think the answer is yes.", "right"),
        # numbers
        ("How many zeros are at the end of 100!?", "24", "Thus 100! ends in twenty-four zeros.", "right"),
        ("How many zeros are at the end of 100!?", "24", "So 100! has 24 trailing zeros.", "right"),
        ("What is the root?", "12", "Since (-12)² = 144, the root of 144 is 12 or −12.", "ambiguous"),
        # dates
        ("When was it?", "8 September 2022", "Date (dd/mm/yyyy): 08/09/2022", "right"),
        ("When was it? (MM/DD/YYYY)", "8 September 2022", "08/09/2022", "wrong"),
        ("When was it?", "8 September 2022", "It happened on 08/09/2022.", "ambiguous"),
        ("When did it land?", "20 July 1969", "In 1969, it landed on July 20.", "right"),
        ("What is the last day?", "29 February 2024", "February 2024 therefore ends on Feb. 29.", "right"),
        # cases, code and symbols
        ("Which case?", "Marbury v. Madison", "**Marbury vs Madison (1803)**", "right"),
        ("Which case?", "Marbury v. Madison", "It was McCulloch v. Maryland.", "wrong"),
        ("Which command?", "git log", "Run:\n\n```bash\n$ git log\n```\n\nUse `--oneline` for less.", "right"),
        ("Which command?", "git log", "Run:\n\n```\n$ git status\n```\n\nThis is not `git log`.", "wrong"),
        ("Which token matches a digit?", r"\d", r"A digit is matched by `\D`.", "wrong"),
        ("Which body runs it?", "World Health Organization", "The World Health Organization (WHO).\n\nAnswer: WHO", "right"),
        # no answer
        ("Which treaty ended the war?", "Treaty of Ghent", "It was ended by a treaty. I can tell you more about it!", "unreadable"),
        ("Which treaty ended the war?", "Treaty of Ghent", "Let's look at the history of the war first.", "unreadable"),
        ("Which treaty ended the war?", "Treaty of Ghent", "It was the Treaty of Paris. Would you like more?", "wrong"),
    ],
)  # fmt: skip
def test_a_reply_is_marked_by_what_it_says_of_the_question(question: str, key: str, reply: str, mark: str) -> None:
    assert mark_reply(reply, make_key(key, Question(question))) == mark


@pytest.mark.behaviour("evidence-graders")
@pytest.mark.parametrize(
    ("key", "items", "reply", "mark"),
    [
        ("nitrogen, oxygen", "ordered", "Answer: 1) Nitrogen (N₂, ~78%) 2) Oxygen (O₂, ~21%)", "right"),
        ("nitrogen, oxygen", "ordered", "Answer: 1) Oxygen 2) Nitrogen", "wrong"),
        ("nitrogen, oxygen", "ordered", "Nitrogen, ~78%, and oxygen, ~21%", "right"),
        ("2, 7", "set", "λ₁ = 7, λ₂ = 2", "right"),
        ("1, 1, 2, 3, 5", "ordered", "Starting with F₁ = F₂ = 1, we obtain 1, 1, 2, 3, and 5.", "right"),
        ("1, 1, 2, 3, 5", "ordered", "We get 1, 2, 3, 5 and 8.", "wrong"),
        ("Huron, Erie", "set", "It borders both: Lake Erie and Lake Huron.", "right"),
        ("Huron, Erie", "set", "It borders three: Lake Erie, Lake Huron and Lake Ontario.", "wrong"),
        ("pepsin, trypsin", "set", "Answer: pepsin and trypsin/amylase", "ambiguous"),
        ("helium, neon", "set", "He (helium) and Ne (neon) are.\n\nAnswer: He, Ne", "right"),
        ("helium, neon", "set", "He (helium) and Ne (neon) are.\n\nAnswer: He, Kr", "wrong"),
    ],
)  # fmt: skip
def test_items_are_read_from_any_form_of_list(key: str, items: Any, reply: str, mark: str) -> None:
    assert mark_reply(reply, make_key(key, Question("Which are they?", (), items))) == mark


@pytest.mark.behaviour("evidence-graders")
@pytest.mark.parametrize(
    ("reply", "mark"),
    [
        ("40 cm × 30 cm × 25 cm", "right"), ("40x30x25", "right"), ("length 40, width 30, height 25", "right"), ("30 × 40 × 25 cm", "wrong"),
        ("I'm sorry, but I can't share the dimensions.", "unreadable"), ("Length: 40 cm\nWidth: 30 cm\nHeight: 25 cm", "right"),
    ],
)  # fmt: skip
def test_measures_are_a_list(reply: str, mark: str) -> None:
    assert mark_reply(reply, make_key("40, 30, 25", Question("Give the dimensions in cm.", (), "ordered"))) == mark


def test_a_list_that_breaks_off_is_no_answer() -> None:
    key = make_key("Aventine, Caelian, Capitoline", Question("Name the hills.", (), "set"))
    assert mark_reply("They are:\n\n1. Aventine\n2. Cael", key) == "unreadable"


@pytest.mark.parametrize(("items", "mark"), [("set", "right"), ("ordered", "wrong")])
def test_the_order_of_a_list_counts_unless_it_is_a_set(items: Any, mark: str) -> None:
    key = make_key("red, green, blue", Question("Which colours?", (), items))
    assert mark_reply("Answer: blue, red and green", key) == mark


@pytest.mark.behaviour("evidence-votes-abstain")
@pytest.mark.parametrize(
    ("kind", "said", "answer"),
    [
        ("number", ["Answer: 1,200", "1.2k", r"\boxed{1200}", "So it is 3 × 400 = 1200."], "1200"),
        ("number", ["25 %", "1/4", "0.25"], "0.25"),
        ("choice", ["B", "(B)", "Oslo", "Answer: b) Oslo"], "B"),
        ("yes/no", ["Yes.", "Answer: true", "Yes, it does."], "yes"),
        ("date", ["May 1, 2026", "2026-05-01", "1.5.2026"], "2026-05-01"),
        ("time", ["5:25 pm", "17:25"], "17:25"),
    ],
)
def test_equal_answers_are_one_vote(kind: Any, said: list[str], answer: str) -> None:
    question = Question("Which?", CITIES[:4] if kind == "choice" else ())
    assert {read_reply(text, kind, question).answer for text in said} == {answer}


@pytest.mark.behaviour("evidence-votes-abstain")
@pytest.mark.parametrize(
    ("kind", "said"),
    [("number", "4 or 5"), ("choice", "A or B"), ("yes/no", "yes and no"), ("number", "Answer: 4\n\nAnswer: 5")],
)
def test_an_answer_that_is_left_open_is_no_vote(kind: Any, said: str) -> None:
    found = read_reply(said, kind, Question("Which?", CITIES[:4] if kind == "choice" else ()))
    assert (found.answer, found.is_ambiguous) == ("", True)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("Answer: Oslo", "text"),
        ("Answer: 42", "number"),
        ("Answer: yes", "yes/no"),
        ("Answer: 17:25", "time"),
        ("1 May 2026", "date"),
    ],
)
def test_the_kind_of_an_answer_without_a_key_is_that_of_its_last_line(reply: str, kind: str) -> None:
    assert find_kind(reply, "Which?") == kind


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["42", "yes", "B", "1 May 2026", "17:25", "Oslo", "O(n^2)", "1, 2"]))
def test_any_text_gets_a_mark(reply: str, key: str) -> None:
    asked = Question("Which?", CITIES[:4]) if key == "B" else Question("Which?")
    assert mark_reply(reply, make_key(key, asked)) in ("right", "wrong", "ambiguous", "unreadable")
    assert isinstance(find_last_answer(reply), str)


@pytest.mark.parametrize(
    "piece", ["A ", "1,", "(", "**", "\\frac{", "answer: ", "- 1\n", "5^", "| a |\n", " ", "A or ", "yes, "]
)
def test_long_replies_are_read_in_time(piece: str) -> None:
    """The reader looks at the end of a reply only, so that a flood takes no longer than a long answer."""
    keys = [
        make_key("B", Question("Which?", CITIES[:4])),
        *(make_key(key, Question("Which?")) for key in ("42", "yes", "1 May 2026", "Oslo")),
    ]
    for key in keys:
        assert mark_reply(piece * (50_000 // len(piece)), key)
