"""Cost estimate of a plan, before any call. See docs/money.md.

The rehearsal renders every prompt, so the input is counted: one token per three bytes of each prompt, plus the
estimated length of each statement quoted in it. The output is estimated:

    low         the council agrees; every answer has half of its requested words
    expected    it disagrees; every answer has its requested words, and reasoning members think
    worst       it disagrees and takes every optional step, such as a second check; every answer uses its maximum output
                and is retried once at twice that, as the fault table allows, by the most expensive member of its seat

Low and expected include the vendors' prompt caches: what an earlier request of the run has sent to the same member is
read at the rate for cached input, and written at the rate for that where the vendor charges for it
(see the end of this module). Worst has no such saving, because a cache can be empty or gone.

With `--look`, each request after a look-up also has the results: usually LOOKED_TOKENS, at worst as many as a seat may
get.

All at list price.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import NamedTuple

from council.calling.budget import (
    DEFAULT_ANSWER_WORDS,
    TOKENS_PER_WORD,
    estimate_thinking,
    max_answer_tokens,
    max_billed_tokens,
    top_phase,
)
from council.calling.concurrency import shared_prefix
from council.engine.plan_object import CostEstimate
from council.errors import ConfigError
from council.members.base import MAX_CACHE_POINTS, CacheRules, Member, cache_rules, list_unseen
from council.money import FREE, Price, count_attachment_tokens, exact_cost, max_cost
from council.types import Ask, Step, Usage, estimate_tokens

LOOKED_TOKENS = 5_000  # usual results of a seat's look-ups
MAX_LOOKED_TOKENS = 20_000
LOOKED = "look"  # stands for the results among the quoted statements of a call
LOOKED_FENCE = "<<<Files "
RETRY_FACTOR = 2  # a truncated answer is retried with this multiple of its output cap
FENCE = re.compile(r"^<<<.* ([0-9a-f]{12})$", re.MULTILINE)

PriceLookup = Callable[[str], Price | None]
RulesLookup = Callable[[str], CacheRules | None]
CachePoints = dict[str, tuple[int, ...]]  # step key → its points, as in `Ask.cache_points`


class Prefix(NamedTuple):
    """The beginning of a request up to a point at which a vendor may cache it."""

    digest: str  # of its text
    tokens: int  # without the question


class CacheUse(NamedTuple):
    """Input tokens of a request that are read from a cache and written to it."""

    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class RehearsedCall:
    """One request of a rehearsal: its members, input tokens, quoted statements and output cap."""

    key: str  # of the resulting statement
    chain: tuple[str, ...]
    tokens: int  # of the prompt, without the question and the quotes
    quotes: frozenset[str]  # keys of the statements in the prompt
    words: int
    ask: Ask  # without its messages
    timeout: float | None = None  # seconds of each member, if the phase has its own
    shared_tokens: int = 0  # of the text that the prompts of all seats begin with
    form: str = ""  # digest of the schema
    prefixes: tuple[Prefix, ...] = ()  # beginnings that a vendor may cache

    @property
    def seat(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def member(self) -> str:
        """The member that is asked first."""
        return self.chain[0]

    @property
    def cache_form(self) -> str:
        """What the cache of a vendor may depend on besides the text: the schema and the effort."""
        return f"{self.form} {self.ask.effort or ''}"


def build_call(
    step: Step, quoted_keys: Mapping[str, str], question: str, earlier: Sequence[RehearsedCall] = ()
) -> RehearsedCall:
    """Return the call of a step. `quoted_keys` has the key of the statement under each fence mark.

    `earlier` are the calls before it: a continued conversation contains the earlier answers of its seat.
    """
    ask = step.ask
    turns = sum(message["role"] == "assistant" for message in ask.messages)
    own = [call.key for call in earlier if call.seat == ask.key.rpartition("/")[2]]
    prompt = "\n".join(message["content"] for message in ask.messages)
    schema_json = json.dumps(ask.schema) if ask.schema else ""
    schema = estimate_tokens(schema_json)
    return RehearsedCall(
        ask.key,
        step.chain,
        estimate_tokens(prompt) + schema - estimate_tokens(question),
        frozenset(
            [
                *(quoted_keys[mark] for mark in FENCE.findall(prompt) if mark in quoted_keys),
                *([LOOKED] if LOOKED_FENCE in prompt else []),
                *(own[-turns:] if turns else []),
            ]
        ),
        ask.words or DEFAULT_ANSWER_WORDS,
        replace(ask, messages=(), schema=None),
        step.timeout,
        estimate_tokens(shared_prefix(ask)),
        hashlib.sha256(schema_json.encode()).hexdigest() if schema_json else "",
        list_prefixes(ask, question),
    )


def with_effort(call: RehearsedCall, effort: str | None) -> RehearsedCall:
    """Return the call with another effort. The rehearsal does not depend on it."""
    return call if call.ask.effort == effort else replace(call, ask=replace(call.ask, effort=effort))


def with_attachments(call: RehearsedCall, member: Callable[[str], Member]) -> RehearsedCall:
    """Return the call with the tokens of its attachments: the most that a member of its seat is sent."""
    found, members = call.ask.attachments, [member(name) for name in call.chain]
    unseen = [list_unseen(found, asked) for asked in members]
    tokens = [
        sum(count_attachment_tokens(one, asked.vendor) for one in found if one not in hidden)
        for asked, hidden in zip(members, unseen, strict=True)
    ]
    return replace(call, tokens=call.tokens + max(tokens))


def estimate_cost(
    agreeing_calls: Sequence[RehearsedCall],
    disagreeing_calls: Sequence[RehearsedCall],
    longest_calls: Sequence[RehearsedCall],
    question: str,
    price: PriceLookup,
    member: Callable[[str], Member],
    *,
    hedge: bool = False,
    cache_points: CachePoints,
) -> CostEstimate | None:
    """Return the estimated cost in dollars, or None if a price is unknown.

    Low and expected include the vendors' prompt caches. With `hedge`, two members of a seat may be asked, so the worst
    cost is twice that of the most expensive one.
    """
    names = {name for call in (*agreeing_calls, *disagreeing_calls, *longest_calls) for name in call.chain}
    prices = {name: price(name) for name in names}
    known = {name: found for name, found in prices.items() if found is not None}
    if len(known) < len(prices):
        return None
    if all(found == FREE for found in known.values()):
        return {"low": 0.0, "expected": 0.0, "worst": 0.0}
    question_tokens = estimate_tokens(question)
    rules_of = find_rules(member)
    forecast = partial(forecast_cache, points=cache_points, question_tokens=question_tokens, rules_of=rules_of)
    expected = _usual_costs(disagreeing_calls, question_tokens, known, 1.0, forecast)
    seats: dict[str, Decimal] = {}
    phases: dict[str, Decimal] = {}
    for call, phase, cost in zip(disagreeing_calls, list_phases(disagreeing_calls), expected, strict=True):
        seats[call.seat] = seats.get(call.seat, Decimal(0)) + cost
        phases[phase] = phases.get(phase, Decimal(0)) + cost
    return {
        "low": _round_usd(sum(_usual_costs(agreeing_calls, question_tokens, known, 0.5, forecast), Decimal(0))),
        "expected": _round_usd(sum(expected, Decimal(0))),
        "worst": _round_usd(_worst_cost(longest_calls, question_tokens, known, member) * (2 if hedge else 1)),
        "seats": {seat: _round_usd(cost) for seat, cost in seats.items()},
        "phases": {phase: _round_usd(cost) for phase, cost in phases.items()},
    }


def list_phases(calls: Sequence[RehearsedCall]) -> list[str]:
    """Return the name of the phase of each call."""
    seats = {call.seat for call in calls}
    return [strip_seat_names(call.key.rpartition("/")[0], seats) for call in calls]


def strip_seat_names(phase: str, seats: set[str]) -> str:
    """Return the phase name without seat names, look-ups and parts: judge/judge-2/explore becomes judge/explore."""
    first, *rest = phase.split("/")
    return "/".join([first, *(part for part in rest if part not in seats and not part.startswith(("look-", "part-")))])


def _usual_costs(
    calls: Sequence[RehearsedCall],
    question_tokens: int,
    prices: Mapping[str, Price],
    share: float,
    forecast: Callable[[Sequence[RehearsedCall]], Sequence[CacheUse]],
) -> list[Decimal]:
    """Return the cost of each call if the requested member answers at once, with this share of the requested length."""
    answer_tokens = {call.key: _answer_tokens(call, share) for call in calls} | {LOOKED: LOOKED_TOKENS}
    uses = forecast(calls)
    usages = [_estimate_usage(call, answer_tokens, question_tokens, share) for call in calls]
    return [
        exact_cost(replace(usage, cached=use.cached, written=use.written), prices[call.member])
        for call, usage, use in zip(calls, usages, uses, strict=True)
    ]


def _estimate_usage(call: RehearsedCall, answer_tokens: Mapping[str, int], question_tokens: int, share: float) -> Usage:
    thoughts = int(estimate_thinking(call.member, call.ask) * share)
    return Usage(_input_tokens(call, answer_tokens, question_tokens), _answer_tokens(call, share) + thoughts)


def estimate_path_tokens(calls: Sequence[RehearsedCall], question: str) -> Usage:
    """Return the tokens of a path if the requested members answer at once, as for the expected cost."""
    question_tokens = estimate_tokens(question)
    answer_tokens = {call.key: _answer_tokens(call, 1.0) for call in calls} | {LOOKED: LOOKED_TOKENS}
    used = [_estimate_usage(call, answer_tokens, question_tokens, 1.0) for call in calls]
    return Usage(sum(one.input for one in used), sum(one.output for one in used))


def _worst_cost(
    calls: Sequence[RehearsedCall], question_tokens: int, prices: Mapping[str, Price], member: Callable[[str], Member]
) -> Decimal:
    answer_tokens = {call.key: max_answer_tokens(call.ask) for call in calls} | {LOOKED: MAX_LOOKED_TOKENS}

    def cost_with_retry(call: RehearsedCall, name: str) -> Decimal:
        tokens = _input_tokens(call, answer_tokens, question_tokens)
        most = _max_output_tokens(member, name, call.ask)
        return max_cost(tokens, most, prices[name]) + max_cost(tokens, RETRY_FACTOR * most, prices[name])

    return sum((max(cost_with_retry(call, name) for name in call.chain) for call in calls), Decimal(0))


def _input_tokens(call: RehearsedCall, answer_tokens: Mapping[str, int], question_tokens: int) -> int:
    return call.tokens + question_tokens + sum(answer_tokens.get(key, 0) for key in call.quotes)


def _answer_tokens(call: RehearsedCall, share: float) -> int:
    """Return the estimated answer tokens, within the output cap."""
    return min(int(call.words * TOKENS_PER_WORD * share), max_answer_tokens(call.ask))


def _max_output_tokens(member: Callable[[str], Member], name: str, ask: Ask) -> int:
    found = find_member(name, member)
    return max_billed_tokens(found, ask) if found else max_answer_tokens(ask)


def find_member(name: str, member: Callable[[str], Member]) -> Member | None:
    """Return a member; None for an invalid one, which is reported when the seats are assigned."""
    try:
        return member(name)
    except ConfigError:
        return None


def _round_usd(amount: Decimal) -> float:
    return round(float(amount), 6)


# Prompt caches: which beginnings of requests are sent again, and what the vendors' caches are expected to read
# A vendor that caches at marked points may charge for writing to its cache, so a point is marked only if another
# request of the run has the same beginning. The rehearsal knows all requests before the first one is sent.


def list_prefixes(ask: Ask, question: str) -> tuple[Prefix, ...]:
    """Return the beginnings of a request at its points: the end of its shared part, then of each user message."""
    if not ask.shared or ask.bare:
        return ()
    digest, size, own = hashlib.sha256(), 0, estimate_tokens(question)
    prefixes: list[Prefix] = []

    def add(text: str, is_point: bool) -> None:
        nonlocal size
        digest.update(f"{len(text)}:{text}".encode(errors="replace"))
        size += estimate_tokens(text)
        if is_point:
            prefixes.append(Prefix(digest.hexdigest(), size - own))

    for message in ask.messages:
        text, is_user = message["content"], message["role"] == "user"
        if is_user and not prefixes:
            add(text[: ask.shared], True)
            text = text[ask.shared :]
        add(text, is_user)
    return tuple(prefixes)


def find_rules(member: Callable[[str], Member]) -> RulesLookup:
    """Return a lookup of how the vendor of a member caches prompts; None if that is not known."""

    def rules_of(name: str) -> CacheRules | None:
        found = find_member(name, member)
        return cache_rules(found) if found else None

    return rules_of


def find_cache_points(
    calls: Sequence[RehearsedCall], question_tokens: int, rules_of: RulesLookup, *, warm_start: bool
) -> CachePoints:
    """Return the points of each step that another request of the run also has, for vendors that cache at marked points.

    Without a warm start, the requests of one phase are sent together, and none can read what another one writes.
    """
    sharers: dict[tuple[str, ...], list[str]] = defaultdict(list)
    places: dict[str, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
    for call in calls:
        rules = rules_of(call.member)
        if rules is None or not rules.has_points:
            continue
        for point, prefix in enumerate(call.prefixes):
            if is_long_enough(prefix, question_tokens, rules):
                entry = _entry_key(call, prefix, rules)
                sharers[entry].append(call.key if warm_start else top_phase(call.key))
                places[call.key].append((point, entry))
    points: CachePoints = {}
    for key, found in places.items():
        shared = [(point, frozenset(sharers[entry])) for point, entry in found if len(set(sharers[entry])) > 1]
        longest = {who: point for point, who in shared}  # a shorter point with the same readers is not needed
        if longest:
            points[key] = tuple(sorted(longest.values()))[-MAX_CACHE_POINTS:]
    return points


def forecast_cache(
    calls: Sequence[RehearsedCall], points: CachePoints, question_tokens: int, rules_of: RulesLookup
) -> list[CacheUse]:
    """Return what each request is expected to read from a cache and to write to it, in their order.

    A vendor without points caches by itself and promises nothing, so only what an earlier phase has sent counts as
    read.
    """
    known: dict[tuple[str, ...], str] = {}  # the phase that has sent it first
    uses = []
    for call in calls:
        rules, phase = rules_of(call.member), top_phase(call.key)
        if rules is None:
            uses.append(CacheUse())
            continue
        marked = points.get(call.key, ()) if rules.has_points else range(len(call.prefixes))
        entries = {
            _entry_key(call, prefix, rules): prefix.tokens + question_tokens
            for point, prefix in enumerate(call.prefixes)
            if point in marked and is_long_enough(prefix, question_tokens, rules)
        }
        found = [n for entry, n in entries.items() if entry in known and (rules.has_points or known[entry] != phase)]
        read = max(found, default=0)
        uses.append(CacheUse(read, max(entries.values(), default=0) - read if rules.has_points and entries else 0))
        for entry in entries:
            known.setdefault(entry, phase)
    return uses


def is_long_enough(prefix: Prefix, question_tokens: int, rules: CacheRules) -> bool:
    """Return whether a beginning reaches the vendor's minimum, with a quarter taken off: our count is too high."""
    return (prefix.tokens + question_tokens) * 3 >= rules.min_tokens * 4


def _entry_key(call: RehearsedCall, prefix: Prefix, rules: CacheRules) -> tuple[str, ...]:
    return (call.member, prefix.digest, *([call.cache_form] if rules.schema_first else []))
