"""The shape of protocols that are not built yet: who would sit, in which phases, for how many calls.

A protocol that is built gives its own shape and leaves this room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from pydantic import BaseModel

from council.errors import EngineError, UsageError
from council.protocols.options import AdvisorsOptions, GeneralOptions, JudgesOptions
from council.rules.bench import MOST_AGENTS, PROFILE_JUDGES, USUAL_JUDGES, Bench, plain_name, seat_bench
from council.types import Json, Seat

CHAIR = Seat("chair", role="Chair")
REFEREE = Seat("referee", role="Referee")
FAMILIES = ("claude", "codex")  # how --mixed names its seats until members are seated
MOST_LOOKS = 3  # an explorer asks for material this often before it writes

ADVISORS = (
    Seat("pragmatist", "Pragmatist", "feasibility, cost, effort, timeline"),
    Seat("visionary", "Visionary", "long-term potential, innovation, cost of inaction"),
    Seat("skeptic", "Skeptic", "risk, failure modes, edge cases, unintended consequences"),
)
GENERALS = (Seat("generalist", "Generalist"), Seat("skeptic", "Skeptic"), Seat("domain_expert", "Domain expert"))
RANKERS = (Seat("alpha", "Alpha"), Seat("beta", "Beta"), Seat("gamma", "Gamma"))

PRESETS: dict[str, tuple[str, ...]] = {
    "security-audit": ("attacker", "defender", "compliance"),
    "architecture": ("scalability", "maintainability", "simplicity"),
    "research": ("breadth", "depth", "contrarian"),
    "ops": ("reliability", "observability", "incident-response"),
    "code-review": ("error-paths", "api-surface", "spec-compliance"),
    "plan-review": ("missing-requirements", "feasibility", "scope", "spec-completeness"),
    "doc-review": ("clarity-editor", "accuracy-verifier", "completeness-auditor", "audience-advocate"),
    "retrospective": ("plan-compliance", "tech-debt", "learnings"),
    "product": ("user-value", "adoption-barriers", "competitive-position"),
    "developer-experience": ("api-clarity", "error-experience", "discoverability"),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A council before anyone is seated. `calls` is the least and the most that a run makes."""

    seats: tuple[Seat, ...]
    chair: Seat | None
    phases: tuple[Json, ...]
    calls: tuple[int, int]
    agents: int
    warnings: tuple[str, ...] = ()


def shape_of(protocol: str, task: str, options: BaseModel) -> Shape:
    """What a run of this protocol would look like; raises UsageError where the options cannot be met."""
    if protocol not in SHAPES:
        raise EngineError(f'no shape is planned for the protocol "{protocol}": a built protocol gives its own')
    return SHAPES[protocol](task, options)


def _advisors(task: str, options: BaseModel) -> Shape:
    chosen = cast(AdvisorsOptions, options)
    rounds = [_phase(f"r{n}", len(ADVISORS), chosen.flow != "sequential") for n in range(1, chosen.rounds + 1)]
    unread = (f'the advisors of the roster "{chosen.roster}" are not read yet: the usual three are shown',)
    return _shape(ADVISORS, REFEREE, [*rounds, _phase("referee", 1)], warnings=unread if chosen.roster else ())


def _general(task: str, options: BaseModel) -> Shape:
    chosen = cast(GeneralOptions, options)
    seats = len(GENERALS)
    phases = [] if chosen.no_search else [_phase("queries", 1)]
    phases += [_phase("round-1", seats, True), _phase("clerk", 1)]
    least = sum(phase["calls"] for phase in phases) + 1
    phases += [] if chosen.no_deliberate else [_phase("round-2", seats, True)]
    phases.append(_phase("synthesis", 1))
    resent = 1  # a synthesis that fails its checks is sent back once
    most = sum(phase["calls"] for phase in phases) + resent
    return _shape(GENERALS, CHAIR, phases, calls=(least, most))


def _ranking(task: str, options: BaseModel) -> Shape:
    seats = len(RANKERS)
    return _shape(RANKERS, CHAIR, [_phase("answer", seats, True), _phase("rank", seats, True), _phase("synthesise", 1)])


