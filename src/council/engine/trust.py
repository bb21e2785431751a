"""How far to trust an answer: whether the seats agree, and the one table behind the trust line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from council.engine.degraded import build_degraded_rows, count_asked_seats, format_phase_in
from council.engine.minutes import Minutes, SeatMinutes, StatementMinutes
from council.money import format_usd
from council.settings.catalogue import LOCAL_MEMBER
from council.text_cleanup import single_line
from council.types import Agreement, Json, Round, TrustFact

MAX_DETAILS = 2  # examples in one reason

# Agreement


def count_voices(served: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return the voice of each seat, from its name, its requested member and the member that answered.

    Seats that share a member because of a fallback are one voice: it would agree with itself.
    """
    rows = list(served)
    sharing = Counter(member for _, _, member in rows if member)
    replaced = {member for _, requested, member in rows if member and member != requested}
    return {name: member if sharing[member] > 1 and member in replaced else name for name, _, member in rows}


def round_voices(answers: Round[Any]) -> dict[str, str]:
    """Return the voice of each seat of a round."""
    said = answers.values()
    return count_voices((one.seat.name, one.seat.member, one.outcome.served_by) for one in said)


def compute_agreement(shared_by: Iterable[str] | None, contested: bool, voices: Mapping[str, str]) -> Agreement:
    """Return whether the seats share the recommendation of the answer; empty if that was not assessed.

    full: all of them, and nothing is contested. none: no two of them. partial: everything between.
    """
    everyone = set(voices.values())
    if shared_by is None or len(everyone) < 2:
        return ""
    seats = [seat for seat in shared_by if seat in voices]
    holders = {voices[seat] for seat in seats}
    if len(holders) < 2:
        return "none"
    return "full" if set(seats) == voices.keys() and not contested else "partial"


def assess_notes(notes: Json | None, voices: Mapping[str, str]) -> tuple[Agreement, tuple[TrustFact, ...]]:
    """Return the agreement that the chair's notes show, and the facts that limit trust."""
    if notes is None:
        return "", ()
    points = tuple(TrustFact("contested_points", one["point"]) for one in notes["contested"])
    return compute_agreement(notes["recommendation_shared_by"], bool(points), voices), points


def find_shared_by(minutes: Minutes) -> list[str] | None:
    """Return the seats whose own recommendation is that of the answer; None if the run does not say."""
    verdict = minutes.verdict
    details, notes = verdict.get("details") or {}, verdict.get("notes") or {}
    if details.get("opinions"):
        return [one["seat"] for one in details["opinions"] if one["verdict"] == verdict.get("verdict")] or None
    if notes.get("recommendation_shared_by") is not None:
        return list(notes["recommendation_shared_by"])
    referee = details.get("referee") or {}
    if referee.get("shared_by"):
        return list(referee["shared_by"])
    stances = details.get("stances") or {}
    if stances and details.get("leader") and verdict.get("outcome") == "SURVIVED":
        return [details["leader"], *(seat for seat, stance in stances.items() if stance == "STAND")]
    return None


# The strongest seat

UNKNOWN_CHANGES = {
    "no_prices": "not assessed, because the prices do not tell which member is the strongest",
    "not_recorded": "not assessed whether the council changed its recommendation",
    "disagree": "the council gave no single verdict",
}


def compare_strongest(minutes: Minutes) -> Json | None:
    """Return whether the council changed the answer of its strongest seat, and what that answer used; None without two answers.

    The member with the highest price counts as the strongest. If all seats have one member, it is the first seat.
    """
    names = [seat["name"] for seat in minutes.plan.get("seats") or ()]
    rounds = ([phase.said[name] for name in names if name in phase.said] for phase in minutes.phases.values())
    drafts: list[StatementMinutes] = next(filter(None, rounds), [])
    if len(drafts) < 2 or minutes.status != "complete" or not minutes.verdict.get("answer"):
        return None
    said, by = _find_strongest(drafts, minutes.priced)
    if said is None:
        return {
            "seat": None,
            "member": None,
            "by": None,
            "changed": None,
            "unknown": "no_prices",
            "usd": None,
            "tokens": None,
        }
    kept, unknown = _is_kept(minutes, said)
    return {
        "seat": said.seat, "member": said.served_by, "by": by, "changed": None if kept is None else not kept, "unknown": unknown,
        "usd": minutes.billed.get(said.key), "tokens": said.usage.input + said.usage.output,
    }  # fmt: skip


