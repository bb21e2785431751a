"""Panel of the judges: their number, at most 12 agents, and their seats, families and perspectives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from council.errors import ConfigError, UsageError, option, wording
from council.protocols.common.clerk import build_clerk, is_human
from council.protocols.common.perspectives import (
    Perspective,
    load_preset,
    perspectives_from_file,
    perspectives_from_names,
)
from council.protocols.judges.options import JudgesOptions
from council.protocols.options import NoOptions
from council.protocols.seats import Panel, PanelContext
from council.settings import PROFILES, SeatSetting
from council.settings.config_files import config_folder
from council.settings.member_lookup import (
    LOCAL_CANDIDATE,
    available_members,
    fast_members,
    resolve_member,
    spread_members,
    tier_member,
)
from council.text_cleanup import slugify
from council.types import Seat

MAX_AGENTS = 12
DEFAULT_JUDGES = 2
DEEP_JUDGES = 3
PROFILE_JUDGES = {"thorough": 3, "balanced": 2, "fast": 2}


@dataclass(frozen=True, slots=True)
class JudgeCounts:
    """Numbers of judges and explorers. `requested` is the number per family before the cap."""

    per_family: int
    families: int = 1
    explorers: int = 0
    perspectives: tuple[str, ...] = ()
    dropped_perspectives: tuple[str, ...] = ()
    requested: int = 0

    @property
    def judges(self) -> int:
        return self.per_family * self.families

    @property
    def agents(self) -> int:
        return self.judges * (1 + self.explorers)

    @property
    def is_scaled_down(self) -> bool:
        return self.per_family < self.requested


def count_judges(
    options: JudgesOptions, families: int, perspectives: Sequence[str], default_count: int, named: int
) -> JudgeCounts:
    """Compute the number of judges.

    `named` is the number of members by `-m`; `default_count` applies when no flag sets a size.
    """
    if options.quick:
        return JudgeCounts(1, requested=1)
    count = named if named > 1 else options.count
    wanted = count or max(DEEP_JUDGES if options.deep or options.mixed else default_count, len(perspectives))
    per_family = _apply_agent_cap(wanted, families, options.explorers, count=count, named=named)
    if options.debate and per_family * families < 2:
        raise UsageError(
            f"{option('debate', True)} needs at least 2 judges, but there is {per_family}: "
            f"raise {option('count')}, or drop {option('debate')}"
        )
    held, dropped = tuple(perspectives[:per_family]), tuple(perspectives[per_family:])
    return JudgeCounts(per_family, families, options.explorers, held, dropped, wanted)


def _apply_agent_cap(requested: int, families: int, explorers: int, *, count: int | None, named: int) -> int:
    room = MAX_AGENTS // (families * (1 + explorers))
    if requested <= room:
        return requested
    if room == 0:
        raise UsageError(
            f"one judge of each of {families} vendor families with {explorers} explorers makes "
            f"{families * (1 + explorers)} agents, over the cap of {MAX_AGENTS}: lower {option('explorers')}"
        )
    judges = requested * families
    total = f"{judges} judges x (1 + {explorers} explorers) = {judges * (1 + explorers)} agents, over the cap of {MAX_AGENTS}"
    if named > 1:
        raise UsageError(
            f"{option('models')} names {total}: name {room} members or fewer, or lower {option('explorers')}"
        )
    if count is not None:
        given = wording(python=f"count={count}", cli=f"--count={count}")
        raise UsageError(
            f"{given} makes {total}: lower {option('count')} to {room} or less, or lower {option('explorers')}"
        )
    return room


# Seats

# Seat name prefix by vendor in a mixed council; other vendors use their own name.
FAMILY_PREFIXES = {"anthropic": "claude", "openai": "codex"}
HIGH_STAKES_WORDS = re.compile(r"\b(?:secur|architect)\w*", re.IGNORECASE)  # topics that need more than a single judge
LEAD_SEAT = Seat("chair", "Lead")


def quick_panel(task: str, options: NoOptions, context: PanelContext) -> Panel:
    return replace(judges_panel(task, JudgesOptions(quick=True), context), options={})


def judges_panel(task: str, chosen: JudgesOptions, context: PanelContext) -> Panel:
    named = len(context.settings.named_members)
    _check_named_members(chosen, named)
    lenses = _load_perspectives(chosen, context)
    first = _choose_first_member(chosen, context)
    families = _choose_families(first, chosen.families, context)
    names = [lens.name for lens in lenses]
    bench = count_judges(chosen, len(families), names, _default_judge_count(chosen, context), named)
    if len(families) > 1:
        seats = [
            (seat, SeatSetting(member, ()))  # without fallbacks, so that the families stay separate
            for member in families
            for seat in _build_seats(bench, lenses, _seat_name_prefix(member, context))
        ]
    else:
        members = [first]  # if the environment names it for all; else one of each vendor in turn
        if not context.settings.is_set("variables.COUNCIL_CLAUDE_MODEL"):
            tier = PROFILES[chosen.profile].tier if chosen.profile else "default"
            members = spread_members(first, tier, context.settings, context.env)
        judges = _build_seats(bench, lenses, "")
        seats = [(seat, SeatSetting(members[n % len(members)])) for n, seat in enumerate(judges)]
    return Panel(
        seats=tuple(seat for seat, _ in seats),
        chair=None if chosen.quick or task == "validate" else LEAD_SEAT,
        members={seat.name: setting for seat, setting in seats},
        default_member=first,
        helpers=(
            *([_build_explorer(chosen, first, context)] if bench.explorers else []),
            *_build_clerk(task, chosen, bench, first, context),
        ),
        warnings=(*_list_warnings(bench), *(_warn_single_judge(context) if chosen.quick else [])),
        notices=_list_missing_families(chosen.families, len(families)),
        agents=bench.agents,
        options={"may_disagree": len(families) > 1 or _has_named_seats([seat.name for seat, _ in seats], context)},
    )


def _list_missing_families(wanted: int, found: int) -> tuple[str, ...]:
    if found >= wanted:
        return ()
    none = "--mixed found no second vendor family: all judges are of the first."
    return (none if found == 1 else f"--mixed={wanted} found {found} vendor families: the judges are of these.",)


def _has_named_seats(seats: Sequence[str], context: PanelContext) -> bool:
    """Return whether the user chose the members of the judges one by one."""
    settings = context.settings
    return len(settings.named_members) > 1 or any(
        settings.seats[name].model for name in seats if name in settings.seats
    )


def _check_named_members(options: JudgesOptions, named: int) -> None:
    """Raise UsageError for options that contradict the members of `-m`."""
    if named and options.mixed:
        raise UsageError(
            f"{option('mixed', True)} chooses the members of several vendors, and {option('models')} names them: drop one of the two"
        )
    size = 1 if options.quick else options.count
    if named > 1 and size is not None and size != named:
        flag = option("quick", True) if options.quick else wording(python=f"count={size}", cli=f"--count={size}")
        raise UsageError(
            f"{flag} seats {size}, and {option('models')} names {named} members: drop one of the two, or name one member"
        )


def _warn_single_judge(context: PanelContext) -> list[str]:
    question = context.question
    said = HIGH_STAKES_WORDS.search(f"{question.text} {question.target or ''}") if question else None
    return [f'"{said[0]}" needs more than one judge: drop --quick'] if said else []


def _load_perspectives(options: JudgesOptions, context: PanelContext) -> tuple[Perspective, ...]:
    """Load the perspectives: a file or names override a preset."""
    if options.perspectives_file:
        return perspectives_from_file(context.folder / options.perspectives_file)
    if options.perspectives:
        return perspectives_from_names(options.perspectives)
    return load_preset(options.preset, config_folder(context.env) / "presets").perspectives if options.preset else ()


def _default_judge_count(options: JudgesOptions, context: PanelContext) -> int:
    """Return the default number of judges: COUNCIL_JUDGE_COUNT, then the profile, then 2."""
    if context.settings.is_set("variables.COUNCIL_JUDGE_COUNT"):
        return int(context.settings.variables["COUNCIL_JUDGE_COUNT"])
    return PROFILE_JUDGES.get(options.profile or "", DEFAULT_JUDGES)


def _choose_first_member(options: JudgesOptions, context: PanelContext) -> str:
    """Return the first member found: `-m`, `--cheap`, environment, profile tier, [models] default, built-in default,
    any available member.
    """
    settings = context.settings
    if settings.named_members:
        return resolve_member(settings.named_members[0], settings, context.env)
    if settings.cheap:
        return fast_members(settings, context.env)[0].member
    if settings.is_set("variables.COUNCIL_CLAUDE_MODEL"):
        member = resolve_member(settings.variables["COUNCIL_CLAUDE_MODEL"], settings, context.env)
        if context.may_use(member):
            return member
    if options.profile:
        return tier_member(PROFILES[options.profile].tier, settings, context.env)
    if default := settings.models.get("default"):
        return resolve_member(default, settings, context.env)
    usual = context.resolve_or_none(settings.variables.get("COUNCIL_CLAUDE_MODEL", "sonnet"))
    return usual or (available_members(settings, context.env) or [LOCAL_CANDIDATE])[0].member


def _choose_families(first: str, wanted: int, context: PanelContext) -> list[str]:
    """Return a member of each vendor family, at most `wanted`.

    After the first: [models] other and the codex member, then any available member of another family.
    """
    if wanted == 1:
        return [first]
    settings = context.settings
    by_file, by_env = settings.models.get("other"), settings.variables.get("COUNCIL_CODEX_MODEL")
    names = [by_env, by_file] if settings.is_set("variables.COUNCIL_CODEX_MODEL") else [by_file, by_env]
    if settings.cheap:
        members = [candidate.member for candidate in fast_members(settings, context.env)]
    else:
        known = (context.resolve_or_none(name) for name in names if name)
        members = [*filter(None, known), *(one.member for one in available_members(settings, context.env))]
    families = {context.vendor(first): first}
    for member in members:
        families.setdefault(context.vendor(member), member)
    if len(families) < wanted and context.strict:
        which = "a second vendor family, but none" if len(families) == 1 else f"{wanted} families, but {len(families)}"
        raise UsageError(
            f"{option('mixed', True)} needs {which} is available: set another API key, or drop {option('strict')}"
        )
    return list(families.values())[:wanted]


def _seat_name_prefix(member: str, context: PanelContext) -> str:
    vendor = context.vendor(member)
    return f"{slugify(FAMILY_PREFIXES.get(vendor, vendor))}-"


def _build_seats(counts: JudgeCounts, perspectives: tuple[Perspective, ...], prefix: str) -> list[Seat]:
    """Return the judges of one family: one per perspective, the rest numbered."""
    held = perspectives[: len(counts.perspectives)]
    seats = [Seat(f"{prefix}judge-{slugify(lens.name)}", lens.persona, lens.name, lens.focus) for lens in held]
    return seats + [Seat(f"{prefix}judge-{n}", "Judge") for n in range(len(held) + 1, counts.per_family + 1)]


def _build_explorer(options: JudgesOptions, first: str, context: PanelContext) -> Seat:
    if options.explorer_model:
        member = resolve_member(options.explorer_model, context.settings, context.env)
    elif context.settings.named_members or context.settings.cheap:
        member = first
    else:
        member = context.resolve_or_none(context.settings.variables.get("COUNCIL_EXPLORER_MODEL", "sonnet")) or first
    return Seat("explorer", "Explorer", member=member, vendor=context.vendor(member))


def _build_clerk(
    task: str, options: JudgesOptions, counts: JudgeCounts, first: str, context: PanelContext
) -> list[Seat]:
    """Return the clerk of a review with several judges: a fast member, or none if only people judge."""
    if task != "validate" or options.no_clerk or counts.judges < 2:
        return []
    clerk = build_clerk(_list_clerk_members(first, context), context)
    return [clerk] if clerk else []


def _list_clerk_members(first: str, context: PanelContext) -> list[str]:
    """Return the member of the clerk and its fallback: `-m`; else [models] fast or the fast model of the first vendor,
    then the judges' member.
    """
    settings = context.settings
    if settings.named_members:
        named = (resolve_member(name, settings, context.env) for name in settings.named_members)
        return [member for member in named if not is_human(member)][:1]
    configured = settings.models.get("fast")
    if configured and (found := context.resolve_or_none(configured)):
        return [found, first]
    try:
        fast = [one.member for one in fast_members(settings, context.env) if one.vendor == context.vendor(first)]
    except ConfigError:
        fast = []
    return [*fast[:1], first]


def _list_warnings(counts: JudgeCounts) -> list[str]:
    warnings = []
    if counts.is_scaled_down:
        each = " per family" if counts.families > 1 else ""
        warnings.append(
            f"{counts.requested} judges{each} scaled down to {counts.per_family}: at most {MAX_AGENTS} agents"
        )
    if counts.dropped_perspectives:
        warnings.append(f"perspectives dropped: {', '.join(counts.dropped_perspectives)}")
    return warnings
