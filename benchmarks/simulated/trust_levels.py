"""How often the answers of each trust level are right: real protocols with simulated members or recorded answers.

The flow, the rules and the trust table are those of a run. Which trust level a council gets depends only on who agrees
with whom, so each pattern of agreement is run once and its level is used for all questions with this pattern.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from council import events as ev
from council.engine.council import Council
from council.engine.ledger import Ledger, NullStore
from council.engine.minutes import Minutes
from council.engine.prompting import Prompts
from council.engine.trust import LEVELS, compute_trust
from council.errors import EngineError
from council.evals.statistics import Interval, bootstrap_mean
from council.planning.rehearsal import template_context
from council.protocols import CHAIR, get_protocol
from council.runs.outcome import run_protocol
from council.store.interface import Record
from council.types import Json, Outcome, Packet, PacketFile, Question, Roster, SearchQuery, SearchRow, Seat, Step
from simulation import (
    NO_ANSWER,
    TRUTH,
    Answers,
    Draw,
    Members,
    Path,
    answer_adaptively,
    draw_questions,
    exchange,
    take_plurality,
)

MIN_CASES = 100  # of a level that is compared
QUESTION = Question("Which of the options is right?")
REVIEW = Question("Is the code in core.py fit to release?", "validate", "core.py")
REVIEWED = Packet((PacketFile("core.py", "limit = 3\n"),), target="core.py")
VERDICTS = ("PASS", "WARN", "FAIL")  # the options of a simulated review
SEAT_NAMES = ("alpha", "beta", "gamma", "delta", "epsilon")
# Each protocol that can reach HIGH with the options of its simulated run, and one that cannot: `general:no-search`.
SIMULATED_PROTOCOLS: Mapping[str, tuple[str, Json]] = {
    "collaborative": ("collaborative", {}),
    "adversarial": ("adversarial", {}),
    "triad": ("triad", {}),
    "ranking": ("ranking", {}),
    "refine": ("refine", {}),
    "advisors": ("advisors", {}),
    "advisors:rounds=2": ("advisors", {"rounds": 2}),
    "general": ("general", {}),
    "general:no-search": ("general", {"no_search": True}),
    "adaptive": ("adaptive", {}),
    "panel": ("panel", {}),
    "judges": ("judges", {}),
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Who agrees with whom: first answers, answers after the exchange, and what else the protocol asks for."""

    first: Answers
    later: Answers
    orders: tuple[Answers, ...] = ()  # how each reader of `ranking` ranks the others: numbers of seats, the best first
    is_firm: tuple[bool, ...] = ()  # of `adaptive`: which seats answer with HIGH confidence
    objects: bool = False  # of `adaptive`: whether the reader finds an error in the checked answer