def _find_strongest(drafts: list[StatementMinutes], prices: Mapping[str, float]) -> tuple[StatementMinutes | None, str]:
    """Return the first draft of the member with the highest price, and by what it was chosen; None if no single one has it."""
    members = dict.fromkeys(said.served_by for said in drafts)
    if len(members) == 1:
        return drafts[0], "one_member"
    known = sorted((prices[name] for name in members if name in prices), reverse=True)
    if len(known) < len(members) or known[0] == known[1]:
        return None, ""
    return next(said for said in drafts if prices[said.served_by] == known[0]), "price"


def _is_kept(minutes: Minutes, said: StatementMinutes) -> tuple[bool | None, str]:
    """Return whether the answer keeps the recommendation of a draft, and if that is not known, why."""
    verdict, details = minutes.verdict, minutes.verdict.get("details") or {}
    if combined := verdict.get("verdict"):
        own = (said.reply or {}).get("verdict")
        if combined == "DISAGREE":
            return None, "disagree"
        return (own == combined, "") if own else (None, "not_recorded")
    if details.get("leader") == said.seat and verdict.get("outcome"):
        return verdict["outcome"] != "OVERTURNED", ""
    shared = find_shared_by(minutes)
    if details.get("referee") and len(minutes.statements_of(said.seat)) > 1:
        return None, "not_recorded"  # the referee says what the seat recommended at the end, not at first
    return (None, "not_recorded") if shared is None else (said.seat in shared, "")


def format_strongest(report: Json, *, with_name: bool = True) -> str:
    """Return the line about the strongest seat, also without its name at the start; empty if the report has none."""
    found = report.get("strongest")
    if not found:
        return ""
    unknown = UNKNOWN_CHANGES.get(found["unknown"], "")
    start = "strongest seat " if with_name else ""
    if not found["seat"]:
        return f"{start}{unknown}"
    why = "the highest price" if found["by"] == "price" else "the member of all seats"
    what = unknown or f"the council {'changed' if found['changed'] else 'kept'} its recommendation"
    return f"{start}{found['seat']} ({found['member']}, {why}): {what}; {_format_use(found, report)}"


def _format_use(found: Json, report: Json) -> str:
    usd = report["cost"]["usd"]
    if found["usd"] and usd:
        return f"its answer cost {format_usd(found['usd'])}, the council {format_usd(usd)}"
    tokens = report["tokens"]
    return f"its answer used {found['tokens']:,} tokens, the council {tokens['in'] + tokens['out']:,}"


# The trust line

Level = Literal["HIGH", "MEDIUM", "LOW", "CONTESTED"]
LEVELS: tuple[Level, ...] = ("HIGH", "MEDIUM", "LOW", "CONTESTED")  # from the highest to the lowest

