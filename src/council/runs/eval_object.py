"""The objects `council.eval/1` and `council.history-eval/1`: results of evaluations, which advice and the page read."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from council.types import Json


class IntervalObject(TypedDict):
    """A mean and its 95 % interval; None without questions."""

    mean: float | None
    low: float | None
    high: float | None
    n: int  # questions


class ComparisonObject(TypedDict):
    """Two arms on the same questions.

    The numbers of questions decide a difference with 80 % power: `needed_questions` one of the observed size, None if
    that is 0, and `least_questions` one as large as the larger end of its interval.
    """

    difference: IntervalObject
    wrong_to_right: int
    right_to_wrong: int
    p_value: float
    decided: bool
    needed_questions: int | None
    least_questions: int | None


class ArmComparison(ComparisonObject):
    """A comparison with another arm."""

    arm: str


class RivalComparison(ArmComparison):
    """A comparison with the arm that a council has to beat. The ratios are for the questions that both answered."""

    tokens_ratio: float | None
    usd_ratio: float | None  # None if a price is unknown


class CalibrationObject(TypedDict):
    """The calibration error of the shares of votes; None if there are too few answers.

    `by_chance` is the error that exact shares would show with as many answers in as many bins.
    """

    ece: float | None
    low: float | None
    high: float | None
    by_chance: float | None
    bins: int
    n: int


ReliabilityRow = TypedDict(
    "ReliabilityRow", {"from": float, "to": float, "confidence": float | None, "accuracy": IntervalObject}
)
ReliabilityRow.__doc__ = "The accuracy of the answers whose confidence is in one range."


class EqualLength(TypedDict):
    """The preference among texts of equal length; None if these are too few."""

    n: int
    preference: IntervalObject | None


class PreferenceObject(TypedDict):
    """What judges prefer, one arm against the base."""

    preference: IntervalObject
    p_value: float
    decided: bool
    needed_questions: int | None
    least_questions: int | None
    comparisons: int
    won: int
    lost: int
    ties: int
    inconsistent: int
    absent: int
    agreement: float | None
    score: float | None
    base_score: float | None
    words: float | None
    base_words: float | None
    equal_length: EqualLength


class BlindArm(PreferenceObject):
    """The blind comparison of an arm with the base, and its runs by item."""

    against: str
    runs: dict[str, str]


class JudgeUse(TypedDict, total=False):
    """What the judges used. `usd` is None if a price is unknown."""

    tokens: int
    calls: int
    usd: float | None


class BlindObject(JudgeUse):
    """The blind comparisons of an evaluation."""

    against: str
    judges: list[str]
    judging_members: dict[str, list[str]]  # the arms whose texts a judge wrote too
    unfinished: int


class EvalSeat(TypedDict):
    """What one seat of a council answered by itself, before it saw the others."""

    seat: str
    members: list[str]
    accuracy: IntervalObject  # of its first answers


class EvalArm(TypedDict):
    """The results of one arm."""

    arm: str
    protocol: str
    options: Json
    answered: int
    accuracy: IntervalObject
    unreadable: int
    ambiguous: int  # answers that two readings fit, or with two final answers
    members: list[str]
    tokens: int
    calls: int
    usd: float | None
    seconds: float
    against: RivalComparison | None
    against_single: RivalComparison | None  # of a council, if `single` is an arm
    seats: list[EvalSeat]  # empty for an arm with one seat
    unanimous: IntervalObject | None  # the share of right answers among those that all seats gave
    new_answers: int  # that none of the seats gave, but the chair; they have no share of votes
    new_answers_right: int
    seats_corrected: int
    seats_spoiled: int
    effective_votes: float | None
    brier: float | None
    calibration: CalibrationObject | None  # None without shares of votes
    reliability: list[ReliabilityRow]
    trust: dict[str, IntervalObject]
    runs: dict[str, str]  # by item
    blind: BlindArm | None


class EvalObject(TypedDict):
    """The result of an evaluation."""

    schema: Literal["council.eval/1"]
    dataset: str
    questions: int
    seed: int
    equal: str
    answered: str | None  # the date of the newest answer
    unfinished: int
    members: list[str]
    arms: list[EvalArm]
    blind: BlindObject | None
    conclusions: list[str]


class HistorySupport(TypedDict):
    """The measures of the findings that at least `support` judges hold."""

    support: int
    found: int  # bugs
    recall: IntervalObject  # the share of bugs that they report
    by_chance: float | None  # the share of bugs that the same findings would report at random changed lines
    precision: IntervalObject  # the share of findings on bugs that report one; a lower bound


class HistorySeat(TypedDict):
    """What one seat found by itself."""

    seat: str
    members: list[str]
    recall: IntervalObject


class HistoryArm(TypedDict):
    """The results of one arm."""

    arm: str
    protocol: str
    options: Json
    reviews: int
    judges: int
    members: list[str]
    by_support: list[HistorySupport]
    seats: list[HistorySeat]  # empty for one judge
    findings_per_review: float | None
    controls_with_findings: IntervalObject
    controls_with_critical: IntervalObject
    fail_on_bugs: IntervalObject  # the share of reviews with the verdict FAIL
    fail_on_controls: IntervalObject
    tokens: int
    calls: int
    usd: float | None
    usd_per_review: float | None
    usd_per_bug: float | None  # that was found
    seconds: float
    against: ArmComparison | None
    runs: dict[str, str]  # by case
    hits: dict[str, bool]  # by case with a bug


class HistoryEvalObject(TypedDict):
    """The result of an evaluation on the history of a repository."""

    schema: Literal["council.history-eval/1"]
    dataset: str
    since: str
    seed: int
    questions: int  # reviewed commits
    bugs: int
    controls: int
    without_bug: int  # commits whose fixes a person labelled as no bug, or as unclear
    near_lines: int  # how far a finding may be from the line of a bug
    unfinished: int
    members: list[str]
    arms: list[HistoryArm]
    conclusions: list[str]


class StoredEval(EvalObject):
    """A kept result of an evaluation, and the folder of its output."""

    id: str
    at: float
    folder: str


class StoredHistoryEval(HistoryEvalObject):
    """A kept result of an evaluation on a history, and the folder of its output."""

    id: str
    at: float
    folder: str