@dataclass(slots=True)
class SimulatedPanel:
    """Answers the requests of one council as a pattern says. The chair takes the plurality."""

    pattern: Pattern
    record: Record
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.names = SEAT_NAMES[: len(self.pattern.first)]

    async def carry_out(self, step: Step) -> Outcome:
        await asyncio.sleep(0)  # let parallel requests start before the first answer
        phase = step.ask.key.split("/")[0]
        said = self._answer_typed(step) if step.ask.schema_name else self._answer_text(step.seat, phase)
        text = said if isinstance(said, str) else json.dumps(said)
        if step.reply is not None:
            step.read(text)  # a reply that the protocol cannot read is an error of the simulation
        return Outcome("ok", text, served_by=step.chain[0], attempts=1)

    @property
    def choice(self) -> int:
        """What the chair takes."""
        return take_plurality(self.pattern.later)

    @property
    def holders(self) -> list[str]:
        return [name for name, option in zip(self.names, self.pattern.later, strict=True) if option == self.choice]

    @property
    def first_holders(self) -> list[str]:
        """The seats whose first answer is what the chair takes."""
        return [name for name, option in zip(self.names, self.pattern.first, strict=True) if option == self.choice]

    @property
    def joined(self) -> list[str]:
        """The seats that came to it later."""
        return [name for name in self.holders if name not in self.first_holders]

    @property
    def leader(self) -> str:
        return self.names[self.pattern.first.index(take_plurality(self.pattern.first))]

    @property
    def is_split(self) -> bool:
        return len(set(self.pattern.later)) > 1

    def _answer_text(self, seat: str, phase: str) -> str:
        if seat in self.names:
            answers = self.pattern.later if phase in ("improve", "r2", "r3") else self.pattern.first
            option = answers[self.names.index(seat)]
            closing = f"\n\nConclusion: {_conclude(option)}\nConfidence: HIGH" if phase == "answer" else ""
            return f"HIGH: {_name(option)} is right.{closing}"
        labels = self._labels(seat)
        shown = {name: f"Response {label}" for label, name in labels.items()} if labels else {n: n for n in self.names}
        contested = [{"point": "which option is right", "sides": [{"seat": shown[n], "position": _name(option), "assumes": ""} for n, option in zip(self.names, self.pattern.later, strict=True)]}]  # fmt: skip
        notes = {
            "agreed": [] if self.is_split else ["the option"], "contested": contested if self.is_split else [],
            "unique": [], "taken_from": [], "closest_draft": shown[self.holders[0]],
            "recommendation_shared_by": [shown[name] for name in self.first_holders],
            "joined": [shown[name] for name in self.joined],
        }  # fmt: skip
        return f"{_name(self.choice)} is right.\n\n```council-notes\n{json.dumps(notes)}\n```"

    def _labels(self, reader: str) -> dict[str, str]:
        """Return the labels that the last shuffling gave this reader."""
        events = [entry.event for entry in self.record.entries]
        found = [one.labels for one in events if isinstance(one, ev.Labelled) and one.reader == reader]
        return found[-1] if found else {}

    def _answer_typed(self, step: Step) -> Json:
        seat, kind = step.seat, step.ask.schema_name
        own = self.pattern.first[self.names.index(seat)] if seat in self.names else self.choice
        led = self.pattern.first[self.names.index(self.leader)]
        split = len(set(self.pattern.first)) > 1
        match kind:
            case "Triage":
                return {
                    "agreed": [], "contested": ["which option is right"] if split else [], "same_conclusion": not split,
                    "no_critical_flag": True, "no_contradiction": not split, "mostly_high": True,
                    "reason": "most drafts say so", "leader": self.leader,
                    "same_as_leader": [n for n, option in zip(self.names, self.pattern.first, strict=True) if option == led],
                    "sides": [],
                }  # fmt: skip
            case "Attack" if "same_conclusion" in (step.ask.schema or {})["properties"]:
                target = self.pattern.first[(self.names.index(seat) + 1) % len(self.names)]
                return {"errors": _list_errors(target, own), "same_conclusion": own == target}
            case "Rewrite":
                later = self.pattern.later[self.names.index(seat)]
                return {"rulings": self._rule(step, landed=later != own), "answer": f"{_name(later)} is right."}
            case "Critique":
                return {"errors": _list_errors(self.choice, self.pattern.later[self.names.index(seat)])}
            case "Correction":
                return {"rulings": self._rule(step, landed=False), "edits": []}
            case "Attack":
                issue = {"severity": "FATAL", "hits": _name(led), "flaw": f"{_name(own)} is right.", "correction": ""}
                return {"issues": [] if own == led else [issue], "case": "", "verdict": "STAND" if own == led else "REJECTED"}  # fmt: skip
            case "Ruling":
                points = [
                    {"issue": f"{name}-1", "same_as": "none", "why": "most drafts differ", "landed": False}
                    for name, option in zip(self.names, self.pattern.first, strict=True)
                    if option != led
                ]
                return {"points": points, "outcome": "SURVIVED", "answer": f"{_name(led)} is right.", "assessment": "-"}
            case "Ballot":
                labels = {name: label for label, name in self._labels(seat).items()}
                order = [labels[self.names[n]] for n in self.pattern.orders[self.names.index(seat)]]
                return {"dispute": "", "reasons": [{"label": one, "why": "-"} for one in sorted(order)], "order": order}
            case "Refereed" | "RefereedRounds":
                return self._referee(several=kind == "RefereedRounds")
            case "Opinion":
                opinion = {"verdict": VERDICTS[own], "confidence": "HIGH", "key_insight": "-", "recommendation": "-"}
                return opinion | {"findings": [], "schema_version": 3}
            case "Answer":
                is_firm = self.pattern.is_firm[self.names.index(seat)]
                return {
                    "answer": f"{_name(own)} is right.", "conclusion": _conclude(own),
                    "confidence": "HIGH" if is_firm else "MEDIUM", "doubts": [],
                }  # fmt: skip
            case "Points":
                return self._compare(seat)
            case "Confirmation":
                error = {"severity": "FATAL", "hits": _name(own), "flaw": "Another option is right.", "correction": "", "harm": ""}  # fmt: skip
                agrees = not self.pattern.objects and self.pattern.first[0] == own
                return {"errors": [error] if self.pattern.objects else [], "same_conclusion": agrees}
            case "Arguments":
                points = (step.ask.schema or {})["properties"]["points"]["items"]["properties"]["point"]["enum"]
                stance = "holds" if self.pattern.later[self.names.index(seat)] == own else "concedes"
                return {"points": [{"point": point, "stance": stance, "argument": "-"} for point in points]}
            case "Queries":
                return {"queries": ["which option is right"]}
            case "Position":
                claim = {"question": QUESTION.text, "answer": _name(own), "text": f"{_name(own)} is right.", "holds_when": "", "confidence": 0.9}  # fmt: skip
                sources = [] if "no_search" in self.record.setup.get("options", {}) else [1]
                return {
                    "response": f"{_name(own)} is right{' [1]' if sources else ''}.", "claims": [claim | {"sources": sources}],
                    "sources": sources, "confidence": 0.9, "areasOfUncertainty": [],
                }  # fmt: skip
            case "ClaimGroups":
                ids = [f"c{n}" for n in range(1, len(self.names) + 1)]
                return {
                    "groups": [{"question": QUESTION.text, "claims": ids, "relation": "conflict" if split else "agree"}]
                }
            case "Reconsidered":
                moved = self.pattern.later[self.names.index(seat)] != own
                word = "CONCEDE" if moved else "MAINTAIN"
                text = f"{word}: the reasons of the other members for their option convince me more than mine do."
                return {"answers": [{"topic": "D1", "word": word, "paragraph": text if moved else f"{word}: I hold it.", "confidence": 0.9}]}  # fmt: skip
            case "Synthesis":
                sides = [{"position": _name(option), "case": f"{_name(option)} is right."} for option in dict.fromkeys(self.pattern.later)]  # fmt: skip
                rows = [{"disagreement": "D1", "because": "the members differ", "sides": sides}]
                cited = "" if "no_search" in self.record.setup.get("options", {}) else " [1]"
                return {"answer": f"{_name(self.choice)} is right{cited}.", "disagreements": rows if self.is_split else [], "added_disagreements": []}  # fmt: skip
        raise EngineError(f'the simulation has no answer for a reply of the type "{kind}": add one')

    def _compare(self, clerk: str) -> Json:
        """Return the points of the clerk: which answers share a conclusion, and the sides if they differ."""
        labels = {name: label for label, name in self._labels(clerk).items()}
        sides: dict[int, list[str]] = {}
        for name, option in zip(self.names, self.pattern.first, strict=True):
            sides.setdefault(option, []).append(labels[name])
        shared = max(sides.values(), key=len)
        rows = [{"answers": found, "position": _name(option), "assumes": ""} for option, found in sides.items()]
        return {
            "agreed": [{"point": "There is a right option.", "answers": list(labels.values())}],
            "disputed": [{"point": "which option is right", "sides": rows}] if len(rows) > 1 else [],
            "unique": [],
            "shared_conclusion": shared if len(shared) > 1 else [],
        }

    def _rule(self, step: Step, *, landed: bool) -> list[Json]:
        """Return a ruling on every error of the request."""
        ids = (step.ask.schema or {})["properties"]["rulings"]["items"]["properties"]["issue"].get("enum", [])
        return [{"issue": one, "same_as": "none", "why": "-", "landed": landed} for one in ids]

    def _referee(self, *, several: bool) -> Json:
        told = list(zip(self.names, self.pattern.first, self.pattern.later, strict=True))
        ruling: Json = {
            "perspectives": [{"advisor": name, "view": _name(option)} for name, _, option in told],
            "tensions": ["which option is right"] if self.is_split else [],
            "decision": f"{_name(self.choice)} is right.", "shared_by": self.first_holders, "next_steps": [], "wrong_if": "",
            "sides": [],
        }  # fmt: skip
        moves = [
            {"advisor": name, "opened_with": _name(first), "ended_with": _name(last), "moved": first != last, "why": "-", "evidence": ""}
            for name, first, last in told
        ]  # fmt: skip
        return ruling | {"positions": moves, "joined": self.joined} if several else ruling


