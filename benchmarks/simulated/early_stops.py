"""What the stops of `adaptive` save and cost, compared with triad, collaborative and self-consistency.

The answers come from simulated members or from recorded answers. The tokens of each path come from a rehearsal of the
real protocol with its real prompts, counted as the plan counts its expected cost.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from council.errors import UsageError
from council.evals.matrix import Matrix
from council.evals.sampling import PROTOCOL as VOTE
from council.evals.sampling import VoteOptions, is_enough
from council.evals.statistics import Comparison, Interval, bootstrap_mean, compare
from council.planning.estimate import RehearsedCall, estimate_path_tokens
from council.planning.rehearsal import RehearsalInput, make_fake_caller, rehearse
from council.protocols import CHAIR, Protocol, get_protocol
from council.types import CarryOut, Json, Outcome, Question, Roster, Seat, Step
from simulation import (
    NO_ANSWER,
    PATHS,
    PROTOCOLS,
    STOPS,
    TRUTH,
    AdaptiveRun,
    Answers,
    Draw,
    Members,
    Path,
    draw_questions,
    hold_adaptive,
    object_to,
    run_adaptive,
    take_plurality,
    take_samples,
)

MAX_TOKEN_SHARE = 0.5  # of collaborative's tokens, by the requirement
QUESTION = "How many primes are below 1000?"  # in the prompts of the rehearsals
SEATS = 3
# Base of the comparisons: members follow each other and vary when asked again, and no one recognises a right answer.
BASE = Members((0.7,) * SEATS, conformity=0.3, instability=0.3)
EVERY_AGREEMENT = Members((0.7,) * SEATS, firm_if_right=1.0, firm_if_wrong=1.0, catch=0.0, false_alarm=0.0)
SAMPLES_OF_EQUAL_TOKENS = {
    "self-consistency=adaptive": "adaptive",
    "self-consistency=collaborative": "collaborative",
}


# Tokens


@dataclass(frozen=True, slots=True)
class ArmTokens:
    """Expected tokens of one question, by arm and by the path of adaptive."""

    paths: Mapping[Path, int]
    triad: int
    collaborative: int
    sample: int  # one sample of self-consistency

    def as_json(self) -> Json:
        return {
            "adaptive": dict(self.paths),
            "triad": self.triad,
            "collaborative": self.collaborative,
            "sample": self.sample,
        }


async def estimate_arm_tokens(max_words: int | None = None) -> ArmTokens:
    """Return the tokens of each arm. With `max_words`, no answer is longer, whatever its prompt allows."""
    paths = {path: count_tokens(await rehearse_path(path), max_words) for path in PATHS}
    triad, collaborative, sample = [
        count_tokens(await _rehearse(protocol), max_words)
        for protocol in (get_protocol("triad"), get_protocol("collaborative"), VOTE)
    ]
    return ArmTokens(paths, triad, collaborative, sample)


def count_tokens(calls: Sequence[RehearsedCall], max_words: int | None = None) -> int:
    """Return the input and output tokens of calls."""
    if max_words is not None:
        calls = [replace(call, words=min(call.words, max_words)) for call in calls]
    used = estimate_path_tokens(calls, QUESTION)
    return used.input + used.output


async def rehearse_path(path: Path) -> list[RehearsedCall]:
    """Return the calls of one path of adaptive."""
    answers = (0, 1, 2) if path == "disputed" else (0, 0, 0)
    is_firm = [path in ("stopped", "objected")] * SEATS
    return await rehearse_adaptive(answers, is_firm, objects="objected" in path)


async def rehearse_adaptive(answers: Answers, is_firm: Sequence[bool], *, objects: bool) -> list[RehearsedCall]:
    """Run the real protocol with these answers, and return its calls."""
    names = [seat.name for seat in get_protocol("adaptive").seats]
    agrees = {"Confirmation": not objects, "Points": len(set(answers)) == 1}
    callers = {agree: make_fake_caller(agree, {}) for agree in (True, False)}

    async def carry_out(step: Step) -> Outcome:
        kind = step.ask.schema_name
        outcome = await callers[agrees.get(kind, False)](step)
        if kind != "Answer":
            return outcome
        n = names.index(step.seat)
        confidence = "HIGH" if is_firm[n] else "MEDIUM"
        stated = {"conclusion": str(100 + answers[n]), "confidence": confidence, "doubts": []}
        return replace(outcome, text=json.dumps(json.loads(outcome.text) | stated))

    return await _rehearse(get_protocol("adaptive"), carry_out)


async def _rehearse(protocol: Protocol, answer: CarryOut | None = None) -> list[RehearsedCall]:
    seats = tuple(replace(seat, member=f"sim{n}:m", vendor=f"sim{n}") for n, seat in enumerate(protocol.seats))
    chair = replace(CHAIR, member="sim0:m", vendor="sim0")
    clerk = Seat("clerk", "Clerk", member="sim0:small", vendor="sim0")
    calls: list[RehearsedCall] = []
    roster = Roster(seats, chair, (clerk,))
    await rehearse(RehearsalInput(protocol, roster, Question(QUESTION)), agree=False, calls=calls, answer=answer)
    return calls


def count_samples(budget: float, sample: int) -> int:
    """Return how many samples use up a budget, by the rule of the equal arms of `council eval`."""
    options = VoteOptions(budget=budget)
    samples = 1
    while not is_enough(options, samples, samples * sample):
        samples += 1
    return samples


# Comparison


@dataclass(frozen=True, slots=True)
class StopTable:
    """The runs of adaptive on some questions, and whether each arm is right on them."""

    runs: Sequence[AdaptiveRun]
    right: Mapping[str, Sequence[bool]]  # by arm
    tokens: ArmTokens

    def accuracy(self, arm: str) -> Interval:
        return bootstrap_mean([float(one) for one in self.right[arm]])

    def share(self, *paths: Path) -> float:
        """Return the share of the runs that took one of these paths."""
        return sum(run.path in paths for run in self.runs) / len(self.runs)

    @property
    def wrong_stops(self) -> Interval:
        """The share of wrong answers among the stops."""
        return bootstrap_mean([float(run.answer != TRUTH) for run in self.runs if run.path in STOPS])

    @property
    def token_share(self) -> float:
        """The mean tokens of adaptive as a share of collaborative's."""
        used = sum(self.tokens.paths[run.path] for run in self.runs)
        return used / len(self.runs) / self.tokens.collaborative

    def against(self, arm: str) -> Comparison:
        """Compare adaptive with another arm on the same questions."""
        return compare(self.right[arm], self.right["adaptive"])

    @property
    def saves_on_triad(self) -> bool:
        """Whether adaptive uses fewer tokens than triad, which always asks all seats."""
        return self.token_share < self.tokens.triad / self.tokens.collaborative

    @property
    def saves_enough(self) -> bool:
        return self.token_share <= MAX_TOKEN_SHARE

    @property
    def is_accurate(self) -> bool:
        """Whether adaptive is not below the interval of triad."""
        return self.accuracy("adaptive").mean >= self.accuracy("triad").low

    @property
    def holds(self) -> bool:
        return self.saves_enough and self.is_accurate

    def as_json(self) -> Json:
        return {
            "questions": len(self.runs),
            "accuracy": {arm: self.accuracy(arm).as_json() for arm in self.right},
            "against": {arm: self.against(arm).as_json() for arm in self.right if arm != "adaptive"},
            "paths": {path: round(self.share(path), 6) for path in PATHS},
            "wrong_stops": self.wrong_stops.as_json(),
            "token_share": round(self.token_share, 6),
            "saves_enough": self.saves_enough,
            "saves_on_triad": self.saves_on_triad,
            "is_accurate": self.is_accurate,
            "holds": self.holds,
        }


