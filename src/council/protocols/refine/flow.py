"""Refine protocol: every seat reworks its own answer, the chair writes one text from them, and others check it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from council.engine.agreement import assess_notes, round_voices
from council.engine.council import Council
from council.engine.notes import parse_notes, response_names
from council.protocols.common.check import (
    Checked,
    FoundError,
    check_text,
    choose_readers,
    correct_text,
    describe_errors,
    forget_agreement,
    has_new_conclusion,
    list_check_facts,
    list_choices,
    list_missing_rulings,
    number_errors,
    rule_errors,
)
from council.protocols.common.lengths import count_words, find_opening, find_word_limit
from council.protocols.refine import rules as rule
from council.protocols.refine.replies import Attack, Rewrite
from council.protocols.refine.rules import RefineDetails
from council.types import CheckFacts, OutcomeFacts, Round, Seat, Statement, Verdict

SETTLED = "the drafts agree and no attack found harm"
SETTLED_PHASES = ["rewrite", "synthesise", "check"]
UNCHECKED_CAVEAT = "No other seat could check the answer below."


@dataclass(frozen=True, slots=True)
class Attacks:
    by_attacker: Round[Attack]
    targets: Mapping[str, str]  # attacker → the author of the draft

    @property
    def errors(self) -> dict[str, dict[str, FoundError]]:
        """The errors in each draft that another seat was to attack, by author."""
        said = {author: name for name, author in self.targets.items()}
        found = self.by_attacker
        return {author: number_errors({name: found[name]} if name in found else {}) for author, name in said.items()}

    @property
    def opposed(self) -> set[frozenset[str]]:
        """The pairs of seats whose drafts reach different conclusions, by the word of one of them."""
        return {
            frozenset((name, self.targets[name]))
            for name, said in self.by_attacker.items()
            if said.reply.same_conclusion is False
        }

    @property
    def is_settled(self) -> bool:
        """Return whether every draft was attacked without harm, and all reach the same conclusion."""
        replies = [said.reply for said in self.by_attacker.values()]
        return len(replies) == len(self.targets) > 0 and all(
            reply.same_conclusion and not reply.is_severe for reply in replies
        )


async def refine(council: Council) -> Verdict:
    """Draft, attack in a ring, rewrite, write one text from the versions, check and correct it."""
    async with council.phase("draft"):
        drafts = await council.poll(council.members, "refine/draft")
    attacks = await attack_in_ring(council, drafts)
    if attacks.is_settled:
        council.note("rewrite, synthesis and check skipped", why=SETTLED, skipped=SETTLED_PHASES)
        return await return_settled_draft(council, drafts, attacks)
    async with council.phase("rewrite"):
        rewrites = await rewrite_drafts(council, drafts, attacks)
    written, verdict = await synthesise(council, drafts, attacks, rewrites)
    council.so_far(replace(verdict, caveats=(UNCHECKED_CAVEAT,)), is_answer=True)
    base = verdict.result.seat if verdict.result else ""
    present = [seat for seat in drafts.seats if not council.is_out(seat)]
    others_first = sorted(present, key=lambda seat: seat.name == base)  # the author of the base finds least in it
    chosen = choose_readers(others_first, council.chair)
    readers = [seat for seat in present if seat in chosen]
    return add_check(verdict, await check_text(council, written, [council.chair, *present], readers))


async def attack_in_ring(council: Council, drafts: Round[None]) -> Attacks:
    if len(drafts) < 2:
        why = "there is only one draft, so no other seat can attack it"
        council.note("attack skipped", why=why, skipped=["attack"], by_absence=True)
        return Attacks(Round(), {})
    targets = rule.assign_attackers(drafts.seats)

    async def attack(apart: Council, seat: Seat) -> Statement[Attack]:
        target = drafts[targets[seat.name]]
        return await apart.ask(seat, "refine/attack", reply=Attack, draft=target, own=drafts[seat.name])

    async with council.phase("attack"):
        return Attacks(await council.gather(drafts.seats, attack, quorum=0), targets)


async def return_settled_draft(council: Council, drafts: Round[None], attacks: Attacks) -> Verdict:
    """Return the draft in which its attack found the fewest errors, with these small errors corrected."""
    others = attacks.errors
    author = min(drafts, key=lambda name: len(others[name]))  # the first of equal ones
    draft = drafts[author]
    errors = others.pop(author)  # the check has those of the draft
    readers = tuple(name for name, target in attacks.targets.items() if target == author)
    checked = Checked(draft, CheckFacts(readers, author, last_readers=readers))
    noted = assess_notes(None, round_voices(drafts))._replace(agreement="full", shared_by=tuple(drafts))
    details: RefineDetails = {"attacks": rule.describe_attacks(others, {})}
    result = OutcomeFacts("settled", author, total=len(drafts))
    verdict = Verdict(draft.said, result=result, details=dict(details), **noted._asdict())
    if errors:
        council.so_far(verdict, is_answer=True)
        async with council.phase("fix"):
            said, corrector, rows = await correct_text(council, draft, [draft.seat], errors)
        checked = Checked(said, replace(checked.facts, author=corrector or author, errors=tuple(rows)))
    return add_check(verdict, checked)


async def rewrite_drafts(council: Council, drafts: Round[None], attacks: Attacks) -> Round[Rewrite]:
    """Have every author rule on the errors in its draft and write its answer again."""
    found = attacks.errors

    async def rewrite(apart: Council, seat: Seat) -> Statement[Rewrite]:
        errors = found.get(seat.name, {})

        def review(reply: Rewrite) -> str:
            return "; ".join(list_missing_rulings(rule_errors(reply.rulings, errors)))

        return await apart.ask(
            seat,
            "refine/rewrite",
            reply=Rewrite,
            choices=list_choices(errors),
            review=review,
            draft=drafts[seat.name],
            length=count_words(drafts[seat.name].said),
            others=drafts.others(seat),
            errors=describe_errors(errors),
        )

    return await council.gather(drafts.seats, rewrite, quorum=0)


async def synthesise(
    council: Council, drafts: Round[None], attacks: Attacks, rewrites: Round[Rewrite]
) -> tuple[Statement[Any], Verdict]:
    """Have the chair write one text from the versions, which it sees without their authors."""
    versions: list[Statement[Any]] = [rewrites.get(name, said) for name, said in drafts.items()]
    rulings = {name: said.reply.rulings for name, said in rewrites.items()}
    unsettled = rule.list_unsettled_errors(attacks.errors, rulings)
    async with council.phase("synthesise"):
        responses = council.assign_labels(versions, council.chair)
        seats = {label: said.seat.name for label, said in responses.items()}
        written = await council.ask(
            council.chair,
            "refine/synthesise",
            responses=responses,
            unsettled={label: unsettled[name] for label, name in seats.items() if unsettled.get(name)},
            openings={label: find_opening(drafts[name].said) for label, name in seats.items()} if rewrites else {},
            lengths={label: count_words(said.said) for label, said in responses.items()},
            limit=find_word_limit(said.said for said in versions),
        )
    shown = {label: said.seat.label for label, said in responses.items()}
    notes = parse_notes(written.outcome.text, response_names(seats), shown)
    noted = assess_notes(notes, round_voices(drafts))
    base = notes["closest_draft"] if notes else None
    details: RefineDetails = {
        "attacks": rule.describe_attacks(attacks.errors, rulings),
        "labels": {council.chair.name: seats},
    }
    verdict = Verdict(
        written.text,
        notes=notes,
        result=OutcomeFacts("built_on", base) if base and len(drafts) > 1 else None,
        details=dict(details),
        **noted._asdict(),
    )
    is_doubtful = rule.is_contradicted(verdict.shared_by, attacks.opposed)
    return written, forget_agreement(verdict) if is_doubtful else verdict


def add_check(verdict: Verdict, checked: Checked) -> Verdict:
    """Return a verdict with the text that was checked, and what the check found."""
    facts = checked.facts
    verdict = replace(
        verdict,
        answer=checked.text,
        caveats=() if facts.readers else (UNCHECKED_CAVEAT,),
        check=facts,
        trust_facts=(*verdict.trust_facts, *list_check_facts(facts)),
    )
    return forget_agreement(verdict) if has_new_conclusion(facts) else verdict
