"""Settings, members, prices, concurrency limits, look-ups and search of the runs in one folder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from council.calling.budget import Budget, Caps
from council.calling.families import Families
from council.calling.limits import Gate, gate_of, open_gate
from council.calling.loop import Caller
from council.calling.prices import price_of
from council.calling.windows import window_of
from council.convene.people import Desk, patient
from council.council import Effect
from council.errors import ConfigError, UsageError
from council.ledger import Ledger
from council.members.base import Member
from council.members.human import HUMAN
from council.members.registry import Members
from council.money import FREE, Price
from council.packet import look, scrub
from council.packet.admitting import admitting
from council.search import finder, research, searched_folder
from council.settings import cache_folder, is_reasoning, load_settings, split_member
from council.store.sqlite import SqliteStore
from council.types import CarryOut, Json, Roster

PROCESSES = 4  # at once, of one command-line agent
LIMITS = {"explorer": "COUNCIL_EXPLORER_TIMEOUT", "r2": "COUNCIL_R2_TIMEOUT"}  # the variable of each timeout


class Equipment:
    """Everything a run needs from its folder and its environment."""

    def __init__(
        self, folder: Path, env: Mapping[str, str], flags: Mapping[str, Any], config: Path | None,
        own: Iterable[Member] = (),
    ) -> None:  # fmt: skip
        self.folder, self.env, self.flags = folder, env, flags
        self.settings = load_settings(folder, env, flags=flags, config=config)
        self.members = Members(self.settings, env, cache_folder(env))
        for member in own:
            self.members.add(member)

    # Money

    def price(self, name: str) -> Price | None:
        """Return a member's price, or None if it is unknown."""
        listed = price_of(name, self.settings)
        try:
            return FREE if listed is None and self.members(name).free else listed
        except ConfigError:  # an invalid member name; seating reports it
            return None

    def window(self, name: str) -> int | None:
        """Return a member's context window in tokens, or None if it is unknown."""
        return window_of(name, self.settings)

    @property
    def caps(self) -> Caps:
        return Caps(self.settings.budget.get("max_cost"), self.settings.budget.get("max_cost_per_day"))

    def refuse_unpriced(self, roster: Roster) -> None:
        """Raise UsageError if there is a cost cap and a member's price is unknown."""
        unknown = [name for name in roster.everybody if self.price(name) is None] if self.caps else []
        if unknown and not self.flags.get("allow_unpriced"):
            raise UsageError(
                f'no price for "{unknown[0]}", so the budget cannot be enforced: '
                f'set [prices."{unknown[0]}"] or pass --allow-unpriced'
            )

    def lacking(self, roster: Roster) -> list[str]:
        """Return the unset API key variables of the seated members; fallbacks are not checked."""
        seats = (*roster.seats, *([roster.chair] if roster.chair else []), *roster.helpers)
        kinds = {split_member(seat.member)[0] for seat in seats}
        wanted = [self.settings.providers[kind].api_key_env for kind in kinds if kind in self.settings.providers]
        return sorted({name for name in wanted if name and not self.env.get(name, "").strip()})

    # Calls

    def caller(self, ledger: Ledger, roster: Roster, store: SqliteStore) -> CarryOut:
        families = Families.recalled({seat.name: seat.vendor for seat in roster.seats}, ledger.record)
        resend = not self.flags.get("no_resend")
        purse = Budget(store, ledger.record, lambda member: self.price(member.name), self.caps)
        members = self.members.at(Desk(store, ledger.run))
        return patient(Caller(members, ledger, self._deadline, resend, self._gate, families, purse))

    def _gate(self, member: str) -> Gate:
        kind, name = split_member(member)
        if kind == "cli":  # each call starts a separate, heavy process
            return gate_of(f"cli:{name.partition(':')[0]}", PROCESSES, lends=False)
        if kind == "local":  # all runs share one loaded model; waiting for it does not count as call time
            return gate_of(member, getattr(self.members(member), "seats", PROCESSES))
        provider = self.settings.providers.get(kind)
        return (
            gate_of(f"{provider.name} {provider.base_url}", provider.max_connections) if provider else open_gate(member)
        )

    def _deadline(self, member: str) -> float:
        if member == HUMAN:
            return float(self.settings.human["timeout"])
        return self.settings.deadline(reasoning=is_reasoning(member) or self.settings.effort is not None)

    def limits(self) -> dict[str, float]:
        return {kind: float(self.settings.variables[name]) for kind, name in LIMITS.items()}

    # Look-ups and search

    def effects(self, setup: Json, folder: Path) -> dict[str, Effect]:
        meant = setup["options"].get("search")
        searching = {"search": self._searching(meant, folder)} if isinstance(meant, str) else {}
        return {"look": _looking(folder), **searching}

    def _searching(self, meant: str, folder: Path) -> Effect:
        async def searched(wanted: Json) -> list[Json]:
            found = finder(meant, self.settings, self.env, folder, admitting(searched_folder(meant, folder)))
            queries = [scrub(query) for query in wanted["queries"]]  # queries leave the machine too
            most, freshness = self.settings.search["max_results"], wanted.get("freshness", "none")
            try:
                return await research(found, queries, most=most, freshness=freshness)
            finally:
                await found.close()

        return searched


def _looking(root: Path) -> Effect:
    async def looked(wanted: Json) -> list[Json]:
        return await asyncio.to_thread(look, root, wanted, redact=True)

    return looked
