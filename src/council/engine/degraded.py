"""Caveats of statements that count: the prompt was cut, the answer was truncated, or parameters were dropped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from council.engine.layout import describe_state, format_phase_in, unblind
from council.engine.minutes import AbsenceMinutes, Minutes, StatementMinutes
from council.engine.records import DegradedRow
from council.engine.strongest import find_absent_strongest
from council.events import HEDGED, Attempted, Faulted
from council.settings.catalogue import LISTED_PROVIDERS
from council.text_cleanup import single_line
from council.types import FinalState

if TYPE_CHECKING:  # the module needs pydantic
    from council.engine.plan_object import PlanAttachment

COVERAGE_HOLE = "coverage_hole"  # state that the CI gate looks for: the judges did not see all of the material


@dataclass(frozen=True, slots=True)
class StatementCaveat:
    seat: str
    phase: str
    state: str  # coverage_hole | cut | unseen | truncated | prose | unread | dropped
    reason: str
    line: str  # the sentence above the answer; empty if another line covers it


def list_caveats(minutes: Minutes) -> list[StatementCaveat]:
    """Return each caveat once per seat, with the first phase in which it happened, in seating order."""
    names = [seat.name for seat in minutes.council_seats]
    judging = minutes.plan.get("task") == "validate"
    found: dict[tuple[str, str, str], StatementCaveat] = {}
    attached = minutes.plan.get("attachments") or []
    for said in minutes.statements:
        if attached and said.seat in names and (unseen := find_unseen(said.seat, said.phase, said.served_by, attached)):
            found.setdefault((said.seat, unseen.state, unseen.reason), unseen)
        labels = minutes.phases[said.phase].labels.get(said.seat, {})
        for one in _statement_caveats(said, judging, labels) if said.seat in names else ():
            found.setdefault((one.seat, one.state, one.reason), one)
    return sorted(found.values(), key=lambda one: names.index(one.seat))


def _statement_caveats(said: StatementMinutes, judging: bool, labels: Mapping[str, str]) -> Iterator[StatementCaveat]:
    unseen = said.cut_material if judging else []
    for cut in unseen:
        yield StatementCaveat(
            said.seat, said.phase, COVERAGE_HOLE, f"{cut}: too long for {said.served_by} as {said.seat}", ""
        )
    for part in said.unanswered if judging else []:
        yield StatementCaveat(said.seat, said.phase, COVERAGE_HOLE, f"{part}: {said.seat} did not answer", "")
    if rest := [cut for cut in said.cut if cut not in unseen]:
        reason = unblind(f"cut to fit {said.served_by}: {', '.join(rest)}", labels)
        yield StatementCaveat(said.seat, said.phase, "cut", reason, f"{said.seat} did not see everything: {reason}.")
    if said.state == "truncated":
        reason = "cut off at its length limit, but complete as a reply: it counts with confidence LOW"
        yield StatementCaveat(said.seat, said.phase, "truncated", reason, f"{said.seat}'s answer was {reason}.")
    if said.missing:
        reason = (
            f"answered in prose instead of its typed reply, also when asked again; missing: {', '.join(said.missing)}"
        )
        yield StatementCaveat(said.seat, said.phase, "prose", reason, f"{said.seat} {reason}.")
    if said.unread:
        owner = f"the {said.seat}" if said.seat in ("chair", "referee") else said.seat
        reason = f"{owner}'s reply: {'; '.join(said.unread)} could not be read"
        yield StatementCaveat(said.seat, said.phase, "unread", reason, f"{reason[0].upper()}{reason[1:]}.")
    if said.dropped:
        reason = f"{said.served_by} was asked without {', '.join(said.dropped)}, which it refused"
        yield StatementCaveat(said.seat, said.phase, "dropped", reason, f"{said.seat}: {reason}.")


def find_unseen(seat: str, phase: str, member: str, attached: Sequence[PlanAttachment]) -> StatementCaveat | None:
    """Return the caveat of a statement whose member cannot see an attachment."""
    rows = [row for row in attached if member in row["unseen_members"]]
    hidden = [row["path"] for row in rows if not row["has_text"]]
    pages = [row["path"] for row in rows if row["has_text"]]
    parts = [f"did not see {', '.join(hidden)}"] if hidden else []
    parts += [f"saw the text but not the pages of {', '.join(pages)}"] if pages else []
    if not parts:
        return None
    kinds = dict.fromkeys("PDFs" if row.get("pages") else "images" for row in rows)
    reason = f"{' and '.join(parts)} ({member} takes no {' and no '.join(kinds)})"
    return StatementCaveat(seat, phase, "unseen", reason, f"{seat} {reason}.")


@dataclass(frozen=True, slots=True)
class Fallback:
    seat: str
    phase: str
    requested: str
    state: str  # failure state of the requested member; empty if it was not recorded
    served_by: str

    @property
    def reason(self) -> str:
        if self.state == HEDGED:
            return f"requested {self.requested}, which was slower: {self.served_by} answered first"
        failed = f"which {self.state}" if self.state.startswith("failed") else f"which was {self.state or 'absent'}"
        return f"requested {self.requested}, {failed}: {self.served_by} answered instead"


def list_fallbacks(minutes: Minutes) -> list[Fallback]:
    """Return each fallback once per seat and member, with the first phase in which it happened, in seating order."""
    models = {seat.name: seat.model for seat in minutes.council_seats}
    found: dict[tuple[str, str], Fallback] = {}
    for said in minutes.statements:
        requested = models.get(said.seat)
        if requested and said.served_by not in ("", requested) and not minutes.is_from_fork(said):
            state = _find_failure_state(minutes, said.key, requested)
            fallback = Fallback(said.seat, said.phase, requested, state, said.served_by)
            found.setdefault((said.seat, said.served_by), fallback)
    names = list(models)
    return sorted(found.values(), key=lambda one: names.index(one.seat))


def _find_failure_state(minutes: Minutes, key: str, requested: str) -> str:
    attempts = [one for one in minutes.troubles if isinstance(one, Attempted) and one.key == key]
    return next((one.fallback_state for one in attempts if one.fallback_for == requested), "")


BANNER_THRESHOLD = 0.8  # below this share of the asked seats, readers are warned
MAX_NAMED_SEATS = 5  # of one line; more are counted
NUMBER_WORDS = (
    "none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
NO_MATERIAL = "no material was shown to the judges: they judged the question alone, so the verdict is at best WARN"

NOT_ENDED = "the run has not ended, so it has no answer and no trust level yet"
STOP_REASONS = {
    "interrupted": "interrupted before the last step",
    "cancelled": "cancelled before the last step",
    "budget": "stopped by the budget",
    "chair": "no chair was available; below is a digest of the statements, without a ruling",
    "quorum": "too few seats answered{where} to continue",
}
RESUME_COMMANDS = {  # what follows the reason where a command can be typed
    "interrupted": "`council resume {run}` continues from here",
    "cancelled": "`council resume {run}` continues from here",
    "budget": "raise it and run `council resume {run}` to continue",
    "quorum": "`council resume {run}` asks the absent ones again",
}
RESUME_WORDS = {  # what follows the reason beside a button
    "interrupted": "resume it to continue from here",
    "cancelled": "resume it to continue from here",
    "budget": "raise the cap (`max_cost`) to continue",
    "quorum": "resume it to ask the absent ones again",
}


def build_degraded_rows(minutes: Minutes) -> list[DegradedRow]:
    """Return one row per missing seat or part; `seat` is null if a row concerns no single seat."""
    rows = [_build_row(one.phase, "fallback", one.reason, one.seat) for one in list_fallbacks(minutes)]
    absences = list_absences(minutes)
    rows += [_build_row(missed.phase, missed.state, missed.reason, missed.seat) for missed in absences]
    rows += [_build_row(one.phase, one.state, one.reason, one.seat) for one in list_caveats(minutes)]
    is_row_of_chair = minutes.stopped == "chair" and any(_is_chair(minutes, missed.seat) for missed in absences)
    if minutes.stopped and not minutes.active and not is_row_of_chair:
        rows.append(_build_row(_last_phase(minutes), minutes.stopped, minutes.reason))
    if why := minutes.verdict.get("incomplete"):
        rows.append(_build_row(_last_phase(minutes), "incomplete", why))
    rows += [_build_row(None, COVERAGE_HOLE, hole) for hole in list_coverage_holes(minutes)]
    notices = [*_list_notices(minutes), *_list_verdict_notices(minutes)]
    return rows + [_build_row(None, "notice", notice) for notice in notices]


def _list_notices(minutes: Minutes) -> list[str]:
    return [*minutes.plan.get("notices", []), *format_hedges(minutes), *_format_shared_members(minutes)]


def _build_row(phase: str | None, state: str, reason: str, seat: str | None = None) -> DegradedRow:
    return {"seat": seat, "phase": phase, "state": state, "reason": reason}


def _last_phase(minutes: Minutes) -> str | None:
    return minutes.rounds[-1].name if minutes.rounds else None


def list_absences(minutes: Minutes) -> list[AbsenceMinutes]:
    """Return each absence once: only the first for a seat that is out for the whole run."""
    return [missed for missed in minutes.absences if not missed.since]


def format_degraded_lines(minutes: Minutes) -> list[str]:
    """Return the sentences above the answer in a report, the most important first."""
    return [*_format_status(minutes), *_format_parts(minutes)]


def format_page_lines(minutes: Minutes) -> list[str]:
    """Return the sentences above the answer where a button stands beside them: each cause once, and no command."""
    return [*_format_status_words(minutes), *_format_parts(minutes)]


def _format_parts(minutes: Minutes) -> list[str]:
    return [
        *_format_fallbacks(list_fallbacks(minutes)),
        *_format_missing_parts(minutes),
        *map(single_line, _list_notices(minutes)),
    ]


def format_missing_lines(minutes: Minutes) -> list[str]:
    """Return the sentences about what is missing, above the answer on standard output."""
    return [*_format_status(minutes), *_format_missing_parts(minutes)]


def _format_missing_parts(minutes: Minutes) -> list[str]:
    caveats = list_caveats(minutes)
    return [
        *_format_absences(minutes),
        *(single_line(one.line, 400) for one in caveats if one.line),
        *_format_single_draft(minutes),
        *_format_coverage_holes(minutes, caveats),
        *map(single_line, _list_verdict_notices(minutes)),
    ]


def format_notice_lines(minutes: Minutes) -> list[str]:
    """Return the notices about fallbacks and shared members, for standard error."""
    return [*_format_fallbacks(list_fallbacks(minutes)), *map(single_line, _format_shared_members(minutes))]


def format_hedges(minutes: Minutes) -> list[str]:
    """Return one line for each member that was slow, with the member that was asked too."""
    return [
        f"{one.seat} was hedged in {format_phase_in(one.key.rpartition('/')[0])}: {one.member} had not answered after {one.after:.3g} s, "
        f"so {one.by} was asked too."
        for one in minutes.hedges
    ]


def _list_verdict_notices(minutes: Minutes) -> list[str]:
    empty = [NO_MATERIAL] if (minutes.verdict.get("details") or {}).get("empty") else []
    return [*empty, *minutes.verdict.get("caveats", [])]


def list_coverage_holes(minutes: Minutes) -> list[str]:
    """Return the files that the judges should have seen but did not, with the reason: `src/big.py: over 256 KB`."""
    packet = minutes.plan.get("packet") or {}
    if minutes.plan.get("task") != "validate":
        return []
    reasons = {item["path"]: item["why"] for item in packet.get("skipped") or []}
    return [f"{path}: {reasons[path]}" if reasons.get(path) else path for path in packet.get("holes") or []]


def _format_coverage_holes(minutes: Minutes, caveats: list[StatementCaveat]) -> list[str]:
    missing = [*list_coverage_holes(minutes), *(one.reason for one in caveats if one.state == COVERAGE_HOLE)]
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    shown = single_line("; ".join(missing[:5]), 600)
    return [f"Not shown to the judges: {shown}{more}. The verdict can be no better than WARN."] if missing else []


def _format_shared_members(minutes: Minutes) -> list[str]:
    sharing = defaultdict(list)
    for seat in minutes.planned_seats:
        if seat.served_by:
            sharing[seat.served_by].append(seat)
    return [
        f"{join_names([seat.name for seat in seats])} were all served by {member}, so their agreement means less."
        for member, seats in sharing.items()
        if len({seat.model for seat in seats}) > 1
    ]


def _format_fallbacks(fallbacks: list[Fallback]) -> list[str]:
    """Return one line for the seats with the same members and the same failure."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in fallbacks:
        groups.setdefault((one.requested, one.state, one.served_by), []).append(one.seat)
    lines = []
    for (requested, state, served_by), names in groups.items():
        how = f": {served_by} answered first"
        if state != HEDGED:
            failed = single_line(describe_state(state)) if state else "did not answer"
            how = f" ({failed}): {served_by} answered instead"
        lines.append(single_line(f"{join_names(names)} requested {requested}{how}.", 400))
    return lines


