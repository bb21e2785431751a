"""Lines of models in a plan, such as opus: the models that they mean today, and members that were retired."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from council.engine.plan_object import PlanLine
from council.settings import Provider, Settings
from council.settings.catalogue import catalogue, model_id, split_member
from council.settings.member_lookup import Retirement, find_default_member, find_retirement
from council.settings.model_lists import find_listing

VENDOR_PREFIXES = ("anthropic:", "openai:", "google:", "openrouter:")  # providers whose models change


def list_lines(members: Collection[str], settings: Settings, env: Mapping[str, str]) -> tuple[PlanLine, ...]:
    """Return the lines that these members are the newest models of, with the names that they stand for."""
    if not any(member.startswith(VENDOR_PREFIXES) for member in members):
        return ()
    rows: list[PlanLine] = []
    for line in catalogue().lines.values():
        member = find_default_member(line.name, settings, env)
        if member and member in members:
            provider = settings.providers[split_member(member)[0]]
            row: PlanLine = {
                "line": line.name,
                "model": member,
                "documented": line.documented or None,
                "source": "snapshot",
                "date": catalogue().snapshot,
            }
            _add_listing(row, f"{provider.name}:{line.snapshot}", provider, settings, env)
            rows.append(row)
    return tuple(rows)


def _add_listing(row: PlanLine, usual: str, provider: Provider, settings: Settings, env: Mapping[str, str]) -> None:
    """Add what the list of the provider says about a line. `usual` is the member that this version knows."""
    listing = find_listing(provider, settings, env)
    if listing is None:
        return
    row["source"] = "list"
    row["date"] = time.strftime("%Y-%m-%d", time.gmtime(listing.fetched))
    if row["model"] != usual:
        row["replaces"] = usual
        row["change"] = "unlisted" if listing.lacks(model_id(usual)) else "newer"


def format_model_changes(
    lines: Sequence[PlanLine], asked: Iterable[str], settings: Settings, env: Mapping[str, str]
) -> list[str]:
    """Return a text for each new or retired model among the members that are asked first."""
    asked = list(dict.fromkeys(asked))
    changes = [_format_change(row) for row in lines if "replaces" in row and row["model"] in asked]
    if any(member.startswith(VENDOR_PREFIXES) for member in asked):
        retirements = {member: find_retirement(member, settings, env) for member in asked}
        changes += [_format_retirement(member, why) for member, why in retirements.items() if why]
    return changes


def _format_change(row: PlanLine) -> str:
    vendor = split_member(row["replaces"])[0]
    if row["change"] == "unlisted":
        return f"{row['line']}: {vendor} does not list {row['replaces']}, so {row['model']} is used."
    return f"{row['line']}: {row['model']} is used, which is newer than {row['replaces']}."


def _format_retirement(member: str, retirement: Retirement) -> str:
    """Return one line about a model that was retired, will be, or is not listed by its vendor."""
    if not retirement.date:
        state = f"{member} is not listed by {split_member(member)[0]}"
    else:
        state = f"{member} {'was' if retirement.is_over else 'will be'} retired on {retirement.date}"
    return f"{state}: use {retirement.successor}." if retirement.successor else f"{state}."
