"""Simulated members with known competence, and the models of debate that are measured with them.

Only orderings and break-even points may be concluded from simulated members, never gains: real members differ in ways
that no parameter here describes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from statistics import NormalDist
from typing import Literal, NamedTuple, get_args

from council.errors import UsageError
from council.evals.statistics import Interval, bootstrap_mean, brier_score, compare
from council.evals.votes import Vote, elect_by_plurality
from council.protocols.adaptive import rules as adaptive_rules
from council.protocols.ranking import rules as ranking_rules
from council.types import Difference, Json, Side

TRUTH = 0  # the right option of every simulated question
TEMPTING = 1  # the wrong option that correlated errors share
NO_ANSWER = -1  # an answer that cannot be read: an abstention, equal to no other
Answers = tuple[int, ...]  # one option per member


@dataclass(frozen=True, slots=True)
class Members:
    """A panel of simulated members. All shares are probabilities."""

    competence: tuple[float, ...] = (0.7, 0.7, 0.7)  # of a right first answer, per member
    correlation: float = (
        0.0  # of errors: the correlation of the Gaussian copula, and the share of errors on one wrong option
    )
    options: int = 4
    conformity: float = 0.0  # of adopting what most of the others say, per round
    instability: float = 0.0  # part of a member's own latent value that is new when it is asked again
    truth_pull: float = 0.0  # of moving to the right answer, if another member gives it, per round
    inflation: float = 0.0  # part of the remaining doubt that each round removes from the stated confidence
    # Stated confidence says little: between a right and a wrong answer, these two find the right one in 6 of 10 cases.
    firm_if_right: float = 0.8  # of HIGH confidence without a doubt in a right first answer
    firm_if_wrong: float = 0.6  # the same in a wrong one
    # A reader whose own answer is the same seldom finds the error in it.
    catch: float = 0.2  # of objecting to a wrong answer that the reader gave too
    false_alarm: float = 0.1  # of objecting to a right one

    def __post_init__(self) -> None:
        shares = {
            "competence": self.competence, "correlation": (self.correlation,), "conformity": (self.conformity,),
            "instability": (self.instability,), "truth_pull": (self.truth_pull,), "inflation": (self.inflation,),
            "firm_if_right": (self.firm_if_right,), "firm_if_wrong": (self.firm_if_wrong,), "catch": (self.catch,),
            "false_alarm": (self.false_alarm,),
        }  # fmt: skip
        for name, values in shares.items():
            if bad := [value for value in values if not 0 <= value <= 1]:
                raise UsageError(f'{name} "{bad[0]:g}" is out of range: use a share from 0 to 1')
        if self.options < 2 or not self.competence:
            raise UsageError(f'options "{self.options}" and {len(self.competence)} members cannot vote: use 2 options or more, and a member')  # fmt: skip


@dataclass(frozen=True, slots=True)
class Draw:
    """One question: the latent values of the copula, the wrong option of each member, and the first answers.

    A member is right if its latent value is below the limit that its competence sets.
    """

    common: float  # shared by all members
    own: tuple[float, ...]
    wrong: Answers
    answers: Answers


def draw_questions(members: Members, count: int, seed: int) -> Iterator[Draw]:
    """Yield questions with the first answers of all members. The seed decides them all."""
    rng = random.Random(f"questions {seed}")
    limits, seats = find_limits(members), range(len(members.competence))
    for _ in range(count):
        common, own = rng.gauss(0, 1), tuple(rng.gauss(0, 1) for _ in seats)
        shares = [rng.random() < members.correlation for _ in seats]
        wrong = tuple(TEMPTING if shared else rng.randrange(1, members.options) for shared in shares)
        answers = tuple(
            TRUTH if _mix(members.correlation, common, own[n]) < limits[n] else wrong[n] for n in seats
        )  # fmt: skip
        yield Draw(common, own, wrong, answers)


def find_limits(members: Members) -> list[float]:
    normal = NormalDist()
    return [
        math.inf if share >= 1 else -math.inf if share <= 0 else normal.inv_cdf(share) for share in members.competence
    ]


def _mix(share: float, common: float, own: float) -> float:
    return math.sqrt(share) * common + math.sqrt(1 - share) * own


def ask_again(members: Members, draw: Draw, n: int, limit: float, rng: random.Random) -> int:
    """Return what a member answers if it is asked again. It knows what it knew; only a part of its value is new."""
    own = _mix(members.instability, rng.gauss(0, 1), draw.own[n])
    return TRUTH if _mix(members.correlation, draw.common, own) < limit else draw.wrong[n]


# Rounds


def exchange(members: Members, draw: Draw, answers: Answers, rng: random.Random) -> Answers:
    """Return the answers after one round in which every member saw the others' answers."""
    limits = find_limits(members)
    return tuple(_reconsider(members, draw, n, limits[n], answers, rng) for n in range(len(answers)))