def _format_status(minutes: Minutes) -> list[str]:
    if minutes.active:
        return [f"{minutes.active.upper()}: {NOT_ENDED}."]
    if minutes.status == "complete":
        return []
    if minutes.status == "failed":
        return [f"FAILED: {_describe_failure(minutes)}; `council resume {minutes.run}` asks again."]
    command = RESUME_COMMANDS.get(minutes.stopped, "").format(run=minutes.run)
    if minutes.status == "running":
        command = f"`council resume {minutes.run}` continues from its last step"
    return [f"INCOMPLETE: {'; '.join(filter(None, [_describe_incomplete(minutes), command]))}."]


def _format_status_words(minutes: Minutes) -> list[str]:
    """Return why a run is not complete, unless its absences tell it."""
    if minutes.active:
        return [f"{NOT_ENDED[0].upper()}{NOT_ENDED[1:]}."]
    if minutes.status == "complete" or (minutes.status == "failed" and list_absences(minutes)):
        return []
    why = _describe_failure(minutes) if minutes.status == "failed" else _describe_incomplete(minutes)
    line = "; ".join(filter(None, [why, RESUME_WORDS.get(minutes.stopped, "")]))
    return [f"{line[0].upper()}{line[1:]}."]


def _describe_failure(minutes: Minutes) -> str:
    if minutes.stopped in ("interrupted", "cancelled", "budget"):
        return f"{minutes.stopped} before any seat answered".replace("budget", "stopped by the budget")
    if minutes.absences or not minutes.reason:
        return "no seat answered"
    return single_line(minutes.reason).rstrip(".")


