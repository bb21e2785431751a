"""Count again what happened in a council, from the facts of its case: every reason for its trust level.

Each rule states when a reason is true. A reason of a report that no rule states is false, or a rule is missing here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from tests.acceptance.reader_cases import (
    QUESTIONS,
    AttackFacts,
    Case,
    CheckRound,
    ClaimFacts,
    Point,
    ReviewFacts,
    Truth,
)

# Reasons that contradict each other: one of them is false.
CONTRADICTIONS = (
    ("all_agree", "partial_agreement"),
    ("all_agree", "not_shared"),
    ("all_agree", "all_hold"),
    ("all_hold", "partial_agreement"),
    ("all_hold", "not_shared"),
    ("all_hold", "not_assessed"),
    ("all_hold", "shared_member"),
    ("all_hold", "one_voice"),
    ("all_hold", "overturned"),
    ("all_agree", "not_assessed"),
    ("all_agree", "contested_points"),
    ("all_agree", "open_dispute"),
    ("all_agree", "disagree"),
    ("all_agree", "no_common_point"),
    ("all_agree", "ballots_split"),
    ("all_agree", "ballots_differ"),
    ("all_agree", "overturned"),
    ("all_agree", "shared_member"),
    ("all_agree", "one_voice"),
    ("all_agree", "one_seat"),
    ("all_agree", "same_verdict"),  # one fact told twice
    ("same_verdict", "disagree"),
    ("same_verdict", "not_shared"),
    ("same_verdict", "partial_agreement"),
    ("same_verdict", "one_seat"),
    ("all_answered", "absent"),
    ("all_answered", "strongest_absent"),
    ("all_answered", "one_seat"),
    ("all_answered", "no_seat"),
    ("partial_agreement", "not_shared"),
    ("partial_agreement", "not_assessed"),
    ("not_shared", "not_assessed"),
    ("not_shared", "disagree"),
    ("partial_agreement", "disagree"),
    ("one_voice", "one_vendor"),
    ("one_voice", "shared_member"),
    ("one_voice", "same_verdict"),
    ("one_seat", "one_vendor"),
    ("one_seat", "one_voice"),
    ("agreed_points", "no_common_point"),
    ("partial_agreement", "no_common_point"),
    ("one_seat", "absent"),
    ("no_seat", "absent"),
    ("cited_sources", "no_sources"),
    ("cited_sources", "no_evidence"),
    ("no_sources", "no_evidence"),
    ("verified_findings", "no_quote"),
    ("ballots_split", "ballots_differ"),
    ("ballots_split", "few_ballots"),
    ("ballots_differ", "few_ballots"),
    ("all_agree", "few_ballots"),
    ("all_rejected", "fatal_landed"),
    ("all_rejected", "overturned"),
    ("all_rejected", "open_fatal"),
    ("modified", "overturned"),
    ("low_confidence", "medium_confidence"),
    ("checked", "not_checked"),
    ("checked", "error_corrected"),
    ("checked", "self_attacked"),
    ("not_checked", "error_open"),
    ("not_checked", "error_corrected"),
    ("self_attacked", "one_asked"),
    ("self_attacked", "all_answered"),
)


MAX_ISSUES = 6  # of an attacker, the most severe
MIN_BALLOTS = 3  # with fewer, one answer is first on all of them by chance


@dataclass(frozen=True)
class Reason:
    """A reason as a report gives it, without its words."""

    kind: str
    seats: tuple[str, ...] = ()
    count: int = 0
    total: int = 0


Rule = Callable[[Truth], Iterator[Reason]]


def recount(truth: Truth) -> set[Reason]:
    """Return the reasons that a report of this council must give, and no others."""
    return {reason for rule in RULES for reason in rule(truth)}


# Seats


def list_answered(truth: Truth) -> list[str]:
    return [seat for seat in truth.seats if truth.speakers[seat]]


def group_voices(truth: Truth) -> dict[str, list[str]]:
    """Return the seats of each voice. A member that stands in for a seat beside another one is one voice."""
    by_member: dict[str, list[str]] = {}
    for seat, member in truth.first_by.items():
        by_member.setdefault(member, []).append(seat)
    voices: dict[str, list[str]] = {}
    for member, seats in by_member.items():
        stands_in = any(truth.members[seat] != member for seat in seats)
        for seat in seats:
            voices.setdefault(member if stands_in else seat, []).append(seat)
    return voices


def is_one_voice(truth: Truth) -> bool:
    """Return whether a fallback let one member speak for all seats, at first or at the end."""
    last = {members[-1] for members in truth.speakers.values() if members}
    stands_in = any(members[-1] != truth.members[seat] for seat, members in truth.speakers.items() if members)
    return len(group_voices(truth)) == 1 or (len(last) == 1 and stands_in)


def list_vendors(truth: Truth) -> set[str]:
    return {member.partition(":")[0] for members in truth.speakers.values() for member in members}


def count_seats(truth: Truth) -> Iterator[Reason]:
    answered = list_answered(truth)
    names = tuple(answered)
    if not answered:
        yield Reason("no_seat")
    elif len(answered) == 1:
        if len(truth.seats) > 1:
            yield Reason("one_seat", names, 1)
        elif not (
            truth.self_attacks and truth.status == "complete"
        ):  # else "one member wrote it and attacked it" says it
            yield Reason("one_asked", names, 1)
    elif is_one_voice(truth):
        yield Reason("one_voice", names, len(names))
    elif len(list_vendors(truth)) == 1:
        yield Reason("one_vendor", names, len(names))
    if len(answered) == len(truth.seats) > 1:
        yield Reason("all_answered", (), len(answered), len(list_vendors(truth)))
    if truth.strongest and truth.strongest in truth.silent:
        yield Reason("strongest_absent", (truth.strongest,), len(answered), len(truth.seats))
    others = tuple(seat for seat in truth.silent if seat != truth.strongest)
    if others and len(answered) > 1:  # else "only alpha answered" says it
        yield Reason("absent", others, len(answered), len(truth.seats))


def count_shared_members(truth: Truth) -> Iterator[Reason]:
    voices = group_voices(truth)
    if truth.status == "complete" and not is_one_voice(truth):
        for seats in voices.values():
            if len(seats) > 1:
                yield Reason("shared_member", tuple(seats), len(seats))


def count_troubles(truth: Truth) -> Iterator[Reason]:
    is_complete = truth.status == "complete"  # else "the run is incomplete" says it
    for phase in dict.fromkeys(phase for _, phase in truth.missed if is_complete):
        seats = tuple(seat for seat, missed in truth.missed if missed == phase)
        yield Reason("missed_phase", seats, len(seats))
    cut = tuple(key.rpartition("/")[2] for key in truth.truncated)
    for kind, seats in (("fallback", truth.stand_ins), ("prose", truth.prose), ("truncated", cut)):
        if seats:
            yield Reason(kind, seats, len(seats))
    if truth.status != "complete":
        yield Reason("not_complete")


def count_doubts_of_drafts(truth: Truth) -> Iterator[Reason]:
    if truth.flags:
        yield Reason("unsettled_flag", tuple(truth.flags), sum(truth.flags.values()))
    if truth.low_marks:
        yield Reason("low_marks", truth.low_marks, len(truth.low_marks), truth.compared)


# Agreement


def list_holders(truth: Truth) -> tuple[str, ...]:
    """Return the seats whose first statement has the conclusion of the answer."""
    return tuple(seat for seat, conclusion in truth.first.items() if conclusion == truth.answer)


def has_agreement(truth: Truth) -> bool:
    """Return whether two voices spoke, so that they can agree or not."""
    return truth.status == "complete" and len(list_answered(truth)) > 1 and not is_one_voice(truth)


def count_recommendations(truth: Truth) -> Iterator[Reason]:
    if truth.claims or truth.review or not has_agreement(truth):
        return
    holders = list_holders(truth)
    voices = group_voices(truth)
    holding = [voice for voice, seats in voices.items() if set(seats) & set(holders)]
    if not truth.is_assessed or is_overruled(truth):
        yield Reason("not_assessed")
    elif len(holding) < 2:
        yield Reason("not_shared")
    elif len(holders) < len(truth.first):
        yield Reason("partial_agreement", holders, len(holders), len(list_answered(truth)))
    elif len(voices) == len(truth.first) == len(list_answered(truth)):
        yield Reason("all_hold" if is_disputed(truth) else "all_agree", holders, len(holders))
    if is_disputed(truth):
        yield Reason("contested_points", (), len(truth.points))


def is_disputed(truth: Truth) -> bool:
    """Return whether points are left on which the seats differ. Attackers that let the draft stand settle them."""
    return bool(truth.points) and not (truth.attack and is_settled(truth.attack))


def count_turns(truth: Truth) -> Iterator[Reason]:
    if truth.is_in_turn and truth.status == "complete" and len(list_answered(truth)) > 1:
        yield Reason("in_turn")


# Attack


def is_settled(attack: AttackFacts) -> bool:
    has_severe = any(set(severities) & {"F", "M"} for severities in attack.issues.values())
    return bool(attack.issues) and attack.outcome == "SURVIVED" and not has_severe


def list_issues(attack: AttackFacts) -> list[tuple[str, str, str]]:
    """Return (severity, ruling, attackers) of each issue. Joined issues are one, with the worst severity."""
    groups: dict[str, list[str]] = {}
    for seat, severities in attack.issues.items():
        worst = sorted(range(len(severities)), key=lambda n: "FMm".index(severities[n]))[:MAX_ISSUES]
        for n in sorted(worst):
            name = f"{seat}-{n + 1}"
            groups.setdefault(attack.same_as.get(name, name), []).append(name)
    found = []
    for names in groups.values():
        severity = min((severity_of(attack, name) for name in names), key="FMm".index)
        said = {attack.rulings.get(name, "") for name in names}
        ruling = "+" if "+" in said else "-" if said == {"-"} else ""
        found.append((severity, ruling, " ".join(name.partition("-")[0] for name in names)))
    return found


def severity_of(attack: AttackFacts, name: str) -> str:
    seat, _, number = name.partition("-")
    return attack.issues[seat][int(number) - 1]


def is_contradictory(attack: AttackFacts) -> bool:
    landed = [severity for severity, ruling, _ in list_issues(attack) if ruling == "+"]
    both = "both" in attack.rulings.values()
    keeps = attack.outcome in ("SURVIVED", "MODIFIED") and "F" in landed
    overturns = attack.outcome == "OVERTURNED" and not {"F", "M"} & set(landed)
    return both or keeps or overturns


def count_attacks(truth: Truth) -> Iterator[Reason]:
    attack = truth.attack
    if attack is None or attack.is_consensus or truth.status != "complete":
        return
    issues = list_issues(attack)
    total = len(issues)
    landed = [(severity, seats) for severity, ruling, seats in issues if ruling == "+"]
    severe = [severity for severity, _ in landed if severity in "FM"]
    both = {name.partition("-")[0] for name, ruling in attack.rulings.items() if ruling == "both"}
    unruled = [severity for severity, ruling, seats in issues if not ruling and not both & set(seats.split())]
    dismissed = [severity for severity, ruling, _ in issues if ruling == "-"]
    fatal_by = {seat for severity, seats in landed if severity == "F" for seat in seats.split()}
    rejecting = tuple(seat for seat, severities in attack.issues.items() if "F" in severities)
    fatal_rulings = {ruling for severity, ruling, _ in issues if severity == "F"}
    if is_contradictory(attack):
        yield Reason("contradictory_ruling")
    if attack.outcome == "OVERTURNED":
        yield Reason("overturned")
    if fatal_by:
        yield Reason("fatal_landed", tuple(seat for seat in rejecting if seat in fatal_by))
    if "F" in unruled:
        yield Reason("open_fatal", (), unruled.count("F"))
    if rejecting and len(rejecting) == len(attack.issues) and attack.outcome == "SURVIVED" and fatal_rulings == {"-"}:
        yield Reason("all_rejected", rejecting, len(rejecting))
    if attack.outcome == "MODIFIED":
        yield Reason("modified", (), len(landed), total)
    if severe:
        yield Reason("landed", (), len(severe), total)
    if others := [severity for severity in unruled if severity != "F"]:
        yield Reason("unruled", (), len(others), total)
    if attack.has_unknown or attack.outcome is None:
        yield Reason("unclear_ruling")
    if dismissed:
        yield Reason("dismissed", (), len(dismissed), total)
    unsupported = [
        seat for seat, word in attack.words.items() if word == "REJECTED" and not set(attack.issues[seat]) & {"F", "M"}
    ]
    if unsupported:
        yield Reason("unsupported_rejection", tuple(unsupported), len(unsupported))


def count_own_attacks(truth: Truth) -> Iterator[Reason]:
    attack = truth.attack
    if attack is None or attack.is_consensus or truth.status != "complete":
        return
    author = truth.first_by[attack.leader]
    same_choice = truth.members[attack.leader]  # a member that was chosen for both seats is no fallback
    own = [seat for seat in attack.issues if truth.speakers[seat][-1] == author and truth.members[seat] != same_choice]
    if own:
        yield Reason("own_attack", tuple(own), len(own))


# Ballots


def count_ballots(truth: Truth) -> Iterator[Reason]:
    if truth.ballots is None or truth.status != "complete":
        return
    top = find_first(truth)
    if everyone_agrees(truth):
        return
    if top is None or top[2] < 2 or 2 * top[1] <= top[2]:
        yield Reason("ballots_split")
    elif top[1] < top[2]:
        yield Reason("ballots_differ", (top[0],), top[1], top[2])
    elif top[2] < MIN_BALLOTS:
        yield Reason("few_ballots", (top[0],), top[2], top[2])


def everyone_agrees(truth: Truth) -> bool:
    is_told = truth.is_assessed and not is_overruled(truth)
    return is_told and len(list_holders(truth)) == len(truth.first) and not truth.points and has_agreement(truth)


def find_first(truth: Truth) -> tuple[str, int, int] | None:
    """Return the only answer in first place by mean rank, on how many ballots it is first, and how many rank it."""
    ballots = [order for order in (truth.ballots or {}).values() if len(order) > 1]
    ranks = {seat: [order.index(seat) + 1 for order in ballots if seat in order] for seat in truth.first}
    if not all(ranks.values()):
        return None
    means = {seat: Fraction(sum(of), len(of)) for seat, of in ranks.items()}
    best = [seat for seat in means if means[seat] == min(means.values())]
    return (best[0], ranks[best[0]].count(1), len(ranks[best[0]])) if len(best) == 1 else None


# The check of a finished text


class Found(NamedTuple):
    """An error that a reader found."""

    reader: str
    severity: str
    state: str


def list_found(reading: CheckRound) -> list[Found]:
    """Return the errors of a reading, the most severe first, each reader's worst six."""
    rows = []
    for reader, severities in reading.errors.items():
        worst = sorted(range(len(severities)), key=lambda n: "FMm".index(severities[n]))[:MAX_ISSUES]
        for n in sorted(worst):
            ruling = reading.rulings[f"{reader}-{n + 1}"] if reading.author else ""
            state = {"+": "corrected", "-": "dismissed"}.get(ruling, "open")
            rows.append(Found(reader, severities[n], state))
    return sorted(rows, key=lambda row: "FMm".index(row.severity))