def _list_errors(told: int, held: int) -> list[Json]:
    """Return the error that a reader finds in a text, if it holds another option."""
    error = {"severity": "FATAL", "hits": _name(told), "flaw": f"{_name(held)} is right.", "correction": "", "harm": ""}
    return [] if told == held else [error]


def _name(option: int) -> str:
    return f"Option {'ABCDEFGHIJ'[option]}"


def _conclude(option: int) -> str:
    """Return a conclusion that code compares with others: a number."""
    return str(100 + option)


async def _search(wanted: SearchQuery) -> list[SearchRow]:
    return [
        {"query": query, "title": "T", "url": "https://example.org/1", "snippet": "-"}
        for query in wanted["queries"][:1]
    ]


async def find_level(protocol: str, options: Json, pattern: Pattern) -> str:
    """Run one council of simulated members and return its trust level."""
    return compute_trust(await hold_council(protocol, options, pattern)).level


async def hold_council(protocol: str, options: Json, pattern: Pattern) -> Minutes:
    """Run one council of simulated members."""
    definition = get_protocol(protocol)
    is_review = protocol == "judges"
    question, packet = (REVIEW, REVIEWED) if is_review else (QUESTION, Packet())
    seats = tuple(
        Seat(name, name.capitalize(), member=f"sim{n}:m", vendor=f"sim{n}") for n, name in enumerate(SEAT_NAMES[: len(pattern.first)])
    )  # fmt: skip
    chair = Seat(CHAIR.name, CHAIR.role, member="sim9:m", vendor="sim9")
    roster = Roster(seats, chair, (Seat("clerk", "Clerk", member="sim8:m", vendor="sim8"),))
    record = Record("simulated", "", "", 0.0, "simulated", {"options": options})
    ledger = Ledger(NullStore(), record)
    rows = [{"name": one.name, "role": one.role, "perspective": "", "model": one.member, "vendor": one.vendor} for one in roster.all_seats]  # fmt: skip
    ledger.emit(
        ev.Convened(
            "simulated", "", {"protocol": protocol, "task": question.task, "seats": rows[:-2], "chair": rows[-2]}
        )
    )
    panel = SimulatedPanel(pattern, record)
    council = Council(
        roster, question, ledger=ledger, prompts=Prompts(record.seed, definition.prompt_folders, protocol),
        carry_out=panel.carry_out, context=template_context(question, roster, packet), effects={"search": _search},
        keeps_conversations=definition.keeps_conversations,
    )  # fmt: skip
    ending = await run_protocol(council, definition, options)
    ledger.emit(ev.Closed(ending.status, ev.dump_deeply(ending.verdict), dict(ledger.calls), ending.stopped))
    minutes = Minutes.fold(record.entries)
    if minutes.status != "complete":
        raise EngineError(f'the simulated run of "{protocol}" is {minutes.status}: {ending.reason}')
    return minutes