def _describe_incomplete(minutes: Minutes) -> str:
    if minutes.status == "running":
        return "the run has not ended"
    if minutes.stopped in STOP_REASONS:
        return STOP_REASONS[minutes.stopped].format(where=_format_quorum_phase(minutes))
    reason = minutes.verdict.get("incomplete") or minutes.reason or "the last step of the protocol was not done"
    return single_line(reason).rstrip(".")


def _format_quorum_phase(minutes: Minutes) -> str:
    """Format the phase in which quorum was lost: ` in attack (0 of 2)`."""
    if not minutes.rounds:
        return ""
    phase = minutes.rounds[-1]
    return f" in {format_phase_in(phase.name)} ({len(phase.said)} of {len({*phase.asked, *phase.absent})})"


def _format_absences(minutes: Minutes) -> list[str]:
    """Return a line for seats with the same phase, state and consequence, and one per vendor that refused its key."""
    missing = list_absences(minutes)
    locked_out = _list_locked_out(minutes, missing)
    groups = _group_absences(minutes, [one for one in missing if one not in locked_out])
    rows = [(_describe_absences(minutes, group), _is_never_answered(minutes, group)) for group in groups]
    rows += [(line, _is_never_answered(minutes, group)) for line, group in _describe_locked_out(minutes, locked_out)]
    last = max((n for n, (_, is_never_answered) in enumerate(rows) if is_never_answered), default=-1)
    strongest = find_absent_strongest(minutes)
    missed = f"; {single_line(strongest)} is the strongest" if strongest else ""
    asked, answered = count_asked_seats(minutes), minutes.answered_count
    caution = "" if answered >= BANNER_THRESHOLD * asked else ", so weigh it accordingly"
    count = f" What follows is from {_spell(answered)} of {_spell(asked)} seats{caution}{missed}."
    return [f"{line}{count if n == last else ''}" for n, (line, _) in enumerate(rows)]