def is_overruled(truth: Truth) -> bool:
    """Return whether a fatal error was corrected: then the answer may conclude something that no seat compared."""
    rows = [row for reading in truth.check or () for row in list_found(reading)]
    return any(row.severity == "F" and row.state == "corrected" for row in rows)


def count_check(truth: Truth) -> Iterator[Reason]:
    if truth.check is None or truth.status != "complete":
        return
    readings = [reading for reading in truth.check if reading.errors]
    if not readings:
        yield Reason("not_checked")
        return
    rows = [row for reading in readings for row in list_found(reading)]
    last = list_found(readings[-1])
    unsettled = [
        *(Reason(kind, list_raisers(found), len(found), len(rows)) for kind, found in list_unsettled(rows)),
        *(Reason("error_corrected", list_raisers(found), len(found), len(last)) for found in list_unread(last)),
    ]
    yield from unsettled
    if not unsettled:
        wrote = readings[-2].author if len(readings) > 1 else ""
        readers = tuple(reader for reader in readings[-1].errors if reader != wrote)
        yield Reason("checked", readers, len(readers))


def list_unsettled(rows: list[Found]) -> Iterator[tuple[str, list[Found]]]:
    for kind, state, severities in (
        ("error_open_fatal", "open", "F"),
        ("error_open", "open", "Mm"),
        ("error_dismissed_fatal", "dismissed", "F"),
        ("error_dismissed", "dismissed", "M"),
    ):
        found = [row for row in rows if row.state == state and row.severity in severities]
        if found:
            yield kind, found


