"""Adversarial protocol: attack the leading draft, then rule on the attack."""

from __future__ import annotations

from council.engine.council import Council
from council.errors import ChairAbsent
from council.protocols.adversarial.replies import NONE, Attack, Ruling, Triage
from council.protocols.adversarial.rules import choose_leader, list_flagged_drafts
from council.protocols.adversarial.verdict import CHOSEN_BY_RULE, build_verdict, number_issues, review_ruling
from council.text_cleanup import strip_confidence_section
from council.types import Json, OutcomeFacts, Round, Verdict

VERDICT_WORDS = 1500
USUAL_ISSUES = 12  # of two attackers
RULING_WORDS = 30  # one ruling with its reason
CONSENSUS_TEXT = "Consensus detected — no adversarial round needed"


async def adversarial(council: Council) -> Verdict:
    """Draft independently, attack the leading draft, rule on the attack."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "adversarial/draft")
    if len(drafts) == 1:
        return await answer_from_single_draft(council, drafts)
    async with council.phase("triage"):
        triage, by_rule = await choose_leading_draft(council, drafts)
    leader = drafts[triage.leader]
    attacks: Round[Attack] = Round()
    if triage.consensus:
        council.note("attack skipped", why=CONSENSUS_TEXT, skipped=["attack"])
    else:
        async with council.phase("attack"):
            attacks = await council.poll(
                drafts.seats_but(triage.leader), "adversarial/attack", quorum=0,
                leader=leader, drafts=drafts, contested=triage.contested, agreed=triage.agreed, reply=Attack,
            )  # fmt: skip
    issues = number_issues(attacks)
    async with council.phase("verdict"):
        ruling = await council.ask(
            council.chair, "adversarial/verdict", leader=leader, attacks=attacks, drafts=drafts, consensus=triage.consensus,
            issues=[f"{n}: {issue.severity}, {issue.hits}: {issue.flaw}" for n, issue in issues.items()],
            words=verdict_words(len(issues)), reply=Ruling, choices={"issue": list(issues), "same_as": [NONE, *issues]} if issues else {},
            review=(lambda ruling: review_ruling(ruling, issues)) if attacks else None,
        )  # fmt: skip
    return build_verdict(ruling.reply, attacks, triage, drafts, by_rule=by_rule)


def verdict_words(issues: int) -> int:
    """Return the expected length of the verdict: more than two attackers raise more issues, and each gets a ruling."""
    return VERDICT_WORDS + RULING_WORDS * max(0, issues - USUAL_ISSUES)


async def answer_from_single_draft(council: Council, drafts: Round[None]) -> Verdict:
    """Return an answer without an outcome: with one draft, no seat could test it."""
    (leader,) = drafts.values()
    council.note("attack skipped", why="there is only one draft, so no other seat can test it", skipped=["attack"])
    async with council.phase("verdict"):
        ruling = await council.ask(
            council.chair, "adversarial/verdict", leader=leader, attacks=Round(), drafts=drafts, issues=[],
            consensus=False, words=VERDICT_WORDS, reply=Ruling,
        )  # fmt: skip
    return Verdict(
        strip_confidence_section(ruling.reply.answer),
        incomplete="only one draft was made, so the answer below was not tested",
        result=OutcomeFacts("untested", leader.seat.name),
    )


async def choose_leading_draft(council: Council, drafts: Round[None]) -> tuple[Triage, bool]:
    """Return the chair's triage, and whether a rule replaced it: without one, the draft with the fewest CRITICAL flags leads."""
    try:
        asked = await council.ask(
            council.chair, "adversarial/triage", drafts=drafts, reply=Triage, choices={"leader": list(drafts)}
        )
    except ChairAbsent:
        if council.is_out(council.chair):  # there will be no verdict either, so an attack would be wasted
            raise
        leader = choose_leader({name: draft.said for name, draft in drafts.items()})
        council.note(f"leading position: {leader}", why=CHOSEN_BY_RULE)
        unknown: Json = dict.fromkeys(("same_conclusion", "no_critical_flag", "no_contradiction", "mostly_high"), False)
        return Triage(agreed=[], contested=[], reason=CHOSEN_BY_RULE, leader=leader, **unknown), True
    triage = asked.reply
    council.note(f"leading position: {triage.leader}", why=triage.reason)
    flagged = list_flagged_drafts({name: draft.said for name, draft in drafts.items()})
    if triage.consensus and flagged:
        council.note(
            "no consensus", why=f"the chair found no CRITICAL flag, but the draft of {', '.join(flagged)} has one"
        )
        triage = triage.model_copy(update={"no_critical_flag": False})
    return triage, False
