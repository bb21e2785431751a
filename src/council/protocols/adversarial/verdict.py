"""Build the verdict of an attack: apply the rules to the ruling, and state what is missing from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from council.protocols.adversarial.replies import MAX_ISSUES, Attack, Issue, Ruling, Triage
from council.protocols.adversarial.rules import (
    SEVERE,
    Rulings,
    apply_rulings,
    assess_agreement,
    compute_confidence,
    format_unknown,
    list_contradictions,
    list_defects,
    list_trust_facts,
)
from council.types import Json, Round, Verdict

CHOSEN_BY_RULE = "the chair did not triage, and this draft declares the fewest CRITICAL flags"


def number_issues(attacks: Round[Attack]) -> dict[str, Issue]:
    """Return the issues that count, under ids that the chair can cite: beta-1, beta-2, gamma-1."""
    return {
        f"{name}-{n}": issue for name, attack in attacks.items() for n, issue in attack.reply.counted_issues.items()
    }


def review_ruling(ruling: Ruling, issues: Mapping[str, Issue]) -> str:
    """Return why a ruling needs its repair turn, worded for the model; empty if it does not."""
    return "; ".join(list_defects(ruling.outcome, _apply(ruling, issues)))


def _apply(ruling: Ruling, issues: Mapping[str, Issue]) -> Rulings:
    return apply_rulings({name: issue.severity for name, issue in issues.items()}, ruling.points)


def build_verdict(ruling: Ruling, attacks: Round[Attack], triage: Triage, *, by_rule: bool = False) -> Verdict:
    """Build the verdict with a computed confidence. Without an attack the outcome is SURVIVED after a consensus, else none."""
    details = {"leader": triage.leader, "reason": triage.reason, "agreed": triage.agreed, "contested": triage.contested, "rulings": []}  # fmt: skip
    if triage.consensus:
        answer = f"{ruling.answer}{format_assessment('HIGH', ruling)}"
        facts = list_trust_facts(Rulings(), {}, triage.contested, settled=False)
        return Verdict(
            answer, outcome="SURVIVED", confidence="HIGH", agreement="full", details=details, trust_facts=facts
        )
    caveats = [f"{triage.leader.capitalize()} leads by rule: {CHOSEN_BY_RULE}."] if by_rule else []
    if not attacks:
        missing = "no attacker answered, so the answer below was not tested"
        return Verdict(ruling.answer, incomplete=missing, details=details, caveats=tuple(caveats))
    issues = number_issues(attacks)
    rulings = _apply(ruling, issues)
    stances = {name: attack.reply.verdict for name, attack in attacks.items()}
    unsupported = [name for name, attack in attacks.items() if is_unsupported_rejection(attack.reply)]
    contradictions = list_contradictions(ruling.outcome, rulings)
    level = compute_confidence(
        ruling.outcome, [row.severity for row in rulings.landed], list(stances.values()),
        open_issues=[row.severity for row in rulings.open], contradictory=bool(contradictions),
        unclear=bool(rulings.unknown or unsupported),
    )  # fmt: skip
    agreement = assess_agreement(ruling.outcome, list(stances.values()))
    hits = {name: issue.hits or issue.flaw for name, issue in issues.items()}
    return Verdict(
        f"{ruling.answer}{format_assessment(level, ruling)}", outcome=ruling.outcome, confidence=level,
        dissent=tuple(list_dissent(attacks, ruling.outcome)), agreement=agreement,
        trust_facts=list_trust_facts(rulings, hits, triage.contested, settled=agreement == "full"),
        caveats=(*caveats, *list_caveats(ruling, rulings, contradictions, attacks, unsupported)),
        details=details | {"rulings": describe_rulings(rulings, issues), "stances": stances},
    )  # fmt: skip


def is_unsupported_rejection(attack: Attack) -> bool:
    """Return whether an attacker rejects the draft without an issue that could be ruled on."""
    return attack.verdict == "REJECTED" and not any(issue.severity in SEVERE for issue in attack.issues)


def format_assessment(level: str, ruling: Ruling) -> str:
    return f"\n\n## Confidence Assessment\n\n**{level}.** {ruling.assessment}".rstrip()


def describe_rulings(rulings: Rulings, issues: Mapping[str, Issue]) -> list[Json]:
    """Return the rulings for the report, each with the issue it is about."""
    return [
        {**asdict(row), **{name: getattr(issues[row.id], name) for name in ("hits", "flaw", "correction")}}
        for row in rulings.rows
    ]


def list_caveats(
    ruling: Ruling, rulings: Rulings, contradictions: list[str], attacks: Round[Attack], unsupported: list[str]
) -> list[str]:
    """Return what the reader has to know before the answer."""
    lines = []
    if contradictions:
        lines.append(f"The chair's ruling contradicts itself, so confidence is CONTESTED: {'; '.join(contradictions)}.")
    if ruling.outcome is None:
        lines.append("The chair named no outcome.")
    if rulings.open:
        named = ", ".join(f"{row.id} ({row.severity})" for row in rulings.open)
        lines.append(f"Counted as open, because the chair did not rule on it: {named}.")
    if rulings.unknown:
        lines.append(f"Not counted, because no attacker raised it: the ruling on {format_unknown(rulings)}.")
    lines += [
        f"{name.capitalize()} rejected the leading draft but named no FATAL or MAJOR issue." for name in unsupported
    ]
    lines += [
        f"{name.capitalize()} raised {len(attack.reply.issues)} issues; only the {MAX_ISSUES} most severe were ruled on."
        for name, attack in attacks.items()
        if len(attack.reply.issues) > MAX_ISSUES
    ]
    return lines


def list_dissent(attacks: Round[Attack], outcome: str | None) -> list[Json]:
    """Return the attackers that said REJECTED although the draft was not overturned."""
    rejected = [name for name, attack in attacks.items() if attack.reply.verdict == "REJECTED"]
    return [
        {"seat": name, "position": "REJECTED", "text": attacks[name].said}
        for name in rejected
        if outcome != "OVERTURNED"
    ]