def list_unread(last: list[Found]) -> Iterator[list[Found]]:
    """Yield the severe corrections of the last reading: no seat has read them."""
    corrected = [row for row in last if row.severity in "FM" and row.state == "corrected"]
    if corrected:
        yield corrected


def list_raisers(rows: list[Found]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.reader for row in rows))


def count_self_attacks(truth: Truth) -> Iterator[Reason]:
    if not truth.self_attacks or truth.status != "complete":
        return
    yield Reason("self_attacked", truth.seats, len(truth.self_attacks))
    severities, is_rewritten = truth.self_attacks[-1]
    if is_rewritten:
        return
    if fatal := severities.count("F"):
        yield Reason("error_open_fatal", truth.seats, fatal, len(severities))
    if others := len(severities) - fatal:
        yield Reason("error_open", truth.seats, others, len(severities))


# Claims


def find_open(claims: ClaimFacts) -> list[str]:
    """Return the questions on which seats still contradict each other after the second round."""
    found = []
    for question in QUESTIONS.values():
        answers = {seat: said[question] for seat, said in claims.answers.items() if question in said}
        words = claims.words.get(question, {})
        held = {answer for seat, answer in answers.items() if words.get(seat) != "CONCEDE"}
        maintained = [seat for seat in answers if words.get(seat, "MAINTAIN") == "MAINTAIN"]
        if len(set(answers.values())) > 1 and len(held) > 1 and maintained:
            found.append(question)
    return found


