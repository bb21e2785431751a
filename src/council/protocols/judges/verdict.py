"""Build the verdict of a review from the statements: votes, findings, shifts, disagreements. No model call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from council.engine.council import Council
from council.protocols.judges import findings as finding_rules
from council.protocols.judges import rules as consensus_rules
from council.protocols.judges.findings import Finding, FindingGroup
from council.protocols.judges.options import JudgesOptions
from council.protocols.judges.replies import Opinion, SecondOpinion
from council.protocols.judges.rules import Consensus, Vote
from council.types import VERDICT_ORDER, Json, Round, Statement, Verdict


def build_verdict(council: Council, options: JudgesOptions, r1: Round[Opinion], r2: Round[SecondOpinion]) -> Verdict:
    """Build the verdict. Second-round opinions replace first-round opinions of the same judge."""
    packet = council.packet
    final: dict[str, Statement[Opinion]] = {name: r2.get(name, statement) for name, statement in r1.items()}  # type: ignore[misc]
    votes = [_to_vote(statement) for statement in final.values()]
    texts = {file.path: file.content for file in packet.files}
    late, early = _collect_findings(final, texts), _collect_findings(dict(r1), texts)
    challenges = _collect_challenges(r2)
    result = _apply_rule(options, votes, late, finding_rules.find_survivors(early, late, challenges))
    groups = _group_findings(late, challenges, votes)
    holes = [*packet.holes, *_list_cut_material(r1, r2)]
    verdict = consensus_rules.cap_verdict(result.verdict, holes, packet.empty)
    confidence = "MEDIUM" if options.quick and result.confidence == "HIGH" else result.confidence
    rows = finding_rules.build_rows(groups)
    return Verdict(
        _choose_recommendation(final, groups),
        verdict=verdict, confidence=confidence, findings=tuple(rows),
        consensus=tuple(row for row in rows if len(row["found_by"]) > 1),
        disagreements=tuple(_list_disagreements(final, result, verdict)),
        insights=tuple(_list_single_family_findings(groups, r1)), shifts=tuple(_list_shifts(r1, r2)),
        dissent=tuple(_list_dissent(final, result)),
        details={
            "verdicts": {name: _build_verdict_history(name, r1, r2) for name in r1}, "families": dict(result.families),
            "n_eff": consensus_rules.count_effective_votes(votes), "rule": options.rule, "weakened": list(result.weakened),
            "inconsistent": list(finding_rules.find_inconsistent_judges(votes, late)), "dropped": _list_dropped_findings(early, late, r2),
            "converged": bool(r2) and consensus_rules.has_converged(_list_verdicts(r1), _list_verdicts(final)),
            "r2_missing": [name for name in r1 if r2 and name not in r2],
            "rounds": 2 if r2 else 1, "fidelity": "full", "notes": {name: statement.reply.debate_notes.model_dump() for name, statement in r2.items()},
            "quick": options.quick, "profile": options.profile, "mixed": options.mixed, "holes": holes, "empty": packet.empty,
        },
    )  # fmt: skip


def _list_cut_material(*rounds: Round[Any]) -> list[str]:
    """Return material that was cut for at least one judge: it counts as a coverage hole."""
    return list(
        dict.fromkeys(cut for one in rounds for statement in one.values() for cut in statement.outcome.cut_material)
    )


def _to_vote(statement: Statement[Opinion]) -> Vote:
    return Vote(
        statement.seat.name,
        statement.seat.vendor,
        statement.reply.verdict,
        statement.reply.confidence,
        statement.outcome.state,
    )


def _list_verdicts(statements: Mapping[str, Statement[Opinion]]) -> list[str]:
    return [one.reply.verdict for one in statements.values()]


def _collect_findings(statements: Mapping[str, Statement[Opinion]], texts: Mapping[str, str]) -> list[Finding]:
    rows = [(name, row.model_dump()) for name, one in statements.items() for row in one.reply.findings]
    return [finding_rules.verify_finding(finding_rules.parse_finding(name, row), texts) for name, row in rows]


def _collect_challenges(r2: Round[SecondOpinion]) -> list[finding_rules.Challenge]:
    return [
        finding_rules.Challenge(one.target_judge, one.claim)
        for statement in r2.values()
        for one in statement.reply.debate_notes.challenges
    ]


def _apply_rule(
    options: JudgesOptions, votes: list[Vote], findings: list[Finding], survived: frozenset[str]
) -> Consensus:
    several = options.mixed or len({vote.vendor for vote in votes}) > 1  # --mixed, or seats set to several vendors
    if options.rule == "corroborated":
        return consensus_rules.decide_by_corroboration(
            votes, mixed=several, verified=finding_rules.find_verified_seats(findings), survived=survived
        )
    return consensus_rules.decide_by_consensus(votes, mixed=several)


def _group_findings(
    findings: list[Finding], challenges: list[finding_rules.Challenge], votes: list[Vote]
) -> list[FindingGroup]:
    groups = [
        replace(one, disputed=any(finding_rules.is_challenged(member, challenges) for member in one.members))
        for one in finding_rules.group_findings(findings, len(votes))
    ]
    return finding_rules.sort_groups(groups, [vote.seat for vote in votes if vote.verdict == "FAIL"])


def _choose_recommendation(final: Mapping[str, Statement[Opinion]], groups: list[FindingGroup]) -> str:
    """Return the fix of the most severe verified finding, else the recommendation of the strictest judge, with its source."""
    for one in groups:
        if any(member.verified for member in one.members) and one.severity != "minor":
            lead = one.lead
            advice = lead.fix if lead.fix != finding_rules.NO_FIX else final[lead.seat].reply.recommendation
            return f"{advice} ({lead.location}, {', '.join(one.found_by)})"
    strictest = max(final.values(), key=lambda said: VERDICT_ORDER.index(said.reply.verdict))
    return f"{strictest.reply.recommendation} ({strictest.seat.name})"


def _list_disagreements(final: Mapping[str, Statement[Opinion]], result: Consensus, verdict: str | None) -> list[Json]:
    """Return the judges' verdicts and reasons if they differ."""
    if len(set(_list_verdicts(final))) < 2:
        return []
    positions = [
        {
            "seat": name,
            "family": statement.seat.vendor,
            "verdict": statement.reply.verdict,
            "why": statement.reply.key_insight,
        }
        for name, statement in final.items()
    ]
    return [
        {"issue": "the verdict" if verdict != "DISAGREE" else "the verdict, between families", "positions": positions}
    ]