def _reconsider(
    members: Members, draw: Draw, n: int, limit: float, answers: Answers, rng: random.Random
) -> int:  # fmt: skip
    own, others = answers[n], (*answers[:n], *answers[n + 1 :])
    if own != TRUTH and TRUTH in others and rng.random() < members.truth_pull:
        return TRUTH
    again = ask_again(members, draw, n, limit, rng)
    own = own if again == draw.answers[n] else again
    if others and rng.random() < members.conformity:
        counts = {option: others.count(option) for option in others}
        most = max(counts.values())
        leaders = [option for option, count in counts.items() if count == most]
        return leaders[0] if len(leaders) == 1 else own
    return own


def take_plurality(answers: Sequence[int]) -> int:
    """Return the option that most members give, by the rule that is used for recorded answers."""
    votes = [Vote(str(n), "" if option == NO_ANSWER else str(option)) for n, option in enumerate(answers)]
    answer = elect_by_plurality(votes).answer
    return int(answer) if answer else NO_ANSWER


# Protocols, reduced to what they exchange. The chair takes the plurality.


def _vote(members: Members, draw: Draw, rng: random.Random) -> int:
    return take_plurality(draw.answers)


def take_samples(members: Members, draw: Draw, rng: random.Random, samples: int) -> int:
    """Return the plurality of the strongest member's first answer and of what it answers when it is asked again."""
    best = max(range(len(members.competence)), key=lambda n: members.competence[n])
    limit = find_limits(members)[best]
    again = [ask_again(members, draw, best, limit, rng) for _ in range(samples - 1)]
    return take_plurality([draw.answers[best], *again])


def _self_consistency(members: Members, draw: Draw, rng: random.Random) -> int:
    """The strongest member asked again, as often as there are members in two rounds."""
    return take_samples(members, draw, rng, 2 * len(members.competence))


def _debate(rounds: int) -> Callable[[Members, Draw, random.Random], int]:
    def run(members: Members, draw: Draw, rng: random.Random) -> int:
        answers = draw.answers
        for _ in range(rounds):
            answers = exchange(members, draw, answers, rng)
        return take_plurality(answers)

    return run


def _adversarial(members: Members, draw: Draw, rng: random.Random) -> int:
    """The plurality is attacked; an attack with the right answer convinces with the probability of truth-pull."""
    leading = take_plurality(draw.answers)
    if leading != TRUTH and TRUTH in draw.answers and rng.random() < members.truth_pull:
        return TRUTH
    return leading


def _ranking(members: Members, draw: Draw, rng: random.Random) -> int:
    """Every member ranks the others' answers: the right one first with truth-pull, then its own, then at random."""
    seats = [str(n) for n in range(len(draw.answers))]
    ballots = {}
    for n, reader in enumerate(seats):
        sees_truth = rng.random() < members.truth_pull
        others = [seat for seat in seats if seat != reader]
        rng.shuffle(others)
        ballots[reader] = sorted(others, key=lambda seat: _rank(draw.answers[int(seat)], draw.answers[n], sees_truth))
    winner = ranking_rules.tally(ballots, seats).winner
    return draw.answers[int(winner)] if winner else take_plurality(draw.answers)


def _rank(answer: int, own: int, sees_truth: bool) -> int:
    return 0 if sees_truth and answer == TRUTH else 1 if answer == own else 2


# Adaptive: two answers and a check, and only what is disputed is argued

Path = Literal["stopped", "objected", "shared", "shared_objected", "disputed"]
PATHS: tuple[Path, ...] = get_args(Path)
STOPS: tuple[Path, ...] = ("stopped", "shared")  # the checked answer is returned


class AdaptiveRun(NamedTuple):
    """The answer of an adaptive run, and the way to it.

    stopped: the first two agree firmly, and the check passes. objected: the reader objects. shared: all agree, but not
    firmly, and the check passes. shared_objected: the reader objects to that. disputed: they differ.
    """

    answer: int
    path: Path