def find_agreed(claims: ClaimFacts) -> list[str]:
    """Return the questions that two or more seats answer alike, and none still otherwise."""
    found = []
    for question in QUESTIONS.values():
        words = claims.words.get(question, {})
        answers = [
            said[question] for seat, said in claims.answers.items() if question in said and words.get(seat) != "CONCEDE"
        ]
        nuanced = [seat for seat, word in words.items() if word == "NUANCE"]
        if len(answers) > 1 and len(set(answers)) == 1 and not nuanced:
            found.append(question)
    return found


def count_claims(truth: Truth) -> Iterator[Reason]:
    claims = truth.claims
    if claims is None:
        return
    opened = find_open(claims)
    agreed = find_agreed(claims)
    rows = [(seat, question, said[question]) for seat, said in claims.answers.items() for question in said]
    held = [row for row in rows if claims.words.get(row[1], {}).get(row[0], "MAINTAIN") == "MAINTAIN"]
    alike = any(one[0] != other[0] and one[1:] == other[1:] for one in held for other in held)
    compared = {question for seat, question, _ in rows if any(other != seat and question == q for other, q, _ in rows)}
    if opened:
        yield Reason("open_dispute")
    if claims.added:
        yield Reason("contested_points", (), 1)
    if len(claims.answers) > 1 and not alike:
        yield Reason("no_common_point")
    if agreed:
        yield Reason("agreed_points", (), len(agreed))
    if claims.cited:
        yield Reason("cited_sources", (), len(claims.cited))
    if not claims.cited and not any(claims.sources.values()):
        yield Reason("no_evidence" if claims.has_search else "no_sources")
    if not has_agreement(truth):
        return
    disputed = [q for q in compared if len({answer for _, question, answer in rows if question == q}) > 1]
    shared = [q for q in agreed if all(q in said for said in claims.answers.values())]
    counted = [row for row in rows if row[1] in agreed]
    is_full = bool(shared) and not disputed and not claims.added and 2 * len(counted) >= len(rows)
    if is_full and len(group_voices(truth)) == len(truth.first):
        yield Reason("all_agree", tuple(truth.first), len(truth.first))
    elif not is_full and (agreed or (alike and not opened)):
        yield Reason("partial_agreement")
    elif not compared:
        yield Reason("not_assessed")