# Patterns


def _relabel(*rows: Answers) -> tuple[Answers, ...]:
    """Return the answers with options numbered by their first occurrence: the trust level cannot depend on names."""
    numbers: dict[int, int] = {}
    return tuple(tuple(numbers.setdefault(option, len(numbers)) for option in row) for row in rows)


def _rank_others(answers: Answers, rng: random.Random) -> tuple[Answers, ...]:
    """Return each reader's ballot: answers equal to its own first, otherwise in the order of the seats or in reverse.

    These few orders are enough for ballots that differ, and each needs a run of its own.
    """
    orders = []
    for reader, own in enumerate(answers):
        others = [n for n in range(len(answers)) if n != reader]
        if rng.random() < 0.5:
            others.reverse()
        orders.append(tuple(sorted(others, key=lambda n, own=own: answers[n] != own)))  # type: ignore[misc]
    return tuple(orders)


class Share(NamedTuple):
    """The right ones among some answers."""

    right: int
    total: int

    @property
    def mean(self) -> float:
        return self.right / self.total

    @property
    def interval(self) -> Interval:
        return bootstrap_mean([1.0] * self.right + [0.0] * (self.total - self.right))


@dataclass(frozen=True, slots=True)
class LevelTable:
    """The right answers by trust level of one protocol with one panel of members."""

    protocol: str
    members: Members
    levels: Mapping[str, Share]

    @property
    def is_comparable(self) -> bool:
        """Whether at least two levels have enough answers."""
        return sum(share.total >= MIN_CASES for share in self.levels.values()) > 1

    @property
    def is_guess(self) -> bool:
        """Whether a member is right no more often than by chance, so that agreement says nothing."""
        return min(self.members.competence) * self.members.options <= 1

    def list_inversions(self, *, is_clear: bool = True) -> list[tuple[str, str]]:
        """Return the pairs (lower, higher) in which the lower level is right more often.

        `is_clear`: only those whose intervals do not overlap. Levels with few answers are not compared.
        """
        known = [level for level in LEVELS if self.levels.get(level, Share(0, 0)).total >= MIN_CASES]
        pairs = [(low, high) for n, high in enumerate(known) for low in known[n + 1 :]]
        return [(low, high) for low, high in pairs if self._is_inverted(low, high, is_clear=is_clear)]

    def _is_inverted(self, low: str, high: str, *, is_clear: bool) -> bool:
        lower, higher = self.levels[low], self.levels[high]
        return lower.mean > higher.mean and (not is_clear or lower.interval.low > higher.interval.high)


