"""Panel of the judges protocol: number of judges, families, perspectives and explorers."""

from __future__ import annotations

from council.errors import UsageError
from council.panel import Panel, Where
from council.protocols.options import JudgesOptions
from council.rules.bench import MOST_AGENTS, PROFILE_JUDGES, USUAL_JUDGES, Bench, plain_name, seat_bench
from council.rules.perspectives import Perspective, perspectives_file, perspectives_named, preset
from council.rules.seating import LOCAL, available, resolve, tier_member
from council.settings import PROFILES, SeatSetting, config_folder
from council.types import Json, Seat

FAMILIES = {
    "anthropic": "claude",
    "openai": "codex",
}  # seat name prefix by vendor in a mixed council; other vendors use their own name
LEAD = Seat("chair", "Lead")


def quick_panel(task: str, options: Json, where: Where) -> Panel:
    return judges_panel(task, {"quick": True}, where)


def judges_panel(task: str, options: Json, where: Where) -> Panel:
    chosen = JudgesOptions.model_validate(options)
    lenses = _lenses(chosen, where)
    first = _first_family(chosen, where)
    second = _second_family(first, where) if chosen.mixed else None
    bench = _bench(chosen, lenses, where, second)
    families = [first, second] if second else [first]
    seats = [(seat, member) for member in families for seat in _seats(bench, lenses, _prefix(member, where, second))]
    return Panel(
        seats=tuple(seat for seat, _ in seats),
        chair=None if chosen.quick or task == "validate" else LEAD,
        members={seat.name: _wanted(member, families, where) for seat, member in seats},
        everyone=first,
        helpers=(_explorer(chosen, first, where),) if bench.explorers else (),
        warnings=tuple(_warnings(bench)),
        notices=("--mixed found no second vendor family: all judges are of the first.",)
        if chosen.mixed and not second
        else (),
        agents=bench.agents,
    )


def _lenses(chosen: JudgesOptions, where: Where) -> tuple[Perspective, ...]:
    """Load the perspectives: a file or names override a preset."""
    if chosen.perspectives_file:
        return perspectives_file(where.folder / chosen.perspectives_file)
    if chosen.perspectives:
        return perspectives_named(chosen.perspectives)
    return preset(chosen.preset, config_folder(where.env) / "presets").perspectives if chosen.preset else ()


def _bench(chosen: JudgesOptions, lenses: tuple[Perspective, ...], where: Where, second: str | None) -> Bench:
    return seat_bench(
        perspectives=[lens.name for lens in lenses], quick=chosen.quick, deep=chosen.deep or chosen.mixed,
        mixed=second is not None, debate=chosen.debate, count=chosen.count, explorers=chosen.explorers,
        usual=_usual(chosen, where),
    )  # fmt: skip


def _usual(chosen: JudgesOptions, where: Where) -> int:
    """Return the default number of judges: COUNCIL_JUDGE_COUNT, then the profile, then 2."""
    if where.settings.given("variables.COUNCIL_JUDGE_COUNT"):
        return int(where.settings.variables["COUNCIL_JUDGE_COUNT"])
    return PROFILE_JUDGES.get(chosen.profile or "", USUAL_JUDGES)


def _first_family(chosen: JudgesOptions, where: Where) -> str:
    """Return the first member found: environment, profile tier, [models] default, built-in default, any available member."""
    settings = where.settings
    if settings.given("variables.COUNCIL_CLAUDE_MODEL"):
        return resolve(settings.variables["COUNCIL_CLAUDE_MODEL"], settings, where.env)
    if chosen.profile:
        return tier_member(PROFILES[chosen.profile].tier, settings, where.env)
    if default := settings.models.get("default"):
        return resolve(default, settings, where.env)
    usual = where.reachable(settings.variables.get("COUNCIL_CLAUDE_MODEL", "sonnet"))
    return usual or (available(settings, where.env) or [LOCAL])[0].member


def _second_family(first: str, where: Where) -> str | None:
    """Return a member of another family: [models] other, the codex member, else any available member."""
    settings = where.settings
    by_file, by_env = settings.models.get("other"), settings.variables.get("COUNCIL_CODEX_MODEL")
    names = [by_env, by_file] if settings.given("variables.COUNCIL_CODEX_MODEL") else [by_file, by_env]
    members = [where.reachable(name) for name in names if name]
    members += [candidate.member for candidate in available(settings, where.env)]
    others = [member for member in members if member and where.vendor(member) != where.vendor(first)]
    if not others and where.strict:
        raise UsageError(
            "--mixed needs a second vendor family, but none is available: set another API key, or drop --strict"
        )
    return others[0] if others else None


def _wanted(member: str, families: list[str], where: Where) -> SeatSetting:
    """Return the setting of a seat. With two families, seats get no fallbacks, so the families stay separate."""
    return SeatSetting(member, ()) if len(families) > 1 else SeatSetting(member)


def _prefix(member: str, where: Where, second: str | None) -> str:
    vendor = where.vendor(member)
    return f"{plain_name(FAMILIES.get(vendor, vendor))}-" if second else ""


def _seats(bench: Bench, lenses: tuple[Perspective, ...], prefix: str) -> list[Seat]:
    """Return the judges of one family: one per perspective, the rest numbered."""
    held = lenses[: len(bench.perspectives)]
    seats = [Seat(f"{prefix}judge-{plain_name(lens.name)}", lens.persona, lens.name, lens.focus) for lens in held]
    return seats + [Seat(f"{prefix}judge-{n}", "Judge") for n in range(len(held) + 1, bench.per_family + 1)]


def _explorer(chosen: JudgesOptions, first: str, where: Where) -> Seat:
    if chosen.explorer_model:
        member = resolve(chosen.explorer_model, where.settings, where.env)
    else:
        member = where.reachable(where.settings.variables.get("COUNCIL_EXPLORER_MODEL", "sonnet")) or first
    return Seat("explorer", "Explorer", member=member, vendor=where.vendor(member))


def _warnings(bench: Bench) -> list[str]:
    warnings = []
    if bench.scaled:
        each = " per family" if bench.families > 1 else ""
        warnings.append(f"{bench.wanted} judges{each} scaled down to {bench.per_family}: at most {MOST_AGENTS} agents")
    if bench.dropped:
        warnings.append(f"perspectives dropped: {', '.join(bench.dropped)}")
    return warnings
