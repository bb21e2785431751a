"""Plans: the options, seats, packet, calls and cost of an intent, before it is run."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from council import protocols
from council.calling.budget import FULL_OUTPUT, NO_SPENDING_PLAN, SpendingPlan
from council.engine.layout import format_count
from council.engine.plan_object import (
    Conversation,
    CostEstimate,
    Effort,
    PlanAttachment,
    PlanLine,
    PlanLook,
    PlanObject,
    PlanPhase,
    PlanWarmStart,
    Task,
)
from council.engine.prompting import build_dossier
from council.engine.response_format import ResponseFormat
from council.errors import CouncilError, SearchNotEnabled, UsageError, option, word_for, wording
from council.members.base import Member
from council.money import equal_work_cost, format_usd
from council.packet import build
from council.packet.changes import Selection, select_recent, select_work_tree
from council.packet.gate import decode_stdin
from council.packet.git import find_repo
from council.packet.targets import has_changes
from council.planning.cap_fit import Alternative, Cap, CostModel, Shortfall, describe_fit, fit_to_cap
from council.planning.estimate import (
    CachePoints,
    PriceLookup,
    RehearsedCall,
    estimate_cost,
    find_cache_points,
    find_rules,
    with_attachments,
    with_effort,
)
from council.planning.exclusion import exclude_from_roster, exclude_vendors, require_members
from council.planning.facts import is_short_fact
from council.planning.intent import ChosenBy, Inferred, Intent, parse_intent, place_piped_text
from council.planning.plan_object import (
    format_unseen,
    list_attachments,
    make_packet_receipt,
    make_plan_seat,
    require_sight,
)
from council.planning.rehearsal import (
    Rehearsal,
    RehearsalInput,
    find_phase_timeouts,
    find_warm_starts,
    rehearse_both_ways,
)
from council.planning.seating import SeatAssignment, Seating, add_fallback_vendors, seat_council
from council.planning.setup import BatchLabel, RunSetup
from council.planning.triggers import names_project
from council.protocols import Protocol, load_reference
from council.protocols.options import list_filled_options, parse_options
from council.protocols.seats import Panel, PanelContext, resize_seats
from council.settings import CHECK_FLAG, SEAT_FLAG, Settings, extend_timeout
from council.settings.member_lookup import ADDED_SEATS, DEFAULT_SEATS
from council.settings.workspace_trust import TrustSource
from council.types import Dossier, Json, Packet, Question, Roster, Seat, Skipped, estimate_tokens, repair_surrogates

TASK_VERBS = ("validate", "brainstorm", "research")
WORK_TREE_LABEL = "the changes in the work tree"
RECENT_LABEL = "recent"
STDIN_LABEL = "the text from standard input"
SMALL_PACKET_TOKENS = 1500  # tokens of material for small members
MAX_PLAIN_CHARS = 4000  # of a question that names no file and is checked without another thread
MAX_ALTERNATIVES = 3
NO_LOOKUPS = "--look has no effect: agents, people and small models fill all seats, and they make no look-ups"
POSSIBLE_GLOB = re.compile(r"[*\[]|\?\w")


@dataclass(frozen=True, slots=True)
class Plan:
    """Seats, phases, calls and estimated cost of a run that has not started."""

    protocol: Protocol
    why: str
    question: Question
    options: Json
    roster: Roster
    phases: tuple[PlanPhase, ...]
    calls: tuple[int, int]  # the fewest and the most
    agents: int
    verbose: bool = False
    packet: Packet = field(default_factory=Packet)
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()  # shown above the answer in the report
    hints: tuple[str, ...] = ()  # shown at a terminal once a day; some are also notices
    remarks: tuple[str, ...] = ()  # shown at a terminal with -v; some are also notices
    shared_vendors: tuple[str, ...] = ()  # notices that a fork with other members replaces
    refusal: str = ""  # why the plan can be shown but not run
    effort: Effort | None = None  # reasoning effort of members that support it
    cost: CostEstimate | None = None  # None if a price is unknown
    unpriced: tuple[str, ...] = ()  # members without a price
    prices: Mapping[str, float] = field(default_factory=dict)  # member → cost of equal work, if it has a price
    cap: float | None = None  # maximum cost in dollars
    spending: SpendingPlan = NO_SPENDING_PLAN  # what the requests may cost at most, and their output limits
    shortfall: Shortfall | None = None  # why the plan does not fit its cap
    given: Json = field(default_factory=dict)  # the options as the user set them, for follow-up runs
    continues: str = ""  # the run whose question and answer are in the packet
    conversation: Conversation | None = None  # the earlier turns in the packet, by form
    earlier_wrong: tuple[str, ...] = ()  # the runs that it builds on and whose answers turned out wrong
    timeouts: Mapping[str, float] = field(default_factory=dict)  # member → seconds in a phase
    inferred: Inferred = Inferred.NOTHING  # what the user did not name
    cheap: bool = False  # fast models fill the seats that were not assigned by hand
    hedge: bool = False  # a fallback is asked too when a member is slow
    warm_starts: tuple[PlanWarmStart, ...] = ()
    cache_points: CachePoints = field(default_factory=dict)  # of each step, where a vendor is told to cache its request
    lines: tuple[PlanLine, ...] = ()
    trusted: tuple[str, ...] = ()  # what the trusted settings of the project send, read and write where
    look: PlanLook | None = None
    redact_lookups: bool = False
    look_folder: str = ""  # of the look-ups, if it is not that of the run
    check: bool = False  # the answer is checked by two other seats and corrected
    response_format: ResponseFormat | None = None  # the JSON that the answer is written in
    request: Json | None = None  # the request of /v1/responses that the run answers, without its input
    excluded_vendors: tuple[str, ...] = ()  # by `--exclude-family`
    batch: BatchLabel | None = None  # of a row of a batch
    attachments: tuple[PlanAttachment, ...] = ()

    def check_runnable(self) -> None:
        """Raise if the plan cannot be run, before any request is sent."""
        self.protocol.load()
        if self.packet.refusal:
            raise UsageError(f"{self.packet.refusal}. No call was made.")
        if self.refusal:
            raise SearchNotEnabled(self.refusal)
        if self.shortfall:
            self.shortfall.raise_error()

    def as_json(self) -> PlanObject:
        """Return the object `council.plan/1`."""
        timeout = self.timeouts.__getitem__
        chair = self.roster.chair
        plan: PlanObject = {
            "schema": "council.plan/1",
            "task": cast("Task", self.question.task),
            "protocol": self.protocol.name,
            "why": self.why,
            "question": self.question.text,
            "target": self.question.target,
            "options": self.options,
            "seats": [make_plan_seat(seat, timeout) for seat in self.roster.seats],
            "chair": make_plan_seat(chair, timeout) if chair else None,
            "phases": list(self.phases),
            "calls": {"min": self.calls[0], "max": self.calls[1]},
            "agents": self.agents,
            "packet": make_packet_receipt(self.packet),
            "cost": self.cost,
            "warnings": list(dict.fromkeys([*self.notices, *self.warnings, *self.hints, *self.remarks])),
            "notices": list(self.notices),
            "cap": self.cap,
            "unpriced": list(self.unpriced),
        }
        if self.hints:
            plan["hints"] = list(self.hints)
        if self.remarks:
            plan["remarks"] = list(self.remarks)
        if self.effort:
            plan["effort"] = self.effort
        if self.cheap:
            plan["cheap"] = True
        if self.continues:
            plan["continues"] = self.continues
        if self.conversation:
            plan["conversation"] = self.conversation
        if self.earlier_wrong:
            plan["earlier_wrong"] = list(self.earlier_wrong)
        if self.trusted:
            plan["trusted"] = list(self.trusted)
        if self.lines:
            plan["lines"] = list(self.lines)
        if self.hedge:
            plan["hedge"] = True
        if self.warm_starts:
            plan["warm_start"] = list(self.warm_starts)
        if self.look:
            plan["look"] = self.look
        if self.check:
            plan["check"] = True
        if self.response_format:
            plan["response_format"] = {"type": self.response_format.kind, "name": self.response_format.name}
        if self.prices:
            plan["prices"] = dict(self.prices)
        if self.attachments:
            plan["attachments"] = list(self.attachments)
        if self.spending.limits != FULL_OUTPUT:
            plan["limits"] = self.spending.limits.as_json()
        if self.excluded_vendors:
            plan["exclude_family"] = list(self.excluded_vendors)
        if self.roster.helpers:
            plan["helpers"] = [make_plan_seat(seat, timeout) for seat in self.roster.helpers]
        return plan

    def setup(self) -> RunSetup:
        """Return the setup that another process needs to resume the run."""
        return RunSetup(
            protocol=self.protocol.name,
            question=self.question,
            options=self.options,
            roster=self.roster,
            packet=self.packet,
            verbose=self.verbose,
            effort=self.effort,
            given=self.given,
            shared_vendors=self.shared_vendors,
            spending=self.spending,
            batch=self.batch,
            look=("redact" if self.redact_lookups else "refuse") if self.look else None,
            look_folder=self.look_folder,
            check=self.check,
            response_format=self.response_format.as_json() if self.response_format else None,
            request=self.request,
            cache_points=self.cache_points,
        )


MakePlan = Callable[..., Awaitable[Plan]]  # make_plan(intent, where=…)


@dataclass(frozen=True, slots=True)
class Material:
    """Material options: flags and standard input."""

    spec: str | None = None
    decisions: tuple[str, ...] = ()
    base: str | None = None
    stdin: str | None = None
    match: bool = True
    redact: bool = False
    skip_secrets: bool = False
    selection: Selection | None = None  # files already selected, instead of targets in the words
    targets: tuple[str, ...] = ()  # paths in the folder, instead of targets in the words
    earlier: tuple[tuple[str, str], ...] = ()  # name and text of the earlier turns, newest first
    left_out: tuple[Skipped, ...] = ()  # earlier turns that are not sent
    attachments: tuple[tuple[str, str | bytes], ...] = ()  # name of each attached file, and its text or its bytes
    look: bool | None = False  # whether seats may read the project first; None: if the question names it
    names_files: bool = True  # whether words of the question may name files; if not, nothing of the folder is read
    folder: Path | None = None  # of the files, if it is not that of the run; nothing in it is trusted


def read_request(
    words: Sequence[str],
    flags: Mapping[str, Any],
    material: Material,
    *,
    protocol: str | None,
    verbose: bool,
    folder: Path,
    known: Collection[str],
    can_search: Callable[[], bool],
) -> tuple[Intent, Material]:
    """Return the intent of words, flags and piped text, and the material with what was inferred."""
    if material.stdin is not None:
        piped = decode_stdin(material.stdin)
        words, stdin = place_piped_text(words, piped, flags, protocol=protocol, known=known)
        material = replace(material, stdin=None if stdin is None else material.stdin)
    words = [repair_surrogates(word) for word in words]
    inferred, given = Inferred.TARGET if words else Inferred.TASK, material.selection
    if material.names_files and all(word in TASK_VERBS for word in words):
        words, material = _infer_changes(words, material, folder)
    intent = parse_intent(
        words,
        flags,
        protocol=protocol,
        verbose=verbose,
        folder=folder,
        known=known,
        piped=material.stdin is not None or bool(material.attachments),
        names_files=material.names_files,
        can_search=can_search,
    )
    is_one_word = len(" ".join(words).split()) == 1
    is_verb_only = is_one_word and intent.target is None and intent.chosen_by == ChosenBy.VERB  # `council review`
    if is_verb_only and replace(material, look=False) == Material():
        _, material = _infer_changes([intent.task], material, folder)
        intent = replace(intent, question=material.selection.target if material.selection else intent.question)
    if material.selection:
        state = "has changes" if material.selection.target == WORK_TREE_LABEL else "is clean"
        why = f"nothing was named, and the work tree {state}"
        intent = replace(intent, why=why, target=material.selection.target)
    if material.selection is not given:
        intent = replace(intent, inferred=inferred)
    if intent.question == "-":
        intent = replace(intent, question=STDIN_LABEL)
    if material.targets:
        intent = replace(intent, target=" ".join(map(repair_surrogates, material.targets)))
    return intent, material


def _infer_changes(words: list[str], material: Material, folder: Path) -> tuple[list[str], Material]:
    """Use the changes in the work tree, or for a verb on a clean tree `recent`; else raise UsageError."""
    if material.base is not None or material.stdin is not None:
        return [*(words or ["validate"]), "what changed"], material
    if material.attachments:
        if not words:
            raise UsageError("no question was given for the attachments: add one", field="question")
        return [*words, "the attached files"], material
    if has_changes(folder):
        selection = replace(select_work_tree(folder), target=WORK_TREE_LABEL)
    elif words and (repo := find_repo(folder)):
        selection = replace(select_recent(repo), target=RECENT_LABEL)
    else:
        ask = 'ask with council "your question", set up your models with council init, or see council --help'
        fix = wording(python=ask, cli=ask, http="add a question")
        raise UsageError(f"no question was given and the work tree has no changes: {fix}", field="question")
    return [*(words or ["validate"]), selection.target], replace(material, selection=selection)


CHEAP_WITHOUT_EFFECT = "--cheap has no effect: -m names the member of every seat"
FAST_FOR_CAP = (
    "fast models fill the seats, because the cap of {cap} does not cover the usual ones, which need at least {needed}"
)
CHEAP_IN_USE = "--cheap: seats that no other flag sets use fast models"


async def make_plan(
    intent: Intent,
    where: PanelContext,
    member: Callable[[str], Member],
    material: Material | None = None,
    *,
    price: PriceLookup = lambda name: None,
    window: Callable[[str], int | None] = lambda name: None,
    on_seated: Callable[[Iterable[str]], None] | None = None,
    cap: Cap | None = None,
    response_format: ResponseFormat | None = None,
) -> Plan:
    """Make the plan of an intent, within a cap. `on_seated` gets the members asked first, if nothing is refused."""
    protocol = protocols.get_protocol(intent.protocol)
    all_settings = where.settings
    settings = exclude_vendors(all_settings, where.env)
    where = replace(where, settings=settings)
    material = material or Material()
    question = Question(intent.question, intent.task, intent.target, intent.domain)
    chosen = parse_options(protocol.name, intent.task, intent.options, protocol.load_options())
    equal_work_price = partial(find_equal_work_price, price)
    panel = load_panel(protocol, question, chosen, replace(where, equal_work_price=equal_work_price))
    _check_seat_count(protocol, panel, settings)
    require_members(settings, all_settings, where.env, len(panel.seats))
    roster, seating = _seat_roster(protocol, panel, where)
    roster = add_fallback_vendors(exclude_from_roster(roster, settings), settings)
    roster = _mark_small_seats(roster, member)
    options = _fill_options(chosen, panel, roster, equal_work_price)
    seat_warnings = _check_seat_flags(protocol, roster, settings)
    look = _plan_lookups(protocol, roster, question, material.folder or where.folder, material)
    check = _plan_check(protocol, settings)

    tokens = _limit_packet(settings.packet_tokens, question, roster, window)
    packet = await _build_packet(question, roster, where, material, tokens)
    attachments = list_attachments(packet.attachments, roster, member) if packet.attachments else ()
    require_sight(attachments, roster)
    if on_seated and not (packet.refusal or panel.refusal):
        on_seated(seat.member for seat in roster.seats)

    timeouts = settings.phase_timeouts()
    given = RehearsalInput(
        protocol,
        roster,
        question,
        dict(options),
        packet,
        timeouts,
        look is not None,
        check,
        response_format=response_format,
    )

    async def rehearse(word_share: float = 1.0) -> Rehearsal:
        return await rehearse_paths(replace(given, word_share=word_share), settings.effort, member)

    rehearsal = await rehearse()
    spending, shortfall, fit_notice = NO_SPENDING_PLAN, None, ""
    if cap is not None:
        model = CostModel(roster, estimate_tokens(question.text), price, member)
        fit = await fit_to_cap(model, rehearse, cap, may_be_lowest=has_chosen_members(all_settings))
        if isinstance(fit, Shortfall):
            shortfall = fit
        else:
            spending = fit
            full_calls = rehearsal.longest
            rehearsal = await rehearse(spending.limits.words)
            fit_notice = describe_fit(model, spending, rehearsal.longest, full_calls, cap)
    cache_points = find_cache_points(
        rehearsal.longer,
        estimate_tokens(question.text),
        find_rules(member),
        warm_start=settings.warm_start,
    )
    cost = estimate_cost(
        rehearsal.shorter,
        rehearsal.longer,
        rehearsal.longest,
        question.text,
        price,
        member,
        hedge=settings.hedge,
        cache_points=cache_points,
    )
    if cost and cap is not None and shortfall is None:
        cost["worst"] = min(cost["worst"], cap.left)
    warm_starts = find_warm_starts(rehearsal.phases, rehearsal.longer, cache_points) if settings.warm_start else ()

    is_one_member_named = len(settings.named_members) == 1  # for every seat, so that --cheap has no effect
    is_cheap = settings.cheap and not is_one_member_named
    warnings = [
        *([word_for(panel.refusal, "cli")] if panel.refusal else []),
        *([CHEAP_WITHOUT_EFFECT] if settings.cheap and is_one_member_named else []),
        *panel.warnings,
        *seat_warnings,
        *_packet_warnings(packet),
        *format_unseen(attachments),
        *([NO_LOOKUPS] if material.look and not look else []),
    ]
    packet_notice = protocol.describe_packet(packet, question.task)
    notices = [*seating.notices, *panel.notices, *packet.remarks, *filter(None, [packet_notice, fit_notice])]
    return Plan(
        protocol=protocol,
        why=intent.why,
        question=question,
        options=options.model_dump(mode="json"),
        roster=roster,
        phases=_add_timeouts(rehearsal, settings),
        calls=rehearsal.calls,
        agents=panel.agents or len(roster.seats),
        verbose=intent.verbose,
        packet=packet,
        warnings=tuple(warnings),
        notices=tuple(notices),
        hints=(*seating.hints, *panel.hints),
        remarks=(*seating.remarks, *([CHEAP_IN_USE] if is_cheap else [])),
        shared_vendors=seating.shared_vendors,
        refusal=panel.refusal,
        effort=cast("Effort | None", settings.effort),
        cost=cost,
        unpriced=tuple(name for name in roster.member_names if price(name) is None),
        prices=list_prices(roster, price),
        cap=settings.budget.get("max_cost"),
        spending=spending,
        shortfall=shortfall,
        given=dict(intent.options),
        timeouts={name: float(settings.member_timeout(name)) for name in roster.member_names},
        inferred=intent.inferred,
        cheap=is_cheap,
        hedge=settings.hedge and any(seat.fallbacks for seat in roster.all_seats),
        warm_starts=warm_starts,
        cache_points=cache_points,
        lines=seating.lines,
        trusted=tuple(settings.trusted.destinations) if settings.trusted else (),
        look=look,
        redact_lookups=material.redact,
        look_folder=str(material.folder or ""),
        check=check,
        response_format=response_format,
        excluded_vendors=settings.excluded_vendors,
        attachments=attachments,
    )


def _fill_options(
    given: BaseModel, panel: Panel, roster: Roster, equal_work_price: Callable[[str], float | None]
) -> BaseModel:
    """Return the options with the prices that the protocol reads, and with those that its panel sets."""
    prices = {name: usd for name in roster.member_names if (usd := equal_work_price(name)) is not None}
    filled = dict.fromkeys(list_filled_options(type(given), "prices"), prices)
    return given.model_copy(update={**filled, **panel.options})


def has_chosen_members(settings: Settings) -> bool:
    """Return whether the user has chosen members, so that others must not take their place to fit a cap."""
    seats = [setting.model for setting in (*settings.seats.values(), settings.chair)]
    return bool(settings.named_members or settings.cheap or settings.models or any(seats))


async def plan_within_cap(intent: Intent, where: PanelContext, make: MakePlan) -> Plan:
    """Make a plan. If the cap does not cover members that the user did not choose, plan with the fast models."""
    plan = await make(intent, where=where)
    if plan.shortfall is None or not plan.shortfall.cap.may_shorten or has_chosen_members(where.settings):
        return plan
    fast = replace(where, settings=replace(where.settings, cheap=True))
    try:
        cheaper = await make(intent, where=fast)
    except UsageError:  # there are no fast models
        return plan
    if cheaper.shortfall:  # what the run needs is what it needs with the fast models
        return replace(plan, shortfall=cheaper.shortfall)
    line = FAST_FOR_CAP.format(cap=format_usd(plan.shortfall.cap.left), needed=format_usd(plan.shortfall.needed))
    return replace(cheaper, notices=(*cheaper.notices, line))


async def find_alternatives(intent: Intent, plan: Plan, make: MakePlan, where: PanelContext) -> tuple[Alternative, ...]:
    """Return councils that fit the cap of a plan: with fast models, and by other protocols, the most thorough first."""
    can_be_cheap = not where.settings.cheap and not where.settings.named_members
    fast = replace(where, settings=replace(where.settings, cheap=True))
    same = await _try_councils([(intent, fast)], make) if can_be_cheap else []
    names = [
        name
        for name in protocols.SHIPPED_PROTOCOLS
        if name != plan.protocol.name and plan.question.task in protocols.get_protocol(name).tasks
    ]
    others = [(replace(intent, protocol=name, options={}), where) for name in names]
    found = await _try_councils(others, make)
    if not found and can_be_cheap:
        found = await _try_councils([(other, fast) for other, _ in others], make)
    ordered = sorted(found, key=lambda one: -one.usd)
    return tuple([*(replace(one, protocol=None) for one in same), *ordered][:MAX_ALTERNATIVES])


async def _try_councils(councils: Sequence[tuple[Intent, PanelContext]], make: MakePlan) -> list[Alternative]:
    """Return those of the councils that fit the cap and can be run."""
    found = []
    for intent, where in councils:
        try:
            plan = await make(intent, where=where)
            plan.check_runnable()
        except CouncilError:  # no members, no search, or a cap that is too low for it
            continue
        if plan.cost:
            found.append(Alternative(plan.protocol.name, where.settings.cheap, plan.cost["expected"]))
    return found


async def rehearse_paths(given: RehearsalInput, effort: str | None, member: Callable[[str], Member]) -> Rehearsal:
    """Rehearse with an effort and with the tokens of the attachments."""
    rehearsal = await rehearse_both_ways(given)

    def complete(calls: Sequence[RehearsedCall]) -> list[RehearsedCall]:
        completed = [with_effort(call, effort) for call in calls]
        return [with_attachments(call, member) for call in completed] if given.packet.attachments else completed

    shorter, longer, longest = map(complete, (rehearsal.shorter, rehearsal.longer, rehearsal.longest))
    return rehearsal._replace(shorter=shorter, longer=longer, longest=longest)


def asks_short_fact(intent: Intent, plan: Plan) -> bool:
    """Return whether the words choose nothing else and ask for one short fact, without material."""
    is_plain = intent.chosen_by is ChosenBy.DEFAULT and intent.task == "ask" and plan.packet.empty
    return is_plain and is_short_fact(intent.question)


def hint_one_model(intent: Intent, plan: Plan) -> list[str]:
    """Return one line if a question with one short factual answer would be asked of more than one model."""
    if plan.calls[1] <= 1 or not asks_short_fact(intent, plan):
        return []
    return [f"one model is enough for a short fact: council --protocol quick {shlex.quote(intent.question)}"]


def find_equal_work_price(price: PriceLookup, member: str) -> float | None:
    """Return what equal work costs with a member, 0 if it is free; None if its price is unknown."""
    rates = price(member)
    return None if rates is None else equal_work_cost(rates)


def list_prices(roster: Roster, price: PriceLookup) -> dict[str, float]:
    """Return what equal work costs with each member that has a price."""
    costs = {name: equal_work_cost(price(name)) for name in roster.member_names}
    return {name: usd for name, usd in costs.items() if usd}


def _plan_lookups(
    protocol: Protocol, roster: Roster, question: Question, folder: Path, material: Material
) -> PlanLook | None:
    """Return the limits of the look-ups and the seats that may make them; None if none is made."""
    if material.look is False:
        return None
    from council.protocols.common.lookups import MAX_HOPS, MAX_LOOKUPS, can_look  # only with --look

    if not protocol.allows_look and material.look:
        raise UsageError(
            f"the protocol {protocol.name} does not allow {option('look', True)}, because its seats answer blind: "
            "drop it, or choose another protocol"
        )
    seats = [seat.name for seat in roster.seats if can_look(seat)] if protocol.allows_look else []
    if not seats or not (material.look or names_project(question.text, folder)):
        return None
    return {"hops": MAX_HOPS, "lookups": MAX_LOOKUPS, "seats": seats}


def _plan_check(protocol: Protocol, settings: Settings) -> bool:
    """Return whether the answer is checked. Raise UsageError if a flag asks for it and the protocol cannot."""
    if protocol.allows_check or not settings.check:
        return settings.check
    if settings.is_set_by_flag("check", CHECK_FLAG) and not protocol.checks_answer:
        raise UsageError(
            f"the protocol {protocol.name} has no answer that other seats can check: drop {option('check', True)}, "
            "or choose another protocol"
        )
    return False


def _add_timeouts(rehearsal: Rehearsal, settings: Settings) -> tuple[PlanPhase, ...]:
    """Return the phases with the timeouts of those that have their own."""

    def extend(seconds: float, name: str) -> float:
        return extend_timeout(seconds, thinks=settings.is_thinking(name))

    timeouts = find_phase_timeouts(rehearsal.longer, extend)
    phases: list[PlanPhase] = []
    for phase in rehearsal.phases:
        seconds = timeouts.get(phase["name"])
        phases.append(phase if seconds is None else {**phase, "timeout": float(seconds)})
    return tuple(phases)


def _check_seat_count(protocol: Protocol, panel: Panel, settings: Settings) -> None:
    """Raise UsageError if the protocol cannot have as many seats as `--seats` says."""
    if settings.seat_count not in (None, len(panel.seats)):
        raise UsageError(
            f"{option('seat_count', settings.seat_count)}: the protocol {protocol.name} has "
            f"{format_count(len(panel.seats), 'seat')} here: drop it, or choose another protocol"
        )


def _check_seat_flags(protocol: Protocol, roster: Roster, settings: Settings) -> list[str]:
    """Warn about --seat names that this protocol lacks; refuse names that no protocol has, or next to -m."""
    names = [seat.name for seat in roster.seats]
    shared = DEFAULT_SEATS[: len(names)] if protocol.spread else ()  # the seats of other names use their members
    set_here = [seat for seat in settings.seats if settings.is_set_by_flag(f"seats.{seat}.model", SEAT_FLAG)]
    helpers = [seat.name for seat in roster.helpers if seat.name in settings.seats]
    strangers = [seat for seat in set_here if seat not in (*names, *shared, *helpers)]
    known = ", ".join([*names, *(["chair"] if roster.chair else [])])
    for seat in strangers:
        if seat in ADDED_SEATS or len(settings.named_members) > 1:
            more = f"; name {ADDED_SEATS.index(seat) + 4} members for it" if seat in ADDED_SEATS else ""
            raise UsageError(
                f'{option("seats")} sets "{seat}", but the seats of this council are {known}{more}', field="seats"
            )
        if seat not in protocols.fixed_seat_names():
            raise UsageError(
                f'{option("seats")} sets "{seat}", but no protocol has such a seat: the seats of this one are {known}',
                field="seats",
            )
    return [f"--seat {seat} has no effect: this council has no such seat" for seat in strangers]


def load_panel(protocol: Protocol, question: Question, options: BaseModel, where: PanelContext) -> Panel:
    """Return the seats of a protocol, as many as `-m` names members if it can have other sizes."""
    if not protocol.panel:
        is_resized = protocol.resizable and (where.settings.named_members or where.settings.seat_count)
        seats = resize_seats(protocol.seats, where.settings) if is_resized else protocol.seats
        return Panel(seats, protocol.chair)
    panel: Panel = load_reference(protocol.panel)(question.task, options, replace(where, question=question))
    return panel


def _limit_packet(tokens: int, question: Question, roster: Roster, window: Callable[[str], int | None]) -> int:
    """Return the budget of a review: at most a third of the smallest known context window."""
    if question.task == "ask":
        return tokens
    windows = [size for name in roster.member_names if (size := window(name))]
    return min([tokens, *(size // 3 for size in windows)])


async def _build_packet(
    question: Question, roster: Roster, where: PanelContext, material: Material, tokens: int
) -> Packet:
    """Build the packet, truncated if a member is small; each cut is reported. Files are read in another thread."""
    everyone = (*roster.seats, *([roster.chair] if roster.chair else []))
    fit = SMALL_PACKET_TOKENS if any(seat.small for seat in everyone) else None
    build_it = partial(
        build,
        material.selection or material.targets or question.target or question.text
        if material.names_files
        else Selection(),
        material.folder or where.folder,
        task=question.task,
        spec=material.spec,
        decisions=material.decisions,
        base=material.base,
        stdin=material.stdin,
        match=material.match,
        redact=material.redact,
        skip_secrets=material.skip_secrets,
        fit=fit,
        full_text=question.text,
        earlier=material.earlier,
        left_out=material.left_out,
        attachments=material.attachments,
        tokens=tokens,
        trust=None if material.folder else TrustSource(where.env, where.settings.trust_flags),
    )
    is_bare = question.task == "ask" and not question.target and material == Material(match=material.match)
    is_short = len(question.text) < MAX_PLAIN_CHARS and not POSSIBLE_GLOB.search(question.text)
    return build_it() if is_bare and is_short else await asyncio.to_thread(build_it)


def _packet_warnings(packet: Packet) -> list[str]:
    matched = [f"used as target: {match}" for match in packet.matched]
    masked = [f"{packet.masked} secrets masked"] if packet.masked else []
    empty = packet.refusal or packet.note if packet.empty else ""
    return [*matched, *masked, *([empty] if empty else [])]


def _seat_roster(protocol: Protocol, panel: Panel, where: PanelContext) -> tuple[Roster, Seating]:
    names = [seat.name for seat in panel.seats]
    if (count := len(where.settings.named_members)) > len(names):
        raise UsageError(
            f"{option('models')} names {count} members, but this council has {format_count(len(names), 'seat')} "
            f"({', '.join(names)}): drop {count - len(names)}",
            field="models",
        )
    seating = seat_council(
        names,
        where.settings,
        where.env,
        spread=protocol.spread,
        members=panel.members,
        shared_member=panel.default_member,
        chair=panel.chair_setting,
        chair_apart=protocol.chair_apart,
    )
    taken = tuple(_assign_place(seat, place) for seat, place in zip(panel.seats, seating.seats, strict=True))
    chair = _assign_place(panel.chair, seating.chair) if panel.chair else None
    return Roster(taken, chair, panel.helpers), seating


def _assign_place(seat: Seat, place: SeatAssignment) -> Seat:
    return replace(seat, member=place.member, vendor=place.vendor, fallbacks=place.fallbacks)


def _mark_small_seats(roster: Roster, member: Callable[[str], Member]) -> Roster:
    def mark_small(seat: Seat) -> Seat:
        small = member(seat.member).small
        return seat if small == seat.small else replace(seat, small=small)

    return roster.map_seats(mark_small)


def preview_packet(plan: Plan) -> Dossier:
    """Return the packet exactly as the first seat gets it; for other seats only the perspective differs."""
    schema = plan.protocol.load_output_schema(plan.question.task)
    return build_dossier(plan.packet, plan.question, plan.roster.seats[0], schema)