# Reviews


def count_review(truth: Truth) -> Iterator[Reason]:
    review = truth.review
    if review is None or truth.status != "complete":
        return
    findings = [one for rows in review.findings.values() for one in rows]
    severe = [one for one in findings if one.severity != "minor"]
    if review.verdict == "DISAGREE":
        yield Reason("disagree")
    if review.is_empty:
        yield Reason("no_material")
    if review.is_substituted:
        yield Reason("substituted")
    if review.has_hole:
        yield Reason("coverage_hole")
    if severe and not any(one.has_quote for one in severe):
        yield Reason("no_quote", (), len(severe))
    if quoted := sum(one.has_quote for one in findings):
        yield Reason("verified_findings", (), quoted, len(findings))
    if review.weak:
        yield Reason("weak_flip", review.weak, len(review.weak))
    inconsistent = tuple(
        seat
        for seat, rows in review.findings.items()
        if review.last[seat] == "PASS" and any(one.severity == "critical" for one in rows)
    )
    if inconsistent:
        yield Reason("inconsistent", inconsistent, len(inconsistent))
    if review.disputed:
        yield Reason("contested_points", (), 1)
    if review.doubt:
        yield Reason(review.doubt)
    yield from count_votes(truth, review)


def count_votes(truth: Truth, review: ReviewFacts) -> Iterator[Reason]:
    if not has_agreement(truth) or review.verdict == "DISAGREE":
        return
    holders = list_holders(truth)
    voices = group_voices(truth)
    votes = [*truth.first.values(), *review.last.values()]
    if len(set(votes)) == 1 and len(truth.first) > 1:
        yield Reason("same_verdict", (), len(truth.first))
        return
    most = max(len({v for v, seats in voices.items() for s in seats if truth.first[s] == word}) for word in set(votes))
    if most < 2:
        yield Reason("not_shared")
    elif len(holders) < len(truth.first):
        yield Reason("partial_agreement", holders, len(holders), len(list_answered(truth)))
    elif len(voices) == len(truth.first):
        yield Reason("all_agree", holders, len(holders))


