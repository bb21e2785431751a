"""Plans: the options, seats, packet, calls and cost of an intent, before it is run."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from council import protocols
from council.calling.budget import FULL_OUTPUT, NO_SPENDING_PLAN, SpendingPlan
from council.engine.layout import format_count
from council.engine.prompting import build_dossier
from council.errors import SearchNotEnabled, UsageError, option, word_for, wording
from council.events import dump_fields
from council.members.base import Member, list_unseen
from council.money import equal_work_cost, format_usd
from council.packet import build
from council.packet.changes import Selection, select_recent, select_work_tree
from council.packet.gate import decode_stdin
from council.packet.git import find_repo
from council.packet.targets import has_changes
from council.planning.cap_fit import Cap, CostModel, Shortfall, describe_fit, fit_to_cap
from council.planning.estimate import PriceLookup, RehearsedCall, estimate_cost, with_attachments, with_effort
from council.planning.exclusion import exclude_from_roster, exclude_vendors, require_members
from council.planning.facts import is_short_fact
from council.planning.intent import ChosenBy, Inferred, Intent, parse_intent, place_piped_text
from council.planning.prompt_cache import CachePoints, find_cache_points, find_rules
from council.planning.rehearsal import find_phase_timeouts, find_warm_starts, rehearse_both_ways
from council.planning.seating import SeatAssignment, Seating, add_fallback_vendors, seat_council
from council.planning.triggers import names_project
from council.protocols import Protocol, load_reference
from council.protocols.options import list_filled_options, parse_options
from council.protocols.seats import Panel, PanelContext, resize_seats
from council.settings import CHECK_FLAG, SEAT_FLAG, Settings, extend_timeout
from council.settings.member_lookup import ADDED_SEATS, DEFAULT_SEATS
from council.settings.schema import NO_ATTACHMENTS
from council.types import (
    Attachment,
    Json,
    Packet,
    PacketFile,
    Question,
    Roster,
    Seat,
    Skipped,
    estimate_tokens,
    repair_surrogates,
)

TASK_VERBS = ("validate", "brainstorm", "research")
WORK_TREE_LABEL = "the changes in the work tree"
RECENT_LABEL = "recent"
STDIN_LABEL = "the text from standard input"
SMALL_PACKET_TOKENS = 1500  # tokens of material for small members
MAX_PLAIN_CHARS = 4000  # of a question that names no file and is checked without another thread
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
    phases: tuple[Json, ...]
    calls: tuple[int, int]
    agents: int
    verbose: bool = False
    packet: Packet = field(default_factory=Packet)
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()  # shown above the answer in the report
    hints: tuple[str, ...] = ()  # shown at a terminal once a day; some are also notices
    remarks: tuple[str, ...] = ()  # shown at a terminal with -v; some are also notices
    shared_vendors: tuple[str, ...] = ()  # notices that a fork with other members replaces
    refusal: str = ""  # why the plan can be shown but not run
    effort: str | None = None  # reasoning effort of members that support it
    cost: Json | None = None  # low, expected and worst, in dollars; None if a price is unknown
    unpriced: tuple[str, ...] = ()  # members without a price
    prices: Mapping[str, float] = field(default_factory=dict)  # member → cost of equal work, if it has a price
    cap: float | None = None  # maximum cost in dollars
    spending: SpendingPlan = NO_SPENDING_PLAN  # what the requests may cost at most, and their output limits
    shortfall: Shortfall | None = None  # why the plan does not fit its cap
    given: Json = field(default_factory=dict)  # the options as the user set them, for follow-up runs
    continues: str = ""  # the run whose question and answer are in the packet
    conversation: Json = field(default_factory=dict)  # the earlier turns in the packet, by form
    timeouts: Mapping[str, float] = field(default_factory=dict)  # member → seconds in a phase
    inferred: Inferred = Inferred.NOTHING  # what the user did not name
    cheap: bool = False  # fast models fill the seats that were not assigned by hand
    hedge: bool = False  # a fallback is asked too when a member is slow
    warm_starts: tuple[Json, ...] = ()  # members that one seat asks first, because their vendor caches the prefix
    cache_points: CachePoints = field(default_factory=dict)  # of each step, where a vendor is told to cache its request
    lines: tuple[Json, ...] = ()  # lines of the members, such as opus, with the names they have today
    trusted: tuple[str, ...] = ()  # what the trusted settings of the project send, read and write where
    look: Json = field(
        default_factory=dict
    )  # limits of the look-ups before the first answers, and the seats that make them
    redact_lookups: bool = False
    check: bool = False  # the answer is checked by two other seats and corrected
    excluded_vendors: tuple[str, ...] = ()  # by `--exclude-family`
    batch: Json = field(default_factory=dict)  # of a row of a batch: the batch, the row and the id of its run
    attachments: tuple[Json, ...] = ()  # images and PDFs, each with the seats and members that cannot see it

    def check_runnable(self) -> None:
        """Raise if the plan cannot be run, before any request is sent."""
        self.protocol.load()
        if self.packet.refusal:
            raise UsageError(f"{self.packet.refusal}. No call was made.")
        if self.refusal:
            raise SearchNotEnabled(self.refusal)
        if self.shortfall:
            self.shortfall.raise_error()

    def as_json(self) -> Json:
        """Return the object `council.plan/1`."""
        return {
            "schema": "council.plan/1",
            "task": self.question.task,
            "protocol": self.protocol.name,
            "why": self.why,
            "question": self.question.text,
            "target": self.question.target,
            "options": self.options,
            "seats": [seat_json(seat, self.timeouts.__getitem__) for seat in self.roster.seats],
            "chair": seat_json(self.roster.chair, self.timeouts.__getitem__) if self.roster.chair else None,
            "phases": list(self.phases),
            "calls": {"min": self.calls[0], "max": self.calls[1]},
            "agents": self.agents,
            "packet": self.packet.as_json(),
            "cost": self.cost,
            "warnings": list(dict.fromkeys([*self.notices, *self.warnings, *self.hints, *self.remarks])),
            "notices": list(self.notices),
            "cap": self.cap,
            "unpriced": list(self.unpriced),
            **({"hints": list(self.hints)} if self.hints else {}),
            **({"remarks": list(self.remarks)} if self.remarks else {}),
            **({"effort": self.effort} if self.effort else {}),
            **({"cheap": True} if self.cheap else {}),
            **({"continues": self.continues} if self.continues else {}),
            **({"conversation": self.conversation} if self.conversation else {}),
            **({"trusted": list(self.trusted)} if self.trusted else {}),
            **({"lines": list(self.lines)} if self.lines else {}),
            **({"hedge": True} if self.hedge else {}),
            **({"warm_start": list(self.warm_starts)} if self.warm_starts else {}),
            **({"look": self.look} if self.look else {}),
            **({"check": True} if self.check else {}),
            **({"prices": dict(self.prices)} if self.prices else {}),
            **({"attachments": list(self.attachments)} if self.attachments else {}),
            **({"limits": self.spending.limits.as_json()} if self.spending.limits != FULL_OUTPUT else {}),
            **({"exclude_family": list(self.excluded_vendors)} if self.excluded_vendors else {}),
            **(
                {"helpers": [seat_json(seat, self.timeouts.__getitem__) for seat in self.roster.helpers]}
                if self.roster.helpers
                else {}
            ),
        }

    def setup(self) -> Json:
        """Return the setup that another process needs to resume the run."""
        chair, helpers = self.roster.chair, self.roster.helpers
        roster = {
            "seats": tuple(map(dump_fields, self.roster.seats)),
            "chair": dump_fields(chair) if chair else None,
            "helpers": tuple(map(dump_fields, helpers)),
        }
        lists = {
            name: tuple(map(dump_fields, getattr(self.packet, name))) for name in ("files", "skipped", "attachments")
        }
        return {
            "protocol": self.protocol.name,
            "question": dump_fields(self.question),
            "options": self.options,
            "roster": roster,
            "verbose": self.verbose,
            "packet": dump_fields(self.packet) | lists,
            "effort": self.effort,
            "given": self.given,
            "shared_vendors": list(self.shared_vendors),
            **({"spending": self.spending.as_json()} if self.spending.phases else {}),
            **({"batch": self.batch} if self.batch else {}),
            **({"look": "redact" if self.redact_lookups else "refuse"} if self.look else {}),
            **({"check": True} if self.check else {}),
            **({"cache_points": self.cache_points} if self.cache_points else {}),
        }


def seat_json(seat: Seat, timeout: Callable[[str], float]) -> Json:
    """Return the seat. `total_timeout` adds the seconds of its fallbacks, because each has its own time."""
    seconds = [float(timeout(name)) for name in (seat.member, *seat.fallbacks)]
    return {
        "name": seat.name,
        "role": seat.role or None,
        "perspective": seat.perspective or None,
        "model": seat.member,
        "vendor": seat.vendor,
        "fallbacks": list(seat.fallbacks),
        "timeout": seconds[0],
        "total_timeout": sum(seconds),
        **({"fallback_vendors": dict(seat.fallback_vendors)} if seat.fallback_vendors else {}),
    }


def question_from(setup: Json) -> Question:
    return Question(**setup["question"])


def roster_from(setup: Json) -> Roster:
    seats, chair, helpers = (setup["roster"][part] for part in ("seats", "chair", "helpers"))
    return Roster(tuple(map(_load_seat, seats)), _load_seat(chair) if chair else None, tuple(map(_load_seat, helpers)))


def packet_from(setup: Json) -> Packet:
    """Return the packet as it was sent; a resumed run does not read files again."""
    kept = setup["packet"]
    files = tuple(_load_file(file) for file in kept["files"])
    skipped = tuple(Skipped(**item) for item in kept["skipped"])
    lists = {name: tuple(kept.get(name, ())) for name in ("prior_decisions", "matched", "remarks", "commits")}
    attachments = tuple(Attachment(**one) for one in found) if (found := kept.get("attachments")) else ()
    return Packet(**{**kept, **lists, "files": files, "skipped": skipped, "attachments": attachments})


def _load_file(value: Json) -> PacketFile:
    return PacketFile(**{**value, "ranges": tuple((first, last) for first, last in value.get("ranges", ()))})


def _load_seat(value: Json) -> Seat:
    """Return a stored seat, ignoring the fields of older versions."""
    known = {name: value[name] for name in Seat.__dataclass_fields__ if name in value}
    vendors = tuple((member, vendor) for member, vendor in value.get("fallback_vendors", ()))
    return Seat(**{**known, "fallbacks": tuple(value["fallbacks"]), "fallback_vendors": vendors})


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
        found = (
            "the work tree has changes" if material.selection.target == WORK_TREE_LABEL else "the work tree is clean"
        )
        intent = replace(intent, why=f"nothing was named, and {found}", target=material.selection.target)
    if material.selection is not given:
        intent = replace(intent, inferred=inferred)
    if intent.question == "-":
        intent = replace(intent, question=STDIN_LABEL)
    if material.targets:
        intent = replace(intent, target=" ".join(map(repair_surrogates, material.targets)))
    return intent, material


def _infer_changes(words: list[str], material: Material, folder: Path) -> tuple[list[str], Material]:
    """Use the changes in the work tree as the material. On a clean tree a verb takes `recent`; else raise UsageError."""
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


CHEAP_WITHOUT_EFFECT = ("--cheap has no effect: -m names the member of every seat",)
FAST_FOR_CAP = (
    "fast models fill the seats, because the cap of {cap} does not cover the usual ones, which need at least {needed}"
)
CHEAP_IN_USE = ("--cheap: seats that no other flag sets use fast models",)


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
) -> Plan:
    """Make the plan of an intent, within a cap. `on_seated` gets the members that are asked first, as soon as nothing refuses the packet."""
    protocol = protocols.get_protocol(intent.protocol)
    whole, where = where.settings, replace(where, settings=exclude_vendors(where.settings, where.env))
    question = Question(intent.question, intent.task, intent.target, intent.domain)
    given = parse_options(protocol.name, intent.task, intent.options, protocol.load_options())
    equal_work_price = partial(find_equal_work_price, price)
    panel = load_panel(protocol, question, given, replace(where, equal_work_price=equal_work_price))
    _check_seat_count(protocol, panel, where.settings)
    require_members(where.settings, whole, where.env, len(panel.seats))
    roster, seating = _seat_roster(protocol, panel, where)
    roster = add_fallback_vendors(exclude_from_roster(roster, where.settings), where.settings)
    prices = list_prices(roster, price)
    known = {name: usd for name in roster.member_names if (usd := equal_work_price(name)) is not None}
    filled = dict.fromkeys(list_filled_options(type(given), "prices"), known)
    options = given.model_copy(update={**filled, **panel.options})
    strangers = _check_seat_flags(protocol, roster, where.settings)
    roster = _mark_small_seats(roster, member)
    material = material or Material()
    look = _plan_lookups(protocol, roster, question, where.folder, material) if material.look is not False else {}
    check = _plan_check(protocol, where.settings)
    tokens = _limit_packet(where.settings.packet_tokens, question, roster, window)
    packet = await _build_packet(question, roster, where.folder, material, tokens)
    attached: tuple[Json, ...] = ()
    if packet.attachments:
        attached = list_attachments(packet.attachments, roster, member)
        require_sight(attached, roster)
    if on_seated and not (packet.refusal or panel.refusal):
        on_seated(seat.member for seat in roster.seats)
    rehearse_here = partial(
        rehearse_paths,
        protocol,
        roster,
        question,
        dict(options),
        packet,
        where.settings,
        member,
        look=bool(look),
        check=check,
    )
    phases, calls, shorter, longer, longest = await rehearse_here()
    model = CostModel(roster, estimate_tokens(question.text), price, member)
    spending, shortfall, fitted = NO_SPENDING_PLAN, None, ""
    if cap is not None:
        full_calls = longest
        fit = await fit_to_cap(model, rehearse_here, cap, may_be_lowest=has_chosen_members(whole))
        if isinstance(fit, Shortfall):
            shortfall = fit
        else:
            spending = fit
            phases, calls, shorter, longer, longest = await rehearse_here(spending.limits.words)
            fitted = describe_fit(model, spending, longest, full_calls, cap)
    points = find_cache_points(
        [call.as_cached() for call in longer],
        estimate_tokens(question.text),
        find_rules(member),
        warm_start=where.settings.warm_start,
    )
    cost = estimate_cost(
        shorter, longer, longest, question.text, price, member, hedge=where.settings.hedge, cache_points=points
    )
    if cost and cap is not None and shortfall is None:
        cost["worst"] = min(cost["worst"], cap.left)
    return Plan(
        protocol,
        intent.why,
        question,
        options.model_dump(mode="json"),
        roster,
        _add_timeouts(phases, longer, where.settings),
        calls,
        panel.agents or len(roster.seats),
        intent.verbose,
        packet,
        refusal=panel.refusal,
        effort=where.settings.effort,
        given=dict(intent.options),
        cost=cost,
        cap=where.settings.budget.get("max_cost"),
        spending=spending,
        shortfall=shortfall,
        cheap=where.settings.cheap and len(where.settings.named_members) != 1,
        unpriced=tuple(name for name in roster.member_names if price(name) is None),
        prices=prices,
        trusted=tuple(where.settings.trusted.destinations) if where.settings.trusted else (),
        warnings=(
            *([word_for(panel.refusal, "cli")] if panel.refusal else []),
            *(CHEAP_WITHOUT_EFFECT if where.settings.cheap and len(where.settings.named_members) == 1 else ()),
            *panel.warnings,
            *strangers,
            *_packet_warnings(packet),
            *(format_unseen(attached) if attached else ()),
            *([NO_LOOKUPS] if material.look and not look else []),
        ),
        notices=(
            *seating.notices,
            *panel.notices,
            *packet.remarks,
            *filter(None, [protocol.describe_packet(packet, question.task), fitted]),
        ),
        hints=(*seating.hints, *panel.hints),
        remarks=(
            *seating.remarks,
            *(CHEAP_IN_USE if where.settings.cheap and len(where.settings.named_members) != 1 else ()),
        ),
        shared_vendors=seating.shared_vendors,
        lines=seating.lines,
        timeouts={name: float(where.settings.member_timeout(name)) for name in roster.member_names},
        inferred=intent.inferred,
        hedge=where.settings.hedge and any(seat.fallbacks for seat in roster.all_seats),
        warm_starts=find_warm_starts(phases, longer, points) if where.settings.warm_start else (),
        cache_points=points,
        attachments=attached,
        look=look,
        redact_lookups=material.redact,
        check=check,
        excluded_vendors=where.settings.excluded_vendors,
    )


def has_chosen_members(settings: Settings) -> bool:
    """Return whether the user has chosen members, so that others must not take their place to fit a cap."""
    seats = [setting.model for setting in (*settings.seats.values(), settings.chair)]
    return bool(settings.named_members or settings.cheap or settings.models or any(seats))


async def plan_within_cap(intent: Intent, where: PanelContext, make: Callable[..., Awaitable[Plan]]) -> Plan:
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


async def rehearse_paths(
    protocol: Protocol,
    roster: Roster,
    question: Question,
    options: Json,
    packet: Packet,
    settings: Settings,
    member: Callable[[str], Member],
    word_share: float = 1.0,
    *,
    look: bool,
    check: bool,
) -> tuple[tuple[Json, ...], tuple[int, int], list[RehearsedCall], list[RehearsedCall], list[RehearsedCall]]:
    """Return the phases, the number of calls, and the calls of the shorter, the longer and the longest path."""
    phases, calls, *ways = await rehearse_both_ways(
        protocol,
        roster,
        question,
        options,
        packet,
        settings.phase_timeouts(),
        look=look,
        check=check,
        word_share=word_share,
    )
    paths = [[with_effort(call, settings.effort) for call in way] for way in ways]
    if packet.attachments:
        paths = [[with_attachments(call, member) for call in path] for path in paths]
    shorter, longer, longest = paths
    return phases, calls, shorter, longer, longest


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
    found = price(member)
    return None if found is None else equal_work_cost(found)


def list_prices(roster: Roster, price: PriceLookup) -> dict[str, float]:
    """Return what equal work costs with each member that has a price."""
    costs = {name: equal_work_cost(price(name)) for name in roster.member_names}
    return {name: usd for name, usd in costs.items() if usd}


def _plan_lookups(protocol: Protocol, roster: Roster, question: Question, folder: Path, material: Material) -> Json:
    """Return the limits of the look-ups and the seats that may make them; empty if none is made."""
    from council.protocols.common.lookups import MAX_HOPS, MAX_LOOKUPS, can_look  # only with --look

    if not protocol.allows_look and material.look:
        raise UsageError(
            f"the protocol {protocol.name} does not allow {option('look', True)}, because its seats answer blind: "
            "drop it, or choose another protocol"
        )
    seats = [seat.name for seat in roster.seats if can_look(seat)] if protocol.allows_look else []
    if not seats or not (material.look or names_project(question.text, folder)):
        return {}
    return {"hops": MAX_HOPS, "lookups": MAX_LOOKUPS, "seats": seats}


def _plan_check(protocol: Protocol, settings: Settings) -> bool:
    """Return whether the answer is checked. Raise UsageError if a flag asks for it and the protocol has no such step."""
    if protocol.allows_check or not settings.check:
        return settings.check
    if settings.is_set_by_flag("check", CHECK_FLAG) and not protocol.checks_answer:
        raise UsageError(
            f"the protocol {protocol.name} has no answer that other seats can check: drop {option('check', True)}, "
            "or choose another protocol"
        )
    return False


# Attachments


def list_attachments(
    attachments: Sequence[Attachment], roster: Roster, member: Callable[[str], Member]
) -> tuple[Json, ...]:
    """Return the receipt of each image and PDF with the seats that cannot see it, and all such members of the roster."""
    unseen = {name: list_unseen(attachments, member(name)) for name in roster.member_names}
    return tuple(
        one.as_json()
        | {
            "has_text": one.has_text,
            "unseen_by": [
                {"seat": seat.name, "model": seat.member} for seat in roster.all_seats if one in unseen[seat.member]
            ],
            "unseen_members": [name for name, hidden in unseen.items() if one in hidden],
        }
        for one in attachments
    )


def require_sight(attached: Sequence[Json], roster: Roster) -> None:
    """Raise UsageError for an attachment that no seat can see in any form."""
    names = {seat.name for seat in roster.seats}
    for row in attached:
        if not row["has_text"] and names <= {one["seat"] for one in row["unseen_by"]}:
            key = "pdf" if row.get("pages") else "images"
            able = [seat.member for seat in roster.seats if seat.member.partition(":")[0] not in NO_ATTACHMENTS]
            setting = f', or set [members."{able[0]}"] {key} = true if it can' if able else ""
            raise UsageError(f'no seat of this council can see "{row["path"]}": use models that can{setting}')


def format_unseen(attached: Iterable[Json]) -> list[str]:
    """Return one line for each seat that cannot see an attachment, in seating order as far as the rows tell it."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in sorted(attached, key=lambda row: -len(row["unseen_by"])):
        for one in row["unseen_by"]:
            what = "sees the text but not the pages of" if row["has_text"] else "cannot see"
            found.setdefault((one["seat"], one["model"]), {}).setdefault(what, []).append(row["path"])
    return [
        f"{seat} ({model}) " + " and ".join(f"{what} {', '.join(paths)}" for what, paths in kinds.items())
        for (seat, model), kinds in found.items()
    ]


