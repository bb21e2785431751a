"""From opinions to one verdict: votes counted, findings checked and grouped, shifts and doubts told. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from council.council import Council
from council.protocols.options import JudgesOptions
from council.replies import Opinion, SecondOpinion
from council.rules import consensus as rule
from council.rules import findings as found
from council.rules.consensus import Consensus, Vote
from council.rules.findings import Finding, Group
from council.types import WORDS_OF, Json, Round, Statement, Verdict


def judged(council: Council, chosen: JudgesOptions, r1: Round[Opinion], r2: Round[SecondOpinion]) -> Verdict:
    """The second round decides where there is one; the first completes the findings."""
    packet = council.packet
    final: dict[str, Statement[Opinion]] = {name: r2.get(name, said) for name, said in r1.items()}  # type: ignore[misc]
    votes = [_vote(said) for said in final.values()]
    texts = {file.path: file.content for file in packet.files}
    late, early = _findings(final, texts), _findings(dict(r1), texts)
    challenges = _challenges(r2)
    whole = _ruled(chosen, votes, late, found.survivors(early, late, challenges))
    groups = _groups(late, challenges, votes)
    holes = [*packet.holes, *_unseen(r1, r2)]
    verdict = rule.capped(whole.verdict, holes, packet.empty)
    confidence = "MEDIUM" if chosen.quick and whole.confidence == "HIGH" else whole.confidence
    rows = found.rows(groups)
    return Verdict(
        _recommendation(final, groups),
        verdict=verdict, confidence=confidence, findings=tuple(rows),
        consensus=tuple(row for row in rows if len(row["found_by"]) > 1),
        disagreements=tuple(_disagreements(final, whole, verdict)),
        insights=tuple(_family_only(groups, r1)), shifts=tuple(_shifts(r1, r2)),
        dissent=tuple(_dissent(final, whole)),
        details={
            "verdicts": {name: _verdicts(name, r1, r2) for name in r1}, "families": dict(whole.families),
            "n_eff": rule.effective_votes(votes), "rule": chosen.rule, "weakened": list(whole.weakened),
            "inconsistent": list(found.inconsistent(votes, late)), "dropped": _dropped(early, late, r2),
            "converged": bool(r2) and rule.converged(_words(r1), _words(final)),
            "r2_missing": [name for name in r1 if r2 and name not in r2],
            "rounds": 2 if r2 else 1, "fidelity": "full", "notes": {name: said.reply.debate_notes.model_dump() for name, said in r2.items()},
            "quick": chosen.quick, "profile": chosen.profile, "mixed": chosen.mixed, "holes": holes, "empty": packet.empty,
        },
    )  # fmt: skip


def _unseen(*rounds: Round[Any]) -> list[str]:
    """What did not fit one of the judges and was cut for it: nobody may pass what not everybody saw."""
    cuts = (cut for one in rounds for said in one.values() for cut in said.outcome.cut)
    return list(dict.fromkeys(cut for cut in cuts if not cut.startswith(WORDS_OF)))


def _vote(said: Statement[Opinion]) -> Vote:
    return Vote(said.seat.name, said.seat.vendor, said.reply.verdict, said.reply.confidence, said.outcome.state)


def _words(said: Mapping[str, Statement[Opinion]]) -> list[str]:
    return [one.reply.verdict for one in said.values()]


def _findings(said: Mapping[str, Statement[Opinion]], texts: Mapping[str, str]) -> list[Finding]:
    rows = [(name, row.model_dump()) for name, one in said.items() for row in one.reply.findings]
    return [found.verify(found.read_finding(name, row), texts) for name, row in rows]


def _challenges(r2: Round[SecondOpinion]) -> list[found.Challenge]:
    return [
        found.Challenge(one.target_judge, one.claim)
        for said in r2.values()
        for one in said.reply.debate_notes.challenges
    ]


def _ruled(chosen: JudgesOptions, votes: list[Vote], late: list[Finding], survived: frozenset[str]) -> Consensus:
    several = chosen.mixed or len({vote.vendor for vote in votes}) > 1  # by --mixed, or because seats were set so
    if chosen.rule == "corroborated":
        return rule.corroborated(votes, mixed=several, verified=found.verified_seats(late), survived=survived)
    return rule.consensus(votes, mixed=several)


def _groups(late: list[Finding], challenges: list[found.Challenge], votes: list[Vote]) -> list[Group]:
    groups = [
        replace(one, disputed=any(found.is_challenged(member, challenges) for member in one.members))
        for one in found.group(late, len(votes))
    ]
    return found.ordered(groups, [vote.seat for vote in votes if vote.verdict == "FAIL"])


def _recommendation(final: Mapping[str, Statement[Opinion]], groups: list[Group]) -> str:
    """What the most severe verified finding asks for, with who says so; else what the sternest judge recommends."""
    for one in groups:
        if any(member.verified for member in one.members) and one.severity != "minor":
            lead = one.lead
            advice = lead.fix if lead.fix != found.NO_FIX else final[lead.seat].reply.recommendation
            return f"{advice} ({lead.location}, {', '.join(one.found_by)})"
    sternest = max(final.values(), key=lambda said: rule.SCALE.index(said.reply.verdict))
    return f"{sternest.reply.recommendation} ({sternest.seat.name})"


def _disagreements(final: Mapping[str, Statement[Opinion]], whole: Consensus, verdict: str | None) -> list[Json]:
    """Judges who hold different verdicts, with their reasons; under DISAGREE also the families."""
    if len(set(_words(final))) < 2:
        return []
    positions = [
        {"seat": name, "family": said.seat.vendor, "verdict": said.reply.verdict, "why": said.reply.key_insight}
        for name, said in final.items()
    ]
    return [
        {"issue": "the verdict" if verdict != "DISAGREE" else "the verdict, between families", "positions": positions}
    ]


def _dissent(final: Mapping[str, Statement[Opinion]], whole: Consensus) -> list[Json]:
    return [
        {"seat": name, "position": said.reply.verdict, "text": said.reply.key_insight}
        for name, said in final.items()
        if whole.verdict != "DISAGREE" and said.reply.verdict != whole.verdict
    ]


def _family_only(groups: list[Group], r1: Round[Opinion]) -> list[Json]:
    """What only one of two families saw."""
    vendors = {seat.name: seat.vendor for seat in r1.seats}
    if len(set(vendors.values())) < 2:
        return []
    alone = [(one, {vendors[seat] for seat in one.found_by}) for one in groups]
    return [
        {"family": next(iter(families)), "finding": one.lead.description, "severity": one.severity}
        for one, families in alone
        if len(families) == 1
    ]


def _verdicts(name: str, r1: Round[Opinion], r2: Round[SecondOpinion]) -> Json:
    first, last = r1[name].reply, r2[name].reply if name in r2 else None
    return {"r1": first.verdict, "r2": last.verdict if last else None, "confidence": (last or first).confidence}


def _shifts(r1: Round[Opinion], r2: Round[SecondOpinion]) -> list[Json]:
    """Every judge of the second round: what it said before and after, why, and whether the change rests on nothing."""
    return [
        {
            "seat": name, "from": r1[name].reply.verdict, "to": said.reply.verdict,
            "changed": r1[name].reply.verdict != said.reply.verdict, "reason": said.reply.reason,
            "weak": rule.is_weak_flip(r1[name].reply.verdict, said.reply.verdict, *said.reply.cited),
        }
        for name, said in r2.items()
    ]  # fmt: skip


def _dropped(early: list[Finding], late: list[Finding], r2: Round[SecondOpinion]) -> list[Json]:
    gone = found.dropped([one for one in early if one.seat in r2], late)
    return [{"seat": one.seat, "finding": one.description, "severity": one.severity} for one in gone]