def _spell(number: int) -> str:
    return NUMBER_WORDS[number] if number < len(NUMBER_WORDS) else f"{number:,}"


def _is_never_answered(minutes: Minutes, group: list[AbsenceMinutes]) -> bool:
    return any(_find_consequence(minutes, missed) == "never_answered" for missed in group)


def _list_locked_out(minutes: Minutes, missing: list[AbsenceMinutes]) -> list[AbsenceMinutes]:
    """Return the absences because of keys and logins or, if no seat answered, of several vendors."""
    if not minutes.answered_count and any(len(_find_problems(minutes, one)) > 1 for one in missing):
        return [one for one in missing if _find_problems(minutes, one)]
    refused = [
        one
        for one in missing
        if one.state == "failed(auth)" and all(fault.kind == "auth" for fault in _list_faults(minutes, one))
    ]
    return refused if len(refused) > 1 or any(len(_find_problems(minutes, one)) > 1 for one in refused) else []


def _list_faults(minutes: Minutes, missed: AbsenceMinutes) -> list[Faulted]:
    return [one for one in minutes.troubles if isinstance(one, Faulted) and one.key == missed.key]


def _find_problems(minutes: Minutes, missed: AbsenceMinutes) -> dict[str, str]:
    """Return the last problem of each vendor that was asked for a seat."""
    return {
        _name_endpoint(fault.member): _describe_problem(fault.member, fault.kind, fault.detail)
        for fault in _list_faults(minutes, missed)
    }


