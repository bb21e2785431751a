"""Build the verdict of an attack: apply the rules to the ruling, and state what is missing from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from council.engine.agreement import compute_agreement, join_sides, list_shared_voices, round_voices
from council.engine.records import Dissent, RulingRow
from council.protocols.adversarial import rules as rule
from council.protocols.adversarial.replies import Attack, Change, Ruling, Triage
from council.protocols.common.flags import list_draft_facts
from council.protocols.common.issues import MAX_ISSUES, SEVERE, Issue, Rulings, apply_rulings, match_ids
from council.protocols.common.points import list_differences
from council.text_cleanup import strip_confidence_section
from council.types import SEVERITIES, OutcomeFacts, Round, TrustFact, Verdict

CHOSEN_BY_RULE = "the chair did not triage, and this draft declares the fewest CRITICAL flags"


def number_issues(attacks: Round[Attack]) -> dict[str, Issue]:
    """Return the issues that count, under ids that the chair can cite: beta-1, beta-2, gamma-1."""
    return {
        f"{name}-{n}": issue for name, attack in attacks.items() for n, issue in attack.reply.counted_issues.items()
    }


def review_ruling(ruling: Ruling, issues: Mapping[str, Issue]) -> str:
    """Return why a ruling needs its repair turn, worded for the model; empty if it does not."""
    return "; ".join(rule.list_defects(ruling.outcome, _apply(ruling, issues)))


def _apply(ruling: Ruling, issues: Mapping[str, Issue]) -> Rulings:
    return apply_rulings({name: issue.severity for name, issue in issues.items()}, ruling.points)


def build_verdict(
    ruling: Ruling,
    attacks: Round[Attack],
    triage: Triage,
    drafts: Round[None],
    *,
    by_rule: bool = False,
    facts: Sequence[TrustFact] = (),
) -> Verdict:
    """Build the verdict, with the `facts` of the flow. Without an attack only a consensus has an outcome."""
    answer = strip_confidence_section(ruling.answer)
    is_replaced = ruling.outcome == "OVERTURNED" and not triage.consensus
    built_on = ruling.replaced_by if is_replaced else triage.leader
    sides = join_sides((side.seat, side.position, side.assumes) for side in triage.sides)
    base = Verdict(
        answer,
        assessment=ruling.assessment,
        common=tuple(triage.agreed),
        differences=list_differences(triage.contested, sides),
        caveats=(f"{triage.leader.capitalize()} leads by rule: {CHOSEN_BY_RULE}.",) if by_rule else (),
        trust_facts=(
            *facts,
            *list_shared_voices(round_voices(drafts)),
            *list_draft_facts({built_on: drafts[built_on].said} if built_on in drafts else {}, answer),
        ),
        details={
            "leader": triage.leader,
            "reason": triage.reason,
            "agreed": triage.agreed,
            "contested": triage.contested,
            "rulings": [],
        },
    )
    if triage.consensus:
        return replace(
            base,
            outcome="SURVIVED",
            confidence="HIGH",
            agreement=compute_agreement(list(drafts), contested=False, voices=round_voices(drafts)),
            shared_by=tuple(drafts),
            result=OutcomeFacts("consensus", triage.leader, total=len(drafts)),
        )
    if not attacks:
        missing = "no attacker answered, so the answer below was not tested"
        result = OutcomeFacts("untested", triage.leader)
        return replace(base, assessment="", incomplete=missing, result=result)
    return add_rulings(base, ruling, attacks, triage, drafts)


def add_rulings(base: Verdict, ruling: Ruling, attacks: Round[Attack], triage: Triage, drafts: Round[None]) -> Verdict:
    """Return the verdict on an attack, with the outcome, the rulings and a computed confidence."""
    issues = number_issues(attacks)
    rulings = _apply(ruling, issues)
    stances = {name: attack.reply.stance for name, attack in attacks.items()}
    contradictions = rule.list_contradictions(ruling.outcome, rulings)
    rejecting = {name: attack.reply for name, attack in attacks.items() if attack.reply.verdict == "REJECTED"}
    unsupported = tuple(name for name, attack in rejecting.items() if attack.stance == "STAND")  # no issue to rule on
    holders = rule.find_first_holders(triage, drafts, ruling.outcome, ruling.replaced_by)
    settled = rule.is_settled(ruling.outcome, stances.values())
    voices = round_voices(drafts)
    facts = rule.list_trust_facts(
        ruling.outcome, rulings, stances, triage.contested, contradictory=bool(contradictions)
    )
    level = rule.compute_confidence(
        ruling.outcome,
        [row.severity for row in rulings.landed],
        list(stances.values()),
        open_issues=[row.severity for row in rulings.open],
        contradictory=bool(contradictions),
        unclear=bool(rulings.unknown or unsupported),
    )
    if unsupported:
        facts.append(TrustFact("unsupported_rejection", seats=unsupported, count=len(unsupported)))
    return replace(
        base,
        outcome=ruling.outcome,
        confidence=level,
        dissent=tuple(list_dissent(attacks, ruling.outcome)),
        agreement=compute_agreement(holders, bool(triage.contested) and not settled, voices),
        shared_by=holders,
        joined=tuple(name for name in stances if settled and name not in holders) if holders else (),
        differences=() if settled else base.differences,
        result=describe_outcome(ruling, rulings, triage.leader),
        trust_facts=(*facts, *base.trust_facts),
        caveats=(*base.caveats, *list_caveats(ruling, rulings, contradictions, attacks, unsupported)),
        details=base.details | {"rulings": describe_rulings(rulings, issues), "stances": stances},
    )


def describe_outcome(ruling: Ruling, rulings: Rulings, leader: str) -> OutcomeFacts | None:
    """Return the facts of the outcome line; None without an outcome."""
    if ruling.outcome is None:
        return None
    facts = OutcomeFacts("unopposed", leader, count=len(rulings.landed), total=len(rulings.distinct))
    if ruling.outcome == "OVERTURNED":
        return replace(facts, kind="overturned", replaced_by=ruling.replaced_by if ruling.replaced_by != leader else "")
    if ruling.outcome == "MODIFIED":
        changes = count_changes(ruling.changes, rulings)
        return replace(facts, kind="modified" if facts.total else "corrected", changes=changes)
    return replace(facts, kind="survived") if facts.total else facts


def count_changes(changes: Sequence[Change], rulings: Rulings) -> int:
    """Return the number of changes. Rows on issues that the chair joined are one change."""
    roots = {row.id: row.same_as or row.id for row in rulings.rows}
    found = set()
    for change in changes:
        ids = match_ids(change.issue, roots)
        found.add(roots[ids[0]] if ids else change.change)
    return len(found)


def describe_contradictions(outcome: str | None, rulings: Rulings) -> str:
    """Return for the reader what makes a ruling contradict itself."""
    parts = []
    if rulings.contradictory:
        parts.append("one attack is ruled both ways")
    if outcome in ("SURVIVED", "MODIFIED") and any(row.severity == "FATAL" for row in rulings.landed):
        parts.append("it keeps the leading draft although a fatal attack landed")
    if outcome == "OVERTURNED" and not any(row.severity in SEVERE for row in rulings.landed):
        parts.append("it overturns the leading draft although no severe attack landed")
    return "; ".join(parts)


def describe_open(rulings: Rulings) -> str:
    """Return for the reader how many attacks were not ruled on, and how severe the worst is."""
    worst = min((row.severity for row in rulings.unruled), key=SEVERITIES.index).lower()
    number = len(rulings.unruled)
    return f"one attack ({worst})" if number == 1 else f"{number} attacks (the worst is {worst})"


def describe_rulings(rulings: Rulings, issues: Mapping[str, Issue]) -> list[RulingRow]:
    """Return the rulings for the report, each with the issue it is about."""
    return [
        {
            "id": row.id,
            "severity": row.severity,
            "landed": row.landed,
            "why": row.why,
            "same_as": row.same_as,
            "hits": issues[row.id].hits,
            "flaw": issues[row.id].flaw,
            "correction": issues[row.id].correction,
        }
        for row in rulings.rows
    ]


def list_caveats(
    ruling: Ruling,
    rulings: Rulings,
    contradictions: list[str],
    attacks: Round[Attack],
    unsupported: Sequence[str],
) -> list[str]:
    """Return what the reader has to know before the answer."""
    lines = []
    if contradictions:
        lines.append(f"The chair's ruling contradicts itself: {describe_contradictions(ruling.outcome, rulings)}.")
    if ruling.outcome is None:
        lines.append("The chair named no outcome.")
    if rulings.unruled:
        lines.append(f"The chair did not rule on {describe_open(rulings)}, so it counts as open.")
    if rulings.unknown:
        lines.append("The chair ruled on an attack that no attacker made; that ruling does not count.")
    lines += [f"{name.capitalize()} rejected the leading draft but named no severe error." for name in unsupported]
    lines += [
        f"{name.capitalize()} raised {len(attack.reply.issues)} issues; only the {MAX_ISSUES} most severe were ruled on."
        for name, attack in attacks.items()
        if len(attack.reply.issues) > MAX_ISSUES
    ]
    return lines


def list_dissent(attacks: Round[Attack], outcome: str | None) -> list[Dissent]:
    """Return the attackers that said REJECTED although the draft was not overturned."""
    return [
        {"seat": name, "position": "REJECTED", "text": attack.said}
        for name, attack in attacks.items()
        if attack.reply.stance == "REJECTED" and outcome != "OVERTURNED"
    ]
