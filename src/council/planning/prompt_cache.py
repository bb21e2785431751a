"""Prompt caches in a plan: which beginnings of requests are sent again, and what the vendors' caches are expected to
read.

A vendor that caches at marked points may charge for writing to its cache, so a point is marked only if another request
of the run has the same beginning. The rehearsal knows all requests before the first one is sent.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from council.calling.budget import top_phase
from council.errors import ConfigError
from council.members.base import MAX_CACHE_POINTS, CacheRules, Member, cache_rules
from council.types import Ask, estimate_tokens

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


class CachedCall(NamedTuple):
    """What the cache of a vendor depends on, of one request of a rehearsal."""

    key: str
    member: str
    form: str  # digest of the schema of its reply and of its effort
    prefixes: tuple[Prefix, ...]


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
        try:
            return cache_rules(member(name))
        except ConfigError:  # an invalid member is reported when the seats are assigned
            return None

    return rules_of


def find_cache_points(
    calls: Sequence[CachedCall], question_tokens: int, rules_of: RulesLookup, *, warm_start: bool
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
    calls: Sequence[CachedCall], points: CachePoints, question_tokens: int, rules_of: RulesLookup
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


def _entry_key(call: CachedCall, prefix: Prefix, rules: CacheRules) -> tuple[str, ...]:
    return (call.member, prefix.digest, *([call.form] if rules.schema_first else []))