def _describe_problem(member: str, kind: str, detail: str) -> str:
    """Describe a fault: `anthropic refused the key: 401: invalid x-api-key; check ANTHROPIC_API_KEY`."""
    what = "login" if member.startswith("cli:") else "key"
    refused = f" refused the {what}" if kind == "auth" else ""
    return f"{single_line(_name_endpoint(member))}{refused}: {single_line(detail).rstrip('.')}"


def _name_endpoint(member: str) -> str:
    """Return what has the key or login of a member: its provider, or its command-line agent."""
    provider = member.partition(":")[0]
    return member if provider == "cli" else provider


def _describe_locked_out(minutes: Minutes, locked_out: list[AbsenceMinutes]) -> list[tuple[str, list[AbsenceMinutes]]]:
    """Return one line for seats that only one vendor could serve, and one for each vendor of the other seats."""
    groups: dict[frozenset[str], list[AbsenceMinutes]] = {}
    problems: dict[str, str] = {}
    for missed in locked_out:
        model = minutes.seat(missed.seat).model
        found = _find_problems(minutes, missed)
        found = found or {_name_endpoint(model): _describe_problem(model, "auth", missed.reason)}
        problems |= {name: problem for name, problem in found.items() if name not in problems}
        groups.setdefault(frozenset(found), []).append(missed)
    lines: list[tuple[str, list[AbsenceMinutes]]] = []
    for names, group in groups.items():
        seats = join_names(list(dict.fromkeys(_format_seat(minutes, one) for one in group)))
        if len(names) == 1:
            lines.append((_end_sentence(f"{seats} did not answer: {problems[next(iter(names))]}"), group))
        elif minutes.answered_count:
            lines.append((f"{seats} did not answer: every key was refused.", group))
    shared = {name for names in groups if len(names) > 1 for name in names}
    return lines + [(_end_sentence(problem), []) for name, problem in problems.items() if name in shared]