RULES: tuple[Rule, ...] = (
    count_seats,
    count_shared_members,
    count_troubles,
    count_doubts_of_drafts,
    count_recommendations,
    count_turns,
    count_attacks,
    count_own_attacks,
    count_ballots,
    count_check,
    count_self_attacks,
    count_claims,
    count_review,
)


# The line on agreement


def expect_positions(case: Case) -> str:
    """Return the line that says who differs or agrees, in English; empty if there is none."""
    truth = case.truth
    if truth.status != "complete":
        return ""
    points = list_points(truth)
    if points:
        more = len(points) - 1
        rest = {0: "", 1: "; 1 more point in the report"}.get(more, f"; {more} more points in the report")
        everyone = [reason.count for reason in recount(truth) if reason.kind == "all_hold"]
        start = f"They agree: {format_everyone(everyone[0])}; they differ on: " if everyone else "They differ: "
        return f"{start}{format_point(points[0])}{rest}"
    parts = list_agreements(truth)
    return f"They agree: {'; '.join(parts)}" if parts else ""


def list_points(truth: Truth) -> list[Point]:
    if truth.claims:
        opened = find_open(truth.claims)
        found = [
            Point(q, {seat: (said[q], "") for seat, said in truth.claims.answers.items() if q in said}) for q in opened
        ]
        return [*found, *([truth.claims.added] if truth.claims.added else [])]
    if truth.review:
        return list_review_points(truth.review)
    return list(truth.points) if is_disputed(truth) else []