Read = Callable[[int, int], int | None]  # author, reader → the reader's position if it objects
Argue = Callable[[Answers, Sequence[int]], Answers]  # answers, speakers → answers after the arguments


def run_adaptive(answers: Answers, is_firm: Sequence[bool], read: Read, argue: Argue) -> AdaptiveRun:
    """Follow the adaptive protocol.

    Conclusions are equal or different, the clerk makes no error, the chair takes the plurality.
    """
    count = len(answers)
    stop: Path
    objection: Path
    is_shared = count > 1 and len(set(answers)) == 1 and NO_ANSWER not in answers
    if count > 1 and answers[0] == answers[1] != NO_ANSWER and is_firm[0] and is_firm[1]:
        author, reader, asked = 0, 1, count + 1
        stop, objection = "stopped", "objected"
    elif is_shared:
        author = next((n for n in range(count) if is_firm[n]), 0)
        reader, asked = int(author == 0), count + 2
        stop, objection = "shared", "shared_objected"
    else:
        return AdaptiveRun(take_plurality(argue(answers, choose_speakers(answers))), "disputed")
    position = read(author, reader)
    if position is None:
        return AdaptiveRun(answers[author], stop)
    contested = (*answers[:reader], position, *answers[reader + 1 :])
    speakers = [author][: adaptive_rules.count_room(count, asked)]
    return AdaptiveRun(take_plurality(argue(contested, speakers)), objection)


@lru_cache(maxsize=4096)
def choose_speakers(answers: Answers) -> tuple[int, ...]:
    """Return the members that argue, by the rule of the protocol. The clerk is not asked about two answers."""
    options = [option for option in dict.fromkeys(answers) if option != NO_ANSWER]
    sides = [tuple(str(n) for n, held in enumerate(answers) if held == option) for option in options]
    if len(sides) < 2:
        return ()
    room = adaptive_rules.count_room(len(answers), len(answers) + (len(answers) > 2))
    chosen = adaptive_rules.choose_speakers([Difference("", tuple(Side(seats, "") for seats in sides))], room)
    return tuple(map(int, chosen))


class AdaptiveAnswers(NamedTuple):
    """An adaptive run, who was sure at first, and the answers after the arguments."""

    run: AdaptiveRun
    is_firm: tuple[bool, ...]
    later: Answers


def hold_adaptive(members: Members, draw: Draw, rng: random.Random) -> AdaptiveRun:
    """Answer one question under the adaptive protocol with simulated members."""
    return answer_adaptively(members, draw, rng).run


def answer_adaptively(members: Members, draw: Draw, rng: random.Random) -> AdaptiveAnswers:
    """Answer one question under the adaptive protocol, and return what the members said."""
    shares = [members.firm_if_right if option == TRUTH else members.firm_if_wrong for option in draw.answers]
    is_firm = tuple(rng.random() < share for share in shares)
    limits = find_limits(members)
    later = draw.answers

    def read(author: int, reader: int) -> int | None:
        return object_to(members, draw.answers[author], draw.wrong[reader], members.competence[reader], rng)

    def argue(answers: Answers, speakers: Sequence[int]) -> Answers:
        nonlocal later
        said = {n: _reconsider(members, draw, n, limits[n], answers, rng) for n in speakers}
        later = tuple(said.get(n, option) for n, option in enumerate(answers))
        return later

    return AdaptiveAnswers(run_adaptive(draw.answers, is_firm, read, argue), is_firm, later)


def object_to(members: Members, answer: int, wrong: int, competence: float, rng: random.Random) -> int | None:
    """Return the position of a reader that objects to an answer like its own, else None.

    Against a right answer it holds the error that it would make. Against a wrong one it works the answer out anew, and
    is right with its competence.
    """
    if rng.random() >= (members.false_alarm if answer == TRUTH else members.catch):
        return None
    if answer == TRUTH:
        return wrong
    others = [option for option in range(1, members.options) if option != answer]
    return TRUTH if not others or rng.random() < competence else rng.choice(others)


def _adaptive(members: Members, draw: Draw, rng: random.Random) -> int:
    return hold_adaptive(members, draw, rng).answer