def _end_sentence(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def _group_absences(minutes: Minutes, missing: list[AbsenceMinutes]) -> list[list[AbsenceMinutes]]:
    """Return the absences by phase, state and consequence. The chair is alone."""
    groups: dict[tuple[str, FinalState, Consequence, bool], list[AbsenceMinutes]] = {}
    for missed in missing:
        key = (
            _name_phase(minutes, missed),
            missed.state,
            _find_consequence(minutes, missed),
            _is_chair(minutes, missed.seat),
        )
        groups.setdefault(key, []).append(missed)
    return list(groups.values())


def _describe_absences(minutes: Minutes, group: list[AbsenceMinutes]) -> str:
    """Describe the absence of seats: `gamma did not answer in round 2 (gemini-3.1-pro: ran out of time).`"""
    first = group[0]
    seats = [_format_seat(minutes, missed) for missed in group]
    who = join_names(seats) if len(seats) <= MAX_NAMED_SEATS else f"{_spell(len(seats))} seats"
    never = _is_never_answered(minutes, group)
    where = "" if never else f" in {format_phase_in(_name_phase(minutes, first))}"
    whys = dict.fromkeys(single_line(missed.reason).rstrip(".") for missed in group if missed.reason)
    member = _format_member(minutes.seat(first.seat).model) if len(group) == 1 else ""
    reason = single_line(": ".join(filter(None, [member, describe_state(first.state), " / ".join(whys)])), 500)
    line = f"{who} did not answer{where} ({reason})."
    return f"{line}{_describe_consequence(minutes, group)}"


def _format_member(member: str) -> str:
    """Return a member without its vendor, if the vendor is one of the usual ones."""
    provider, _, model = single_line(member).partition(":")
    return model if model and provider in LISTED_PROVIDERS else single_line(member).rstrip(":")


Consequence = Literal["", "helper", "never_answered", "earlier_counts", "answered_later", "rest_counts"]
CONSEQUENCES: dict[Consequence, tuple[str, str]] = {  # for one seat and for several; others are told elsewhere
    "earlier_counts": (" Its earlier statement counts.", " Their earlier statements count."),
    "answered_later": (" It answered later.", " They answered later."),
    "rest_counts": (" The rest of its answer counts.", " The rest of their answers counts."),
}


def _find_consequence(minutes: Minutes, missed: AbsenceMinutes) -> Consequence:
    """Return what an absence means for the answer. Explorers, a clerk and the chair only serve the council."""
    if minutes.host(missed.seat):
        return "helper"
    seat = next((seat for seat in minutes.planned_seats if seat.name == missed.seat), None)
    if seat is None or not minutes.answered_count:
        return ""
    if not seat.statements:
        return "never_answered"
    joined = minutes.phases[missed.phase.partition("/")[0]].said.get(missed.seat)
    if joined and joined.unanswered and minutes.is_private_phase(missed.phase):
        return "rest_counts"
    return "earlier_counts" if _answered_before(minutes, missed) else "answered_later"


def _answered_before(minutes: Minutes, missed: AbsenceMinutes) -> bool:
    earlier = takewhile(lambda phase: phase.name != missed.phase, minutes.phases.values())
    return any(missed.seat in phase.said and not missed.phase.startswith(f"{phase.name}/") for phase in earlier)


def _format_seat(minutes: Minutes, missed: AbsenceMinutes) -> str:
    return "the chair" if _is_chair(minutes, missed.seat) else single_line(missed.seat)


def _is_chair(minutes: Minutes, seat: str) -> bool:
    return minutes.chair is not None and seat == minutes.chair.name


def _name_phase(minutes: Minutes, missed: AbsenceMinutes) -> str:
    """Return the phase of an absence; only the last part of a private phase."""
    return missed.phase.rpartition("/")[2] if minutes.is_private_phase(missed.phase) else missed.phase


def _describe_consequence(minutes: Minutes, group: list[AbsenceMinutes]) -> str:
    """Describe the consequence that the absences of a group share, as a sentence."""
    consequence = _find_consequence(minutes, group[0])
    if consequence == "helper":
        hosts = list(dict.fromkeys(single_line(minutes.host(missed.seat)) for missed in group))
        continues = "continues" if len(hosts) == 1 else "continue"
        return f" {join_names(hosts)} {continues} without {'it' if len(group) == 1 else 'them'}."
    return CONSEQUENCES.get(consequence, ("", ""))[len(group) > 1]


def count_asked_seats(minutes: Minutes) -> int:
    """Return the number of seats in the plan, without those that a complete run did not need."""
    return 0 if minutes.is_empty_run else len(minutes.needed_seats)


def _format_single_draft(minutes: Minutes) -> list[str]:
    draft = minutes.phases.get("draft")
    if minutes.verdict.get("incomplete"):  # the protocol already gave its reason
        return []
    if next(iter(minutes.phases), "") != "draft":  # other seats answered in an earlier phase
        return []
    if not draft or draft.ended is None or len(draft.said) != 1 or count_asked_seats(minutes) < 2:
        return []
    return [f"Only {next(iter(draft.said))} drafted: nothing was compared, the answer rests on one draft."]


def join_names(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