def list_review_points(review: ReviewFacts) -> list[Point]:
    found = []
    if len(set(review.last.values())) > 1:
        first = {word: seat for seat, word in reversed(list(review.last.items()))}
        reasons = {word: f"{word}: {review.insights[seat]}" for word, seat in first.items()}
        found.append(Point("", {seat: (reasons[word], "") for seat, word in review.last.items()}))
    if review.disputed:
        finding, opponent, why = review.disputed
        owners = [seat for seat, rows in review.findings.items() if finding in rows]
        found.append(Point("", {**dict.fromkeys(owners, (finding.text, "")), opponent: (why, "")}))
    return found


def format_point(point: Point) -> str:
    sides: dict[tuple[str, str], list[str]] = {}
    for seat, side in point.sides.items():
        if side[0]:
            sides.setdefault(side, []).append(seat)
    told = [
        f"{position.rstrip('.')} ({join(seats)}{f', assuming {assumes}' if assumes else ''})"
        for (position, assumes), seats in sides.items()
    ]
    held = " or ".join(told) if len(told) > 1 else ""
    mark = " " if point.text.endswith("?") else ": "
    return f"{point.text}{mark}{held}" if point.text and held else point.text or held


def shorten_points(points: Sequence[str]) -> list[str]:
    """Return the first point and the number of the others."""
    more = len(points) - 1
    rest = [] if more < 1 else [f"{more} more point{'s' * (more > 1)} in the report"]
    return [*points[:1], *rest]


def list_agreements(truth: Truth) -> list[str]:
    reasons = {reason.kind: reason for reason in recount(truth)}
    can_agree = truth.status == "complete" and len(group_voices(truth)) > 1
    if truth.claims:
        agreed = [
            f"{q} {next(said[q] for said in truth.claims.answers.values() if q in said)}"
            for q in find_agreed(truth.claims)
        ]
        return shorten_points(agreed) if can_agree else []
    if not can_agree or {"not_shared", "not_assessed", "disagree"} & reasons.keys():
        return []
    parts = shorten_points(truth.agreed)
    is_told = truth.review or truth.is_settled or (truth.attack and truth.attack.is_consensus)  # by the outcome
    if (
        not parts
        and not is_told
        and list_holders(truth) == tuple(truth.first)
        and {"all_agree", "shared_member"} & reasons.keys()
    ):
        parts = [format_everyone(len(truth.first))]
    joined = [seat for seat in truth.last if truth.last[seat] == truth.answer != truth.first.get(seat)]
    if truth.attack and is_settled(truth.attack):  # the attackers found nothing against it
        joined = [seat for seat in truth.attack.issues if truth.first[seat] != truth.answer]
    if joined:
        parts.append(f"{join(joined)} joined after reading the others")
    return parts


def format_everyone(count: int) -> str:
    return "both recommend this" if count == 2 else f"all {count} recommend this"


def join(names: list[str]) -> str:
    names = [name.replace("_", " ") for name in names]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