def _add_timeouts(phases: Sequence[Json], calls: Iterable[RehearsedCall], settings: Settings) -> tuple[Json, ...]:
    """Return the phases with the timeouts of those that have their own."""
    found = find_phase_timeouts(calls, lambda seconds, name: extend_timeout(seconds, thinks=settings.is_thinking(name)))
    return tuple(
        phase | ({"timeout": float(found[name])} if (name := phase["name"]) in found else {}) for phase in phases
    )


def _check_seat_count(protocol: Protocol, panel: Panel, settings: Settings) -> None:
    """Raise UsageError if the protocol cannot have as many seats as `--seats` says."""
    if settings.seat_count not in (None, len(panel.seats)):
        raise UsageError(
            f"{option('seat_count', settings.seat_count)}: the protocol {protocol.name} has "
            f"{format_count(len(panel.seats), 'seat')} here: drop it, or choose another protocol"
        )


def _check_seat_flags(protocol: Protocol, roster: Roster, settings: Settings) -> list[str]:
    """Warn about --seat names that this protocol lacks. Raise UsageError for names that no protocol has, or if -m set the seats."""
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


async def _build_packet(question: Question, roster: Roster, folder: Path, material: Material, tokens: int) -> Packet:
    """Build the packet, truncated if a member is small; each cut is reported. Files are read in another thread."""
    everyone = (*roster.seats, *([roster.chair] if roster.chair else []))
    fit = SMALL_PACKET_TOKENS if any(seat.small for seat in everyone) else None
    build_it = partial(
        build,
        material.selection or material.targets or question.target or question.text
        if material.names_files
        else Selection(),
        folder,
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
    return _make_seat(seat, place.member, place.vendor, place.fallbacks, seat.small)


@lru_cache(maxsize=256)
def _make_seat(seat: Seat, member: str, vendor: str, fallbacks: tuple[str, ...], small: bool) -> Seat:
    return replace(seat, member=member, vendor=vendor, fallbacks=fallbacks, small=small)


def _mark_small_seats(roster: Roster, member: Callable[[str], Member]) -> Roster:
    def mark_small(seat: Seat) -> Seat:
        small = member(seat.member).small
        return seat if small == seat.small else replace(seat, small=small)

    return Roster(
        tuple(map(mark_small, roster.seats)),
        roster.chair and mark_small(roster.chair),
        tuple(map(mark_small, roster.helpers)),
    )


def preview_packet(plan: Plan) -> Json:
    """Return the packet exactly as the first seat gets it; for other seats only the perspective differs."""
    schema = plan.protocol.load_output_schema(plan.question.task)
    return build_dossier(plan.packet, plan.question, plan.roster.seats[0], schema)