# One row per fact, from the lowest level to the highest: its level, and the reason as printed after "Trust: MEDIUM — ". `{detail}` is text of the fact.
TABLE: dict[str, tuple[Level, str]] = {
    "disagree": ("CONTESTED", "the judges disagree"),
    "contested": ("CONTESTED", "the answer is contested"),
    "open_fatal": ("CONTESTED", "a fatal issue is open"),
    "open_dispute": ("CONTESTED", "members still disagree"),
    "one_seat": ("LOW", "{detail}"),
    "not_complete": ("LOW", "the run is {detail}"),
    "embedded": ("LOW", "the small embedded model answered"),
    "no_material": ("LOW", "no material was reviewed"),
    "not_shared": ("LOW", "no two seats share the recommendation"),
    "low_confidence": ("LOW", "confidence LOW"),
    "absent": ("MEDIUM", "{detail}"),
    "one_vendor": ("MEDIUM", "all answers are from one vendor"),
    "partial_agreement": ("MEDIUM", "the seats agree only in part"),
    "not_assessed": ("MEDIUM", "agreement was not assessed"),
    "modified": ("MEDIUM", "the answer was changed after criticism"),
    "landed": ("MEDIUM", "severe criticism was valid"),
    "unruled": ("MEDIUM", "an issue was not ruled on"),
    "contested_points": ("MEDIUM", "contested"),
    "no_evidence": ("MEDIUM", "no evidence was verified"),
    "shared_member": ("MEDIUM", "one model answered for several seats by fallback"),
    "inconsistent": ("MEDIUM", "a judge said PASS and holds a critical finding"),
    "substituted": ("MEDIUM", "the words matched no file, so other material was reviewed"),
    "weak_flip": ("MEDIUM", "a judge changed its verdict without citing evidence"),
    "degraded": ("MEDIUM", "{detail}"),
    "medium_confidence": ("MEDIUM", "confidence MEDIUM"),
}
CONFIDENCE_FACTS = {"CONTESTED": "contested", "LOW": "low_confidence", "MEDIUM": "medium_confidence"}
AGREEMENT_FACTS = {"full": "", "partial": "partial_agreement", "none": "not_shared"}


def compute_trust(minutes: Minutes, degraded: list[Json] | None = None) -> Json:
    """Return the trust field of the report. The lowest matched level wins; `because` lists every matched row.

    `degraded` are the rows of `build_degraded_rows`, if they are known.
    """
    facts: dict[str, list[str]] = {}
    for kind, detail in _list_facts(minutes, build_degraded_rows(minutes) if degraded is None else degraded):
        details = facts.setdefault(kind, [])
        if detail and detail not in details:
            details.append(detail)
    kinds = [kind for kind in TABLE if kind in facts]
    level = TABLE[kinds[0]][0] if kinds else "HIGH"
    return {"level": level, "because": [_format_reason(kind, facts[kind]) for kind in kinds]}


def format_trust(trust: Json) -> str:
    """Return the trust line: `Trust: MEDIUM — beta is absent; agreement was not assessed`."""
    return single_line(f"Trust: {trust['level']}{' — ' if trust['because'] else ''}{'; '.join(trust['because'])}", 1000)


def _format_reason(kind: str, details: list[str]) -> str:
    more = f" and {len(details) - MAX_DETAILS} more" if len(details) > MAX_DETAILS else ""
    detail = "; ".join(one.rstrip(" .") for one in details[:MAX_DETAILS]) + more
    text = TABLE[kind][1]
    return text.format(detail=detail) if "{detail}" in text else f"{text}: {detail}" if detail else text


def _list_facts(minutes: Minutes, degraded: list[Json]) -> Iterator[tuple[str, str]]:
    """Return the facts of a run that limit trust, as a kind of the table and a detail."""
    verdict = minutes.verdict
    yield from _list_verdict_facts(verdict)
    for row in verdict.get("trust_facts") or []:
        if row["kind"] in TABLE:
            yield row["kind"], single_line(row["detail"], 90)
    if minutes.status != "complete":
        yield "not_complete", "without an answer" if minutes.status == "failed" else "incomplete"
    yield from _list_seat_facts(minutes, degraded)


def _list_verdict_facts(verdict: Json) -> Iterator[tuple[str, str]]:
    if verdict.get("verdict") == "DISAGREE":
        yield "disagree", ""
    if kind := CONFIDENCE_FACTS.get(verdict.get("confidence") or ""):
        yield kind, ""
    if verdict.get("outcome") == "MODIFIED":
        yield "modified", ""
    if (verdict.get("details") or {}).get("empty"):
        yield "no_material", ""
    if kind := AGREEMENT_FACTS.get(verdict.get("agreement") or "", "not_assessed"):
        yield kind, ""


