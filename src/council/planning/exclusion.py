"""Exclude vendors from a council: `--exclude-family` applies to seats, chair, helpers and fallbacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from difflib import get_close_matches

from council.errors import ConfigError, UsageError, option
from council.settings import SEAT_FLAG, SeatSetting, Settings
from council.settings.catalogue import catalogue
from council.settings.member_lookup import LOCAL_CANDIDATE, available_members, fast_members, resolve_member, vendor_of
from council.types import Roster, Seat

FIELD = "exclude_family"
MIN_MEMBERS = 2


def exclude_vendors(settings: Settings, env: Mapping[str, str]) -> Settings:
    """Return the settings without members of the excluded vendors. Raise UsageError for a vendor that is not known.

    A member of a file is left out; one that a flag names contradicts the exclusion.
    """
    excluded = settings.excluded_vendors
    if not excluded:
        return settings
    _check_known(excluded, settings)
    for member in settings.named_members:
        if _is_excluded(member, settings, env):
            raise _contradiction(option("models"), member, settings, env)
    seats = {f"seats.{name}": seat for name, seat in settings.seats.items()}
    for key, seat in {**seats, "chair": settings.chair}.items():
        if settings.is_set_by_flag(f"{key}.model", SEAT_FLAG) and _is_excluded(seat.model, settings, env):
            raise _contradiction(option("seats"), seat.model or "", settings, env)
    return replace(
        settings,
        models={name: one for name, one in settings.models.items() if not _is_excluded(one, settings, env)},
        seats={name: _prune_seat(one, settings, env) for name, one in settings.seats.items()},
        chair=_prune_seat(settings.chair, settings, env),
        custom_members={name: one for name, one in settings.custom_members.items() if one not in excluded},
    )


def inherit_exclusion(settings: Settings, excluded: Iterable[str]) -> Settings:
    """Return the settings with the exclusion of an earlier run, unless they have their own."""
    if settings.excluded_vendors:
        return settings
    known = list_vendors(settings)
    return replace(settings, excluded_vendors=tuple(vendor for vendor in excluded if vendor in known))


def require_allowed(member: str, excluded: Collection[str], settings: Settings, env: Mapping[str, str]) -> None:
    """Raise UsageError for a member of an excluded vendor that is named for a seat."""
    if _find_vendor(member, settings, env) in excluded:
        raise _contradiction(option("seats"), member, settings, env)


def _check_known(excluded: Iterable[str], settings: Settings) -> None:
    known = list_vendors(settings)
    for vendor in excluded:
        if vendor in known:
            continue
        line = catalogue().lines.get(vendor)
        meant = catalogue().commands.get(vendor) or (line.vendor if line else "")
        near = [meant] if meant else get_close_matches(vendor, known, 1)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        raise UsageError(
            f'{option(FIELD)}: unknown vendor "{vendor}": {hint}known are {", ".join(sorted(known))}', field=FIELD
        )


def list_vendors(settings: Settings) -> set[str]:
    """Return the vendors of the catalogue, of the providers and of the members that the settings name."""
    listed = {*catalogue().tiers, *catalogue().commands.values(), *settings.custom_members.values()}
    providers = {provider.vendor for provider in settings.providers.values()}
    seats = [seat.model for seat in (*settings.seats.values(), settings.chair) if seat.model]
    named = [*settings.models.values(), *seats, *settings.named_members]
    return listed | providers | {vendor for member in named if (vendor := _find_vendor(member, settings, {}))}


def _find_vendor(member: str, settings: Settings, env: Mapping[str, str]) -> str:
    """Return the vendor of a member, or of the model that a short name means; empty if it is not known."""
    try:
        return vendor_of(resolve_member(member, settings, env), settings)
    except ConfigError:
        pass
    model = catalogue().find(member) or catalogue().find(member.lower())
    line = catalogue().lines.get(member.lower())
    return line.vendor if line else model.vendor if model else ""


def _is_excluded(member: str | None, settings: Settings, env: Mapping[str, str]) -> bool:
    return bool(member) and _find_vendor(member or "", settings, env) in settings.excluded_vendors


def _prune_seat(seat: SeatSetting, settings: Settings, env: Mapping[str, str]) -> SeatSetting:
    model = None if _is_excluded(seat.model, settings, env) else seat.model
    fallback = seat.fallback and tuple(one for one in seat.fallback if not _is_excluded(one, settings, env))
    return SeatSetting(model, fallback)


def _contradiction(named_by: str, member: str, settings: Settings, env: Mapping[str, str]) -> UsageError:
    vendor = _find_vendor(member, settings, env)
    return UsageError(
        f'{named_by} names "{member}", and {option(FIELD)} excludes its vendor "{vendor}": drop one of the two',
        field=FIELD,
    )


def require_members(settings: Settings, whole: Settings, env: Mapping[str, str], seats: int) -> None:
    """Raise UsageError if the exclusion leaves fewer members that can be called than seats need, at most two.

    `whole` are the settings before the exclusion. A council that it does not change is not refused.
    """
    if not settings.excluded_vendors or settings.named_members:
        return
    left, all_members = _list_callable(settings, env), _list_callable(replace(whole, excluded_vendors=()), env)
    if len(left) >= min(MIN_MEMBERS, seats) or len(left) == len(all_members):
        return
    names = f" ({', '.join(left)})" if left else ""
    raise UsageError(
        f"{option(FIELD, ','.join(settings.excluded_vendors))} leaves {'one member' if left else 'no member'} that can be "
        f"called{names}: set the key of another vendor, name the members with {option('models')}, or drop it",
        field=FIELD,
    )


def _list_callable(settings: Settings, env: Mapping[str, str]) -> list[str]:
    """Return the members for seats without a setting; the embedded model is none of them."""
    try:
        found = fast_members(settings, env) if settings.cheap else available_members(settings, env)
    except ConfigError:  # --cheap without a fast model
        return []
    return list(dict.fromkeys(candidate.member for candidate in found if candidate != LOCAL_CANDIDATE))


def exclude_from_roster(roster: Roster, settings: Settings) -> Roster:
    """Return the roster without fallbacks of excluded vendors. Raise UsageError for a seat that uses one."""
    excluded = settings.excluded_vendors
    if not excluded:
        return roster

    def prune(seat: Seat) -> Seat:
        if vendor_of(seat.member, settings) in excluded:
            raise UsageError(
                f'{option(FIELD)} excludes "{vendor_of(seat.member, settings)}", but {seat.name} uses "{seat.member}": '
                f"name another member for it with {option('seats')}",
                field=FIELD,
            )
        allowed = tuple(member for member in seat.fallbacks if vendor_of(member, settings) not in excluded)
        return replace(seat, fallbacks=allowed)

    return roster.map_seats(prune)