def _quick(task: str, options: BaseModel) -> Shape:
    return _shape((Seat("judge-1", "Judge"),), None, [_phase("judge", 1)])


def _judges(task: str, options: BaseModel) -> Shape:
    chosen = cast(JudgesOptions, options)
    bench = bench_of(chosen)
    ruled = chosen.quick or task == "validate"  # verdicts are consolidated by rule, options and facets by a chair
    chair = None if ruled else CHAIR
    phases = _judges_phases(bench, debate=chosen.debate, chaired=chair is not None)
    least = sum(phase["calls"] for phase in phases)
    most = least + bench.judges * bench.explorers * MOST_LOOKS
    return _shape(judge_seats(bench), chair, phases, (least, most), bench.agents, _judges_warnings(chosen, bench))


def _judges_phases(bench: Bench, *, debate: bool, chaired: bool) -> list[Json]:
    phases: list[Json] = []
    if bench.explorers:
        phases.append(_phase("sub-questions", bench.judges, True))
        phases.append(_phase("explore", bench.judges * bench.explorers, True))
    phases.append(_phase("r1" if debate else "judge", bench.judges, True))
    phases += [_phase("r2", bench.judges, True)] if debate else []
    return phases + ([_phase("synthesise", 1)] if chaired else [])


def bench_of(chosen: JudgesOptions) -> Bench:
    return seat_bench(
        perspectives=perspectives_of(chosen),
        quick=chosen.quick,
        deep=chosen.deep,
        mixed=chosen.mixed,
        debate=chosen.debate,
        count=chosen.count,
        explorers=chosen.explorers,
        usual=PROFILE_JUDGES.get(chosen.profile or "", USUAL_JUDGES),
    )


def perspectives_of(chosen: JudgesOptions) -> tuple[str, ...]:
    """The perspectives by name; those of a file are known once it is read."""
    if chosen.perspectives or chosen.perspectives_file or not chosen.preset:
        return chosen.perspectives
    if chosen.preset in PRESETS:
        return PRESETS[chosen.preset]
    near = get_close_matches(chosen.preset, PRESETS, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    raise UsageError(f'unknown preset "{chosen.preset}": {hint}known are {", ".join(PRESETS)}')


def judge_seats(bench: Bench) -> tuple[Seat, ...]:
    """One seat per judge; with two families each perspective is held once in each."""
    if bench.families == 1:
        return tuple(_judge(bench, n) for n in range(bench.per_family))
    return tuple(_judge(bench, n, f"{family}-") for family in FAMILIES for n in range(bench.per_family))


def _judge(bench: Bench, n: int, family: str = "") -> Seat:
    if n >= len(bench.perspectives):
        return Seat(f"{family}judge-{n + 1}", "Judge")
    perspective = bench.perspectives[n]
    return Seat(f"{family}judge-{plain_name(perspective)}", "Judge", perspective)


def _judges_warnings(chosen: JudgesOptions, bench: Bench) -> tuple[str, ...]:
    warnings = []
    if bench.scaled:
        each = " per family" if bench.families > 1 else ""
        warnings.append(
            f"{bench.wanted} judges{each} scaled down to {bench.per_family}: at most {MOST_AGENTS} agents sit"
        )
    if bench.dropped:
        warnings.append(f"perspectives dropped: {', '.join(bench.dropped)}")
    if chosen.perspectives_file:
        warnings.append(f'the perspectives of "{chosen.perspectives_file}" are not read yet: judges are shown without')
    return tuple(warnings)


def _phase(name: str, calls: int, parallel: bool = False) -> Json:
    return {"name": name, "calls": calls, "parallel": parallel}


def _shape(
    seats: tuple[Seat, ...],
    chair: Seat | None,
    phases: list[Json],
    calls: tuple[int, int] | None = None,
    agents: int | None = None,
    warnings: tuple[str, ...] = (),
) -> Shape:
    total = sum(phase["calls"] for phase in phases)
    return Shape(seats, chair, tuple(phases), calls or (total, total), agents or len(seats), warnings)


SHAPES: dict[str, Callable[[str, BaseModel], Shape]] = {
    "advisors": _advisors,
    "judges": _judges,
    "general": _general,
    "ranking": _ranking,
    "quick": _quick,
}
