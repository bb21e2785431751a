"""Combine the judges' opinions into one verdict by rule, without a model call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from council.council import Council
from council.protocols.options import JudgesOptions
from council.replies import Opinion, SecondOpinion
from council.rules import consensus as consensus_rules
from council.rules import findings as finding_rules
from council.rules.consensus import Consensus, Vote
from council.rules.findings import Finding, Group
from council.types import WORDS_OF, Json, Round, Statement, Verdict


def judged(council: Council, chosen: JudgesOptions, r1: Round[Opinion], r2: Round[SecondOpinion]) -> Verdict:
    """Build the verdict. Second-round opinions replace first-round opinions of the same judge."""
    packet = council.packet
    final: dict[str, Statement[Opinion]] = {name: r2.get(name, statement) for name, statement in r1.items()}  # type: ignore[misc]
    votes = [_vote(statement) for statement in final.values()]
    texts = {file.path: file.content for file in packet.files}
    late, early = _findings(final, texts), _findings(dict(r1), texts)
    challenges = _challenges(r2)
    result = _ruled(chosen, votes, late, finding_rules.survivors(early, late, challenges))
    groups = _groups(late, challenges, votes)
    holes = [*packet.holes, *_unseen(r1, r2)]
    verdict = consensus_rules.capped(result.verdict, holes, packet.empty)
    confidence = "MEDIUM" if chosen.quick and result.confidence == "HIGH" else result.confidence
    rows = finding_rules.rows(groups)
    return Verdict(
        _recommendation(final, groups),
        verdict=verdict, confidence=confidence, findings=tuple(rows),
        consensus=tuple(row for row in rows if len(row["found_by"]) > 1),
        disagreements=tuple(_disagreements(final, result, verdict)),
        insights=tuple(_family_only(groups, r1)), shifts=tuple(_shifts(r1, r2)),
        dissent=tuple(_dissent(final, result)),
        details={
            "verdicts": {name: _verdicts(name, r1, r2) for name in r1}, "families": dict(result.families),
            "n_eff": consensus_rules.effective_votes(votes), "rule": chosen.rule, "weakened": list(result.weakened),
            "inconsistent": list(finding_rules.inconsistent(votes, late)), "dropped": _dropped(early, late, r2),
            "converged": bool(r2) and consensus_rules.converged(_words(r1), _words(final)),
            "r2_missing": [name for name in r1 if r2 and name not in r2],
            "rounds": 2 if r2 else 1, "fidelity": "full", "notes": {name: statement.reply.debate_notes.model_dump() for name, statement in r2.items()},
            "quick": chosen.quick, "profile": chosen.profile, "mixed": chosen.mixed, "holes": holes, "empty": packet.empty,
        },
    )  # fmt: skip


def _unseen(*rounds: Round[Any]) -> list[str]:
    """Return material that was cut for at least one judge: it counts as a coverage hole."""
    cuts = (cut for one in rounds for statement in one.values() for cut in statement.outcome.cut)
    return list(dict.fromkeys(cut for cut in cuts if not cut.startswith(WORDS_OF)))


def _vote(said: Statement[Opinion]) -> Vote:
    return Vote(said.seat.name, said.seat.vendor, said.reply.verdict, said.reply.confidence, said.outcome.state)


def _words(said: Mapping[str, Statement[Opinion]]) -> list[str]:
    return [one.reply.verdict for one in said.values()]


def _findings(said: Mapping[str, Statement[Opinion]], texts: Mapping[str, str]) -> list[Finding]:
    rows = [(name, row.model_dump()) for name, one in said.items() for row in one.reply.findings]
    return [finding_rules.verify(finding_rules.read_finding(name, row), texts) for name, row in rows]


def _challenges(r2: Round[SecondOpinion]) -> list[finding_rules.Challenge]:
    return [
        finding_rules.Challenge(one.target_judge, one.claim)
        for statement in r2.values()
        for one in statement.reply.debate_notes.challenges
    ]


def _ruled(chosen: JudgesOptions, votes: list[Vote], late: list[Finding], survived: frozenset[str]) -> Consensus:
    several = chosen.mixed or len({vote.vendor for vote in votes}) > 1  # --mixed, or seats set to several vendors
    if chosen.rule == "corroborated":
        return consensus_rules.corroborated(
            votes, mixed=several, verified=finding_rules.verified_seats(late), survived=survived
        )
    return consensus_rules.consensus(votes, mixed=several)


def _groups(late: list[Finding], challenges: list[finding_rules.Challenge], votes: list[Vote]) -> list[Group]:
    groups = [
        replace(one, disputed=any(finding_rules.is_challenged(member, challenges) for member in one.members))
        for one in finding_rules.group(late, len(votes))
    ]
    return finding_rules.ordered(groups, [vote.seat for vote in votes if vote.verdict == "FAIL"])


def _recommendation(final: Mapping[str, Statement[Opinion]], groups: list[Group]) -> str:
    """Return the fix of the most severe verified finding, else the recommendation of the strictest judge, with its source."""
    for one in groups:
        if any(member.verified for member in one.members) and one.severity != "minor":
            lead = one.lead
            advice = lead.fix if lead.fix != finding_rules.NO_FIX else final[lead.seat].reply.recommendation
            return f"{advice} ({lead.location}, {', '.join(one.found_by)})"
    strictest = max(final.values(), key=lambda said: consensus_rules.SCALE.index(said.reply.verdict))
    return f"{strictest.reply.recommendation} ({strictest.seat.name})"


def _disagreements(final: Mapping[str, Statement[Opinion]], whole: Consensus, verdict: str | None) -> list[Json]:
    """Return the judges' verdicts and reasons if they differ."""
    if len(set(_words(final))) < 2:
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


def _dissent(final: Mapping[str, Statement[Opinion]], whole: Consensus) -> list[Json]:
    return [
        {"seat": name, "position": statement.reply.verdict, "text": statement.reply.key_insight}
        for name, statement in final.items()
        if whole.verdict != "DISAGREE" and statement.reply.verdict != whole.verdict
    ]


def _family_only(groups: list[Group], r1: Round[Opinion]) -> list[Json]:
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


def _verdicts(name: str, r1: Round[Opinion], r2: Round[SecondOpinion]) -> Json:
    first, last = r1[name].reply, r2[name].reply if name in r2 else None
    return {"r1": first.verdict, "r2": last.verdict if last else None, "confidence": (last or first).confidence}


def _shifts(r1: Round[Opinion], r2: Round[SecondOpinion]) -> list[Json]:
    """Return each second-round judge's verdicts before and after, its reason, and whether the change is a weak flip."""
    return [
        {
            "seat": name, "from": r1[name].reply.verdict, "to": statement.reply.verdict,
            "changed": r1[name].reply.verdict != statement.reply.verdict, "reason": statement.reply.reason,
            "weak": consensus_rules.is_weak_flip(r1[name].reply.verdict, statement.reply.verdict, *statement.reply.cited),
        }
        for name, statement in r2.items()
    ]  # fmt: skip


def _dropped(early: list[Finding], late: list[Finding], r2: Round[SecondOpinion]) -> list[Json]:
    dropped = finding_rules.dropped([one for one in early if one.seat in r2], late)
    return [{"seat": one.seat, "finding": one.description, "severity": one.severity} for one in dropped]