def _list_dissent(final: Mapping[str, Statement[Opinion]], result: Consensus) -> list[Json]:
    return [
        {"seat": name, "position": statement.reply.verdict, "text": statement.reply.key_insight}
        for name, statement in final.items()
        if result.verdict != "DISAGREE" and statement.reply.verdict != result.verdict
    ]


def _list_single_family_findings(groups: list[FindingGroup], r1: Round[Opinion]) -> list[Json]:
    """Return findings that only one vendor family reported."""
    vendors = {seat.name: seat.vendor for seat in r1.seats}
    if len(set(vendors.values())) < 2:
        return []
    by_family = [(one, {vendors[seat] for seat in one.found_by}) for one in groups]
    return [
        {"family": next(iter(families)), "finding": one.lead.description, "severity": one.severity}
        for one, families in by_family
        if len(families) == 1
    ]


def _build_verdict_history(name: str, r1: Round[Opinion], r2: Round[SecondOpinion]) -> Json:
    first, last = r1[name].reply, r2[name].reply if name in r2 else None
    return {"r1": first.verdict, "r2": last.verdict if last else None, "confidence": (last or first).confidence}


def _list_shifts(r1: Round[Opinion], r2: Round[SecondOpinion]) -> list[Json]:
    """Return each second-round judge's verdicts before and after, its reason, and whether the change is a weak flip."""
    return [
        {
            "seat": name, "from": r1[name].reply.verdict, "to": statement.reply.verdict,
            "changed": r1[name].reply.verdict != statement.reply.verdict, "reason": statement.reply.reason,
            "weak": consensus_rules.is_weak_flip(r1[name].reply.verdict, statement.reply.verdict, *statement.reply.revision_reasons),
        }
        for name, statement in r2.items()
    ]  # fmt: skip


def _list_dropped_findings(
    first_findings: list[Finding], final_findings: list[Finding], r2: Round[SecondOpinion]
) -> list[Json]:
    dropped = finding_rules.find_dropped([one for one in first_findings if one.seat in r2], final_findings)
    return [{"seat": one.seat, "finding": one.description, "severity": one.severity} for one in dropped]
