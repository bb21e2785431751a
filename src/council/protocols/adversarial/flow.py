"""Adversarial protocol: attack the leading draft, then rule on the attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from council.engine.council import Council
from council.errors import ChairAbsent
from council.protocols.adversarial.labels import ChairLabels, assign_chair_labels
from council.protocols.adversarial.replies import Attack, Ruling, Triage
from council.protocols.adversarial.verdict import CHOSEN_BY_RULE, build_verdict, number_issues, review_ruling
from council.protocols.common.flags import choose_leader, list_flagged_drafts
from council.protocols.common.issues import NONE, Issue, format_issue
from council.protocols.common.lengths import find_word_limit
from council.text_cleanup import strip_confidence_section
from council.types import OutcomeFacts, Round, Statement, TrustFact, Verdict

VERDICT_WORDS = 1500
USUAL_ISSUES = 12  # of two attackers
RULING_WORDS = 30  # one ruling with its reason
CONSENSUS_TEXT = "Consensus detected — no adversarial round needed"


async def adversarial(council: Council) -> Verdict:
    """Draft independently, attack the leading draft, rule on the attack."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "adversarial/draft", merged=False)
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
                drafts.seats_but(triage.leader),
                "adversarial/attack",
                quorum=0,
                reply=Attack,
                leader=leader,
                drafts=drafts,
                contested=triage.contested,
                agreed=triage.agreed,
            )
    async with council.phase("verdict"):
        ruling = await ask_for_ruling(council, drafts, leader, attacks, consensus=triage.consensus)
    facts = find_attacks_by_author(leader, attacks)
    return build_verdict(ruling, attacks, triage, drafts, by_rule=by_rule, facts=facts)


async def ask_for_ruling(
    council: Council, drafts: Round[None], leader: Statement[None], attacks: Round[Attack], *, consensus: bool
) -> Ruling:
    """Return the ruling of the chair, which sees labels in place of the ids and seats."""
    issues = number_issues(attacks)
    labels = assign_chair_labels(council, drafts, leader.seat, issues)
    choices = {"replaced_by": [NONE, *labels.drafts]}
    if issues:
        choices |= {"issue": list(labels.issues), "same_as": [NONE, *labels.issues]}

    def review(ruling: Ruling) -> str:
        return labels.hide_ids(review_ruling(labels.restore_names(ruling), issues))

    said = await council.ask(
        council.chair,
        "adversarial/verdict",
        reply=Ruling,
        choices=choices,
        review=review if attacks else None,
        leader=leader,
        others={label: drafts[name] for label, name in labels.drafts.items()},
        **describe_attacks(attacks, issues, labels),
        consensus=consensus,
        words=verdict_words(len(issues)),
        limit=find_word_limit(draft.text for draft in drafts.values()),
    )
    return labels.restore_names(said.reply)


class DescribedAttacks(TypedDict):
    """The attacks as the chair's prompt shows them, by labels in place of the seats."""

    attackers: int
    issues: dict[str, str]
    stances: list[str]
    cases: dict[str, str]  # overall judgements
    concessions: dict[str, list[str]]  # what attackers say of their own drafts


def describe_attacks(attacks: Round[Attack], issues: Mapping[str, Issue], labels: ChairLabels) -> DescribedAttacks:
    """Return the attacks for the chair's prompt."""
    replies = {label: attacks[name].reply for label, name in labels.drafts.items() if name in attacks}
    return {
        "attackers": len(attacks),
        "issues": {label: format_issue(issues[name]) for label, name in labels.issues.items()},
        "stances": sorted(reply.stance for reply in replies.values()),
        "cases": {label: reply.case for label, reply in replies.items() if reply.case},
        "concessions": {label: reply.concedes for label, reply in replies.items() if reply.concedes},
    }


def verdict_words(issues: int) -> int:
    """Return the expected length of the verdict: more than two attackers raise more issues, and each gets a ruling."""
    return VERDICT_WORDS + RULING_WORDS * max(0, issues - USUAL_ISSUES)


def find_attacks_by_author(leader: Statement[None], attacks: Round[Attack]) -> list[TrustFact]:
    """Return a fact for each attack that a fallback gave to the member that wrote the leading draft."""
    author, seat = leader.outcome.served_by, leader.seat
    names = [
        attack.seat.name
        for attack in attacks.values()
        if attack.outcome.served_by == author and attack.seat.member != seat.member
    ]
    return [TrustFact("own_attack", author, tuple(names), len(names))] if names else []


async def answer_from_single_draft(council: Council, drafts: Round[None]) -> Verdict:
    """Return an answer without an outcome: with one draft, no seat could test it."""
    (leader,) = drafts.values()
    why = "there is only one draft, so no other seat can test it"
    council.note("attack skipped", why=why, skipped=["attack"], by_absence=True)
    async with council.phase("verdict"):
        ruling = await ask_for_ruling(council, drafts, leader, Round(), consensus=False)
    return Verdict(
        strip_confidence_section(ruling.answer),
        incomplete="only one draft was made, so the answer below was not tested",
        result=OutcomeFacts("untested", leader.seat.name),
    )


async def choose_leading_draft(council: Council, drafts: Round[None]) -> tuple[Triage, bool]:
    """Return the chair's triage, or that of a rule if there is none: the draft with the fewest CRITICAL flags leads."""
    texts = {name: draft.said for name, draft in drafts.items()}
    try:
        asked = await council.ask(
            council.chair,
            "adversarial/triage",
            drafts=drafts,
            reply=Triage,
            choices={name: list(drafts) for name in ("leader", "same_as_leader", "seat")},
        )
    except ChairAbsent:
        if council.is_out(council.chair):  # there will be no verdict either, so an attack would be wasted
            raise
        leader = choose_leader(texts)
        council.note(f"leading position: {leader}", why=CHOSEN_BY_RULE)
        rule = {"contested": [], "reason": CHOSEN_BY_RULE, "leader": leader}
        return Triage.model_validate({**Triage.defaults, **rule}), True
    triage = asked.reply
    council.note(f"leading position: {triage.leader}", why=triage.reason)
    flagged = list_flagged_drafts(texts)
    if triage.consensus and flagged:
        why = f"the chair found no CRITICAL flag, but the draft of {', '.join(flagged)} has one"
        council.note("no consensus", why=why)
        triage = triage.model_copy(update={"no_critical_flag": False})
    return triage, False