PROTOCOLS: Mapping[str, Callable[[Members, Draw, random.Random], int]] = {
    "vote": _vote, "self-consistency": _self_consistency, "collaborative": _debate(1), "advisors:rounds=2": _debate(2),
    "advisors:rounds=3": _debate(3), "adversarial": _adversarial, "ranking": _ranking, "triad": _vote, "adaptive": _adaptive,
    "self-consistency:samples=3": partial(take_samples, samples=3),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Simulated:
    """Whether each protocol is right on each of the same questions."""

    members: Members
    right: Mapping[str, tuple[bool, ...]]

    def accuracy(self, protocol: str) -> Interval:
        return bootstrap_mean([float(one) for one in self.right[protocol]])

    def as_json(self) -> list[Json]:
        """Return each protocol's accuracy and its comparison with the vote."""
        return [
            {
                "protocol": name, "accuracy": self.accuracy(name).as_json(),
                "against_vote": compare(self.right["vote"], self.right[name]).as_json() if name != "vote" else None,
            }
            for name in self.right
        ]  # fmt: skip


def simulate(members: Members, questions: int, seed: int = 0, protocols: Sequence[str] = tuple(PROTOCOLS)) -> Simulated:
    """Answer the same questions under each protocol."""
    draws = list(draw_questions(members, questions, seed))
    right = {}
    for name in dict.fromkeys(("vote", *protocols)):
        if name not in PROTOCOLS:
            raise UsageError(f'unknown protocol "{name}" of a simulation: known are {", ".join(PROTOCOLS)}')
        rng = random.Random(f"{name} {seed}")
        right[name] = tuple(PROTOCOLS[name](members, draw, rng) == TRUTH for draw in draws)
    return Simulated(members, right)


def sweep(members: Members, name: str, values: Sequence[float], questions: int, seed: int = 0) -> list[Json]:
    """Simulate with each value of one parameter; the rows say which protocol wins, and when."""
    return [
        {"parameter": name, "value": value, "protocols": simulate(_set(members, name, value), questions, seed).as_json()}
        for value in values
    ]  # fmt: skip


def _set(members: Members, name: str, value: float) -> Members:
    changed: Json = {name: value}
    return replace(members, **changed)


# Stated confidence


def state_confidence(members: Members, rounds: int, confidence: float) -> float:
    """Return what a member claims after some rounds: each removes a part of its remaining doubt."""
    return 1 - (1 - confidence) * (1 - members.inflation) ** rounds


def measure_inflation(members: Members, questions: int, rounds: int, seed: int = 0) -> list[float]:
    """Return the Brier score of a member's stated confidence after each number of rounds, from 0 on."""
    rng = random.Random(f"confidence {seed}")
    draws = list(draw_questions(members, questions, seed))
    answers = [draw.answers for draw in draws]
    scores = []
    for done in range(rounds + 1):
        stated = [state_confidence(members, done, members.competence[0])] * questions
        scores.append(brier_score(stated, [given[0] == TRUTH for given in answers]))
        answers = [exchange(members, draw, given, rng) for draw, given in zip(draws, answers, strict=True)]
    return scores


# The Dirichlet-multinomial model of a debate: a member's belief counts its own prior and every answer it has heard


Belief = tuple[Fraction, ...]  # weight of each option


def mean_belief(beliefs: Sequence[Belief], option: int = TRUTH) -> Fraction:
    """Return the mean share of an option in the beliefs of all members."""
    shares = [belief[option] / sum(belief) for belief in beliefs]
    return Fraction(sum(shares), len(shares))


def hear_answers(beliefs: Sequence[Belief], answers: Sequence[int]) -> list[Belief]:
    """Return the beliefs after every member, the speakers included, has counted every answer."""
    counts = [answers.count(option) for option in range(len(beliefs[0]))]
    return [tuple(weight + n for weight, n in zip(belief, counts, strict=True)) for belief in beliefs]


def expected_belief(beliefs: Sequence[Belief], truth_pull: Fraction = Fraction(0)) -> Fraction:
    """Return the exact expectation of the mean belief in the truth after one round, over all possible answers.

    With truth-pull, a member that would answer wrongly answers rightly with that probability.
    """
    options = range(len(beliefs[0]))
    chances = [_answer_chances(belief, truth_pull) for belief in beliefs]
    total = Fraction(0)
    for answers in product(options, repeat=len(beliefs)):
        chance = Fraction(1)
        for member, option in enumerate(answers):
            chance *= chances[member][option]
        total += chance * mean_belief(hear_answers(beliefs, answers))
    return total


def _answer_chances(belief: Belief, truth_pull: Fraction) -> list[Fraction]:
    shares = [weight / sum(belief) for weight in belief]
    return [
        share + truth_pull * (1 - share) if option == TRUTH else share * (1 - truth_pull)
        for option, share in enumerate(shares)
    ]