class LevelMeter:
    """Measures the trust levels of protocols. Each pattern is run once."""

    def __init__(self) -> None:
        self._levels: dict[tuple[str, Pattern], str] = {}
        self._reviews: dict[Answers, tuple[str, str | None]] = {}  # votes of judges → trust level, verdict

    async def measure(self, name: str, members: Members, questions: int, seed: int = 0) -> LevelTable:
        """Answer simulated questions under a protocol, and return the right answers by trust level."""
        if name == "judges":
            return LevelTable(name, members, await self._measure_reviews(members, questions, seed))
        _, options = SIMULATED_PROTOCOLS[name]
        rng = random.Random(f"{name} {seed}")
        uses_later = name in ("collaborative", "general", "general:no-search") or options.get("rounds", 1) > 1
        found: list[tuple[str, bool]] = []
        for draw in draw_questions(members, questions, seed):
            if name == "adaptive":
                found.append(await self._measure_adaptive(members, draw, rng))
                continue
            later = exchange(members, draw, draw.answers, rng) if uses_later else draw.answers
            orders = _rank_others(draw.answers, rng) if name == "ranking" else ()
            first, last = _relabel(draw.answers, later)
            found.append((await self._find_level(name, Pattern(first, last, orders)), take_plurality(later) == TRUTH))
        return LevelTable(name, members, count_levels(found))

    async def measure_recorded(self, name: str, rows: Sequence[Answers]) -> Mapping[str, Share]:
        """Return the right answers by trust level of recorded answers, without an exchange."""
        found: list[tuple[str, bool]] = []
        for answers in rows:
            # An answer that cannot be read is like no other one.
            apart = tuple(-n - 2 if option == NO_ANSWER else option for n, option in enumerate(answers))
            (first,) = _relabel(apart)
            found.append((await self._find_level(name, Pattern(first, first)), take_plurality(answers) == TRUTH))
        return count_levels(found)

    async def _find_level(self, name: str, pattern: Pattern) -> str:
        if (name, pattern) not in self._levels:
            self._levels[name, pattern] = await find_level(*SIMULATED_PROTOCOLS[name], pattern)
        return self._levels[name, pattern]

    async def _measure_adaptive(self, members: Members, draw: Draw, rng: random.Random) -> tuple[str, bool]:
        """Return the trust level of an adaptive run, and whether its answer is right."""
        told = answer_adaptively(members, draw, rng)
        first, last = _relabel(draw.answers, told.later)
        objects = told.run.path in ("objected", "shared_objected")
        pattern = simplify_adaptive(Pattern(first, last, (), told.is_firm, objects), told.run.path)
        return await self._find_level("adaptive", pattern), told.run.answer == TRUTH

    async def _measure_reviews(self, members: Members, questions: int, seed: int) -> Mapping[str, Share]:
        """Review simulated changes.

        The right verdict is any of the three; the rules of the protocol combine the votes.
        """
        rng = random.Random(f"judges {seed}")
        found: list[tuple[str, bool]] = []
        for draw in draw_questions(replace(members, options=len(VERDICTS)), questions, seed):
            truth = rng.randrange(len(VERDICTS))
            votes = tuple((option + truth) % len(VERDICTS) for option in draw.answers)
            if votes not in self._reviews:
                minutes = await hold_council("judges", {}, Pattern(votes, votes))
                self._reviews[votes] = compute_trust(minutes).level, minutes.verdict["verdict"]
            level, verdict = self._reviews[votes]
            found.append((level, verdict == VERDICTS[truth]))
        return count_levels(found)


def simplify_adaptive(pattern: Pattern, path: Path) -> Pattern:
    """Return one pattern for all those that adaptive cannot tell apart on this path, so that fewer are run.

    If it stops after two answers, it asks no other seat. Confidence matters for a stop only.
    """
    seats = len(pattern.first)
    if path == "stopped":
        return Pattern((0,) * seats, (0,) * seats, (), (True,) * seats)
    if path == "objected":
        return replace(pattern, is_firm=(True,) * seats)
    if path == "disputed":
        return replace(pattern, is_firm=(pattern.first[0] != pattern.first[1],) * seats)
    return pattern


def count_levels(found: Sequence[tuple[str, bool]]) -> Mapping[str, Share]:
    """Return the right answers of each level that occurs, from the highest to the lowest."""
    counts = {level: [is_right for one, is_right in found if one == level] for level in LEVELS}
    return {level: Share(sum(right), len(right)) for level, right in counts.items() if right}


def make_grid(
    competences: Sequence[float], correlations: Sequence[float], seats: int = 3, conformity: float = 0.3
) -> Iterator[Members]:
    """Yield a panel for each competence and each error correlation."""
    for competence in competences:
        for correlation in correlations:
            yield Members((competence,) * seats, correlation, conformity=conformity)
