"""Settings, members, prices, concurrency limits, look-ups and search of the runs in one folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from council.calling.budget import Budget, Caps
from council.calling.concurrency import ConcurrencyLimit, RateLimit, TurnStore, WarmStart, get_limit, no_limit
from council.calling.fallback import FallbackPolicy
from council.calling.pricing import find_context_window, find_price, own_price
from council.calling.prompt_cache import PromptCache
from council.calling.retry import Caller, RetryLoop
from council.calling.vendor_limits import VendorLimits
from council.engine.ledger import Ledger
from council.errors import ConfigError, StoreError, UsageError, option
from council.members.base import Member
from council.members.human import HUMAN
from council.members.registry import MemberRegistry
from council.members.wires.http import close_connections
from council.money import Price
from council.packet.lookups import look, make_document_reader
from council.packet.secret_filter import redact_text
from council.planning.setup import RunFlags, RunSetup
from council.runs.people import StoredQuestions
from council.search import make_provider, search_folder
from council.search.provider import SearchError
from council.search.results import close_provider, list_failures, research
from council.settings import load_settings
from council.settings.catalogue import LISTED_PROVIDERS, split_member
from council.settings.config_files import cache_folder, find_names
from council.settings.key_storage import KeyEnvironment
from council.settings.network import find_key_leaks
from council.settings.schema import SPECIAL_MEMBERS
from council.store.interface import Record
from council.store.run_store import RunStore
from council.store.shared import close_stores
from council.types import CarryOut, Effects, LookupQuery, LookupRow, Roster, SearchQuery, SearchRow, Step
from council.version import RULES, __version__

if TYPE_CHECKING:
    from council.runs.waves import Waves

# Stored with a run, so that a resumed run uses them again.
PERSISTED_FLAGS = tuple(name for name in RunFlags.__annotations__ if name != "trusted")
OTEL_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
NO_OTEL = "OpenTelemetry variables are set, but no spans are sent: pip install 'model-council[otel]', or set OTEL_SDK_DISABLED=true"
USER_OWNER = "token:"  # the owner of a run that was started with a token is this and its name
MAX_CLI_PROCESSES = 4  # at once, of one command-line agent


@cache
def sends_spans() -> bool:
    """Return whether the standard variables configure an exporter of OpenTelemetry. They are read once."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if exporter := os.environ.get("OTEL_TRACES_EXPORTER", "").strip():
        return exporter in ("otlp", "console")
    return any(map(os.environ.get, OTEL_ENDPOINTS))


def has_otel() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


BATCH_PROVIDERS = ("openai", "anthropic", "google")