def simulate_stops(
    members: Members, questions: int, tokens: ArmTokens, seed: int = 0, *, with_samples: bool = True
) -> StopTable:
    """Answer the same simulated questions under each arm. `with_samples` adds self-consistency at equal tokens."""
    if len(members.competence) != SEATS:
        raise UsageError(
            f"the tokens are those of {SEATS} seats, not of {len(members.competence)}: use {SEATS} members"
        )
    draws = list(draw_questions(members, questions, seed))
    rng = random.Random(f"adaptive {seed}")
    runs = [hold_adaptive(members, draw, rng) for draw in draws]
    right = {"adaptive": [run.answer == TRUTH for run in runs]}
    for arm in ("triad", "collaborative", "self-consistency:samples=3"):
        rng = random.Random(f"{arm} {seed}")
        right[arm] = [PROTOCOLS[arm](members, draw, rng) == TRUTH for draw in draws]
    if with_samples:
        for arm, equals in SAMPLES_OF_EQUAL_TOKENS.items():
            rng = random.Random(f"{arm} {seed}")
            counts = _count_equal_samples(runs, tokens, equals)
            right[arm] = _sample(members, draws, counts, rng)
    return StopTable(runs, right, tokens)


def _count_equal_samples(runs: Sequence[AdaptiveRun], tokens: ArmTokens, equals: str) -> list[int]:
    """Return for each question how many samples use as many tokens as an arm."""
    if equals == "collaborative":
        return [count_samples(tokens.collaborative, tokens.sample)] * len(runs)
    counts = {path: count_samples(used, tokens.sample) for path, used in tokens.paths.items()}
    return [counts[run.path] for run in runs]