def _list_seat_facts(minutes: Minutes, degraded: list[Json]) -> Iterator[tuple[str, str]]:
    seats = minutes.planned_seats
    answered = [seat for seat in seats if seat.statements]
    absent = [seat.name for seat in seats if not seat.statements]
    voices = set(count_voices((seat.name, seat.model, seat.served_by) for seat in answered).values())
    if len(voices) < 2:
        shared = f"all answers are from {answered[0].served_by}, by fallback" if len(answered) > 1 else ""
        yield "one_seat", shared or ("only one seat answered" if answered else "no seat answered")
    elif len(vendors := _list_vendors(minutes, answered)) == 1:
        yield "one_vendor", vendors.pop()
    chair = [minutes.chair] if minutes.chair else []
    if LOCAL_MEMBER in (seat.served_by for seat in [*answered, *chair]):
        yield "embedded", ""
    if absent:
        count = f"{len(answered)} of {count_asked_seats(minutes)} seats answered"
        yield "absent", f"{', '.join(absent)} {'is' if len(absent) == 1 else 'are'} absent ({count})"
    for row in degraded:
        if row["state"] != "notice" and row["seat"] not in absent:
            yield "degraded", _describe_degraded(row)


def list_supports(minutes: Minutes) -> list[str]:
    """Return the facts that speak for the answer, for readers; they do not change the level."""
    return [*_list_seat_supports(minutes), *_list_verdict_supports(minutes.verdict)]


def _list_seat_supports(minutes: Minutes) -> Iterator[str]:
    answered = [seat for seat in minutes.planned_seats if seat.statements]
    asked, vendors = count_asked_seats(minutes), len(_list_vendors(minutes, answered))
    if len(answered) == asked > 1:
        yield f"{asked} of {asked} seats answered" + (f", from {vendors} vendors" if vendors > 1 else "")


def _list_verdict_supports(verdict: Json) -> Iterator[str]:
    details, notes = verdict.get("details") or {}, verdict.get("notes") or {}
    opinions = details.get("opinions") or []
    if len(opinions) > 1 and len({one["verdict"] for one in opinions}) == 1:
        yield f"all {len(opinions)} judges say {opinions[0]['verdict']}"
    elif verdict.get("agreement") == "full":
        yield "all seats agree with the answer"
    shared = notes.get("recommendation_shared_by") or (details.get("referee") or {}).get("shared_by") or []
    if len(shared) > 1 and verdict.get("agreement") != "full":
        yield f"the recommendation is shared by {', '.join(shared)}"
    findings = verdict.get("findings") or []
    if verified := sum(1 for one in findings if isinstance(one, dict) and one.get("verified")):
        yield f"{verified} of {len(findings)} findings quote the material"
    rulings = [row for row in details.get("rulings") or [] if not row.get("same_as")]
    if rulings and (dismissed := sum(1 for row in rulings if row.get("landed") is False)):
        yield f"{dismissed} of {len(rulings)} points of the attack were dismissed"
    points = [one for one in verdict.get("consensus") or [] if isinstance(one, dict) and one.get("statements")]
    if points:
        yield f"members agree on {len(points)} compared {'point' if len(points) == 1 else 'points'}"
    if cited := sum(1 for one in verdict.get("sources") or [] if one.get("cited")):
        yield f"{cited} {'source is' if cited == 1 else 'sources are'} cited"


def _list_vendors(minutes: Minutes, answered: list[SeatMinutes]) -> set[str]:
    """Return the vendors of the members that answered."""
    known = {seat.model: seat.vendor for seat in answered}
    served = [seat.served_by or seat.model for seat in answered]
    return {known.get(member) or member.partition(":")[0] for member in served}


DEGRADED_TEXTS = {
    "fallback": "a fallback answered for {seat}",
    "cut": "{seat} did not see everything",
    "unseen": "{seat} did not see all attachments",
    "truncated": "the answer of {seat} was cut off",
    "prose": "{seat} answered in prose, without the parts that were asked for",
    "unread": "part of the reply of {seat} could not be read",
    "dropped": "{seat} was asked without some parameters",
    "coverage_hole": "part of the material was not shown",
}


def _describe_degraded(row: Json) -> str:
    text = DEGRADED_TEXTS.get(row["state"]) or ("{seat} did not answer in {where}" if row["seat"] else "{reason}")
    return single_line(text.format(**row, where=format_phase_in(row["phase"] or "")), 120)