class RunContext:
    """Everything a run needs from its folder and its environment."""

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        flags: Mapping[str, Any],
        config: Path | None,
        extra_members: Sequence[Member] = (),
        waves: Waves | None = None,  # of a slow batch
    ) -> None:
        settings = load_settings(folder, env, flags=flags, config=config)
        if command := settings.keys.get("command"):
            env = KeyEnvironment(env, command, [one.api_key_env for one in settings.providers.values()])
        self.folder, self.env, self.flags = folder, env, flags
        if settings.hedge and flags.get("no_resend"):  # a second request may be billed too
            settings = replace(settings, hedge=False)
        known = (*settings.providers, *SPECIAL_MEMBERS)
        custom = {one.name: one.vendor for one in extra_members if split_member(one.name)[0] not in known}
        self.settings = replace(settings, custom_members=custom) if custom else settings
        self.members = MemberRegistry(self.settings, env, cache_folder(env), folder)
        self.waves = waves
        if waves:
            self.members.wrap = self._wrap_slow
        for member in extra_members:
            self.members.add(member)
        self._listed_prices: dict[str, Price | None] = {}
        self.vendor_keys = [self.settings.providers[name].api_key_env for name in LISTED_PROVIDERS]

    def _wrap_slow(self, member: Member) -> Member:
        """Return a member that sends its requests in waves, if its provider has a batch interface."""
        provider = self.settings.providers.get(split_member(member.name)[0])
        has_interface = provider is not None and (provider.batches or provider.name in BATCH_PROVIDERS)
        return self.waves.wrap(member) if self.waves and has_interface else member

    def is_slow(self, member: str) -> bool:
        """Return whether the requests of a member wait for a wave."""
        return self.waves is not None and self.waves.is_slow(self.members(member))

    @cached_property
    def file_warnings(self) -> list[str]:
        """Warnings about the project's file: keys that it sends to other hosts, or that it is ignored."""
        leaks = find_key_leaks(self.settings) if self.settings.has_project_file else []
        file = self.settings.ignored_file
        ignored = f"{file} is ignored because it belongs to another user: change its owner, or name it with --config"
        return [*leaks, ignored] if file else leaks

    @property
    def hints(self) -> list[str]:
        """What the user may want to install: the package that sends spans."""
        return [NO_OTEL] if sends_spans() and not has_otel() else []

    def mark_maker(self, setup: RunSetup) -> RunSetup:
        """Return the setup of a run with its maker: the version, the rules, the owner and the project."""
        owner, project = find_names(self.folder, self.settings.store.get("owner"))
        if user := self.flags.get("user"):
            owner = f"{USER_OWNER}{user}"
        return replace(setup, version=__version__, rules=RULES, owner=owner, project=project)

    async def refresh_models(self) -> None:
        """Look up which models the vendors with keys list, if that is more than a day ago. Wait a short time only."""
        from council.runs.model_refresh import refresh_models  # only with a key of a vendor

        await refresh_models(self.settings, self.env, self.members)

    # Money

    def price(self, name: str) -> Price | None:
        """Return a member's price, or None if it is unknown."""
        if name not in self._listed_prices:
            self._listed_prices[name] = find_price(name, self.settings)
        listed = self._listed_prices[name]
        try:
            if listed is not None and self.waves and self.is_slow(name):
                return listed.divided(self.waves.price_divisor)
            return listed if listed is not None else own_price(self.members(name))
        except ConfigError:  # an invalid member name; seating reports it
            return None

    def context_window(self, name: str) -> int | None:
        """Return a member's context window in tokens, or None if it is unknown."""
        return find_context_window(name, self.settings)

    @property
    def caps(self) -> Caps:
        budget = self.settings.budget
        user_cap, user = self.flags.get("user_cap"), self.flags.get("user") or ""
        return Caps(budget.get("max_cost"), budget.get("max_cost_per_day"), user_cap, user)

    def require_prices(self, roster: Roster) -> None:
        """Raise UsageError if there is a cost cap and a member's price is unknown."""
        unknown = [name for name in roster.member_names if self.price(name) is None] if self.caps else []
        if unknown and not self.flags.get("allow_unpriced"):
            why = " in your own file, because a price of the project does not count for your cap,"
            own = why if self.settings.user_prices is not None else ""
            raise UsageError(
                f'no price for "{unknown[0]}", so the budget cannot be enforced: '
                f'set [prices."{unknown[0]}"]{own} or pass {option("allow_unpriced", True)}'
            )

    def find_missing_keys(self, roster: Roster) -> list[str]:
        """Return the unset API key variables of the seated members; fallbacks are not checked."""
        kinds = {split_member(seat.member)[0] for seat in roster.all_seats}
        wanted = [self.settings.providers[kind].api_key_env for kind in kinds if kind in self.settings.providers]
        return sorted({name for name in wanted if name and not self.env.get(name, "").strip()})

    def check_installed(self, names: Iterable[str]) -> None:
        """Raise if a member needs software or a file that is missing; nothing is downloaded or started."""
        for name in sorted(names):
            if check := getattr(self.members(name), "check_installed", None):
                check()

    def make_budget(self, record: Record, store: RunStore) -> Budget:
        """Return the budget of a run, with what it holds for the requests that are still to be sent."""
        return Budget(
            store,
            record,
            lambda member: self.price(member.name),
            self.caps,
            RunSetup.of(record).spending,
            self.settings.may_bill_errors,
        )

    # Calls

    def make_caller(self, ledger: Ledger, roster: Roster, store: RunStore) -> CarryOut:
        if sends_spans() and has_otel():
            from council.runs.telemetry import trace_run  # needs the extra `otel`

            ledger.on_event = trace_run(ledger, content=bool(self.settings.telemetry.get("content")))
        families = FallbackPolicy.from_record({seat.name: seat.vendor for seat in roster.seats}, ledger.record)
        resend = not self.flags.get("no_resend")
        members = self.members.with_human_input(StoredQuestions(store, ledger.run))
        waves = self.waves
        waits = [name for seat in roster.all_seats for name in (seat.member, *seat.fallbacks)] if self.waves else []
        return Caller(
            members,
            ledger,
            self.make_budget(ledger.record, store),
            (lambda member: waves.wait_seconds) if waves else self.settings.member_timeout,
            resend,
            partial(self._concurrency_limit, store),
            families,
            no_phase_timeout=(HUMAN, *waits),
            is_thinking=self.settings.is_thinking,
            warm_start=WarmStart() if self.settings.warm_start and not self.waves else None,
            prompt_cache=PromptCache.for_run(ledger.record.seed, RunSetup.of(ledger.record).cache_points),
            make_loop=_make_hedged_loop(store) if self.settings.hedge and not self.waves else RetryLoop,
        )

    def _concurrency_limit(self, store: RunStore, member: str) -> ConcurrencyLimit:
        kind, name = split_member(member)
        if kind == "cli":  # each call starts a separate, heavy process
            return get_limit(f"cli:{name.partition(':')[0]}", MAX_CLI_PROCESSES, lends_silent_slots=False)
        if kind == "local":  # all runs share one loaded model; waiting for it does not count as call time
            return get_limit(member, getattr(self.members(member), "seats", MAX_CLI_PROCESSES))
        provider = self.settings.providers.get(kind)
        if provider is None or self.is_slow(member):
            return no_limit(member)
        limit = get_limit(f"{provider.name} {provider.base_url}", provider.max_connections)
        if provider.rate:
            shared = cast(TurnStore, store) if store.is_shared else None
            if limit.rate is None or limit.rate.store is not shared:
                limit.rate = RateLimit(f"{provider.name} {provider.base_url}", provider.rate, shared)
        if limit.vendor is None or limit.vendor.store is not store:
            limit.vendor = VendorLimits(f"{provider.name} {provider.base_url}", provider.limits_per_minute, store)
        return limit

    # Look-ups and search

    def make_effects(self, setup: RunSetup, folder: Path) -> Effects:
        async def run_lookup(wanted: LookupQuery) -> Sequence[LookupRow]:
            place = Path(setup.look_folder) if setup.look_folder else folder
            return await asyncio.to_thread(look, place, dict(wanted), redact=setup.look != "refuse")

        effects: Effects = {"look": run_lookup}
        provider = setup.options.get("search")
        if isinstance(provider, str):
            effects["search"] = self._make_search_effect(provider, folder)
        return effects

    def _make_search_effect(
        self, provider: str, folder: Path
    ) -> Callable[[SearchQuery], Awaitable[Sequence[SearchRow]]]:
        async def run_search(wanted: SearchQuery) -> Sequence[SearchRow]:
            queries = [redact_text(query) for query in wanted["queries"]]  # queries leave the machine too
            try:
                read = make_document_reader(search_folder(provider, folder))
                found = make_provider(provider, self.settings, self.env, folder, read)
            except SearchError as error:
                return list_failures(queries, error)
            most, freshness = self.settings.search["max_results"], wanted.get("freshness", "none")
            try:
                return await research(found, queries, max_results=most, freshness=freshness)
            finally:
                await close_provider(found)

        return run_search


def _make_hedged_loop(store: RunStore) -> Callable[[Caller, Step], RetryLoop]:
    from council.calling.hedge import HedgedLoop, HedgePolicy

    async def past_seconds(member: str) -> list[float]:
        try:
            return await store.answer_seconds(member)
        except StoreError:  # a busy store does not stop a run
            return []

    return partial(HedgedLoop, policy=HedgePolicy(past_seconds))


def close_shared() -> None:
    """Close the stores and the connections that are kept open between runs; those in use when their runs end."""
    close_connections()
    close_stores()