def _sample(members: Members, draws: Sequence[Draw], counts: Sequence[int], rng: random.Random) -> list[bool]:
    return [
        take_samples(members, draw, rng, samples) == TRUTH for draw, samples in zip(draws, counts, strict=True)
    ]  # fmt: skip


# Recorded answers


def list_councils(matrix: Matrix, min_accuracy: float = 0.0) -> Iterator[tuple[str, str, str]]:
    """Yield the councils of the best model of each vendor: each pair as the first members, with each other model as the
    third.

    The better one of a pair comes first.
    """
    chosen = list_best_models(matrix, min_accuracy)
    for first, second in combinations(chosen, 2):
        for third in chosen:
            if third not in (first, second):
                yield first, second, third


def list_best_models(matrix: Matrix, min_accuracy: float = 0.0) -> list[str]:
    """Return the best model of each vendor, the best one first."""
    accuracies = {model: matrix.totals[model] / len(matrix.questions) for model in matrix.models}
    best: dict[str, str] = {}
    for model in sorted(matrix.models, key=lambda model: -accuracies[model]):
        best.setdefault(matrix.families.get(model, model), model)
    return [model for model in best.values() if accuracies[model] >= min_accuracy]


def replay_stops(
    matrix: Matrix, council: tuple[str, str, str], tokens: ArmTokens, members: Members = EVERY_AGREEMENT, seed: int = 0
) -> StopTable:
    """Follow adaptive on recorded answers: two models answer first, and the third where they do not stop.

    Confidence and checks were not recorded: `members` has their shares. By default every equal pair stops. The chair
    takes the plurality, without arguments. A reader that objects to a right answer agrees with the third model, if
    that one is wrong.
    """
    rng = random.Random(f"replay {seed}")
    competence = [matrix.totals[model] / len(matrix.questions) for model in council]
    rows = list_options(matrix, council)
    runs = []
    for answers in rows:
        shares = [members.firm_if_right if option == TRUTH else members.firm_if_wrong for option in answers]
        is_firm = [rng.random() < share for share in shares]

        def read(author: int, reader: int, answers: Answers = answers) -> int | None:
            wrong = next((option for option in answers if option not in (TRUTH, NO_ANSWER)), 1)
            return object_to(members, answers[author], wrong, competence[reader], rng)

        runs.append(run_adaptive(answers, is_firm, read, lambda answers, _: answers))
    right = {
        "adaptive": [run.answer == TRUTH for run in runs],
        "triad": [take_plurality(answers) == TRUTH for answers in rows],
    }
    for n, model in enumerate(council):
        right[model] = [answers[n] == TRUTH for answers in rows]
    return StopTable(runs, right, tokens)


def list_options(matrix: Matrix, models: Sequence[str]) -> list[Answers]:
    """Return the recorded answers as options: the right one is TRUTH, and equal wrong ones have equal numbers."""
    columns = [matrix.models.index(model) for model in models]
    rows = []
    for at, said in enumerate(matrix.answers):
        numbers: dict[str, int] = {}
        row = []
        for model, column in zip(models, columns, strict=True):
            answer = said[column]
            if matrix.is_right(model, at):
                row.append(TRUTH)
            else:
                row.append(numbers.setdefault(answer, len(numbers) + 1) if answer else NO_ANSWER)
        rows.append(tuple(row))
    return rows
