"""Blind comparisons of two texts for open questions: the reply of a judge, the rule for two orders, and the summary.

Each judge compares the two texts twice, in both orders, without knowing who wrote them. A text wins if the judge
prefers it in both orders. `council eval --grader blind` uses it: each comparison is a run of the protocol `blind`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Any, ClassVar, Literal, TypedDict, cast

from pydantic import BeforeValidator, Field, WithJsonSchema

from council.engine.council import Council
from council.engine.minutes import Minutes
from council.engine.reply import Reply, also_named
from council.engine.reply_form import Choices
from council.errors import QuorumLost
from council.evals.conclusions import (
    Conclusion,
    compare_prices,
    describe_few,
    find_cheapest,
    format_chance,
    format_needed,
)
from council.evals.statistics import (
    MIN_QUESTIONS,
    Interval,
    NeededQuestions,
    bootstrap_mean,
    count_needed_questions,
    is_decided,
    read_interval,
    sign_test,
)
from council.protocols import Protocol, find_protocol
from council.protocols.common.lengths import count_words
from council.protocols.common.replies import TextField
from council.protocols.options import Options
from council.protocols.seats import Panel, PanelContext
from council.runs.eval_object import BlindArm, BlindObject, JudgeUse, PreferenceObject
from council.settings.member_lookup import Candidate
from council.text_cleanup import strip_confidence_section
from council.types import Json, Round, Seat, Verdict

NAME = "blind"
MAX_JUDGES = 8
DEFAULT_JUDGES = 3
EQUAL_LENGTH = 0.1  # share of the longer text by which the lengths may differ
MIN_EQUAL_LENGTH = 5  # questions; below, their preference is not shown
ORDERS = ("forward", "swapped")  # the phases; in the first one the text is A
# Parts of an answer that tell who sat in the council, which a reader of the answer does not need.
ACCOUNT_SECTIONS = ("disagreements", "models", "tensions", "moves", "perspectives")
LASTING_ABSENCES = ("failed(schema)", "refused", "degenerate", "truncated")  # asking again would not help


# The reply of a judge

BETTER_WORDS = {"a": "A", "b": "B"} | dict.fromkeys(
    ("tie", "tied", "draw", "equal", "even", "neither", "both", "none", "no difference", "same"), "tie"
)
LABEL_WORDS = re.compile(r"\A(?:text|answer|response|option|version)\s+")
SCORE = re.compile(r"\A(\d{1,2}(?:[.,]\d+)?)\s*(?:(?:/|of|out of)\s*10)?(?:\s*points?)?\Z")


def read_better(value: Any) -> Any:
    """Return A, B or tie for a word that means it; any other value stays, so that validation reports it."""
    if not isinstance(value, str):
        return value
    word = " ".join(value.casefold().strip(" \t\r\n*_`\"'().:").split())
    return BETTER_WORDS.get(LABEL_WORDS.sub("", word), value)


def read_score(value: Any) -> Any:
    """Return a score from 0 to 10 in halves: 7.5, "8/10", "7,5". None stays."""
    if isinstance(value, str):
        found = SCORE.match(value.strip(" *_`").casefold())
        value = float(found[1].replace(",", ".")) if found else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if not 0 <= value <= 10:
        raise ValueError(f"{value:g} is not between 0 and 10")
    return math.floor(2 * value + 0.5) / 2


def _describe_score(label: str) -> Any:
    about = f"how good Text {label} is, from 0 to 10; halves are allowed"
    names = also_named(f"score{label}", f"{label}_score", f"rating_{label}", f"points_{label}")
    return WithJsonSchema({"type": "number", "minimum": 0, "maximum": 10, "description": about} | names)


class Preference(Reply):
    """What a judge says about two texts. The decision is the last field, after its reasons."""

    takes_a_position: ClassVar[bool] = False

    reason_a: TextField = Field(
        default="",
        description="one or two sentences on Text A: its worst error or gap, and what it does better than Text B",
        json_schema_extra=also_named("reasons_a", "a_reason", "comment_a", "why_a", "text_a"),
    )
    reason_b: TextField = Field(
        default="",
        description="one or two sentences on Text B: its worst error or gap, and what it does better than Text A",
        json_schema_extra=also_named("reasons_b", "b_reason", "comment_b", "why_b", "text_b"),
    )
    score_a: Annotated[float | None, BeforeValidator(read_score), _describe_score("a")] = None
    score_b: Annotated[float | None, BeforeValidator(read_score), _describe_score("b")] = None
    better: Annotated[Literal["A", "B", "tie"], BeforeValidator(read_better)] = Field(
        description='the text that serves the reader better: "A", "B", or "tie" if it makes no difference',
        json_schema_extra=also_named("winner", "preference", "preferred", "verdict", "better_text"),
    )

    def check_choices(self, choices: Choices) -> None:
        """Refuse a preference for the text with the lower score: which of the two is meant cannot be known."""
        if self.score_a is None or self.score_b is None:
            return
        lower = "A" if self.score_a < self.score_b else "B" if self.score_b < self.score_a else ""
        if lower and self.better == lower:
            raise ValueError(
                f'better is "{lower}", but Text {lower} has the lower score: correct the scores, or decide otherwise'
            )

    def prose(self) -> str:
        scores = " and ".join(
            f"Text {label} {score:g} of 10"
            for label, score in (("A", self.score_a), ("B", self.score_b))
            if score is not None
        )
        reasons = [f"Text {label}: {why}" for label, why in (("A", self.reason_a), ("B", self.reason_b)) if why]
        better = "neither text" if self.better == "tie" else f"Text {self.better}"
        return "\n\n".join([*reasons, f"Better: {better}{f' ({scores})' if scores else ''}."])

    @classmethod
    def vary(cls, plain: Json, n: int) -> Json:
        return {**plain, "better": ("A", "B", "tie")[n % 3]}


# The rule for two orders


Outcome = Literal["text", "base", "tie"]
POINTS: Mapping[Outcome, float] = {"text": 1.0, "tie": 0.5, "base": 0.0}


class Judgement(TypedDict):
    """What one judge says about a text and the base, from both orders."""

    outcome: Outcome
    inconsistent: bool  # the judge preferred a position, not a text
    score: float | None  # of the text, mean of both orders
    base_score: float | None


class JudgementRow(Judgement):
    """The judgement of a seat, with its replies in both orders."""

    seat: str
    member: str
    replies: list[Json]


class ComparisonDetails(TypedDict):
    """The details of a verdict."""

    judgements: list[JudgementRow]
    absent: dict[str, str]  # seat → why it has no readable reply in both orders


def join_orders(forward: Preference, swapped: Preference) -> Judgement:
    """Return the judgement of a judge: a text wins if it is preferred in both orders, everything else is a tie.

    The text is A in `forward` and B in `swapped`.
    """
    names: Mapping[str, Outcome] = {"A": "text", "B": "base", "tie": "tie"}
    swapped_names: Mapping[str, Outcome] = {"A": "base", "B": "text", "tie": "tie"}
    first, second = names[forward.better], swapped_names[swapped.better]
    return {
        "outcome": first if first == second else "tie",
        "inconsistent": forward.better == swapped.better != "tie",
        "score": _mean([forward.score_a, swapped.score_b]),
        "base_score": _mean([forward.score_b, swapped.score_a]),
    }


# Texts and judges


def extract_text(minutes: Minutes) -> str:
    """Return the answer of a run as it is compared: without tail and confidence, and without what names seats or
    models.
    """
    sections = find_protocol(minutes.plan.get("protocol") or "").load_report_view().answer_sections(minutes)
    if sections:
        (_, _, decision), *others = sections
        kept = [f"## {title}\n\n{text}" for name, title, text in others if name not in ACCOUNT_SECTIONS]
        text = "\n\n".join([decision, *kept])
    else:
        text = str(minutes.verdict.get("answer") or "")
    return strip_confidence_section(text).strip()


def choose_judges(candidates: Iterable[Candidate], members: Collection[str]) -> list[str]:
    """Return the judges: candidates that sit in no arm, else all of them, of different vendors where possible."""
    known = list(candidates)
    left = [one for one in known if one.member not in members] or known
    chosen: list[Candidate] = []
    while left and len(chosen) < DEFAULT_JUDGES:
        taken = [one.vendor for one in chosen]
        best = min(left, key=lambda one: taken.count(one.vendor))
        left.remove(best)
        chosen.append(best)
    return [one.member for one in chosen]


# The protocol


class BlindOptions(Options):
    """The two texts. `text` is that of an arm, `base` that of the arm it is compared with."""

    text: str = Field(description="The text that is A in the first order.", json_schema_extra={"internal": True})
    base: str = Field(description="The text that is B in the first order.", json_schema_extra={"internal": True})


def judge_panel(task: str, chosen: BlindOptions, context: PanelContext) -> Panel:
    """Return one seat for each member that `-m` names."""
    count = max(1, len(context.settings.named_members))
    return Panel(tuple(Seat(f"judge-{n}", f"Judge {n}") for n in range(1, count + 1)), None)


async def compare_blind(council: Council, text: str, base: str) -> Verdict:
    """Let every judge compare the two texts in both orders, each time in a new conversation."""
    rounds: list[Round[Preference]] = []
    for order, texts in zip(ORDERS, ({"A": text, "B": base}, {"A": base, "B": text}), strict=True):
        async with council.phase(order):
            heard = await council.poll(council.members, "blind/compare", reply=Preference, quorum=0, texts=texts)
            require_judge(heard)
        rounds.append(heard)
    return decide(*rounds)


def require_judge(heard: Round[Preference]) -> None:
    """Raise QuorumLost if no judge answered and asking again may help, so that the run can be continued."""
    if not heard and not {gone.state for gone in heard.absent.values()} <= {*LASTING_ABSENCES}:
        reasons = "; ".join(f"{name}: {gone.state}" for name, gone in heard.absent.items())
        raise QuorumLost(f"no judge answered ({reasons})")


def decide(forward: Round[Preference], swapped: Round[Preference]) -> Verdict:
    """Return the judgements as details. A judge without a readable reply in both orders is absent."""
    rows: list[JudgementRow] = []
    absent: dict[str, str] = {}
    for name in dict.fromkeys((*forward, *forward.absent)):
        if problem := _find_problem(name, forward, swapped):
            absent[name] = problem
            continue
        first, second = forward[name], swapped[name]
        joined = join_orders(first.reply, second.reply)
        replies = [first.reply.model_dump(), second.reply.model_dump()]
        rows.append({"seat": name, "member": first.outcome.served_by, **joined, "replies": replies})
    return Verdict(describe_judgements(rows, absent), details={"judgements": rows, "absent": absent})


def _find_problem(name: str, *rounds: Round[Preference]) -> str:
    """Return why a judge did not compare whole texts in every order; empty if it did."""
    for heard in rounds:
        if name not in heard:
            return heard.absent[name].state
        if heard[name].outcome.cut:
            return "cut"  # the texts did not fit, so the judge has read only a part
    return ""


def describe_judgements(rows: Sequence[JudgementRow], absent: Mapping[str, str]) -> str:
    """Return the judgements in words, one line for each judge."""
    words = {"text": "the first text", "base": "the second text", "tie": "no preference"}
    lines = [
        f"- {row['seat']}: {words[row['outcome']]}{' (it depends on the order)' if row['inconsistent'] else ''}"
        for row in rows
    ]
    return "\n".join([*lines, *(f"- {name}: absent ({state})" for name, state in absent.items())])


PROTOCOL = Protocol(
    NAME,
    compare_blind,
    chair=None,
    summary="compare two texts without their authors, in both orders",
    options=BlindOptions,
    panel=judge_panel,
    spread=False,
    reads_question=False,
    keeps_conversations=False,
    allows_look=False,
    purpose="the comparisons of `council eval --grader blind`",
)


# Statistics


@dataclass(frozen=True, slots=True)
class Pair:
    run: str
    words: int
    base_words: int
    judgements: Sequence[JudgementRow]
    absent: int = 0  # judges without a readable reply in both orders

    @property
    def share(self) -> float:
        """The share of the judges that prefer the text; a tie counts half."""
        return math.fsum(POINTS[one["outcome"]] for one in self.judgements) / len(self.judgements)

    @property
    def is_equal_length(self) -> bool:
        return abs(self.words - self.base_words) <= EQUAL_LENGTH * max(self.words, self.base_words)


def read_pair(run: str, minutes: Minutes, text: str, base: str) -> Pair:
    details = cast("ComparisonDetails", minutes.verdict["details"])
    return Pair(run, count_words(text), count_words(base), details["judgements"], len(details["absent"]))


def summarize(pairs: Iterable[Pair]) -> PreferenceObject:
    """Return the summary of one arm against the base. Questions that no judge compared count only as absent."""
    known = list(pairs)
    judged = [pair for pair in known if pair.judgements]
    shares = [pair.share for pair in judged]
    judgements = [one for pair in judged for one in pair.judgements]
    outcomes = [one["outcome"] for one in judgements]
    same = [a["outcome"] == b["outcome"] for pair in judged for a, b in combinations(pair.judgements, 2)]
    scored = [
        [
            (one["score"], one["base_score"])
            for one in pair.judgements
            if one["score"] is not None and one["base_score"] is not None
        ]
        for pair in judged
    ]
    preference = bootstrap_mean(shares)
    p_value = sign_test(sum(share > 0.5 for share in shares), sum(share < 0.5 for share in shares))
    mean, low, high, n = preference
    difference = Interval(2 * mean - 1, 2 * low - 1, 2 * high - 1, n)  # of the shares that prefer the text and the base
    needed = count_needed_questions([2 * share - 1 for share in shares])
    even = [pair.share for pair in judged if pair.is_equal_length]
    return {
        "preference": preference.as_json(),
        "p_value": round(p_value, 6),
        "decided": is_decided(difference, p_value),
        "needed_questions": needed.observed,
        "least_questions": needed.least,
        "comparisons": len(judgements),
        "won": outcomes.count("text"),
        "lost": outcomes.count("base"),
        "ties": outcomes.count("tie"),
        "inconsistent": sum(one["inconsistent"] for one in judgements),
        "absent": sum(pair.absent for pair in known),
        "agreement": _round(_mean(same)),
        "score": _round(_mean([_mean([mine for mine, _ in rows]) for rows in scored])),
        "base_score": _round(_mean([_mean([theirs for _, theirs in rows]) for rows in scored])),
        "words": _round(_mean([pair.words for pair in judged])),
        "base_words": _round(_mean([pair.base_words for pair in judged])),
        "equal_length": {
            "n": len(even),
            "preference": bootstrap_mean(even).as_json() if len(even) >= MIN_EQUAL_LENGTH else None,
        },
    }


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


# Results of an evaluation

LIMITS = (
    "These figures show what the judges prefer, not what is true. Models share tastes and errors, favour longer texts "
    "and texts like their own, and all judges can be wrong together. They hold for these questions, arms and judges."
)


@dataclass(frozen=True, slots=True)
class BlindTable:
    """All comparisons of an evaluation: every arm against the base."""

    against: str
    pairs: Mapping[str, Mapping[str, Pair]]  # by arm and item
    members: Mapping[str, Collection[str]]  # that wrote the texts, by arm
    unfinished: int = 0  # comparisons without a complete run
    use: JudgeUse = field(default_factory=lambda: JudgeUse())  # tokens, calls and dollars of the judges

    @property
    def judges(self) -> list[str]:
        found = (pair.judgements for pairs in self.pairs.values() for pair in pairs.values())
        return sorted({one["member"] for judgements in found for one in judgements})

    @property
    def judging_members(self) -> dict[str, list[str]]:
        """The judges that wrote texts of an arm too, with these arms."""
        found = {judge: [arm for arm, names in self.members.items() if judge in names] for judge in self.judges}
        return {judge: arms for judge, arms in found.items() if arms}

    def as_json(self) -> BlindObject:
        return {
            "against": self.against,
            "judges": self.judges,
            "judging_members": self.judging_members,
            "unfinished": self.unfinished,
            **self.use,
        }

    def arm_json(self, arm: str) -> BlindArm | None:
        """Return the comparison of an arm; None for the base."""
        if arm not in self.pairs:
            return None
        runs = {item: pair.run for item, pair in self.pairs[arm].items()}
        return {"against": self.against, **summarize(self.pairs[arm].values()), "runs": runs}

    def conclusions(self, prices: Mapping[str, float | None]) -> list[Conclusion]:
        """Return what the comparisons mean for a decision. `prices` has what each arm cost."""
        found = {arm: summarize(pairs.values()) for arm, pairs in self.pairs.items()}
        return [self._conclude_arm(arm, one, prices) for arm, one in found.items() if one["preference"]["n"]]

    def notes(self) -> list[str]:
        """Return what weakens the comparisons."""
        found = {arm: summarize(pairs.values()) for arm, pairs in self.pairs.items()}
        lines = [line for arm, one in found.items() for line in self._note_arm(arm, one)]
        if self.unfinished:
            lines.append(f"{self.unfinished} comparisons are missing: run the same command again to complete them.")
        if shared := self.judging_members:
            named = "; ".join(f"{judge} in {', '.join(arms)}" for judge, arms in shared.items())
            lines.append(f"Judges that also wrote texts, which they may favour: {named}. --judges names other ones.")
        return lines

    def _conclude_arm(self, arm: str, found: PreferenceObject, prices: Mapping[str, float | None]) -> Conclusion:
        preference = read_interval(found["preference"])
        assert preference is not None  # there are comparisons
        base, share = self.against, _format_interval(preference)
        costs = (arm, prices.get(arm), base, prices.get(base))
        cheaper = find_cheapest({name: prices.get(name) for name in (arm, base)})
        if found["decided"]:
            better, worse = (arm, base) if preference.mean > 0.5 else (base, arm)
            price = f" {worse} costs less." if cheaper == worse else ""
            advice = f"Prefer {better} for questions like these, if these judges want what your readers want.{price}"
            sure = f"Sure of the preference, not of the truth. {better} is preferred to {worse}"
            change = (
                "Other questions or other judges. People who read some of the pairs: they may prefer the other text."
            )
        else:
            price = f" {cheaper} costs less." if cheaper else ""
            advice = f"Not decided: {arm} is not shown to be preferred for its texts.{price}"
            sure = f"Not decided: {arm} and {base} cannot be told apart"
            needed = NeededQuestions(found["needed_questions"], found["least_questions"])
            change = format_needed(needed, preference.n, f"{preference.mean:.0%}".replace("%", " %"))
        if preference.n < MIN_QUESTIONS:
            advice = describe_few(preference.n)
        counts = f"On {preference.n} questions the judges prefer {arm} in {share} of the comparisons, ties half"
        return Conclusion(
            arm,
            f"{arm} against {base}: compared by judges who do not know which is which",
            advice,
            f"{sure}. {counts}. {format_chance(found['p_value'])}.",
            f"For the answers, {compare_prices(*costs)}.",
            change,
        )

    def _note_arm(self, arm: str, found: PreferenceObject) -> Iterable[str]:
        if not found["preference"]["n"]:
            yield f"{arm}: no judge compared its texts with those of {self.against}, so nothing is concluded."
            return
        yield from _conclude_lengths(arm, self.against, found)
        if found["inconsistent"]:
            yield (
                f"{arm}: {found['inconsistent']} of {found['comparisons']} comparisons changed with the order of the texts "
                "and count as ties."
            )
        if absent := found["absent"]:
            total = found["comparisons"] + absent
            yield f"{arm}: {absent} of {total} comparisons could not be read in both orders and are left out."


def _conclude_lengths(arm: str, base: str, found: PreferenceObject) -> Iterable[str]:
    """Say how long the texts are if that differs, and what holds for texts of about equal length."""
    words, base_words = found["words"] or 0.0, found["base_words"] or 0.0
    if abs(words - base_words) <= EQUAL_LENGTH * max(words, base_words):
        return
    count, even = found["equal_length"]["n"], found["equal_length"]["preference"]
    shown = even and read_interval(even)
    same = (
        f"On the {count} questions with about equal lengths {arm} is preferred in {_format_interval(shown)}."
        if shown
        else f"Questions with about equal lengths: {count}, too few to tell."
    )
    lengths = f"{arm} has {words:.0f} words on average and {base} {base_words:.0f}"
    yield f"{lengths}, and judges tend to favour longer texts. {same}"


def _format_interval(interval: Interval) -> str:
    return f"{interval.mean:.0%} ({interval.low:.0%} to {interval.high:.0%})".replace("%", " %")
