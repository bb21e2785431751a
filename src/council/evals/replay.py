"""Replay arms: apply the voting rules to recorded answers, without a model call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypedDict, cast, get_args

from council.engine.layout import format_count
from council.errors import UsageError
from council.evals.conclusions import (
    Conclusion,
    describe_certainty,
    describe_few,
    format_chance,
    format_difference,
    format_needed,
    format_report,
)
from council.evals.evaluation import align_columns, describe_calibration, format_calibration, format_comparison
from council.evals.matrix import Matrix
from council.evals.statistics import (
    LEVEL,
    MIN_QUESTIONS,
    NeededQuestions,
    bootstrap_mean,
    brier_score,
    calibrate,
    compare,
    count_measured_votes,
    error_correlation,
    format_p,
    read_interval,
    reliability,
)
from council.evals.votes import Election, Vote, elect_by_families, elect_by_plurality
from council.protocols.judges import rules as judge_rules
from council.runs.eval_object import CalibrationObject, ComparisonObject, IntervalObject, ReliabilityRow
from council.runs.track_record import weigh_record
from council.types import VerdictWord

JUDGE_ARMS = ("consensus", "corroborated")  # only for answers PASS, WARN and FAIL
VERDICTS = frozenset(get_args(VerdictWord))
BEST = "best"  # the arm of the best single model
Rule = Callable[[Matrix, int], Election]


class ModelRow(TypedDict):
    model: str
    family: str
    accuracy: IntervalObject


class EffectiveVotes(TypedDict):
    measured: float | None  # by the correlation of errors
    by_family: float


class AgreementRow(TypedDict):
    """The accuracy of the plurality where the models agree to one degree."""

    agreement: str
    accuracy: IntervalObject


class RuleRow(TypedDict):
    arm: str
    accuracy: IntervalObject
    right_in_dissent: int
    ties: int
    against_best: ComparisonObject | None
    brier: float
    calibration: CalibrationObject | None  # None for the best model, which has no share of votes
    reliability: list[ReliabilityRow]


class ReplayObject(TypedDict):
    """The object `council.replay/1`."""

    schema: Literal["council.replay/1"]
    questions: int
    models: list[ModelRow]
    error_correlation: float | None
    effective_votes: EffectiveVotes
    agreement: list[AgreementRow]
    oracle: IntervalObject  # any model is right: the limit of a rule that picks a given answer, and not a rule
    arms: list[RuleRow]


@dataclass(frozen=True, slots=True)
class ReplayedArm:
    name: str
    elections: tuple[Election, ...]
    right: tuple[bool, ...]
    in_dissent: tuple[bool, ...]  # the answer is wrong, and a kept dissent is right


@dataclass(frozen=True, slots=True)
class Replay:
    """All arms over one matrix, and how independent its models are."""

    matrix: Matrix
    arms: Mapping[str, ReplayedArm]

    @property
    def errors(self) -> dict[str, list[bool]]:
        return {model: [not one for one in self.matrix.right(model)] for model in self.matrix.models}

    @property
    def any_right(self) -> list[bool]:
        """Whether any model is right, by question."""
        by_model = [self.matrix.right(model) for model in self.matrix.models]
        return [any(row) for row in zip(*by_model, strict=True)]

    @property
    def measured_votes(self) -> float | None:
        """Effective votes by the correlation of the errors in this matrix."""
        return count_measured_votes(self.errors)

    @property
    def assumed_votes(self) -> float:
        """Effective votes by the live rule of judges, which knows only the families."""
        families = self.matrix.families
        votes = [judge_rules.Vote(model, families.get(model, model), "PASS", "HIGH") for model in self.matrix.models]
        return judge_rules.count_effective_votes(votes)

    def as_json(self, seed: int = 0) -> ReplayObject:
        """Return the table: accuracy with intervals, each rule against the best single model, and calibration."""
        correlation = error_correlation(self.errors)
        return {
            "schema": "council.replay/1",
            "questions": len(self.matrix.questions),
            "models": [
                {
                    "model": model,
                    "family": self.matrix.families.get(model, model),
                    "accuracy": bootstrap_mean(self.matrix.right(model), seed).as_json(),
                }
                for model in self.matrix.models
            ],
            "error_correlation": None if correlation is None else round(correlation, 4),
            "effective_votes": {
                "measured": None if self.measured_votes is None else round(self.measured_votes, 2),
                "by_family": self.assumed_votes,
            },
            "agreement": _agreement_json(self.matrix, seed),
            "oracle": bootstrap_mean(self.any_right, seed).as_json(),
            "arms": [_arm_json(arm, self.compare_with_best(arm, seed), seed) for arm in self.arms.values()],
        }

    def compare_with_best(self, arm: ReplayedArm, seed: int) -> ComparisonObject | None:
        """Compare with the best model. It is chosen by these answers, so of many models chance alone makes one look
        good.

        So a rule is called worse only if the test holds for as many comparisons as there are models.
        """
        base = self.arms.get(BEST)
        if base is None or base is arm:
            return None
        found = compare(base.right, arm.right, seed)
        is_chance = found.difference.mean < 0 and found.p_value * len(self.matrix.models) >= 1 - LEVEL
        return {**found.as_json(), "decided": found.is_decided and not is_chance}


def replay(matrix: Matrix, arms: Sequence[str] = ()) -> Replay:
    """Apply the rules to a matrix. Without `arms`, all rules that fit its answers."""
    fits = {answer.upper() for row in matrix.answers for answer in row if answer} <= VERDICTS
    chosen = list(arms) or [arm for arm in RULES if fits or arm not in JUDGE_ARMS]
    for arm in chosen:
        if arm not in RULES:
            raise UsageError(f'unknown arm "{arm}": known are {", ".join(RULES)}')
        if arm in JUDGE_ARMS and not fits:
            raise UsageError(
                f'the arm "{arm}" combines PASS, WARN and FAIL, and the recorded answers are others: drop it'
            )
    return Replay(matrix, {arm: _replay_arm(matrix, arm) for arm in chosen})


def _replay_arm(matrix: Matrix, arm: str) -> ReplayedArm:
    elections = [RULES[arm](matrix, at) for at in range(len(matrix.questions))]
    right = [_is_right(matrix, at, one.answer) for at, one in enumerate(elections)]
    kept = [
        not is_right and any(_is_right(matrix, at, answer) for answer in one.dissent)
        for at, (one, is_right) in enumerate(zip(elections, right, strict=True))
    ]
    return ReplayedArm(arm, tuple(elections), tuple(right), tuple(kept))


def _is_right(matrix: Matrix, at: int, answer: str) -> bool:
    """Return whether an answer is right: by the score of a model that gave it, else by the truth."""
    if not answer:
        return False
    graded = zip(matrix.answers[at], matrix.scores[at], strict=True) if matrix.scores else ()
    scores = [score for said, score in graded if said == answer and score is not None]
    return max(scores) >= 1.0 if scores else answer == matrix.truth[at]


# Rules


def _votes(matrix: Matrix, at: int) -> list[Vote]:
    return [
        Vote(model, answer, matrix.families.get(model, model))
        for model, answer in zip(matrix.models, matrix.answers[at], strict=True)
    ]


def _best(matrix: Matrix, at: int) -> Election:
    """The answer of the model with the most right answers, which is known only afterwards."""
    records = _records_without(matrix, at)
    best = max(matrix.models, key=lambda model: matrix.totals[model])
    votes = _votes(matrix, at)
    answer = votes[matrix.models.index(best)].answer
    others = dict.fromkeys(vote.answer for vote in votes if vote.answer and vote.answer != answer)
    right, labelled = records[best]
    return Election(answer, (right + 1) / (labelled + 2), (best,), tuple(others))


def _weighted(matrix: Matrix, at: int) -> Election:
    records = _records_without(matrix, at)
    return elect_by_plurality(_votes(matrix, at), {model: weigh_record(*record) for model, record in records.items()})


def _apply_judge_rule(rule: Callable[..., judge_rules.Consensus], matrix: Matrix, at: int) -> Election:
    """Return what a rule of judges decides."""
    words = [(vote, cast(VerdictWord, vote.answer.upper())) for vote in _votes(matrix, at) if vote.answer]
    votes = [judge_rules.Vote(vote.voter, vote.family, word, "HIGH") for vote, word in words]
    found = rule(votes, mixed=len({vote.vendor for vote in votes}) > 1)
    answer = (found.verdict or "").casefold()
    others = dict.fromkeys(vote.answer for vote, _ in words if vote.answer != answer)
    return Election(answer, len(found.holders) / len(votes) if votes else 0.0, found.holders, tuple(others))


RULES: Mapping[str, Rule] = {
    BEST: _best,
    "plurality": lambda matrix, at: elect_by_plurality(_votes(matrix, at)),
    "weighted": _weighted,
    "families": lambda matrix, at: elect_by_families(_votes(matrix, at)),
    "consensus": partial(_apply_judge_rule, judge_rules.decide_by_consensus),
    "corroborated": partial(_apply_judge_rule, judge_rules.decide_by_corroboration),
}


def _records_without(matrix: Matrix, at: int) -> dict[str, tuple[int, int]]:
    """Return by model how many of the other questions it has right, and how many these are."""
    n = len(matrix.questions) - 1
    return {model: (total - matrix.is_right(model, at), n) for model, total in matrix.totals.items()}


# Tables


def _arm_json(arm: ReplayedArm, against: ComparisonObject | None, seed: int) -> RuleRow:
    confidences = [one.share for one in arm.elections]
    return {
        "arm": arm.name,
        "accuracy": bootstrap_mean(arm.right, seed).as_json(),
        "right_in_dissent": sum(arm.in_dissent),
        "ties": sum(one.is_tied for one in arm.elections),
        "against_best": against,
        "brier": round(brier_score(confidences, arm.right), 6),
        "calibration": None if arm.name == BEST else calibrate(confidences, arm.right, seed).as_json(),
        "reliability": reliability(confidences, arm.right),
    }


def _agreement_json(matrix: Matrix, seed: int) -> list[AgreementRow]:
    """Return the accuracy of the plurality by the agreement of the models, as the live rule of judges measures it."""
    groups: dict[str, list[bool]] = {}
    for at in range(len(matrix.questions)):
        votes = _votes(matrix, at)
        level = judge_rules.measure_agreement([vote.answer for vote in votes if vote.answer]) or "one answer"
        groups.setdefault(level, []).append(_is_right(matrix, at, elect_by_plurality(votes).answer))
    return [
        {"agreement": level, "accuracy": bootstrap_mean(groups[level], seed).as_json()}
        for level in AGREEMENT_WORDS
        if level in groups
    ]


AGREEMENT_WORDS = {
    "full": "all models agree",
    "partial": "some models agree",
    "none": "no two models agree",
    "one answer": "only one model answered",
}


def format_replay(found: Replay, seed: int = 0) -> str:
    """Return the table as text, with what can and cannot be concluded."""
    report = found.as_json(seed)
    empty = [""] * (len(HEAD) - 3)
    rows: list[tuple[str, ...]] = [HEAD]
    for model in report["models"]:
        rows.append((f"{model['model']} ({model['family']})", *_format_accuracy(model["accuracy"]), *empty))
    for one in report["arms"]:
        measures = (str(one["right_in_dissent"]), f"{one['brier']:.3f}", format_calibration(one["calibration"]))
        beside = (*format_comparison(one["against_best"]), *measures)
        rows.append((one["arm"], *_format_accuracy(one["accuracy"]), *beside))
    rows.append(("any model right (a limit, not a rule)", *_format_accuracy(report["oracle"]), *empty))
    lines = align_columns(rows, left=(0,))
    votes, correlation = report["effective_votes"], report["error_correlation"]
    measured = (
        "" if correlation is None else f"{votes['measured']:g} by the correlation of errors ({correlation:.2f}), "
    )
    agreement = [
        f"effective votes of {format_count(len(report['models']), 'model')}: {measured}{votes['by_family']:g} by families"
    ]
    for row in report["agreement"]:
        share = " ".join(_format_accuracy(row["accuracy"]))
        agreement.append(f"{AGREEMENT_WORDS[row['agreement']]}: {share} of {row['accuracy']['n']} right")
    conclusion = _conclude(found, report)
    tables = ["\n".join(lines), "\n".join(agreement)]
    return format_report([conclusion] if conclusion else [], _note(report), tables)


HEAD = ("", "right", "95 %", "against best", "p", "✗→✓", "✓→✗", "right in dissent", "Brier", "ECE, 95 %")


def _format_accuracy(accuracy: IntervalObject) -> tuple[str, str]:
    interval = read_interval(accuracy)
    if interval is None:
        return "", ""
    return f"{100 * interval.mean:.1f} %", f"{100 * interval.low:.1f}-{100 * interval.high:.1f}"


def _note(report: ReplayObject) -> Iterable[str]:
    """Say what the figures show of each rule, and what they do not show."""
    for one in report["arms"]:
        beside = one["against_best"]
        difference = read_interval(beside["difference"]) if beside else None
        if beside and difference:
            span = (
                f"{100 * difference.low:+.1f} to {100 * difference.high:+.1f} points, p {format_p(beside['p_value'])}"
            )
            better = "better" if difference.mean > 0 else "worse"
            told = f"is {better} than" if beside["decided"] else "cannot be told apart from"
            yield f"{one['arm']} {told} the best single model: {span}"
    yield (
        "Any model right: no rule knows which model is right. A rule that picks one of the given answers cannot be right "
        "more often than that."
    )
    yield from describe_calibration({one["arm"]: one["calibration"] for one in report["arms"]})
    if report["questions"] < MIN_QUESTIONS:
        yield f"{format_count(report['questions'], 'question')}: below {MIN_QUESTIONS}, no difference is called decided."
    yield (
        "These are recorded answers: they show what a rule does with independent answers, not what a discussion would add."
    )


def _conclude(found: Replay, report: ReplayObject) -> Conclusion | None:
    """Return what the rule with the most right answers means for a decision; None without one to compare."""
    compared = [(one, one["against_best"]) for one in report["arms"] if one["against_best"]]
    if not compared:
        return None
    row, beside = max(compared, key=lambda pair: pair[0]["accuracy"]["mean"] or 0.0)
    difference = read_interval(beside["difference"]) if beside else None
    if beside is None or difference is None:
        return None
    rule, n = row["arm"], difference.n
    best = max(found.matrix.models, key=lambda model: found.matrix.totals[model])
    models = format_count(len(found.matrix.models), "model")
    if n < MIN_QUESTIONS:
        advice = describe_few(n)
    elif not beside["decided"]:
        advice = f"Not decided: no rule over these {models} is shown to be right more often than {best} alone. Until then use {best}."
    elif difference.mean > 0:
        advice = f"Combine these {models} by {rule}: it is right more often than {best}, the best of them alone."
    else:
        advice = f"Ask {best} alone: no rule over these {models} is right as often."
    sure = describe_certainty(beside["decided"], beside["p_value"], n)
    right, best_right = (sum(found.arms[name].right) for name in (rule, BEST))
    counts = f"{rule} is right on {right} of {n} questions, {best} on {best_right}."
    chosen = f" It has the most right answers of {format_count(len(compared), 'rule')}, which is partly chance."
    needed = NeededQuestions(beside["needed_questions"], beside["least_questions"])
    return Conclusion(
        rule,
        f"{rule} against {best}, the best single model",
        advice,
        f"{sure} {counts} {format_difference(difference)}. {format_chance(beside['p_value'])}."
        f"{chosen if len(compared) > 1 else ''}",
        f"Recorded answers have no price. A rule needs the answers of all {models} to each question; {best} alone is one.",
        "Other models, or other questions: record their answers and repeat this."
        if beside["decided"]
        else format_needed(needed, n, f"{100 * difference.mean:+.1f} points"),
    )
