"""Adversarial protocol: attack the leading draft, then rule on the attack."""

from __future__ import annotations

from council.engine.council import Council
from council.protocols.adversarial.replies import Attack, Issue, Ruling, Triage
from council.protocols.adversarial.rules import compute_confidence
from council.types import Json, Round, Verdict

CONSENSUS_TEXT = "Consensus detected — no adversarial round needed"


async def adversarial(council: Council) -> Verdict:
    """Draft independently, attack the leading draft, rule on the attack."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "adversarial/draft")
    if len(drafts) == 1:
        return await answer_from_single_draft(council, drafts)
    async with council.phase("triage"):
        triage: Triage = (
            await council.ask(
                council.chair, "adversarial/triage", drafts=drafts, reply=Triage, choices={"leader": list(drafts)}
            )
        ).reply
        leader = drafts[triage.leader]
        council.note(f"leading position: {triage.leader}", why=triage.reason)
    attacks: Round[Attack] = Round()
    if triage.consensus:
        council.note("attack skipped", why=CONSENSUS_TEXT, skipped=["attack"])
    else:
        async with council.phase("attack"):
            attacks = await council.poll(
                drafts.seats_but(triage.leader), "adversarial/attack",
                leader=leader, drafts=drafts, contested=triage.contested, agreed=triage.agreed, reply=Attack,
            )  # fmt: skip
    issues = number_issues(attacks)
    async with council.phase("verdict"):
        ruling = await council.ask(
            council.chair, "adversarial/verdict", leader=leader, attacks=attacks, drafts=drafts,
            issues=[f"{n}: {issue.severity}, {issue.hits}: {issue.flaw}" for n, issue in issues.items()],
            reply=Ruling, choices={"issue": list(issues)} if issues else {"outcome": ["SURVIVED", "MODIFIED"]},
        )  # fmt: skip
    return build_verdict(ruling.reply, attacks)


async def answer_from_single_draft(council: Council, drafts: Round[None]) -> Verdict:
    """Return an answer without an outcome: with one draft, no seat could test it."""
    (leader,) = drafts.values()
    council.note("attack skipped", why="there is only one draft, so no other seat can test it", skipped=["attack"])
    async with council.phase("verdict"):
        ruling = await council.ask(
            council.chair, "adversarial/verdict", leader=leader, attacks=Round(), drafts=drafts, issues=[], reply=Ruling
        )
    return Verdict(ruling.reply.answer, incomplete="only one draft was made, so the answer below was not tested")


def number_issues(attacks: Round[Attack]) -> dict[str, Issue]:
    """Return the issues under names that the chair can cite: beta-1, beta-2, gamma-1."""
    return {f"{name}-{n}": issue for name, attack in attacks.items() for n, issue in enumerate(attack.reply.issues, 1)}


def build_verdict(ruling: Ruling, attacks: Round[Attack]) -> Verdict:
    """Build the verdict with a computed confidence. Without an attack the outcome is SURVIVED."""
    issues = number_issues(attacks)
    outcome = ruling.outcome if attacks else "SURVIVED"
    landed = [issues[point.issue].severity for point in ruling.points if point.landed and point.issue in issues]
    level = compute_confidence(outcome, landed, [attack.reply.verdict for attack in attacks.values()])
    answer = f"{ruling.answer}\n\n## Confidence Assessment\n\n**{level}.** {ruling.assessment}"
    return Verdict(answer, outcome=outcome, confidence=level, dissent=tuple(_list_dissent(attacks, outcome)))


def _list_dissent(attacks: Round[Attack], outcome: str) -> list[Json]:
    """Return the attackers that said REJECTED although the draft was not overturned."""
    rejected = [name for name, attack in attacks.items() if attack.reply.verdict == "REJECTED"]
    return [
        {"seat": name, "position": "REJECTED", "text": attacks[name].said}
        for name in rejected
        if outcome != "OVERTURNED"
    ]
